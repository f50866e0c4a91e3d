"""A watch over the head of a Ray cluster, in a thread of its own: Ray blocks the event loop when its head is gone."""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from judge.errors import OperationalError

LOOK = 2.0
"""Seconds between two looks."""
SILENCE = 20.0
"""Seconds for which a head may not answer: it may be started again in the meantime."""
STEP = 15.0
"""Seconds for a step to end the job."""
_HEADER = 9
"""Bytes before each frame of HTTP/2."""
_KIND = 3
"""Where in them the kind of the frame stands."""
_SETTINGS = 4
"""The kind of the first frame of each side."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0))
"""What a client says first, with no settings of its own."""


class HeadWatch:
    """Looks whether the head of a cluster answers, as long as the block runs, and ends the process in the worst case.

    Args:
        address: The head's `HOST:PORT`.
        steps: Called one after the other where it does not answer, until the block has ended.
    """

    def __init__(self, address: str, steps: Sequence[Callable[[], object]]) -> None:
        self._address = address
        self._steps = steps
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="judge-head", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        # A look takes a while where nothing comes back.
        self._thread.join(LOOK)

    def _watch(self) -> None:
        heard = time.monotonic()
        while not self._over.wait(LOOK):
            if listens(self._address, LOOK):
                heard = time.monotonic()
            elif time.monotonic() - heard >= SILENCE:
                self._end()
                return

    def _end(self) -> None:
        for step in self._steps:
            step()
            if self._over.wait(STEP):
                return
        sys.stderr.write(f"\njudge: {lost_head(self._address)}\n")
        leave()


def is_head(address: str, patience: float) -> bool:
    """Whether what listens at an address may be a head, which speaks HTTP/2 (RFC 9113, section 3.4).

    Args:
        address: `HOST:PORT`.
        patience: Seconds to wait for each of its words.

    Raises:
        OSError: Nobody listens.
    """
    with _connected(address, patience) as connection:
        if os.environ.get("RAY_USE_TLS", "0") not in ("0", ""):
            return True
        said = b""
        with contextlib.suppress(OSError):
            connection.sendall(_GREETING)
            while len(said) < _HEADER and (more := connection.recv(_HEADER - len(said))):
                said += more
    return len(said) == _HEADER and said[_KIND] == _SETTINGS


def lost_head(address: str) -> OperationalError:
    """What ends a run without its head."""
    return OperationalError(
        f"the head of the Ray cluster at {address} does not answer; the same command goes on from here"
    )


def leave() -> None:
    """End the process at once: neither Ray nor a loop that it blocks ends in any other way."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(OperationalError.exit_code)


def listens(address: str, patience: float) -> bool:
    """Whether anybody listens at an address.

    Args:
        address: `HOST:PORT`.
        patience: Seconds to wait.
    """
    try:
        _connected(address, patience).close()
    except OSError:
        return False
    return True


def _connected(address: str, patience: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), patience)
