"""Rows of any table: CSV, TSV, Parquet, a JSON list or JSON Lines of objects, data frames, and lists of dicts.

Cells keep what they are, such as lists of texts; `judge.io.tabular` reads tables whose cells are all texts.
"""

import ast
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, UsageError
from judge.io.files import MAX_COLUMNS, MAX_PROBLEMS, LineStream, input_errors, most_values, sha256, too_many
from judge.io.tabular import (
    collected,
    content_of,
    decoded_text,
    is_parquet,
    line_records,
    read_frame,
    table_of_text,
)
from judge.io.text import shown
from judge.records import Problem, file_problem

BOM = b"\xef\xbb\xbf"
LONGEST_LITERAL = 1 << 20
"""Characters of the longest value in Python's form that is read."""
_JSON_BEGINS = frozenset("{[-0123456789")
_JSON_WORDS = ("true", "false", "null")
_BLOCK = 1 << 20
"""Bytes that are read at once."""


class FrameRow(msgspec.Struct, frozen=True):
    """One row and its place in its file, in words."""

    place: str
    cells: dict[str, Any]


class RowTable(msgspec.Struct, frozen=True):
    """The rows of one file or data frame."""

    file: str
    """The path, or what a table in memory is called."""
    digest: str
    """SHA-256 of the file's bytes as stored; of a table in memory, that of its rows as JSON Lines."""
    columns: tuple[str, ...]
    """The names in the order of the file; of objects, each where it comes first."""
    rows: tuple[FrameRow, ...]
    path: Path | None = None
    """The file; None of a table in memory."""
    by_lines: bool = False
    """Whether the file is text whose lines can be read one by one."""
    quoted: bool = False
    """Whether every text in a cell stands in quotation marks as JSON."""
    unfolded: tuple[str, ...] = ()
    """The columns of objects in whose place their members stand, each before those inside it."""

    def unfold(self, name: str) -> "RowTable":
        """The table with the members of the objects in a column in its place: `outputs.answer`.

        None of them may be a column already.
        """
        members: dict[str, None] = {}
        rows: list[FrameRow] = []
        for row in self.rows:
            own = object_in(row.cells.get(name)) or {}
            members.update(dict.fromkeys(f"{name}.{member}" for member in own))
            rows.append(FrameRow(row.place, _unfolded(row.cells, (name,))))
        place = self.columns.index(name)
        return msgspec.structs.replace(
            self,
            columns=(*self.columns[:place], *members, *self.columns[place + 1 :]),
            rows=tuple(rows),
            unfolded=(*self.unfolded, name),
        )

    def without_rows(self) -> "RowTable":
        """The table without its rows, which `again` reads; a table in memory keeps them."""
        return self if self.path is None else msgspec.structs.replace(self, rows=())

    def again(self) -> Iterator[FrameRow]:
        """The rows, those of a file read anew; an InputError if it has changed since."""
        if self.path is None:
            yield from self.rows
            return
        for row in self._stored(self.path):
            yield FrameRow(row.place, _unfolded(row.cells, self.unfolded))

    def _stored(self, path: Path) -> Iterator[FrameRow]:
        """The rows of the file as it has them."""
        problems: list[Problem] = []
        with collected(problems, "unreadable_file", path):
            stream = LineStream(path, packed=True)
        if problems:
            raise InputError(self._changed, problems)
        with stream.file as file:
            digest = hashlib.sha256()
            with input_errors(path):
                while block := file.read(_BLOCK):
                    digest.update(block)
            if digest.hexdigest() != self.digest:
                raise InputError(self._changed)
            if self.by_lines:
                # All rows at once would take as much memory as the judging.
                longest = file.tell()
                file.seek(0)
                records = line_records(path, stream, longest)
                _, header = next(records)
                for line, cells in records:
                    row = FrameRow(f"line {line}", dict(zip(header, cells, strict=True)))
                    yield _unquoted(row) if self.quoted else row
                return
        table = read_rows(path, problems)
        yield from table.rows if table is not None else ()

    @property
    def _changed(self) -> str:
        return f"{self.file}: changed while its answers were judged"

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        name = Path(self.file).name
        return name.partition(".")[0] or name


def read_rows(path: Path, problems: list[Problem]) -> RowTable | None:
    """The table in a file; None, and its problems, if it cannot be read.

    CSV and TSV are told by what parts the cells of their header, JSON and Parquet by their content. A UsageError if it
    is Parquet, and polars is not installed.
    """
    before = len(problems)
    content = content_of(path, problems)
    if content is None:
        return None
    file = str(path)
    by_lines = _is_text(content)
    quoted = False
    if is_parquet(content):
        frame = read_frame(file, content, problems, most_values())
        rows = [] if frame is None else _of_mappings(frame.iter_rows(named=True), "row")
        columns = () if frame is None else tuple(frame.columns)
    elif not by_lines:
        rows = _json_rows(file, content.removeprefix(BOM), problems)
        columns = _columns(rows)
    else:
        text = decoded_text(path, content, problems)
        header, lines = ((), []) if text is None else table_of_text(path, text, problems, longest=len(text))
        rows = [FrameRow(row.place, row.cells) for row in lines]
        quoted = _are_quoted(rows)
        if quoted:
            rows = [_unquoted(row) for row in rows]
        columns = tuple(header)
        if columns.count("") > 1:
            message = f"the header has {columns.count('')} columns without a name: name or remove them"
            problems.append(file_problem("repeated_column", file, message, "line 1"))
    if len(problems) == before and not rows:
        problems.append(file_problem("empty_file", file, "no row in the table"))
    if len(problems) == before and len(columns) > MAX_COLUMNS:
        message = f"{len(columns):,} columns: at most {MAX_COLUMNS:,} are read"
        problems.append(file_problem("too_many_columns", file, message))
    if len(problems) > before:
        return None
    return RowTable(file, sha256(content), columns, tuple(rows), path, by_lines, quoted)


def _is_text(content: bytes) -> bool:
    """Whether content is neither Parquet nor JSON, so that signs part its cells."""
    return not is_parquet(content) and content.removeprefix(BOM).lstrip()[:1] not in (b"{", b"[")


def _are_quoted(rows: Iterable[FrameRow]) -> bool:
    """Whether every cell is JSON, as exports of Langfuse have them, and some is a text in quotation marks."""
    some = False
    for row in rows:
        for cell in row.cells.values():
            if cell.startswith('"'):
                some = True
                if not isinstance(value_in(cell), str):
                    return False
            elif cell and cell[0] not in _JSON_BEGINS and cell not in _JSON_WORDS:
                return False
    return some


def _unquoted(row: FrameRow) -> FrameRow:
    cells = {name: value_in(cell) if cell.startswith('"') else cell for name, cell in row.cells.items()}
    return FrameRow(row.place, cells)


def _json_rows(file: str, content: bytes, problems: list[Problem]) -> list[FrameRow]:
    """The objects of a JSON list, or of JSON Lines."""
    if content.lstrip().startswith(b"["):
        try:
            values = msgspec.json.decode(content)
        except (ValueError, RecursionError) as error:
            problems.append(file_problem("not_json", file, f"not JSON: {error}"))
            return []
        places = [f"row {number}" for number in range(1, len(values) + 1)]
    elif (alone := _only_object(content)) is not None:
        if _is_by_columns(alone):
            message = (
                "an object of columns: expected an object for each row, in a list or one a line, "
                'as `to_json(orient="records")` of pandas writes them'
            )
            problems.append(file_problem("wrong_type", file, message))
            return []
        if (member := _member_with_rows(alone)) is not None:
            message = f"an object with rows in {shown(member)}: expected these rows themselves, in a list or one a line"
            problems.append(file_problem("wrong_type", file, message))
            return []
        values = [alone]
        places = ["line 1"]
    else:
        places = []
        values = []
        before = len(problems)
        for number, line in enumerate(io.BytesIO(content), 1):
            if line.isspace():
                continue
            if too_many(problems, file, number, before):
                break
            try:
                values.append(msgspec.json.decode(line))
                places.append(f"line {number}")
            except (ValueError, RecursionError) as error:
                problems.append(file_problem("not_json", file, f"not JSON: {error}", f"line {number}"))
    rows: list[FrameRow] = []
    wrong = 0
    for place, value in zip(places, values, strict=True):
        if type(value) is dict:
            rows.append(FrameRow(place, value))
        elif wrong < MAX_PROBLEMS:
            wrong += 1
            message = f"expected an object with a value for each column, found {shown(value)}"
            problems.append(file_problem("wrong_type", file, message, place))
    return rows


def _only_object(content: bytes) -> dict[str, Any] | None:
    """The one object that a file holds, on however many lines; None where it holds several, or none."""
    try:
        value = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_by_columns(value: Mapping[str, Any]) -> bool:
    """Whether an object holds the columns of a table: lists of one length, or objects with the same members."""
    columns = list(value.values())
    if len(columns) < 2:
        return False
    if all(isinstance(column, list) for column in columns):
        return len({len(column) for column in columns}) == 1
    return all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns)


def _member_with_rows(value: Mapping[str, Any]) -> str | None:
    """The member of an object that holds a list of objects; None of a row, which has a text beside its lists.

    The text may stand in an object.
    """
    beside = [*value.values()]
    for cell in value.values():
        if isinstance(cell, dict):
            beside += cell.values()
    if any(isinstance(cell, str) for cell in beside):
        return None
    lists = {name: cell for name, cell in value.items() if isinstance(cell, list) and cell}
    return next((name for name, cell in lists.items() if all(isinstance(row, dict) for row in cell)), None)


def is_frame(value: object) -> bool:
    """Whether a value is a table in memory: a data frame of pandas or polars, or a list of dicts."""
    if isinstance(value, RowTable):
        return True
    if hasattr(value, "columns") and (hasattr(value, "to_dicts") or hasattr(value, "to_dict")):
        return True
    return isinstance(value, Sequence) and bool(value) and all(isinstance(row, Mapping) for row in value)


def rows_of(frame: Any, name: str = "data") -> RowTable:
    """The rows of a data frame of pandas or polars, or of a list of dicts; a UsageError if it has none.

    `name` is what messages call it, and the run whose system no column names.
    """
    if isinstance(frame, RowTable):
        return frame
    # Rows as dicts would keep the last of them.
    names = [str(column) for column in getattr(frame, "columns", ())]
    if repeated := sorted({column for column in names if names.count(column) > 1}):
        raise UsageError(f"{name}: the table has {', '.join(map(shown, repeated))} more than once")
    if hasattr(frame, "to_dicts"):
        values = frame.to_dicts()
    elif hasattr(frame, "to_dict"):
        values = frame.to_dict("records")
    else:
        values = [dict(row) for row in frame]
    rows = _of_mappings(values, "row")
    if not rows:
        raise UsageError(f"{name}: the table has no row")
    return RowTable(name, _digest(name, rows), _columns(rows), tuple(rows))


def _digest(name: str, rows: Iterable[FrameRow]) -> str:
    try:
        return sha256(msgspec.json.Encoder(enc_hook=str).encode_lines([row.cells for row in rows]))
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise InputError(f"{name}: a cell cannot be stored as text: {error}") from error


def _of_mappings(values: Iterable[Mapping[Any, Any]], unit: str) -> list[FrameRow]:
    """Rows numbered from 1; NaN is None, and what a library has for a list is a list."""
    rows: list[FrameRow] = []
    for number, value in enumerate(values, 1):
        cells = {str(name): _plain(cell) for name, cell in value.items()}
        rows.append(FrameRow(f"{unit} {number}", cells))
    return rows


def _plain(cell: Any) -> Any:
    if hasattr(cell, "tolist"):
        # A number or an array of numpy.
        cell = cell.tolist()
    # Of both, only what stands for no value is not equal to itself: NaN, and NaT of pandas.
    if isinstance(cell, float | datetime) and cell != cell:
        return None
    if isinstance(cell, tuple):
        return list(cell)
    return cell


def _columns(rows: Iterable[FrameRow]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row.cells))
    return tuple(names)


def object_in(cell: Any) -> dict[str, Any] | None:
    """The object in a cell, or that a text writes as JSON or Python does; None without one.

    >>> object_in({"a": 1}), object_in('{"a": 1}'), object_in("{'a': None}"), object_in("{a}")
    ({'a': 1}, {'a': 1}, {'a': None}, None)
    """
    value = value_in(cell) if isinstance(cell, str) and cell.startswith("{") else cell
    return value if isinstance(value, dict) else None


def value_in(text: str) -> Any:
    """The value that a text writes as JSON or Python does; None without one."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if len(text) <= LONGEST_LITERAL:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(text)
    return None


def _unfolded(cells: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The cells of a row with the members of objects in the place of these columns."""
    unfolded = dict(cells)
    for name in names:
        members = object_in(unfolded.pop(name, None)) or {}
        for member, cell in members.items():
            unfolded[f"{name}.{member}"] = _plain(cell)
    return unfolded
