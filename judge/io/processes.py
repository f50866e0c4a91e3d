"""One function applied to many items in processes of their own, where cores are free and the work is worth it.

Each process is a plain new Python that imports this package: nothing of the caller's program runs a second time, so it
works from scripts without a main guard, from notebooks and on every platform. The results come in the order of the
items, and are those of the function called here: what a process cannot do or cannot send back is done here.
"""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from judge.io.files import allow_files, largest_file

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MOST = 3
"""The most processes; each holds one item's file in memory."""
WORTH = 48 << 20
"""Bytes of files below which starting processes costs more than it saves."""
TOGETHER = 192 << 20
"""The most bytes of the files that are worked on at once; a file takes some five times its size in memory."""

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
    """The function of each item, in their order; both can be pickled, and what it makes is small."""
    if processes < 2:
        yield from map(function, items)
        return
    # Imported here, because that takes as long as reading a small file.
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("spawn")
    end, lifeline = context.Pipe(duplex=False)
    executor: ProcessPoolExecutor | None = None
    futures: deque[Future[_Made]] = deque()
    try:
        try:
            with _plain_start():
                executor = ProcessPoolExecutor(
                    min(processes, len(items)), context, _begin, (function, largest_file(), end)
                )
            # Once more, because Python's own process beside the pool, once started, lets signals through again.
            with _plain_start():
                futures.extend(executor.submit(_apply, item) for item in items)
        except (OSError, ImportError, AssertionError, NotImplementedError, BrokenProcessPool):
            # No process can be started, or no semaphore made, as without /dev/shm; a daemon may have no children.
            futures.clear()
        for item in items:
            future = futures.popleft() if futures else None
            if future is not None and future.exception() is None:
                yield future.result()
            else:
                # Also where a process was ended, as where memory runs out; an error is met again, and raised here.
                yield function(item)
    finally:
        # They end with the connection, whatever they are doing.
        lifeline.close()
        if executor is not None:
            executor.shutdown()
        end.close()


@contextmanager
def _plain_start() -> Iterator[None]:
    """Let processes start without the caller's program and the files of the current folder, deaf to Ctrl-C."""
    main = sys.modules["__main__"]
    safe_path = os.environ.get("PYTHONSAFEPATH")
    # Ctrl-C reaches every process of the terminal; the one that starts these ends them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if hasattr(signal, "pthread_sigmask") else None
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if safe_path is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = safe_path
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Own:
    """What a process was started with."""

    function: Callable[[Any], Any]


def _begin(function: Callable[[Any], Any], most: int, end: "Connection") -> None:
    """Make this process ready for items."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(end,), daemon=True).start()
    # What a library prints must not come between the answers of the process that asked.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    allow_files(most)
    _Own.function = function


def _end_with(end: "Connection") -> None:
    """End this process when the other end of the connection is closed, or the process that holds it is gone."""
    with suppress(EOFError, OSError):
        end.recv()
    os._exit(1)


def _apply(item: Any) -> Any:
    return _Own.function(item)


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Number of cores that this process may use: those it is bound to, within its container's share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        share, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, int(share) // int(period))
    return max(cores, 1)
