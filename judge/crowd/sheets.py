"""Tables of labels as sheets: CSV, TSV, JSON, JSON Lines or Parquet, gzipped or not, and data frames.

This module only checks that something is a table; `tables` reads the meaning of its cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError, UsageError
from judge.io.line_stream import decode_lines
from judge.io.safe import shown
from judge.io.stored import most_values, read_stored, sha256, unpack
from judge.io.tabular import (
    NEITHER,
    is_parquet,
    plain_frame,
    read_frame,
    read_table,
    read_text,
    too_many_cells,
)
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

_DELIMITERS = ",\t;"
_VALUES = ("choices", "rating", "number", "text", "taxonomy")
"""Fields of a result's value in Label Studio that hold a label."""


@dataclass(frozen=True, eq=False)
class LabelSheet:
    """A table of texts; columns of Parquet that hold integers stay integers. An empty cell is null or blank."""

    file: str
    frame: "pl.DataFrame"
    numbers: NDArray[np.int64]
    """The number of each row, as a message names it."""
    unit: str
    """`line` of a text file, `row` of a Parquet file or data frame, `entry` of a JSON list."""
    problems: dict[str, dict[int, Problem]] = field(default_factory=dict)
    """Column and row number (0 for all rows) to the problem that counts if the column is needed."""

    def kept(self, mask: "pl.Series") -> "LabelSheet":
        """The sheet with the rows that the mask selects."""
        return replace(self, frame=self.frame.filter(mask), numbers=self.numbers[mask.to_numpy()])


def cell_text(value: object) -> str:
    """A value as a cell; lists and objects, which are no cells, are empty."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class DataFrame(Protocol):
    """A data frame of polars, of pandas, or of a library that is like these."""

    columns: Any


def is_frame(table: object) -> TypeGuard[DataFrame]:
    """Whether something is a data frame rather than a path."""
    return hasattr(table, "columns")


def frame_digest(name: str, table: DataFrame) -> str:
    """SHA-256 of a data frame's columns and cells, which are the same from polars and from pandas."""
    sheet = frame_sheet(name, table, [])
    return sha256(sheet.frame.write_csv().encode() if sheet else b"")


def frame_sheet(name: str, table: DataFrame, problems: list[Problem]) -> LabelSheet | None:
    """A data frame of polars, pandas or any library that has `to_dict("list")`, under a name for messages.

    Raises:
        UsageError: It is no data frame.
    """
    import polars as pl

    if isinstance(table, pl.DataFrame):
        frame = table
    elif callable(to_dict := getattr(table, "to_dict", None)):
        columns = to_dict("list")
        # Library types, such as pandas' NA and timestamps, have a text each; a column of mixed types stays mixed.
        plain = {str(column): [_plain_cell(cell) for cell in cells] for column, cells in columns.items()}
        frame = pl.DataFrame({column: _series(cells) for column, cells in plain.items()})
    else:
        raise UsageError(f"{name}: {type(table).__name__} is neither a path nor a data frame")
    return _typed_sheet(name, frame, problems)


def _plain_cell(cell: object) -> object:
    """A cell as polars knows it: no value, a boolean, a number, a list or object; anything else as text."""
    if cell is None or isinstance(cell, str | bool | int | float | list | dict):
        return cell
    if isinstance(cell, np.generic):
        return cell.item()
    # pandas' NA and NaT are equal to nothing, not even to themselves.
    text = str(cell)
    return None if text in ("<NA>", "NaT", "nan") else text


def _series(cells: list[object]) -> "pl.Series":
    import polars as pl

    kinds = {type(cell) for cell in cells if cell is not None}
    if int in kinds and any(type(cell) is int and abs(cell) >= 2**63 for cell in cells):
        return pl.Series([None if cell is None else cell_text(cell) for cell in cells], dtype=pl.String)
    if kinds <= {int} or kinds <= {int, float} or kinds <= {str} or kinds <= {bool}:
        return pl.Series(cells, dtype=pl.Float64 if float in kinds else None)
    if kinds & {list, dict}:
        return pl.Series([[cell_text(cell)] for cell in cells])
    return pl.Series([None if cell is None or cell != cell else cell_text(cell) for cell in cells], dtype=pl.String)


def _typed_sheet(file: str, frame: "pl.DataFrame", problems: list[Problem]) -> LabelSheet | None:
    """Typed columns: integers stay, columns of whole floats become integers, other columns text; NaN is empty."""
    frame, neither = plain_frame(frame)
    if not frame.height:
        problems.append(Problem("empty_file", "error", file, None, "", "the table has no row"))
        return None
    cell_problems = {
        name: {0: Problem("wrong_type", "error", file, None, f"column {shown(name)}", NEITHER)} for name in neither
    }
    return LabelSheet(file, frame, np.arange(1, frame.height + 1), "row", cell_problems)


# From files.


def read_sheet(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """Read the table in a file; None, and a problem, if the file is not a table.

    Cells may stand in quotation marks in CSV and TSV. Files without any are read whole, others record by record.
    """
    try:
        content = unpack(read_stored(path), str(path))
    except InputError as error:
        problems.append(Problem("unreadable_file", "error", str(path), None, "", str(error)))
        return None
    if is_parquet(content):
        frame = read_frame(str(path), content, problems)
        return None if frame is None else _typed_sheet(str(path), frame, problems)
    beginning = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if beginning == b"{":
        return _json_lines(str(path), content, problems)
    if beginning == b"[":
        return _json_list(str(path), content, problems)
    text = read_text(path, problems)
    if text is None:
        return None
    head = text.lstrip("\n").partition("\n")[0]
    if problem := too_many_cells(str(path), text.count("\n"), max(map(head.count, _DELIMITERS)) + 1):
        problems.append(problem)
        return None
    return _plain(path, text) or _quoted(path, problems)


def _plain(path: Path, text: str) -> LabelSheet | None:
    """A text table in which every line is a row; None if a cell is quoted or the table has problems."""
    import polars as pl

    text = text.removesuffix("\n")
    lines = text.count("\n") + 1
    if (
        '"' in text
        or "\n\n" in text
        or "\r\n\r" in text
        or text.count("\r") != text.count("\r\n") + text.endswith("\r")
    ):
        return None
    head = text.partition("\n")[0].rstrip("\r")
    is_tsv = path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
    delimiter = "\t" if is_tsv else max(_DELIMITERS, key=head.count)
    names = [name.strip() for name in head.split(delimiter)]
    # Polars would silently fill rows that are too short.
    if "" in names or len(set(names)) < len(names) or text.count(delimiter) != lines * (len(names) - 1):
        return None
    try:
        frame = pl.read_csv(
            text.encode(), separator=delimiter, quote_char=None, infer_schema=False, has_header=False, skip_rows=1
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.width != len(names):
        return None
    frame.columns = names
    numbers = np.arange(2, frame.height + 2)
    if any(frame[name].null_count() for name in names):
        # Spreadsheets export rows without any text.
        filled = frame.select(pl.any_horizontal(pl.all().str.strip_chars() != "").fill_null(False)).to_series()
        frame, numbers = frame.filter(filled), numbers[filled.to_numpy()]
    return LabelSheet(str(path), frame, numbers, "line") if frame.height else None


def _quoted(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """A text table read record by record; every problem of its lines is reported."""
    import polars as pl

    before = len(problems)
    header, rows = read_table(path, problems)
    if not rows or len(problems) > before:
        return None
    columns = {name: [row.cells[name] for row in rows] for name in header if name}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(str(path), frame, np.array([row.line for row in rows]), "line")


def _json_lines(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    """One object a line."""
    before = len(problems)
    rows: list[tuple[int, dict[str, Any]]] = []
    names: set[str] = set()
    for number, row in decode_lines(content, dict[str, Any], file, "not_json"):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        names.update(row)
        if problem := too_many_cells(file, len(rows) + 1, len(names), most_values()):
            problems.append(problem)
            break
        rows.append((number, row))
    return _objects(file, rows, "line") if len(problems) == before else None


def _json_list(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    """One list of objects, counted from 1; tasks of Label Studio become a row for each annotation."""
    if sum(map(content.count, (b",", b"[", b"{"))) > most_values():
        message = f"more than {most_values():,} JSON values; --max-file-size allows more"
        problems.append(Problem("too_many_values", "error", file, None, "", message))
        return None
    try:
        values = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message, _, path = str(error).partition(" - at `")
        problems.append(Problem("not_json", "error", file, None, path.rstrip("`") or "$", message))
        return None
    rows = _annotation_rows(values, file, problems)
    if not rows:
        problems.append(Problem("empty_file", "error", file, None, "", "the list holds no label"))
        return None
    if problem := too_many_cells(file, len(rows), len({name for _, row in rows for name in row}), most_values()):
        problems.append(problem)
        return None
    return _objects(file, rows, "entry")


def _objects(file: str, rows: Sequence[tuple[int, Mapping[str, Any]]], unit: str) -> LabelSheet:
    """Objects as rows; numbers are read as the texts that JSON writes them as."""
    import polars as pl

    cell_problems: dict[str, dict[int, Problem]] = {}
    for number, row in rows:
        for name, value in row.items():
            if isinstance(value, dict | list):
                message = f"{shown(value)}: expected a text or a number"
                problem = Problem("wrong_type", "error", file, None, f"{unit} {number}: $.{name[:60]}", message)
                cell_problems.setdefault(name, {})[number] = problem
    names = dict.fromkeys(name for _, row in rows for name in row)
    frame = pl.DataFrame(
        {name: [cell_text(row.get(name)) for _, row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    return LabelSheet(file, frame, np.array([number for number, _ in rows], dtype=np.int64), unit, cell_problems)


# Label Studio.


def _annotation_rows(values: Sequence[Mapping[str, Any]], file: str, problems: list[Problem]) -> list[tuple[int, Any]]:
    """Each row with the number of its entry in the list: of a task, one row for each annotation; else the entry itself.

    A task has the data that was shown and the annotations made; `completed_by` is the annotator's number, or an object
    with an email. JSON-MIN and CSV have a row for each annotation, with the task's data and a column for each control
    of the labeling interface. Annotations that were cancelled (skipped tasks) are left out, with a warning.
    """
    rows: list[tuple[int, Any]] = []
    cancelled: list[int] = []
    for number, entry in enumerate(values, start=1):
        annotations = entry.get("annotations")
        if not (isinstance(annotations, list) and isinstance(entry.get("data"), dict)):
            minimal = "annotation_id" in entry
            rows.append((number, {name: _plain_value(cell) if minimal else cell for name, cell in entry.items()}))
            continue
        for annotation in annotations:
            if not isinstance(annotation, dict):
                continue
            if annotation.get("was_cancelled"):
                cancelled.append(number)
                continue
            who = annotation.get("completed_by")
            row = {
                **entry["data"],
                "annotator": who.get("email") or who.get("id") if isinstance(who, dict) else who,
                "annotation_id": annotation.get("id"),
                "lead_time": annotation.get("lead_time"),
            }
            results = annotation.get("result")
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict) and isinstance(name := result.get("from_name"), str):
                    row[name] = _plain_value(result.get("value"))
            rows.append((number, row))
    if cancelled:
        message = f"{len(cancelled)} cancelled annotation{'s' * (len(cancelled) > 1)} left out; this is the first"
        problems.append(Problem("row_left_out", "warning", file, None, f"entry {cancelled[0]}", message))
    return rows


def _plain_value(value: Any) -> Any:
    """The label in a value of Label Studio, which CSV writes as JSON; any other value as it is.

    >>> _plain_value({"choices": ["Mostly grounded"]}), _plain_value([{"rating": 2}]), _plain_value([1, 2])
    ('Mostly grounded', 2, [1, 2])
    """
    while True:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (names := [name for name in _VALUES if name in value]):
            value = value[names[0]]
        else:
            return value


def plain_text(cell: str) -> str:
    """The label in a cell of Label Studio's CSV; any other text as it is.

    >>> plain_text('[{"rating": 2}]'), plain_text("Mostly grounded")
    ('2', 'Mostly grounded')
    """
    if cell[:1] not in ("[", "{"):
        return cell
    try:
        value = _plain_value(msgspec.json.decode(cell))
    except (msgspec.MsgspecError, RecursionError):
        return cell
    return str(value) if isinstance(value, str | int | float) else cell
