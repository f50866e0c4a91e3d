"""A journal in a file of SQLite: opened, written by one process, and read past what is damaged in it."""

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from judge.errors import InputError, OperationalError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.models.journal_rows import (
    INSERT,
    NAMES,
    OLDER_VERSIONS,
    SCHEMA,
    SCHEMA_VERSION,
    SET_META,
    Row,
    is_database,
)
from judge.models.journal_store import MANY, SUM, UNREADABLE, Store, check_version, out_of_reach, salvage_hint

Mode = Literal["write", "read", "live", "salvage"]
"""write: for this process alone, which makes the tables. read: a journal that nobody writes. live: the same although a
process may be writing it. salvage: of any version, and what can still be read of a damaged file."""
SHARED = "a journal in PostgreSQL"
"""What needs the extra, for messages."""
CHECKPOINT = 1.0
"""Seconds after which committed completions go from the `-wal` file into the journal itself."""
_WIDE_CACHE = "PRAGMA cache_size = -65536"
"""64 MiB of pages for a connection that writes: digests are inserted in no order, so each needs another page."""
_WAL_MODE = 2
"""Byte 18 of a journal that is in use, or was when its process was killed."""
_TOGETHER = 256
"""Rows that are read at once past damage."""
_SMALLEST = 300
"""Bytes that a row takes at least: more rows than this allows cannot be in a file."""

_Result = TypeVar("_Result")


class FileStore(Store):
    """A journal in a file of SQLite, which only one process writes; `Store` describes the methods.

    Args:
        path: The file; None for a journal in memory.
        mode: How it is used.

    Raises:
        InputError: The file is no journal, or another process holds it.
    """

    many = "json_each(?)"
    shared = False
    pause = 0.02

    def __init__(self, path: Path | None, mode: Mode) -> None:
        self.name = "the journal in memory" if path is None else str(path)
        self.period = CHECKPOINT
        self._path, self._mode = path, mode
        self._lock = threading.Lock()
        self._sum = (0, 0)
        """How many digests there are, and the sum of their bytes as numbers."""
        try:
            self._connection = self._made() if mode == "write" else self._opened()
        except (OSError, *UNREADABLE) as error:
            raise self.unreadable(error, "used" if mode == "write" else "read") from error
        self._identity = self._there()

    def _made(self) -> sqlite3.Connection:
        """The file for this process alone, with the tables of this version."""
        if self._path is not None:
            if self._path.is_symlink():
                raise InputError(f"{self.name}: a link where the journal has to be; move it away or name its folder")
            self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connected(":memory:" if self._path is None else self._path.absolute().as_uri())
        try:
            # Exclusive: a second process on the same journal would pay for the same calls again.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                self.version = _version(connection)
                check_version(self.name, self.version)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            for statement in SCHEMA:
                connection.execute(statement)
            self.keeps = not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").fetchone()
            if self.version is None:
                self.version = SCHEMA_VERSION
                with connection:
                    connection.execute(SET_META, ("schema", SCHEMA_VERSION))
        except BaseException:
            connection.close()
            raise
        return connection

    def _opened(self, *, unlocked: bool = False) -> sqlite3.Connection:
        """The file to be read, without a change to it and to its `-wal` file.

        Where a process was killed that wrote the journal, SQLite leaves a `-shm` file, which holds no completion.
        """
        # SQLite would make a `-wal` file where there is none, and nobody could tell any more that it is missing.
        how = "immutable=1" if unlocked or lacks_log(self.name) else "mode=ro"
        connection = _connected(f"{Path(self.name).absolute().as_uri()}?{how}")
        try:
            if self._mode == "salvage":
                # The file may be shorter than it says of itself.
                connection.execute("PRAGMA writable_schema = ON")
            if unlocked and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                # The tables of the other process have not reached the file yet.
                return connection
            with contextlib.suppress(*(UNREADABLE if self._mode == "salvage" else ())):
                connection.execute("SELECT digest FROM completion LIMIT 1").fetchone()
                self.version = _version(connection)
        except UNREADABLE as error:
            connection.close()
            if self._mode != "live" or unlocked or "locked" not in str(error):
                raise
            # No lock is asked for, which the other process would not give.
            return self._opened(unlocked=True)
        return connection

    def _there(self) -> tuple[int, int] | None:
        """What the file system calls the file; None if it is not there."""
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
                f"{self.name}: was moved, removed or replaced while it was in use, so nothing more is asked; the "
                "completions that were paid for are where the file went"
            )

    def run(self, work: Callable[[Any], _Result]) -> _Result:
        """Do work with the connection in a transaction of its own."""
        with self._lock:
            try:
                with self._connection:
                    return work(self._connection)
            except sqlite3.Error:
                # Another process may have begun to write the file, or be writing the page.
                if not self.reopen():
                    raise
            return work(self._connection)

    def reopen(self) -> bool:
        """Look at the file anew; False where no other process can be writing it."""
        if self._mode == "live":
            self._connection.close()
            self._connection = self._opened()
        return self._mode == "live"

    def digests(self) -> Iterator[str]:
        """Every digest, by the index that finds a completion.

        Raises:
            InputError: Table and index differ, so that a paid completion would not be found.
        """
        before, ordered = "", True
        for page in self.pages("digest", MANY):
            digests = [str(row[0]) for row in page]
            self._count(digests)
            ordered = ordered and all(first < second for first, second in itertools.pairwise([before, *digests]))
            before = digests[-1]
            yield from digests
        # Only now: the look at the whole index would fill it with pages that nobody needs again.
        self.query(_WIDE_CACHE)
        if not ordered or self.meta(SUM) != self._sum_text():
            # Another program may have changed the table and its index alike; else the index is damaged.
            for problem in self.problems(1):
                raise InputError(f"{self.name}: its index is damaged: {problem}; {salvage_hint(self.name)}")
            self.change(SET_META, [(SUM, self._sum_text())])

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, all or none, on the disk, and give how many these are."""
        before = self._sum

        def work(connection: sqlite3.Connection) -> int:
            new = [row[0] for row in rows if connection.execute(INSERT, row).rowcount == 1]
            self._count(new)
            connection.execute(SET_META, (SUM, self._sum_text()))
            return len(new)

        try:
            return self.write(work)
        except BaseException:
            self._sum = before
            raise

    def _count(self, new: Sequence[str]) -> None:
        count, total = self._sum
        self._sum = count + len(new), total + sum(int.from_bytes(digest.encode()) for digest in new)

    def _sum_text(self) -> str:
        return f"{self._sum[0]} {self._sum[1]:x}"

    def problems(self, most: int) -> list[str]:
        """What SQLite finds wrong with the structure of the file."""
        try:
            lines = self._connection.execute(f"PRAGMA integrity_check({most})").fetchall()
        except UNREADABLE as error:
            return [str(error)]
        return [line for (line,) in lines if line != "ok"]

    def scan(self) -> Iterator[Row]:
        """Every row that SQLite can read, unchecked, past what is damaged; of the first version, without checksums.

        Raises:
            InputError: The file cannot be read for another reason than damage.
        """
        top = Path(self.name).stat().st_size // _SMALLEST
        with contextlib.suppress(*UNREADABLE):
            top = min(top, *self._connection.execute("SELECT coalesce(max(rowid), 0) FROM completion").fetchone())
        for start in range(0, top, _TOGETHER):
            yield from self._between(start, start + _TOGETHER)

    def _between(self, start: int, end: int) -> list[Row]:
        """The rows after one number and up to another; where they cannot be read together, those of each half."""
        names = NAMES.replace("checksum", "NULL") if self.version == OLDER_VERSIONS[0] else NAMES
        query = f"SELECT {names} FROM completion NOT INDEXED WHERE rowid > ? AND rowid <= ? ORDER BY rowid"  # noqa: S608 - names of columns only
        try:
            return self._connection.execute(query, (start, end)).fetchall()
        except UNREADABLE as error:
            if out_of_reach(error):
                raise InputError(f"{self.name}: {out_of_reach(error)}") from error
        middle = (start + end) // 2
        return [*self._between(start, middle), *self._between(middle, end)] if middle > start else []

    def tick(self) -> None:
        """Bring what is committed into the journal's file, so that a copy of this file alone holds it."""
        self.check_there()
        # Where this fails, for a full disk say, the completions are as safe as before in the `-wal` file.
        with contextlib.suppress(sqlite3.Error), self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Release the file; one that was written is a single plain file again, which can be copied."""
        if self._mode == "write":
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


def _connected(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)


def _version(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return None if row is None else str(row[0])


def open_store(place: StrPath | None, mode: Mode = "read", max_wait: float = 30.0) -> Store:
    """Open a journal.

    Args:
        place: A file, or the address of a database; None for a journal in memory.
        mode: How it is used.
        max_wait: Most seconds for which a database that is away is waited for.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal of this version, or another process holds the file.
        OperationalError: The database cannot be reached.
    """
    store: Store
    if is_database(place):
        need_extra("postgres", SHARED)
        from judge.models.postgres import DatabaseStore  # needs the extra

        store = DatabaseStore(place, max_wait, writing=mode == "write")
    elif mode == "write" or (place is not None and Path(place).is_file()):
        store = FileStore(None if place is None else Path(place), mode)
    else:
        raise InputError(f"{place}: no such journal")
    try:
        if store.version is None and (mode == "read" or (mode == "salvage" and store.shared)):
            raise InputError(f"{store.name}: no journal is in this {'database' if store.shared else 'file'}")
        if mode != "salvage" or store.version not in OLDER_VERSIONS:
            check_version(store.name, store.version)
    except InputError:
        store.close()
        raise
    return store


def lacks_log(path: StrPath) -> bool:
    """Whether a journal was copied or moved away from its `-wal` file, which holds the latest completions."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            in_use = file.read(19)[18:] == bytes([_WAL_MODE])
    except OSError:
        return False
    return in_use and not path.with_name(f"{path.name}-wal").exists()
