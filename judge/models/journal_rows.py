"""The rows of a journal: what they hold, how they are written, and how each one proves itself.

A row's checksum is the SHA-256 over everything that was asked and answered. It shows damage and rows that changed
places; it is no signature, because whoever rewrites a row can rewrite its checksum.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from judge.errors import InputError
from judge.files.paths import StrPath
from judge.models.records import AnswerForm, Completion, Message, Request

SCHEMA_VERSION = "2"
WITHOUT_CHECKSUMS = "1"
"""Schema version of the journals whose rows have no checksum."""
COLUMNS = (
    *("digest", "judge", "parameters", "messages", "sample", "form", "criterion", "turn_id", "response_id"),
    *("completion", "recorded", "checksum"),
)
SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS completion (
    digest TEXT PRIMARY KEY,
    judge TEXT NOT NULL,
    parameters TEXT NOT NULL,
    messages TEXT NOT NULL,
    sample INTEGER NOT NULL,
    form TEXT NOT NULL,
    criterion TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    completion TEXT NOT NULL,
    recorded TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    checksum TEXT
);
"""
ADD_CHECKSUM = "ALTER TABLE completion ADD COLUMN checksum TEXT"
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}
"""SQLite's names of errors of a full disk; the second is of its `-shm` file."""
WIDE_CACHE = "PRAGMA cache_size = -65536"
"""64 MiB of pages for a connection that writes: digests are inserted in no order, so each needs another page."""
_WAL_MODE = 2
"""Byte 18 of a journal that is in use, or was when its process was killed."""
CHECKED = COLUMNS[:10]
"""The columns under the checksum; the time at which SQLite recorded the row is none of them."""

_Kind = TypeVar("_Kind")
_encoder = msgspec.json.Encoder(order="deterministic")


def request_digest(judge: str, parameters: Mapping[str, Any], request: Request) -> str:
    """SHA-256, in hexadecimal, over the judge, every sent parameter, the full messages and the sample index."""
    return question_digest(judge, parameters, request.messages, request.sample)


def question_digest(judge: str, parameters: Mapping[str, Any], messages: Sequence[Message], sample: int) -> str:
    """The digest of a request, of which only what was sent is known."""
    return hashlib.sha256(_encoder.encode([judge, dict(parameters), messages, sample])).hexdigest()


def new_row(
    digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
) -> tuple[Any, ...]:
    """The columns of a row, without the time, which SQLite sets."""
    row = (
        digest,
        judge,
        _encoder.encode(dict(parameters)).decode(),
        msgspec.json.encode(request.messages).decode(),
        request.sample,
        request.form,
        request.criterion,
        request.turn_id,
        request.response_id,
        msgspec.json.encode(completion).decode(),
    )
    return (*row, checksum(row))


INSERT = f"INSERT OR IGNORE INTO completion ({', '.join((*CHECKED, 'checksum'))}) VALUES ({', '.join('?' * 11)})"  # noqa: S608 - names of columns only


def checksum(row: Sequence[Any]) -> str:
    """SHA-256, in hexadecimal, over the ten columns of what was asked and answered."""
    return hashlib.sha256(_encoder.encode(list(row[: len(CHECKED)]))).hexdigest()


class Recorded(NamedTuple):
    """One completion of a journal, with the request that it answers."""

    digest: str
    judge: str
    parameters: dict[str, Any]
    messages: tuple[Message, ...]
    sample: int
    form: AnswerForm
    completion: Completion
    sealed: bool
    """Whether a checksum vouches for the row; an older version of judge wrote none."""


class DamagedRow(Exception):
    """A row is not what was recorded, and why."""


def check_row(row: Sequence[Any]) -> None:
    """Refuse a row of COLUMNS that is not what was recorded.

    Raises:
        DamagedRow: The row contradicts its checksum.
    """
    if row[-1] is not None and row[-1] != checksum(row):
        raise DamagedRow("its content is not what was recorded")


def completion_of(row: Sequence[Any]) -> Completion:
    """The completion of a row of COLUMNS.

    Raises:
        DamagedRow: It is of another form.
    """
    return _decoded(row[COLUMNS.index("completion")], Completion)


def read_row(row: Sequence[Any]) -> Recorded:
    """A row of COLUMNS, checked.

    Raises:
        DamagedRow: The row contradicts its checksum or is of another form.
    """
    check_row(row)
    return Recorded(
        digest=row[0],
        judge=row[1],
        parameters=_decoded(row[2], dict[str, Any]),
        messages=_decoded(row[3], tuple[Message, ...]),
        sample=row[4],
        form=row[5],
        completion=completion_of(row),
        sealed=row[-1] is not None,
    )


def _decoded(text: str, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


def contradiction(row: Sequence[Any]) -> str:
    """Why a row of COLUMNS is not what was recorded; empty if it is.

    A row without a checksum must at least have the digest of its question.
    """
    try:
        entry = read_row(row)
    except DamagedRow as error:
        return str(error)
    if entry.sealed or entry.digest == question_digest(entry.judge, entry.parameters, entry.messages, entry.sample):
        return ""
    return "its digest is not that of its question"


def columns_of(connection: sqlite3.Connection) -> str:
    """The names of COLUMNS for a query, with NULL for the checksums that an older journal lacks."""
    present = {row[1] for row in connection.execute("PRAGMA table_info(completion)")}
    return ", ".join(name if name in present or name != "checksum" else "NULL" for name in COLUMNS)


def lacks_log(path: StrPath) -> bool:
    """Whether a journal was copied or moved away from its `-wal` file, which holds the latest completions."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            in_use = file.read(19)[18:] == bytes([_WAL_MODE])
    except OSError:
        return False
    return in_use and not path.with_name(f"{path.name}-wal").exists()


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing of the journal and of its `-wal` file.

    Where a process was killed that wrote the journal, SQLite leaves a `-shm` file, which holds no completion.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    # SQLite would make a `-wal` file where there is none, and nobody could tell any more that it is missing.
    how = "immutable=1" if lacks_log(path) else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=0)


def times_of(connection: sqlite3.Connection, digests: Iterable[str]) -> dict[str, str]:
    """When completions were recorded, by digest: UTC, as `2025-01-31T12:00:00.000Z`; unknown digests are left out.

    Raises:
        sqlite3.Error: The journal cannot be read.
    """
    query = "SELECT recorded FROM completion WHERE digest = ?"
    rows = ((digest, connection.execute(query, (digest,)).fetchone()) for digest in digests)
    return {digest: str(row[0]) for digest, row in rows if row is not None}


def read_times(path: StrPath, digests: Iterable[str]) -> dict[str, str]:
    """The same of a journal that no process is writing; empty where it cannot be read."""
    if not Path(path).is_file():
        return {}
    try:
        with contextlib.closing(open_to_read(Path(path))) as connection:
            return times_of(connection, digests)
    except sqlite3.Error:
        return {}


def salvage_hint(path: object) -> str:
    """What to do about a damaged journal, in words."""
    return f"`judge journal verify {path}` lists what is damaged, `judge journal salvage {path} -o NEW` keeps the rest"


def out_of_reach(error: Exception) -> str:
    """Why SQLite cannot use a journal that may be sound, in words; empty if the error is of another kind."""
    if "locked" in str(error):
        return "another judge process is using it"
    if getattr(error, "sqlite_errorname", "") in _NO_ROOM:
        return "its disk is full, and SQLite needs a little room beside a journal that was not closed"
    return ""


def unreadable(path: object, error: Exception) -> str:
    """Why a journal cannot be read and what to do about it, in words."""
    if reason := out_of_reach(error):
        return reason
    why = str(error)
    return why if "unable to open" in why else f"{why}; {salvage_hint(path)}"


def read_journal(path: StrPath) -> Iterator[Recorded]:
    """The completions of a journal that no process is writing, in the order of their digests; each is checked.

    Raises:
        InputError: The file is missing, is no journal, or is damaged.
    """
    return (entry for _, _, entry in placed_rows(path))


def journal_rows(path: StrPath) -> Iterator[tuple[Any, ...]]:
    """The rows of COLUMNS of a journal that no process is writing, in the order of their digests; each is checked.

    Raises:
        InputError: The file is missing, is no journal, or is damaged.
    """
    return (row for _, row, _ in placed_rows(path))


class PlacedRow(NamedTuple):
    """A row of COLUMNS, with what `row_at` and `line_at` find it by."""

    place: int
    """The number of the row in its table; in an exported file, the byte at which its line begins."""
    row: tuple[Any, ...]
    entry: Recorded
    """What the row holds."""


def placed_rows(path: StrPath) -> Iterator[PlacedRow]:
    """As `journal_rows`, each with its place.

    Raises:
        InputError: The file is missing, is no journal, or is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    try:
        connection = open_to_read(path)
        try:
            query = f"SELECT {columns_of(connection)}, rowid FROM completion ORDER BY digest"  # noqa: S608 - names of columns only
            for *values, place in connection.execute(query):
                row = tuple(values)
                yield PlacedRow(place, row, read_row(row))
        finally:
            connection.close()
    except DamagedRow as error:
        raise InputError(f"{path}: damaged at the completion {row[0]}: {error}; {salvage_hint(path)}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {unreadable(path, error)}") from error


def row_at(connection: sqlite3.Connection, place: int) -> Recorded | None:
    """What the row at a place of a journal holds, checked; None if there is no such row.

    Raises:
        DamagedRow: It is not what was recorded.
        sqlite3.Error: The journal cannot be read.
    """
    query = f"SELECT {columns_of(connection)} FROM completion WHERE rowid = ?"  # noqa: S608 - names of columns only
    row = connection.execute(query, (place,)).fetchone()
    return None if row is None else read_row(row)
