"""Turns a provider's refusal (status, headers, body) into the error that tells the loop what to do."""

import contextlib
import itertools
import json
import os
import re
import ssl
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

import judge.errors as errors
from judge.judges.credentials import origin, redact
from judge.judges.limits import read_limits, read_seconds, reset_of_used_up, retry_after, wish_in_words
from judge.judges.refusals import (
    CONTENT,
    FORM,
    by_field,
    by_words,
    finds_no_endpoint,
    is_of_one_generation,
    is_of_the_form,
    is_of_the_value,
    located,
    refuses_system,
)

_LONGEST = 300
"""Characters of a provider's message that are shown and searched for known phrases.

Servers put their own words first. An echo of the request may follow, and that is hostile text.
"""
_CONTEXT = re.compile(
    r"context[ _](length|window|size|limit)|maximum (input|context) length|prompt is too long|"
    r"too many tokens|input is too long|maximum number of tokens|`inputs` (tokens|must have)"
)
_FILTER = re.compile(r"content[ _](filter|policy|management)|responsibleai|safety system|flagged|moderation")
_LOGPROBS = re.compile(r"log[ _]?prob")
_PROBABILITIES = frozenset({"logprobs", "top_logprobs"})
_REFUSING = (400, 403, 404, 422)
"""Statuses of refusals of what a request holds; some gateways send 500 or 501."""
_LIMITING = (429, 529)
_EXHAUSTED: tuple[tuple[str, str], ...] = (
    # Anthropic: the pause ends with the month, https://platform.claude.com/docs/en/api/rate-limits.
    (r"\benforced_spend_limit_reached\b|reached your (?:specified )?(?:workspace )?api usage limits",
        "raise the spend limit at the provider, or give the same command again after {month}"),
    (r"\bcontract_spend_limit_reached\b",
        "the contract's spend limit is used up; give the same command again once it is raised or renewed"),
    # Google: quotas of a day begin anew at midnight in California, https://ai.google.dev/gemini-api/docs/rate-limits.
    (r"\bquota:\S*perday",
        "the quota of the day is used up; give the same command again after midnight Pacific time (08:00 UTC, or 07:00 "
        "UTC in summer), or raise the quota at the provider"),
    # Not "exceeded your current quota": Gemini says this of a limit per minute too.
    (r"\b(?:insufficient_quota|credit_balance_exhausted|billing_(?:hard_limit_reached|not_active|error))\b"
        r"|\bstatus 402\b|credit balance is too low|insufficient balance",
        "add credit to the account at the provider, and give the same command again then"),
)  # fmt: skip
"""How providers say, in words and codes, that an account can do nothing more; and what to do, and when to come back.

`{month}` is the time that the message names, else the next month's first.
"""
_Kind = TypeVar("_Kind")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
"""What OpenSSL calls an answer in another protocol."""
_CUT = ("ConnectionResetError", "ServerDisconnectedError", "BadStatusLine", "BadHttpMessage")
"""What a port that speaks TLS does to a plain request: it cuts the connection, or answers with an alert."""
_CERTIFIED_OTHERWISE = frozenset((9, 10, 62, 64))
"""OpenSSL's numbers of certificates that a trusted one does not help: too early, too late, of another host."""
_REGAIN = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) utc")


class Refusal(msgspec.Struct, frozen=True):
    """What a provider sent instead of a completion."""

    status: int
    message: str
    codes: frozenset[str] = frozenset()
    """Its machine-readable words, in lower case; `quota:` stands before the id of a quota that is used up."""
    parameters: tuple[str, ...] = ()
    """The places in the request that its fields name as the cause, in their order; a place may be a path."""
    wait: float | None = None
    """Seconds that the body asks to wait."""


def shorten(text: str) -> str:
    """The text as one line of at most 300 characters, redacted, for a message."""
    line = " ".join(redact(text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class _Reading(msgspec.Struct):
    """What was found in the body of a refusal so far."""

    messages: list[str] = []
    codes: list[str] = []
    parameters: list[str] = []
    wait: float | None = None

    def read(self, value: Any, depth: int = 0) -> None:
        """Read a part of a body, and the parts of it that may hold the answer of a provider behind this one."""
        if depth > _DEEPEST:
            return
        if isinstance(value, str):
            self._read_text(value, depth)
        elif isinstance(value, list):
            for item in value[:_MOST]:
                if isinstance(item, dict | list):
                    self.read(item, depth + 1)
        elif isinstance(value, dict):
            self._read_fields(value, depth)

    def _read_text(self, text: str, depth: int) -> None:
        """A message, which may hold another body: litellm's proxy and some routers quote the provider's."""
        quoted = _quoted(text)
        before = text if quoted is None else _BEFORE_QUOTE.sub("", text[: quoted[0]])
        if before.strip() and before not in self.messages:
            self.messages.append(before)
        if quoted is not None:
            self.read(quoted[1], depth + 1)

    def _read_fields(self, fields: dict[str, Any], depth: int) -> None:
        self.codes += [code for name in _CODES if isinstance(code := fields.get(name), str) and not code.isdecimal()]
        # OpenAI's, and Gemini's in google.rpc.BadRequest.
        for name in ("param", "field"):
            place = fields.get(name)
            if not isinstance(place, str):
                continue
            if " " in place:
                self.messages.append(place)
            elif place and not place.endswith("error"):
                self.parameters.append(place)
        # FastAPI's.
        for name in ("loc", "param"):
            steps = at(fields, list, name) or ()
            if path := ".".join(str(step) for step in steps[:_MOST] if isinstance(step, str | int)):
                self.parameters.append(path)
        # Gemini sends a list of typed objects, google.rpc.RetryInfo and google.rpc.QuotaFailure.
        if delay := at(fields, str, "retryDelay"):
            self.wait = read_seconds(delay, datetime.now(UTC)) or None
        if quota := at(fields, str, "quotaId"):
            self.codes.append(f"quota:{quota}")
        for name in _INNER:
            value = fields.get(name)
            told = len(self.messages)
            self.read(value, depth + 1)
            if isinstance(value, list | dict) and name in _TOLD and told == len(self.messages):
                with contextlib.suppress(RecursionError):
                    self.messages.append(json.dumps(value))


_CODES = ("code", "type", "status", "error_type", "error_code")
_INNER = (
    "error", "errors", "message", "detail", "details", "innererror", "metadata", "raw", "cause", "fieldViolations",
    "violations",
)  # fmt: skip
"""The fields that hold a message, or what is known about it. All others may hold what was sent."""
_TOLD = ("message", "detail")
"""Those that are shown even if they hold no text."""
_DEEPEST, _MOST = 8, 16
"""How deep a body is read, and how many items of a list."""
_BEFORE_QUOTE = re.compile(r"[\s:-]*(?:b?['\"])?$")


def read_refusal(status: int, body: bytes | str) -> Refusal:
    """The provider's message, codes and named parameters, from the body of an error.

    The known shapes are `{"error": {message, type, code, param}}` (OpenAI and most others), the same inside a list
    (Gemini), `{"error": "..."}` (text-generation-inference, xAI), `{"message": ...}` (older vLLM, Mistral) and
    `{"detail": ...}` (FastAPI). A proxy puts the body of the provider behind it into one of its own: OpenRouter into
    `error.metadata.raw`, litellm's into the message.
    """
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, list) and document:
        document = document[0]
    reading = _Reading()
    reading.read(document if isinstance(document, dict) else text)
    # A number is a status, of the provider that answered and not of those behind it.
    error = at(document, dict, "error") or document
    numbers = [at(error, int, name) or at(error, str, name) for name in _CODES]
    reading.codes += [str(number) for number in numbers if number is not None and str(number).isdecimal()]
    message = shorten(": ".join(reading.messages) or text) or "no message"
    return Refusal(
        status=status,
        message=message,
        codes=frozenset(code.lower() for code in reading.codes),
        parameters=tuple(reading.parameters or located(message)),
        wait=reading.wait,
    )


def _quoted(text: str) -> tuple[int, Any] | None:
    """Where a text holds the body of another error, and that body; None if it holds none near its beginning."""
    decoder = json.JSONDecoder()
    for opening in itertools.islice(re.finditer(r"[{\[]", text[:_LONGEST]), _MOST):
        try:
            body, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        first = body[0] if isinstance(body, list) and body else body
        if isinstance(first, dict) and not first.keys().isdisjoint(("error", "message", "detail", "loc")):
            return opening.start(), body
    return None


def at(document: Any, kind: type[_Kind], *path: str | int) -> _Kind | None:
    """The value at a path of a document; None where it is missing or of another type: what is paid for is read."""
    for step in path:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
    return document if type(document) is kind else None


def connection_error(error: Exception, timeout: float, unheard: str = "") -> errors.JudgeError:
    """Our error for a call that got no reply; `timeout` is in seconds, `unheard` an address that never gave one.

    The first cause decides, because wrappers mislead: httpx-aiohttp reports a timeout when the server cut the
    connection.
    """
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return errors.TransientError(f"no answer within {timeout:g} s")
    first = causes[-1]
    description = f"{type(first).__name__}: {shorten(str(first))}"
    if isinstance(first, ssl.SSLError):
        return errors.OperationalError(f"no secure connection to the server: {description}{_secured(first)}")
    if unheard.startswith("http:") and type(first).__name__ in _CUT:
        description += " (if this port speaks TLS, its address begins with https://)"
    return errors.TransientError(description)


def _secured(error: ssl.SSLError) -> str:
    """What to do about a connection that is not secure; empty if the error says it."""
    if getattr(error, "reason", None) in _NO_TLS:
        return "; the port speaks no TLS: if it is one of plain HTTP, its address begins with http://"
    code = getattr(error, "verify_code", None)
    if not isinstance(error, ssl.SSLCertVerificationError) or code in _CERTIFIED_OTHERWISE:
        return ""
    named = os.environ.get("SSL_CERT_FILE")
    if named and not Path(named).is_file():
        return f"; SSL_CERT_FILE names {named!r}, which is no file"
    return "; for a certificate of your own, SSL_CERT_FILE=FILE names it, or that of the authority that signed it"


def check_redirect(status: int, asked: str, location: str | None) -> None:
    """Refuse a redirect, even within an origin: what is judged goes to the address that the records name.

    `asked` is the address, `location` the header of the reply; a redirect is an OperationalError.
    """
    if not 300 <= status < 400:
        return
    here = origin(asked)
    try:
        target = urljoin(asked, location or "")
        there = origin(target)
        # A query may hold a signature or a key.
        path = urlsplit(target).path
    except ValueError:
        there = "an address that cannot be read"
        path = ""
    there = shorten(there if there != here else f"{there}{path}")
    raise errors.OperationalError(
        f"status {status}: {here} redirects to {there}, and judge follows no redirect; if the judge is there, name "
        "that address in --base-url"
    )


def asked_wait(refusal: Refusal, headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait after a refusal; None if neither headers, body nor words say it."""
    for seconds in (retry_after(headers), refusal.wait, wish_in_words(refusal.message)):
        if seconds is not None:
            return seconds
    return reset_of_used_up(read_limits(headers), refusal.codes)


def error_for(
    refusal: Refusal,
    headers: Mapping[str, str],
    *,
    structured: bool,
    probable: bool = False,
    sent: Collection[str] = (),
) -> errors.JudgeError:
    """Our error for a refusal, with its status.

    `structured`: a JSON schema, a choice or a grammar was sent. `probable`: probabilities of labels were asked for.
    `sent`: the parameters of the request, `system` among them where it had a system message.
    """
    error = _error_for(refusal, headers, structured=structured, probable=probable, sent=sent)
    error.status = refusal.status
    return error


def _error_for(
    refusal: Refusal, headers: Mapping[str, str], *, structured: bool, probable: bool, sent: Collection[str]
) -> errors.JudgeError:
    status = refusal.status
    codes = refusal.codes
    words = refusal.message.lower()
    message = f"status {status}: {refusal.message}"
    said = " ".join((f"status {status}", words, *sorted(codes)))
    field = by_field(refusal.parameters, sent)
    if probable and _refuses_probabilities(status, field, words):
        return errors.LogprobsError(f"{message} (this judge gives no label probabilities: leave out --logprobs)")
    wanted = {"true": True, "false": False}.get(
        next((headers[name].strip().lower() for name in headers if name.lower() == "x-should-retry"), "")
    )
    if exhausted := _exhausted(refusal, headers, said, wanted):
        return errors.QuotaError(f"{message.rstrip('.')}; {exhausted}")
    if status in _LIMITING:
        return errors.RateLimitError(message, asked_wait(refusal, headers))
    # llama.cpp reports an exceeded context with status 500 too.
    too_long = "context_length_exceeded" in codes or _CONTEXT.search(words)
    if status == 413 or (status in (400, 422, 500) and too_long):
        return errors.ContextLengthError(message)
    # What a field names is not made into something else by words.
    is_named = field in sent and field not in CONTENT and field not in FORM
    if status in (400, 403, 422) and _FILTER.search(said) and not is_named:
        return errors.ContentFilterError(message)
    about_the_form = structured and status in (400, 422, 500, 501)
    if about_the_form and is_of_one_generation(said) and not is_named:
        return errors.StructureUnsupported(message, lasting=False)
    parameter = _refused_parameter(refusal, field, sent)
    if parameter is not None and parameter not in FORM:
        return errors.ParameterRefused(message, parameter)
    if structured and (parameter in FORM or (status == 404 and finds_no_endpoint(words))):
        return errors.StructureUnsupported(message)
    if status in (401, 403):
        return errors.AuthenticationError(f"{message} (check the API key and what it may use)")
    if (status == 404 and not finds_no_endpoint(words)) or "model_not_found" in codes:
        return errors.AuthenticationError(f"{message} (check the name of the model and the address)")
    if about_the_form and is_of_the_form(said):
        return errors.StructureUnsupported(message)
    # An outage names none of these.
    passing = status in (408, 409, 425) or status >= 500
    if passing if wanted is None else wanted:
        return errors.TransientError(message, retry_after(headers))
    return errors.RejectedError(message)


def _refuses_probabilities(status: int, field: str | None, words: str) -> bool:
    if field is not None:
        return field in _PROBABILITIES and status in (*_REFUSING, 500, 501)
    # OpenAI forbids them for some models with status 403, which elsewhere is about the key.
    return status in (*_REFUSING, 501) and _LOGPROBS.search(words) is not None


def _exhausted(refusal: Refusal, headers: Mapping[str, str], said: str, wanted: bool | None) -> str | None:
    """What to do about an account that can do nothing more; None if waiting or another request may help."""
    helpless = "asking again does not help: "
    for pattern, advice in _EXHAUSTED if refusal.status < 500 else ():
        if re.search(pattern, said):
            return f"{helpless}{advice.format(month=_regained(refusal.message.lower()))}"
    if refusal.status in _LIMITING and wanted is False and asked_wait(refusal, headers) is None:
        return (
            f"the provider says that {helpless}look at the limits of the account, and give the same command again when "
            "they are raised or reset"
        )
    return None


def _refused_parameter(refusal: Refusal, field: str | None, sent: Collection[str]) -> str | None:
    """The parameter of the request that a refusal is about, of `sent` or of FORM; None if it is about none.

    `field` is what the fields of the body name. Where they name anything, words do not count, because they may quote
    a hostile response. A system message is known by words all the same: the fields then name the messages or the model.
    """
    status = refusal.status
    said = " ".join((refusal.message.lower(), *sorted(refusal.codes)))
    if status not in (*_REFUSING, 500, 501) or "model_not_found" in refusal.codes:
        return None
    if field is not None and field not in CONTENT:
        return None if is_of_the_value(field, said) else field
    # llama.cpp answers an error of the chat template with status 500.
    if "system" in sent and status != 501 and refuses_system(refusal.message):
        return "system"
    if refusal.parameters or status not in _REFUSING:
        return None
    return by_words(refusal.message, sent, refusal.codes)


def _regained(words: str) -> str:
    """When an account may be used again by the words of a refusal, else the beginning of the next month."""
    if named := _REGAIN.search(words):
        return f"{named[1]} {named[2]} UTC"
    return f"{datetime.now(UTC).replace(day=1) + timedelta(days=32):%Y-%m}-01 00:00 UTC"
