"""Tables in CSV, TSV or Parquet files, row by row, with the line on which each row begins, or its number in Parquet."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from judge.errors import InputError
from judge.io.limits import MAX_COLUMNS, MAX_PROBLEMS, most_values, stopped
from judge.io.parquet import NEITHER, is_parquet, plain_frame, read_frame
from judge.io.safe import shown
from judge.io.stored import read_stored, unpack
from judge.records import Problem

_DELIMITERS = ",\t;"
_ROW = 3
"""How many cells take as much memory as a row without any."""


class TableRow(msgspec.Struct, frozen=True):
    """One row below the header; cells without outer white space."""

    line: int
    """The line on which the row begins; in a Parquet file its number, from 1."""
    cells: dict[str, str]
    unit: Literal["line", "row"] = "line"

    @property
    def place(self) -> str:
        """Where the row is, in words."""
        return f"{self.unit} {self.line}"


def read_text(path: Path, problems: list[Problem]) -> str | None:
    """A text file in UTF-8, gzipped or not, without a byte order mark; None, and a problem, if it cannot be read."""
    content = _read_content(path, problems)
    return None if content is None else _decoded(path, content, problems)


def _read_content(path: Path, problems: list[Problem]) -> bytes | None:
    try:
        return unpack(read_stored(path), str(path))
    except InputError as error:
        problems.append(Problem("unreadable_file", "error", str(path), None, "", str(error)))
        return None


def _decoded(path: Path, content: bytes, problems: list[Problem]) -> str | None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8: {error.reason}; save the file as UTF-8"
        problems.append(Problem("wrong_encoding", "error", str(path), None, f"line {line}", message))
        return None
    if not text.strip():
        problems.append(Problem("empty_file", "error", str(path), None, "", "the file is empty"))
        return None
    return text


def read_table(
    path: Path, problems: list[Problem], *, needed: Sequence[str] = (), quoted: bool = True
) -> tuple[tuple[str, ...], list[TableRow]]:
    """The header and the rows of a table; its problems are added to `problems`.

    Columns of a `.tsv` are separated by tabs, others by the most frequent of comma, tab and semicolon in the header. A
    Parquet file is told by its content; its cells have the text that CSV would have.

    Args:
        path: The file.
        problems: The list to which problems are added.
        needed: Names of required columns.
        quoted: Whether a cell may be in quotation marks, as spreadsheets write it; if not, the marks are text.

    Raises:
        UsageError: It is a Parquet file, and polars is not installed.
    """
    content = _read_content(path, problems)
    if content is None:
        return (), []
    if is_parquet(content):
        return _parquet_table(path, content, problems, needed)
    text = _decoded(path, content, problems)
    if text is None:
        return (), []
    header: tuple[str, ...] = ()
    rows: list[TableRow] = []

    before = len(problems)

    def problem(code: str, line: int, message: str) -> None:
        problems.append(Problem(code, "error", str(path), None, f"line {line}", message))

    for line, cells in _records(text, _delimiter(path, text), quoted):
        if len(problems) - before == MAX_PROBLEMS:
            problems.append(stopped(str(path), line))
            break
        if isinstance(cells, str):
            problem("not_a_table", line, cells)
        elif not header:
            header = cells
            wrong = _header_problems(header, needed)
            for code, message in wrong:
                problem(code, line, message)
            if wrong:
                return () if len(header) > MAX_COLUMNS else header, []
        elif len(cells) != len(header):
            problem("wrong_columns", line, f"{len(cells)} cells: expected {len(header)}, as in the header")
        elif (len(header) + _ROW) * len(rows) > most_values():
            message = f"more than {len(rows):,} rows of {len(header)} cells; --max-file-size allows more"
            problem("too_many_cells", line, message)
            return header, []
        else:
            rows.append(TableRow(line, dict(zip(header, cells, strict=True))))
    if not rows and not problems:
        problem("empty_file", 1, "no row below the header")
    return header, rows


def _header_problems(header: Sequence[str], needed: Sequence[str]) -> list[tuple[str, str]]:
    """Code and message of everything that is wrong with the names of the columns."""
    if len(header) > MAX_COLUMNS:
        return [("too_many_columns", f"{len(header):,} columns: at most {MAX_COLUMNS:,} are read")]
    found = []
    if repeated := sorted({name for name in header if name and header.count(name) > 1}):
        found.append(("repeated_column", f"the header has {', '.join(map(shown, repeated))} more than once"))
    if missing := [name for name in needed if name not in header]:
        columns = ", ".join(map(shown, header[:20]))
        found.append(("missing_column", f"no column {', '.join(map(shown, missing))}; found {columns}"))
    return found


def _parquet_table(
    path: Path, content: bytes, problems: list[Problem], needed: Sequence[str]
) -> tuple[tuple[str, ...], list[TableRow]]:
    frame = read_frame(str(path), content, problems, most_values())
    if frame is None:
        return (), []
    frame, neither = plain_frame(frame)
    header = tuple(name.strip() for name in frame.columns)
    wrong = _header_problems(header, needed)
    wrong += [("wrong_type", f"column {shown(name)} {NEITHER}") for name in neither if name.strip() in needed]
    cells = (tuple("" if cell is None else str(cell).strip() for cell in row) for row in frame.iter_rows())
    rows = [
        TableRow(number, dict(zip(header, row, strict=True)), "row") for number, row in enumerate(cells, 1) if any(row)
    ]
    if not rows and not wrong:
        wrong.append(("empty_file", "the table has no row"))
    problems += (Problem(code, "error", str(path), None, "", message) for code, message in wrong)
    return header, [] if wrong else rows


def _records(text: str, delimiter: str, quoted: bool) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    """The first line of every record that is not blank, and its cells; or a message why reading ends there."""
    # Strict, so that a quotation mark that is never closed does not silently take the rest of the file.
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"cannot be read as a table from here on: {error}"
            return
        if any(cell.strip() for cell in cells):
            yield line, tuple(cell.strip() for cell in cells)


def _delimiter(path: Path, text: str) -> str:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".tsv", ".tab")):
        return "\t"
    header = text.lstrip().partition("\n")[0]
    return max(_DELIMITERS, key=header.count)
