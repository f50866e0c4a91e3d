"""What the loop does where a provider limits it: it waits in common, ends where waiting is no use, and says so."""

import asyncio
import os
import re
import signal
import time
from pathlib import Path

import pytest

from judge.ask.attempts import Attempts, counted_reply, too_long
from judge.ask.pace import Pacer
from judge.ask.progress import Progress, _extra
from judge.ask.records import Judgment
from judge.ask.settings import Settings
from judge.errors import Interrupted, OperationalError, QuotaError, RateLimitError, TransientError
from judge.models.journal import Journal
from judge.models.records import Completion, Request
from tests.ask.test_loop import Answer, Scripted, judged, reason
from tests.mock import ask

TEXTS = [f"t{index}" for index in range(20)]


class Clock:
    """A time that passes only while somebody waits; `perf_counter` is the real one."""

    perf_counter = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def until(self, event: asyncio.Event, seconds: float) -> None:
        # The last digits of a wait must not be lost, or time would stand still.
        self.now += max(1e-6, seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("judge.ask.attempts.time", clock)
    monkeypatch.setattr("judge.ask.attempts._until", clock.until)
    return clock


@pytest.fixture(autouse=True)
def _quick(request: pytest.FixtureRequest) -> None:
    if "ctrl_c" not in request.node.name:
        request.getfixturevalue("clock")


class Limited(Scripted):
    """Refuses the first calls for a rate limit, as many as it is told."""

    def __init__(self, refusals: int, error: Exception, default: Answer = "Grade: 2", delay: float = 0.0) -> None:
        super().__init__(default=default, delay=delay)
        self.refusals, self.error = refusals, error

    async def complete(self, request: Request) -> Completion:
        if self.refusals:
            self.refusals -= 1
            self.asked.append(request)
            raise self.error
        return await super().complete(request)


def test_refusals_for_a_limit_do_not_count_as_attempts(tmp_path: Path) -> None:
    """Nine refusals in a row of one call, where two attempts may fail."""
    model = Limited(9, RateLimitError("429", 0.0))
    (result,) = judged(tmp_path, model, ["a"], Settings(concurrency=1, attempts=2))
    assert isinstance(result, Judgment)
    assert len(model.asked) == 10
    with Journal(tmp_path / "journal") as journal:
        recorded = journal.get(result.request_digest)
    assert recorded is not None
    assert recorded.attempts == 10


def test_faults_between_refusals_still_count(tmp_path: Path) -> None:
    model = Scripted({"a": [TransientError("503"), RateLimitError("429"), TransientError("503"), "Grade: 1"]})
    assert reason(judged(tmp_path, model, ["a", "b"], Settings(concurrency=1, attempts=2))[0]) == "provider_error"


@pytest.mark.parametrize("error", [RateLimitError("429: busy", 3600.0), TransientError("503: closed", 3600.0)])
def test_a_wish_beyond_what_the_user_wants_ends_the_run_and_says_when_to_come_back(
    tmp_path: Path, error: TransientError
) -> None:
    model = Scripted(default=error)
    with pytest.raises(OperationalError) as ended:
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    assert len(model.asked) <= 4
    assert re.search(
        r"(429: busy|503: closed); the provider asks to wait 1 h, longer than --max-wait 300 \(seconds\): give the "
        r"same command again after \d{4}-\d\d-\d\d \d\d:\d\d UTC, or raise --max-wait$",
        str(ended.value),
    )


def test_a_wish_within_what_the_user_wants_is_obeyed(clock: Clock) -> None:
    """Nothing is cut at a minute: 299 s are slept."""
    model = Limited(1, RateLimitError("429", 299.0))
    attempts = Attempts(model, Pacer(), 6, 300.0, asyncio.Event(), lambda: None, lambda: None)
    assert asyncio.run(attempts.complete(ask())).attempts == 2
    assert clock.now == pytest.approx(299.0, abs=0.1)


def test_an_endpoint_that_only_refuses_ends_the_run(tmp_path: Path) -> None:
    model = Scripted(default=RateLimitError("429: busy"))
    with pytest.raises(OperationalError, match=r"takes no calls: it refused all \d+ of the last .* busy$"):
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    # Five minutes at a rate that falls to two a minute.
    assert len(model.asked) < 60


def test_a_limit_that_lets_calls_through_gives_none_up(tmp_path: Path, clock: Clock) -> None:
    """Every third call is let through, for longer than everything may be refused."""

    class Thirds(Scripted):
        async def complete(self, request: Request) -> Completion:
            if (len(self.asked) + 1) % 3:
                self.asked.append(request)
                raise RateLimitError("429")
            return await super().complete(request)

    results = judged(
        tmp_path, Thirds(), [f"t{index}" for index in range(60)], Settings(concurrency=4, attempts=1, max_wait=20.0)
    )
    assert clock.now > 20
    assert all(isinstance(result, Judgment) for result in results)


def test_a_spent_account_stops_the_run_after_the_calls_in_flight(tmp_path: Path) -> None:
    model = Scripted(default=QuotaError("429: spent"), delay=0.01)
    with pytest.raises(QuotaError):
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    assert len(model.asked) == 4


def test_a_pause_is_told_and_ended_by_ctrl_c(tmp_path: Path) -> None:
    told: list[str] = []

    def report(progress: Progress) -> None:
        if progress.limited and not told:
            told.append(progress.limited)
            os.kill(os.getpid(), signal.SIGINT)

    model = Limited(1, RateLimitError("429", 60.0))
    started = time.monotonic()
    with pytest.raises(Interrupted, match="the same command goes on from here"):
        judged(tmp_path, model, TEXTS, Settings(concurrency=2), report=report)
    assert time.monotonic() - started < 30
    assert told == ["rate limit: waiting 1 min"]
    # The other call was in flight already.
    assert len(model.asked) <= 3


@pytest.mark.parametrize(("done", "note"), [(3, "$0.0100, rate limit: 96 calls/s"), (9, "$0.0100")])
def test_the_line_of_progress_says_what_holds_it_back(done: int, note: str) -> None:
    assert _extra(Progress(done, 9, 0, 0, 0.01, limited="rate limit: 96 calls/s")) == note


@pytest.mark.parametrize(
    ("azure", "parameters", "tokens"),
    [
        (True, {"max_tokens": 1024}, 1024),
        (True, {"max_completion_tokens": 512}, 512),
        (False, {"max_tokens": 1024}, 150),
        (True, {}, 150),
    ],
)
def test_azure_counts_the_longest_reply(azure: bool, parameters: dict[str, object], tokens: int) -> None:
    class Named(Scripted):
        def parameters(self, request: Request) -> dict[str, object]:
            return parameters

    model = Named()
    model.counts_longest = azure
    assert counted_reply(model, ask()) == tokens


def test_a_time_that_no_calendar_has_is_survived() -> None:
    assert "after never" in str(too_long("m", "busy", 1e300, 300))
