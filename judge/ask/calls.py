"""The calls of the loop: from a request to its completion, which comes from the journal wherever it can.

A call waits for money and for its turn, is made again while its failures may pass, and is recorded before it counts.
"""

import asyncio
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec
import tenacity

from judge.ask.account import TYPICAL_REPLY, Budget, Settings, estimated_call, sent_together
from judge.ask.line import Clock, WaitingLine
from judge.ask.prompt_cut import REMEDY
from judge.ask.questions import Questions
from judge.ask.together import Replies, Together
from judge.errors import (
    AuthenticationError,
    CallError,
    Interrupted,
    OperationalError,
    PromptCutError,
    RateLimitError,
    TransientError,
)
from judge.judges.journal import Journal
from judge.judges.model import FREE, Model
from judge.judges.records import PROMPT_CUT, Completion, Request, storable

Writing = asyncio.Future[None] | None
"""What writes a reply to the disk; None where there is nothing to write."""
_BACKOFF = tenacity.wait_random_exponential(max=60.0)
"""Seconds between two attempts of a call where the provider names no time."""
_FEWEST = 3
"""Least calls given up in a row after which a judge is believed to be dead that has answered nothing."""
_UNREADABLE = 20
"""The same where it has answered others: some texts may be such that no judge can read them."""
_FREE_UNWRITTEN = 64
"""Replies of a judge that nobody bills which may wait for the disk together."""


class Calls:
    """The calls of one loop to one judge; all of them share one pace and one budget.

    A judge that does not answer ends them, by the calls that were given up in a row. `tell` is called when all calls
    are held back.
    """

    def __init__(
        self, questions: Questions, journal: Journal, settings: Settings, tell: Callable[[], None], clock: Clock
    ) -> None:
        self._model = questions.model
        self._journal = journal
        self._settings = settings
        self._account = questions.account
        self._clock = clock
        self.budget = Budget(self._model, settings.max_cost, settings.known_prices)
        self._reading = questions.reading()
        self.line = WaitingLine(self._model, settings, self.check, tell, clock)
        self.stopped: BaseException | None = None
        """Why no further call begins; None while calls may begin."""
        self.at_once = min(settings.concurrency, self._model.max_concurrency or settings.concurrency)
        """Calls in flight at most."""
        self.slots = asyncio.Semaphore(self.at_once)
        """One for each call in flight; whoever waits for the disk gives it away."""
        self.given_up = 0
        """Calls given up since the last answer."""
        self.heard = False
        """Whether the judge has answered a question, in this run or in the journal."""
        self._silence: OperationalError | None = None
        """The error of a run in which the judge answers nothing."""
        self._refused = False
        """Whether the judge has refused a request for what the request is."""
        self._again = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientError),
            stop=tenacity.stop_after_attempt(settings.attempts),
            wait=_pause_after,
            sleep=self.line.pause,
            reraise=True,
        )
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
        if self._silence is not None and not (self.heard or self._refused):
            raise self._silence

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
            replies = await self._sent(requests)
            completions = [storable(reply) for reply in replies if isinstance(reply, Completion)]
            if completions:
                completions = self.budget.charge(requests, completions)
                self.given_up = 0
                self.heard = True
            else:
                self._refused = True
        except TransientError as error:
            self._give_up(error, requests[0])
            raise
        except AuthenticationError as error:
            # A gateway may block a text as it refuses a key; without its name, one response would stop every run.
            refused = AuthenticationError(f"{error}{self._about(requests[0])}")
            refused.status = error.status
            raise refused from error
        except CallError:
            self._refused = True
            raise
        finally:
            self.budget.release(reserved)
            self._paid.set()
        if completions:
            self._account.ask(self._model.name, requests, completions, sent_together(self._model, requests))
        charged = iter(completions)
        return [next(charged) if isinstance(reply, Completion) else reply for reply in replies]

    def _give_up(self, error: TransientError, request: Request) -> None:
        """Count a call that was given up after a last failure; end the calls once no answer is to be expected."""
        self.given_up += 1
        self._silence = OperationalError(
            f"{self._model.name} does not answer: {self.given_up} calls in a row were given up after "
            f"{self._settings.attempts} attempts each, the last: {error}{self._about(request)}"
        )
        if self.given_up >= max(_UNREADABLE if self.heard else _FEWEST, self._settings.concurrency):
            self.stop(self._silence)

    def _about(self, request: Request) -> str:
        """Which response a call was about, where others had an answer: its text may be the cause."""
        if not self.heard:
            return ""
        return f"; others had an answer, and this call was about {request.response_id} of turn {request.turn_id}"

    async def _sent(self, requests: Sequence[Request]) -> Replies:
        """Make a call, and again while its failures may pass."""
        tokens = 0
        if self.line.counts_tokens:
            tokens = sum(estimated_call(self._model, requests, counted_reply(self._model, requests[0])))
        attempt = functools.partial(self._attempt, requests, tokens, itertools.count(1))
        try:
            return await attempt()
        except TransientError as error:
            first = [error]

        async def next_attempt() -> Replies:
            if first:
                raise first.pop()
            return await attempt()

        # tenacity takes a quarter of the CPU of a call, so it is told of a first attempt only once that has failed.
        return await self._again(next_attempt)

    async def _attempt(self, requests: Sequence[Request], tokens: int, numbers: Iterator[int]) -> Replies:
        """Make a call in its turn, and again where it is refused for a rate limit, which is no failure."""
        while True:
            ticket = await self.line.turn(tokens)
            number = next(numbers)
            started = self._clock.now()
            try:
                if len(requests) == 1:
                    replies: Replies = [await self._model.complete(requests[0])]
                else:
                    replies = await self._model.complete_together(requests)
            except RateLimitError as error:
                self.line.refused(ticket, error)
                await self.line.pause(error.retry_after or 0.0)
            except TransientError as error:
                self.line.failed(error)
                raise
            else:
                self.line.answered(ticket)
                return _as_one_call(replies, number, self._clock.now() - started)


def _as_one_call(replies: Replies, attempts: int, seconds: float) -> Replies:
    """The replies to one call, the first completion with its attempts and its duration, which others do not repeat."""
    latency: float | None = sum(reply.latency or 0.0 for reply in replies if isinstance(reply, Completion))
    latency = latency or round(seconds, 3)
    told: Replies = []
    for reply in replies:
        if isinstance(reply, Completion):
            told.append(msgspec.structs.replace(reply, attempts=attempts, latency=latency))
            attempts = 0
            latency = None
        else:
            told.append(reply)
    return told


def counted_reply(model: Model, request: Request) -> int:
    """The tokens of a reply that count against a limit as soon as its request is sent, by our own estimate.

    They are those of a typical reply, or of the longest possible one where the provider counts that.
    """
    sent = model.parameters(request)
    longest = sent.get("max_tokens") or sent.get("max_completion_tokens")
    return longest if model.counts_longest and isinstance(longest, int) else TYPICAL_REPLY


def _pause_after(failed: tenacity.RetryCallState) -> float:
    """Seconds until the next attempt: as the provider asks, else random within a window that doubles each time."""
    error = failed.outcome and failed.outcome.exception()
    wish = error.retry_after if isinstance(error, TransientError) else None
    return _BACKOFF(failed) if wish is None else wish
