"""Where the rows of a journal lie: a file of SQLite, or a database that `judge.models.postgres` opens.

Both are asked in the same words, so that what is written, read, checked and counted is the same for both.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from judge.errors import InputError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.models.journal_file import SUM, UNREADABLE, FileStore, salvage_hint, unreadable
from judge.models.journal_rows import (
    NAMES,
    OLDER_VERSIONS,
    SCHEMA_VERSION,
    DamagedRow,
    Row,
    check_row,
    is_database,
    other_version,
    todays_row,
)

SHARED = "a journal in PostgreSQL"
"""What needs the extra, for messages."""
_TOGETHER = 500
"""Rows of one statement."""
_Item = TypeVar("_Item")


class Store(Protocol):
    """The tables of a journal; errors are those of SQLite, and of `judge.errors` where a database is away."""

    name: str
    """The place for messages, without credentials."""
    many: str
    """A table with a column `value`, from one parameter: a list of texts as JSON."""
    version: str | None
    """The schema version; None where nothing was recorded yet."""
    names: str
    """COLUMNS for a query, with NULL for a column that an older version lacks."""
    period: float
    """Seconds after which `tick` is due."""
    shared: bool
    """Whether several processes may write at once, so that what is asked must be leased."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives, in a transaction of its own."""
        ...

    def change(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        """Carry out a statement for each of the values, all or none, on the disk."""
        ...

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, all or none, on the disk, and give how many these are."""
        ...

    def digests(self) -> Iterator[str]:
        """Every digest, for one who opens the journal to write it."""
        ...

    def scan(self) -> Iterator[Row]:
        """Every row that can be read, unchecked, past what is damaged."""
        ...

    def tick(self) -> None:
        """What is to be done now and then while the journal is written."""
        ...

    def check_there(self) -> None:
        """Refuse to go on where the journal is not at its place any more."""
        ...

    def close(self) -> None:
        """Release the place."""
        ...


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


def paged(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of a size.

    >>> list(paged("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while page := list(itertools.islice(rest, size)):
        yield page


def rows_of(store: Store, digests: Iterable[str], columns: str = NAMES) -> dict[str, Row]:
    """The rows of those digests that are recorded, by digest, unchecked.

    Args:
        store: The journal.
        digests: The digests.
        columns: What a row is to hold, the digest first.
    """
    query = f"SELECT {columns} FROM completion WHERE digest IN (SELECT value FROM {store.many})"  # noqa: S608 - names of columns only
    pages = (msgspec.json.encode(page).decode() for page in paged(digests, _TOGETHER))
    return {row[0]: row for page in pages for row in store.query(query, (page,))}


def checked_rows(store: Store, digests: Iterable[str]) -> dict[str, Row]:
    """The same, checked.

    Raises:
        InputError: A row is damaged, or the journal cannot be read.
    """
    wanted = set(digests)
    try:
        rows = rows_of(store, wanted)
    except UNREADABLE as error:
        raise InputError(f"{store.name}: cannot be read as a journal: {unreadable(store.name, error)}") from error
    if strange := sorted(rows.keys() - wanted):
        # A damaged index leads to the row of another question.
        raise damaged(store, strange[0], DamagedRow("it is found under another digest"))
    return {digest: checked(store, row) for digest, row in rows.items()}


def checked(store: Store, row: Row) -> Row:
    """The row.

    Raises:
        InputError: It is not what was recorded.
    """
    try:
        check_row(row)
    except DamagedRow as error:
        raise damaged(store, row[0], error) from error
    return row


def damaged(store: Store, digest: str, error: DamagedRow) -> InputError:
    """The error about a row that is not what was recorded."""
    hint = "delete this row, and the same command asks again" if store.shared else salvage_hint(store.name)
    return InputError(f"{store.name}: damaged at the completion {digest}: {error}; {hint}")


def fact(store: Store, key: str) -> str | None:
    """A fact kept beside the completions; None if not set."""
    rows = store.query("SELECT value FROM meta WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def facts_of(store: Store) -> list[Row]:
    """Every fact about a judge that is kept beside the completions."""
    return store.query("SELECT key, value FROM meta WHERE key NOT IN ('schema', ?) ORDER BY key", (SUM,))


def stored_rows(store: Store) -> Iterator[tuple[str, Row]]:
    """The rows in the order of their digests, checked, each after the digest under which it is stored.

    Rows of an older version come as this version records them, in the order in which they were recorded: of several
    that are one question today, the first is the one that stays.

    Raises:
        InputError: A row is damaged, or the journal cannot be read.
    """
    version = known_version(store)
    digest = ""
    try:
        for page in _pages(store, version):
            for row in page:
                digest = row[0]
                yield digest, todays_row(row, version)
    except DamagedRow as error:
        raise damaged(store, digest, error) from error
    except UNREADABLE as error:
        raise InputError(f"{store.name}: cannot be read as a journal: {unreadable(store.name, error)}") from error


def _pages(store: Store, version: str) -> Iterator[list[Row]]:
    if version != SCHEMA_VERSION:
        digests = (str(digest) for (digest,) in store.query("SELECT digest FROM completion ORDER BY recorded, digest"))
        for some in paged(digests, _TOGETHER):
            rows = rows_of(store, some, store.names)
            yield [rows[digest] for digest in some]
        return
    query = f"SELECT {NAMES} FROM completion WHERE digest > ? ORDER BY digest LIMIT {_TOGETHER}"  # noqa: S608 - names of columns only
    last = ""
    while page := store.query(query, (last,)):
        yield page
        last = page[-1][0]


def known_version(store: Store) -> str:
    """The schema version of a journal, of this version of judge or an older one.

    Raises:
        InputError: Nothing was recorded there, or by a later version.
    """
    if store.version is None:
        raise InputError(f"{store.name}: no journal is in this database")
    if store.version not in (*OLDER_VERSIONS, SCHEMA_VERSION):
        raise other_version(store.name, store.version)
    return store.version
