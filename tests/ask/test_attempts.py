"""What the loop does where a provider limits it: it waits in common, ends where waiting is no use, and says so."""

import asyncio
import os
import re
import signal
from pathlib import Path
from time import monotonic

import pytest

from judge.ask.account import Settings
from judge.ask.attempts import counted_reply
from judge.ask.line import Clock, WaitingLine, too_long
from judge.ask.loop import assess
from judge.ask.progress import Progress, _extra
from judge.ask.records import Judgment, tasks
from judge.errors import Interrupted, OperationalError, QuotaError, RateLimitError, TransientError
from judge.judges.journal import Journal
from judge.judges.records import Completion, Request
from tests.ask.clock import VirtualTime
from tests.ask.test_loop import Answer, Scripted, criterion, judged, pool, reason
from tests.mock import ask

TEXTS = [f"t{index}" for index in range(20)]


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
    assert recorded.attempts == 10


def test_faults_between_refusals_still_count(tmp_path: Path) -> None:
    model = Scripted({"a": [TransientError("503"), RateLimitError("429"), TransientError("503"), "Grade: 1"]})
    assert reason(judged(tmp_path, model, ["a", "b"], Settings(concurrency=1, attempts=2))[0]) == "provider_error"


@pytest.mark.parametrize("error", [RateLimitError("429: busy", 3600.0), TransientError("503: closed", 3600.0)])
def test_a_wish_beyond_what_the_user_wants_ends_the_run_and_says_when_to_come_back(tmp_path, error) -> None:
    model = Scripted(default=error)
    with pytest.raises(OperationalError) as ended:
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    assert len(model.asked) <= 4
    assert re.search(
        r"(429: busy|503: closed); the provider asks to wait 1 h, longer than --max-wait 300 \(seconds\): give the "
        r"same command again after \d{4}-\d\d-\d\d \d\d:\d\d UTC, or raise --max-wait$",
        str(ended.value),
    )


@pytest.mark.parametrize("error", [RateLimitError("429", 299.0), TransientError("503", 299.0)])
def test_a_wish_within_what_the_user_wants_is_obeyed(tmp_path: Path, error: TransientError) -> None:
    """Nothing is cut at a minute: 299 s are slept, by a later call, too."""
    time = VirtualTime()
    judged(tmp_path, Limited(1, error), ["a", "b"], Settings(concurrency=1), time=time)
    assert time.now == pytest.approx(299.0, abs=0.2)


def test_failures_are_followed_by_longer_and_longer_pauses(tmp_path: Path) -> None:
    """Five pauses of at most 1, 2, 4, 8 and 16 s."""
    time = VirtualTime()
    judged(tmp_path, Scripted({"a": [TransientError("503")]}), ["a", "b"], Settings(concurrency=1), time=time)
    assert 1 < time.now <= 31


def test_an_endpoint_that_only_refuses_ends_the_run(tmp_path: Path) -> None:
    model = Scripted(default=RateLimitError("429: busy"))
    with pytest.raises(OperationalError, match=r"takes no calls: it refused all \d+ of the last .* busy$"):
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    # Five minutes at a rate that falls to a call in two seconds.
    assert len(model.asked) < 200


def test_a_limit_that_lets_calls_through_gives_none_up(tmp_path: Path) -> None:
    """Every third call is let through, for longer than everything may be refused."""

    class Thirds(Scripted):
        async def complete(self, request: Request) -> Completion:
            if (len(self.asked) + 1) % 3:
                self.asked.append(request)
                raise RateLimitError("429")
            return await super().complete(request)

    time, settings = VirtualTime(), Settings(concurrency=4, attempts=1, max_wait=20.0)
    results = judged(tmp_path, Thirds(), [f"t{index}" for index in range(60)], settings, time=time)
    assert time.now > 20
    assert all(isinstance(result, Judgment) for result in results)


def test_a_spent_account_stops_the_run_after_the_calls_in_flight(tmp_path: Path) -> None:
    model = Scripted({TEXTS[0]: ["Grade: 2"]}, default=QuotaError("429: spent"), delay=0.01)
    with pytest.raises(QuotaError):
        judged(tmp_path, model, TEXTS, Settings(concurrency=4))
    assert len(model.asked) == 1 + 4


def test_a_pause_is_told_and_ended_by_ctrl_c() -> None:
    told: list[str] = []

    def report(progress: Progress) -> None:
        if progress.limited and not told:
            told.append(progress.limited)
            os.kill(os.getpid(), signal.SIGINT)

    model = Limited(1, RateLimitError("429", 60.0))
    started, one = monotonic(), pool(TEXTS)
    with Journal(None) as journal, pytest.raises(Interrupted, match="the same command goes on from here"):
        assess(tasks(one, [criterion()]), model, journal, one, settings=Settings(concurrency=2), report=report)
    assert monotonic() - started < 30
    assert told == ["rate limit: waiting 1 min"]
    # The other call was in flight already.
    assert len(model.asked) <= 3


def test_calls_in_line_are_held_back_by_the_rate() -> None:
    line = WaitingLine(Limited(0, RateLimitError("429", None)), Settings(rpm=120), lambda: None, lambda: None, Clock())
    assert line.limited() == ""

    async def waited() -> str:
        async with line._turn:
            return line.limited()

    assert asyncio.run(waited()) == "rate limit"


@pytest.mark.parametrize(
    ("done", "estimated", "note"),
    [(3, 0, "$0.0100, rate limit: 96 calls/s"), (9, 0, "$0.0100"), (9, 4, "$0.0100 (tokens of 4 replies estimated)")],
)
def test_the_line_of_progress_says_what_holds_it_back(done: int, estimated: int, note: str) -> None:
    assert _extra(Progress(done, 9, 0, 0, 0.01, estimated, limited="rate limit: 96 calls/s")) == note


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
