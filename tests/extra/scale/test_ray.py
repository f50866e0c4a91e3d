"""A Ray run with workers in this process, called as over a wire; Ray is played."""

import asyncio
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from judge import errors
from judge.ask.account import Account, Settings
from judge.ask.endpoint import remembered_dialect
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment, tasks
from judge.extra.scale import ray as ours
from judge.extra.scale.ray import RayEngine, RayModel, RayWorker, Workers, fitting
from judge.judges.journal import Journal
from judge.judges.limits import Allowance, RateLimits
from judge.judges.model import ModelOptions, Price
from judge.judges.records import Completion, Request
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import QUICK, Answer, Scripted, criterion, pool
from tests.time_limit import time_limit

TWO = msgspec.structs.replace(QUICK, concurrency=2, attempts=6)
TEXTS = [f"text {number}" for number in range(30)]
SCRIPT: dict[str, list[Answer]] = {
    "text 3": ["no grade", "Grade: 1"],
    "text 5": [errors.TransientError("busy"), "Grade: 3"],
    "text 7": ["no grade", "still none"],
    "text 9": [errors.ContextLengthError("too long")],
}


class LostError(Exception):
    """As Ray raises it."""


class PlayedRay:
    """The workers of `lives` are lost after so many completions each, with what they have in flight."""

    exceptions = SimpleNamespace(RayError=LostError)

    def __init__(self, cpus: float, lives: Sequence[int]) -> None:
        self.cpus, self.lives = cpus, list(lives)
        self.workers: list[Any] = []
        self.killed = 0
        self.at_once: list[int] = []

    def init(self, address: str, **options: Any) -> None:
        pass

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": self.cpus}}, {"Alive": False, "Resources": {"CPU": 64.0}}]

    def remote(self, actor: type[RayWorker]) -> "PlayedRay":
        return self

    def options(self, **options: Any) -> Any:
        return SimpleNamespace(remote=self.start)

    def start(self, *arguments: Any) -> Any:
        worker, left = RayWorker(*arguments), self.lives.pop(0) if self.lives else 10**9
        in_flight = 0

        async def complete(call: bytes) -> bytes:
            nonlocal left, in_flight
            in_flight += 1
            self.at_once.append(in_flight)
            reply = await worker.complete(call)
            in_flight, left = in_flight - 1, left - 1
            if left < 0:
                raise LostError("RayWorker\nkilled")
            return reply

        self.workers.append(worker)
        return SimpleNamespace(open=SimpleNamespace(remote=worker.open), complete=SimpleNamespace(remote=complete))

    def kill(self, actor: Any) -> None:
        self.killed += 1


class PlayedEngine(RayEngine):
    """Its process is a thread."""

    ray: PlayedRay
    home: asyncio.AbstractEventLoop
    log: list[str]

    def _start(self) -> None:
        self._process, self.log = "started", ["start"]
        self.played = Workers(self.ray)

    def call(self, method: str, *arguments: object) -> "Future[Any]":
        self.log.append(method)
        sent = pickle.loads(pickle.dumps(arguments))
        return asyncio.run_coroutine_threadsafe(getattr(self.played, method)(*sent), self.home)

    def close(self) -> None:
        pass


class Play:
    """What `run` does in place of a run with Ray."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, home: asyncio.AbstractEventLoop) -> None:
        self.monkeypatch, self.home = monkeypatch, home

    def engine(self, model: Scripted, lives: Sequence[int] = (), cpus: float = 2) -> PlayedEngine:
        self.monkeypatch.setattr(ours, "open_model", lambda name, options: model)
        self.played = PlayedEngine(None, None, [model.name], ModelOptions())
        self.played.ray, self.played.home = PlayedRay(cpus, lives), self.home
        return self.played

    def __call__(
        self,
        model: Scripted,
        texts: Sequence[str] = TEXTS,
        settings: Settings = TWO,
        *,
        lives: Sequence[int] = (),
        journal: Journal | None = None,
        **more: Any,
    ) -> list[Judgment | Failure]:
        self.waits = list[str]()
        calls, one = min(settings.concurrency, len(texts)), pool(texts)
        there = self.engine(model, lives).model(model, calls, self.waits.append)
        with Journal(None) if journal is None else journal as opened:
            return list(assess_at_once(tasks(one, [criterion()]), there, opened, one, settings=settings, **more))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    home = asyncio.new_event_loop()
    thread = threading.Thread(target=home.run_forever)
    thread.start()
    with time_limit(60.0):
        yield Play(monkeypatch, home)
    home.call_soon_threadsafe(home.stop)
    thread.join()
    home.close()


def alone(model: Scripted, texts: Sequence[str] = TEXTS, **more: Any) -> list[Judgment | Failure]:
    one = pool(texts)
    with Journal(None) as journal:
        return list(assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=TWO, **more))


def times(model: Scripted) -> Counter[str]:
    """How often the first question about each text was asked."""
    return Counter(request.response for request in model.asked if len(request.messages) == 2)


def test_results_and_accounts_are_those_of_the_loop(run: Play) -> None:
    accounts, seen = (Account(), Account()), list[Progress]()
    assert run(Scripted(SCRIPT), report=seen.append, account=accounts[0]) == alone(
        Scripted(SCRIPT), account=accounts[1]
    )
    here, there = (account.rows()[0] for account in accounts)
    assert here.expected == there.expected
    assert msgspec.structs.replace(here.asked, seconds=0) == msgspec.structs.replace(there.asked, seconds=0)
    assert run.waits == ["waiting for CPUs of the cluster"]
    assert (seen[-1][:4], seen[-1].limited) == ((30, 30, 0, 2), "")


def test_a_lost_worker_costs_its_calls_in_flight_and_another_one_comes(run: Play) -> None:
    model = Scripted(delay=0.002)
    assert run(model, lives=[4, 5]) == alone(Scripted())
    ray = run.played.ray
    # Each of the two takes a share of one call at once, so it is lost with one completion that did not come through.
    assert (sum(times(model).values()), max(ray.at_once), len(ray.workers), ray.killed) == (32, 1, 4, 4)


def test_workers_that_are_lost_at_once_end_the_run(run: Play) -> None:
    lost = "5 Ray workers were lost one after the other without a completion, the last: killed; the same command"
    with pytest.raises(errors.OperationalError, match=lost):
        run(Scripted(delay=0.001), lives=[0] * 9)


def test_one_process_serves_several_judges_and_none_is_needed_for_what_is_recalled(run: Play, tmp_path: Path) -> None:
    model, one = Scripted(), pool(TEXTS)
    opened = run.engine(model)
    for _ in range(2):
        with Journal(None) as journal:
            assess_at_once(tasks(one, [criterion()]), opened.model(model, 2, print), journal, one, settings=TWO)
    assert Counter(opened.log) == {"start": 1, "connect": 1, "open": 2, "complete": 60, "close": 2}
    assert len(opened.ray.workers) == opened.ray.killed == 4
    with Journal(tmp_path / "journal") as journal:
        alone_too = assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=TWO)
        again = run.engine(model)
        there = again.model(model, 2, print)
        assert list(assess_at_once(tasks(one, [criterion()]), there, journal, one, settings=TWO)) == list(alone_too)
        assert again._process is None


@pytest.mark.parametrize(("script", "error", "said"), [
    ({"text 8": [errors.AuthenticationError("no such key")]}, errors.AuthenticationError, "no such key"),
    ({"text 0": [ZeroDivisionError("of mine")]}, errors.OperationalError,
     r"a Ray worker on \S+ failed: ZeroDivisionError"),
    ({"text 0": [errors.MissingKeyError("KEY")]}, errors.OperationalError,
     r"a Ray worker on \S+ cannot ask fake/scripted: KEY"),
])  # fmt: skip
def test_an_error_that_ends_a_run_ends_it_and_keeps_what_was_paid_for(script, error, said, run, tmp_path) -> None:
    model = Scripted(script, delay=0.002)
    with pytest.raises(error, match=said):
        run(model, journal=Journal(tmp_path / "journal.sqlite"))
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal) == len(model.asked) - 1 < 29


def test_a_stop_begins_no_call_and_keeps_those_in_flight(run: Play, tmp_path: Path) -> None:
    model = Scripted(delay=0.01, hook=lambda calls: os.kill(os.getpid(), signal.SIGINT) if calls == 8 else None)
    with pytest.raises(errors.Interrupted, match="of 30 judgments made; the same command goes on from here"):
        run(model, journal=Journal(tmp_path / "journal.sqlite"))
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert len(journal) == len(model.asked) < 14


def test_a_stop_ends_the_wait_for_a_worker(run: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(self: RayWorker) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(1000)

    monkeypatch.setattr(RayWorker, "open", never)
    with pytest.raises(errors.Interrupted, match="stopped with 0 of 30 judgments made"):
        run(Scripted(), settings=msgspec.structs.replace(QUICK, concurrency=1))


def test_the_budget_is_exact(run: Play) -> None:
    reply = Completion(text="Grade: 2", finish_reason="stop", model="m", prompt_tokens=1, completion_tokens=1)
    # A call costs 1 + 1 dollars.
    settings = msgspec.structs.replace(TWO, max_cost=16.0, prices={"*": Price(1.0, 1.0)})
    model = Scripted(default=reply)
    failures = [result for result in run(model, settings=settings) if isinstance(result, Failure)]
    assert len(model.asked) == 8
    assert {(failure.reason, failure.detail) for failure in failures} == {("budget", "the budget of $16.0 is spent")}


def test_what_a_worker_learns_of_the_judge_is_in_the_journal(run: Play, tmp_path: Path) -> None:
    judge = Scripted(
        {text: [errors.StructureUnsupported("no schema"), "Grade: 1"] for text in TEXTS}, forms=("json", "text")
    )
    results = run(judge, journal=Journal(tmp_path / "journal.sqlite"))
    assert {result.grade for result in results if isinstance(result, Judgment)} == {1}
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert remembered_dialect(journal, "fake/scripted").refused == {"json/grade"}


def test_a_node_with_other_versions_ends_the_run(run: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    start = PlayedRay.start
    monkeypatch.setattr(PlayedRay, "start", lambda ray, name, options, _: start(ray, name, options, "judge 0.0.1"))
    with pytest.raises(
        errors.OperationalError, match=r"the driver has judge 0\.0\.1, a Ray node judge .*: install the same"
    ):
        run(Scripted())


class Limited(Scripted):
    """A judge that is refused once."""

    limits = RateLimits(Allowance(7))
    refused = False

    async def complete(self, request: Request) -> Completion:
        if not self.refused:
            self.refused = True
            raise errors.RateLimitError("busy", 0.5)
        return await super().complete(request)


def test_errors_and_limits_come_back_with_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "open_model", lambda name, options: Limited())
    worker = RayWorker("fake", ModelOptions(), ours.VERSIONS)

    async def ask() -> None:
        await worker.open()

        def call(method: str, prompt: str, data: bytes) -> "Future[bytes]":
            return asyncio.run_coroutine_threadsafe(worker.complete(data), asyncio.get_running_loop())

        async def ready() -> None:
            pass

        model = RayModel(Limited(), call, ready)
        request = Request("R1", "1", "c", "text", (), criterion().scale, (), 0, "text", ())
        with pytest.raises(errors.RateLimitError) as refused:
            await model.complete(request)
        assert refused.value.retry_after == 0.5
        assert (await model.complete(request)).text == "Grade: 2"
        assert model.limits == RateLimits(Allowance(7))

    asyncio.run(ask())


@pytest.mark.parametrize(("cpus", "threads", "workers", "uses_cores", "expected"), [
    ([4, 2], None, None, False, (1, 6)), ([4, 2], None, 3, False, (1, 3)), ([4, 2], None, None, True, (2, 3)),
    ([4, 2], 1, None, True, (1, 6)), ([4, 2], 8, None, True, (2, 3)), ([8], 4, 4, True, (2, 4)),
    ([], None, None, True, (1, 1)),
])  # fmt: skip
def test_workers_fit_into_the_cluster(cpus, threads, workers, uses_cores, expected) -> None:
    assert fitting(cpus, threads, workers, uses_cores=uses_cores) == expected


@pytest.mark.parametrize("error", [
    errors.TransientError("busy", 3.0), errors.RateLimitError("busy", None),
    errors.StructureUnsupported("no schema", lasting=False), errors.AuthenticationError("no"),
    errors.ContextLengthError("long"),
])  # fmt: skip
def test_errors_come_over_the_wire_as_they_are(error: errors.JudgeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


class Place:
    """A worker that is asked prompts; one that does not open takes no calls."""

    def __init__(self, *, opens: bool = True) -> None:
        self.opens, self.prompts = opens, list[str]()
        self.in_flight = self.most = 0
        self.open, self.complete = SimpleNamespace(remote=self._open), SimpleNamespace(remote=self._complete)

    async def _open(self) -> None:
        await asyncio.sleep(0 if self.opens else 1000)

    async def _complete(self, call: bytes) -> bytes:
        self.prompts.append(call.decode())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        return call


async def asked(places: Sequence[Place], calls: int, *groups: Sequence[str]) -> None:
    """Have two workers asked prompts, `calls` at once; each group begins when the one before has ended."""
    ray, left = PlayedRay(2, []), list(places)
    ray.start = lambda *arguments: left.pop(0)  # type: ignore[method-assign]
    workers = Workers(ray)
    await workers.open("fake", ModelOptions(), False, 2, calls)
    for group in groups:
        await asyncio.gather(*(workers.complete(prompt, prompt.encode()) for prompt in group))
    await workers.close()


def test_a_prompt_goes_where_it_was_asked_before_unless_that_worker_is_busy() -> None:
    places = Place(), Place()
    asyncio.run(asked(places, 2, ["a", "b"], ["b"], ["b"], ["a"], ["b"], ["a"]))
    assert [place.prompts for place in places] == [["a"] * 3, ["b"] * 4]
    # A worker that is busy takes no more than its share.
    asyncio.run(asked(busy := (Place(), Place()), 2, ["a"] * 8))
    assert [len(place.prompts) for place in busy] == [4, 4]
    places = Place(), Place(opens=False)
    asyncio.run(asked(places, 4, ["a", "b", "c", "d"]))
    assert (places[0].most, len(places[0].prompts)) == (2, 4)


def test_workers_that_are_lost_after_a_completion_each_end_no_run(run: Play) -> None:
    assert run(Scripted(delay=0.001), lives=[1] * 8) == alone(Scripted())
