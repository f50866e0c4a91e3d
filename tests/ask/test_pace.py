"""The pace of calls, by a clock and a provider that exist only in the test."""

import heapq
import math
import random
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.pace import Pace, Ticket
from judge.judges.limits import Allowance, RateLimits
from tests.ask.clock import VirtualTime


class Pacer:
    """A pace that is told the time with each event."""

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        self.time = VirtualTime()
        self.pace = Pace(rpm, tpm, self.time)

    def at(self, now: float) -> Pace:
        self.time.now = now
        return self.pace

    def wait(self, tokens: int, now: float) -> float:
        return self.at(now).wait(tokens)

    def held(self, tokens: int, now: float) -> float:
        return self.at(now).held(tokens)

    def rate(self, now: float) -> float | None:
        return self.at(now).rate

    def sent(self, tokens: int, now: float) -> Ticket:
        return self.at(now).sent(tokens)

    def answered(self, ticket: Ticket, limits: RateLimits | None, now: float) -> None:
        self.at(now).answered(ticket, limits)

    def refused(self, ticket: Ticket, wish: float | None, limits: RateLimits | None, now: float) -> None:
        self.at(now).refused(ticket, wish, limits)


class Told(NamedTuple):
    """What the provider of a simulated run says."""

    wish: float | None = None
    """Seconds that it asks to wait at least; None to ask nothing."""
    headers: bool = False
    """Whether each reply names what is left of the limit and when all of it is there again."""


class Ran(NamedTuple):
    seconds: float
    passed: int
    refused: int


def run(
    calls: int, told: Told, *, rate: float = 100.0, burst: float = 20.0, workers: int = 64, pacer: Pacer | None = None
) -> Ran:
    """Send calls to a token bucket; an answer takes 50 ms, a refusal 1 ms."""
    pacer = pacer or Pacer()
    bucket, filled = burst, 0.0
    begun = passed = refused = 0
    number = iter(range(10**9))
    events: list[tuple[float, int, str, Any]] = [(0.0, next(number), "line", None) for _ in range(workers)]
    line = 0
    now = last = 0.0
    while events:
        now, _, kind, what = heapq.heappop(events)
        if kind == "passed":
            passed, last = passed + 1, now
            pacer.answered(*what, now)
        elif kind == "refused":
            refused += 1
            ticket, limits, wish = what
            pacer.refused(ticket, wish, limits, now)
            heapq.heappush(events, (now + (wish or 0.0), next(number), "again", None))
        elif kind == "arrives":
            bucket, filled = min(burst, bucket + (now - filled) * rate), now
            lacking = max(0.0, 1 - bucket)
            bucket -= lacking == 0
            full = Allowance(int(burst), int(bucket), (burst - bucket) / rate or None)
            limits = RateLimits(full) if told.headers else None
            if lacking:
                wish = None if told.wish is None else max(told.wish, lacking)
                heapq.heappush(events, (now + 0.001, next(number), "refused", (what, limits, wish)))
            else:
                heapq.heappush(events, (now + 0.05, next(number), "passed", (what, limits)))
        if kind in ("line", "passed") and begun < calls:
            begun, line = begun + 1, line + 1
        line += kind == "again"
        while line and not (wait := pacer.wait(0, now)):
            line -= 1
            heapq.heappush(events, (now, next(number), "arrives", pacer.sent(0, now)))
        if line:
            # Whoever is first in line looks again at its time, or after the next event.
            heapq.heappush(events, (now + max(wait, 1e-6), next(number), "look", None))
            events = [event for event in events if event[2] != "look" or event[0] == now + max(wait, 1e-6)]
            heapq.heapify(events)
    return Ran(last, passed, refused)


@pytest.mark.parametrize(
    "told",
    [Told(), Told(wish=0.0), Told(wish=1.0), Told(headers=True), Told(wish=0.0, headers=True)],
    ids=["silent", "precise wish", "wish of 1 s", "headers", "headers and wish"],
)
@pytest.mark.parametrize("workers", [16, 64])
def test_a_limit_is_used_and_not_run_into(told: Told, workers: int) -> None:
    """Of 100 calls a second at least 95 are made, and less than 5 % of what is sent is refused."""
    ran = run(2000, told, workers=workers)
    assert ran.passed == 2000
    assert ran.passed / (100 * ran.seconds + 20) > 0.95
    assert ran.refused / (ran.passed + ran.refused) < 0.05


def test_a_limit_that_headers_name_is_never_run_into() -> None:
    assert run(2000, Told(headers=True), workers=16).refused == 0


@pytest.mark.parametrize(("rate", "burst"), [(1.0, 1.0), (10.0, 2.0), (1000.0, 50.0)])
def test_other_limits_are_found_too(rate: float, burst: float) -> None:
    ran = run(600 if rate < 100 else 6000, Told(), rate=rate, burst=burst)
    assert ran.passed / (rate * ran.seconds + burst) > 0.8
    assert ran.refused / (ran.passed + ran.refused) < 0.15


@pytest.mark.parametrize(("share", "most"), [(0.1, 60.0), (0.3, 400.0), (0.67, 2000.0)])
def test_refusals_that_no_rate_prevents_do_not_stop_the_calls(share: float, most: float) -> None:
    """An overloaded server refuses a share of the calls at any rate: all pass in the end, and not at a crawl."""
    pacer, chance = Pacer(), random.Random(3)
    now, passed = 0.0, 0
    flying: deque[tuple[float, Ticket]] = deque()
    while passed < 2000:
        wait = pacer.wait(0, now) if len(flying) < 16 else max(0.0, flying[0][0] - now) + 1e-6
        now += max(1e-6, wait) if wait else 0.0
        while flying and flying[0][0] <= now:
            pacer.answered(flying.popleft()[1], None, now)
            passed += 1
        if wait:
            continue
        ticket = pacer.sent(0, now)
        if chance.random() < share:
            pacer.refused(ticket, None, None, now + 0.001)
        else:
            flying.append((now + 0.05, ticket))
    assert now < most


def test_without_limits_nothing_waits() -> None:
    pacer = Pacer()
    for number in range(1000):
        assert pacer.wait(10**6, 0.0) == 0
        assert pacer.sent(10**6, 0.0).number == number + 1
    assert pacer.rate(0.0) is None


def test_the_users_requests_a_minute_are_kept() -> None:
    """120 a minute are one every half second."""
    assert list(sendings(Pacer(rpm=120), 4, tokens=1)) == pytest.approx([0, 0.5, 1.0, 1.5])


def test_the_users_tokens_a_minute_are_kept() -> None:
    """6,000 a minute are 100 a second; a larger call is sent when the store is full, and paid off."""
    assert list(sendings(Pacer(tpm=6000), 3, tokens=300)) == pytest.approx([0, 3.0, 6.0])


def sendings(pacer: Pacer, count: int, tokens: int) -> Iterator[float]:
    now = 0.0
    for _ in range(count):
        while wait := pacer.wait(tokens, now):
            now += max(1e-6, wait)
        pacer.sent(tokens, now)
        yield now


def test_one_wish_of_more_than_a_second_holds_all_calls() -> None:
    pacer = Pacer()
    pacer.refused(pacer.sent(1, 0.0), 31.0, None, 0.1)
    assert pacer.held(1, 0.1) == pytest.approx(31.0)
    assert pacer.wait(1, 20.1) >= 11.0 - 1e-9
    assert pacer.held(1, 31.2) == 0


def test_a_wish_of_a_second_slows_the_others_only() -> None:
    pacer = Pacer()
    ticket = pacer.sent(1, 0.0)
    pacer.sent(1, 0.0)
    pacer.refused(ticket, 1.0, None, 0.001)
    assert pacer.held(1, 0.001) == 0
    assert 0 < pacer.wait(1, 0.001) < 1


def test_tokens_that_are_left_decide_who_may_go() -> None:
    """Of 100 tokens 50 are left and 50 more come in 10 s: a call of 60 waits 2 s, one of 40 does not."""
    pacer = Pacer()
    pacer.answered(pacer.sent(10, 0.0), RateLimits(tokens=Allowance(100, 50, 10.0)), 1.0)
    assert pacer.wait(40, 1.0) == 0
    assert pacer.wait(60, 1.0) == pytest.approx(2.0)


def test_calls_sent_since_the_reply_count() -> None:
    pacer = Pacer()
    first, _, _ = (pacer.sent(10, 0.0) for _ in range(3))
    pacer.answered(first, RateLimits(Allowance(60, 2, 58.0)), 1.0)
    assert pacer.wait(10, 1.0) == pytest.approx(1.0, rel=0.01)


def test_a_reply_that_was_overtaken_is_no_news() -> None:
    pacer = Pacer()
    first, second = pacer.sent(1, 0.0), pacer.sent(1, 0.0)
    pacer.answered(second, RateLimits(Allowance(60, 50, 10.0)), 1.0)
    pacer.answered(first, RateLimits(Allowance(60, 0, 60.0)), 1.1)
    assert pacer.wait(1, 1.1) == 0


def test_where_only_the_reset_is_known_all_wait_for_it() -> None:
    pacer = Pacer()
    pacer.answered(pacer.sent(1, 0.0), RateLimits(tokens=Allowance(left=0, reset=55.0)), 0.0)
    assert pacer.wait(1, 5.0) == pytest.approx(50.0)
    assert pacer.wait(1, 55.0) == 0


def test_without_refusals_the_rate_comes_back_and_then_limits_nothing() -> None:
    pacer = Pacer()
    tickets = [pacer.sent(1, 0.0) for _ in range(30)]
    for ticket in tickets[20:]:
        pacer.refused(ticket, None, None, 0.01)
    slow = pacer.rate(0.01)
    assert slow is not None
    later = pacer.rate(5.0)
    assert later is not None
    assert later > slow
    assert pacer.rate(1000.0) is None
    assert pacer.wait(1, 1000.0) == 0


def test_while_everything_is_refused_the_rate_falls_and_one_pass_ends_it() -> None:
    pacer, now = Pacer(), 0.0
    for _ in range(40):
        while wait := pacer.wait(1, now):
            now += max(1e-6, wait)
        pacer.refused(pacer.sent(1, now), None, None, now + 0.01)
    assert (pacer.pace.refusing, pacer.pace.refusals) == (pytest.approx(now), 40)
    assert pacer.rate(now) == pytest.approx(0.5, rel=0.01)
    pacer.answered(pacer.sent(1, now), None, now + 0.05)
    assert pacer.pace.refusing == 0
    assert (pacer.rate(now + 0.05) or 0.0) == pytest.approx(1.0, rel=0.01)


def test_while_some_calls_pass_the_rate_stays_above_a_call_in_two_seconds() -> None:
    """Every eighth call passes; between two of them, fewer than 30 s pass."""
    pacer, now = Pacer(), 0.0
    for number in range(24):
        while wait := pacer.wait(1, now):
            now += max(1e-6, wait)
        ticket = pacer.sent(1, now)
        if number % 8 == 7:
            pacer.answered(ticket, None, now)
        else:
            pacer.refused(ticket, None, None, now)
        assert (pacer.rate(now) or math.inf) >= 0.5


@given(st.lists(st.tuples(st.sampled_from("sar"), st.floats(0, 100), st.floats(0, 400)), max_size=60))
def test_no_order_of_events_makes_a_wait_endless_or_negative(events: list[tuple[str, float, float]]) -> None:
    pacer, now, tickets = Pacer(rpm=600, tpm=10**6), 0.0, []
    for kind, passed, wish in events:
        now += passed
        if kind == "s" or not tickets:
            tickets.append(pacer.sent(100, now))
        elif kind == "a":
            limits = RateLimits(Allowance(10, int(wish) % 11, wish or None), Allowance(left=int(wish)))
            pacer.answered(tickets.pop(), limits, now)
        else:
            pacer.refused(tickets.pop(), wish, None, now)
        assert 0 <= pacer.wait(100, now) < math.inf
        assert 0 <= pacer.held(100, now) < math.inf
