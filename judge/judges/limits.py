"""How providers write their rate limits and their wishes to wait, in headers and in the bodies of refusals."""

import contextlib
import email.utils
import functools
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from judge.io.ids import nested


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

_SECONDS = {
    **{"h": 3600.0, "m": 60.0, "minute": 60.0, "minutes": 60.0, "s": 1.0, "second": 1.0, "seconds": 1.0},
    **{"ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
}
_PART = re.compile(rf"(\d{{1,9}}(?:\.\d{{0,12}})?) ?({'|'.join(_SECONDS)})(?![a-zµ])")
_WISH = re.compile(rf"(?:retry|try again) (?:after|in) ((?:{_PART.pattern})+)")
"""How Azure ("Please retry after 37 seconds"), OpenAI ("Please try again in 6m0s") and Gemini say it in words."""


@functools.lru_cache(maxsize=1024)
def _meaning(name: str) -> tuple[str, str, str] | None:
    """The owner, the unit and the field of a limit's header; None for all other headers, which are nearly all."""
    lower = name.lower()
    bare = lower.removeprefix(_PASSED_ON)
    found = next((found for pattern in _NAMES if (found := pattern.fullmatch(bare))), None)
    if found is None:
        return None
    return f"{lower != bare} {found['scope'] or ''} {found['of'] or ''}", found["unit"], found["field"]


def read_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """The limits that the headers of a reply name, the tightest of each kind; None if they name none."""
    meanings = ((meaning, value) for name, value in headers.items() if (meaning := _meaning(name)))
    named = nested(((owner, unit), field, value) for (owner, unit, field), value in meanings)
    if not named:
        return None
    now = _now(headers)
    allowances: dict[str, list[Allowance]] = {}
    for (_, unit), fields in named.items():
        limit = _count(fields.get("limit"), least=1)
        left = _count(fields.get("remaining"), least=0)
        allowance = Allowance(limit, left, read_seconds(fields.get("reset", ""), now) or None)
        if allowance != Allowance():
            allowances.setdefault(unit, []).append(allowance)

    def tightness(each: Allowance) -> tuple[float, bool]:
        return math.inf if each.left is None else each.left, each.reset is None

    return RateLimits(**{unit: min(each, key=tightness) for unit, each in allowances.items()}) if allowances else None


def _count(text: str | None, least: int) -> int | None:
    """A number of requests or tokens; None for what is below `least`, such as Azure's -1, and for what is no number."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and number >= least else None


def read_seconds(text: str, now: datetime) -> float | None:
    """The seconds that a provider writes, 0 or more; None if the text says none.

    It is a Go duration as OpenAI sends it (`1h2m3.5s`, `120ms`), seconds as Azure sends them, or a time in the form of
    RFC 3339 (Anthropic) or HTTP (RFC 9110, section 5.6.7); a time before `now` is 0 seconds away.

    >>> present = datetime(2025, 1, 31, 12, tzinfo=UTC)
    >>> [read_seconds(text, present) for text in ("1h2m3.5s", "31s", "-1", "Fri, 31 Jan 2025 12:00:09 GMT", "soon")]
    [3723.5, 31.0, None, 9.0, None]
    """
    text = text.strip()
    if text and len(text) <= 64 and not _PART.sub("", text):
        return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    try:
        seconds = float(text)
    except ValueError:
        then = read_time(text)
        return None if then is None else max(0.0, (then - now).total_seconds())
    return seconds if 0 <= seconds < math.inf else None


@functools.lru_cache(maxsize=64)
def read_time(text: str) -> datetime | None:
    """A time in the form of RFC 3339 or in that of HTTP; None if the text is none. Without a zone, it is in UTC."""
    for read in (datetime.fromisoformat, email.utils.parsedate_to_datetime):
        with contextlib.suppress(ValueError, OverflowError):
            then = read(text)
            return (then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone(UTC)
    return None


def _now(headers: Mapping[str, str]) -> datetime:
    """The time by the provider's clock, from which its resets are counted; by ours if it does not say."""
    sent = next((headers[name] for name in headers if name.lower() == "date"), "")
    return read_time(sent) or datetime.now(UTC)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers of a provider ask to wait; None if they do not say.

    Read from `retry-after-ms`, else from Retry-After in seconds or as an HTTP date (RFC 9110, section 10.2.3).
    """
    lower = {name.lower(): headers[name] for name in headers}
    now = _now(headers)
    # litellm's proxy puts its mark before the headers of the provider behind it.
    for mark in ("", _PASSED_ON):
        for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
            seconds = read_seconds(lower.get(mark + name, ""), now)
            if seconds is not None:
                return seconds / scale
    return None


def wish_in_words(message: str) -> float | None:
    """Seconds that a provider asks to wait in the words of its message; None if it names none.

    >>> wish_in_words("Please retry after 37 seconds."), wish_in_words("Please try again in 6m0s. Visit us.")
    (37.0, 360.0)
    """
    found = _WISH.search(message.lower())
    return None if found is None else read_seconds(found[1], datetime.now(UTC))


def reset_of_used_up(limits: RateLimits | None, codes: frozenset[str]) -> float | None:
    """Seconds until the limit is there again that a refusal is about; None if its headers do not say.

    Of that limit nothing is left, else its kind is among the codes, else it takes longest.
    """
    both = {} if limits is None else {"requests": limits.requests, "tokens": limits.tokens}
    known = {unit: (each.reset, each.left) for unit, each in both.items() if each.reset is not None}
    used_up = [reset for reset, left in known.values() if left == 0]
    named = [reset for unit, (reset, _) in known.items() if unit in codes]
    return max(used_up or named or [reset for reset, _ in known.values()], default=None)
