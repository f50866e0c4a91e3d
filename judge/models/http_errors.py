"""Turns a provider's refusal (status, headers, body) into the error that tells the loop what to do."""

import email.utils
import json
import math
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from judge.errors import (
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    JudgeError,
    OperationalError,
    QuotaError,
    RejectedError,
    StructureUnsupported,
    TransientError,
)
from judge.models.address import origin
from judge.models.secrets import redact

_LONGEST = 300
"""Characters of a provider's message that are shown and searched for known phrases.

Servers put their own words first. An echo of the request may follow, and that is hostile text.
"""
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active"}
)
# Not "exceeded your current quota": Gemini says this of a limit per minute too.
_QUOTA = re.compile(r"credit balance is too low|insufficient balance|insufficient_quota")
_CONTEXT = re.compile(
    r"context[ _](length|window|size|limit)|maximum (input|context) length|prompt is too long|"
    r"too many tokens|input is too long|maximum number of tokens|`inputs` (tokens|must have)"
)
_FILTER = re.compile(r"content[ _](filter|policy|management)|responsibleai|safety system|flagged|moderation")
_LOGPROBS = re.compile(r"log[ _]?prob")
_STRUCTURE = re.compile(r"response_format|schema|structured|guided|grammar")


class Refusal(msgspec.Struct, frozen=True):
    """What a provider sent instead of a completion; `codes` are its machine-readable words, in lower case."""

    status: int
    message: str
    codes: frozenset[str] = frozenset()


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
    return Refusal(
        status,
        shorten(message if isinstance(message, str) else json.dumps(message)),
        frozenset(str(code).lower() for code in codes if isinstance(code, str | int)),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a provider asks to wait; None if it does not say.

    Read from `retry-after-ms`, else from Retry-After in seconds or as an HTTP date (RFC 9110, section 10.2.3).
    """
    lower = {name.lower(): value for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower.get(name, "")) / scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(lower.get("retry-after", ""))
    except ValueError:
        return None
    # "-0000" parses to a date without a zone; HTTP dates are always GMT.
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


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


def logprobs_refused(refusal: Refusal) -> OperationalError | None:
    """Our error where a provider gives no log probabilities of tokens; no call can then succeed."""
    # OpenAI forbids them for some models with status 403, which elsewhere is about the key.
    if refusal.status in (400, 403, 422, 501) and _LOGPROBS.search(refusal.message.lower()):
        return OperationalError(
            f"status {refusal.status}: {refusal.message} (this judge gives no label probabilities: leave out "
            "--logprobs)"
        )
    return None


def error_for(refusal: Refusal, headers: Mapping[str, str], *, structured: bool) -> JudgeError:
    """Our error for a refusal; `structured` says whether a JSON schema was sent."""
    status, codes = refusal.status, refusal.codes
    words = refusal.message.lower()
    message = f"status {status}: {refusal.message}"
    if status == 402 or (status < 500 and (codes & _QUOTA_CODES or _QUOTA.search(words))):
        return QuotaError(message)
    if status == 429:
        return TransientError(message, retry_after(headers))
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
    if status in (408, 409, 425) or status >= 500:
        return TransientError(message, retry_after(headers))
    return RejectedError(message)
