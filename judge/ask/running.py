"""Runs a job in an event loop of its own, for synchronous code that a script, a notebook or another loop calls.

If no loop runs in this thread, ours runs in it. A notebook already runs one, and a thread runs one at a time: there,
ours gets a thread of its own, and this thread waits.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_STEP = 0.2
"""Seconds of one wait; Windows does not interrupt a wait without a time limit."""
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, a scheduler or `kill`, and a terminal that closes: each of them stops a job in the same way."""


def finish(job: Callable[[], Coroutine[Any, Any, _Result]], drain: Callable[[], None]) -> _Result:
    """Run a job to its end; it sees the caller's context variables, and its exceptions are raised here.

    `drain` is called in the job's loop at the first signal, such as Ctrl-C; the second one cancels the job. A
    KeyboardInterrupt at the second signal.
    """
    runner = asyncio.Runner()
    # In this thread, because the runner copies the context variables of the code that asks for its loop.
    loop = runner.get_loop()
    received: list[int] = []

    def on_signal(number: int, _: object) -> None:
        received.append(number)
        # A loop that has ended needs no word of it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(drain if len(received) == 1 else _cancel)

    def work() -> _Result:
        with runner:
            return runner.run(job())

    with _handled(on_signal):
        try:
            return _in_thread(work) if _runs_here() else work()
        except asyncio.CancelledError:
            if len(received) > 1:
                raise KeyboardInterrupt from None
            raise


def _cancel() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def _runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Callable[[], _Result]) -> _Result:
    # Leaving the pool waits for the job, so that nobody closes its journal while calls are in flight.
    with ThreadPoolExecutor(1, "judge") as pool:
        future = pool.submit(work)
        while not wait([future], _STEP).done:
            pass
        return future.result()


@contextlib.contextmanager
def _handled(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Let each signal call the handler."""
    with contextlib.ExitStack() as before:
        # In another thread than the main one, no signal arrives.
        for number in _SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler_before = signal.getsignal(number)
            # `nohup` ignores the end of the terminal, and so do we then.
            if number == signal.SIGINT or handler_before is not signal.SIG_IGN:
                before.callback(signal.signal, number, signal.SIG_DFL if handler_before is None else handler_before)
                signal.signal(number, handler)
        yield
