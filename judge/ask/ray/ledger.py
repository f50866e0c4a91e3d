"""What the driver knows: which worker asks which question, what that costs, and what is on the disk.

A worker asks for every question. It is told to ask, unless the journal has the answer, another worker is asking, or the
money is spent. So no question is paid for twice and no budget is exceeded, whichever worker is lost.
"""

import asyncio
import functools
from collections.abc import Callable

from judge.ask.cashier import Cashier
from judge.ask.questions import Questions
from judge.ask.ray.messages import Denied, Granted, Kept, Known, SentCompletion, ToWorker, Unkept, WantedQuestion
from judge.ask.silence import Silence
from judge.errors import JudgeError
from judge.models.journal import HeldElsewhere, Journal, RecordedAnswer
from judge.models.model import Model, SentRequests, Unfinished
from judge.models.records import Request

Tell = Callable[[ToWorker], None]


class _LetGo(Exception):
    """The worker of a question has let go of it, or is gone."""


class _Held:
    """A question that one worker has."""

    def __init__(self, holder: object, digest: str, request: Request, freed: "asyncio.Future[None]") -> None:
        self.holder = holder
        self.digest = digest
        """Of the request."""
        self.request = request
        self.freed = freed
        """Done when nobody has the question any more, be it answered or not."""
        self.reserved: float | None = None
        """What is set aside for its call."""
        self.busy = True
        """Whether the ledger is at it: it looks for what to tell the worker, or writes the completion."""
        self.lost = False
        """Whether its worker has let go of it, or is gone."""


class Ledger:
    """The driver's side of every call to one judge.

    Args:
        journal: Holds every paid completion.
        questions: The judge's questions.
        cashier: Pays for the calls.
        silence: Counts what the judge answers.
        end: Ends the run with an error.
    """

    def __init__(
        self,
        journal: Journal,
        questions: Questions,
        cashier: Cashier,
        silence: Silence,
        end: Callable[[BaseException], None],
    ) -> None:
        self._journal = journal
        self._questions = questions
        self._cashier = cashier
        self._silence = silence
        self._end = end
        self._stop: BaseException | None = None
        self._held: dict[str, _Held] = {}
        """By the first digest of the question."""
        self._waiting: set[_Held] = set()
        """What workers want while another one has the question."""
        self._firsts: dict[str, str] = {}
        """The digest of each request that is held, to the first digest of its question."""
        self._answers: set[asyncio.Task[None]] = set()
        self._unwritten: set[asyncio.Future[None]] = set()
        self.answered = 0
        """Completions that came from workers."""

    def question(self, holder: object, question: WantedQuestion, tell: Tell) -> None:
        """Answer a worker that wants to ask, as soon as that can be said."""
        answer = asyncio.ensure_future(self._answer(holder, question, tell))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    def unanswered(self, holder: object, digest: str) -> None:
        """A worker's question brought no completion."""
        held = self._held.get(digest)
        if held is not None and held.holder is holder:
            self._leave(digest, held)

    def keep(self, answered: SentCompletion, tell: Tell) -> None:
        """Write a completion, and tell its worker when it is on the disk, or that it cannot be."""
        digest, request, completion = answered.digest, answered.request, answered.completion
        # What came is paid for, also where nobody has the question any more.
        first = self._firsts.get(digest)
        held = None if first is None else self._held[first]
        if held is not None:
            held.busy = True
            self._release(held)
        self.answered += 1
        self._cashier.charge(request, completion)
        try:
            write = self._cashier.record(digest, answered.parameters, request, completion)
        except JudgeError as error:
            self._end(error)
            tell(Unkept(digest, error))
            return
        self._unwritten.add(write)

        def written(write: "asyncio.Future[None]") -> None:
            self._unwritten.discard(write)
            error = write.exception()
            if error is not None:
                self._end(error)
                # Its worker would wait for this completion forever.
                tell(Unkept(digest, error))
                return
            if first is not None and held is not None:
                self._forget(first, held)
            if first is not None and digest != first and self._journal.claims is not None:
                # The claim is on the question, and only an answer to its first request ends it.
                self._journal.claims.release(first)
            tell(Kept(digest))

        write.add_done_callback(written)

    def lose(self, holder: object) -> None:
        """Let go of every question that a lost worker had and did not answer."""
        for waiting in self._waiting:
            # Nobody would ever let go of a question that a lost worker was given.
            waiting.lost = waiting.lost or waiting.holder is holder
        for digest, held in list(self._held.items()):
            if held.holder is holder:
                self._leave(digest, held)

    def stop(self, error: BaseException) -> None:
        """Grant nothing more."""
        self._stop = error
        self._cashier.wake()
        if self._journal.claims is not None:
            self._journal.claims.give_up(error)

    async def finish(self) -> None:
        """Wait until all that came is on the disk, and leave no question waiting."""
        for answer in tuple(self._answers):
            answer.cancel()
        if self._answers:
            await asyncio.wait(self._answers)
        if self._unwritten:
            await asyncio.wait(self._unwritten)

    async def _answer(self, holder: object, question: WantedQuestion, tell: Tell) -> None:
        digest = question.digests[0]
        freed = asyncio.get_running_loop().create_future()
        held = _Held(holder, self._questions.digest(question.request), question.request, freed)
        self._waiting.add(held)
        try:
            while (other := self._held.get(digest)) is not None:
                await asyncio.wait([other.freed])
        finally:
            self._waiting.discard(held)
        if held.lost:
            return
        self._held[digest], self._firsts[held.digest] = held, digest
        try:
            recorded = await self._recorded(question)
            if recorded is not None:
                self._silence.remembered()
                self._forget(digest, held)
                tell(Known(question.name, recorded))
                return
            held.reserved = await self._cashier.afford(held.request, functools.partial(self._check, held))
        except (JudgeError, HeldElsewhere) as error:
            self._free(digest, held)
            tell(Denied(question.name, error))
        except _LetGo:
            self._free(digest, held)
        except asyncio.CancelledError:
            self._free(digest, held)
            raise
        else:
            held.busy = False
            tell(Granted(question.name))

    async def _recorded(self, question: WantedQuestion) -> RecordedAnswer | None:
        if self._stop is not None:
            raise self._stop
        if self._journal.claims is not None:
            return await self._journal.claims.claim(*question.digests, request=question.request)
        found = ((digest, self._journal.get(digest)) for digest in question.digests)
        return next((RecordedAnswer(digest, known) for digest, known in found if known is not None), None)

    def _check(self, held: _Held) -> None:
        """Raise what ends the wait for money."""
        if held.lost:
            raise _LetGo
        if self._stop is not None:
            raise self._stop

    def _leave(self, digest: str, held: _Held) -> None:
        """The worker of a question has let go of it, or is gone."""
        held.lost = True
        if held.busy:
            self._cashier.wake()
        else:
            self._free(digest, held)

    def _free(self, digest: str, held: _Held) -> None:
        """Nobody has this question any more."""
        self._release(held)
        if self._forget(digest, held) and self._journal.claims is not None:
            self._journal.claims.release(digest)

    def _forget(self, digest: str, held: _Held) -> bool:
        if self._held.get(digest) is not held:
            return False
        del self._held[digest], self._firsts[held.digest]
        held.freed.set_result(None)
        return True

    def _release(self, held: _Held) -> None:
        if held.reserved is not None:
            self._cashier.release(held.reserved)
            held.reserved = None


class SpreadJudge(Model):
    """A judge that divides its calls, as all its workers together."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.lost = Unfinished()
        """What the workers paid for without a completion."""

    @property
    def unfinished(self) -> Unfinished:
        """What the workers paid for without a completion."""
        return self.lost

    def sent(self, request: Request) -> SentRequests | None:
        """What a call sends."""
        return self._model.sent(request)
