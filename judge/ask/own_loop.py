"""An event loop of our own for synchronous code, wherever that is called: a script, a notebook, another loop.

Where no loop runs in this thread, ours runs here. A notebook's cell is called by a loop that runs already, and a
thread has one loop at a time, so there ours gets a thread of its own while this one waits.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_STEP = 0.2
"""Seconds; Windows interrupts no wait that has no end."""


def finish(job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None]) -> _Result:
    """Run a job to its end; it sees the caller's context variables, and what it raises is raised here.

    Args:
        job: Makes the coroutine.
        drain: Called in the job's loop at the first Ctrl-C; the second breaks the job off.

    Raises:
        KeyboardInterrupt: At the second Ctrl-C.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_draining(job, drain))
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    # Here, because the runner copies the context variables of whoever asks it for its loop.
    loop = runner.get_loop()

    def work() -> _Result:
        with runner:
            return runner.run(job())

    # Leaving the pool waits for the job, so that nobody closes its journal while calls are on their way.
    with _interrupts(), ThreadPoolExecutor(1, "judge") as pool:
        future = pool.submit(work)
        try:
            _wait(future)
        except KeyboardInterrupt:
            if not _tell(loop, drain):
                raise
            try:
                _wait(future)
            except KeyboardInterrupt:
                _tell(loop, lambda: [task.cancel() for task in asyncio.all_tasks()])
                raise
        return future.result()


async def _draining(job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None]) -> _Result:
    """The job in the main thread's loop, which is told of Ctrl-C itself."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        drain()
        loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.add_signal_handler(signal.SIGINT, on_signal)
    except (NotImplementedError, RuntimeError, ValueError):
        # Windows, or not the main thread: Ctrl-C raises KeyboardInterrupt there, and the journal is safe too.
        return await job()
    try:
        return await job()
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _wait(future: Future[Any]) -> None:
    while not wait([future], _STEP).done:
        pass


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> bool:
    """Have something called in a loop; False where the loop has come to its end."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt; a loop that runs here would note it and wait for its turn, which we hold."""
    try:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:
        # Not the main thread, where no Ctrl-C arrives.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
