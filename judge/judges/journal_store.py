"""The table of a journal, in the same words of SQL in a file of SQLite and in a database; and the file."""

import contextlib
import itertools
import operator
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.io.installed import need_extra
from judge.io.paths import StrPath
from judge.judges.journal_rows import (
    ADD_META,
    INSERT,
    NAMES,
    OLDER_VERSION,
    SCHEMA,
    SCHEMA_VERSION,
    SET_META,
    DamagedRow,
    Row,
    check_row,
    is_database,
)
from judge.plugins import need

Mode = Literal["write", "read", "live", "salvage"]
"""write: for this process alone, which makes the tables. read: a journal that nobody writes. live: the same although a
process may be writing it. salvage: of any version, and what can still be read of a damaged file."""
_SUM = "digests"
"""The key, among a file's facts, of the sum of all digests as numbers."""
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes what is damaged."""
_SMALLEST = 300
"""Bytes that a row takes at least: more rows than this allows cannot be in a file and its `-wal` file."""
_TOGETHER, _MANY = 500, 20_000
"""Rows of one statement, and digests."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Store:
    """The table of a journal. Where it is kept is a matter of five methods: run, take, release, tick and close."""

    name: str
    """The place for messages, without credentials."""
    version: str | None = None
    """The schema version; None where nothing was recorded yet."""
    shared = False
    """Whether several processes may write at once, so that what is asked must be leased."""
    mark, many = "?", "json_each(?)"
    """A parameter of a statement, and a table with a column `value` from one: a list of texts as JSON."""
    pause, period, max_wait = 0.02, 1.0, 0.0
    """Seconds for which completions are gathered into one commit, after which `tick` is due, and for which a server
    that is away is waited for."""

    def __init__(self) -> None:
        self.fetched: dict[str, Row | None] = {}
        """Rows that `find` need not look for, by digest; None for one that is not there."""

    def run(self, work: Callable[[Any], _Result], wrong: type[JudgeError] = InputError) -> _Result:
        """Do work with the connection in a transaction of its own, which is on the disk then; else raise `wrong`.

        To do the work twice must be to do it once. What writes is wrong by an OperationalError.
        """
        raise NotImplementedError

    def take(self, digests: Sequence[str]) -> set[str]:
        """Lease questions that have no completion, and give those that are ours now."""
        return set(digests)

    def release(self, digests: Sequence[str]) -> None:
        """Let go of questions."""

    def tick(self) -> None:
        """What is due now and then while the journal is written; OperationalError if it is not at its place."""

    def close(self) -> None:
        """Release the place."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives."""
        return self.run(lambda one: one.execute(statement.replace("?", self.mark), values).fetchall())

    def change(self, statement: str, values: Sequence[Sequence[object]]) -> int:
        """Carry out a statement for each of the values, all or none, and give how many rows it changed."""

        def work(connection: Any) -> int:
            cursor = connection.cursor()
            cursor.executemany(statement.replace("?", self.mark), values)
            return int(cursor.rowcount)

        return self.run(work, OperationalError) if values else 0

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, and give how many these are."""
        # In their order, so that no two processes wait for each other.
        return self.change(INSERT, sorted(rows))

    def digests(self) -> Iterator[str]:
        """Every digest in its order, for one who opens the journal to write it."""
        return (str(row[0]) for page in self.pages("digest", _MANY) for row in page)

    def find(self, digest: str, content: Callable[[Row], _Result]) -> _Result | None:
        """The content of the row of a digest, or None; an InputError if it is not what was recorded."""
        query = f"SELECT {NAMES} FROM completion WHERE digest = {self.mark}"  # noqa: S608 - names of columns only

        def work(connection: Any) -> _Result | None:
            row = connection.execute(query, (digest,)).fetchone()
            # Under the digest that was asked for: a damaged index leads to the row of another question.
            return None if row is None else self.sound((digest, *row[1:]), content)

        if digest not in self.fetched:
            return self.run(work)
        row = self.fetched[digest]
        return None if row is None else self.sound(row, content)

    def rows(self, digests: Iterable[str], columns: str = NAMES) -> dict[str, Row]:
        """The rows of those digests that are recorded, by digest, unchecked; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest IN (SELECT value FROM {self.many})"  # noqa: S608 - names of columns only
        pages = (msgspec.json.encode(page).decode() for page in paged(digests, _TOGETHER))
        return {row[0]: row for page in pages for row in self.query(query, (page,))}

    def sound(self, row: Row, content: Callable[[Row], _Result]) -> _Result:
        """The content of a row; an InputError if it is not what was recorded."""
        try:
            check_row(row)
            return content(row)
        except DamagedRow as error:
            hint = "delete this row, and the same command asks again" if self.shared else salvage_hint(self.name)
            raise InputError(f"{self.name}: damaged at the completion {row[0]}: {error}; {hint}") from error

    def sound_rows(self) -> Iterator[Row]:
        """Every row in the order of the digests; an InputError at one that is not what was recorded."""
        return (self.sound(row, tuple) for page in self.pages() for row in page)

    def pages(self, columns: str = NAMES, size: int = _TOGETHER) -> Iterator[list[Row]]:
        """The rows in the order of their digests, unchecked, some at a time; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest > ? ORDER BY digest LIMIT {size}"  # noqa: S608 - names of columns only
        last = ""
        while page := self.query(query, (last,)):
            yield page
            last = page[-1][0]

    def scan(self) -> Iterator[Row]:
        """Every row that can be read, unchecked, past what is damaged."""
        return itertools.chain.from_iterable(self.pages())

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        rows = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def add_facts(self, other: "Store") -> None:
        """Take over the facts about judges that another journal keeps; one that is known here stays as it is."""
        self.change(ADD_META, other.query("SELECT key, value FROM meta WHERE key NOT IN ('schema', ?)", (_SUM,)))


class FileStore(Store):
    """A journal in a file of SQLite, which only one process writes; None is a journal in memory.

    Raises:
        InputError: The file is no journal, or another process holds it.
    """

    def __init__(self, path: Path | None, mode: Mode) -> None:
        super().__init__()
        self.name = "the journal in memory" if path is None else str(path)
        self._path, self._mode = path, mode
        self._lock = threading.Lock()
        try:
            self._connection = self._made() if mode == "write" else self._opened()
            self._status = path.stat() if path else None
        except (OSError, *_UNREADABLE) as error:
            raise self._unreadable(error, "used" if mode == "write" else "read") from error

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
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *SCHEMA):
                connection.execute(statement)
            with connection:
                connection.execute(ADD_META, ("schema", SCHEMA_VERSION))
            self.version = _version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _opened(self, *, unlocked: bool = False) -> sqlite3.Connection:
        """The file to be read, without a change to it and to its `-wal` file."""
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
            with contextlib.suppress(*(_UNREADABLE if self._mode == "salvage" else ())):
                connection.execute("SELECT digest FROM completion LIMIT 1").fetchone()
                self.version = _version(connection)
        except _UNREADABLE as error:
            connection.close()
            if self._mode != "live" or unlocked or "locked" not in str(error):
                raise
            # No lock is asked for, which the other process would not give.
            return self._opened(unlocked=True)
        return connection

    def run(self, work: Callable[[Any], _Result], wrong: type[JudgeError] = InputError) -> _Result:
        """Do work with the connection in a transaction of its own, which is on the disk then."""
        try:
            with self._lock:
                try:
                    with self._connection:
                        return work(self._connection)
                except (InputError, *_UNREADABLE):
                    if self._mode != "live":
                        raise
                # Another process may have begun to write the file, or be writing the page, so a second look decides.
                self._connection.close()
                self._connection = self._opened()
                return work(self._connection)
        except _UNREADABLE as error:
            if wrong is InputError:
                raise self._unreadable(error) from error
            raise wrong(f"{self.name}: cannot be written: {error}") from error

    def _unreadable(self, error: BaseException, what: str = "read") -> InputError:
        """The error about a file that SQLite cannot use, though it may be sound."""
        why = f"{error}; {salvage_hint(self.name)}"
        if "unable to open" in str(error):
            why = str(error)
        elif "locked" in str(error):
            why = "another judge process is using it"
        elif _is_full(error):
            why = "its disk is full, and SQLite needs a little room beside a journal that was not closed"
        return InputError(f"{self.name}: cannot be {what} as a journal: {why}")

    def digests(self) -> Iterator[str]:
        """Every digest in its order by the index; an InputError if it differs from the table, and misses a row."""
        last, ordered, total = "", True, 0
        for page in self.pages("digest", _MANY):
            digests = [str(row[0]) for row in page]
            ordered = ordered and all(map(operator.lt, (last, *digests), digests))
            last, total = digests[-1], total + _sum(digests)
            yield from digests
        # 64 MiB of pages, because digests are inserted in no order; what the look above read is needed no more.
        self.query("PRAGMA cache_size = -65536")
        if not ordered or self.meta(_SUM) != f"{total:x}":
            # Another program may have changed the table and its index alike; else the index is damaged.
            for problem in self.problems(1):
                raise InputError(f"{self.name}: its index is damaged: {problem}; {salvage_hint(self.name)}")
            self.change(SET_META, [(_SUM, f"{total:x}")])

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, and give how many these are."""

        def work(connection: sqlite3.Connection) -> int:
            new = [row[0] for row in rows if connection.execute(INSERT, row).rowcount == 1]
            (before,) = connection.execute("SELECT value FROM meta WHERE key = ?", (_SUM,)).fetchone()
            connection.execute(SET_META, (_SUM, f"{int(before, 16) + _sum(new):x}"))
            return len(new)

        number = self.run(work, OperationalError)
        self._check_there()
        return number

    def problems(self, most: int) -> list[str]:
        """What SQLite finds wrong with the structure of the file."""
        try:
            lines = self._connection.execute(f"PRAGMA integrity_check({most})").fetchall()
        except _UNREADABLE as error:
            return [str(error)]
        return [line for (line,) in lines if line != "ok"]

    def scan(self) -> Iterator[Row]:
        """Every row that SQLite can read, unchecked, past what is damaged."""
        files = (Path(self.name), Path(f"{self.name}-wal"))
        last = sum(file.stat().st_size for file in files if file.exists()) // _SMALLEST
        query = f"SELECT rowid, {NAMES} FROM completion NOT INDEXED WHERE rowid >= ?"  # noqa: S608 - names of columns only
        begin = 1
        while begin <= last:
            try:
                for number, *row in self._connection.execute(query, (begin,)):
                    begin = number
                    yield tuple(row)
                return
            except _UNREADABLE as error:
                if "locked" in str(error) or _is_full(error):
                    raise self._unreadable(error) from error
            # Past the row after the last one that could be read.
            begin += 1

    def tick(self) -> None:
        """Bring what is committed into the journal's file, so that a copy of this file alone holds it."""
        self._check_there()
        # Where this fails, for a full disk say, the completions are as safe as before in the `-wal` file.
        with contextlib.suppress(sqlite3.Error), self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _check_there(self) -> None:
        """Refuse to go on where the file was moved, removed or replaced: what is written now would be lost."""
        with contextlib.suppress(OSError):
            if self._path is None or self._status is None or os.path.samestat(self._path.stat(), self._status):
                return
        raise OperationalError(
            f"{self.name}: was moved, removed or replaced while it was in use, so nothing more is asked; the "
            "completions that were paid for are where the file went"
        )

    def close(self) -> None:
        """Release the file; one that was written is a single plain file again, which can be copied."""
        if self._mode == "write":
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()


def open_store(place: StrPath | None, mode: Mode = "read", max_wait: float = 30.0) -> Store:
    """Open a journal in a file or database, or in memory (None).

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The place holds no journal of this version, is a link, or another process holds the file.
        OperationalError: The database cannot be reached.
    """
    store: Store
    if is_database(place):
        store = _database().DatabaseStore(place, max_wait, writing=mode == "write")
    elif mode == "write" or (place is not None and Path(place).is_file()):
        store = FileStore(None if place is None else Path(place), mode)
    else:
        raise InputError(f"{place}: no such journal")
    try:
        if store.version is None and (mode == "read" or (mode == "salvage" and store.shared)):
            raise InputError(f"{store.name}: no journal is in this {'database' if store.shared else 'file'}")
        if store.version not in (None, SCHEMA_VERSION) and (mode != "salvage" or store.version != OLDER_VERSION):
            way = f": `judge journal salvage {store.name} -o NEW` converts it" if store.version == OLDER_VERSION else ""
            raise InputError(
                f"{store.name}: journal of schema version {store.version}, this version of judge reads and writes "
                f"{SCHEMA_VERSION}{way}"
            )
    except InputError:
        store.close()
        raise
    return store


def check_database(shared: str | None) -> None:
    """Raise a UsageError for an address of no shared journal, or without psycopg; None is a journal in a file."""
    if shared is not None:
        if not is_database(shared):
            raise UsageError("the address of a shared journal must begin with postgresql://")
        _database().read_database(shared)


def _database() -> Any:
    """The module of journals in a database: `DatabaseStore`, and `read_database`, which checks an address."""
    what = "a journal in PostgreSQL"
    need_extra("postgres", what)
    return need("journals.postgresql", what)


def _connected(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)


def _version(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return None if row is None else str(row[0])


def _sum(digests: Iterable[str]) -> int:
    return sum(int.from_bytes(digest.encode()) for digest in digests)


def _is_full(error: BaseException) -> bool:
    # The second is of the `-shm` file.
    return getattr(error, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


def lacks_log(path: StrPath) -> bool:
    """Whether a journal was copied or moved away from its `-wal` file, which holds the latest completions."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            # In use, or it was when its process was killed.
            in_use = file.read(19)[18:] == b"\x02"
    except OSError:
        return False
    return in_use and not path.with_name(f"{path.name}-wal").exists()


def paged(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of a size."""
    rest = iter(items)
    while page := list(itertools.islice(rest, size)):
        yield page


def salvage_hint(name: str) -> str:
    """What to do about a damaged journal, in words."""
    return f"`judge journal verify {name}` lists what is damaged, `judge journal salvage {name} -o NEW` keeps the rest"
