"""How fast one judge may be asked, by the user's limits, the provider's headers and its refusals. Pure.

All calls of a judge share one pacer, so that one refusal slows all of them. Every method takes the time, in seconds of
any clock that never goes back.
"""

import math
from typing import NamedTuple

from judge.models.limits import Allowance, RateLimits

_SHORT = 1.0
"""A wish of so many seconds holds only its own call back: whole seconds can say no less, and at a rate it is long."""
_FIRST_SPAN = 0.1
"""Least seconds over which the first refusal measures what was let through."""
_LONG_SPAN = 1.0
"""Seconds after which a measure is believed."""
_ENOUGH = 8
"""Calls, at least, after which their share of refusals says something about the rate."""
_LONG_ENOUGH = 0.05
"""Seconds of calls, likewise."""
_EASE = 0.95
"""What a refusal leaves of the rate at most, and `_HALF` at least."""
_EASE_HELD = 0.8
"""The same where a refusal also costs a pause of all calls."""
_HALF = 0.5
_EPOCH = 64
"""Calls, at least, over which shares of refusals are compared; and `_LONG_SPAN`, because refusals come sooner than
answers."""
_LOWER = 0.5
"""How much lower a rate must be for the comparison."""
_ALIKE = 1.2
"""What the share of calls that pass must rise by at that rate; it rises by 1 / `_LOWER` under a limit."""
_GROWTH = 0.005
"""Without refusals the rate grows as exp(0.005 t²): by 13 % in 5 units of time, ever faster after that."""
_CALLS = 20
"""Calls at the present rate that make such a unit of time, which is a second at least."""
_FREE = 7.0
"""The exponent at which a rate no longer limits anything."""
_FASTEST = 10_000.0
"""Calls a second that are more than any loop sends."""
_SLOW = 0.5
"""Calls a second that are tried at least where some calls pass; they burden nobody."""
_SLOWEST = 1 / 30
"""Calls a second that are tried even where everything is refused."""
_LATE = 0.05
"""Seconds by which a call may be sent too late without loss to the rate."""


class Ticket(NamedTuple):
    """A call that was sent: its number, and the tokens of all calls up to it."""

    number: int
    tokens: int


class Pacer:
    """Says when the next call may be sent.

    Args:
        rpm: Requests a minute that the user allows; None for any number.
        tpm: Tokens a minute, likewise.
    """

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        self._own = tuple(
            (_Store(limit / 60, max(1.0, limit / 60)), kind)
            for limit, kind in ((rpm, "requests"), (tpm, "tokens"))
            if limit is not None
        )
        self._told = {"requests": _Store(), "tokens": _Store()}
        self._knows = False
        self._newest = -1
        self._rate = _Rate()
        self._sent = Ticket(0, 0)
        self._until = -math.inf
        """Until when all calls are held back."""
        self.refused_since: float | None = None
        """When the provider began to refuse every call; None while it lets calls through."""
        self.refusals = 0
        """Refusals since then."""

    def rate(self, now: float) -> float | None:
        """Calls a second that the provider seems to let through; None while it refuses nothing."""
        return self._rate.value(now)

    def held(self, tokens: int, now: float) -> float:
        """Seconds for which the provider holds a call of so many tokens back; 0 if it does not."""
        wait = self._until - now
        if self._knows:
            for kind, store in self._told.items():
                wait = max(wait, store.wait(tokens if kind == "tokens" else 1, now))
        return max(0.0, wait)

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until a call of so many tokens may be sent; 0 if it may be sent now."""
        wait = self._rate.wait(now)
        for store, kind in self._own:
            wait = max(wait, store.wait(tokens if kind == "tokens" else 1, now))
        return max(wait, self.held(tokens, now))

    def sent(self, tokens: int, now: float) -> Ticket:
        """Count a call that is sent now."""
        self._sent = Ticket(self._sent.number + 1, self._sent.tokens + tokens)
        self._rate.take(now)
        for store, kind in self._own:
            store.take(tokens if kind == "tokens" else 1, now)
        if self._knows:
            self._told["requests"].take(1, now)
            self._told["tokens"].take(tokens, now)
        return self._sent

    def answered(self, ticket: Ticket, limits: RateLimits | None, now: float) -> None:
        """Take note of a call that was let through, and of what its reply says of the limits."""
        self.refused_since, self.refusals = None, 0
        self._rate.passed(ticket.number, now)
        self._learn(ticket, limits, now)

    def refused(self, ticket: Ticket, wish: float | None, limits: RateLimits | None, now: float) -> None:
        """Take note of a call that was refused for a limit, and of the seconds that the provider asks to wait."""
        if self.refused_since is None:
            self.refused_since = now
        self.refusals += 1
        self.hold(wish, now)
        self._rate.refused(ticket.number, wish or 0.0, now)
        self._learn(ticket, limits, now)

    def hold(self, wish: float | None, now: float) -> None:
        """Hold all calls back for as long as the provider asks to wait, where that is more than a second."""
        if wish is not None and wish > _SHORT:
            self._until = max(self._until, now + wish)

    def _learn(self, ticket: Ticket, limits: RateLimits | None, now: float) -> None:
        # Replies overtake each other; only what was sent last is news.
        if limits is None or ticket.number <= self._newest:
            return
        self._newest, self._knows = ticket.number, True
        self._told["requests"].learn(limits.requests, self._sent.number - ticket.number, now)
        self._told["tokens"].learn(limits.tokens, self._sent.tokens - ticket.tokens, now)


class _Store:
    """What is left of a limit, which fills up at a constant rate.

    Args:
        rate: Units that come back each second; None while nobody knows.
        most: Units that it holds at most.
    """

    def __init__(self, rate: float | None = None, most: float = math.inf) -> None:
        self._rate, self._most = rate, most
        self._left = most
        self._at = -math.inf
        self._full_at: float | None = None

    def wait(self, need: float, now: float) -> float:
        self._fill(now)
        # What is larger than the store is sent when the store is full.
        lacking = min(need, self._most) - self._left
        if lacking <= 0:
            return 0.0
        if self._rate is not None:
            return lacking / self._rate
        return 0.0 if self._full_at is None else max(0.0, self._full_at - now)

    def take(self, need: float, now: float) -> None:
        self._fill(now)
        self._left -= need

    def learn(self, told: Allowance, since: int, now: float) -> None:
        """Take over what the provider says; `since` is what was sent after the call that it said it of."""
        if told.left is None:
            return
        if told.limit is not None:
            self._most = told.limit
            if told.reset is not None and told.left < told.limit:
                self._rate = (told.limit - told.left) / told.reset
        self._full_at = None if told.reset is None else now + told.reset
        self._left, self._at = told.left - since, now

    def _fill(self, now: float) -> None:
        if self._rate is not None and now > self._at:
            # At the first look, a store is full.
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
        elif self._full_at is not None and now >= self._full_at:
            self._left, self._full_at = self._most, None
        self._at = now


class _Rate:
    """Calls a second as refusals teach them: down with the share that is refused, up with the time since the last one.

    Until the first refusal there is none. The first one measures what was let through so far; from then on, the share
    of refusals among the calls since the last change says by how much the rate is too high. Where others use the same
    limit, or one of many servers is full, a share of calls is refused at any rate: then the rate rises again, until
    more calls are refused for it, or it would fall to nothing.
    """

    def __init__(self) -> None:
        self._base: float | None = None
        """The rate at the last change."""
        self._known = math.inf
        """The rate at which some calls passed and some did not; below it, calls that pass double the rate."""
        self._begun: float | None = None
        """When the first call since the last change was sent, or when that change was."""
        self._sent = 0
        self._first = 1
        """The number of the first call since the last change."""
        self._refused = 0
        """Refusals since then."""
        self._changed = 0.0
        self._doubled = False
        """Whether the last change was such a doubling."""
        self._doubt = _Doubt()
        self._unit = 1.0
        self._credit = 0.0
        """Calls that may be sent now, in parts."""
        self._at = 0.0

    def value(self, now: float) -> float | None:
        if self._base is None:
            return None
        exponent = _GROWTH * (max(0.0, now - self._changed) / self._unit) ** 2
        return None if exponent > _FREE else self._base * math.exp(exponent)

    def wait(self, now: float) -> float:
        if self._base is None:
            return 0.0
        rate = self.value(now)
        if rate is None:
            self._base, self._known, self._begun, self._first = None, math.inf, None, self._sent + 1
            return 0.0
        self._credit = min(1.0 + rate * _LATE, self._credit + (now - self._at) * rate)
        self._at = now
        return max(0.0, 1.0 - self._credit) / rate

    def take(self, now: float) -> None:
        self._sent += 1
        if self._begun is None:
            self._begun = now
        self._credit -= 1.0

    def passed(self, number: int, now: float) -> None:
        rate, tried = self.value(now), number - self._first + 1
        self._ask_doubt(False, rate, now)
        if rate is None or rate >= self._known or tried < 1:
            return
        if rate < _SLOW or tried >= self._refused * _ENOUGH:
            self._change(min(self._known, max(_SLOW, 2 * rate)), now, doubled=True)

    def refused(self, number: int, wish: float, now: float) -> None:
        self._ask_doubt(True, self.value(now), now)
        if number < self._first:
            # The last change, after which this call would not have been sent so early, has answered it.
            return
        self._refused += 1
        tried = number - self._first + 1
        passed = max(0, tried - self._refused)
        rate, hold = self.value(now), wish if wish > _SHORT else 0.0
        if rate is None:
            span = now - (now if self._begun is None else self._begun)
            rate = max(1, passed) / max(_FIRST_SPAN, span)
            self._known = rate if hold or span > _LONG_SPAN else math.inf
            self._credit, self._at = 0.0, now
            self._change(rate, now)
        elif passed and not self._doubt.bears and tried >= max(_ENOUGH, rate * _LONG_ENOUGH):
            ease = min(_EASE_HELD if hold else _EASE, max(_HALF, passed / tried))
            self._known = max(min(rate, _SLOW), rate * ease)
            self._change(self._known, now)
        elif not passed and tried >= self._wall(rate):
            rate = max(_SLOWEST, rate * _HALF)
            if self._doubled and not self._doubt.bears:
                self._known = max(_SLOW, rate)
            self._change(rate, now)
        else:
            # Too little to tell, but no time to go faster.
            self._base = rate
        self._unit = max(1.0, wish, _CALLS / (self._base or 1.0))
        self._changed = now + hold

    def _wall(self, rate: float) -> float:
        """Refusals at the beginning that halve the rate."""
        if self._doubt.bears:
            return _ENOUGH
        return _ENOUGH / 2 if rate <= _SLOW else max(2, rate * _LONG_ENOUGH / _ENOUGH)

    def _ask_doubt(self, refused: bool, rate: float | None, now: float) -> None:
        better = None if rate is None else self._doubt.count(refused, rate, now)
        if better is not None:
            self._known = better
            self._change(better, now)

    def _change(self, rate: float, now: float, *, doubled: bool = False) -> None:
        self._base, self._changed, self._doubled = rate, now, doubled
        self._first, self._refused, self._begun = self._sent + 1, 0, now


class _Doubt:
    """Notices where a lower rate has not raised the share of calls that pass.

    Under a limit of calls a second, that share rises as the rate falls.
    """

    def __init__(self) -> None:
        self.bears = False
        """Whether refusals are borne, because no lower rate would help."""
        self._calls = self._refused = 0
        self._rates = 0.0
        self._since = math.inf
        self._share, self._rate = 0.0, 0.0
        """The share of calls that pass with which others are compared, and the mean rate at which it was found."""

    def count(self, refused: bool, rate: float, now: float) -> float | None:
        """Count a call; a higher rate to go on at, if no more calls of a hundred pass at a much lower one."""
        self._since = min(self._since, now)
        self._calls += 1
        self._refused += refused
        self._rates += rate
        if self._calls < _EPOCH or now < self._since + _LONG_SPAN:
            return None
        share, mean = 1 - self._refused / self._calls, self._rates / self._calls
        self._calls = self._refused = 0
        self._rates, self._since = 0.0, now
        if self.bears:
            self.bears = _ALIKE * share > self._share
            self._rate = mean
            return min(_FASTEST, 2 * mean) if self.bears else None
        if mean >= self._rate or not 0 < share < min(1.0, _ALIKE * self._share):
            self._share, self._rate = share, mean
        elif mean < _LOWER * self._rate:
            self.bears = True
            return self._rate
        return None
