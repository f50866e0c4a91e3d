"""The journal: every paid completion, by the digest of its request, so that no call is paid for twice.

A completion counts only after its commit has reached the disk; commits are grouped, so that many completions share one
wait for the disk. A journal is a file that one process writes, or a database that several processes share.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.models.journal_file import SHARED, FileStore, open_store
from judge.models.journal_rows import (
    ADD_META,
    SCHEMA_VERSION,
    SET_META,
    DamagedRow,
    Recorded,
    Row,
    completion_of,
    is_database,
    new_row,
    other_version,
    recorded,
)
from judge.models.journal_store import UNREADABLE, Store, paged
from judge.models.records import Completion, Message, Request
from judge.models.spending import CallFacts

_GROUP = 512
"""Most completions in one commit."""
_TOGETHER = 1000
"""Completions that are taken over in one transaction."""
_AHEAD = 250
"""Items whose answers are fetched from a database at once, and kept in memory until the next."""

_Item = TypeVar("_Item")


class HeldElsewhere(Exception):
    """Another process is asking this question."""


class RecordedAnswer(NamedTuple):
    """A completion that the journal holds by now, and the digest of the request that it answers."""

    digest: str
    completion: Completion


class JournalView:
    """The completions of several journals, read as if they were in one; the first one that holds a digest answers.

    Nothing is changed. A journal that another process is writing is read too; what came in its last second or two may
    be missing.

    Args:
        places: The journals: files, or addresses of the databases of shared ones.

    Raises:
        UsageError: A database cannot be used as its address says.
        InputError: One of them is no journal of this version.
        OperationalError: A database cannot be reached.
    """

    def __init__(self, places: Iterable[StrPath]) -> None:
        self._stores: list[Store] = []
        self._ahead: dict[str, Row | None] = {}
        """What databases hold of the digests that were fetched last."""
        self._some = False
        try:
            for place in places:
                self._stores.append(store := open_store(place, live=True))
                if store.version not in (None, SCHEMA_VERSION):
                    raise other_version(store.name, str(store.version))
                self._some = self._some or bool(store.query("SELECT 1 FROM completion LIMIT 1"))
        except JudgeError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __bool__(self) -> bool:
        """Whether they held any completion when they were opened."""
        return self._some

    def close(self) -> None:
        """Release the places."""
        for store in self._stores:
            store.close()

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if it is in no journal."""
        values = (store.meta(key) for store in self._stores)
        return next((value for value in values if value is not None), None)

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None.

        Raises:
            InputError: A journal is damaged at this completion.
        """
        found = self._row(digest)
        return None if found is None else _completion(*found)

    def find(self, digest: str) -> Recorded | None:
        """The completion with the request that it answers. Errors are those of `get`."""
        found = self._row(digest)
        if found is None:
            return None
        try:
            return recorded(found[1])
        except DamagedRow as error:
            raise found[0].damaged(digest, error) from error

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When completions were recorded, by digest; `Journal.times` has the form."""
        wanted = list(digests)
        return {digest: time for store in reversed(self._stores) for digest, time in store.times(wanted).items()}

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what databases hold under some digests, for the `get` of each that follows; of files, nothing."""
        shared = [store for store in self._stores if store.shared]
        wanted = list(digests) if shared else []
        self._ahead = dict.fromkeys(wanted)
        for store in reversed(shared):
            self._ahead |= store.rows(wanted)

    def sample(self, judge: str, most: int) -> list[tuple[tuple[Message, ...], CallFacts]]:
        """What a judge was asked and what the calls took, of at most `most` calls; the same ones each time."""
        drawn = {call[0]: call[1:] for store in reversed(self._stores) for call in store.sample(judge, most)}
        return [drawn[digest] for digest in sorted(drawn)[:most]]

    def _row(self, digest: str) -> tuple[Store, Row] | None:
        for store in self._stores:
            if store.shared and digest in self._ahead:
                fetched = self._ahead[digest]
                row = None if fetched is None else store.checked(fetched)
            else:
                try:
                    row = store.row(digest)
                except InputError:
                    # A page may be written while it is read, so a second look decides.
                    if not isinstance(store, FileStore) or not store.reopen():
                        raise
                    row = store.row(digest)
            if row is not None:
                return store, row
        return None


class Journal(JournalView):
    """A journal that this process writes.

    Args:
        place: A file, which is made if it is not there, or the address of a database; None for one in memory.
        max_wait: Most seconds for which a database that is away is waited for.

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The place is no journal of this version, is a link, or another process holds the file.
        OperationalError: The server cannot be reached.
    """

    def __init__(self, place: StrPath | None, max_wait: float = 300.0) -> None:
        super().__init__(())
        self.store = _written(place, max_wait)
        self._stores.append(self.store)
        try:
            # Hashes take a third of the memory of the digests; a question that only seems known is looked up.
            self._known = set(map(hash, self.store.digests()))
        except BaseException as error:
            self.store.close()
            if isinstance(error, UNREADABLE):
                raise self.store.unreadable(error, "used") from error
            raise
        self._writer = _Writer(self.store, self._add, self._note)

    @property
    def shared(self) -> bool:
        """Whether other processes may write it too, so that a question is to be leased before it is asked."""
        return self.store.shared

    def __bool__(self) -> bool:
        """Whether it holds any completion."""
        return bool(self._known)

    def __len__(self) -> int:
        """How many completions it holds, as far as this process knows."""
        return len(self._known)

    def __contains__(self, digest: str) -> bool:
        """Whether a completion is recorded under a digest."""
        return hash(digest) in self._known and digest in self.times([digest])

    def close(self) -> None:
        """Write the queued completions, let go of every question and release the place."""
        self._writer.close()
        super().close()

    def check_there(self) -> None:
        """Refuse results that the journal would not give again.

        Raises:
            OperationalError: The file is not there any more, or another process recorded an answer of its own because
                a lease of this one had ended.
        """
        self.store.check_there()
        if self._writer.replaced:
            raise OperationalError(
                f"{self.store.name}: this process was not heard of for longer than a lease, and another one asked "
                f"{self._writer.replaced} of its questions again; the same command takes these answers"
            )

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what a database holds under some digests, for the `get` of each that follows; of a file, nothing."""
        super().ahead(digest for digest in digests if hash(digest) in self._known)

    def _row(self, digest: str) -> tuple[Store, Row] | None:
        # The writer has the store while it waits for the disk, and most questions are new.
        return super()._row(digest) if hash(digest) in self._known else None

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions, on the disk.

        Raises:
            OperationalError: The disk cannot be written.
        """
        self._change(SET_META, [(key, value)])

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts; a key that is not set stays so. Errors are those of `set_meta`."""
        self._change("DELETE FROM meta WHERE key = ?", [(key,) for key in keys])

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk, or raises an OperationalError.

        Args:
            digest: The digest of the request, from `request_digest`.
            judge: The name of the judge.
            parameters: Everything that was sent beside the messages.
            request: The request, of which the journal keeps messages and ids.
            completion: What came back.

        Raises:
            OperationalError: The disk cannot be written; the completion is not recorded.
        """
        try:
            row = new_row(digest, judge, parameters, request, completion)
        except UnicodeEncodeError as error:
            raise OperationalError(f"{self.store.name}: cannot be written: {error}") from error
        return self._writer.put(row)

    def lease(self, *digests: str) -> "asyncio.Future[RecordedAnswer | None]":
        """Lease a question before it is asked; needed only where several processes share the journal.

        Args:
            digests: The requests with which the question can be asked, one for each answer form, in the order that
                every process gives them. The lease is on the first one, whichever is sent.

        Returns:
            A future with the answer to the first request that the journal holds by now. It gives None if the question
            is ours to ask, until the completion of the first request is written or until `release`. It raises
            HeldElsewhere where another process is asking the question, and an OperationalError where the journal cannot
            be reached.
        """
        return self._writer.lease(digests)

    def release(self, digest: str) -> None:
        """Let go of a question, named by its first digest."""
        self._writer.release(digest)

    def give_up(self, error: BaseException) -> None:
        """End every wait for a lease with an error; called in the loop that waits."""
        self._writer.give_up(error)

    def record(self, rows: Iterable[Row]) -> int:
        """Record completions that came another way, all or none of them; one whose digest is here stays as it is.

        Args:
            rows: From `new_row`.

        Returns:
            How many were new.

        Raises:
            OperationalError: The disk cannot be written.
        """
        listed = list(rows)
        new, _ = self._add(listed)
        self._note([row[0] for row in listed])
        return new

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one, so that no call is paid for again.

        What is copied before an error stays; the same call goes on from there.

        Raises:
            InputError: The other journal cannot be read.
            OperationalError: This one cannot be written.
        """
        with contextlib.closing(open_store(path)) as source:
            for page in paged((row for _, row in source.placed_rows()), _TOGETHER):
                self.record(page)
            self._change(ADD_META, source.facts())

    def _change(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        try:
            self.store.change(statement, values)
        except UNREADABLE as error:
            raise OperationalError(f"{self.store.name}: cannot be written: {error}") from error

    def _add(self, rows: Sequence[Row]) -> tuple[int, dict[str, str]]:
        """Add rows in one transaction; gives how many were new, and the checksums that are there now, by digest.

        Raises:
            OperationalError: The disk cannot be written, or a row did not arrive.
        """
        try:
            new = self.store.insert(rows)
            found = self.store.rows((row[0] for row in rows), "digest, checksum")
        except UNREADABLE as error:
            raise OperationalError(f"{self.store.name}: cannot be written: {error}") from error
        there = {digest: str(row[1]) for digest, row in found.items()}
        lost = [row[0] for row in rows if row[0] not in there]
        if lost:
            raise OperationalError(
                f"{self.store.name}: cannot be written: of {len(rows)} completions, {len(lost)} are not in the table "
                f"after their commit, {lost[0]} for one; a trigger or another program removes them"
            )
        return new, there

    def _note(self, digests: Iterable[str]) -> None:
        self._known.update(map(hash, digests))


def open_journal(file: StrPath, shared: str | None = None, max_wait: float = 300.0) -> Journal:
    """Open the journal that a job writes.

    Args:
        file: The journal's file, for a job that has a journal of its own. Where the job shares one, it takes over what
            this file holds.
        shared: The address of the database of a shared journal; None for a journal of one's own.
        max_wait: Most seconds for which a server that is away is waited for.

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The place cannot be used as a journal.
        OperationalError: The server cannot be reached, or the disk cannot be written.
    """
    if shared is None:
        if is_database(file):
            raise UsageError("the address of a shared journal stands where a file has to be: give it as `shared`")
        return Journal(file)
    check_database(shared)
    journal = Journal(shared, max_wait)
    try:
        if Path(file).exists():
            journal.adopt(file)
    except BaseException:
        journal.close()
        raise
    return journal


def paid_journals(file: Path, shared: str | None = None) -> list[StrPath]:
    """Where the completions are that a job need not pay for again, before it opens its journal."""
    return [*(() if shared is None else (shared,)), *((file,) if file.exists() else ())]


def check_database(shared: str | None) -> None:
    """Refuse an address with which no shared journal can be opened; nothing is sent.

    Args:
        shared: The address; None for a journal in a file.

    Raises:
        UsageError: It is none, it cannot be read, or psycopg is not installed.
    """
    if shared is None:
        return
    if not is_database(shared):
        raise UsageError("the address of a shared journal must begin with postgresql://")
    need_extra("postgres", SHARED)
    from judge.models.postgres import read_database  # needs the extra

    read_database(shared)


def looked_ahead(
    items: Iterable[_Item], journal: JournalView, digests: Callable[[_Item], Iterable[str]]
) -> Iterator[_Item]:
    """The items as they come, each after the journal has fetched what it holds of it.

    Args:
        items: What the answers are wanted for.
        journal: The journal; one in a file fetches nothing, because a look at it is quick.
        digests: The requests whose answers are wanted for an item; called only where the journal fetches them.
    """
    for page in paged(items, _AHEAD):
        journal.ahead(digest for item in page for digest in digests(item))
        yield from page
    journal.ahead(())


def _written(place: StrPath | None, max_wait: float) -> Store:
    """The place of a journal, opened to be written."""
    if not is_database(place):
        return FileStore(None if place is None else Path(place), writing=True)
    need_extra("postgres", SHARED)
    from judge.models.postgres import DatabaseStore  # needs the extra

    return DatabaseStore(place, max_wait, writing=True)


def _completion(store: Store, row: Row) -> Completion:
    try:
        return completion_of(row)
    except DamagedRow as error:
        raise store.damaged(row[0], error) from error


class _Write(NamedTuple):
    row: Row
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class _Take(NamedTuple):
    digests: tuple[str, ...]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[RecordedAnswer | None]"


class _Writer:
    """The thread that writes completions in the order in which they come, and takes leases.

    Args:
        store: The journal.
        add: Adds rows, as `Journal._add` does; called in the thread.
        note: Takes digests of rows that are on the disk; called in the loop that waits for them.
    """

    def __init__(
        self,
        store: Store,
        add: Callable[[Sequence[Row]], tuple[int, dict[str, str]]],
        note: Callable[[Iterable[str]], None],
    ) -> None:
        self.store = store
        self._add = add
        self._note = note
        self.replaced = 0
        """Completions of this process that came when another one's was recorded."""
        self._queue: queue.SimpleQueue[_Write | _Take | str | None] = queue.SimpleQueue()
        self._failure: OperationalError | None = None
        self._gone: OperationalError | None = None
        self._waiting: set[_Take] = set()
        self._unreleased: set[str] = set()
        self._next = self._ticked = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, row: Row) -> "asyncio.Future[None]":
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

    def lease(self, digests: tuple[str, ...]) -> "asyncio.Future[RecordedAnswer | None]":
        """Begin to take a lease; `Journal.lease` has the answers."""
        loop = asyncio.get_running_loop()
        take = _Take(digests, loop, loop.create_future())
        self._waiting.add(take)
        self._queue.put(take)
        return take.answer

    def release(self, digest: str) -> None:
        """Let go of a question, named by its first digest."""
        if self.store.shared:
            self._queue.put(digest)

    def give_up(self, error: BaseException) -> None:
        """End every wait for a lease with an error; called in the loop that waits."""
        for take in self._waiting:
            if not take.answer.done():
                take.answer.set_exception(error)

    def close(self) -> None:
        """Write what is in the queue and end the thread."""
        self.store.hurry()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        stopping = unsaved = False
        while not stopping:
            due = self._ticked + self.store.period - time.monotonic()
            group, stopping = self._next_group(max(0.0, due) if unsaved or self.store.shared else None)
            writes = [item for item in group if isinstance(item, _Write)]
            lost = self._commit(writes)
            unsaved = unsaved or bool(writes)
            if unsaved or self.store.shared:
                unsaved = not self._tick() and unsaved
            self._tell(writes, lost)
            self._release({item for item in group if isinstance(item, str)})
            self._take([item for item in group if isinstance(item, _Take)])

    def _next_group(self, timeout: float | None) -> tuple[list[_Write | _Take | str], bool]:
        """What came, after a wait for it; and whether nothing more will."""
        group: list[_Write | _Take | str] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(timeout=timeout)
            if item is not None and (pause := self._next - time.monotonic()) > 0:
                time.sleep(pause)
            self._next = time.monotonic() + self.store.pause
            while item is not None:
                group.append(item)
                if len(group) == _GROUP:
                    break
                item = self._queue.get_nowait()
            return group, item is None
        return group, False

    def _commit(self, writes: Sequence[_Write]) -> OperationalError | None:
        """Write completions; gives why they are not recorded."""
        if not writes:
            return None
        try:
            _, there = self._add([write.row for write in writes])
        except Exception as error:  # noqa: BLE001 - a writer that dies leaves everyone waiting forever
            # What comes later may still have room, and is then not lost.
            self._failure = self._unwritten(error)
            return self._failure
        if self.store.shared:
            # Where the connection broke as the transaction ended, the rows that are there may be ours.
            self.replaced += sum(there[write.row[0]] != write.row[-1] for write in writes)
        return None

    def _tick(self) -> bool:
        """Do what is due now and then; False if nothing was."""
        if time.monotonic() - self._ticked < self.store.period:
            return False
        try:
            self.store.tick()
        except Exception as error:  # noqa: BLE001 - likewise
            self._gone = self._unwritten(error)
        self._ticked = time.monotonic()
        return True

    def _unwritten(self, error: Exception) -> OperationalError:
        if isinstance(error, OperationalError):
            return error
        return OperationalError(f"{self.store.name}: cannot be written: {error}")

    def _tell(self, writes: Sequence[_Write], lost: OperationalError | None) -> None:
        for loop in {write.loop for write in writes}:
            # A canceled loop is closed and waits for nothing; its paid completions are written all the same.
            with contextlib.suppress(RuntimeError):
                group = [write for write in writes if write.loop is loop]
                # `_gone` as it is now: a later group may fail before the loop hears of this one.
                loop.call_soon_threadsafe(self._settle, group, lost or self._gone, lost is None)

    def _settle(self, group: Sequence[_Write], failure: OperationalError | None, written: bool) -> None:
        """Tell those who wait for a group; called in their loop."""
        if written:
            self._note(write.row[0] for write in group)
        for write in group:
            if write.done.done():
                continue
            if failure is None:
                write.done.set_result(None)
            else:
                write.done.set_exception(failure)

    # ---------------------------------------------------------------- leases

    def _release(self, digests: set[str]) -> None:
        self._unreleased |= digests
        if self._unreleased:
            # What cannot be released now is kept for the next time: the lease would be extended with the others.
            with contextlib.suppress(JudgeError):
                self.store.release(sorted(self._unreleased))
                self._unreleased.clear()

    def _take(self, takes: Sequence[_Take]) -> None:
        if not takes:
            return
        granted: set[str] = set()
        rows: dict[str, Row] = {}
        lost: JudgeError | None = None
        leased = {take.digests[0] for take in takes}
        self._unreleased -= leased
        try:
            granted = self.store.take(sorted(leased))
            # Only now: a completion may have been committed, and its lease removed, while the statement before began.
            rows = self.store.rows({digest for take in takes for digest in take.digests})
            answered = {take.digests[0] for take in takes if not rows.keys().isdisjoint(take.digests)}
            self._release(granted & answered)
            granted -= answered
        except Exception as error:  # noqa: BLE001 - likewise
            lost = error if isinstance(error, JudgeError) else OperationalError(f"{self.store.name}: {error}")
        for loop in {take.loop for take in takes}:
            own = [take for take in takes if take.loop is loop]
            try:
                loop.call_soon_threadsafe(self._settle_leases, own, granted, rows, lost)
            except RuntimeError:
                # A canceled loop is closed and asks nothing.
                self._release({take.digests[0] for take in own} & granted)

    def _settle_leases(
        self, takes: Sequence[_Take], granted: set[str], rows: Mapping[str, Row], lost: JudgeError | None
    ) -> None:
        """Tell those who wait for leases; called in their loop."""
        self._note(rows)
        for take in takes:
            self._waiting.discard(take)
            first = next((digest for digest in take.digests if digest in rows), None)
            if take.answer.done():
                if take.digests[0] in granted:
                    self.release(take.digests[0])
            elif lost is not None:
                take.answer.set_exception(lost)
            elif first is not None:
                try:
                    row = self.store.checked(rows[first])
                    take.answer.set_result(RecordedAnswer(first, _completion(self.store, row)))
                except JudgeError as error:
                    take.answer.set_exception(error)
            elif take.digests[0] in granted:
                take.answer.set_result(None)
            else:
                take.answer.set_exception(HeldElsewhere(take.digests[0]))
