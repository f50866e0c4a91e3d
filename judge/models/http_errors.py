"""Turns a provider's refusal (status, headers, body) into the error that tells the loop what to do."""

import json
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from judge.errors import (
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    JudgeError,
    LogprobsError,
    OperationalError,
    QuotaError,
    RateLimitError,
    RejectedError,
    StructureUnsupported,
    TransientError,
)
from judge.models.address import origin
from judge.models.limits import (
    details_of,
    read_limits,
    reset_of_used_up,
    retry_after,
    retry_wanted,
    wish_in_words,
)
from judge.models.secrets import redact

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


_REGAIN = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) utc")
_PAY = "add credit to the account at the provider, and give the same command again then"


class _Exhausted(NamedTuple):
    """One way in which a provider says that an account can do nothing more; any of the three marks is enough."""

    codes: frozenset[str]
    """Machine-readable words of the refusal, in lower case."""
    words: str
    """An expression that the message holds, in lower case."""
    quota: str
    """A part of the id of a quota."""
    then: str
    """What to do, and when to come back; `{month}` is the time that the message names, else the next month's first."""


EXHAUSTED: tuple[_Exhausted, ...] = (
    # Anthropic: the pause ends with the month, https://platform.claude.com/docs/en/api/rate-limits.
    _Exhausted(
        frozenset({"enforced_spend_limit_reached"}),
        r"reached your (?:specified )?(?:workspace )?api usage limits",
        "",
        "raise the spend limit at the provider, or give the same command again after {month}",
    ),
    _Exhausted(
        frozenset({"contract_spend_limit_reached"}),
        "",
        "",
        "the contract's spend limit is used up; give the same command again once it is raised or renewed",
    ),
    # Google: quotas of a day begin anew at midnight in California, https://ai.google.dev/gemini-api/docs/rate-limits.
    _Exhausted(
        frozenset(),
        "",
        "PerDay",
        "the quota of the day is used up; give the same command again after midnight Pacific time (08:00 UTC, or 07:00 "
        "UTC in summer), or raise the quota at the provider",
    ),
    # Not "exceeded your current quota": Gemini says this of a limit per minute too.
    _Exhausted(
        frozenset(
            {
                "insufficient_quota",
                "credit_balance_exhausted",
                "billing_hard_limit_reached",
                "billing_not_active",
                "billing_error",
            }
        ),
        r"credit balance is too low|insufficient balance|insufficient_quota",
        "",
        _PAY,
    ),
)
"""How providers say it, one row for each way."""


class Refusal(msgspec.Struct, frozen=True):
    """What a provider sent instead of a completion; `codes` are its machine-readable words, in lower case."""

    status: int
    message: str
    codes: frozenset[str] = frozenset()
    wait: float | None = None
    """Seconds that the body asks to wait."""
    quotas: tuple[str, ...] = ()
    """Ids of the quotas that are used up, as Google names them."""


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
    codes = [error.get(name) for name in ("code", "type", "status", "error_type")]
    inner = error.get("innererror")
    if isinstance(inner, dict):
        codes.append(inner.get("code"))
    wait, quotas, code = details_of(error)
    return Refusal(
        status,
        shorten(message if isinstance(message, str) else json.dumps(message)),
        frozenset(str(code).lower() for code in (*codes, code) if isinstance(code, str | int)),
        wait,
        quotas,
    )


def connection_error(error: Exception, timeout: float) -> JudgeError:
    """Our error for a call that got no reply; `timeout` is in seconds.

    The first cause decides, because wrappers mislead: httpx-aiohttp reports a timeout when the server cut the
    connection.
    """
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return TransientError(f"no answer within {timeout:g} s")
    first = causes[-1]
    description = f"{type(first).__name__}: {shorten(str(first))}"
    if isinstance(first, ssl.SSLError):
        return OperationalError(f"no secure connection to the server: {description}")
    return TransientError(description)


def check_redirect(status: int, asked: str, location: str | None) -> None:
    """Refuse a redirect, even within an origin: what is judged goes to the address that the records name.

    Args:
        status: The status of the reply.
        asked: The address that was asked.
        location: The header Location of the reply.

    Raises:
        OperationalError: The reply is a redirect.
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
    raise OperationalError(
        f"status {status}: {here} redirects to {there}, and judge follows no redirect; if the judge is there, name "
        "that address in --base-url"
    )


def logprobs_refused(refusal: Refusal) -> LogprobsError | None:
    """Our error where a provider gives no log probabilities of tokens; no call can then succeed."""
    # OpenAI forbids them for some models with status 403, which elsewhere is about the key.
    if refusal.status in (400, 403, 422, 501) and _LOGPROBS.search(refusal.message.lower()):
        return LogprobsError(
            f"status {refusal.status}: {refusal.message} (this judge gives no label probabilities: leave out "
            "--logprobs)"
        )
    return None


def asked_wait(refusal: Refusal, headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait after a refusal; None if it does not say.

    The first of these that says it: `retry-after-ms`, Retry-After, RetryInfo in the body, the words of the message,
    and the reset of the limit that is used up.
    """
    for seconds in (retry_after(headers), refusal.wait, wish_in_words(refusal.message)):
        if seconds is not None:
            return seconds
    return reset_of_used_up(read_limits(headers), refusal.codes)


def error_for(refusal: Refusal, headers: Mapping[str, str], *, structured: bool) -> JudgeError:
    """Our error for a refusal; `structured` says whether a JSON schema was sent."""
    status, codes = refusal.status, refusal.codes
    words = refusal.message.lower()
    message = f"status {status}: {refusal.message}"
    hopeless = _advice(status, codes, words, refusal.quotas)
    if hopeless is not None:
        return QuotaError(f"{message.rstrip('.')}; asking again does not help: {hopeless}")
    if status in (429, 529):
        wait = asked_wait(refusal, headers)
        if wait is None and retry_wanted(headers) is False:
            return QuotaError(
                f"{message.rstrip('.')}; the provider says that asking again does not help: look at the limits of the "
                "account, and give the same command again when they are raised or reset"
            )
        return RateLimitError(message, wait)
    # llama.cpp reports an exceeded context with status 500 too.
    if status in (400, 422, 500) and ("context_length_exceeded" in codes or _CONTEXT.search(words)):
        return ContextLengthError(message)
    if status == 413:
        return ContextLengthError(message)
    if status in (400, 403, 422) and _FILTER.search(" ".join((words, *codes))):
        return ContentFilterError(message)
    if status in (401, 403):
        return AuthenticationError(f"{message} (check the API key and what it may use)")
    if status == 404 or "model_not_found" in codes:
        return AuthenticationError(f"{message} (check the name of the model and the address)")
    if structured and status in (400, 422, 501) and _STRUCTURE.search(words):
        return StructureUnsupported(message)
    passing = status in (408, 409, 425) or status >= 500
    wanted = retry_wanted(headers)
    if passing if wanted is None else wanted:
        return TransientError(message, retry_after(headers))
    return RejectedError(message)


def _advice(status: int, codes: frozenset[str], words: str, quotas: tuple[str, ...]) -> str | None:
    """What to do about a refusal that no waiting outlasts, and when to come back; None for every other refusal.

    Args:
        status: The status of the reply.
        codes: Its machine-readable words, in lower case.
        words: Its message, in lower case.
        quotas: The ids of the quotas that are used up.
    """
    if status < 500:
        for row in EXHAUSTED:
            if (
                codes & row.codes
                or (row.words and re.search(row.words, words))
                or (row.quota and any(row.quota in quota for quota in quotas))
            ):
                named = _REGAIN.search(words)
                return row.then.format(month=f"{named[1]} {named[2]} UTC" if named else _next_month(datetime.now(UTC)))
    return _PAY if status == 402 else None


def _next_month(now: datetime) -> str:
    """The beginning of the next month, as people write it.

    >>> _next_month(datetime(2025, 12, 31, tzinfo=UTC)), _next_month(datetime(2026, 2, 1, tzinfo=UTC))
    ('2026-01-01 00:00 UTC', '2026-03-01 00:00 UTC')
    """
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return f"{year}-{month:02}-01 00:00 UTC"
