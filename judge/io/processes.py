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
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from judge.io.files import allow_files, largest_file

MOST = 3
"""The most processes; each holds one item's file in memory."""
WORTH = 48 << 20
"""Bytes of files below which starting processes costs more than it saves."""
TOGETHER = 192 << 20
"""The most bytes of the files that are worked on at once; a file takes some five times its size in memory."""
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from judge.io.processes import serve; serve()"
)

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def processes_for(files: Sequence[Path]) -> int:
    """How many processes reading these files is worth; 1 for none beside this one."""
    sizes = [path.stat().st_size * (5 if path.suffix == ".gz" else 1) for path in files if path.is_file()]
    processes = min(processes_of(sum(sizes), WORTH), len(sizes))
    return max(1, min(processes, TOGETHER // max(sizes))) if processes > 1 else 1


def processes_of(size: int, worth: int) -> int:
    """How many processes work of this size is worth, of which `worth` is worth a second; 1 for none beside this one."""
    return min(MOST, usable_cores()) if size >= worth and sys.executable else 1


def mapped(function: Callable[[_Item], _Made], items: Sequence[_Item], processes: int) -> Generator[_Made, None, None]:
    """The function of each item, in their order; it can be pickled, and what it makes is small."""
    if processes < 2:
        yield from map(function, items)
        return
    helpers = [_Helper(function) for _ in range(min(processes, len(items)))]
    free: SimpleQueue[_Helper] = SimpleQueue()
    for helper in helpers:
        free.put(helper)

    def asked(item: _Item) -> tuple[bool, Any]:
        helper = free.get()
        try:
            return helper.ask(item)
        finally:
            free.put(helper)

    # A process is waited for by a thread; what it cannot do is done here.
    threads = ThreadPoolExecutor(len(helpers), "helper")
    try:
        for item, (done, made) in zip(items, threads.map(asked, items), strict=True):
            yield made if done else function(item)
    finally:
        for helper in helpers:
            helper.kill()
        threads.shutdown(cancel_futures=True)
        for helper in helpers:
            helper.close()


class _Helper:
    """One process that applies the function to items, one after the other."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._first: tuple[Any, ...] = (list(sys.path), (function, largest_file()))
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - this Python, with words of ours
                # Without -P a file in the current folder could stand in for a module.
                [sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def ask(self, item: Any) -> tuple[bool, Any]:
        """Whether an item was done, and its result."""
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            return False, None
        try:
            for value in (*self._first, item):
                pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            self._first = ()
            answer: tuple[bool, Any] = pickle.load(self._process.stdout)  # noqa: S301 - of a process of ours
        except Exception:  # noqa: BLE001 - half an answer of a process that is gone may fail in any way
            return False, None
        return answer

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Let go of the process that was ended."""
        if self._process is not None:
            self._process.communicate()


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


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Number of cores that this process may use: those it is bound to, within its container's share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        share, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, int(share) // int(period))
    return max(cores, 1)
