"""An event loop of our own for synchronous code that a script, a notebook or another loop calls.

If no loop runs in this thread, ours runs in it. A notebook already runs a loop, and a thread runs one loop at a time:
there, ours gets a thread of its own, and this thread waits.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_STEP = 0.2
"""Seconds of one wait; Windows does not interrupt a wait without a time limit."""
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, a scheduler or `kill`, and a terminal that closes: each of them stops a job in the same way."""


def finish(job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None]) -> _Result:
    """Run a job to its end; it sees the caller's context variables, and its exceptions are raised here.

    Args:
        job: Returns the coroutine to run.
        drain: Called in the job's loop at the first signal, such as Ctrl-C; the second one cancels the job.

    Raises:
        KeyboardInterrupt: At the second signal.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _in_main(job, drain)
    runner = asyncio.Runner()
    # In this thread, because the runner copies the context variables of the code that asks for its loop.
    loop = runner.get_loop()

    def work() -> _Result:
        with runner:
            return runner.run(job())

    # Leaving the pool waits for the job, so that nobody closes its journal while calls are in flight.
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


def _in_main(job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None]) -> _Result:
    canceled: list[int] = []
    try:
        with asyncio.Runner() as runner:
            return runner.run(_draining(job, drain, canceled))
    except asyncio.CancelledError:
        if canceled:
            raise KeyboardInterrupt from None
        raise


async def _draining(
    job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None], canceled: list[int]
) -> _Result:
    """Run the job in the loop of the main thread, which handles the signals itself."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            drain()
        elif task is not None:
            canceled.append(number)
            task.cancel()

    before = {number: signal.getsignal(number) for number in _SIGNALS if _is_heard(number)}
    try:
        for number in before:
            loop.add_signal_handler(number, on_signal, number)
    except (NotImplementedError, RuntimeError, ValueError):
        # Windows, or not the main thread: there Ctrl-C raises KeyboardInterrupt, and the journal is just as safe.
        return await job()
    try:
        return await job()
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # That of Ctrl-C may be the runner's own, which the runner then takes away.
            if handler is not None:
                signal.signal(number, handler)


def _is_heard(number: int) -> bool:
    """Whether a signal may stop a job: `nohup` ignores the end of the terminal, and so do we then."""
    return number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN


def _wait(future: Future[Any]) -> None:
    while not wait([future], _STEP).done:
        pass


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> bool:
    """Schedule a call in a loop; False if the loop has ended."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """Let each signal raise KeyboardInterrupt; a loop of this thread would handle it only after our wait has ended."""
    before = {}
    try:
        for number in filter(_is_heard, _SIGNALS):
            before[number] = signal.signal(number, signal.default_int_handler)
    except ValueError:
        # This is not the main thread, so no signal arrives here.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
