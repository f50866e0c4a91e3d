"""A table of passage ids in an SQLite file: made in bounded memory, and refused where it is damaged.

A row has a checksum over its id, its content and the row that follows it. So a flipped bit on the disk changes no
answer, neither what is found under an id nor that nothing is. The first row has an empty id; its content says what the
table is made of.
"""

import contextlib
import itertools
import sqlite3
import weakref
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from judge.errors import InputError, OperationalError
from judge.io.files import input_errors
from judge.passages.streams import APPLICATION, CollectionProblems, is_index

TableKind = Literal["hashes", "offsets"]
PassageEntry = tuple[bytes, bytes, int]
"""An id, its content, and the line that it stands on."""
_Row = tuple[bytes, bytes, int]
"""An id, its content and the checksum."""

_MEMORY: Final = 200_000
"""KiB of the table that are sorted or kept in memory."""


class PassageListing(Protocol):
    """What a table is made from; each of its methods may raise."""

    problems: CollectionProblems
    """Settled before the table is finished."""

    def entries(self) -> Iterator[PassageEntry]:
        """The entries in any order."""

    def source(self) -> dict[str, Any]:
        """The `source` of the header, once all entries were read."""

    def repeated(self, earlier: PassageEntry, entry: PassageEntry, times: int) -> None:
        """Called for the second content of an id (`times` is 2) and each after it, with the content before."""


class PassageTable:
    """A table of passage ids that is looked up; its connection is closed with it."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        weakref.finalize(self, connection.close)
        self._name = name
        self._connection = connection
        connection.text_factory = bytes
        try:
            self.kind, self.source = msgspec.json.decode(self._around(b"")[0][1], type=tuple[TableKind, dict[str, Any]])
        except msgspec.MsgspecError as error:
            raise self._damaged() from error

    def find(self, name: bytes) -> list[bytes]:
        """The contents of an id in rising order; empty if it is not there.

        An InputError if the part of the file that was read is damaged.
        """
        return [content for found, content, _ in self._around(name) if found == name != b""]

    def _around(self, name: bytes) -> list[_Row]:
        """The row before an id, then its rows."""
        rows: list[_Row | None] = []
        try:
            rows += self._connection.execute("SELECT * FROM entry WHERE id < ? ORDER BY id DESC LIMIT 1", (name,))
            for row in self._connection.execute("SELECT * FROM entry WHERE id >= ? ORDER BY id, content", (name,)):
                rows.append(row)
                if row[0] > name:
                    break
            else:
                rows.append(None)
            sound = [row for row, following in itertools.pairwise(rows) if row and row[2] == _checksum(row, following)]
        except (sqlite3.Error, TypeError, ValueError) as error:
            # A damaged row may have a number where the bytes were, and a message of SQLite a name that is no text.
            raise self._damaged() from error
        # The first row of all is before every id.
        if not sound or len(sound) < len(rows) - 1:
            raise self._damaged()
        return sound

    def _damaged(self) -> InputError:
        return InputError(f"{self._name}: the index is damaged: its checksums do not match; build it again")


def _checksum(row: _Row, following: _Row | None) -> int:
    return zlib.crc32(b"\n".join(row[:2] if following is None else (row[0], row[1], following[0], following[1])))


def open_table(path: Path, kind: TableKind) -> PassageTable:
    """Open an index file of one kind. An InputError if the file is no index, is one of another kind, or is damaged."""
    with input_errors(path):
        path.stat()
    if not is_index(path):
        raise InputError(f"{path}: not an index that `judge passages index` wrote")
    # Nobody writes a finished index, so that it may lie where nothing can be locked.
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    table = PassageTable(str(path), sqlite3.connect(address, uri=True, check_same_thread=False))
    if table.kind != kind:
        names = {"hashes": "a hash list", "offsets": "a collection"}
        raise InputError(f"{path}: this is an index of {names[table.kind]}; expected one of {names[kind]}")
    return table


def passing_table(name: str, kind: TableKind, listing: PassageListing) -> PassageTable:
    """The table of a listing, for this process alone; errors are those of `build_table`."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    try:
        _fill(connection, kind, listing)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise OperationalError(f"{name}: cannot be sorted in SQLite's temporary folder: {error}") from error
        raise
    return PassageTable(name, connection)


def build_table(path: Path, kind: TableKind, listing: PassageListing) -> int:
    """Write the table of a listing, and return the number of its rows; missing folders are made.

    Entries are sorted on the disk, in SQLite's folder for temporary files. A table of the same name is replaced in one
    step at the end. If the writing fails, neither a file nor a folder is left behind. An OperationalError if the disk
    is full, the folder cannot be written, or another process writes the same file.
    """
    made = [folder for folder in path.parents if not folder.exists()]
    # The name is fixed, so that the next build takes over a file that a kill left behind.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if temporary.is_symlink() or (temporary.exists() and temporary.stat().st_nlink > 1):
            raise OperationalError(f"{temporary}: a link, and nothing is written through links; remove it")
        with contextlib.closing(_claimed(path, temporary)) as connection:
            try:
                count = _fill(connection, kind, listing)
                # Replaced while it is locked: no other build may take it for a file that a kill left behind.
                temporary.replace(path)
            except BaseException:
                connection.rollback()
                for left in (temporary, temporary.with_name(f"{temporary.name}-journal")):
                    left.unlink(missing_ok=True)
                raise
        return count
    except BaseException as error:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError | sqlite3.Error):
            why = getattr(error, "strerror", None) or error
            raise OperationalError(f"{path}: the index cannot be written: {why}") from error
        raise


def _claimed(path: Path, temporary: Path) -> sqlite3.Connection:
    """The empty temporary file, which no other process may write until it is closed."""
    connection = sqlite3.connect(temporary, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # What a killed build has written is rolled back here.
        connection.execute("BEGIN EXCLUSIVE")
        taken = bool(connection.execute("SELECT 1 FROM sqlite_master").fetchone()) or not temporary.exists()
    except sqlite3.OperationalError as error:
        taken = "locked" in str(error)
        if not taken:
            connection.close()
            raise
    if taken:
        connection.close()
        raise OperationalError(f"{path}: another build is writing this file")
    connection.execute("COMMIT")
    return connection


def _fill(connection: sqlite3.Connection, kind: TableKind, listing: PassageListing) -> int:
    connection.execute(f"PRAGMA cache_size = -{_MEMORY}")
    connection.execute(f"PRAGMA application_id = {int.from_bytes(APPLICATION, 'big')}")
    connection.execute("CREATE TEMP TABLE heap (id BLOB, content BLOB, line INTEGER)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO heap VALUES (?, ?, ?)", listing.entries())
    header = msgspec.json.encode((kind, listing.source()), order="sorted")
    connection.execute(
        "CREATE TABLE entry (id BLOB, content BLOB, checksum INTEGER, PRIMARY KEY (id, content)) WITHOUT ROWID"
    )
    heap = connection.execute("SELECT id, content, min(line) FROM heap GROUP BY id, content ORDER BY id, content")
    rows = connection.executemany("INSERT INTO entry VALUES (?, ?, ?)", _sealed((b"", header, 0), heap, listing))
    listing.problems.settle()
    connection.execute("COMMIT")
    return rows.rowcount - 1


def _sealed(last: PassageEntry, entries: Iterable[PassageEntry], listing: PassageListing) -> Iterator[_Row]:
    """The rows of sorted entries behind that of the header, each with its checksum."""
    times = 1
    for entry in entries:
        if entry[0] == last[0]:
            times += 1
            listing.repeated(last, entry, times)
        else:
            times = 1
        yield last[0], last[1], _checksum(last, entry)
        last = entry
    yield last[0], last[1], _checksum(last, None)
