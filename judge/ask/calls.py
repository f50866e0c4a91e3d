"""The calls of the loop: from a request to its completion, which comes from the journal wherever it can.

Nothing is asked twice: every completion goes through the journal, and identical requests in flight share one call.
"""

import asyncio
import functools
from collections.abc import Callable

from judge.ask.attempts import Attempts
from judge.ask.cashier import Cashier
from judge.ask.silence import Silence
from judge.errors import AuthenticationError, CallError, TransientError
from judge.models.call_parts import CallParts, Resumable
from judge.models.model import Model
from judge.models.open_journal import OpenJournal, QuestionClaims
from judge.models.records import Completion, Request
from judge.models.storable import storable


class AnsweredInForm(Exception):
    """The journal has an answer to the question in another form than the one that was to be asked."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


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
        journal: OpenJournal,
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
        if isinstance(model, Resumable):
            model.keep(self._parts)
        self._in_flight: dict[str, asyncio.Task[Completion]] = {}
        self._unwritten: dict[str, asyncio.Future[None]] = {}
        self.at_once = 0
        """Calls in flight at most; so many completions may be on their way to the disk."""

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
            firsts: Digests of the first requests with which its task can be asked, where several processes ask.
            far: Whether it has least to do with what was asked before it.

        Raises:
            AnsweredInForm: The journal has an answer to another one of `firsts`.
            HeldElsewhere: Another process is asking the question.
            CallError: The call failed.
            OperationalError: No further call can succeed, or the loop was stopped.
        """
        recorded = self._journal.get(digest) if self._claims is None else None
        if recorded is not None:
            return recorded
        call = self._in_flight.get(digest)
        if call is not None:
            return await asyncio.shield(call)
        if self._claims is None:
            call = asyncio.ensure_future(self._ask(digest, request, far=far))
        else:
            digests = firsts if digest in firsts else (digest,)
            call = asyncio.ensure_future(self._claim(self._claims, digests, digest, request, far=far))
        self._in_flight[digest] = call
        try:
            return await call
        finally:
            # Until it is on the disk, the journal does not answer for it.
            if digest not in self._unwritten:
                self._in_flight.pop(digest, None)

    async def _claim(
        self, claims: QuestionClaims, digests: tuple[str, ...], digest: str, request: Request, *, far: bool
    ) -> Completion:
        """The completion of a request in a journal that other processes write too.

        Raises:
            HeldElsewhere: One of them is asking it.
            AnsweredInForm: One of them has an answer in another form.
        """
        self._check()
        recorded = await claims.claim(*digests, request=request)
        if recorded is not None:
            self._silence.remembered()
            if recorded.digest != digest:
                raise AnsweredInForm(recorded.digest)
            return recorded.completion
        try:
            completion = await self._ask(digest, request, far=far)
        except BaseException:
            claims.release(digests[0])
            raise
        if digest != digests[0]:
            # Once its answer is written, whoever claims the first request finds it.
            if (write := self._unwritten.get(digest)) is None:
                claims.release(digests[0])
            else:
                write.add_done_callback(lambda _: claims.release(digests[0]))
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
        if len(self._unwritten) > self.at_once:
            # A crash must not cost more replies than calls in flight, however slow the disk is.
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
        self._in_flight.pop(digest, None)
