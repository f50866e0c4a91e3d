"""Several servers of one model, asked as if they were one: the least loaded takes the next call."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from judge.errors import CallError, JudgeError, OperationalError, RateLimitError, TransientError
from judge.judges.records import Completion, Request

IN_A_ROW = 3
"""Failures without an answer between them, after which a server is left for a second, then for twice as long."""
LONGEST = 60.0
"""Most seconds until a server that was left is tried again with one call, unless it asks to wait longer."""


class Endpoint:
    """One server, and how it does."""

    def __init__(self, url: str) -> None:
        self.url = url
        """The address, without credentials."""
        self.in_flight = self.answered = self.failures = 0
        self.trouble: str | None = None
        """Why it was left, in words; None while it is in use."""
        self.error: JudgeError | None = None
        self.until = 0.0

    def well(self, *, trial: bool) -> None:
        """It answered. A call that was sent before it was left takes nothing back."""
        if trial or self.error is None:
            self.error, self.trouble, self.failures, self.until = None, None, 0, 0.0

    def leave(self, error: JudgeError, now: float, *, trial: bool) -> None:
        """It failed: it is left at once if it asks for it or if no call can succeed, else after IN_A_ROW failures."""
        wait = error.retry_after if isinstance(error, TransientError) else None
        if trial or self.error is None:
            self.failures = max(self.failures + 1, IN_A_ROW if isinstance(error, OperationalError) else 0)
            if wait is None and self.failures >= IN_A_ROW:
                wait = min(LONGEST, 2.0 ** (self.failures - IN_A_ROW))
        if wait is not None:
            self.error, self.trouble = error, str(error)
            self.until = now + wait if trial else max(self.until, now + wait)


Post = Callable[[bytes, Request], Awaitable[Completion]]
"""Sends one request, as JSON, to one server."""


class Endpoints:
    """The servers of one model by address, without credentials; `clock` gives the time in seconds."""

    def __init__(self, servers: Mapping[str, Post], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers, self._clock = servers, clock
        self.all = tuple(map(Endpoint, servers))

    async def post(self, body: bytes, request: Request) -> Completion:
        """Send a request, as JSON in `body`, to one server after the other until one gives a completion.

        Raises:
            CallError: The request cannot succeed; TransientError if asking again may help.
            OperationalError: No server will take a call until the user fixes something.
        """
        failed: dict[Endpoint, JudgeError] = {}
        while (endpoint := self._choose(failed)) is not None:
            trial, endpoint.in_flight = endpoint.error is not None, endpoint.in_flight + 1
            if trial:
                endpoint.until = self._clock() + LONGEST
            try:
                completion = await self._servers[endpoint.url](body, request)
            except (OperationalError, TransientError) as error:
                failed[endpoint] = error
                endpoint.leave(error, self._clock(), trial=trial)
            except CallError:
                endpoint.well(trial=trial)
                raise
            else:
                endpoint.answered += 1
                endpoint.well(trial=trial)
                return completion
            finally:
                endpoint.in_flight -= 1
        raise self._error(failed)

    def _choose(self, tried: Collection[Endpoint]) -> Endpoint | None:
        """A server that is to be tried again, else the least loaded one in use; None where neither is there."""
        rest = [each for each in self.all if each not in tried and self._clock() >= each.until]
        return min(rest, key=lambda each: (each.error is None, each.in_flight, each.answered), default=None)

    def _error(self, failed: Mapping[Endpoint, JudgeError]) -> JudgeError:
        """One error for a call that no server took."""
        errors = {each: failed.get(each) or each.error for each in self.all}
        message = "; ".join(f"{each.url}: {error}" for each, error in errors.items())
        passing = {each: error for each, error in errors.items() if isinstance(error, TransientError)}
        if not passing:
            return next(type(error)(message) for error in errors.values() if error is not None)
        # Who asked for no wait may be tried at any time; a pause of ours is no wish of a provider.
        asked = all(error.retry_after is not None for error in passing.values())
        wait = min(each.until for each in passing) - self._clock() if asked else 0.0
        limited = all(isinstance(error, RateLimitError) for error in passing.values()) or (asked and not failed)
        return (RateLimitError if limited else TransientError)(message, wait if wait > 0 else None)
