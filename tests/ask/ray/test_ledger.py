"""What the driver tells workers that want the same, and that are lost meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from judge.ask.account import Account
from judge.ask.budget import Budget
from judge.ask.cashier import Cashier
from judge.ask.questions import Questions
from judge.ask.ray.ledger import Ledger
from judge.ask.ray.messages import FromWorker, Granted, Kept, SentCompletion, ToWorker, Unkept, WantedQuestion
from judge.ask.ray.worker import WorkerJournal
from judge.ask.silence import Silence
from judge.ask.tasks import tasks
from judge.errors import OperationalError
from judge.models.journal import Journal
from judge.models.records import Completion
from tests.ask.test_loop import Scripted, criterion, pool
from tests.mock import ask


class Driver:
    """A ledger that workers A, B and C ask one question."""

    def __init__(self, journal: Journal) -> None:
        one, model = pool(["same"]), Scripted()
        questions = Questions(model, journal, one, {}, Account(), journal.set_meta)
        (task,) = tasks(one, [criterion()])
        request = questions.request(task, "text")
        self.digest = questions.digest(request)
        self.wanted = WantedQuestion((self.digest,), request)
        silence = Silence(model.name, journal, 4, 3)
        self.ended: list[BaseException] = []
        cashier = Cashier(model, journal, questions, Budget(model, None, {}), Account(), silence)
        self.ledger = Ledger(journal, questions, cashier, silence, self.ended.append)
        self.holders = {name: object() for name in "ABC"}
        self.said: dict[str, list[ToWorker]] = {"A": [], "B": [], "C": []}

    async def want(self, worker: str) -> None:
        self.ledger.question(self.holders[worker], self.wanted, self.said[worker].append)
        await asyncio.sleep(0.01)

    def granted(self, worker: str) -> bool:
        return self.said[worker] == [Granted(self.wanted.name)]


def played(play: Callable[[Driver], Awaitable[None]]) -> None:
    async def run() -> None:
        with Journal(None) as journal:
            driver = Driver(journal)
            await play(driver)
            await asyncio.sleep(0.01)
            assert driver.granted("C")
            assert driver.said["B"] == []
            await driver.ledger.finish()
            assert driver.ended == []

    asyncio.run(run())


@pytest.mark.parametrize("first", ["A", "B"])
def test_a_question_that_a_lost_worker_waited_for_is_given_to_another(first: str) -> None:
    async def play(driver: Driver) -> None:
        await driver.want("A")
        await driver.want("B")
        assert driver.granted("A")
        # A node goes with both.
        for worker in sorted("AB", key=lambda name: name != first):
            driver.ledger.lose(driver.holders[worker])
        await asyncio.sleep(0.01)
        await driver.want("C")

    played(play)


def test_what_fails_after_a_worker_that_waited_is_lost_is_given_to_another() -> None:
    async def play(driver: Driver) -> None:
        for worker in "ABC":
            await driver.want(worker)
        driver.ledger.lose(driver.holders["B"])
        driver.ledger.unanswered(driver.holders["A"], driver.digest)

    played(play)


def test_a_completion_of_a_question_that_nobody_has_is_kept() -> None:
    completion = Completion(text="Grade: 2", finish_reason="stop", model="m-1")

    async def run() -> None:
        with Journal(None) as journal:
            driver = Driver(journal)
            sent = SentCompletion(driver.digest, {"form": "text"}, driver.wanted.request, completion)
            driver.ledger.keep(sent, driver.said["A"].append)
            await driver.ledger.finish()
            assert journal.get(driver.digest) == completion
            assert driver.said["A"] == [Kept(driver.digest)]

    asyncio.run(run())


@pytest.mark.parametrize("at_once", [True, False])
def test_a_completion_that_cannot_be_written_ends_the_run_and_its_workers_wait(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    completion = Completion(text="Grade: 2", finish_reason="stop", model="m-1")
    full = OperationalError("journal.sqlite: cannot be written: database or disk is full")

    def write(*arguments: object) -> "asyncio.Future[None]":
        if at_once:
            raise full
        done = asyncio.get_running_loop().create_future()
        done.set_exception(full)
        return done

    async def run() -> None:
        with Journal(None) as journal, WorkerJournal(lambda message: None, {}) as there:
            driver = Driver(journal)
            monkeypatch.setattr(journal, "write", write)
            await driver.want("A")
            waiting = there.write(driver.digest, "m", {}, driver.wanted.request, completion)
            sent = SentCompletion(driver.digest, {"form": "text"}, driver.wanted.request, completion)
            driver.ledger.keep(sent, driver.said["A"].append)
            await driver.ledger.finish()
            assert driver.ended == [full]
            last = driver.said["A"][-1]
            assert last == Unkept(driver.digest, full)
            there.told(last)
            assert waiting.exception() is full

    asyncio.run(run())


def test_one_question_in_two_forms_is_granted_to_each_claim() -> None:
    async def run() -> None:
        said: list[FromWorker] = []
        with WorkerJournal(said.append, {}) as journal:
            answers = [journal.claim("J", "T", request=ask(form)) for form in ("json", "text")]
            for wanted, granted in zip(said, ([True, False], [True, True]), strict=True):
                assert isinstance(wanted, WantedQuestion)
                journal.told(Granted(wanted.name))
                assert [answer.done() for answer in answers] == granted

    asyncio.run(run())
