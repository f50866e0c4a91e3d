"""The tables of a journal, read and written in the same words in a file of SQLite and in a database."""

import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from judge.errors import InputError, OperationalError
from judge.models.journal_rows import (
    INSERT,
    NAMES,
    OLDER_VERSIONS,
    SCHEMA_VERSION,
    DamagedRow,
    Row,
    check_row,
)

SUM = "digests"
"""The key, among a file's facts, of how many digests there are, and of the sum of their bytes as numbers."""
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes what is damaged."""
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}
"""SQLite's names of errors of a full disk; the second is of its `-shm` file."""
_TOGETHER, MANY = 500, 20_000
"""Rows of one statement, and digests."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Store:
    """The tables of a journal."""

    name: str
    """The place for messages, without credentials."""
    version: str | None = None
    """The schema version; None where nothing was recorded yet."""
    shared: bool
    """Whether several processes may write at once, so that what is asked must be leased."""
    many: str
    """A table with a column `value`, from one parameter: a list of texts as JSON."""
    mark = "?"
    """What stands for a parameter in a statement."""
    period: float
    """Seconds after which `tick` is due."""
    pause: float
    """Seconds for which completions are gathered into one commit."""
    keeps = False
    """Whether a row that was inserted is there: no trigger and no other process removes it."""
    max_wait = 0.0
    """Most seconds for which a server that is away is waited for."""

    def run(self, work: Callable[[Any], _Result]) -> _Result:
        """Do work with the connection in a transaction of its own; what SQLite raises is UNREADABLE."""
        raise NotImplementedError

    def take(self, digests: Sequence[str]) -> set[str]:
        """Lease questions that have no completion, and give those that are ours now."""
        raise NotImplementedError

    def release(self, digests: Sequence[str]) -> None:
        """Let go of questions."""

    def tick(self) -> None:
        """What is to be done now and then while the journal is written."""

    def check_there(self) -> None:
        """Refuse to go on where the journal is not at its place any more."""

    def reopen(self) -> bool:
        """Look anew at what another process may be writing; False where nothing would change."""
        return False

    def close(self) -> None:
        """Release the place."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives."""
        try:
            return self.run(lambda one: one.execute(self._marked(statement), values).fetchall())
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    def write(self, work: Callable[[Any], _Result]) -> _Result:
        """Make changes with the connection, all or none; they are on the disk then.

        Raises:
            OperationalError: They cannot be written.
        """
        try:
            return self.run(work)
        except UNREADABLE as error:
            raise OperationalError(f"{self.name}: cannot be written: {error}") from error

    def change(self, statement: str, values: Sequence[Sequence[object]]) -> int:
        """Carry out a statement for each of the values, and give how many rows it changed; errors are of `write`."""

        def work(connection: Any) -> int:
            cursor = connection.cursor()
            cursor.executemany(self._marked(statement), values)
            return int(cursor.rowcount)

        return self.write(work) if values else 0

    def _marked(self, statement: str) -> str:
        return statement if self.mark == "?" else statement.replace("?", self.mark)

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, all or none, on the disk, and give how many these are."""
        # In their order, so that no two processes wait for each other.
        return self.change(INSERT, sorted(rows))

    def digests(self) -> Iterator[str]:
        """Every digest, for one who opens the journal to write it."""
        return (str(row[0]) for page in self.pages("digest", MANY) for row in page)

    def rows(self, digests: Iterable[str], columns: str = NAMES) -> dict[str, Row]:
        """The rows of those digests that are recorded, by digest, unchecked; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest IN (SELECT value FROM {self.many})"  # noqa: S608 - names of columns only
        pages = (msgspec.json.encode(page).decode() for page in paged(digests, _TOGETHER))
        return {row[0]: row for page in pages for row in self.query(query, (page,))}

    def row(self, digest: str) -> Row | None:
        """The row of a digest, unchecked; None if there is none."""
        rows = self.query(f"SELECT {NAMES} FROM completion WHERE digest = ?", (digest,))  # noqa: S608 - names of columns only
        # Under the digest that was asked for: a damaged index leads to the row of another question.
        return (digest, *rows[0][1:]) if rows else None

    def sound(self, row: Row, content: Callable[[Row], _Result]) -> _Result:
        """The content of a row.

        Raises:
            InputError: It is not what was recorded.
        """
        try:
            check_row(row)
            return content(row)
        except DamagedRow as error:
            hint = "delete this row, and the same command asks again" if self.shared else salvage_hint(self.name)
            raise InputError(f"{self.name}: damaged at the completion {row[0]}: {error}; {hint}") from error

    def sound_rows(self) -> Iterator[Row]:
        """Every row in the order of the digests; errors are those of `sound`."""
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

    def facts(self) -> list[Row]:
        """Every fact about a judge that is kept beside the completions."""
        return self.query("SELECT key, value FROM meta WHERE key NOT IN ('schema', ?) ORDER BY key", (SUM,))

    def unreadable(self, error: BaseException, what: str = "read") -> InputError:
        """The error about a journal that SQLite cannot read."""
        hint = "" if "unable to open" in str(error) else f"; {salvage_hint(self.name)}"
        why = out_of_reach(error) or f"{error}{hint}"
        return InputError(f"{self.name}: cannot be {what} as a journal: {why}")


def check_version(name: str, version: str | None) -> None:
    """Refuse a journal of another version.

    Raises:
        InputError: The message names the command that converts an older one.
    """
    if version in (None, SCHEMA_VERSION):
        return
    way = f": `judge journal salvage {name} -o NEW` converts it" if version in OLDER_VERSIONS else ""
    raise InputError(
        f"{name}: journal of schema version {version}, this version of judge reads and writes {SCHEMA_VERSION}{way}"
    )


def paged(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of a size.

    >>> list(paged("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while page := list(itertools.islice(rest, size)):
        yield page


def salvage_hint(name: str) -> str:
    """What to do about a damaged journal, in words."""
    return f"`judge journal verify {name}` lists what is damaged, `judge journal salvage {name} -o NEW` keeps the rest"


def out_of_reach(error: BaseException) -> str:
    """Why SQLite cannot use a journal that may be sound, in words; empty if the error is of another kind."""
    if "locked" in str(error):
        return "another judge process is using it"
    if getattr(error, "sqlite_errorname", "") in _NO_ROOM:
        return "its disk is full, and SQLite needs a little room beside a journal that was not closed"
    return ""
