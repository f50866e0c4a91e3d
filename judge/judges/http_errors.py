"""Turns a provider's refusal (status, headers, body) into the error that tells the loop what to do."""

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
_STRUCTURE = re.compile(r"response_format|schema|structured|guided|grammar")
_ONE_GENERATION = re.compile(r"json_validate_failed|failed to (?:generate|validate) json|generated json")
"""How providers say that one reply did not fit the schema, which they take from other requests."""
_SYSTEM = re.compile(r"\bsystem (?:role|message|prompt|instruction)s?\b|\brole[s:]? .{0,40}\bsystem\b")
_TOO_MUCH = re.compile(r"too (?:large|long|big|many|high)|at most|exceed|maximum|less than")
"""How they say that a value is refused, not the parameter."""
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
    parameters: frozenset[str] = frozenset()
    """The parameters of the request that it names as the cause."""
    wait: float | None = None
    """Seconds that the body asks to wait."""


def shorten(text: str) -> str:
    """The text as one line of at most 300 characters, redacted, for a message."""
    line = " ".join(redact(text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def read_refusal(status: int, body: bytes | str) -> Refusal:
    """The provider's message and codes, from the body of an error.

    The known shapes are `{"error": {message, type, code}}` (OpenAI and most others), the same inside a list (Gemini),
    `{"error": "..."}` (text-generation-inference), `{"message": ...}` (older vLLM) and `{"detail": ...}` (FastAPI).
    """
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal(status, shorten(text) or "no message")
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return Refusal(status, shorten(text))
    error = document.get("error", document)
    if not isinstance(error, dict):
        return Refusal(status, shorten(str(error)))
    message = error.get("message") or error.get("detail") or text
    # OpenAI's `param`; FastAPI lists what is wrong, each with its place.
    parameters = [error.get("param")]
    for place in at(error, list, "detail") or ():
        parameters += at(place, list, "loc") or ()
    codes = [error.get(name) for name in ("code", "type", "status", "error_type")]
    # Azure's, and Anthropic's.
    codes += [at(error, str, "innererror", "code"), at(error, str, "details", "error_code")]
    wait: float | None = None
    # Gemini sends a list of typed objects, google.rpc.RetryInfo and google.rpc.QuotaFailure.
    for detail in at(error, list, "details") or ():
        if delay := at(detail, str, "retryDelay"):
            wait = read_seconds(delay, datetime.now(UTC)) or None
        codes += [f"quota:{at(violation, str, 'quotaId')}" for violation in at(detail, list, "violations") or ()]
    return Refusal(
        status,
        shorten(message if isinstance(message, str) else json.dumps(message)),
        frozenset(str(code).lower() for code in codes if isinstance(code, str | int)),
        frozenset(name for name in parameters if isinstance(name, str)),
        wait,
    )


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
        there, path = "an address that cannot be read", ""
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
    status, codes, words = refusal.status, refusal.codes, refusal.message.lower()
    message = f"status {status}: {refusal.message}"
    # OpenAI forbids them for some models with status 403, which elsewhere is about the key.
    if probable and status in (400, 403, 422, 501) and _LOGPROBS.search(words):
        return errors.LogprobsError(f"{message} (this judge gives no label probabilities: leave out --logprobs)")
    helpless = "asking again does not help: "
    said = " ".join((f"status {status}", words, *sorted(codes)))
    for pattern, advice in _EXHAUSTED if status < 500 else ():
        if re.search(pattern, said):
            return errors.QuotaError(f"{message.rstrip('.')}; {helpless}{advice.format(month=_regained(words))}")
    wanted = {"true": True, "false": False}.get(
        next((headers[name].strip().lower() for name in headers if name.lower() == "x-should-retry"), "")
    )
    if status in (429, 529):
        wait = asked_wait(refusal, headers)
        if wait is None and wanted is False:
            return errors.QuotaError(
                f"{message.rstrip('.')}; the provider says that {helpless}look at the limits of the account, and give "
                "the same command again when they are raised or reset"
            )
        return errors.RateLimitError(message, wait)
    # llama.cpp reports an exceeded context with status 500 too.
    too_long = "context_length_exceeded" in codes or _CONTEXT.search(words)
    if status == 413 or (status in (400, 422, 500) and too_long):
        return errors.ContextLengthError(message)
    if status in (400, 403, 422) and _FILTER.search(said):
        return errors.ContentFilterError(message)
    if status in (401, 403):
        return errors.AuthenticationError(f"{message} (check the API key and what it may use)")
    if status == 404 or "model_not_found" in codes:
        return errors.AuthenticationError(f"{message} (check the name of the model and the address)")
    if structured and status in (400, 422, 500, 501):
        if _ONE_GENERATION.search(said):
            return errors.StructureUnsupported(message, lasting=False)
        if _STRUCTURE.search(said) or refusal.parameters & _FORM_PARAMETERS:
            return errors.StructureUnsupported(message)
    if status in (400, 422):
        parameter = _refused_parameter(refusal, words, sent)
        if parameter is not None:
            return errors.ParameterRefused(message, parameter)
    passing = status in (408, 409, 425) or status >= 500
    if passing if wanted is None else wanted:
        return errors.TransientError(message, retry_after(headers))
    return errors.RejectedError(message)


_FORM_PARAMETERS = frozenset({"response_format", "structured_outputs", "grammar"})
"""The parameters that hold a reply to an answer form."""
_NO_PARAMETERS = frozenset({"model", "messages", *_FORM_PARAMETERS})
"""What no request can do without, and what goes with an answer form."""


def _refused_parameter(refusal: Refusal, words: str, sent: Collection[str]) -> str | None:
    """The parameter of the request that a refusal is about; None if it names none.

    A limit that is too high is not refused for its name.
    """
    names = sorted(set(sent) - _NO_PARAMETERS, key=len, reverse=True)
    if "system" in names and _SYSTEM.search(words):
        return "system"
    for name in names:
        if name == "system":
            continue
        named = name in refusal.parameters or re.search(rf"(?<![a-z_]){re.escape(name)}(?![a-z_])", words)
        if named and not (name.endswith("tokens") and _TOO_MUCH.search(words)):
            return name
    return None


def _regained(words: str) -> str:
    """When an account may be used again by the words of a refusal, else the beginning of the next month."""
    if named := _REGAIN.search(words):
        return f"{named[1]} {named[2]} UTC"
    return f"{datetime.now(UTC).replace(day=1) + timedelta(days=32):%Y-%m}-01 00:00 UTC"
