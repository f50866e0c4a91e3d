"""A limit for tests that would hang without end, for any test that waits for processes or an event loop."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

_AGAIN = 10.0
"""Seconds until a test is ended again that goes on with its waiting."""

PATIENCE = 300.0
"""Seconds that a test waits for what has to happen, however busy the machine is."""


def wait_until(met: Callable[[], bool]) -> None:
    """Return once it is so."""
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class TimeLimitError(Exception):
    """A test took longer than it may."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block with an error when its time is up, whatever it waits for in the main thread.

    Args:
        seconds: Far more than a busy machine needs.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeLimitError(f"not at an end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
