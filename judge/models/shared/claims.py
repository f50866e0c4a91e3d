"""Which process asks which question of a shared journal: a lease each, which a living process extends.

A thread claims for all calls that wait, many of them with one statement, so that the loop never waits for the server.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from judge.errors import JudgeError, OperationalError
from judge.models.open_journal import HeldElsewhere, RecordedAnswer
from judge.models.records import Request
from judge.models.shared import tables
from judge.models.shared.connection import DatabaseConnection, SharedConnection
from judge.models.shared.reader import checked_row, rows_of

_GROUP = 256
"""Most questions of one statement."""


class _Claim(NamedTuple):
    digests: tuple[str, ...]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[RecordedAnswer | None]"

    @property
    def leased(self) -> str:
        """The digest that the lease is on."""
        return self.digests[0]


class SharedClaims:
    """The claims of one process; `QuestionClaims` describes the methods.

    Args:
        connection: To the database.
        holder: The name of this process, which no other one has.
        note: Takes the digests that turn out to be recorded; called in the loop that asked.
    """

    def __init__(self, connection: SharedConnection, holder: str, note: Callable[[Sequence[str]], None]) -> None:
        self._connection = connection
        self._holder = holder
        self._note = note
        self._queue: queue.SimpleQueue[_Claim | str | None] = queue.SimpleQueue()
        self._waiting: set[_Claim] = set()
        self._unreleased: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="claims", daemon=True)
        self._thread.start()

    def claim(self, *digests: str, request: Request) -> "asyncio.Future[RecordedAnswer | None]":
        """Claim a question before it is asked; only its digests count here."""
        loop = asyncio.get_running_loop()
        claim = _Claim(digests, loop, loop.create_future())
        self._waiting.add(claim)
        self._queue.put(claim)
        return claim.answer

    def release(self, digest: str) -> None:
        """Let go of a question, named by its first digest."""
        self._queue.put(digest)

    def give_up(self, error: BaseException) -> None:
        """End every wait for a claim with an error; called in the loop that waits."""
        for claim in self._waiting:
            if not claim.answer.done():
                claim.answer.set_exception(error)

    def close(self) -> None:
        """Let go of every question, and end the thread."""
        self._connection.hurry()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        stopping, extended = False, time.monotonic()
        while not stopping:
            group: list[_Claim | str] = []
            with contextlib.suppress(queue.Empty):
                following = self._queue.get(timeout=max(0.0, extended + tables.LEASE / 3 - time.monotonic()))
                while following is not None:
                    group.append(following)
                    if len(group) == _GROUP or self._queue.empty():
                        break
                    following = self._queue.get()
                stopping = following is None
            self._release([item for item in group if isinstance(item, str)])
            claims = [item for item in group if isinstance(item, _Claim)]
            self._unreleased.difference_update(claim.leased for claim in claims)
            self._claim(claims)
            if time.monotonic() - extended >= tables.LEASE / 3:
                # Where this fails, the claims and completions that fail too say so.
                with contextlib.suppress(JudgeError):
                    self._connection.run(lambda connection: connection.execute(tables.EXTEND, self._named()))
                extended = time.monotonic()
        with contextlib.suppress(JudgeError):
            self._connection.run(lambda connection: connection.execute(tables.RELEASE_ALL, self._named()))

    def _release(self, digests: Sequence[str]) -> None:
        self._unreleased.update(digests)
        if self._unreleased:
            # What cannot be released now is kept for the next time: the lease would be extended with the others.
            with contextlib.suppress(JudgeError):
                freed = sorted(self._unreleased)
                self._connection.run(lambda connection: connection.execute(tables.RELEASE, self._named(digests=freed)))
                self._unreleased.clear()

    def _claim(self, claims: Sequence[_Claim]) -> None:
        if not claims:
            return
        granted: set[str] = set()
        recorded: dict[str, tuple[Any, ...]] = {}
        lost: JudgeError | None = None
        try:
            granted, recorded = self._connection.run(lambda connection: self._taken(connection, claims))
        except Exception as error:  # noqa: BLE001 - a thread that dies leaves everyone waiting forever
            lost = error if isinstance(error, JudgeError) else OperationalError(f"{self._connection.name}: {error}")
        for loop in {claim.loop for claim in claims}:
            own = [claim for claim in claims if claim.loop is loop]
            try:
                loop.call_soon_threadsafe(self._settle, own, granted, recorded, lost)
            except RuntimeError:
                # A canceled loop is closed and asks nothing.
                self._release([claim.leased for claim in own if claim.leased in granted])

    def _taken(
        self, connection: DatabaseConnection, claims: Sequence[_Claim]
    ) -> tuple[set[str], dict[str, tuple[Any, ...]]]:
        """The leases that are ours now, and the rows of the requests that are answered."""
        leased = sorted({claim.leased for claim in claims})
        granted = {row[0] for row in connection.execute(tables.CLAIM, self._named(digests=leased))}
        # Only now: a completion may have been committed, and its lease removed, while the statement before began.
        recorded = rows_of(connection, sorted({digest for claim in claims for digest in claim.digests}))
        answered = {claim.leased for claim in claims if not recorded.keys().isdisjoint(claim.digests)}
        if needless := sorted(granted & answered):
            connection.execute(tables.RELEASE, self._named(digests=needless))
        return granted - answered, recorded

    def _named(self, **more: object) -> dict[str, object]:
        return {"holder": self._holder, "lease": tables.LEASE, **more}

    def _settle(
        self,
        claims: Sequence[_Claim],
        granted: set[str],
        recorded: Mapping[str, tuple[Any, ...]],
        lost: JudgeError | None,
    ) -> None:
        """Tell those who wait; called in their loop."""
        self._note(list(recorded))
        for claim in claims:
            self._waiting.discard(claim)
            first = next((digest for digest in claim.digests if digest in recorded), None)
            if claim.answer.done():
                if claim.leased in granted:
                    self.release(claim.leased)
            elif lost is not None:
                claim.answer.set_exception(lost)
            elif first is not None:
                try:
                    completion = checked_row(self._connection.name, recorded[first]).completion
                    claim.answer.set_result(RecordedAnswer(first, completion))
                except JudgeError as error:
                    claim.answer.set_exception(error)
            elif claim.leased in granted:
                claim.answer.set_result(None)
            else:
                claim.answer.set_exception(HeldElsewhere(claim.leased))
