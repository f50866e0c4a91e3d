"""One file of labels as a table: CSV, TSV, JSON Lines or Parquet, gzipped or not, with the number of each row.

This module only checks that the file is a table; `tables` reads the meaning of its cells.
"""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.limits import MAX_COLUMNS, largest_file, most_values
from judge.files.stored import read_stored, unpack
from judge.files.tabular import read_table, read_text
from judge.records import Problem
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl

_DELIMITERS = ",\t;"
_PARQUET = b"PAR1"
_EXACT = 2**53
_CELL = 16
"""Bytes that a short cell takes in a data frame."""


@dataclass(frozen=True, eq=False)
class LabelSheet:
    """A table of texts; columns of Parquet that hold integers stay integers. An empty cell is null or blank."""

    file: str
    frame: "pl.DataFrame"
    numbers: NDArray[np.int64]
    """The number of each row, as a message names it."""
    unit: str
    """`line` of a text file, `row` of a Parquet file."""
    problems: dict[str, dict[int, Problem]] = field(default_factory=dict)
    """Column and row number (0 for all rows) to the problem that counts if the column is needed."""


def read_sheet(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """Read the table in a file; None, and a problem, if the file is not a table.

    Cells may stand in quotation marks in CSV and TSV. Files without any are read whole, others record by record.
    """
    try:
        content = unpack(read_stored(path), str(path))
    except InputError as error:
        problems.append(Problem("unreadable_file", "error", str(path), None, "", str(error)))
        return None
    if content.startswith(_PARQUET):
        return _parquet(str(path), content, problems)
    if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return _json_lines(str(path), content, problems)
    text = read_text(path, problems)
    if text is None:
        return None
    head = text.lstrip("\n").partition("\n")[0]
    if problem := _too_big(str(path), text.count("\n"), max(map(head.count, _DELIMITERS)) + 1):
        problems.append(problem)
        return None
    return _plain(path, text) or _quoted(path, problems)


def _too_big(file: str, rows: int, columns: int, most: int | None = None) -> Problem | None:
    """The problem of a table that would fill the memory: small files can be made to unpack to any number of cells."""
    most = most or largest_file() // _CELL
    if columns > MAX_COLUMNS:
        code, message = "too_many_columns", f"{columns:,} columns: at most {MAX_COLUMNS:,} are read"
    elif rows * columns > most:
        code = "too_many_cells"
        message = f"{rows:,} rows of {columns:,} columns: at most {most:,} cells are read; --max-file-size allows more"
    else:
        return None
    return Problem(code, "error", file, None, "", message)


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
    """One object a line; numbers are read as the texts that JSON writes them as."""
    import polars as pl

    before = len(problems)
    columns: dict[str, list[str]] = {}
    numbers: list[int] = []
    cell_problems: dict[str, dict[int, Problem]] = {}
    for number, row in decode_lines(content, dict[str, Any], file, "not_json"):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        if problem := _too_big(file, len(numbers) + 1, len(columns), most_values()):
            problems.append(problem)
            break
        for name, value in row.items():
            if isinstance(value, dict | list):
                message = f"{shown(value)}: expected a text or a number"
                problem = Problem("wrong_type", "error", file, None, f"line {number}: $.{name[:60]}", message)
                cell_problems.setdefault(name, {})[number] = problem
            cells = columns.setdefault(name, [])
            # Rows that lack the field have empty cells.
            cells += [""] * (len(numbers) - len(cells))
            cells.append(_text(value))
        numbers.append(number)
    if len(problems) > before:
        return None
    for cells in columns.values():
        cells += [""] * (len(numbers) - len(cells))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(file, frame, np.array(numbers), "line", cell_problems)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parquet(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    """A Parquet file: integers stay, columns of whole floats become integers, other columns text; NaN is empty."""
    import polars as pl
    from polars import selectors

    try:
        size = pl.scan_parquet(io.BytesIO(content))
        if problem := _too_big(file, size.select(pl.len()).collect().item(), len(size.collect_schema())):
            problems.append(problem)
            return None
        frame = pl.read_parquet(io.BytesIO(content))
        nested = [name for name, dtype in frame.schema.items() if dtype.is_nested() or dtype in (pl.Binary, pl.Object)]
        frame = frame.with_columns(pl.lit("").alias(name) for name in nested)
        frame = frame.with_columns(_plain_numbers(column) for column in frame.select(selectors.float()))
        frame = frame.with_columns((~(selectors.integer() | selectors.string())).cast(pl.String))
    # A damaged file can make the reader panic, which is no Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0][:200]
        problems.append(Problem("unreadable_file", "error", file, None, "", f"not readable as Parquet: {reason}"))
        return None
    if not frame.height:
        problems.append(Problem("empty_file", "error", file, None, "", "the table has no row"))
        return None
    message = "holds lists, objects or bytes: expected texts or numbers"
    cell_problems = {
        name: {0: Problem("wrong_type", "error", file, None, f"column {shown(name)}", message)} for name in nested
    }
    return LabelSheet(file, frame, np.arange(1, frame.height + 1), "row", cell_problems)


def _plain_numbers(column: "pl.Series") -> "pl.Series":
    """Floats as integers if all are whole, since pandas stores integers with gaps as floats; else as texts."""
    import polars as pl

    column = column.fill_nan(None)
    whole = ((column == column.round()) & (column.abs() <= _EXACT)).fill_null(True)
    integers = column.zip_with(whole, pl.Series([None], dtype=column.dtype)).cast(pl.Int64)
    return integers if whole.all() else integers.cast(pl.String).zip_with(whole, column.cast(pl.String))
