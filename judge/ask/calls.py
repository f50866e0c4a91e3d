"""The calls of the loop: from a request to its completion, which comes from the journal wherever it can.

A call waits for money and for its turn, is made again while its failures may pass, and is recorded before it counts.
"""

import asyncio
from collections.abc import Callable, Sequence

from judge.ask.account import Budget, Settings, sent_together
from judge.ask.attempts import Attempts
from judge.ask.line import Clock, WaitingLine
from judge.ask.prompt_cut import REMEDY
from judge.ask.questions import Questions
from judge.ask.silence import Silence
from judge.ask.together import Replies, Together
from judge.errors import (
    AuthenticationError,
    CallError,
    Interrupted,
    PromptCutError,
    TransientError,
)
from judge.judges.journal import Journal
from judge.judges.model import FREE
from judge.judges.records import PROMPT_CUT, Completion, Request, storable

Writing = asyncio.Future[None] | None
"""What writes a reply to the disk; None where there is nothing to write."""
_FREE_UNWRITTEN = 64
"""Replies of a judge that nobody bills which may wait for the disk together."""


class Calls:
    """The calls of one loop to one judge; all of them share one pace and one budget.

    A judge that does not answer ends them. `tell` is called when all calls are held back.
    """

    def __init__(
        self, questions: Questions, journal: Journal, settings: Settings, tell: Callable[[], None], clock: Clock
    ) -> None:
        self._model = questions.model
        self._journal = journal
        self._account = questions.account
        self.budget = Budget(self._model, settings.max_cost, settings.known_prices)
        self._reading = questions.sample.reading()
        self.line = WaitingLine(model=self._model, settings=settings, check=self.check, tell=tell, clock=clock)
        self._attempts = Attempts(self._model, self.line, clock, settings.attempts)
        self.silence = Silence(self._model.name, settings)
        self.stopped: BaseException | None = None
        """Why no further call begins; None while calls may begin."""
        self.at_once = min(settings.concurrency, self._model.max_concurrency or settings.concurrency)
        """Calls in flight at most."""
        self.slots = asyncio.Semaphore(self.at_once)
        """One for each call in flight; whoever waits for the disk gives it away."""
        self._paid = asyncio.Event()
        """Set when those that wait for money should look again."""

    @property
    def workers(self) -> int:
        """Tasks that may be worked on at once: a reply waits for the disk while the next call is in flight.

        A crash must not cost more paid replies than calls in flight, however slow the disk is.
        """
        return self.at_once + max(self.at_once, _FREE_UNWRITTEN if self._model.price() == FREE else 0)

    def stop(self, error: BaseException) -> None:
        """Begin no further call; those in flight are finished and recorded. The first error is the one that counts."""
        self.stopped = self.stopped or error
        self._paid.set()
        self.line.end_sleeps()
        self._model.stop()

    def check(self) -> None:
        """Refuse to go on once the calls are stopped."""
        if self.stopped is not None:
            # What stopped them is raised once, because its traceback would grow with every worker that raises it.
            raise Interrupted("the calls are stopped")

    def end(self) -> None:
        """Raise what stopped the calls, or that none was answered."""
        if self.stopped is not None:
            raise self.stopped
        self.silence.check()

    def together(self, members: int) -> Together:
        """What joins the requests of so many who ask about one response."""
        return Together(self._model, self._paid_call, members)

    async def completion(
        self, digest: str, request: Request, together: Together | None = None
    ) -> tuple[Completion, Writing]:
        """The completion of a request, from the journal or from the judge, and what writes it to the disk.

        `together`: joins it with the requests of others; None where it is asked alone.

        The second is None where it is there. One that is made of replies is not paid for. A CallError if the call
        failed, or the judge did not read the whole request. An OperationalError if no further call can succeed, or the
        calls are stopped.
        """
        recorded = self._journal.get(digest)
        if recorded is not None:
            return recorded, None
        if request.replies is None:
            if together is None:
                (reply,) = await self._paid_call([request])
                if isinstance(reply, CallError):
                    raise reply
                completion = reply
            else:
                completion = await together.completion(request)
            cut = self._cut(request, completion)
            if cut is not None:
                # It is not recorded, so that the same command asks again once the server reads more.
                raise PromptCutError(f"{cut}: {REMEDY}")
        else:
            completion = await self._model.complete(request)
        parameters = self._model.parameters(request)
        return completion, self._journal.write(digest, self._model.name, parameters, request, completion)

    def _cut(self, request: Request, completion: Completion) -> str | None:
        """Why the judge did not read the whole request; None if nothing speaks for it."""
        if completion.finish_reason == PROMPT_CUT:
            return completion.text
        # A decision's count of tokens is its share of a call, and a recording is of calls that were looked at.
        if request.form == "decision" or self._model.recorded:
            return None
        return self._reading.cut(request.messages, completion)

    async def _paid_call(self, requests: Sequence[Request]) -> Replies:
        """Wait until the budget can pay for a call beside those in flight, and make it."""
        while True:
            self.check()
            reserved = self.budget.reserve(requests)
            if reserved is not None:
                break
            self._paid.clear()
            await self._paid.wait()
        try:
            replies = await self._attempts.make(requests)
            completions = [storable(reply) for reply in replies if isinstance(reply, Completion)]
            if completions:
                completions = self.budget.charge(requests, completions)
                self.silence.answered()
            else:
                self.silence.refused()
        except TransientError as error:
            dead = self.silence.give_up(error, requests[0])
            if dead is not None:
                self.stop(dead)
            raise
        except AuthenticationError as error:
            # A gateway may block a text as it refuses a key; without its name, one response would stop every run.
            refused = AuthenticationError(f"{error}{self.silence.about(requests[0])}")
            refused.status = error.status
            raise refused from error
        except CallError:
            self.silence.refused()
            raise
        finally:
            self.budget.release(reserved)
            self._paid.set()
        if completions:
            self._account.ask(self._model.name, requests, completions, sent_together(self._model, requests))
        charged = iter(completions)
        return [next(charged) if isinstance(reply, Completion) else reply for reply in replies]
