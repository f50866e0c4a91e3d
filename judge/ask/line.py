"""The line in which calls wait for their turn: rate limits, what a provider asks to wait, and the end of waiting."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from judge.ask.account import Settings
from judge.ask.pace import Pace, Ticket
from judge.errors import OperationalError, RateLimitError, TransientError
from judge.io.steps import duration
from judge.judges.model import Model

_CERTAIN = 5
"""Least refusals in a row after which a provider is believed to take no calls."""
_PAUSE = 1.0
"""Seconds of a common pause that are worth a word."""


class Clock(NamedTuple):
    """The time of a loop; in a test, it passes as soon as somebody sleeps."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class WaitingLine:
    """The calls of one loop to one judge, which begin one after the other under one pace.

    `check` refuses to go on once the calls are stopped. `tell` is called when all calls are held back.
    """

    def __init__(
        self, model: Model, settings: Settings, check: Callable[[], None], tell: Callable[[], None], clock: Clock
    ) -> None:
        self._model = model
        self._most_wait = settings.max_wait
        self._check = check
        self._tell = tell
        self._clock = clock
        self._pace = Pace(settings.rpm, settings.tpm, clock.now)
        self._turn = asyncio.Lock()
        """Held by the call that is first in line."""
        self._first: asyncio.Future[None] | None = None
        """The sleep of that call."""
        self._sleeps: set[asyncio.Future[None]] = set()
        """Those that end once the calls are stopped."""

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit is on tokens, so far as anybody knows."""
        return bool(self._pace.limits)

    def limited(self) -> str:
        """How a rate limit holds the calls back, in few words; empty if it does not."""
        held = self._pace.held()
        if held > _PAUSE:
            return f"rate limit: waiting {duration(held)}"
        if not self._turn.locked():
            return ""
        return "rate limit" if self._pace.rate is None else f"rate limit: {self._pace.rate:.3g} calls/s"

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the calls are stopped."""
        await asyncio.wait([self._sleep(seconds)])

    def end_sleeps(self) -> None:
        """Let everybody look again, because the calls are stopped."""
        for sleep in self._sleeps:
            sleep.cancel()

    async def turn(self, tokens: int) -> Ticket:
        """Wait until a call of so many tokens may be sent, after those that wait already."""
        async with self._turn:
            while True:
                self._check()
                wait = self._pace.wait(tokens)
                if wait <= 0:
                    return self._pace.sent(tokens)
                held = self._pace.held(tokens)
                if held > self._most_wait:
                    raise too_long(self._model.name, "its limits are used up", held, self._most_wait)
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

    def answered(self, ticket: Ticket) -> None:
        """Take note of an answer."""
        self._pace.answered(ticket, self._model.limits)
        self._wake()

    def failed(self, error: TransientError) -> None:
        """Take note of a failure that may pass; an OperationalError if the provider makes us wait for too long."""
        self._check_wish(error)
        self._pace.hold(error.retry_after)

    def refused(self, ticket: Ticket, error: RateLimitError) -> None:
        """Take note of a refusal for a rate limit; an OperationalError if the provider makes us wait for too long."""
        most = self._most_wait
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
        if error.retry_after is not None and error.retry_after > self._most_wait:
            raise too_long(self._model.name, str(error), error.retry_after, self._most_wait)


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
