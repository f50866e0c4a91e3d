"""The thread that writes a journal's completions, many of them with one wait for the disk."""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from judge.errors import OperationalError

_GROUP = 256
"""Most completions in one commit."""
_CHECKPOINT = 1.0
"""Seconds after which committed completions go from the `-wal` file into the journal itself."""


class _Write(NamedTuple):
    row: tuple[Any, ...]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class GroupWriter:
    """Writes rows in the order in which they come.

    Args:
        name: What messages call the journal.
        commit: Writes rows to the disk, all or none of them; called in the writer's thread.
        checkpoint: Brings what is committed into the journal's file; called in the writer's thread. It raises an
            OperationalError where nothing more is to be asked.
        note: Takes the digests of rows that are on the disk; called in the loop that waits for them.
    """

    def __init__(
        self,
        name: str,
        commit: Callable[[Sequence[tuple[Any, ...]]], None],
        checkpoint: Callable[[], None],
        note: Callable[[Sequence[str]], None],
    ) -> None:
        self._name = name
        self._commit = commit
        self._checkpoint = checkpoint
        self._note = note
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._failure: OperationalError | None = None
        self._gone: OperationalError | None = None
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, row: tuple[Any, ...]) -> "asyncio.Future[None]":
        """Begin to write a row; the future is done when it is on the disk, or raises an OperationalError.

        Raises:
            OperationalError: The disk could not be written before; nothing more is.
        """
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        write = _Write(row, loop, loop.create_future())
        self._queue.put(write)
        return write.done

    def close(self) -> None:
        """Write what is in the queue and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        stopping, unsaved, saved = False, False, time.monotonic()
        while not stopping:
            group: list[_Write] = []
            try:
                following = self._queue.get(timeout=_CHECKPOINT if unsaved else None)
                while following is not None:
                    group.append(following)
                    if len(group) == _GROUP or self._queue.empty():
                        break
                    following = self._queue.get()
                stopping = following is None
            except queue.Empty:
                pass
            lost: OperationalError | None = None
            try:
                if group:
                    unsaved = True
                    self._commit([write.row for write in group])
            except Exception as error:  # noqa: BLE001 - a writer that dies leaves everyone waiting forever
                # What comes later may still have room, and is then not lost.
                self._failure = lost = OperationalError(f"{self._name}: cannot be written: {error}")
            try:
                if unsaved and time.monotonic() - saved >= _CHECKPOINT:
                    self._checkpoint()
                    unsaved, saved = False, time.monotonic()
            except OperationalError as error:
                self._gone = error
            except Exception as error:  # noqa: BLE001 - likewise
                self._gone = OperationalError(f"{self._name}: cannot be written: {error}")
            # As it is now: a later group may fail before the loop hears of this one.
            gone = self._gone
            for loop in {write.loop for write in group}:
                # A canceled loop is closed and waits for nothing; its paid completions are written all the same.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._settle, [one for one in group if one.loop is loop], lost, gone)

    def _settle(self, group: list[_Write], lost: OperationalError | None, gone: OperationalError | None) -> None:
        """Tell those who wait for a group; called in their loop.

        Args:
            group: What was to be written.
            lost: Why it is not recorded; None if it is.
            gone: Why nothing more is to be asked, although it is recorded where the file went.
        """
        if lost is None:
            self._note([write.row[0] for write in group])
        failure = lost or gone
        for write in group:
            if write.done.done():
                continue
            if failure is None:
                write.done.set_result(None)
            else:
                write.done.set_exception(failure)
