"""The attempts of a call: each in its turn, and another while the failure of the last one may pass."""

import functools
import itertools
from collections.abc import Iterator, Sequence

import msgspec
import tenacity

from judge.ask.account import TYPICAL_REPLY, estimated_call
from judge.ask.line import Clock, WaitingLine
from judge.ask.together import Replies
from judge.errors import RateLimitError, TransientError
from judge.judges.model import Model
from judge.judges.records import Completion, Request

_BACKOFF = tenacity.wait_random_exponential(max=60.0)
"""Seconds between two attempts of a call where the provider names no time."""


class Attempts:
    """Makes the calls to one judge, in the turns of one waiting line; `most` attempts each."""

    def __init__(self, model: Model, line: WaitingLine, clock: Clock, most: int) -> None:
        self._model = model
        self._line = line
        self._clock = clock
        self._again = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientError),
            stop=tenacity.stop_after_attempt(most),
            wait=_pause_after,
            sleep=line.pause,
            reraise=True,
        )

    async def make(self, requests: Sequence[Request]) -> Replies:
        """Make a call, and again while its failures may pass."""
        tokens = 0
        if self._line.counts_tokens:
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
            ticket = await self._line.turn(tokens)
            number = next(numbers)
            started = self._clock.now()
            try:
                if len(requests) == 1:
                    replies: Replies = [await self._model.complete(requests[0])]
                else:
                    replies = await self._model.complete_together(requests)
            except RateLimitError as error:
                self._line.refused(ticket, error)
                await self._line.pause(error.retry_after or 0.0)
            except TransientError as error:
                self._line.failed(error)
                raise
            else:
                self._line.answered(ticket)
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
