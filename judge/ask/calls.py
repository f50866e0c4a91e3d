"""The calls of the loop: from a request to its completion, which comes from the journal wherever it can.

Nothing is asked twice: every completion goes through the journal, and tasks with the same question share one call,
also where one of them would be asked in another answer form than the other.
"""

import asyncio
import functools
from collections.abc import Callable
from typing import NamedTuple

from judge.ask.attempts import Attempts
from judge.ask.cashier import Cashier
from judge.ask.silence import Silence
from judge.errors import AuthenticationError, CallError, TransientError
from judge.models.call_parts import CallParts
from judge.models.journal import Journal, QuestionClaims, RecordedAnswer
from judge.models.journal_rows import storable
from judge.models.model import FREE, Model
from judge.models.records import Completion, Request

_FREE_UNWRITTEN = 64
"""Replies of a judge that nobody bills which may wait for the disk together."""


class AnsweredInForm(Exception):
    """The question has an answer in another form than the one that was to be asked."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


class _Call(NamedTuple):
    """A call in flight."""

    digest: str
    """Of its request."""
    reply: asyncio.Task[Completion]


class Calls:
    """The calls of one loop to one judge.

    Args:
        model: The judge.
        journal: Holds every paid completion.
        cashier: Pays for the calls.
        attempts: Sends the calls.
        silence: Counts what the judge answers.
        given_up: Called with a call's last failure, digest, request and `far`, when it is given up.
        check: Raises what stopped the loop.
        end: Stops the loop with an error.
    """

    def __init__(
        self,
        model: Model,
        journal: Journal,
        cashier: Cashier,
        attempts: Attempts,
        silence: Silence,
        given_up: Callable[[TransientError, str, Request, bool], None],
        check: Callable[[], None],
        end: Callable[[BaseException], None],
    ) -> None:
        self._model = model
        self._journal = journal
        self._claims = journal.claims
        self._cashier = cashier
        self._attempts = attempts
        self._silence = silence
        self._given_up = given_up
        self._check = check
        self._end = end
        self._parts = CallParts(journal)
        model.keep(self._parts)
        self._in_flight: dict[str, _Call] = {}
        """By question, which the first digest in which it can be asked stands for."""
        self._unwritten: dict[str, asyncio.Future[None]] = {}
        self.at_once = 0
        """Calls in flight at most; so many paid completions may be on their way to the disk."""
        self._free = _FREE_UNWRITTEN if model.price() == FREE else 0

    def write_of(self, digest: str | None) -> "asyncio.Future[None] | None":
        """What writes a completion to the disk; None if nothing does."""
        return None if digest is None else self._unwritten.get(digest)

    def stop(self, error: BaseException) -> None:
        """Let nobody wait for leave to ask, because the loop has stopped."""
        self._attempts.wake()
        if self._claims is not None:
            self._claims.give_up(error)

    async def written(self) -> None:
        """Wait until every completion is on the disk."""
        if self._unwritten:
            await asyncio.wait(list(self._unwritten.values()))

    def forget_parts(self) -> None:
        """Remove what was kept of calls that have a completion by now.

        Raises:
            OperationalError: The journal cannot be written.
        """
        self._parts.forget()

    async def completion(self, digest: str, request: Request, firsts: tuple[str, ...], *, far: bool) -> Completion:
        """The completion of a request: from the journal, from an identical call in flight, or from the model.

        Args:
            digest: The digest of the request.
            request: The request.
            firsts: Digests of the first requests with which its task can be asked, one for each answer form, in the
                same order for every task and every process.
            far: Whether it has least to do with what was asked before it.

        Raises:
            AnsweredInForm: There is an answer to another one of `firsts`.
            HeldElsewhere: Another process is asking the question.
            CallError: The call failed.
            OperationalError: No further call can succeed, or the loop was stopped.
        """
        forms = firsts if digest in firsts else (digest,)
        question = forms[0]
        while (call := self._in_flight.get(question)) is not None:
            if call.digest == digest:
                try:
                    return await asyncio.shield(call.reply)
                except AnsweredInForm as other:
                    # The task that asked may have more forms left than this one.
                    if other.digest in forms:
                        raise
                    continue
            await asyncio.wait([call.reply])
            if call.digest not in forms:
                # The answer was of no use, and is on its way to the disk.
                if (write := self.write_of(call.digest)) is not None:
                    await asyncio.wait([write])
            elif not call.reply.cancelled() and call.reply.exception() is None:
                raise AnsweredInForm(call.digest)
        if self._claims is None:
            recorded = self._recorded(forms)
            if recorded is not None:
                return _in_form(recorded, digest)
            reply = asyncio.ensure_future(self._ask(digest, request, far=far))
        else:
            reply = asyncio.ensure_future(self._claim(self._claims, forms, digest, request, far=far))
        self._in_flight[question] = _Call(digest, reply)
        reply.add_done_callback(functools.partial(self._replied, question, digest))
        return await reply

    def _recorded(self, forms: tuple[str, ...]) -> RecordedAnswer | None:
        """The answer that the journal holds; that in the first form, if there are several."""
        found = ((digest, self._journal.get(digest)) for digest in forms)
        return next((RecordedAnswer(digest, known) for digest, known in found if known is not None), None)

    def _replied(self, question: str, digest: str, _: "asyncio.Future[Completion]") -> None:
        """A call has ended; its completion is shared until it is on the disk, where the journal answers for it."""
        write = self._unwritten.get(digest)
        if write is None:
            del self._in_flight[question]
        else:
            write.add_done_callback(lambda _: self._in_flight.pop(question))

    async def _claim(
        self, claims: QuestionClaims, forms: tuple[str, ...], digest: str, request: Request, *, far: bool
    ) -> Completion:
        """The completion of a request in a journal that other processes write too.

        Raises:
            HeldElsewhere: One of them is asking it.
            AnsweredInForm: One of them has an answer in another form.
        """
        self._check()
        recorded = await claims.claim(*forms, request=request)
        if recorded is not None:
            self._silence.remembered()
            return _in_form(recorded, digest)
        try:
            completion = await self._ask(digest, request, far=far)
        except BaseException:
            claims.release(forms[0])
            raise
        if digest != forms[0]:
            # Once its answer is written, whoever claims the first request finds it.
            if (write := self._unwritten.get(digest)) is None:
                claims.release(forms[0])
            else:
                write.add_done_callback(lambda _: claims.release(forms[0]))
        return completion

    async def _ask(self, digest: str, request: Request, *, far: bool) -> Completion:
        reserved = await self._cashier.afford(request, self._check)
        try:
            completion = await self._attempts.complete(request)
            completion = self._cashier.charge(request, storable(completion))
        except TransientError as error:
            self._given_up(error, digest, request, far)
            raise
        except AuthenticationError as error:
            # A gateway may block a text as it refuses a key; without its name, one response would stop every run.
            raise AuthenticationError(f"{error}{self._silence.about(request)}") from error
        except CallError:
            self._silence.refused()
            raise
        finally:
            self._cashier.release(reserved)
        write = self._cashier.record(digest, self._model.parameters(request), request, completion)
        self._unwritten[digest] = write
        write.add_done_callback(functools.partial(self._written, digest))
        if len(self._unwritten) > max(self.at_once, self._free):
            # A crash must not cost more paid replies than calls in flight, however slow the disk is.
            await asyncio.wait([write])
        return completion

    def _written(self, digest: str, write: "asyncio.Future[None]") -> None:
        """A completion is on the disk; one that cannot be written stays among the unwritten, and settles nothing."""
        error = write.exception()
        if error is not None:
            self._end(error)
            return
        del self._unwritten[digest]
        self._parts.finished(digest)


def _in_form(recorded: RecordedAnswer, digest: str) -> Completion:
    """The completion of the request with this digest.

    Raises:
        AnsweredInForm: The answer is to another request.
    """
    if recorded.digest != digest:
        raise AnsweredInForm(recorded.digest)
    return recorded.completion
