"""The calls of the loop: from a request to its completion, which comes from the journal wherever it can.

A call waits for money and for its turn, is made again while its failures may pass, and is recorded before it counts.
"""

import asyncio
import functools
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
import tenacity

from judge.ask.account import TYPICAL_REPLY, Budget, Settings, estimated_call, sent_together
from judge.ask.pace import Pace, Ticket
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
from judge.io.steps import duration
from judge.judges.journal import Journal
from judge.judges.model import FREE, Model
from judge.judges.records import PROMPT_CUT, Completion, Request, storable

_BACKOFF = tenacity.wait_random_exponential(max=60.0)
"""Seconds between two attempts of a call where the provider names no time."""
_CERTAIN = 5
"""Least refusals in a row after which a provider is believed to take no calls."""
_PAUSE = 1.0
"""Seconds of a common pause that are worth a word."""
_FEWEST = 3
"""Least calls given up in a row after which a judge is believed to be dead that has answered nothing."""
_UNREADABLE = 20
"""The same where it has answered others: some texts may be such that no judge can read them."""
_FREE_UNWRITTEN = 64
"""Replies of a judge that nobody bills which may wait for the disk together."""


class Clock(NamedTuple):
    """The time of a loop; in a test, it passes as soon as somebody sleeps."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


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
        self._tell = tell
        self._clock = clock
        self.budget = Budget(self._model, settings.max_cost, settings.known_prices)
        self._reading = questions.reading()
        self._pace = Pace(settings.rpm, settings.tpm, clock.now)
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
            sleep=self.pause,
            reraise=True,
        )
        self._line = asyncio.Lock()
        """Held by the call that is first in line."""
        self._first: asyncio.Future[None] | None = None
        """The sleep of that call."""
        self._sleeps: set[asyncio.Future[None]] = set()
        """Those that end once the calls are stopped."""
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
        for sleep in self._sleeps:
            sleep.cancel()
        self._model.stop()

    def check(self) -> None:
        """Refuse to go on once the calls are stopped."""
        if self.stopped is not None:
            # What stopped them is raised once, because its traceback would grow with every worker that raises it.
            raise Interrupted("the calls are stopped")

    def limited(self) -> str:
        """How a rate limit holds the calls back, in few words; empty if it does not."""
        held = self._pace.held()
        if held > _PAUSE:
            return f"rate limit: waiting {duration(held)}"
        if not self._line.locked():
            return ""
        return "rate limit" if self._pace.rate is None else f"rate limit: {self._pace.rate:.3g} calls/s"

    def end(self) -> None:
        """Raise what stopped the calls, or that none was answered."""
        if self.stopped is not None:
            raise self.stopped
        if self._silence is not None and not (self.heard or self._refused):
            raise self._silence

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the calls are stopped."""
        await asyncio.wait([self._sleep(seconds)])

    def together(self, members: int) -> Together:
        """What joins the requests of so many who ask about one response."""
        return Together(self._model, self._paid_call, members)

    async def completion(
        self, digest: str, request: Request, together: Together | None = None
    ) -> "tuple[Completion, asyncio.Future[None] | None]":
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
        if self._pace.limits:
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
            ticket = await self._in_line(tokens)
            number = next(numbers)
            started = self._clock.now()
            try:
                if len(requests) == 1:
                    replies: Replies = [await self._model.complete(requests[0])]
                else:
                    replies = await self._model.complete_together(requests)
            except RateLimitError as error:
                self._refused_for_limit(ticket, error)
                await self.pause(error.retry_after or 0.0)
            except TransientError as error:
                self._check_wish(error)
                self._pace.hold(error.retry_after)
                raise
            else:
                self._pace.answered(ticket, self._model.limits)
                self._wake()
                return _as_one_call(replies, number, self._clock.now() - started)

    async def _in_line(self, tokens: int) -> Ticket:
        """Wait until a call of so many tokens may be sent, after those that wait already."""
        async with self._line:
            while True:
                self.check()
                wait = self._pace.wait(tokens)
                if wait <= 0:
                    return self._pace.sent(tokens)
                held = self._pace.held(tokens)
                if held > self._settings.max_wait:
                    raise too_long(self._model.name, "its limits are used up", held, self._settings.max_wait)
                self._first = self._sleep(wait)
                await asyncio.wait([self._first])

    def _sleep(self, seconds: float) -> "asyncio.Future[None]":
        """A sleep that ends early when it is canceled or the calls are stopped."""
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        self._sleeps.add(sleep)
        sleep.add_done_callback(self._sleeps.discard)
        return sleep

    def _wake(self) -> None:
        """Let the first call in line look again, because the pace has changed."""
        if self._first is not None:
            self._first.cancel()

    def _refused_for_limit(self, ticket: Ticket, error: RateLimitError) -> None:
        """Take note of a refusal for a rate limit; an OperationalError if the provider makes us wait for too long."""
        most = self._settings.max_wait
        pace = self._pace
        pace.refused(ticket, error.retry_after, self._model.limits)
        self._check_wish(error)
        if pace.refusing > most and pace.refusals >= _CERTAIN:
            raise OperationalError(
                f"{self._model.name} takes no calls: it refused all {pace.refusals} of the last "
                f"{duration(pace.refusing)} for a rate limit, longer than --max-wait {most:g} (seconds): give the "
                f"same command again later; the last refusal: {error}"
            )
        if pace.held() > _PAUSE:
            self._tell()
        self._wake()

    def _check_wish(self, error: TransientError) -> None:
        """Refuse to wait for longer than the user wants, as an OperationalError."""
        if error.retry_after is not None and error.retry_after > self._settings.max_wait:
            raise too_long(self._model.name, str(error), error.retry_after, self._settings.max_wait)


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


def too_long(judge: str, why: str, seconds: float, most: float) -> OperationalError:
    """The error for a wait that is longer than the user wants; it says when the same command may be given again."""
    try:
        then = f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        then = "never"
    return OperationalError(
        f"{judge}: {why.rstrip('.')}; the provider asks to wait {duration(seconds)}, longer than --max-wait "
        f"{most:g} (seconds): give the same command again after {then}, or raise --max-wait"
    )


def _pause_after(failed: tenacity.RetryCallState) -> float:
    """Seconds until the next attempt: as the provider asks, else random within a window that doubles each time."""
    error = failed.outcome and failed.outcome.exception()
    wish = error.retry_after if isinstance(error, TransientError) else None
    return _BACKOFF(failed) if wish is None else wish
