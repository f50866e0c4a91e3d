"""A journal in a PostgreSQL database: the completions of several processes, on several machines, at once."""

import asyncio
import itertools
import secrets
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from judge.errors import InputError, OperationalError
from judge.files.paths import StrPath
from judge.models.journal_merge import facts_of
from judge.models.journal_rows import CHECKED, COLUMNS, SCHEMA_VERSION, journal_rows, new_row
from judge.models.journal_sum import KnownDigests
from judge.models.journal_writer import GroupWriter
from judge.models.records import Completion, Message, Request
from judge.models.shared import tables
from judge.models.shared.address import read_database
from judge.models.shared.claims import SharedClaims
from judge.models.shared.connection import DatabaseConnection, SharedConnection
from judge.models.shared.reader import checked_row, drawn, fact, has_tables, rows_of, times_in
from judge.models.spending import CallFacts

_NEW = (*CHECKED, "checksum")
"""The columns of `new_row`; the server sets the time."""
_TOGETHER = 1000
"""Rows of one statement where many are taken over."""


class SharedJournal:
    """A journal that several processes write at once; `OpenJournal` describes the methods.

    A completion counts only once its transaction has ended. While the server is away, what came back is kept in memory
    and written when it is there again.

    Args:
        url: The address of the database.
        max_wait: Most seconds for which a server that is away is waited for.

    Raises:
        UsageError: The address cannot be read, or the server refuses the user or the database.
        InputError: The database holds something else, or it cannot be written.
        OperationalError: The server cannot be reached.
    """

    def __init__(self, url: str, max_wait: float = 300.0) -> None:
        address = read_database(url)
        self._name = address.name
        self._holder = secrets.token_hex(16)
        self._replaced = 0
        """Completions of this process that came when another one's was recorded."""
        self._ahead: dict[str, tuple[Any, ...]] = {}
        """The rows that were fetched last, by digest."""
        self._reading = SharedConnection(address, max_wait)
        try:
            self._reading.run(self._settle, InputError)
            self._known, self._some = self._reading.run(_known_digests)
            self._writing = SharedConnection(address, max_wait)
        except BaseException:
            self._reading.close()
            raise
        self.claims = SharedClaims(self._reading, self._holder, self._note)
        self._writer = GroupWriter(self._name, self._commit, lambda: None, self._note)

    def _settle(self, connection: DatabaseConnection) -> None:
        """Make the tables where they are missing; one process does it for all."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (tables.SETTING_UP,))
        if not has_tables(connection, self._name):
            for statement in tables.CREATE:
                connection.execute(statement)
            connection.execute(tables.SET_META, ("schema", SCHEMA_VERSION))

    def _note(self, digests: Sequence[str]) -> None:
        self._known.add(digests)
        self._some = self._some or bool(digests)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __bool__(self) -> bool:
        return self._some

    def __contains__(self, digest: str) -> bool:
        return self._known.may_hold(digest) and digest in self.times([digest])

    def close(self) -> None:
        """Write the queued completions, let go of every question and of the server."""
        self._writing.hurry()
        self._writer.close()
        self.claims.close()
        self._writing.close()
        self._reading.close()

    def check_there(self) -> None:
        """Refuse results that rest on a completion which the journal does not hold.

        Raises:
            OperationalError: Another process recorded its own, because a lease of this one had expired.
        """
        if self._replaced:
            raise OperationalError(
                f"{self._name}: this process was not heard of for more than {tables.LEASE} seconds, and another one "
                f"asked {self._replaced} of its questions again; the same command takes these answers"
            )

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        return self._reading.run(lambda connection: fact(connection, key))

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions."""
        self._writing.run(lambda connection: connection.execute(tables.SET_META, (key, value)))

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts; a key that is not set stays so."""
        self._writing.run(lambda connection: connection.execute(tables.DROP_META, (list(keys),)))

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest when the journal was opened, or by this process since; or None.

        Raises:
            InputError: The journal is damaged at this completion.
        """
        if not self._known.may_hold(digest):
            # Most questions are new, and each look at the server takes its time. A claim finds what came since.
            return None
        rows = self._ahead if digest in self._ahead else self._rows([digest])
        return checked_row(self._name, rows[digest]).completion if digest in rows else None

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what is recorded under some digests, for the `get` of each that follows."""
        wanted = [digest for digest in digests if self._known.may_hold(digest)]
        self._ahead = self._rows(wanted) if wanted else {}

    def _rows(self, digests: list[str]) -> dict[str, tuple[Any, ...]]:
        return self._reading.run(lambda connection: rows_of(connection, digests))

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When the completions of some digests were recorded; those that are not here are left out."""
        wanted = list(digests)
        return self._reading.run(lambda connection: times_in(connection, wanted))

    def sample(self, judge: str, most: int) -> list[tuple[tuple[Message, ...], CallFacts]]:
        """What a judge was asked and what the calls took, of at most `most` calls; the same ones each time."""
        return [call[1:] for call in self._reading.run(lambda connection: drawn(connection, judge, most))]

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one, so that no call is paid for again.

        Raises:
            InputError: The file cannot be read.
            OperationalError: The database cannot be written.
        """
        rows = journal_rows(path)
        while page := list(itertools.islice(rows, _TOGETHER)):
            there = self.times(row[0] for row in page)
            self._add(COLUMNS, [row for row in page if row[0] not in there])
        facts = facts_of(path)
        self._writing.run(lambda connection: [connection.execute(tables.ADD_META, pair) for pair in facts])

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk, or raises an OperationalError."""
        try:
            row = new_row(digest, judge, parameters, request, completion)
        except UnicodeEncodeError as error:
            raise OperationalError(f"{self._name}: cannot be written: {error}") from error
        return self._writer.put(row)

    def record(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Record completions that came another way, all or none of them; one whose digest is here stays as it is."""
        return self._add(_NEW, list(rows))

    def _add(self, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> int:
        """Add rows in one transaction, and give how many were new."""
        new = self._writing.run(lambda connection: _inserted(connection, columns, rows)) if rows else 0
        self._note([row[0] for row in rows])
        return new

    def _commit(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add the completions of questions that this process asked, and let go of the questions."""
        digests = [row[0] for row in rows]
        ours = {row[0]: row[-1] for row in rows}

        def work(connection: DatabaseConnection) -> int:
            replaced = 0
            if _inserted(connection, _NEW, rows) < len(rows):
                # Where the connection broke as the transaction ended, the rows that are there may be ours.
                there = connection.execute(tables.CHECKSUMS, (digests,)).fetchall()
                replaced = sum(ours[digest] != checksum for digest, checksum in there)
            connection.execute(tables.RELEASE, {"holder": self._holder, "digests": digests})
            return replaced

        self._replaced += self._writing.run(work)


def _inserted(connection: DatabaseConnection, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> int:
    """Add rows whose digests are new, and give how many these are."""
    return connection.execute(tables.insert(columns), [list(values) for values in zip(*rows, strict=True)]).rowcount


def _known_digests(connection: DatabaseConnection) -> tuple[KnownDigests, bool]:
    """Which digests are recorded, and whether any is."""
    known, some = KnownDigests(), False
    with connection.cursor(name="digests") as cursor:
        cursor.itersize = 20_000
        for _ in known.noting(row[0] for row in cursor.execute(tables.STARTS)):
            some = True
    return known, some
