"""The journal: every paid completion, by the digest of its request, so that no call is paid for twice.

SQLite in WAL mode, one writer. A completion counts only after its commit has reached the disk; commits are
grouped, so that many completions share one wait for the disk. Each row is checked when it is read (`journal_rows`),
and the index when the journal is opened (`journal_sum`).
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from judge.errors import InputError, OperationalError
from judge.files.paths import StrPath
from judge.models.journal_rows import (
    ADD_CHECKSUM,
    COLUMNS,
    INSERT,
    SCHEMA,
    SCHEMA_VERSION,
    WIDE_CACHE,
    WITHOUT_CHECKSUMS,
    DamagedRow,
    check_row,
    columns_of,
    completion_of,
    new_row,
    open_to_read,
    salvage_hint,
    times_of,
    unreadable,
)
from judge.models.journal_sum import SUM, DigestSum, DisorderError, KnownDigests, ascending, first_apart
from judge.models.journal_writer import GroupWriter
from judge.models.open_journal import QuestionClaims
from judge.models.records import Completion, Message, Request
from judge.models.spending import CallFacts, call_sample

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM completion WHERE digest = ?"  # noqa: S608 - names of columns only
_THERE = "SELECT 1 FROM completion WHERE digest = ?"
_IN_INDEX = "SELECT digest FROM completion ORDER BY digest"
_IN_TABLE = "SELECT digest FROM completion NOT INDEXED"
_ADOPT = f"INSERT OR IGNORE INTO completion ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - names of columns only
_TOGETHER = 10_000
"""Most completions that one transaction takes over."""


class Journal:
    """A journal file, open in one process at a time; without a path, the journal is kept in memory only.

    Raises:
        InputError: The file is no journal of this version, is a link, or another process holds it.
        OperationalError: The disk cannot be written.
    """

    claims: QuestionClaims | None = None
    """None: no other process has the file, so nothing need be claimed."""

    def __init__(self, path: StrPath | None) -> None:
        self._path = None if path is None else Path(path)
        self._name = "the journal in memory" if path is None else str(self._path)
        self._lock = threading.Lock()
        self._known = KnownDigests()
        if self._path is not None and self._path.is_symlink():
            raise InputError(f"{self._name}: a link where the journal has to be; move it away or name its folder")
        try:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            address = ":memory:" if self._path is None else self._path.absolute().as_uri()
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{self._name}: cannot be opened as a journal: {error}") from error
        try:
            # Exclusive: a second process on the same journal would pay for the same calls again.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(SCHEMA)
            self._settle_version()
            self._sum = self._read_sum()
            # Only now: the look at the whole index would fill it with pages that nobody needs again.
            self._connection.execute(WIDE_CACHE)
        except sqlite3.Error as error:
            self._connection.close()
            raise InputError(f"{self._name}: cannot be used as a journal: {unreadable(path, error)}") from error
        except InputError:
            self._connection.close()
            raise
        self._identity = self._there()
        self._writer = GroupWriter(self._name, self._commit, self._checkpoint, self._known.add)

    def _settle_version(self) -> None:
        """Write the version into a new journal, and give an older one its column of checksums."""
        version = self.meta("schema")
        if version == WITHOUT_CHECKSUMS:
            with self._connection:
                self._connection.execute(ADD_CHECKSUM)
                self._connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION,))
        elif version is None:
            self.set_meta("schema", SCHEMA_VERSION)
        elif version != SCHEMA_VERSION:
            raise InputError(
                f"{self._name}: journal of schema version {version}, this version of judge writes {SCHEMA_VERSION}"
            )

    def _read_sum(self) -> DigestSum:
        """The sum of the digests in the index, which finds a completion.

        Raises:
            InputError: Table and index differ, so that a paid completion would not be found.
        """
        try:
            indexed = ascending(row[0] for row in self._connection.execute(_IN_INDEX))
            found = DigestSum().plus(self._known.noting(indexed))
        except DisorderError as error:
            raise self._damaged(f"its index is damaged at the completion {error}") from error
        if self.meta(SUM) == found.text():
            return found
        # Another program wrote it, or an older version of judge, which kept no sum; else the index is damaged.
        if DigestSum().plus(row[0] for row in self._connection.execute(_IN_TABLE)) != found:
            first = first_apart(lambda: self._digests(_IN_TABLE), lambda: self._digests(_IN_INDEX))
            raise self._damaged(f"its index is damaged{first and f' at the completion {first}'}")
        self.set_meta(SUM, found.text())
        return found

    def _digests(self, query: str) -> Iterator[str]:
        return (str(digest) for (digest,) in self._connection.execute(query))

    def _damaged(self, why: str) -> InputError:
        return InputError(f"{self._name}: {why}{'' if self._path is None else f'; {salvage_hint(self._path)}'}")

    def _there(self) -> tuple[int, int] | None:
        """What the file system calls the journal's file; None if it is not there."""
        try:
            status = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return (status.st_dev, status.st_ino) if status else None

    def check_there(self) -> None:
        """Refuse to go on where the file was moved, removed or replaced: what is written now would be lost.

        Raises:
            OperationalError: The file is not there any more.
        """
        if self._there() != self._identity:
            raise OperationalError(
                f"{self._name}: was moved, removed or replaced while it was in use, so nothing more is asked; the "
                "completions that were paid for are where the file went"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._sum.number

    def __bool__(self) -> bool:
        return self._sum.number > 0

    def __contains__(self, digest: str) -> bool:
        """Whether a completion is recorded under a digest.

        Raises:
            InputError: The journal cannot be read there.
        """
        if not self._known.may_hold(digest):
            return False
        try:
            with self._lock:
                return self._connection.execute(_THERE, (digest,)).fetchone() is not None
        except sqlite3.Error as error:
            raise self._damaged(f"damaged at the completion {digest}: {error}") from error

    def close(self) -> None:
        """Write the queued completions and release the file."""
        self._writer.close()
        # Back to a single plain file: it can be copied, and read from a folder that cannot be written to.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions, such as the answer form that an endpoint takes; None if not set."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions, on the disk.

        Raises:
            OperationalError: The disk cannot be written.
        """
        self._change("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, value)])

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts; a key that is not set stays so.

        Raises:
            OperationalError: The disk cannot be written.
        """
        self._change("DELETE FROM meta WHERE key = ?", [(key,) for key in keys])

    def _change(self, statement: str, values: Sequence[tuple[str, ...]]) -> None:
        try:
            with self._lock, self._connection:
                self._connection.executemany(statement, values)
        except sqlite3.Error as error:
            raise OperationalError(f"{self._name}: cannot be written: {error}") from error

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None.

        Raises:
            InputError: The journal is damaged at this completion.
        """
        if not self._known.may_hold(digest):
            # The writer has the lock while it waits for the disk, and most questions are new.
            return None
        try:
            with self._lock:
                row = self._connection.execute(_SELECT, (digest,)).fetchone()
            if row is None:
                return None
            # The digest of the row is the one that was asked for, so a row of another question fails the check.
            check_row(row)
            return completion_of(row)
        except (sqlite3.Error, DamagedRow) as error:
            raise self._damaged(f"damaged at the completion {digest}: {error}") from error

    def ahead(self, digests: Iterable[str]) -> None:
        """Nothing: a look at a file is quick."""

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When the completions of some digests were recorded; those that are not here are left out."""
        with self._lock:
            return times_of(self._connection, digests)

    def sample(self, judge: str, most: int) -> list[tuple[tuple[Message, ...], CallFacts]]:
        """What a judge was asked and what the calls took, of at most `most` calls; the same ones each time.

        What cannot be read is left out: this is for estimates alone.
        """
        # What is damaged is said where its completion is wanted.
        with self._lock, contextlib.suppress(sqlite3.Error):
            return [(messages, facts) for _, messages, facts in call_sample(self._connection, judge, most)]
        return []

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of another journal into this one, so that no call is paid for again.

        What is copied before an error stays; the same call goes on from there.

        Raises:
            InputError: The other journal cannot be read, or this one cannot be written.
        """
        try:
            with contextlib.closing(open_to_read(Path(path))) as source:
                completions = source.execute(f"SELECT {columns_of(source)} FROM completion")  # noqa: S608 - names of columns only
                facts = source.execute("SELECT * FROM meta WHERE key NOT IN ('schema', ?)", (SUM,)).fetchall()
                # The `-wal` file grows as large as a transaction.
                while rows := list(map(_checked, completions.fetchmany(_TOGETHER))):
                    with self._lock, self._connection:
                        total = self._add(_ADOPT, self._noted(rows))
                    self._sum = total
                with self._lock, self._connection:
                    self._connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", facts)
        except (sqlite3.Error, DamagedRow) as error:
            raise InputError(f"{path}: its completions cannot be taken over: {unreadable(path, error)}") from error

    async def put(
        self,
        digest: str,
        judge: str,
        parameters: Mapping[str, Any],
        request: Request,
        completion: Completion,
    ) -> None:
        """Record a completion; returns when it is on the disk. Arguments and errors are those of `write`."""
        await self.write(digest, judge, parameters, request, completion)

    def write(
        self,
        digest: str,
        judge: str,
        parameters: Mapping[str, Any],
        request: Request,
        completion: Completion,
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
            raise OperationalError(f"{self._name}: cannot be written: {error}") from error
        return self._writer.put(row)

    def record(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Record completions that came another way, all or none of them; one whose digest is here stays as it is.

        Args:
            rows: From `new_row`.

        Returns:
            How many were new.

        Raises:
            OperationalError: The disk cannot be written.
        """
        before = len(self)
        try:
            with self._lock, self._connection:
                total = self._add(INSERT, self._noted(rows))
        except sqlite3.Error as error:
            raise OperationalError(f"{self._name}: cannot be written: {error}") from error
        self._sum = total
        return len(self) - before

    def _commit(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._lock, self._connection:
            total = self._add(INSERT, rows)
        self._sum = total

    def _add(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> DigestSum:
        """Insert rows whose digests are new, and give the new sum; part of a transaction that the caller ends."""
        total = self._sum.plus(row[0] for row in rows if self._connection.execute(statement, row).rowcount)
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (SUM, total.text()))
        return total

    def _noted(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            self._known.add((row[0],))
            yield row

    def _checkpoint(self) -> None:
        """Bring what is committed into the journal's file, so that a copy of this file alone holds it."""
        self.check_there()
        # Where this fails, for a full disk say, the completions are as safe as before in the `-wal` file.
        with contextlib.suppress(sqlite3.Error), self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _checked(row: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        check_row(row)
    except DamagedRow as error:
        raise DamagedRow(f"damaged at the completion {row[0]}: {error}") from error
    return row
