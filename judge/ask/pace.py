"""How fast one judge may be asked, by the user's limits, the provider's headers and its refusals. Pure.

All calls of a judge share one pacer, so that one refusal slows all of them. Every method takes the time, in seconds of
any clock that never goes back.
"""

import math
from typing import NamedTuple

from judge.ask.rate import SHORT, LearnedRate
from judge.models.limits import Allowance, RateLimits

_AT_ONCE = 0.1
"""Seconds' worth of the user's limits that may be sent at once."""


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
            (_Store(limit / 60, max(1.0, _AT_ONCE * limit / 60)), kind)
            for limit, kind in ((rpm, "requests"), (tpm, "tokens"))
            if limit is not None
        )
        self._told = {"requests": _Store(), "tokens": _Store()}
        self._knows = False
        self._newest = -1
        self._rate = LearnedRate()
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
        if wish is not None and wish > SHORT:
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
