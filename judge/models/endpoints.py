"""Several servers of one model: which one takes the next call, and which one is set aside for a while. Pure.

Calls with the same start of a prompt go to the same server while its load allows, because a server computes such a
start once. A server that fails is set aside, and gets a call again after a pause that grows with each further failure.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

IN_A_ROW = 3
"""Failures without an answer between them, after which a server is set aside."""
FIRST_PAUSE = 1.0
"""Seconds after which a server that was set aside gets a call again; each further failure doubles them."""
LONGEST_PAUSE = 60.0
SHORT = 1.0
"""Seconds of a wish to wait, at most, that a reply takes back; whole seconds can say no less, and at a rate it is
long."""
SPREAD = 1.25
"""Most load of a server, as a multiple of the mean load (Mirrokni, Thorup and Zadimoghaddam 2018, SODA, 587-604)."""


class Endpoint:
    """One server, and how it does."""

    def __init__(self, url: str) -> None:
        self.url = url
        """The address, without credentials."""
        self.in_flight = 0
        self.answered = 0
        """Completions that came from it."""
        self.trouble: str | None = None
        """Why it is set aside; None while it is in use."""
        self._failures = 0
        self._pause = 0.0
        self._until = 0.0
        self._asked_to_wait = False
        self._not_before = 0.0
        """Until when no reply takes back that it asked to wait."""
        self._trial: Call | None = None
        """The call by which it proves itself."""


class Call(NamedTuple):
    """A call that is in flight; no two are the same object."""

    endpoint: Endpoint
    """The server that it was sent to."""
    aside: bool
    """Whether the server was set aside at that time."""


class Endpoints:
    """The servers of one model.

    Args:
        urls: Their addresses, without credentials.
        clock: Gives the time in seconds, from any beginning.
    """

    def __init__(self, urls: Sequence[str], clock: Callable[[], float]) -> None:
        self.all = tuple(map(Endpoint, urls))
        self._clock = clock

    def take(self, start: str, tried: Collection[Endpoint] = ()) -> Call | None:
        """Choose the server for a call; the caller says with one of the `end_…` methods how the call went.

        A server whose pause is over gets one call, by which it proves itself. Where no server is in use, those that
        failed are asked all the same; those that asked to wait are not.

        Args:
            start: Stands for the start of the prompt.
            tried: Servers at which this call has failed.

        Returns:
            The call and its server; None if there is none that this call may still be tried at.
        """
        due = self._due(tried)
        chosen = due or self._in_use(start, tried) or self._last_resort(tried)
        if chosen is None:
            return None
        chosen.in_flight += 1
        call = Call(chosen, chosen.trouble is not None)
        if due is not None:
            due._trial = call
        return call

    def _due(self, tried: Collection[Endpoint]) -> Endpoint | None:
        now = self._clock()
        due = (
            endpoint
            for endpoint in self.all
            if endpoint.trouble is not None
            and now >= endpoint._until
            and endpoint._trial is None
            and endpoint not in tried
        )
        return next(due, None)

    def _in_use(self, start: str, tried: Collection[Endpoint]) -> Endpoint | None:
        used = [endpoint for endpoint in self.all if endpoint.trouble is None]
        free = sorted(
            (endpoint for endpoint in used if endpoint not in tried),
            key=lambda endpoint: hashlib.sha256(f"{endpoint.url}\n{start}".encode("utf-8", "replace")).digest(),
        )
        if not free:
            return None
        mean = (sum(endpoint.in_flight for endpoint in used) + 1) / len(used)
        most = max(math.floor(SPREAD * mean), math.ceil(mean))
        below = (endpoint for endpoint in free if endpoint.in_flight < most)
        return next(below, None) or min(free, key=lambda endpoint: endpoint.in_flight)

    def _last_resort(self, tried: Collection[Endpoint]) -> Endpoint | None:
        if any(endpoint.trouble is None for endpoint in self.all):
            return None
        now = self._clock()
        rest = [
            endpoint
            for endpoint in self.all
            if endpoint not in tried and not (endpoint._asked_to_wait and now < endpoint._until)
        ]
        return min(rest, key=lambda endpoint: (endpoint.in_flight, endpoint._until), default=None)

    def wait(self, waiting: Collection[Endpoint]) -> float:
        """Seconds until the first of some servers that were set aside gets a call again."""
        return max(0.0, min(endpoint._until for endpoint in waiting) - self._clock())

    def end_answered(self, call: Call) -> None:
        """A call brought a completion."""
        call.endpoint.answered += 1
        self.end_replied(call)

    def end_replied(self, call: Call) -> None:
        """A call brought a reply that says something of the request, so the server is well."""
        endpoint = call.endpoint
        self._end(call)
        if endpoint._asked_to_wait and self._clock() < endpoint._not_before:
            # The call was in flight when the server asked to wait, and takes nothing of that back.
            return
        endpoint.trouble, endpoint._failures, endpoint._pause, endpoint._asked_to_wait = None, 0, 0.0, False
        # It is proved; what the trial brings is what any other call brings.
        endpoint._trial = None

    def end_failed(self, call: Call, why: str, *, lasting: bool = False, wait: float | None = None) -> None:
        """A call failed.

        Args:
            call: The call.
            why: The failure, in words.
            lasting: Whether the next call would fail too, so that the server is set aside at once.
            wait: Seconds that the server asks to wait; it is set aside for as long.
        """
        endpoint = call.endpoint
        self._end(call)
        now = self._clock()
        endpoint._failures += 1
        if wait is not None:
            self._set_aside(endpoint, why, now + wait)
            endpoint._asked_to_wait = True
            if wait > SHORT:
                endpoint._not_before = max(endpoint._not_before, now + wait)
        elif endpoint.trouble is None and (lasting or endpoint._failures >= IN_A_ROW):
            endpoint._pause = FIRST_PAUSE
            self._set_aside(endpoint, why, now + endpoint._pause)
        elif endpoint.trouble is not None and call.aside and now >= endpoint._until:
            # Calls that were in flight when the server was set aside say nothing new.
            endpoint._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * endpoint._pause))
            self._set_aside(endpoint, why, now + endpoint._pause)

    def end_unknown(self, call: Call) -> None:
        """A call was broken off by its caller."""
        self._end(call)

    def _set_aside(self, endpoint: Endpoint, why: str, until: float) -> None:
        endpoint.trouble, endpoint._until, endpoint._asked_to_wait = why, max(until, endpoint._until), False

    def _end(self, call: Call) -> None:
        call.endpoint.in_flight -= 1
        if call.endpoint._trial is call:
            call.endpoint._trial = None
