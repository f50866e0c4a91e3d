"""What a shared journal holds, without a change to it."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from judge.errors import InputError
from judge.models.journal_rows import SCHEMA_VERSION, DamagedRow, Recorded, read_row
from judge.models.records import Completion, Message
from judge.models.shared.address import read_database
from judge.models.shared.connection import DatabaseConnection, SharedConnection
from judge.models.shared.tables import PAGE, SAMPLE, SELECT, SETTING_UP, TABLES, TIMES
from judge.models.spending import CallFacts

_TOGETHER = 500
"""Rows, or digests, of one statement."""


class SharedReader:
    """The completions of a shared journal; other processes may be writing it.

    Args:
        url: The address of its database.
        max_wait: Most seconds for which a server that is away is waited for.

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The database holds something else.
        OperationalError: The server cannot be reached.
    """

    def __init__(self, url: str, max_wait: float = 30.0) -> None:
        self._connection = SharedConnection(read_database(url), max_wait, reading=True)
        self.name = self._connection.name
        self._ahead: dict[str, tuple[Any, ...] | None] = {}
        """The rows that were fetched last, by digest; None for one that is not there."""
        try:
            self.there = self._connection.run(lambda connection: has_tables(connection, self.name), InputError)
            """Whether the database holds a journal; the first writer makes it."""
            self._some = self.there and self._connection.run(_holds_some)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the server."""
        self._connection.close()

    def holds_some(self) -> bool:
        """Whether it held any completion when it was opened."""
        return self._some

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        return self._connection.run(lambda connection: fact(connection, key)) if self.there else None

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None.

        Raises:
            InputError: The journal is damaged at this completion.
        """
        row = self._ahead[digest] if digest in self._ahead else self._rows([digest]).get(digest)
        return None if row is None else checked_row(self.name, row).completion

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what is recorded under some digests, for the `get` of each that follows."""
        wanted = list(digests)
        self._ahead = {**dict.fromkeys(wanted), **self._rows(wanted)}

    def _rows(self, digests: list[str]) -> dict[str, tuple[Any, ...]]:
        return self._connection.run(lambda connection: rows_of(connection, digests)) if digests and self._some else {}

    def sample(self, judge: str, most: int) -> list[tuple[str, tuple[Message, ...], CallFacts]]:
        """Digest, messages and facts of at most `most` calls to a judge; the same ones each time."""
        return self._connection.run(lambda connection: drawn(connection, judge, most)) if self.there else []

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of COLUMNS in the order of their digests, unchecked; those that come later may be missing.

        Raises:
            InputError: The database holds no journal.
        """
        if not self.there:
            raise InputError(f"{self.name}: no journal is in this database")
        last = ""
        while page := self._page(last):
            yield from page
            last = page[-1][0]

    def _page(self, last: str) -> list[tuple[Any, ...]]:
        return self._connection.run(lambda connection: connection.execute(PAGE, (last, _TOGETHER)).fetchall())

    def facts(self) -> list[tuple[str, str]]:
        """Every fact beside the completions, the schema's version apart."""
        return self._connection.run(
            lambda connection: [
                (str(key), str(value))
                for key, value in connection.execute("SELECT key, value FROM meta WHERE key <> 'schema' ORDER BY key")
            ]
        )


def _holds_some(connection: DatabaseConnection) -> bool:
    return connection.execute("SELECT 1 FROM completion LIMIT 1").fetchone() is not None


def has_tables(connection: DatabaseConnection, name: str) -> bool:
    """Whether a database holds a journal of this version; False if it holds nothing of the kind.

    Args:
        connection: To the database.
        name: The database, for messages.

    Raises:
        InputError: It holds another version, or tables of another program.
    """
    # Before the first look, because the server may remember for a while that a table was missing.
    connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", (SETTING_UP,))
    found = connection.execute("SELECT to_regclass(name) IS NOT NULL FROM unnest(%s::text[]) AS name", (list(TABLES),))
    there = [row[0] for row in found.fetchall()]
    if not any(there):
        return False
    version = fact(connection, "schema") if all(there) else None
    if version is None:
        raise InputError(
            f"{name}: the database has tables of another program under a name of the journal's "
            f"({', '.join(TABLES)}); give the journal a database of its own"
        )
    if version != SCHEMA_VERSION:
        raise InputError(f"{name}: journal of schema version {version}, this version of judge writes {SCHEMA_VERSION}")
    return True


def fact(connection: DatabaseConnection, key: str) -> str | None:
    """A fact kept beside the completions; None if not set."""
    row = connection.execute("SELECT value FROM meta WHERE key = %s", (key,)).fetchone()
    return None if row is None else str(row[0])


def rows_of(connection: DatabaseConnection, digests: list[str]) -> dict[str, tuple[Any, ...]]:
    """The rows of COLUMNS of those digests that are recorded, by digest."""
    return {row[0]: row for row in connection.execute(SELECT, (digests,))}


def checked_row(name: str, row: tuple[Any, ...]) -> Recorded:
    """A row of COLUMNS, checked.

    Args:
        name: The database, for messages.
        row: The row.

    Raises:
        InputError: The row is not what was recorded.
    """
    try:
        return read_row(row)
    except DamagedRow as error:
        raise InputError(
            f"{name}: damaged at the completion {row[0]}: {error}; delete this row, and the same command asks again"
        ) from error


def drawn(connection: DatabaseConnection, judge: str, most: int) -> list[tuple[str, tuple[Message, ...], CallFacts]]:
    """Digest, messages and facts of at most `most` calls to a judge; what cannot be read is left out."""
    found: list[tuple[str, tuple[Message, ...], CallFacts]] = []
    for digest, messages, completion in connection.execute(SAMPLE, (judge, most)):
        with contextlib.suppress(msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
            asked = msgspec.json.decode(messages, type=tuple[Message, ...])
            found.append((digest, asked, msgspec.json.decode(completion, type=CallFacts)))
    return found


def times_in(connection: DatabaseConnection, digests: Iterable[str]) -> dict[str, str]:
    """When completions were recorded, by digest: UTC, as `2025-01-31T12:00:00.000Z`; unknown digests are left out."""
    wanted = list(digests)
    return {
        digest: recorded
        for start in range(0, len(wanted), _TOGETHER)
        for digest, recorded in connection.execute(TIMES, (wanted[start : start + _TOGETHER],))
    }
