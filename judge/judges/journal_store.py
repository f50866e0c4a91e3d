"""The file of a journal: one table in SQLite, and its rows.

Each row proves itself by a checksum over everything that was asked and answered. It shows damage and rows that changed
places; it is no signature, because whoever rewrites a row can rewrite its checksum.
"""

import contextlib
import hashlib
import itertools
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from judge.errors import InputError, OperationalError
from judge.io.files import StrPath
from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.records import Record

SCHEMA_VERSION = "4"


class RowLine(msgspec.Struct):
    """A row of the one table, as a line of an exported file has it: what is JSON in the row is JSON in the line."""

    digest: str
    judge: str
    parameters: msgspec.Raw
    messages: msgspec.Raw
    sample: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    form: str
    criterion: str
    turn_id: str
    response_id: str
    completion: msgspec.Raw
    recorded: str
    checksum: str


COLUMNS = RowLine.__struct_fields__
Row = tuple[Any, ...]
"""The values of COLUMNS, JSON as text."""
NAMES = ", ".join(COLUMNS)
_TYPED = ", ".join(f"{name} {'BIGINT' if name == 'sample' else 'TEXT'} NOT NULL" for name in COLUMNS)
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS completion ({_TYPED}, PRIMARY KEY (digest))",
)
INSERT = f"INSERT INTO completion ({NAMES}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (digest) DO NOTHING"  # noqa: S608 - names of columns only
ADD_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO NOTHING"

_Kind = TypeVar("_Kind")
encoder = msgspec.json.Encoder(order="deterministic")


class DamagedRow(Exception):
    """A row is not what was recorded, and why."""


class Fact(NamedTuple):
    """Something that is known of a judge beside its completions; several journals know the union of what each knows."""

    kind: str
    value: str
    """Without a space, as the kind."""
    judge: str


def read_fact(text: str) -> Fact | None:
    """A fact as a journal and an exported file write it; None if it is none."""
    parts = text.split(" ", 2)
    if len(parts) < 3:
        return None
    kind, value, judge = parts
    return Fact(kind=kind, value=value, judge=judge)


class Recorded(Record, frozen=True):
    """One completion of a journal, with the request that it answers."""

    digest: str
    judge: str
    parameters: dict[str, Any]
    messages: tuple[Message, ...]
    sample: int
    form: AnswerForm
    completion: Completion


def request_digest(judge: str, parameters: Mapping[str, Any], request: Request | Recorded) -> str:
    """SHA-256, in hexadecimal, over the judge, every sent parameter, the full messages and the sample index."""
    messages = request.wire if isinstance(request, Request) else request.messages
    return hashlib.sha256(encoder.encode([judge, dict(parameters), messages, request.sample])).hexdigest()


def new_row(digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion) -> Row:
    """The row of a completion that came now; a UnicodeEncodeError if the request holds what is no text."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    sent = encoder.encode(dict(parameters)).decode()
    reply = msgspec.json.encode(completion).decode()
    about = request.sample, request.form, request.criterion, request.turn_id, request.response_id
    return sealed((digest, judge, sent, bytes(request.wire).decode(), *about, reply, f"{now}Z"))


def sealed(values: Row) -> Row:
    """A row from its values without the checksum, which is its last one."""
    return (*values, _checksum(values))


def _checksum(row: Row) -> str:
    """SHA-256, in hexadecimal, over every column but the last, after their lengths in characters."""
    texts = list(map(str, row[: len(COLUMNS) - 1]))
    return hashlib.sha256(f"{list(map(len, texts))}{''.join(texts)}".encode()).hexdigest()


def check_row(row: Row) -> None:
    """Raise DamagedRow if a row contradicts its checksum, or has none."""
    if row[-1] is None:
        raise DamagedRow("it has no checksum")
    if row[-1] != _checksum(row):
        raise DamagedRow("its content is not what was recorded")


def completion_of(row: Row) -> Completion:
    """The completion of a row, or a DamagedRow."""
    return _decoded(row[9], Completion)


def recorded(row: Row) -> Recorded:
    """What a row holds, or a DamagedRow."""
    digest, judge, parameters, messages, sample, form = row[:6]
    sent = _decoded(parameters, dict[str, Any])
    asked = _decoded(messages, tuple[Message, ...])
    return Recorded(
        digest=digest,
        judge=judge,
        parameters=sent,
        messages=asked,
        sample=sample,
        form=form,
        completion=completion_of(row),
    )


def _decoded(text: str, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


Mode = Literal["write", "read", "salvage"]
"""write: for this process alone, which makes the tables. salvage: what can still be read of it."""
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second where it quotes what is damaged."""
_SMALLEST = 300
"""Bytes that a row takes at least: more rows than this allows cannot be in a file."""
_TOGETHER = 500
"""Rows of one statement."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class JournalFile:
    """A file of SQLite with a journal, which only one process writes; None is a journal in memory.

    An InputError if the file is no journal of this version, is a link, or another process holds it.
    """

    def __init__(self, path: StrPath | None, mode: Mode = "read") -> None:
        self.name = "the journal in memory" if path is None else str(path)
        """The file for messages."""
        self._path = None if path is None else Path(path)
        self._mode = mode
        self._lock = threading.Lock()
        if mode != "write" and (self._path is None or not self._path.is_file()):
            raise InputError(f"{path}: no such journal")
        try:
            with contextlib.ExitStack() as opened:
                self.connection = opened.enter_context(contextlib.closing(self._connected()))
                if mode == "write":
                    self._make()
                self._check_version()
                opened.pop_all()
            self._status = self._path.stat() if self._path else None
        except (OSError, *_UNREADABLE) as error:
            raise self.unreadable(error, "used" if mode == "write" else "read") from error

    def _connected(self) -> sqlite3.Connection:
        """A connection; one that only reads changes neither the file nor its `-wal` file."""
        address = ":memory:" if self._path is None else self._path.absolute().as_uri()
        if self._mode == "write" and self._path is not None:
            if self._path.is_symlink() or self._path.is_fifo():
                raise InputError(
                    f"{self.name}: a link where the journal has to be, or a pipe; move it away or name its folder"
                )
            self._path.parent.mkdir(parents=True, exist_ok=True)
        elif self._mode != "write":
            # Else SQLite would make a `-wal` file, or want one that was left behind.
            address += "?immutable=1" if _lacks_log(Path(self.name)) else "?mode=ro"
        return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=0)

    def _make(self) -> None:
        """Take the file for this process alone, with the tables of this version."""
        # Exclusive: a second process on the same journal would pay for the same calls again. Of digests, which are
        # inserted in no order, 64 MiB of pages are kept.
        for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "cache_size=-65536"):
            self.connection.execute(f"PRAGMA {setting}")
        with self.connection:
            self.connection.execute("BEGIN")
            for statement in SCHEMA:
                self.connection.execute(statement)
            self.connection.execute(ADD_META, ("schema", SCHEMA_VERSION))

    def _check_version(self) -> None:
        """Refuse a journal of another version."""
        version = SCHEMA_VERSION
        # A damaged file may still give completions.
        with contextlib.suppress(*(_UNREADABLE if self._mode == "salvage" else ())):
            for (value,) in self.connection.execute("SELECT value FROM meta WHERE key = 'schema'"):
                version = str(value)
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{self.name}: journal of schema version {version}, this version of judge reads and writes "
                f"{SCHEMA_VERSION}"
            )

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement gives."""
        try:
            with self._lock:
                return self.connection.execute(statement, values).fetchall()
        except _UNREADABLE as error:
            raise self.unreadable(error) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is on the disk after the block; an OperationalError if it cannot be written."""
        try:
            with self._lock, self.connection:
                yield self.connection
        except _UNREADABLE as error:
            raise OperationalError(f"{self.name}: cannot be written: {error}") from error

    def tick(self) -> None:
        """Bring what is committed into the journal's file, so that a copy of this file alone holds it."""
        self.check_there()
        # Where this fails, for a full disk say, the completions are as safe as before in the `-wal` file.
        with contextlib.suppress(sqlite3.Error), self._lock:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def shrink(self) -> None:
        """Give back the memory of the pages that were read or written."""
        with self._lock:
            self.connection.execute("PRAGMA shrink_memory")

    def check_there(self) -> None:
        """Refuse to go on where the file was moved, removed or replaced: what is written now would be lost."""
        with contextlib.suppress(OSError):
            if self._path is None or self._status is None or os.path.samestat(self._path.stat(), self._status):
                return
        raise OperationalError(
            f"{self.name}: was moved, removed or replaced while it was in use, so nothing more is asked; the "
            "completions that were paid for are where the file went"
        )

    def unreadable(self, error: BaseException, what: str = "read") -> InputError:
        """The error about a file that SQLite cannot use, though it may be sound."""
        why = f"{error}; {salvage_hint(self.name)}"
        if "unable to open" in str(error):
            why = str(error)
        elif "locked" in str(error):
            why = "another judge process is using it"
        elif _is_full(error):
            why = "its disk is full, and SQLite needs a little room beside a journal that was not closed"
        return InputError(f"{self.name}: cannot be {what} as a journal: {why}")

    def close(self) -> None:
        """Release the file; one that was written is a single plain file again, which can be copied."""
        if self._mode == "write":
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("PRAGMA journal_mode = DELETE")
        self.connection.close()


class Store:
    """The table of a journal."""

    def __init__(self, path: StrPath | None, mode: Mode = "read") -> None:
        self.file = JournalFile(path, mode)

    def insert(self, rows: Sequence[Row]) -> int:
        """Add the rows whose digests are new, and give how many these are; an OperationalError if that fails."""
        with self.file.transaction() as connection:
            added = connection.executemany(INSERT, rows).rowcount
        self.file.check_there()
        return added

    def remove(self, digests: Sequence[str]) -> None:
        """Remove the rows of digests; an OperationalError if that fails."""
        with self.file.transaction() as connection:
            connection.executemany("DELETE FROM completion WHERE digest = ?", [(digest,) for digest in digests])

    def add_facts(self, facts: Iterable[Fact]) -> None:
        """Record facts about judges beside the completions; an OperationalError if they cannot be written."""
        with self.file.transaction() as connection:
            connection.executemany(ADD_META, [(" ".join(fact), "") for fact in facts])

    def facts(self) -> list[Fact]:
        """What is kept about judges beside the completions."""
        keys = self.file.query("SELECT key FROM meta WHERE key <> 'schema' ORDER BY key")
        return [fact for fact in (read_fact(key) for (key,) in keys) if fact is not None]

    def find(self, digest: str, content: Callable[[Row], _Result]) -> _Result | None:
        """The content of the row of a digest, or None; an InputError if it is not what was recorded."""
        rows = self.file.query(f"SELECT {NAMES} FROM completion WHERE digest = ?", (digest,))  # noqa: S608 - names of columns only
        # Under the digest that was asked for: a damaged index leads to the row of another question.
        return self.sound((digest, *rows[0][1:]), content) if rows else None

    def rows(self, digests: Iterable[str], columns: str = NAMES) -> dict[str, Row]:
        """The rows of those digests that are recorded, by digest, unchecked; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest IN (SELECT value FROM json_each(?))"  # noqa: S608 - names of columns only
        pages = (msgspec.json.encode(page).decode() for page in paged(digests, _TOGETHER))
        return {row[0]: row for page in pages for row in self.file.query(query, (page,))}

    def sound(self, row: Row, content: Callable[[Row], _Result]) -> _Result:
        """The content of a row; an InputError if it is not what was recorded."""
        try:
            check_row(row)
            return content(row)
        except DamagedRow as error:
            raise InputError(
                f"{self.file.name}: damaged at the completion {row[0]}: {error}; {salvage_hint(self.file.name)}"
            ) from error

    def pages(self, columns: str = NAMES) -> Iterator[Row]:
        """Every row in the order of the digests, unchecked, fetched some at a time; `columns` begin with the digest."""
        query = f"SELECT {columns} FROM completion WHERE digest > ? ORDER BY digest LIMIT {_TOGETHER}"  # noqa: S608 - names of columns only
        last = ""
        while page := self.file.query(query, (last,)):
            yield from page
            last = page[-1][0]

    def problems(self, most: int) -> list[str]:
        """What SQLite finds wrong with the structure of the file."""
        try:
            lines = self.file.connection.execute(f"PRAGMA integrity_check({most})").fetchall()
        except _UNREADABLE as error:
            return [str(error)]
        return [line for (line,) in lines if line != "ok"]

    def scan(self) -> Iterator[Row]:
        """Every row that SQLite gives, unchecked; one that it refuses is lost."""
        query = f"SELECT rowid, {NAMES} FROM completion NOT INDEXED WHERE rowid > ?"  # noqa: S608 - names of columns only
        number = 0
        last = self._size() // _SMALLEST
        while number < last:
            try:
                for row in self.file.connection.execute(query, (number,)):
                    number = row[0]
                    yield row[1:]
                return
            except _UNREADABLE as error:
                self._check_damaged(error)
            number += 1

    def _size(self) -> int:
        """Bytes of the file; 0 where SQLite reads nothing of it, as of a file that was cut off."""
        try:
            ((size,),) = self.file.connection.execute(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            )
        except _UNREADABLE as error:
            self._check_damaged(error)
            return 0
        return int(size)

    def _check_damaged(self, error: BaseException) -> None:
        """Raise an InputError if SQLite refuses a file that may be sound."""
        if "locked" in str(error) or _is_full(error):
            raise self.file.unreadable(error) from error

    def close(self) -> None:
        """Release the file."""
        self.file.close()


def _lacks_log(path: Path) -> bool:
    """Whether a journal was copied or moved away from its `-wal` file: its header says that it was in use."""
    try:
        with path.open("rb") as file:
            in_use = file.read(19)[18:] == b"\x02"
    except OSError:
        return False
    return in_use and not path.with_name(f"{path.name}-wal").exists()


def _is_full(error: BaseException) -> bool:
    # The second is of the `-shm` file.
    return getattr(error, "sqlite_errorname", "") in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


def paged(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of a size."""
    rest = iter(items)
    while page := list(itertools.islice(rest, size)):
        yield page


def salvage_hint(name: str) -> str:
    """What to do about a damaged journal, in words."""
    return f"`judge journal verify {name}` lists what is damaged, `judge journal salvage {name} -o NEW` keeps the rest"
