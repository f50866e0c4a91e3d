"""The rows of a journal: what each holds, and the checksum with which it proves itself.

A checksum covers everything that was asked and answered. It shows damage and rows that changed places; it is no
signature, because whoever rewrites a row can rewrite its checksum.
"""

import hashlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeGuard, TypeVar

import msgspec

from judge.judges.records import AnswerForm, Completion, Message, Request
from judge.judges.secrets import Secrets, known_secrets
from judge.records import Record

SCHEMA_VERSION = "3"
OLDER_VERSION = "2"
"""The schema version that is converted: it had the address of a judge in the digest, and another checksum."""


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
_SAID = ("text", "finish_reason", "model", "system_fingerprint", "raw")
"""The texts of a completion that are of the provider."""
_MOST_TOKENS = 2**53
"""Above this, a count is no count."""

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
    return hashlib.sha256(encoder.encode([judge, dict(parameters), request.messages, request.sample])).hexdigest()


def new_row(digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion) -> Row:
    """The row of a completion that came now.

    Raises:
        UnicodeEncodeError: The request holds what is no text.
    """
    return sealed(
        (
            digest,
            judge,
            encoder.encode(dict(parameters)).decode(),
            msgspec.json.encode(request.messages).decode(),
            request.sample,
            request.form,
            request.criterion,
            request.turn_id,
            request.response_id,
            msgspec.json.encode(completion).decode(),
            datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z",
        )
    )


def sealed(values: Row) -> Row:
    """A row from its values, the last of which is the checksum of the others."""
    return (*values, _checksum(values))


def _checksum(row: Row) -> str:
    """SHA-256, in hexadecimal, over every column but the last, after their lengths in characters."""
    texts = list(map(str, row[: len(COLUMNS) - 1]))
    return hashlib.sha256(f"{list(map(len, texts))}{''.join(texts)}".encode()).hexdigest()


def check_row(row: Row) -> None:
    """Refuse a row that is not what was recorded.

    Raises:
        DamagedRow: The row contradicts its checksum, or has none.
    """
    if row[-1] is None:
        raise DamagedRow("it has no checksum")
    if row[-1] != _checksum(row):
        raise DamagedRow("its content is not what was recorded")


def completion_of(row: Row) -> Completion:
    """The completion of a row. Errors are those of `decoded`."""
    return decoded(row[9], Completion)


def recorded(row: Row) -> Recorded:
    """What a row holds. Errors are those of `decoded`."""
    return Recorded(
        digest=row[0],
        judge=row[1],
        parameters=decoded(row[2], dict[str, Any]),
        messages=decoded(row[3], tuple[Message, ...]),
        sample=row[4],
        form=row[5],
        completion=completion_of(row),
    )


def decoded(text: str, kind: type[_Kind]) -> _Kind:
    """What JSON of a row holds.

    Raises:
        DamagedRow: It is of another form.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


def is_database(place: object) -> TypeGuard[str]:
    """Whether a journal's place is the address of a database, not a path.

    >>> is_database("postgresql://localhost/judge"), is_database("out/journal.sqlite")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def storable(completion: Completion) -> Completion:
    """The completion with None for each fact that no provider can have meant, and with text that UTF-8 can hold.

    A reply is paid for whatever it says of itself: a count of 1.5 tokens or a probability of nan costs no grade.
    """
    prompt, cached = _count(completion.prompt_tokens), _count(completion.cached_tokens)
    return msgspec.structs.replace(
        completion,
        text=_text(completion.text) or "",
        finish_reason=_text(completion.finish_reason),
        model=_text(completion.model),
        system_fingerprint=_text(completion.system_fingerprint),
        prompt_tokens=prompt,
        completion_tokens=_count(completion.completion_tokens),
        # Of a prompt, no more than all of it is cached.
        cached_tokens=None if prompt is not None and cached is not None and cached > prompt else cached,
        cost=_amount(completion.cost),
        latency=_amount(completion.latency),
        probabilities=_probabilities(completion.probabilities),
        endpoint=_text(completion.endpoint),
        raw=_text(completion.raw),
    )


def without_secrets(completion: Completion, secrets: Secrets | None = None) -> Completion:
    """The completion, storable, with a mask for every secret, the known ones if None: a server may repeat the key."""
    kept, scrub = storable(completion), (secrets or known_secrets()).scrub
    said = {name: scrub(value) for name in _SAID if (value := getattr(kept, name)) is not None}
    return msgspec.structs.replace(kept, **said)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    # A reply cut within an emoji ends in a lone surrogate.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS and value == int(value) else None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _probabilities(values: object) -> dict[str, float] | None:
    if not isinstance(values, dict):
        return None
    amounts = {label: _amount(value) for label, value in values.items() if isinstance(label, str)}
    # Part of the labels would be another distribution.
    return amounts if len(amounts) == len(values) and None not in amounts.values() else None  # type: ignore[return-value]
