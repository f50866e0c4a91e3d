"""The engine with workers in this process, spoken to as over a wire; the cluster of Ray is played."""

import asyncio
import contextlib
import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.account import Account
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.ray.cluster import LostWorker
from judge.ask.ray.engine import RayEngine
from judge.ask.ray.messages import Fact, News, SentCompletion, ToWorker
from judge.ask.ray.worker import RayWorker
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.tasks import Task, tasks
from judge.errors import (
    AuthenticationError,
    ContextLengthError,
    Interrupted,
    OperationalError,
    StructureUnsupported,
    TransientError,
)
from judge.models.journal import Journal
from judge.models.model import Model, ModelOptions, Price
from judge.models.records import Completion, Request
from tests.ask.test_loop import QUICK, Answer, Scripted, criterion, pool
from tests.time_limit import time_limit

TWO = msgspec.structs.replace(QUICK, concurrency=2)


class PlayedHandle:
    """A worker that dies when it has said so many completions, as if they had come before its node went."""

    def __init__(self, worker: RayWorker, answers: int | None) -> None:
        self.worker = worker
        self.answers = answers

    async def begin(self) -> None:
        if self.answers == 0:
            raise LostWorker("killed")

    def tell(self, message: ToWorker) -> None:
        self.told = asyncio.ensure_future(self.worker.tell([pickle.loads(pickle.dumps(message))]))

    async def hear(self) -> News:
        news: News = pickle.loads(pickle.dumps(await self.worker.hear()))
        if self.answers is not None:
            self.answers -= sum(isinstance(message, SentCompletion) for message in news.said)
            if self.answers < 0:
                self.kill()
                raise LostWorker("killed")
        return news

    def kill(self) -> None:
        if self.worker._job is not None:
            self.worker._job.cancel()


class PlayedCluster:
    """Starts workers that ask one model; those of `lives` are lost after so many completions each."""

    def __init__(self, model: Scripted, room: int = 2, lives: Sequence[int] = ()) -> None:
        self.model = model
        self.rooms = room
        self.lives = list(lives)
        self.parts: list[Settings] = []

    def room(self, model: Model) -> int:
        return self.rooms

    def watch(self, end: object, cancel: object) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    def start(self, model: Model, settings: Settings) -> PlayedHandle:
        self.parts.append(settings)
        worker = RayWorker(model.name, ModelOptions(), settings)
        worker._model = self.model
        return PlayedHandle(worker, self.lives.pop(0) if self.lives else None)


def asked(
    model: Scripted,
    texts: Sequence[str],
    settings: Settings = TWO,
    *,
    lives: Sequence[int] = (),
    room: int = 2,
    journal: Journal | None = None,
    report: Callable[[Progress], None] | None = None,
    account: Account | None = None,
) -> list[Judgment | Failure]:
    one = pool(texts)
    engine = RayEngine(PlayedCluster(model, room, lives))
    wanted: tuple[Task, ...] = tasks(one, [criterion()])
    with Journal(None) if journal is None else journal as opened:
        return list(engine.assess(wanted, model, opened, one, settings=settings, report=report, account=account))


def plain(model: Scripted, texts: Sequence[str], settings: Settings = TWO) -> list[Judgment | Failure]:
    one = pool(texts)
    with Journal(None) as journal:
        return list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings))


def times(model: Scripted) -> Counter[str]:
    """How often the first question about each text was asked."""
    return Counter(request.response for request in model.asked if len(request.messages) == 2)


def said(result: Judgment | Failure) -> int | str:
    return result.grade if isinstance(result, Judgment) else result.reason


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.ask.attempts._wait", lambda faults: 0.0)


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """No test waits forever for a question that nobody frees."""
    with time_limit(60.0):
        yield


TEXTS = [f"text {number}" for number in range(30)]
SCRIPT: dict[str, list[Answer]] = {
    "text 3": ["no grade", "Grade: 1"],
    "text 7": ["no grade", "still none"],
    "text 9": [ContextLengthError("too long")],
    "text 11": [TransientError("busy"), "Grade: 3"],
}


def test_results_and_accounts_are_those_of_the_loop() -> None:
    accounts = Account(), Account()
    seen: list[Progress] = []
    spread = asked(Scripted(SCRIPT), TEXTS, report=seen.append, account=accounts[0])
    one, model = pool(TEXTS), Scripted(SCRIPT)
    with Journal(None) as journal:
        assert spread == list(assess(tasks(one, [criterion()]), model, journal, one, settings=TWO, account=accounts[1]))
    rows = [msgspec.structs.asdict(account.rows()[0]) for account in accounts]
    assert rows[0]["asked"].completions == rows[1]["asked"].completions == 31
    assert rows[0]["results"].completions == rows[1]["results"].completions == 31
    assert rows[0]["expected"] == rows[1]["expected"]
    assert seen[-1][:4] == (30, 30, 0, 2)


def test_what_a_lost_worker_had_is_asked_by_others_and_no_completion_twice() -> None:
    # The same answers however often a question is asked.
    script = {"text 7": ["no grade"], "text 9": SCRIPT["text 9"]}
    model = Scripted(script, delay=0.002)
    results = asked(model, TEXTS, lives=[4, 5])
    assert results == plain(Scripted(script), TEXTS)
    # Each of the two was lost with one call in flight at most, and with one completion that did not come through.
    assert sum(times(model).values()) - 30 <= 4


def test_a_repair_goes_on_where_a_lost_worker_left_it() -> None:
    texts = ["odd"]
    model = Scripted({"odd": ["no grade", "Grade: 1"]}, delay=0.002)
    # The worker says the first reply and dies with the second.
    results = asked(model, texts, lives=[1], room=1)
    assert [result.grade for result in results if isinstance(result, Judgment)] == [1]
    assert times(model) == {"odd": 1}


def test_workers_that_are_lost_at_once_end_the_run() -> None:
    model = Scripted()
    with pytest.raises(OperationalError, match="5 Ray workers were lost one after the other without a completion"):
        asked(model, TEXTS, lives=[0] * 9)
    assert model.asked == []


def test_one_question_in_several_shards_is_asked_once() -> None:
    model = Scripted(delay=0.01)
    results = asked(model, ["same"] * 12, room=4, settings=msgspec.structs.replace(QUICK, concurrency=4))
    assert len(results) == 12
    assert times(model) == {"same": 1}


def test_what_the_journal_holds_is_not_asked(tmp_path: Path) -> None:
    model, path = Scripted(), tmp_path / "journal.sqlite"
    asked(model, TEXTS[:10], journal=Journal(path))
    asked(model, TEXTS, journal=Journal(path))
    assert set(times(model).values()) == {1}


def test_parts_of_the_limits_make_the_limits() -> None:
    model = Scripted()
    cluster, one = PlayedCluster(model, room=3), pool(TEXTS)
    settings = msgspec.structs.replace(QUICK, concurrency=16, rpm=100_000, max_cost=9.0, prices={"*": Price(1, 1)})
    with Journal(None) as journal:
        RayEngine(cluster).assess(tasks(one, [criterion()]), model, journal, one, settings=settings)
    assert sorted(part.concurrency for part in cluster.parts) == [5, 5, 6]
    assert sum(part.rpm or 0 for part in cluster.parts) == 100_000
    assert {part.max_cost for part in cluster.parts} == {None}


def test_there_are_no_more_workers_than_the_limits_have_parts() -> None:
    model = Scripted()
    cluster, one = PlayedCluster(model, room=9), pool(TEXTS)
    with Journal(None) as journal:
        RayEngine(cluster).assess(tasks(one, [criterion()]), model, journal, one, settings=TWO)
    assert len(cluster.parts) == 2


def test_the_budget_is_that_of_all_workers() -> None:
    reply = Completion(text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=1, completion_tokens=1)
    # A call costs 1 + 1 dollars, so the fifth one would be beyond 8 dollars; by estimate a call costs more than 8.
    settings = msgspec.structs.replace(TWO, max_cost=8.0, prices={"*": Price(1.0, 1.0)})
    model, alone = Scripted(default=reply), Scripted(default=reply)
    results, expected = asked(model, TEXTS, settings), plain(alone, TEXTS, settings)
    assert len(model.asked) == len(alone.asked) == 4
    assert Counter(map(said, results)) == Counter(map(said, expected)) == {2: 4, "budget": 26}
    assert next(result.detail for result in results if isinstance(result, Failure)) == "the budget of $8.0 is spent"


def test_an_error_that_ends_a_run_ends_it_and_keeps_what_was_paid_for(tmp_path: Path) -> None:
    model = Scripted({"text 8": [AuthenticationError("no such key")]}, delay=0.002)
    path = tmp_path / "journal.sqlite"
    with pytest.raises(AuthenticationError, match="no such key"):
        asked(model, TEXTS, journal=Journal(path))
    paid = len(model.asked) - 1
    with Journal(path) as journal:
        assert len(journal) == paid
    assert paid < 29


class SmallDisk(Journal):
    """A journal whose disk is full after some completions."""

    rows = 5

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        if self.rows:
            self.rows -= 1
            return super().write(digest, judge, parameters, request, completion)
        done = asyncio.get_running_loop().create_future()
        done.set_exception(OperationalError("the disk is full"))
        return done


def test_a_full_disk_ends_the_run_although_workers_wait_for_it(tmp_path: Path) -> None:
    model = Scripted(delay=0.002)
    with pytest.raises(OperationalError, match="the disk is full"):
        asked(model, TEXTS, journal=SmallDisk(tmp_path / "journal.sqlite"))
    # Each worker has one call in flight.
    assert sum(times(model).values()) <= SmallDisk.rows + 3
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal) == SmallDisk.rows


def test_a_bug_in_a_worker_is_said_in_words() -> None:
    with pytest.raises(OperationalError, match=r"a Ray worker on .* failed: ZeroDivisionError"):
        asked(Scripted({"text 0": [ZeroDivisionError()]}), TEXTS)


def test_a_judge_that_answers_nobody_ends_the_run() -> None:
    with pytest.raises(OperationalError, match="does not answer"):
        asked(Scripted(default=TransientError("away")), TEXTS)


def test_a_text_that_nobody_can_read_does_not_end_the_run() -> None:
    # With shards of a few tasks each, the last one may hold nothing else.
    script: dict[str, list[Answer]] = {text: [TransientError("crashes")] for text in TEXTS[28:]}
    results = asked(Scripted(script), TEXTS)
    assert [said(result) for result in results[26:]] == [2, 2, "provider_error", "provider_error"]


@pytest.mark.parametrize(("concurrency", "room"), [(4, 2), (16, 4)])
def test_a_turn_that_nobody_can_read_does_not_end_the_run(concurrency: int, room: int) -> None:
    texts = [f"text {number}" for number in range(60)]
    one = pool(texts)
    # 16 responses of the first turn, which are one shard, and others in turns of 4.
    responses = tuple(
        msgspec.structs.replace(response, turn_id="1-1_1" if number < 16 else f"1-1_{2 + number // 4}")
        for number, response in enumerate(one.responses)
    )
    model = Scripted({text: [TransientError("crashes")] for text in texts[:16]}, delay=0.002)
    one = msgspec.structs.replace(one, responses=responses)
    settings = msgspec.structs.replace(QUICK, concurrency=concurrency)
    with Journal(None) as journal:
        wanted = tasks(one, [criterion()])
        results = RayEngine(PlayedCluster(model, room)).assess(wanted, model, journal, one, settings=settings)
    assert Counter(map(said, results)) == {2: 44, "provider_error": 16}


def test_what_a_worker_learns_of_the_judge_is_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    refuses = Scripted({"text 5": [TransientError("crashes")], "text 25": [TransientError("crashes")]}, forms=("text",))
    asked(refuses, TEXTS, journal=Journal(path))
    with Journal(path) as journal:
        # Workers learned of one each, or one of both.
        assert len((journal.meta("suspects:fake/scripted") or "").split()) == 2
    judge = Scripted({text: [StructureUnsupported("no schema"), "Grade: 1"] for text in TEXTS}, forms=("json", "text"))
    asked(judge, TEXTS, journal=Journal(tmp_path / "other.sqlite"))
    with Journal(tmp_path / "other.sqlite") as journal:
        assert journal.meta("form:fake/scripted") == "text"


def test_the_progress_says_that_no_worker_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    begun: list[int] = []

    async def begin(worker: PlayedHandle) -> None:
        await asyncio.sleep(0.01)
        begun.append(len(seen))

    monkeypatch.setattr(PlayedHandle, "begin", begin)
    asked(Scripted(), TEXTS, report=seen.append)
    # The first report is of what the journal holds.
    said = [progress.limited for progress in seen]
    assert said[: begun[0]] == ["", "waiting for CPUs of the cluster"]
    assert set(said[begun[0] :]) == {""}


def test_what_a_thread_of_a_worker_says_wakes_who_listens() -> None:
    async def heard() -> News:
        worker = RayWorker("fake/scripted", ModelOptions(), TWO)
        asyncio.get_running_loop().set_debug(True)
        await worker.tell([])
        news = asyncio.ensure_future(worker.hear())
        await asyncio.sleep(0.01)
        await asyncio.to_thread(worker.say, Fact("key", "value"))
        return await news

    # In debug mode, the loop refuses what only its own thread may do.
    assert asyncio.run(heard()).said == (Fact("key", "value"),)


def test_a_stop_begins_no_call_and_keeps_those_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    model = Scripted(delay=0.01, hook=lambda calls: os.kill(os.getpid(), signal.SIGINT) if calls == 8 else None)
    with pytest.raises(Interrupted, match="of 30 judgments made; the same command goes on from here"):
        asked(model, TEXTS, journal=Journal(path))
    with Journal(path) as journal:
        assert len(journal) == len(model.asked) < 12
