"""A journal in a file of SQLite: opened, written by one process, and read past what is damaged in it."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

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
    other_version,
)
from judge.models.journal_store import SUM, UNREADABLE, Store, out_of_reach, salvage_hint

SHARED = "a journal in PostgreSQL"
"""What needs the extra, for messages."""
CHECKPOINT = 1.0
"""Seconds after which committed completions go from the `-wal` file into the journal itself."""
_PAUSE = 0.02
"""Seconds between two commits, each of which waits for the disk and costs as much as ten rows."""
_WIDE_CACHE = "PRAGMA cache_size = -65536"
"""64 MiB of pages for a connection that writes: digests are inserted in no order, so each needs another page."""
_WAL_MODE = 2
"""Byte 18 of a journal that is in use, or was when its process was killed."""
_SMALLEST = 300
"""Bytes that a row takes at least: more rows than this allows cannot be in a file."""


def open_store(place: StrPath, *, live: bool = False) -> Store:
    """Open a journal to read it; nothing in it is changed.

    Args:
        place: A file, or the address of a database.
        live: Read a file although a process is writing it.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal.
        OperationalError: The database cannot be reached.
    """
    if not is_database(place):
        return FileStore(Path(place), live=live)
    need_extra("postgres", SHARED)
    from judge.models.postgres import DatabaseStore  # needs the extra

    return DatabaseStore(place)


def lacks_log(path: StrPath) -> bool:
    """Whether a journal was copied or moved away from its `-wal` file, which holds the latest completions."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            in_use = file.read(19)[18:] == bytes([_WAL_MODE])
    except OSError:
        return False
    return in_use and not path.with_name(f"{path.name}-wal").exists()


class FileStore(Store):
    """A journal in a file of SQLite, which only one process writes; `Store` describes the methods.

    Args:
        path: The file; None for a journal in memory.
        writing: Open it for this process alone, and make it if it is not there; else nothing is changed.
        live: Read it although a process is writing it; what came in its last second or two may be missing.
        broken: Read what SQLite can still read of a damaged file.

    Raises:
        InputError: The file is no journal, or another process holds it.
    """

    many = "json_each(?)"
    shared = False
    pause = _PAUSE

    def __init__(self, path: Path | None, *, writing: bool = False, live: bool = False, broken: bool = False) -> None:
        self.name = "the journal in memory" if path is None else str(path)
        self.version: str | None = None
        self.period = CHECKPOINT
        self._path = path
        self._writing, self._live, self._broken = writing, live, broken
        self._unlocked = False
        """Whether it is read without a lock, because another process is writing it."""
        self._lock = threading.Lock()
        self._sum = (0, 0)
        try:
            self._connection = self._made() if writing else self._opened()
        except (OSError, *UNREADABLE) as error:
            raise self.unreadable(error, "used" if writing else "read") from error
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
                if self.version not in (None, SCHEMA_VERSION):
                    raise other_version(self.name, str(self.version))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            for statement in SCHEMA:
                connection.execute(statement)
            if self.version is None:
                self.version = SCHEMA_VERSION
                with connection:
                    connection.execute(SET_META, ("schema", SCHEMA_VERSION))
        except BaseException:
            connection.close()
            raise
        return connection

    def _opened(self) -> sqlite3.Connection:
        """The file to be read, without a change to it and to its `-wal` file.

        Where a process was killed that wrote the journal, SQLite leaves a `-shm` file, which holds no completion.
        """
        # SQLite would make a `-wal` file where there is none, and nobody could tell any more that it is missing.
        how = "immutable=1" if self._unlocked or lacks_log(self.name) else "mode=ro"
        connection = _connected(f"{Path(self.name).absolute().as_uri()}?{how}")
        try:
            if self._broken:
                # The file may be shorter than it says of itself.
                connection.execute("PRAGMA writable_schema = ON")
            if self._unlocked and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                # The tables of the other process have not reached the file yet.
                connection.close()
                connection = _connected(":memory:")
                for statement in SCHEMA:
                    connection.execute(statement)
            with contextlib.suppress(*(UNREADABLE if self._broken else ())):
                connection.execute("SELECT digest FROM completion LIMIT 1").fetchone()
                self.version = _version(connection)
            if self.version == OLDER_VERSIONS[0]:
                self.names = NAMES.replace("checksum", "NULL")
        except UNREADABLE as error:
            connection.close()
            if not self._live or self._unlocked or "locked" not in str(error):
                raise
            # No lock is asked for, which the other process would not give.
            self._unlocked = True
            return self._opened()
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

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives."""
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                if not self._live or (not self._unlocked and "locked" not in str(error)):
                    raise
        # A page may be written while it is read, so a second look decides.
        self.reopen()
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def reopen(self) -> bool:
        """Look at the file anew; False where no process is writing it, so that nothing would change."""
        if self._live:
            with self._lock:
                self._connection.close()
                self._connection = self._opened()
        return self._unlocked

    def change(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        """Carry out a statement for each of the values, all or none, on the disk."""
        with self._lock, self._connection:
            self._connection.executemany(statement, values)

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, all or none, on the disk, and give how many these are."""
        with self._lock, self._connection:
            new = [row[0] for row in rows if self._connection.execute(INSERT, row).rowcount == 1]
            total = self._sum[0] + len(new), self._sum[1] + sum(map(_number, new))
            self._connection.execute(SET_META, (SUM, _sum_text(total)))
        self._sum = total
        return len(new)

    def digests(self) -> Iterator[str]:
        """Every digest, by the index that finds a completion.

        Raises:
            InputError: Table and index differ, so that a paid completion would not be found.
        """
        count = total = 0
        before, ordered = "", True
        with self._lock:
            for (digest,) in self._connection.execute("SELECT digest FROM completion ORDER BY digest"):
                count, total = count + 1, total + _number(str(digest))
                before, ordered = str(digest), ordered and str(digest) > before
                yield before
            # Only now: the look at the whole index would fill it with pages that nobody needs again.
            self._connection.execute(_WIDE_CACHE)
        self._sum = count, total
        if not ordered or self.meta(SUM) != _sum_text(self._sum):
            # Another program may have changed the table and its index alike; else the index is damaged.
            for (line,) in self.query("PRAGMA integrity_check(1)"):
                if line != "ok":
                    raise InputError(f"{self.name}: its index is damaged: {line}; {salvage_hint(self.name)}")
            self.change(SET_META, [(SUM, _sum_text(self._sum))])

    def scan(self) -> Iterator[Row]:
        """Every row that SQLite can read, unchecked, past what is damaged.

        Raises:
            sqlite3.Error: The file cannot be read for another reason than damage.
        """
        query = f"SELECT {self.names}, rowid FROM completion NOT INDEXED WHERE rowid"  # noqa: S608 - names of columns only
        last, top = 0, self._top()
        while True:
            try:
                for row in self._connection.execute(f"{query} > ? ORDER BY rowid", (last,)):
                    yield row[:-1]
                    last = row[-1]
                return
            except UNREADABLE as error:
                if out_of_reach(error):
                    raise
            # One by one, up to the next row that can be read.
            while last < top:
                last += 1
                with contextlib.suppress(*UNREADABLE):
                    if row := self._connection.execute(f"{query} = ?", (last,)).fetchone():
                        yield row[:-1]
                        break
            else:
                return

    def _top(self) -> int:
        """No row has a higher number."""
        with contextlib.suppress(*UNREADABLE):
            return int(self._connection.execute("SELECT coalesce(max(rowid), 0) FROM completion").fetchone()[0])
        return Path(self.name).stat().st_size // _SMALLEST

    def tick(self) -> None:
        """Bring what is committed into the journal's file, so that a copy of this file alone holds it."""
        self.check_there()
        # Where this fails, for a full disk say, the completions are as safe as before in the `-wal` file.
        with contextlib.suppress(sqlite3.Error), self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Release the file; one that was written is a single plain file again, which can be copied."""
        if self._writing:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


def _connected(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)


def _version(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return None if row is None else str(row[0])


def _number(digest: str) -> int:
    return int.from_bytes(digest.encode())


def _sum_text(total: tuple[int, int]) -> str:
    return f"{total[0]} {total[1]:x}"
