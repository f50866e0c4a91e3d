"""Turns a provider's refusal (status, headers, body) into the error that tells the loop what to do."""

import json
import re
import ssl
from collections.abc import Mapping
from typing import Any
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
from judge.models.quotas import advice
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
    hopeless = advice(status, codes, words, refusal.quotas)
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
