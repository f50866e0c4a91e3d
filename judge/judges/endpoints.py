"""Several servers of one model, asked as if they were one: the least loaded takes the next call."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from judge.errors import JudgeError, OperationalError, RateLimitError, TransientError
from judge.judges.records import Completion, Request

Post = Callable[[bytes, Request], Awaitable[Completion]]
IN_A_ROW, LONGEST = 3, 60.0
"""Failures after which a server is left for a second, then for twice as long, and most seconds unless it asks."""


class Endpoint:
    """One server, by its address without credentials, and how it does."""

    def __init__(self, url: str) -> None:
        self.url, self.until = url, 0.0
        self.in_flight = self.answered = self.failures = 0
        self.trouble: JudgeError | None = None
        """Why it was left; None while it is in use."""

    def note(self, error: JudgeError | None, now: float, *, trial: bool) -> None:
        """What a call came to: the server is left if it asks for a wait, if none can succeed, or after IN_A_ROW."""
        wait = error.retry_after if isinstance(error, TransientError) else None
        if trial or self.trouble is None:
            self.failures = max(self.failures + 1, isinstance(error, OperationalError) * IN_A_ROW) if error else 0
            if wait is None and self.failures >= IN_A_ROW:
                wait = min(LONGEST, 2.0 ** (self.failures - IN_A_ROW))
            if wait is not None or error is None:
                self.trouble, self.until = error, now + (wait or 0.0)
        elif wait is not None:  # the call was sent before the server was left: it may only lengthen the wait
            self.trouble, self.until = error, max(self.until, now + wait)


class Endpoints:
    """The servers of one model by address, each with what sends it a request as JSON; `clock` gives the seconds."""

    def __init__(self, posts: Mapping[str, Post], clock: Callable[[], float] = time.monotonic) -> None:
        self._posts, self._clock, self.all = posts, clock, tuple(map(Endpoint, posts))

    async def post(self, body: bytes, request: Request) -> Completion:
        """Ask one server after the other until one gives a completion; the errors are those of a call to one."""
        failed: dict[Endpoint, JudgeError] = {}
        while (endpoint := self._choose(failed)) is not None:
            trial, endpoint.in_flight = endpoint.trouble is not None, endpoint.in_flight + 1
            if trial:
                endpoint.until = self._clock() + LONGEST
            try:
                completion = await self._posts[endpoint.url](body, request)
                endpoint.answered += 1
                endpoint.note(None, self._clock(), trial=trial)
                return completion
            except JudgeError as error:
                passed_on = not isinstance(error, OperationalError | TransientError)
                endpoint.note(None if passed_on else error, self._clock(), trial=trial)
                if passed_on:
                    raise
                failed[endpoint] = error
            finally:
                endpoint.in_flight -= 1
        raise self._error(failed)

    def _choose(self, tried: Collection[Endpoint]) -> Endpoint | None:
        """A server that is to be tried again, else the least loaded one in use; None where neither is there."""
        rest = [each for each in self.all if each not in tried and self._clock() >= each.until]
        return min(rest, key=lambda each: (each.trouble is None, each.in_flight, each.answered), default=None)

    def _error(self, failed: Mapping[Endpoint, JudgeError]) -> JudgeError:
        """One error for a call that no server took."""
        errors = {each: failed.get(each) or each.trouble for each in self.all}
        message = "; ".join(f"{each.url}: {error}" for each, error in errors.items())
        passing = {each: error for each, error in errors.items() if isinstance(error, TransientError)}
        if not passing:
            return next(type(error)(message) for error in errors.values() if error)
        # Who asked for no wait may be tried at any time; a pause of ours is no wish of a provider.
        asked = all(error.retry_after is not None for error in passing.values())
        wait = min(each.until for each in passing) - self._clock() if asked else 0.0
        limited = all(isinstance(error, RateLimitError) for error in passing.values()) or (asked and not failed)
        return (RateLimitError if limited else TransientError)(message, wait if wait > 0 else None)
