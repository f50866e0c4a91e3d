"""How fast one judge may be asked, by the user's limits, the provider's headers and its refusals. Pure.

All calls of a judge share one pace, so that one refusal slows all of them.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from judge.judges.limits import Allowance, RateLimits

_AT_ONCE = 0.1
"""Seconds' worth of the user's limits that may be sent at once."""
_SHORT = 1.0
"""A wish of so many seconds holds only its own call back: whole seconds can say no less, and at a rate it is long."""


class Ticket(NamedTuple):
    """A call that was sent: its number, and the tokens of all calls up to it."""

    number: int
    tokens: int


class Pace:
    """Says when the next call may be sent; the user may limit requests and tokens a minute; None for no limit."""

    def __init__(self, rpm: int | None, tpm: int | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        rates = [(kind, limit / 60) for kind, limit in enumerate((rpm, tpm)) if limit is not None]
        self._own = tuple(_Bucket(kind, rate, max(1.0, _AT_ONCE * rate)) for kind, rate in rates)
        self._told: tuple[_Bucket, ...] = ()
        """What the provider's headers say of requests and tokens."""
        self._newest = -1
        self._rate = _Rate()
        self._sent = Ticket(0, 0)
        self._until = -math.inf
        """Until when all calls are held back."""
        self._refused_since: float | None = None
        self.refusals = 0
        """Refusals since a call was last let through."""

    @property
    def limits(self) -> bool:
        """Whether a limit of the user or of the provider's headers is known."""
        return bool(self._own or self._told)

    @property
    def rate(self) -> float | None:
        """Calls a second that the provider seems to let through; None while it refuses nothing."""
        return self._rate.value(self._clock())

    @property
    def refusing(self) -> float:
        """Seconds for which the provider has refused every call."""
        return 0.0 if self._refused_since is None else self._clock() - self._refused_since

    def held(self, tokens: int = 0) -> float:
        """Seconds for which the provider holds a call of so many tokens back; 0 if it does not."""
        now = self._clock()
        return max(0.0, self._until - now, *(bucket.wait((1, tokens), now) for bucket in self._told))

    def wait(self, tokens: int) -> float:
        """Seconds until a call of so many tokens may be sent; 0 if it may be sent now."""
        now = self._clock()
        if not self.limits and now >= self._until and self._rate.value(now) is None:
            return 0.0
        return max(self.held(tokens), self._rate.wait(now), *(bucket.wait((1, tokens), now) for bucket in self._own))

    def sent(self, tokens: int) -> Ticket:
        """Count a call that is sent now."""
        now = self._clock()
        self._sent = Ticket(self._sent.number + 1, self._sent.tokens + tokens)
        self._rate.sent(now)
        for bucket in (*self._own, *self._told):
            bucket.take((1, tokens), now)
        return self._sent

    def answered(self, ticket: Ticket, limits: RateLimits | None) -> None:
        """Take note of a call that was let through, and of what its reply says of the limits."""
        self._refused_since = None
        self.refusals = 0
        self._rate.passed(ticket.number, self._clock())
        self._learn(ticket, limits)

    def refused(self, ticket: Ticket, wish: float | None, limits: RateLimits | None) -> None:
        """Take note of a call that was refused for a limit, and of the seconds that the provider asks to wait."""
        now = self._clock()
        self._refused_since = now if self._refused_since is None else self._refused_since
        self.refusals += 1
        self.hold(wish)
        self._rate.refused(ticket.number, wish or 0.0, now)
        self._learn(ticket, limits)

    def hold(self, wish: float | None) -> None:
        """Hold all calls back for as long as the provider asks to wait, where that is more than a second."""
        if wish is not None and wish > _SHORT:
            self._until = max(self._until, self._clock() + wish)

    def _learn(self, ticket: Ticket, limits: RateLimits | None) -> None:
        # Replies overtake each other; only what was sent last is news.
        if limits is None or ticket.number <= self._newest:
            return
        now = self._clock()
        self._newest = ticket.number
        self._told = self._told or (_Bucket(0), _Bucket(1))
        self._told[0].learn(limits.requests, self._sent.number - ticket.number, now)
        self._told[1].learn(limits.tokens, self._sent.tokens - ticket.tokens, now)


class _Bucket:
    """What is left of a limit of requests (kind 0) or of tokens (kind 1), which fills up at a constant rate.

    `rate`: units that come back each second, None while nobody knows. `most`: units that it holds at most.
    """

    def __init__(self, kind: int, rate: float | None = None, most: float = math.inf) -> None:
        self._kind = kind
        self._rate = rate
        self._most = most
        self._left = most
        self._at = -math.inf
        self._full_at: float | None = None

    def wait(self, call: tuple[int, int], now: float) -> float:
        """Seconds until a call may be sent; one larger than the bucket may be sent when the bucket is full."""
        self._fill(now)
        lacking = min(call[self._kind], self._most) - self._left
        if lacking <= 0:
            return 0.0
        if self._rate is not None:
            return lacking / self._rate
        return 0.0 if self._full_at is None else max(0.0, self._full_at - now)

    def take(self, call: tuple[int, int], now: float) -> None:
        self._fill(now)
        self._left -= call[self._kind]

    def learn(self, told: Allowance, since: int, now: float) -> None:
        """Take over what the provider says; `since` is what was sent after the call that it said it of."""
        if told.left is None:
            return
        if told.limit is not None:
            self._most = told.limit
            if told.reset is not None and told.left < told.limit:
                self._rate = (told.limit - told.left) / told.reset
        self._full_at = None if told.reset is None else now + told.reset
        self._left = told.left - since
        self._at = now

    def _fill(self, now: float) -> None:
        if self._rate is not None and now > self._at:
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
        elif self._full_at is not None and now >= self._full_at:
            self._left = self._most
            self._full_at = None
        self._at = now


_SAMPLE = 8
"""Calls, at least, after which the share that passed says something about the rate."""
_SLOWEST = 0.5
"""Calls a second that are always tried; they burden nobody."""
_FASTEST = 10_000.0
"""Calls a second that are more than any loop sends."""
_GROWTH = 0.005
"""Without refusals the rate grows as exp(0.005 t²): by 13 % in 5 units of time, ever faster after that."""


class _Rate:
    """Calls a second by additive increase and multiplicative decrease, as TCP sends packets.

    The first refusal measures what was let through so far. From then on, refusals lower the rate by the share of the
    calls that did not pass, and time raises it again. Where nothing passes, the rate is halved; below the last rate at
    which some calls passed, each call that passes doubles it. Where half the rate makes no more of a hundred calls
    pass, the refusals have another cause: then they lower nothing as long as some calls pass.
    """

    def __init__(self) -> None:
        self._base: float | None = None
        """The rate at the last change; None where nothing limits it."""
        self._threshold = math.inf
        """The rate below which a call that passes doubles it."""
        self._doubled = False
        """Whether the last change was such a doubling."""
        self._since = 0.0
        """When the last change was."""
        self._unit = 1.0
        self._sent = 0
        self._begun: float | None = None
        self._first = 1
        """The number of the first call since the last change."""
        self._refused = 0
        """Refusals of these calls."""
        self._credit = 0.0
        """Calls that may be sent now, in parts."""
        self._at = 0.0
        self._trial = _Trial()

    def value(self, now: float) -> float | None:
        """Calls a second; None where nothing limits them."""
        if self._base is None:
            return None
        rate = self._base * math.exp(min(20.0, _GROWTH * (max(0.0, now - self._since) / self._unit) ** 2))
        return None if rate > _FASTEST else rate

    def wait(self, now: float) -> float:
        """Seconds until the next call may be sent."""
        rate = self.value(now)
        if rate is None:
            self._base = None
            return 0.0
        # A call that is sent a little late costs no rate.
        self._credit = min(1.0 + rate / 20, self._credit + (now - self._at) * rate)
        self._at = now
        return max(0.0, 1.0 - self._credit) / rate

    def sent(self, now: float) -> None:
        """Count a call that is sent; calls have the numbers 1, 2, 3, …."""
        self._sent += 1
        self._begun = now if self._begun is None else self._begun
        self._credit -= 1.0

    def passed(self, number: int, now: float) -> None:
        """Learn from a call that was let through."""
        rate = self.value(now)
        if rate is None or self._tried(False, rate, now):
            return
        tried = number - self._first + 1
        if rate < self._threshold and tried >= (1 if rate < 2 * _SLOWEST else max(1, self._refused * _SAMPLE)):
            self._change(min(self._threshold, 2 * rate), 0.0, now, doubled=True)

    def refused(self, number: int, wish: float, now: float) -> None:
        """Learn from a call that was refused with the wish to wait so many seconds."""
        rate = self.value(now)
        if (rate is not None and self._tried(True, rate, now)) or number < self._first:
            # The last change, after which this call would not have been sent so early, has answered it.
            return
        self._refused += 1
        tried = number - self._first + 1
        passed = max(0, tried - self._refused)
        if rate is None:
            span = now - (now if self._begun is None else self._begun)
            rate = max(1, passed) / max(0.1, span)
            # What little time or few calls have shown is not believed for long.
            self._threshold = rate if wish > _SHORT or span > 1.0 else math.inf
            self._credit = 0.0
            self._at = now
            self._change(rate, wish, now)
        elif not passed and tried >= max(_SAMPLE / 2, rate / 100):
            rate = max(_SLOWEST, rate / 2)
            self._threshold = rate if self._doubled else self._threshold
            self._change(rate, wish, now)
        elif passed and tried >= max(_SAMPLE, rate / 20) and not self._trial.useless:
            # A refusal that holds all calls back costs more.
            most = 0.8 if wish > _SHORT else 0.95
            self._threshold = max(_SLOWEST, rate * min(most, max(0.5, passed / tried)))
            self._change(self._threshold, wish, now)
        else:
            # Too little to tell, but no time to go faster.
            self._base = rate
            self._since = now

    def _tried(self, refused: bool, rate: float, now: float) -> bool:
        """Whether a call has shown that a lower rate is of no use, so that the rate has risen again."""
        better = self._trial.count(refused, rate, now)
        if better is not None:
            self._threshold = better
            self._change(better, 0.0, now)
        return better is not None

    def _change(self, rate: float, wish: float, now: float, *, doubled: bool = False) -> None:
        self._base = rate
        self._since = now + (wish if wish > _SHORT else 0.0)
        self._unit = max(wish, 1.0, min(10.0, 20 / rate))
        self._first = self._sent + 1
        self._refused = 0
        self._begun = now
        self._doubled = doubled


class _Trial:
    """Compares the shares of calls that pass at different rates, over at least 32 calls and a second each."""

    def __init__(self) -> None:
        self.useless = False
        """Whether a lower rate lets no larger share of the calls pass."""
        self._calls = self._refused = 0
        self._rates = 0.0
        self._since = math.inf
        self._share, self._rate = 0.0, 0.0
        """The share with which others are compared, and its rate."""

    def count(self, refused: bool, rate: float, now: float) -> float | None:
        """Count a call; a higher rate to go on at, if half of it has let no larger share of the calls pass."""
        self._since = min(self._since, now)
        self._calls += 1
        self._refused += refused
        self._rates += rate
        if self._calls < 4 * _SAMPLE or now < self._since + 1.0:
            return None
        share = 1 - self._refused / self._calls
        mean = self._rates / self._calls
        self._calls = self._refused = 0
        self._rates = 0.0
        self._since = now
        if self.useless:
            # Under a limit, twice the rate halves that share.
            self.useless = share > 0.67 * self._share
            self._share = (share + self._share) / 2
            self._rate = mean
            return min(_FASTEST, 2 * mean) if self.useless else None
        if 0 < share < 1 and mean < 1.1 * _SLOWEST:
            self.useless = True
            self._share = share
            self._rate = mean
            return 2 * mean
        if mean >= self._rate or not 0 < share < min(1.0, 1.2 * self._share):
            self._share = share
            self._rate = mean
        elif mean < self._rate / 2:
            self.useless = True
            return self._rate
        return None
