"""A watch over the head of a Ray cluster and the node of the driver, without both of which Ray blocks or waits forever.

It has a thread of its own, because Ray may block the event loop.
"""

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

_PATIENCE = 10.0
"""Seconds for which a head that is looked for may be silent."""
LOOK = 2.0
"""Seconds between two looks."""
SILENCE = 20.0
"""Seconds for which a process of Ray may not answer: a head may be started again in the meantime."""
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
    """Looks whether head and node answer, as long as the block runs, and ends the process in the worst case.

    Args:
        head: The head's `HOST:PORT`.
        node: That of the node on which this process runs.
        steps: Called one after the other, with the error, where one of them does not answer, until the block has ended.
    """

    def __init__(self, head: str, node: str, steps: Sequence[Callable[[OperationalError], object]]) -> None:
        self._watched = {head: lost_head(head), node: lost_node(node)}
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
        heard = dict.fromkeys(self._watched, time.monotonic())
        while not self._over.wait(LOOK):
            for address, error in self._watched.items():
                if answers(address, LOOK):
                    heard[address] = time.monotonic()
                elif time.monotonic() - heard[address] >= SILENCE:
                    self._end(error)
                    return

    def _end(self, error: OperationalError) -> None:
        for step in self._steps:
            step(error)
            if self._over.wait(STEP):
                return
        sys.stderr.write(f"\njudge: {error}\n")
        leave()


def reach(address: str) -> None:
    """Find out whether there can be a head at an address, which Ray takes minutes for.

    Args:
        address: `HOST:PORT`.

    Raises:
        OperationalError: There is none.
    """
    try:
        found = is_head(address, _PATIENCE)
    except OSError as error:
        raise OperationalError(f"no Ray cluster can be reached at {address}: {error}") from error
    if not found:
        raise OperationalError(f"what listens at {address} is not the head of a Ray cluster")


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


def lost_node(address: str) -> OperationalError:
    """What ends a run without the node on which its driver is."""
    return OperationalError(
        f"the Ray node at {address}, on which this process runs, does not answer; the same command goes on from here"
    )


def leave() -> None:
    """End the process at once: neither Ray nor a loop that it blocks ends in any other way."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(OperationalError.exit_code)


def answers(address: str, patience: float) -> bool:
    """Whether a process of Ray at an address lives and is not frozen.

    Args:
        address: `HOST:PORT`.
        patience: Seconds to wait for each of its words.
    """
    try:
        return is_head(address, patience)
    except OSError:
        return False


def _connected(address: str, patience: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), patience)
