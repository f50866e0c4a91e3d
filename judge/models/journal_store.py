"""The tables of a journal, read in the same words whether they lie in a file of SQLite or in a database."""

import contextlib
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from judge.errors import InputError, JudgeError
from judge.models.journal_rows import (
    NAMES,
    OLDER_VERSIONS,
    SCHEMA_VERSION,
    DamagedRow,
    Row,
    check_row,
    other_version,
    todays_row,
)
from judge.models.records import Message
from judge.models.spending import CallFacts

SUM = "digests"
"""The key, among a file's facts, of how many digests there are, and of the sum of their bytes as numbers."""
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes what is damaged."""
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}
"""SQLite's names of errors of a full disk; the second is of its `-shm` file."""
_TOGETHER = 500
"""Rows of one statement."""

Sample = list[tuple[str, tuple[Message, ...], CallFacts]]
_Item = TypeVar("_Item")


class Store:
    """The tables of a journal; what a statement raises is UNREADABLE, or an OperationalError where a server is away."""

    name: str
    """The place for messages, without credentials."""
    many: str
    """A table with a column `value`, from one parameter: a list of texts as JSON."""
    names = NAMES
    """COLUMNS for a query, with NULL for a column that an older version lacks."""
    version: str | None
    """The schema version; None where nothing was recorded yet."""
    shared: bool
    """Whether several processes may write at once, so that what is asked must be leased."""
    period: float
    """Seconds after which `tick` is due."""
    pause: float
    """Least seconds between the beginnings of two commits: what comes meanwhile shares the next one."""

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives, in a transaction of its own."""
        raise NotImplementedError

    def change(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        """Carry out a statement for each of the values, all or none, on the disk."""
        raise NotImplementedError

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, all or none, on the disk, and give how many these are."""
        raise NotImplementedError

    def digests(self) -> Iterator[str]:
        """Every digest, for one who opens the journal to write it."""
        raise NotImplementedError

    def scan(self) -> Iterator[Row]:
        """Every row that can be read, unchecked, past what is damaged."""
        return itertools.chain.from_iterable(self.pages())

    def take(self, digests: Sequence[str]) -> set[str]:
        """Lease questions that have no completion, and give those that are ours now."""
        raise NotImplementedError

    def release(self, digests: Sequence[str]) -> None:
        """Let go of questions."""

    def tick(self) -> None:
        """What is to be done now and then while the journal is written."""

    def hurry(self) -> None:
        """From now on, wait only a short time for a server that is away."""

    def check_there(self) -> None:
        """Refuse to go on where the journal is not at its place any more."""

    def close(self) -> None:
        """Release the place."""

    def rows(self, digests: Iterable[str], columns: str = NAMES) -> dict[str, Row]:
        """The rows of those digests that are recorded, by digest, unchecked; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest IN (SELECT value FROM {self.many})"  # noqa: S608 - names of columns only
        pages = (msgspec.json.encode(page).decode() for page in paged(digests, _TOGETHER))
        return {row[0]: row for page in pages for row in self.query(query, (page,))}

    def row(self, digest: str) -> Row | None:
        """The row of a digest, checked; None if there is none.

        Raises:
            InputError: It is damaged, or the journal cannot be read.
        """
        try:
            rows = self.query(f"SELECT {NAMES} FROM completion WHERE digest = ?", (digest,))  # noqa: S608 - names of columns only
        except UNREADABLE as error:
            raise self.unreadable(error) from error
        if rows and rows[0][0] != digest:
            # A damaged index leads to the row of another question.
            raise self.damaged(digest, DamagedRow("another one is found in its place"))
        return self.checked(rows[0]) if rows else None

    def checked(self, row: Row) -> Row:
        """The row.

        Raises:
            InputError: It is not what was recorded.
        """
        try:
            check_row(row)
        except DamagedRow as error:
            raise self.damaged(row[0], error) from error
        return row

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When completions were recorded, by digest; those that are not here are left out."""
        try:
            return {digest: str(row[1]) for digest, row in self.rows(digests, "digest, recorded").items()}
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    def sample(self, judge: str, most: int) -> Sample:
        """Digest, messages and facts of at most `most` calls to a judge; what cannot be read is left out."""
        # Digests are as good as random, so the first ones are a fair sample.
        query = "SELECT digest, messages, completion FROM completion WHERE judge = ? ORDER BY digest LIMIT ?"
        drawn: Sample = []
        # What is damaged is said where its completion is wanted.
        with contextlib.suppress(*UNREADABLE):
            for digest, messages, completion in self.query(query, (judge, most)):
                with contextlib.suppress(msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
                    asked = msgspec.json.decode(messages, type=tuple[Message, ...])
                    drawn.append((digest, asked, msgspec.json.decode(completion, type=CallFacts)))
        return drawn

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        rows = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def facts(self) -> list[Row]:
        """Every fact about a judge that is kept beside the completions."""
        return self.query("SELECT key, value FROM meta WHERE key NOT IN ('schema', ?) ORDER BY key", (SUM,))

    def placed_rows(self) -> Iterator[tuple[str, Row]]:
        """The rows in the order of their digests, checked, each after the digest under which it is stored.

        Rows of an older version come as this version records them, in the order in which they were recorded: of several
        that are one question today, the first is the one that stays.

        Raises:
            InputError: A row is damaged, or the journal cannot be read.
        """
        version = self.known_version()
        digest = ""
        try:
            for page in self.pages() if version == SCHEMA_VERSION else self._older_pages():
                for row in page:
                    digest = row[0]
                    yield digest, todays_row(row, version)
        except DamagedRow as error:
            raise self.damaged(digest, error) from error
        except UNREADABLE as error:
            raise self.unreadable(error) from error

    def known_version(self) -> str:
        """The schema version, of this version of judge or an older one.

        Raises:
            InputError: Nothing was recorded there, or by a later version.
        """
        if self.version is None:
            raise InputError(f"{self.name}: no journal is in this {'database' if self.shared else 'file'}")
        if self.version not in (*OLDER_VERSIONS, SCHEMA_VERSION):
            raise other_version(self.name, self.version)
        return self.version

    def pages(self, columns: str = "") -> Iterator[list[Row]]:
        """The rows in the order of their digests, unchecked, some at a time; `columns` begin with the digest."""
        query = f"SELECT {columns or self.names} FROM completion WHERE digest > ? ORDER BY digest LIMIT {_TOGETHER}"  # noqa: S608 - names of columns only
        last = ""
        while page := self.query(query, (last,)):
            yield page
            last = page[-1][0]

    def _older_pages(self) -> Iterator[list[Row]]:
        digests = (str(digest) for (digest,) in self.query("SELECT digest FROM completion ORDER BY recorded, digest"))
        for page in paged(digests, _TOGETHER):
            rows = self.rows(page, self.names)
            yield [rows[digest] for digest in page if digest in rows]

    def damaged(self, digest: str, error: DamagedRow) -> InputError:
        """The error about a row that is not what was recorded."""
        hint = "delete this row, and the same command asks again" if self.shared else salvage_hint(self.name)
        return InputError(f"{self.name}: damaged at the completion {digest}: {error}; {hint}")

    def unreadable(self, error: BaseException, what: str = "read") -> JudgeError:
        """The error about a journal that SQLite cannot read."""
        why = out_of_reach(error) or str(error)
        if why == str(error) and "unable to open" not in why:
            why += f"; {salvage_hint(self.name)}"
        return InputError(f"{self.name}: cannot be {what} as a journal: {why}")


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
