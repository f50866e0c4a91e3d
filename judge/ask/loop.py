"""The loop: pooled responses × criteria × one judge → a Judgment or a Failure for each.

Workers take one task after the other, and `calls` asks. A result counts only once the completion behind it is on the
disk.
"""

import asyncio
import contextlib
import itertools
import time
from array import array
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.ask.account import Account, Settings, price_of
from judge.ask.calls import Calls, Writing
from judge.ask.dialect import Dialect
from judge.ask.dialogue import TaskDialogue
from judge.ask.firsts import FIRSTS, MOST_ALONE, Firsts, failed_alike, first_questions
from judge.ask.immediate import ImmediateQuestions
from judge.ask.line import Clock
from judge.ask.progress import Progress, job_progress
from judge.ask.questions import Questions, failure
from judge.ask.queue import TaskQueue
from judge.ask.records import Failure, Judgment, Task
from judge.ask.results import ResultWriter, StoredResults
from judge.ask.running import finish
from judge.ask.together import Together
from judge.errors import (
    Interrupted,
    MissingKeyError,
)
from judge.io.table import sequence
from judge.judges.journal import Journal
from judge.judges.model import FREE, Model
from judge.pool.records import Pool
from judge.runs.records import Turn


class Loop:
    """Makes judgments about one pool by one judge, with one journal.

    Many results lie in a file without a name in `folder`; by default where the system keeps temporary files.
    """

    def __init__(
        self,
        questions: Questions,
        journal: Journal,
        settings: Settings,
        *,
        report: Callable[[Progress], None] | None = None,
        folder: Path | None = None,
        clock: Clock = Clock(),  # noqa: B008 - it holds two functions
    ) -> None:
        self._questions = questions
        self._model = questions.model
        self._journal = journal
        self._settings = settings
        self._account = questions.account
        self._account.open(self._model.name, price_of(self._model, settings.known_prices), questions.sample.rates())
        self._report = report
        self._folder = folder
        self.calls = Calls(questions=questions, journal=journal, settings=settings, tell=self._tell, clock=clock)
        self._wanted: Sequence[Task] = ()
        self._results = ResultWriter(0, folder)
        self._recalled = self._failures = 0
        self._known_firsts: dict[int, Judgment | Failure] = {}
        """What the journal holds of the first questions, by the numbers of their tasks."""

    def run_to_end(self, wanted: Sequence[Task]) -> StoredResults:
        """Make a judgment or a failure of every task, in their order, and close the judge; a loop may be running here.

        A UsageError if the judge cannot answer one of the criteria. An OperationalError if no further call can succeed,
        or the user stopped the run; the paid completions are safe.
        """
        with contextlib.suppress(MissingKeyError):
            self._model.check(tuple({task.criterion.digest: task.criterion for task in wanted}.values()))
        self._wanted = wanted
        self._results = ResultWriter(len(wanted), self._folder)
        return finish(self._run, self.drain)

    async def _run(self) -> StoredResults:
        started = time.perf_counter()
        try:
            self._questions.endpoint.check()
            await (self._ask_immediately() if self._is_immediate else self._ask_by_calls())
            self.calls.end()
            self._journal.check_there()
            return self._results.results()
        finally:
            self._account.end(self._model.name, time.perf_counter() - started)
            await self._model.aclose()

    @property
    def _is_immediate(self) -> bool:
        """Whether there is nothing to wait for, to try again or to pay."""
        return self._model.immediate and price_of(self._model, self._settings.known_prices) == FREE

    async def _ask_by_calls(self) -> None:
        endpoint = self._questions.endpoint
        firsts = [] if self._model.recorded else first_questions(self._wanted, endpoint)
        picked = set(itertools.chain.from_iterable(group.numbers for group in firsts))
        queue = TaskQueue(self._questions, self._wanted, self._recall(picked))
        asked = OpenQuestions(
            questions=self._questions,
            calls=self.calls,
            wanted=self._wanted,
            queue=queue,
            settle=self._settle,
        )
        if queue and self._model.room is not None:
            endpoint.add_room(self._model.room)
        beginning = FirstQuestions(
            questions=self._questions, calls=self.calls, wanted=self._wanted, asked=asked, known=self._known_firsts
        )
        for group in firsts:
            await beginning.ask(group)
        workers = min(self.calls.workers, len(queue))
        await asyncio.gather(*(self._work(asked) for _ in range(workers)))

    async def _ask_immediately(self) -> None:
        questions = ImmediateQuestions(
            questions=self._questions,
            calls=self.calls,
            journal=self._journal,
            wanted=self._wanted,
            settle=self._settle,
        )
        open_numbers = array("q", self._recall(()))
        # Answers come in groups, and a rate is one since the first of them was asked for.
        self._tell()
        await questions.ask(open_numbers)

    def drain(self) -> None:
        """Start no new call, because the user stopped the run; calls in flight are finished and kept."""
        done = len(self._results)
        total = len(self._wanted)
        self.calls.stop(
            Interrupted(f"stopped with {done} of {total} judgments made; the same command goes on from here")
        )

    def _recall(self, picked: Collection[int]) -> Iterable[int]:
        """Settle the tasks that need no call, and give the numbers of the others; keep the outcomes of those picked."""
        for number, settled in enumerate(self._questions.settled(self._wanted)):
            if settled is None:
                yield number
            else:
                # Without a passage, nothing was asked.
                if settled.request_digest is not None:
                    self.calls.silence.heard = True
                    if number in picked:
                        self._known_firsts[number] = settled
                self._recalled += 1
                self._settle(number, settled)

    async def _work(self, asked: "OpenQuestions") -> None:
        """Take one task after the other; while a reply is written to the disk, another worker has the slot."""
        while True:
            async with self.calls.slots:
                if not asked.queue or self.calls.stopped is not None:
                    return
                # In turn from both ends while calls are given up.
                place = len(asked.queue) - 1 if self.calls.silence.given_up % 2 else 0
                about = await asked.ask(asked.queue.take(place))
            for closing in about.closing:
                await closing

    def _settle(self, number: int, settled: Judgment | Failure) -> None:
        self._results.put(number, settled)
        self._failures += isinstance(settled, Failure)
        self._tell()

    def _tell(self) -> None:
        if self._report is None:
            return
        self._report(
            Progress(
                done=len(self._results),
                total=len(self._wanted),
                recalled=self._recalled,
                failures=self._failures,
                cost=self.calls.budget.spent,
                estimated=self.calls.budget.estimated,
                limited=self.calls.line.limited(),
            )
        )


class FirstQuestions:
    """Asks the first questions one after the other, until the judge has given an answer of each kind.

    They settle how all others are asked. `known`: what the journal holds of them, by the numbers of their tasks.
    """

    def __init__(
        self,
        questions: Questions,
        calls: Calls,
        wanted: Sequence[Task],
        asked: "OpenQuestions",
        known: Mapping[int, Judgment | Failure],
    ) -> None:
        self._questions = questions
        self._calls = calls
        self._wanted = wanted
        self._asked = asked
        self._known = dict(known)

    async def ask(self, firsts: Firsts) -> None:
        """Ask questions of one kind; the calls are stopped if there is no use in them."""
        endpoint = self._questions.endpoint
        criterion = firsts.criterion
        failures: list[Failure] = []
        singly = 0
        for number in itertools.chain(firsts.numbers, self._asked.queue.of_kind(criterion.answer)):
            outcome = self._known.get(number) or await self._alone(number)
            if self._calls.stopped is not None or self._calls.silence.given_up:
                # The endpoint may be down, and several calls at once find that out sooner.
                return
            if isinstance(outcome, Failure):
                failures.append(outcome)
            elif outcome is not None and outcome.form != endpoint.forms(self._wanted[number].criterion)[0]:
                singly += 1
            elif outcome is not None:
                return
            useless = failed_alike(self._questions.model.name, failures)
            if useless is not None and not endpoint.has_warned:
                if useless.is_recorded:
                    endpoint.warn()
                self._calls.stop(useless.error)
                return
            if singly == FIRSTS:
                # In this form, nothing else came than failures of single requests.
                self._asked.learn(endpoint.dialect.refusing(endpoint.forms(criterion)[0], criterion.answer))
                endpoint.settle(criterion)
                return
            if len(failures) >= FIRSTS and endpoint.is_settled(criterion):
                return
            if len(failures) + singly >= MOST_ALONE:
                return

    async def _alone(self, number: int) -> Judgment | Failure | None:
        """Ask one question, and wait until its answer is on the disk; None where it does not wait to be asked.

        Others about its response are asked beside it, if the judge is asked several in a call.
        """
        if number not in self._asked.queue:
            return None
        # Gathered, because what stops it is kept to itself, a cancellation too.
        (judged,) = await asyncio.gather(self._asked.ask(self._asked.queue.take(self._asked.queue.index(number))))
        for closing in judged.closing:
            await closing
        self._known |= judged.settled
        return judged.settled.get(number)


class OpenQuestions:
    """Asks about tasks; those with the same question share what one of them asks.

    `settle` takes the number of a task and its outcome, once the answer is on the disk.
    """

    def __init__(
        self,
        questions: Questions,
        calls: Calls,
        wanted: Sequence[Task],
        queue: TaskQueue,
        settle: Callable[[int, Judgment | Failure], None],
    ) -> None:
        self.queue = queue
        self._questions = questions
        self._calls = calls
        self._wanted = wanted
        self._settle = settle
        self._open: dict[str, asyncio.Future[Judgment | Failure | None]] = {}
        """What becomes of each question that is being asked; None after an error that ended the run."""

    def learn(self, dialect: Dialect) -> None:
        """Remember what the endpoint refuses; requests that are made already may be sent otherwise now."""
        if self._questions.endpoint.learn(dialect):
            self.queue.forget()

    async def ask(self, numbers: Sequence[int]) -> "_Judged":
        """Ask about tasks, several about one response together, until nothing more is asked."""
        if len(numbers) == 1:
            (number,) = numbers
            judged = await self._judge(number, self._wanted[number])
            if judged is None:
                return _Judged({}, [])
            return _Judged({number: judged[1]}, [self._close(number, *judged)])
        together = self._calls.together(len(numbers))
        settled: dict[int, Judgment | Failure] = {}

        async def member(number: int) -> None:
            judged = await self._judge(number, self._wanted[number], together)
            if judged is not None:
                settled[number] = judged[1]
            together.leave()
            if judged is not None:
                await self._close(number, *judged)

        closing = [asyncio.ensure_future(member(number)) for number in numbers]
        await together.over.wait()
        return _Judged(settled, closing)

    async def _judge(
        self, number: int, task: Task, together: Together | None = None
    ) -> tuple[str, Judgment | Failure, Writing] | None:
        """Ask about a task, and give its question, its outcome, and what writes the last reply behind it.

        None where it is settled otherwise: tasks with the same question share what one of them asks. `together`: joins
        what is asked with other questions.
        """
        digest = settled = None
        try:
            question, request = self.queue.first(number)
            while (twin := self._open.get(question)) is not None:
                with contextlib.nullcontext() if together is None else together.aside():
                    await asyncio.wait([twin])
                recalled = self._questions.recall(task)
                missing = twin.result()
                if recalled is None and isinstance(missing, Failure):
                    recalled = failure(
                        task, missing.judge, missing.reason, missing.detail, digest=missing.request_digest
                    )
                if recalled is not None:
                    self._settle(number, recalled)
                    return None
            digest = question
            self._open[question] = asyncio.get_running_loop().create_future()
            dialogue = TaskDialogue(
                questions=self._questions,
                calls=self._calls,
                task=task,
                digest=question,
                request=request,
                learn=self.learn,
                together=together,
            )
            settled = await dialogue.ask()
            return question, settled, dialogue.write
        except BaseException as error:  # noqa: BLE001 - after any error, the paid calls of other workers must be kept
            self._calls.stop(error)
        finally:
            if digest is not None and settled is None:
                self._open.pop(digest).set_result(None)
        return None

    async def _close(self, number: int, digest: str, settled: Judgment | Failure, write: Writing) -> None:
        """Settle a task once its answer is on the disk, where those who wait for it find it."""
        try:
            if write is not None:
                await write
            self._settle(number, settled)
        except BaseException as error:  # noqa: BLE001 - as in `_judge`
            self._calls.stop(error)
        finally:
            self._open.pop(digest).set_result(settled)


class _Judged(NamedTuple):
    """What became of tasks."""

    settled: Mapping[int, Judgment | Failure]
    """The outcomes of those that were asked about, by number."""
    closing: Sequence[Awaitable[None]]
    """What settles them once their answers are on the disk."""


def assess(
    wanted: Iterable[Task],
    model: Model,
    journal: Journal,
    pool: Pool,
    *,
    turns: Mapping[str, Turn] | None = None,
    settings: Settings | None = None,
    report: Callable[[Progress], None] | None = None,
    progress: bool = False,
) -> StoredResults:
    """Run the loop to its end from synchronous code, even inside a running event loop.

    Args:
        wanted: The judgments to make, from `tasks`.
        model: The judge; it is closed at the end.
        journal: Holds every paid completion.
        pool: The pool of the responses.
        turns: The turns by id, for criteria that show the conversation.
        settings: Limits on calls and cost.
        report: Called after each judgment, and when a rate limit holds the calls back.
        progress: Show a bar in a notebook or on a terminal, elsewhere a line now and then.

    Returns:
        A judgment or a failure for each task, in the order of the tasks.

    Raises:
        UsageError: The judge cannot answer one of the criteria.
        OperationalError: The run stopped early; every paid completion is in the journal.
    """
    with job_progress(progress, report) as told:
        report = told.of(model.name) if progress else report
        questions = Questions(model=model, journal=journal, pool=pool, turns=turns, account=Account())
        return Loop(questions, journal, settings or Settings(), report=report).run_to_end(sequence(wanted))
