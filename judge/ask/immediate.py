"""Asks a judge that computes its answers here: one question after the other, without what calls over a network need."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from judge.ask.account import sent_together
from judge.ask.calls import Calls
from judge.ask.questions import Questions, failure, outcome
from judge.ask.records import Failure, Judgment, Task
from judge.errors import CallError
from judge.judges.journal import Journal
from judge.judges.journal_store import Row, new_row
from judge.judges.records import Completion, Request

_TOGETHER = 4000
"""Answers that are written to the disk together; nobody pays for those that a crash loses."""


class ImmediateQuestions:
    """Asks about tasks, and settles each once its answer is on the disk.

    `settle` takes the number of a task and its outcome. An error of the judge or of the disk stops the calls.
    """

    def __init__(
        self,
        questions: Questions,
        calls: Calls,
        journal: Journal,
        wanted: Sequence[Task],
        settle: Callable[[int, Judgment | Failure], None],
    ) -> None:
        self._questions = questions
        self._model = questions.model
        self._calls = calls
        self._journal = journal
        self._wanted = wanted
        self._settle = settle
        self._outcomes: dict[int, Judgment | Failure] = {}
        """By the numbers of their tasks; their answers are not on the disk yet."""
        self._completions: dict[str, Completion] = {}
        self._rows: list[Row] = []
        """The same completions as the journal keeps them."""

    async def ask(self, numbers: Iterable[int]) -> None:
        """Ask about these tasks, until the calls are stopped."""
        try:
            for number in numbers:
                if self._calls.stopped is not None:
                    break
                self._outcomes[number] = await self._outcome(self._wanted[number])
                if len(self._outcomes) == _TOGETHER:
                    self._keep()
                    # The word of a signal comes in between.
                    await asyncio.sleep(0)
        except BaseException as error:  # noqa: BLE001 - what was answered before is kept
            self._calls.stop(error)
        self._keep()

    async def _outcome(self, task: Task) -> Judgment | Failure:
        questions = self._questions
        digest, request = questions.first(task)
        talk = questions.inquiry(task, request)
        completions: dict[str, Completion] = {}
        following = next(talk)
        try:
            while True:
                completions[digest] = await self._completion(digest, following)
                following = talk.send(completions[digest])
                digest = questions.answers.digest(following)
        except CallError as error:
            return failure(task, self._model.name, error.reason, str(error), digest=digest)
        except StopIteration as stop:
            settled = outcome(task, stop.value, self._model.name, digest)
        questions.account.rest(self._model.name, completions)
        return settled

    async def _completion(self, digest: str, request: Request) -> Completion:
        """The completion of a request, which several tasks may share."""
        known = self._completions.get(digest) or self._journal.get(digest)
        if known is not None:
            return known
        model = self._model
        started = time.perf_counter()
        completion = await model.complete(request)
        completion = msgspec.structs.replace(completion, latency=round(time.perf_counter() - started, 3))
        self._questions.account.ask(model.name, [request], [completion], sent_together(model, [request]))
        self._completions[digest] = completion
        self._rows.append(new_row(digest, model.name, model.parameters(request), request, completion))
        return completion

    def _keep(self) -> None:
        """Write the answers to the disk, and settle their tasks."""
        self._journal.record(self._rows)
        for number, settled in self._outcomes.items():
            self._settle(number, settled)
        self._rows.clear()
        self._completions.clear()
        self._outcomes.clear()
