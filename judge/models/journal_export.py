"""The released form of a journal: a line of JSON for each completion, which `replay/` and a merge read like a journal.

Parameters, messages and completion stand in a line as the journal holds them, so that its checksum still proves them. A
Parquet file has the same fields as columns, for data frames.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.files.extras import need_extra
from judge.files.folder import open_new, temporary_name
from judge.files.parquet import SUFFIX, Schema, is_parquet, write_parquet
from judge.files.paths import StrPath
from judge.models.journal_rows import (
    COLUMNS,
    DamagedRow,
    PlacedRow,
    Recorded,
    checksum,
    completion_of,
    journal_rows,
    placed_rows,
    read_row,
)
from judge.models.secrets import redactor, scrub
from judge.models.shared.address import SHARED, is_database

_LONGEST = 1 << 26
"""Bytes of a line; a completion is at most a few MiB."""
_BEGINNING = 4
"""Bytes by which an exported file is known."""
_COMPLETION = COLUMNS.index("completion")


class _Line(msgspec.Struct):
    """A row of COLUMNS; what is JSON in the journal is JSON in the line."""

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
    checksum: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def exported_lines(path: StrPath) -> Iterator[bytes]:
    """The completions of a journal in the order of their digests, a line each, without keys and passwords.

    Raises:
        InputError: The file is missing, is no journal, or is damaged.
    """
    for row in _exported_rows(path):
        values = dict(zip(COLUMNS, row, strict=True))
        for name in ("parameters", "messages", "completion"):
            values[name] = msgspec.Raw(values[name].encode())
        yield _encode(_Line(**values)) + b"\n"


def _exported_rows(path: StrPath) -> Iterator[tuple[Any, ...]]:
    redact = redactor()
    return (_without_secrets(row, redact) for row in _stored_rows(path))


def export_journal(path: StrPath, out: StrPath) -> int:
    """Write the completions of a journal to a new file, and give their number.

    Args:
        path: The journal.
        out: The file: Parquet if its name ends with `.parquet` in any case, else a line of JSON for each completion.

    Raises:
        UsageError: There is something at `out`, or Parquet is asked for and polars is not installed.
        InputError: The journal is missing or damaged.
        OperationalError: The file cannot be written.
    """
    out = Path(out)
    if os.path.lexists(out):
        raise UsageError(f"{out}: is there already; -o names a new file")
    if out.suffix.lower() == SUFFIX:
        return _export_parquet(path, out)
    temporary = out.with_name(temporary_name(out.name))
    count = 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open_new(temporary) as file:
            for line in exported_lines(path):
                file.write(line)
                count += 1
        temporary.replace(out)
    except OSError as error:
        raise OperationalError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return count


def _export_parquet(path: StrPath, out: Path) -> int:
    need_extra("crowd", f"{out}: a Parquet file")
    import polars as pl

    schema: Schema = {name: pl.Int64 if name == "sample" else pl.String for name in COLUMNS}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationalError(f"{out}: cannot be written: {error.strerror}") from error
    return write_parquet(out, schema, _exported_rows(path))


def recorded_rows(path: StrPath) -> Iterator[tuple[Any, ...]]:
    """The rows of COLUMNS of a journal, or of a file that was exported from one; each is checked.

    Raises:
        InputError: The file is missing, is neither of the two, or is damaged.
    """
    return (row for _, row, _ in _lines(Path(path))) if is_exported(path) else _stored_rows(path)


def read_recorded(path: StrPath) -> Iterator[Recorded]:
    """The completions of a journal, or of a file that was exported from one; each is checked.

    Raises:
        InputError: The file is missing, is neither of the two, or is damaged.
    """
    return map(read_row, _stored_rows(path)) if is_database(path) else (row.entry for row in placed_recorded(path))


def placed_recorded(path: StrPath) -> Iterator[PlacedRow]:
    """The rows of COLUMNS of a journal in a file, or of one that was exported, with their places; each is checked.

    Raises:
        InputError: The file is missing, is neither of the two, or is damaged.
    """
    return _lines(Path(path)) if is_exported(path) else placed_rows(path)


def line_at(file: IO[bytes], place: int) -> Recorded:
    """What the line that begins at a place of an exported file holds, checked.

    Raises:
        DamagedRow: It is no completion, or not what was recorded.
        OSError: The file cannot be read.
    """
    file.seek(place)
    try:
        return read_row(_row(file.readline(_LONGEST)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DamagedRow(f"its content is not of a journal: {error}") from error


def _stored_rows(place: StrPath) -> Iterator[tuple[Any, ...]]:
    if not is_database(place):
        yield from journal_rows(place)
        return
    need_extra("postgres", SHARED)
    from judge.models.shared.reader import SharedReader, checked_row  # needs the extra

    with contextlib.closing(SharedReader(place)) as journal:
        for row in journal.rows():
            checked_row(journal.name, row)
            yield row


def is_exported(place: StrPath) -> bool:
    """Whether a journal is a file that begins as an exported one does.

    Raises:
        InputError: It is a Parquet file, which is for data frames alone.
    """
    if is_database(place):
        return False
    try:
        with Path(place).open("rb") as file:
            begins = file.read(_BEGINNING)
    except OSError:
        return False
    if is_parquet(begins):
        raise InputError(
            f"{place}: a Parquet file: only journals and their JSON lines can be merged and replayed; "
            "`judge journal export PATH -o FILE.jsonl` writes these"
        )
    return begins.startswith(b"{")


def _lines(path: Path) -> Iterator[PlacedRow]:
    number = place = 0
    try:
        with path.open("rb") as file:
            while text := file.readline(_LONGEST):
                number += 1
                row = _row(text)
                yield PlacedRow(place, row, read_row(row))
                place += len(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, DamagedRow) as error:
        raise InputError(
            f"{path}: line {number}: no completion as `judge journal export` writes it: {error}"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _row(text: bytes) -> tuple[Any, ...]:
    """The row of COLUMNS that a line holds."""
    line = _decode(text)
    values = (getattr(line, name) for name in COLUMNS)
    return tuple(bytes(value).decode() if isinstance(value, msgspec.Raw) else value for value in values)


def _without_secrets(row: tuple[Any, ...], redact: Callable[[str], str]) -> tuple[Any, ...]:
    """The row without secrets in what came back; a row that held one gets the checksum of what is left."""
    completion = completion_of(row)
    clean = msgspec.structs.replace(
        completion,
        text=scrub(completion.text),
        **{
            name: redact(value)
            for name in ("finish_reason", "model", "system_fingerprint", "endpoint", "raw")
            if (value := getattr(completion, name)) is not None
        },
    )
    if clean == completion:
        return row
    row = (*row[:_COMPLETION], msgspec.json.encode(clean).decode(), *row[_COMPLETION + 1 :])
    return (*row[:-1], checksum(row) if row[-1] is not None else None)
