"""The driver of a Ray run with workers in this process, spoken to as over a wire; Ray is played."""

import asyncio
import contextlib
import os
import pickle
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.account import Account
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.ray import engine
from judge.ask.ray.client import LostWorker
from judge.ask.ray.engine import RayEngine
from judge.ask.ray.worker import News, PaidCall, RayWorker, ShardTasks
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.tasks import tasks
from judge.errors import AuthenticationError, ContextLengthError, Interrupted, OperationalError, StructureUnsupported
from judge.models.journal import Journal
from judge.models.model import ModelOptions, Price
from judge.models.records import Completion, Request
from tests.ask.test_loop import QUICK, Answer, Scripted, criterion, pool
from tests.time_limit import time_limit

TWO = msgspec.structs.replace(QUICK, concurrency=2)
TEXTS = [f"text {number}" for number in range(30)]
SCRIPT: dict[str, list[Answer]] = {
    "text 3": ["no grade", "Grade: 1"],
    "text 7": ["no grade", "still none"],
    "text 9": [ContextLengthError("too long")],
}


class PlayedClient:
    """Starts workers that ask one model; those of `lives` are lost after so many completions each."""

    def __init__(self, model: Scripted, lives: Sequence[int]) -> None:
        self.model = model
        self.lives = list(lives)
        self.left: dict[int, int] = {}
        self.workers: dict[int, RayWorker] = {}
        self.parts: list[Settings] = []
        self.shards: list[ShardTasks] = []

    async def call(self, method: str, number: int, *arguments: Any) -> Any:
        if method == "start":
            _, *made = arguments
            worker = self.workers[number] = RayWorker(*made)
            worker._model = self.model
            self.parts.append(made[2])
            self.left[number] = self.lives.pop(0) if self.lives else 10**9
        elif method == "kill":
            del self.workers[number]
        else:
            name, *rest = pickle.loads(pickle.dumps(arguments))
            self.shards += rest if name == "judge" else []
            reply = await getattr(self.workers[number], name)(*rest)
            if isinstance(reply, News):
                self.left[number] -= sum(isinstance(entry, PaidCall) for entry in reply.entries)
                if self.left[number] < 0:
                    raise LostWorker("killed")
            return pickle.loads(pickle.dumps(reply))
        return None

    async def lost(self) -> None:
        await asyncio.sleep(1000)


class Played:
    """What `run` does in place of a run with Ray."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.client: PlayedClient | None = None

    def __call__(
        self,
        model: Scripted,
        texts: Sequence[str],
        settings: Settings = TWO,
        *,
        lives: Sequence[int] = (),
        room: int = 2,
        journal: Journal | None = None,
        **more: Any,
    ) -> list[Judgment | Failure]:
        self.client = PlayedClient(model, lives)

        @contextlib.asynccontextmanager
        async def connected(address: str | None, workers: int | None) -> AsyncIterator[Any]:
            yield self.client, [1.0] * room

        self.monkeypatch.setattr(engine, "connected", connected)
        self.monkeypatch.setattr(engine, "open_model", lambda name, options: model)
        one = pool(texts)
        with Journal(None) if journal is None else journal as opened:
            driver = RayEngine(None, None, [model.name], ModelOptions())
            return list(driver.assess(tasks(one, [criterion()]), model, opened, one, settings=settings, **more))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return Played(monkeypatch)


@pytest.fixture(autouse=True)
def _ends() -> Any:
    with time_limit(60.0):
        yield


def alone(model: Scripted, texts: Sequence[str], settings: Settings = TWO, **more: Any) -> list[Judgment | Failure]:
    one = pool(texts)
    with Journal(None) as journal:
        return list(assess(tasks(one, [criterion()]), model, journal, one, settings=settings, **more))


def times(model: Scripted) -> Counter[str]:
    """How often the first question about each text was asked."""
    return Counter(request.response for request in model.asked if len(request.messages) == 2)


def test_results_and_accounts_are_those_of_the_loop(run: Played) -> None:
    accounts, seen = (Account(), Account()), list[Progress]()
    spread = run(Scripted(SCRIPT), TEXTS, report=seen.append, account=accounts[0])
    assert spread == alone(Scripted(SCRIPT), TEXTS, account=accounts[1])
    here, there = (account.rows()[0] for account in accounts)
    assert here.expected == there.expected
    for ours, loops in ((here.asked, there.asked), (here.results, there.results)):
        assert msgspec.structs.replace(ours, seconds=0) == msgspec.structs.replace(loops, seconds=0)
    assert seen[-1][:4] == (30, 30, 0, 2)


def test_what_a_lost_worker_had_is_asked_by_others_and_no_completion_twice(run: Played) -> None:
    script = {"text 9": SCRIPT["text 9"]}
    model = Scripted(script, delay=0.002)
    assert run(model, TEXTS, lives=[4, 5]) == alone(Scripted(script), TEXTS)
    # Each of the two was lost with one call in flight at most, and with one completion that did not come through.
    assert sum(times(model).values()) - 30 <= 4


def test_a_repair_goes_on_where_a_lost_worker_left_it(run: Played) -> None:
    model = Scripted({"odd": ["no grade", "Grade: 1"]}, delay=0.002)
    results = run(model, ["odd"], lives=[1], room=1)
    assert [result.grade for result in results if isinstance(result, Judgment)] == [1]
    assert times(model) == {"odd": 1}


def test_workers_that_are_lost_at_once_end_the_run(run: Played) -> None:
    with pytest.raises(OperationalError, match="5 Ray workers were lost one after the other without a completion"):
        run(Scripted(delay=0.001), TEXTS, lives=[0] * 9)


def test_one_question_in_several_turns_is_asked_once(run: Played) -> None:
    model = Scripted({"same": ["Grade: 1"], "bad": SCRIPT["text 9"]}, delay=0.01)
    results = run(model, ["same", "bad"] * 6, room=4, settings=msgspec.structs.replace(QUICK, concurrency=4))
    assert Counter(type(result).__name__ for result in results) == {"Judgment": 6, "Failure": 6}
    assert times(model) == {"same": 1, "bad": 1}


def test_what_the_journal_holds_is_not_asked(run: Played, tmp_path: Path) -> None:
    model, path = Scripted(), tmp_path / "journal.sqlite"
    run(model, TEXTS[:10], journal=Journal(path))
    run(model, TEXTS, journal=Journal(path))
    assert set(times(model).values()) == {1}


def test_parts_of_the_limits_make_the_limits(run: Played) -> None:
    settings = msgspec.structs.replace(QUICK, concurrency=16, rpm=100_000, tpm=10**9)
    run(Scripted(), TEXTS, settings, room=3)
    assert run.client is not None
    assert sorted(part.concurrency for part in run.client.parts) == [5, 5, 6]
    assert sum(part.rpm or 0 for part in run.client.parts) == 100_000
    assert sorted(len(shard.tasks) for shard in run.client.shards) == [10, 10, 10]


def test_there_are_no_more_workers_than_the_limits_have_parts(run: Played) -> None:
    run(Scripted(), TEXTS, room=9)
    assert run.client is not None
    assert len(run.client.parts) == 2


@pytest.mark.parametrize("room", [1, 2])
def test_the_budget_is_that_of_all_workers(room: int, run: Played) -> None:
    reply = Completion(text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=1, completion_tokens=1)
    # A call costs 1 + 1 dollars.
    settings = msgspec.structs.replace(TWO, max_cost=16.0, prices={"*": Price(1.0, 1.0)})
    model = Scripted(default=reply)
    results = run(model, TEXTS, settings, room=room)
    assert len(model.asked) == 8
    failures = [result for result in results if isinstance(result, Failure)]
    assert {(failure.reason, failure.detail) for failure in failures} == {("budget", "the budget of $16.0 is spent")}
    assert len(failures) == 22


def test_money_that_a_shard_leaves_is_for_the_others(run: Played) -> None:
    cheap = Completion(text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=1, completion_tokens=1)
    dear = msgspec.structs.replace(cheap, prompt_tokens=8)
    model = Scripted({text: [cheap if number < 15 else dear] for number, text in enumerate(TEXTS)})
    settings = msgspec.structs.replace(TWO, max_cost=15 * 2 + 15 * 9, prices={"*": Price(1.0, 1.0)})
    assert not any(isinstance(result, Failure) for result in run(model, TEXTS, settings))


def test_an_error_that_ends_a_run_ends_it_and_keeps_what_was_paid_for(run: Played, tmp_path: Path) -> None:
    model = Scripted({"text 8": [AuthenticationError("no such key")]}, delay=0.002)
    with pytest.raises(AuthenticationError, match="no such key"):
        run(model, TEXTS, journal=Journal(tmp_path / "journal.sqlite"))
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal) == len(model.asked) - 1 < 29


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


def test_a_full_disk_ends_the_run(run: Played, tmp_path: Path) -> None:
    model = Scripted(delay=0.002)
    with pytest.raises(OperationalError, match="the disk is full"):
        run(model, TEXTS, journal=SmallDisk(tmp_path / "journal.sqlite"))
    assert sum(times(model).values()) <= SmallDisk.rows + 6


def test_a_bug_in_a_worker_is_said_in_words(run: Played) -> None:
    with pytest.raises(OperationalError, match="ZeroDivisionError"):
        run(Scripted({"text 0": [ZeroDivisionError()]}), TEXTS)


def test_what_a_worker_learns_of_the_judge_is_in_the_journal(run: Played, tmp_path: Path) -> None:
    judge = Scripted({text: [StructureUnsupported("no schema"), "Grade: 1"] for text in TEXTS}, forms=("json", "text"))
    results = run(judge, TEXTS, journal=Journal(tmp_path / "journal.sqlite"))
    assert {result.grade for result in results if isinstance(result, Judgment)} == {1}
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert journal.meta("form:fake/scripted") == "text"


def test_a_node_with_other_versions_ends_the_run(run: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.ask.ray.worker.VERSIONS", "judge 0.0.1 and Python 3.9.1")
    with pytest.raises(OperationalError, match=r"a Ray node judge 0\.0\.1 and Python 3\.9\.1: install the same"):
        run(Scripted(), TEXTS)


def test_a_stop_begins_no_call_and_keeps_those_in_flight(run: Played, tmp_path: Path) -> None:
    model = Scripted(delay=0.01, hook=lambda calls: os.kill(os.getpid(), signal.SIGINT) if calls == 8 else None)
    with pytest.raises(Interrupted, match="of 30 judgments made; the same command goes on from here"):
        run(model, TEXTS, journal=Journal(tmp_path / "journal.sqlite"))
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal) == len(model.asked) < 14
