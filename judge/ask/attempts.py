"""One call to a judge: sent when the limits allow it, and again while its failures may pass."""

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import tenacity

from judge.ask.estimates import TYPICAL_REPLY, estimated_tokens, grades_of
from judge.ask.pace import Pacer, Ticket
from judge.errors import OperationalError, RateLimitError, TransientError
from judge.models.model import Model
from judge.models.records import Completion, Request
from judge.text.steps import duration

LONGEST_BACKOFF = 60.0
"""Most seconds between two attempts of a call where the provider names no time."""
_CERTAIN = 5
"""Least refusals in a row after which a provider is believed to take no calls."""
_PAUSE = 1.0
"""Seconds of a common pause that are worth a word."""


class Attempts:
    """Sends the calls of one loop; all of them share one pace.

    Args:
        model: The judge.
        pacer: The pace.
        most: Most attempts of one call that fails; refusals for a rate limit do not count.
        max_wait: Most seconds that the provider may make us wait.
        stopped: Set when no further call may begin.
        check: Raises what stopped the loop.
        tell: Called when all calls are held back.
    """

    def __init__(
        self,
        model: Model,
        pacer: Pacer,
        most: int,
        max_wait: float,
        stopped: asyncio.Event,
        check: Callable[[], None],
        tell: Callable[[], None],
    ) -> None:
        self._model = model
        self._pacer = pacer
        self._most = most
        self._max_wait = max_wait
        self._stopped = stopped
        self._check = check
        self._tell = tell
        self._line = asyncio.Lock()
        self._news = asyncio.Event()
        """Set when the first call in line should look at the pace again."""
        self._reply: int | None = None

    async def complete(self, request: Request) -> Completion:
        """The completion of one request.

        Raises:
            CallError: The call failed, at last if its failures may pass.
            OperationalError: The provider makes us wait for too long, or the loop was stopped.
        """
        if self._reply is None:
            self._reply = counted_reply(self._model, request)
        tokens = estimated_tokens(request) + self._reply
        faults: list[TransientError] = []
        try:
            return await self._once(request, tokens, faults, 1)
        except TransientError as error:
            failed: TransientError | None = error
        # Tenacity is used only after a failure, because it costs as much CPU as a call; its first attempt is this one.
        async for attempt in tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientError),
            stop=lambda state: len(faults) >= self._most,
            wait=lambda state: _pause(state, len(faults)),
            sleep=functools.partial(_until, self._stopped),
            reraise=True,
        ):
            with attempt:
                if failed is not None:
                    first, failed = failed, None
                    raise first
                self._check()
                completion = await self._once(request, tokens, faults, attempt.retry_state.attempt_number)
        return completion

    async def _once(self, request: Request, tokens: int, faults: list[TransientError], attempt: int) -> Completion:
        """One attempt, in its turn; a failure that may pass is noted among `faults`, a rate limit is not."""
        ticket = await self._turn(tokens)
        started = time.perf_counter()
        try:
            completion = await self._model.complete(request)
        except RateLimitError as error:
            self._refused(ticket, error)
            raise
        except TransientError as error:
            faults.append(error)
            if len(faults) < self._most:
                self._failed(error)
            raise
        self._pacer.answered(ticket, self._model.limits, time.monotonic())
        self.wake()
        latency = completion.latency or round(time.perf_counter() - started, 3)
        return msgspec.structs.replace(completion, attempts=attempt, latency=latency)

    def limited(self) -> str:
        """How a rate limit holds the calls back, in few words; empty if it does not."""
        now = time.monotonic()
        held, rate = self._pacer.held(0, now), self._pacer.rate(now)
        if held > _PAUSE:
            return f"rate limit: waiting {duration(held)}"
        if not self._line.locked():
            return ""
        return "rate limit" if rate is None else f"rate limit: {rate:.3g} calls/s"

    def wake(self) -> None:
        """Let the first call in line look again, because the pace has changed or the loop has stopped."""
        self._news.set()

    async def _turn(self, tokens: int) -> Ticket:
        """Wait until a call of so many tokens may be sent, after those that wait already."""
        now = time.monotonic()
        if not self._line.locked() and self._pacer.wait(tokens, now) <= 0:
            return self._pacer.sent(tokens, now)
        async with self._line:
            while True:
                self._check()
                self._news.clear()
                now = time.monotonic()
                wait = self._pacer.wait(tokens, now)
                if wait <= 0:
                    return self._pacer.sent(tokens, now)
                held = self._pacer.held(tokens, now)
                if held > self._max_wait:
                    raise too_long(self._model.name, "its limits are used up", held, self._max_wait)
                await _until(self._news, wait)

    def _refused(self, ticket: Ticket, error: RateLimitError) -> None:
        """Take note of a refusal.

        Raises:
            OperationalError: The provider makes us wait for too long.
        """
        now, most = time.monotonic(), self._max_wait
        self._pacer.refused(ticket, error.retry_after, self._model.limits, now)
        if error.retry_after is not None and error.retry_after > most:
            raise too_long(self._model.name, str(error), error.retry_after, most)
        since = self._pacer.refused_since
        if since is not None and now - since > most and self._pacer.refusals >= _CERTAIN:
            raise OperationalError(
                f"{self._model.name} takes no calls: it refused all {self._pacer.refusals} of the last "
                f"{duration(now - since)} for a rate limit, longer than --max-wait {most:g} (seconds): give the same "
                f"command again later; the last refusal: {error}"
            )
        if self._pacer.held(0, now) > _PAUSE:
            self._tell()
        self.wake()

    def _failed(self, error: TransientError) -> None:
        """Hold all calls back where a failure says for how long.

        Raises:
            OperationalError: The provider makes us wait for too long.
        """
        if error.retry_after is None:
            return
        if error.retry_after > self._max_wait:
            raise too_long(self._model.name, str(error), error.retry_after, self._max_wait)
        self._pacer.hold(error.retry_after, time.monotonic())


def counted_reply(model: Model, request: Request) -> int:
    """The tokens of a reply that count against a limit as soon as its request is sent, by our own estimate.

    They are those of a typical reply, or of the longest possible one where the provider counts that.
    """
    sent = model.parameters(request)
    longest = sent.get("max_tokens") or sent.get("max_completion_tokens")
    return longest if model.counts_longest and isinstance(longest, int) else TYPICAL_REPLY * grades_of(request)


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


async def _until(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but not longer than so many seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _pause(state: tenacity.RetryCallState, faults: int) -> float:
    """Seconds until a call that failed gets into line again: what the provider asks, else a time by chance."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, TransientError) and error.retry_after is not None:
        return error.retry_after
    return 0.0 if isinstance(error, RateLimitError) else _wait(faults)


def _wait(faults: int) -> float:
    """Seconds until the next attempt where nobody names them: random within an exponentially growing window."""
    return random.uniform(0, min(LONGEST_BACKOFF, 2.0 ** (faults - 1)))  # noqa: S311 - no secret hangs on it
