"""The rows of a journal: what each holds, and the checksum with which it proves itself.

A checksum covers everything that was asked and answered. It shows damage and rows that changed places; it is no
signature, because whoever rewrites a row can rewrite its checksum.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeGuard, TypeVar

import msgspec

from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.records import Record

SCHEMA_VERSION = "3"
OLDER_VERSION = "2"
"""The version that `judge journal salvage` converts: its digests hold the address of the judge."""


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
SET_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
ADD_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO NOTHING"

_Kind = TypeVar("_Kind")
encoder = msgspec.json.Encoder(order="deterministic")


class DamagedRow(Exception):
    """A row is not what was recorded, and why."""


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
    sent, reply = encoder.encode(dict(parameters)).decode(), msgspec.json.encode(completion).decode()
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
    sent, asked = _decoded(parameters, dict[str, Any]), _decoded(messages, tuple[Message, ...])
    return Recorded(digest, judge, sent, asked, sample, form, completion_of(row))


def _decoded(text: str, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


def is_database(place: object) -> TypeGuard[str]:
    """Whether a journal's place is the address of a database, not a path."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))
