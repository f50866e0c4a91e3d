"""How providers write their rate limits and their wishes to wait, in headers and in the bodies of refusals."""

import email.utils
import functools
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec


class Allowance(msgspec.Struct, frozen=True):
    """One limit of a provider; None for what it does not say."""

    limit: int | None = None
    """Most in the provider's window, which is a minute at most of them."""
    left: int | None = None
    """What is left of it now."""
    reset: float | None = None
    """Seconds until all of it is there again."""


class RateLimits(msgspec.Struct, frozen=True):
    """The limits that the headers of one reply name."""

    requests: Allowance = Allowance()
    tokens: Allowance = Allowance()


_Unit = Literal["requests", "tokens"]

_NAMES: tuple[re.Pattern[str], ...] = (
    # OpenAI, Azure (some versions with `x-rate-limit`), vendors that imitate them, and litellm's proxy, which puts the
    # owner of the limit in between: `x-ratelimit-api_key-remaining-requests`.
    re.compile(
        r"x-rate-?limit-(?P<scope>[\w.]+-)??(?P<field>limit|remaining|reset)-(?P<of>project-)?(?P<unit>requests|tokens)"
    ),
    # Anthropic. Its `tokens` are the tightest limit in effect; its output tokens are no part of a request's size.
    re.compile(
        r"anthropic-ratelimit-(?P<scope>)(?P<of>input-)?(?P<unit>requests|tokens)-(?P<field>limit|remaining|reset)"
    ),
)
"""The names of the headers of limits, in lower case."""
_PASSED_ON = "llm_provider-"
"""What litellm and its proxy put before the headers of the provider behind them."""

_GO_PART = re.compile(r"(\d{1,9}(?:\.\d{0,12})?)(h|ms|m|s|us|µs|ns)")
_GO_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_WISH = re.compile(r"(?:retry|try again) (?:after|in) ([\d.]{1,12}) ?(ms|milliseconds?|s|seconds?|m|minutes?)\b|"
                   r"(?:retry|try again) (?:after|in) ((?:[\d.]{1,12}(?:h|ms|m|s))+)\b")  # fmt: skip
"""How Azure ("Please retry after 37 seconds"), OpenAI ("Please try again in 6m0s") and Gemini say it in words."""


class _Header(NamedTuple):
    scope: str
    unit: _Unit
    field: str


@functools.lru_cache(maxsize=1024)
def _meaning(name: str) -> _Header | None:
    """What a header says of a limit; None for all other headers, which are nearly all."""
    lower = name.lower()
    if "limit-" not in lower:
        return None
    passed_on = lower.startswith(_PASSED_ON)
    lower = lower.removeprefix(_PASSED_ON)
    for pattern in _NAMES:
        found = pattern.fullmatch(lower)
        if found:
            scope = f"{_PASSED_ON if passed_on else ''}{found['scope'] or ''}{found['of'] or ''}"
            return _Header(scope, "requests" if found["unit"] == "requests" else "tokens", found["field"])
    return None


def read_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """The limits that the headers of a reply name, the tightest of each kind; None if they name none."""
    found: dict[tuple[str, _Unit], dict[str, str]] = {}
    for name in headers:
        header = _meaning(name)
        if header is not None:
            found.setdefault((header.scope, header.unit), {})[header.field] = headers[name]
    if not found:
        return None
    now = _now(headers)
    allowances: dict[_Unit, Allowance] = {}
    for (_, unit), fields in found.items():
        allowance = Allowance(
            limit=_count(fields.get("limit"), least=1),
            left=_count(fields.get("remaining"), least=0),
            reset=seconds_until(fields.get("reset", ""), now),
        )
        if allowance != Allowance() and (unit not in allowances or _tighter(allowance, allowances[unit])):
            allowances[unit] = allowance
    return RateLimits(**allowances) if allowances else None


def _tighter(one: Allowance, other: Allowance) -> bool:
    return _tightness(one) < _tightness(other)


def _tightness(allowance: Allowance) -> tuple[float, bool]:
    return math.inf if allowance.left is None else allowance.left, allowance.reset is None


def _count(text: str | None, least: int) -> int | None:
    """A number of requests or tokens; None for what is below `least`, such as Azure's -1, and for what is no number."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and number >= least else None


def seconds_until(text: str, now: datetime) -> float | None:
    """The seconds of a reset header; None for what is not above 0 or cannot be read.

    Args:
        text: A Go duration as OpenAI sends it (`1h2m3.5s`, `120ms`), a time as Anthropic sends it (RFC 3339), or
            seconds as Azure sends them.
        now: The present time, for a reset that is a time.

    >>> present = datetime(2025, 1, 31, 12, tzinfo=UTC)
    >>> [seconds_until(text, present) for text in ("6m0s", "120ms", "55", "2025-01-31T12:00:30Z", "0", "-1", "soon")]
    [360.0, 0.12, 55.0, 30.0, None, None, None]
    """
    text = text.strip()
    seconds = go_duration(text)
    if seconds is None:
        try:
            seconds = float(text)
        except ValueError:
            seconds = _seconds_to(text, now)
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else None


def go_duration(text: str) -> float | None:
    """The seconds of a duration as Go writes it; None if the text is none.

    >>> go_duration("1h2m3.5s"), go_duration("31s"), go_duration("55")
    (3723.5, 31.0, None)
    """
    if len(text) > 64 or not text or _GO_PART.sub("", text):
        return None
    return sum(float(number) * _GO_SECONDS[unit] for number, unit in _GO_PART.findall(text))


def _seconds_to(text: str, now: datetime) -> float | None:
    try:
        then = datetime.fromisoformat(text)
        return ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds()
    except (ValueError, OverflowError):
        return None


def http_date(text: str) -> datetime | None:
    """A time as HTTP writes it (RFC 9110, section 5.6.7)."""
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # "-0000" parses to a date without a zone; HTTP dates are always GMT.
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _now(headers: Mapping[str, str]) -> datetime:
    """The time by the provider's clock, from which its resets are counted; by ours if it does not say."""
    sent = next((headers[name] for name in headers if name.lower() == "date"), None)
    return (http_date(sent) if sent else None) or datetime.now(UTC)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers of a provider ask to wait; None if they do not say.

    Read from `retry-after-ms`, else from Retry-After in seconds or as an HTTP date (RFC 9110, section 10.2.3).
    """
    lower = {name.lower(): headers[name] for name in headers}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        # litellm's proxy puts its mark before the headers of the provider behind it.
        for text in (lower.get(name, ""), lower.get(_PASSED_ON + name, "")):
            try:
                seconds = float(text) / scale
            except ValueError:
                continue
            if math.isfinite(seconds) and seconds >= 0:
                return seconds
    date = http_date(lower.get("retry-after", ""))
    if date is None:
        return None
    try:
        return max(0.0, (date - _now(headers)).total_seconds())
    except OverflowError:
        return None


def retry_wanted(headers: Mapping[str, str]) -> bool | None:
    """Whether the provider says that asking again helps (`x-should-retry`); None if it does not say."""
    said = next((headers[name] for name in headers if name.lower() == "x-should-retry"), "").strip().lower()
    return {"true": True, "false": False}.get(said)


def details_of(error: Mapping[str, Any]) -> tuple[float | None, tuple[str, ...], str | None]:
    """What `details` of an error say: the seconds to wait, the ids of quotas that are used up, and an error code.

    Gemini sends a list of typed objects (google.rpc.RetryInfo, google.rpc.QuotaFailure), Anthropic an object with
    `error_code`.
    """
    details = error.get("details")
    if isinstance(details, Mapping):
        code = details.get("error_code")
        return None, (), code if isinstance(code, str) else None
    wait: float | None = None
    quotas: list[str] = []
    for entry in details if isinstance(details, list) else []:
        if not isinstance(entry, Mapping):
            continue
        delay, violations = entry.get("retryDelay"), entry.get("violations")
        if isinstance(delay, str):
            wait = go_duration(delay)
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, Mapping) and isinstance(violation.get("quotaId"), str):
                quotas.append(violation["quotaId"])
    return wait, tuple(quotas), None


def wish_in_words(message: str) -> float | None:
    """Seconds that a provider asks to wait in the words of its message; None if it names none.

    >>> wish_in_words("Please retry after 37 seconds."), wish_in_words("Please try again in 6m0s. Visit us.")
    (37.0, 360.0)
    """
    found = _WISH.search(message.lower())
    if found is None:
        return None
    if found[3]:
        return go_duration(found[3])
    try:
        number = float(found[1])
    except ValueError:
        return None
    return number * _GO_SECONDS["ms" if found[2].startswith("ms") or "milli" in found[2] else found[2][0]]


def reset_of_used_up(limits: RateLimits | None, codes: frozenset[str]) -> float | None:
    """Seconds until the limit is there again that a refusal is about; None if its headers do not say.

    That is the limit of which nothing is left, else the one whose kind is among the codes, else the one that takes
    longest.
    """
    if limits is None:
        return None
    both = {"requests": limits.requests, "tokens": limits.tokens}
    known = {unit: allowance for unit, allowance in both.items() if allowance.reset is not None}
    about = [allowance for allowance in known.values() if allowance.left == 0]
    about = about or [allowance for unit, allowance in known.items() if unit in codes] or list(known.values())
    return max((allowance.reset or 0.0 for allowance in about), default=None)
