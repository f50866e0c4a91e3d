"""The calls a second that a provider lets through, as its refusals teach them. Pure."""

import math

SHORT = 1.0
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
_EPOCH = 32
"""Calls, at least, over which shares of refusals are compared; and `_LONG_SPAN`, because refusals come sooner than
answers."""
_LOWER = 0.5
"""How much lower a rate must be for the comparison."""
_ALIKE = 1.2
"""What the share of calls that pass must rise by at that rate; it rises by 1 / `_LOWER` under a limit."""
_STILL = 0.67
"""The part of the share of calls that pass which must be left at twice the rate."""
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
"""Calls a second that are tried even where everything is refused for longer than `_DRY`."""
_DRY = 30.0
"""Seconds."""
_LATE = 0.05
"""Seconds by which a call may be sent too late without loss to the rate."""


class LearnedRate:
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
        self._passed_at = -math.inf
        self._unit = 1.0
        self._credit = 0.0
        """Calls that may be sent now, in parts."""
        self._at = 0.0

    def value(self, now: float) -> float | None:
        """Calls a second; None where nothing limits them."""
        if self._base is None:
            return None
        exponent = _GROWTH * (max(0.0, now - self._changed) / self._unit) ** 2
        return None if exponent > _FREE else self._base * math.exp(exponent)

    def wait(self, now: float) -> float:
        """Seconds until the next call may be sent."""
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
        """Count a call that is sent; calls have the numbers 1, 2, 3, …."""
        self._sent += 1
        if self._begun is None:
            self._begun = now
        self._credit -= 1.0

    def passed(self, number: int, now: float) -> None:
        """Learn from a call that was let through."""
        rate, tried = self.value(now), number - self._first + 1
        self._passed_at = now
        if self._rises(False, rate, now):
            return
        if rate is None or rate >= self._known or tried < 1:
            return
        if rate < _SLOW or tried >= self._refused * _ENOUGH:
            self._change(min(self._known, max(_SLOW, 2 * rate)), now, doubled=True)

    def refused(self, number: int, wish: float, now: float) -> None:
        """Learn from a call that was refused with the wish to wait so many seconds."""
        if self._rises(True, self.value(now), now) or number < self._first:
            # The last change, after which this call would not have been sent so early, has answered it.
            return
        self._refused += 1
        tried = number - self._first + 1
        passed = max(0, tried - self._refused)
        rate, hold = self.value(now), wish if wish > SHORT else 0.0
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
            least = _SLOWEST if now > self._passed_at + _DRY else min(rate, _SLOW)
            rate = max(least, rate * _HALF)
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

    def _rises(self, refused: bool, rate: float | None, now: float) -> bool:
        """Whether a call has shown that a lower rate is of no use, so that the rate has risen."""
        better = None if rate is None else self._doubt.count(refused, rate, now)
        if better is None:
            return False
        self._known = better
        self._change(better, now)
        return True

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
            # Twice the rate halves that share under a limit.
            self.bears = share > _STILL * self._share
            self._share, self._rate = (share + self._share) / 2, mean
            return min(_FASTEST, 2 * mean) if self.bears else None
        if 0 < share < 1 and mean < 1.1 * _SLOW:
            # It can hardly be the rate.
            self.bears, self._share, self._rate = True, share, mean
            return 2 * mean
        if mean >= self._rate or not 0 < share < min(1.0, _ALIKE * self._share):
            self._share, self._rate = share, mean
        elif mean < _LOWER * self._rate:
            self.bears = True
            return self._rate
        return None
