"""One function applied to many items in processes of their own, where cores are free and the work is worth it.

Each process is a plain new Python that imports this package: nothing of the caller's program runs a second time, so it
works from scripts without a main guard, from notebooks and on every platform. The results come in the order of the
items, and are those of the function called here: what a process cannot do or cannot send back is done here.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from judge.files.limits import allow_files, largest_file

MOST = 3
"""The most processes; each holds one item's file in memory."""
WORTH = 48 << 20
"""Bytes of files below which starting processes costs more than it saves."""
TOGETHER = 192 << 20
"""The most bytes of the files that are worked on at once; a file takes some five times its size in memory."""
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from judge.files.processes import serve; serve()"
)

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def processes_for(files: Sequence[Path]) -> int:
    """How many processes reading these files is worth; 1 for none beside this one."""
    sizes = [path.stat().st_size * (5 if path.suffix == ".gz" else 1) for path in files if path.is_file()]
    processes = min(processes_of(sum(sizes), WORTH), len(sizes))
    return max(1, min(processes, TOGETHER // max(sizes))) if processes > 1 else 1


def processes_of(size: int, worth: int) -> int:
    """How many processes work of this size is worth; 1 for none beside this one.

    Args:
        size: The size of the work, in any unit.
        worth: The size that is worth a second process.
    """
    return min(MOST, _cores()) if size >= worth and sys.executable else 1


def mapped(function: Callable[[_Item], _Made], items: Sequence[_Item], processes: int) -> Generator[_Made, None, None]:
    """The function of each item, in the order of the items.

    Args:
        function: Can be pickled, with what it is bound to; what it makes is small.
        items: Can be pickled.
        processes: How many processes work at once; below 2 the function is called here, when its result is asked for.
    """
    if processes < 2:
        yield from map(function, items)
        return
    shared = _Shared(items)
    helpers = [_Helper(function, shared) for _ in range(min(processes, len(items)))]
    try:
        for number, item in enumerate(items):
            done, made = shared.wait(number)
            yield made if done else function(item)
    finally:
        shared.close()
        for helper in helpers:
            helper.close()


class _Shared:
    """What is still to be done, and the results that nobody has asked for yet."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        self._next = 0
        self._made: dict[int, tuple[bool, Any]] = {}
        self._helpers = 0
        self._changed = threading.Condition()

    def join(self) -> None:
        """Count one process more that takes items."""
        with self._changed:
            self._helpers += 1

    def leave(self) -> None:
        """Count one process less; once there is none, no item is waited for."""
        with self._changed:
            self._helpers -= 1
            self._changed.notify_all()

    def take(self) -> tuple[int, Any] | None:
        """The next item with its number; None once there is none."""
        with self._changed:
            number = self._next
            if number >= len(self._items):
                return None
            self._next += 1
            return number, self._items[number]

    def put(self, number: int, done: bool, made: Any) -> None:
        """Keep a result, or the note that there is none."""
        with self._changed:
            self._made[number] = (done, made)
            self._changed.notify_all()

    def wait(self, number: int) -> tuple[bool, Any]:
        """Whether an item was done, and its result."""
        with self._changed:
            self._changed.wait_for(lambda: number in self._made or not self._helpers)
            return self._made.pop(number, (False, None))

    def close(self) -> None:
        """Give out no more items."""
        with self._changed:
            self._next = len(self._items)


class _Helper:
    """One process, and the thread that gives it items and takes its results."""

    def __init__(self, function: Callable[[Any], Any], shared: _Shared) -> None:
        self._shared = shared
        self._first = (list(sys.path), (function, largest_file()))
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - this Python, with words of ours
                # Without -P a file in the current folder could stand in for a module.
                [sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        shared.join()
        self._thread = threading.Thread(target=self._work, name="helper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
        self._thread.join()
        if self._process is not None:
            self._process.communicate()

    def _work(self) -> None:
        working = self._send(*self._first)
        while working and (taken := self._shared.take()) is not None:
            number, item = taken
            answer = self._receive() if self._send(item) else None
            working = answer is not None
            self._shared.put(number, *(answer or (False, None)))
        self._shared.leave()

    def _send(self, *values: Any) -> bool:
        """Whether the values could be sent; the process may be gone."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            for value in values:
                pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def _receive(self) -> tuple[bool, Any] | None:
        """Whether the item was done, with its result; None where the process is gone."""
        if self._process is None or self._process.stdout is None:
            return None
        try:
            answer: tuple[bool, Any] = pickle.load(self._process.stdout)  # noqa: S301 - of a process of ours
        except Exception:  # noqa: BLE001 - half an answer may fail in any way
            return None
        return answer


def serve() -> None:
    """Be one of the processes: read the function and then items from standard input until it ends."""
    # Ctrl-C reaches every process of the terminal; the one that asked ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a library prints must not come between the answers.
    os.dup2(2, 1)
    function, most = pickle.load(given)  # noqa: S301 - of the process that started this one
    allow_files(most)
    while True:
        try:
            item = pickle.load(given)  # noqa: S301 - as above
        except EOFError:
            return
        try:
            answer = pickle.dumps((True, function(item)), pickle.HIGHEST_PROTOCOL)
        except Exception:  # noqa: BLE001 - the process that asked calls the function itself and meets the same
            answer = pickle.dumps((False, None))
        answers.write(answer)
        answers.flush()


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
