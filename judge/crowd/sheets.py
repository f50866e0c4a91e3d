"""One table of labels with the number of each row: CSV, TSV, JSON, JSON Lines or Parquet, gzipped or not; a data frame.

This module only checks that it is a table; `tables` reads the meaning of its cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.annotations import annotation_rows
from judge.errors import InputError, UsageError
from judge.files.jsonl import decode_lines
from judge.files.limits import most_values
from judge.files.parquet import is_parquet, plain_frame, read_frame, too_many_cells
from judge.files.stored import read_stored, sha256, unpack
from judge.files.tabular import read_table, read_text
from judge.records import Problem
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl

_DELIMITERS = ",\t;"


class DataFrame(Protocol):
    """A data frame of polars, of pandas, or of a library that is like these."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""


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
        return _parquet(str(path), content, problems)
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
    delimiter = "\t" if _is_tsv(path) else max(_DELIMITERS, key=head.count)
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


def _is_tsv(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))


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
    rows = annotation_rows(values, file, problems)
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

    columns: dict[str, list[str]] = {}
    numbers: list[int] = []
    cell_problems: dict[str, dict[int, Problem]] = {}
    for number, row in rows:
        for name, value in row.items():
            if isinstance(value, dict | list):
                message = f"{shown(value)}: expected a text or a number"
                problem = Problem("wrong_type", "error", file, None, f"{unit} {number}: $.{name[:60]}", message)
                cell_problems.setdefault(name, {})[number] = problem
            cells = columns.setdefault(name, [])
            # Rows that lack the field have empty cells.
            cells += [""] * (len(numbers) - len(cells))
            cells.append(_text(value))
        numbers.append(number)
    for cells in columns.values():
        cells += [""] * (len(numbers) - len(cells))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(file, frame, np.array(numbers, dtype=np.int64), unit, cell_problems)


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
    return _framed(name, frame, problems)


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
        return pl.Series([None if cell is None else _text(cell) for cell in cells], dtype=pl.String)
    if kinds <= {int} or kinds <= {int, float} or kinds <= {str} or kinds <= {bool}:
        return pl.Series(cells, dtype=pl.Float64 if float in kinds else None)
    if kinds & {list, dict}:
        return pl.Series([[_text(cell)] for cell in cells])
    return pl.Series([None if cell is None or cell != cell else _text(cell) for cell in cells], dtype=pl.String)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parquet(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    frame = read_frame(file, content, problems)
    return None if frame is None else _framed(file, frame, problems)


def _framed(file: str, frame: "pl.DataFrame", problems: list[Problem]) -> LabelSheet | None:
    """Typed columns: integers stay, columns of whole floats become integers, other columns text; NaN is empty."""
    frame, nested = plain_frame(frame)
    if not frame.height:
        problems.append(Problem("empty_file", "error", file, None, "", "the table has no row"))
        return None
    message = "holds lists, objects or bytes: expected texts or numbers"
    cell_problems = {
        name: {0: Problem("wrong_type", "error", file, None, f"column {shown(name)}", message)} for name in nested
    }
    return LabelSheet(file, frame, np.arange(1, frame.height + 1), "row", cell_problems)
