import asyncio
import threading
from collections.abc import Sequence

import pytest

from judge.errors import OperationalError
from judge.models.journal_writer import GroupWriter


def test_what_is_written_after_a_failure_is_not_lost_and_nothing_more_is_taken() -> None:
    begun, ready = threading.Event(), threading.Event()
    written: list[str] = []
    noted: list[str] = []

    def commit(rows: Sequence[tuple[str]]) -> None:
        if not begun.is_set():
            begun.set()
            ready.wait(30)
            raise ValueError("no room")
        written.extend(row[0] for row in rows)

    async def run() -> None:
        large = writer.put(("large",))
        await asyncio.to_thread(begun.wait, 30)
        small = writer.put(("small",))
        ready.set()
        with pytest.raises(OperationalError, match=r"^j: cannot be written: no room$"):
            await large
        await small
        with pytest.raises(OperationalError, match="no room"):
            writer.put(("later",))

    writer = GroupWriter("j", commit, lambda: None, noted.extend)
    asyncio.run(run())
    writer.close()
    assert (written, noted) == (["small"], ["small"])


def test_a_checkpoint_that_fails_is_heard_by_the_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.models.journal_writer._CHECKPOINT", 0.0)

    def checkpoint() -> None:
        raise RuntimeError("no checkpoint")

    async def run() -> None:
        with pytest.raises(OperationalError, match=r"^j: cannot be written: no checkpoint$"):
            await asyncio.wait_for(writer.put(("a",)), 30)

    writer = GroupWriter("j", lambda rows: None, checkpoint, lambda digests: None)
    asyncio.run(run())
    writer.close()
