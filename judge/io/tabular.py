"""Tables in CSV, TSV or Parquet files: read row by row, each with its place; Parquet is written through polars."""

import contextlib
import csv
import io
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from judge.errors import InputError, OperationalError
from judge.io.files import MAX_COLUMNS, largest_file, most_values, read_content, too_many
from judge.io.folder import temporary_name
from judge.io.installed import need_extra
from judge.io.text import shown
from judge.records import Problem, file_problem

if TYPE_CHECKING:
    import polars as pl
    from polars.datatypes import DataType, DataTypeClass

_DELIMITERS = ",\t;"
_HINT = re.compile(r'\s*"?sep=([^"\r\n])"?[^\S\n]*\n', re.IGNORECASE)
"""The line above the header by which spreadsheets say what parts the cells."""
LONGEST_CELL = 131_072
"""The most characters of a cell, unless it may hold passages."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with what ends it."""
DECIMAL_COMMA = r"^([+-]?[0-9]{1,9}),([0-9]+)$"
"""A number with a comma for the point, as spreadsheets write it where a semicolon parts the cells."""
_ROW = 3
"""How many cells take as much memory as a row without any."""


class TableRow(msgspec.Struct, frozen=True, gc=False):
    """One row below the header; cells without outer white space."""

    line: int
    """The line on which the row begins; in a Parquet file its number, from 1."""
    cells: dict[str, str]
    unit: Literal["line", "row"] = "line"
    decimal_comma: bool = False
    """Whether a number may have a comma for the point."""

    def number(self, name: str) -> str:
        """The cell of a column of numbers, with a point."""
        cell = self.cells[name]
        return re.sub(DECIMAL_COMMA, r"\1.\2", cell) if self.decimal_comma else cell

    @property
    def place(self) -> str:
        """Where the row is, in words."""
        return f"{self.unit} {self.line}"


@contextlib.contextmanager
def collected(problems: list[Problem], code: str, file: object) -> Iterator[None]:
    """Add the problems of an InputError in the block, or one of this code with its message; then go on after it."""
    try:
        yield
    except InputError as error:
        problems += error.problems or (file_problem(code, file, str(error)),)


def read_text(path: Path, problems: list[Problem]) -> str | None:
    """A text file in UTF-8, gzipped or not, without a byte order mark; None, and a problem, if it cannot be read."""
    content = content_of(path, problems)
    return None if content is None else decoded_text(path, content, problems)


def content_of(path: Path, problems: list[Problem]) -> bytes | None:
    """The content of a file, gzipped or not; None, and a problem, if it cannot be read."""
    with collected(problems, "unreadable_file", path):
        return read_content(path)
    return None


def decoded_text(path: Path, content: bytes, problems: list[Problem]) -> str | None:
    """Content as text in UTF-8 without a byte order mark; None, and a problem, if it is none or empty."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8: {error.reason}; save the file as UTF-8"
        problems.append(file_problem("wrong_encoding", path, message, f"line {line}"))
        return None
    if not text.strip():
        problems.append(file_problem("empty_file", path, "the file is empty"))
        return None
    return text


def read_table(
    path: Path,
    problems: list[Problem],
    *,
    needed: Sequence[str] = (),
    quoted: bool = True,
    only_once: Collection[str] | None = None,
) -> tuple[tuple[str, ...], list[TableRow]]:
    """The header and the rows of a table; its problems are added to `problems`.

    Columns of a `.tsv` are separated by tabs, others by the most frequent of comma, tab and semicolon in the header, or
    as a line `sep=;` above it says. A Parquet file is told by its content; its cells have the text that CSV would have.

    `only_once`: the names that one column may have, by default every name. Other columns with one name are called by
    their places among these: `Comment#1`, `Comment#2`.

    `quoted`: whether a cell may be in quotation marks, as spreadsheets write it; if not, the marks are text. A
    UsageError if it is a Parquet file, and polars is not installed.
    """
    if (content := content_of(path, problems)) is None:
        return (), []
    if is_parquet(content):
        return _parquet_table(path, content, problems, needed)
    text = decoded_text(path, content, problems)
    if text is None:
        return (), []
    # Sheets that people filled in hold whole passages.
    longest = len(text)
    return table_of_text(path, text, problems, needed=needed, quoted=quoted, only_once=only_once, longest=longest)


def table_of_text(
    path: Path,
    text: str,
    problems: list[Problem],
    *,
    needed: Sequence[str] = (),
    quoted: bool = True,
    only_once: Collection[str] | None = None,
    longest: int = LONGEST_CELL,
) -> tuple[tuple[str, ...], list[TableRow]]:
    """The header and the rows of the text of a table; the arguments are those of `read_table`.

    `longest`: the most characters of a cell.
    """
    header: tuple[str, ...] = ()
    rows: list[TableRow] = []
    before = len(problems)

    def problem(code: str, line: int, message: str) -> None:
        problems.append(file_problem(code, path, message, f"line {line}"))

    delimiter = delimiter_of(path, text)
    for line, cells in table_records(text, delimiter, quoted, longest):
        if too_many(problems, str(path), line, before):
            break
        if isinstance(cells, str):
            problem("not_a_table", line, cells)
        elif not header:
            header = cells if only_once is None else numbered_names(cells, {*only_once, *needed})
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
            rows.append(TableRow(line, dict(zip(header, cells, strict=True)), decimal_comma=delimiter == ";"))
    if not rows and len(problems) == before:
        problem("empty_file", 1, "no row below the header")
    return header, rows


def numbered_names(names: Sequence[str], only_once: Collection[str] = ()) -> tuple[str, ...]:
    """The names of columns, those that several share with their places; names in `only_once` and none stay.

    >>> numbered_names(["worker", "Comment", "label", "Comment"])
    ('worker', 'Comment#1', 'label', 'Comment#2')
    """
    times = Counter(names)
    seen: Counter[str] = Counter()
    numbered: list[str] = []
    for name in names:
        seen[name] += 1
        shared = times[name] > 1 and name != "" and name not in only_once
        numbered.append(f"{name}#{seen[name]}" if shared else name)
    return tuple(numbered)


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
    problems += (file_problem(code, path, message) for code, message in wrong)
    return header, [] if wrong else rows


def table_records(
    text: str, delimiter: str, quoted: bool = True, longest: int = LONGEST_CELL
) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    """The first line of every record that is not blank, and its cells; or a message why reading ends there.

    One reason is a cell of more than `longest` characters.
    """
    # A stream of the text would take four bytes for each of its characters.
    return _records(_lines_of(without_hint(text)), delimiter, quoted, longest)


def line_records(
    path: Path, lines: Iterable[tuple[int, bytes]], longest: int
) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    """As `table_records`, of numbered lines of UTF-8 without their ends, one of which is in the memory at a time."""
    texts = (f"{line.decode()}\n" for _, line in lines)
    head = ""
    for text in texts:
        head += text
        if text.strip():
            break
    rest = chain.from_iterable(map(_lines_of, texts))
    return _records(chain(_lines_of(without_hint(head)), rest), delimiter_of(path, head), True, longest)


def _lines_of(text: str) -> Iterator[str]:
    return (match[0] for match in _LINE.finditer(text))


def _records(
    lines: Iterable[str], delimiter: str, quoted: bool, longest: int
) -> Iterator[tuple[int, tuple[str, ...] | str]]:
    # Strict, so that a quotation mark that is never closed does not silently take the rest of the file.
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    while True:
        line = reader.line_num + 1
        # The limit is that of the process, which reads other tables too.
        others = csv.field_size_limit(longest)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"cannot be read as a table from here on: {error}"
            return
        finally:
            csv.field_size_limit(others)
        stripped = tuple(map(str.strip, cells))
        if any(stripped):
            yield line, stripped


def without_hint(text: str) -> str:
    r"""The text with an empty line for one that only says what parts the cells, so that lines keep their numbers.

    >>> without_hint("sep=;\na;b\n"), without_hint("a;b\n")
    ('\na;b\n', 'a;b\n')
    """
    hint = _HINT.match(text)
    return "\n" * hint[0].count("\n") + text[hint.end() :] if hint else text


def delimiter_of(path: Path, text: str) -> str:
    """What parts the cells: what a line above the header says, in a `.tsv` the tab, else the most frequent there."""
    if hint := _HINT.match(text):
        return hint[1]
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".tsv", ".tab")):
        return "\t"
    header = text.lstrip().partition("\n")[0]
    return max(_DELIMITERS, key=header.count)


Schema: TypeAlias = "dict[str, DataType | DataTypeClass]"
"""The polars type of each column."""
SUFFIX = ".parquet"
NEITHER = "holds lists, objects, bytes, durations or an extension type: expected texts or numbers"
"""What is wrong with a column that holds neither texts nor numbers."""
_MARK = b"PAR1"
_EXACT = 2**53
_CELL = 16
"""Bytes that a short cell takes in a data frame."""
_ROWS = 5_000
"""Most rows of a group."""
_FEWEST = 500
"""Fewest rows of a group in the file, where rows are long; of fewer, its foot would outgrow them."""
_LONGEST = 32 << 20
"""Characters of text after which a group is full."""


def is_parquet(content: bytes) -> bool:
    """Whether the content of a file begins as Parquet does."""
    return content.startswith(_MARK)


def too_many_cells(file: str, rows: int, columns: int, most: int | None = None) -> Problem | None:
    """The problem of a table with more than `most` cells, to which a small file may unpack; None without one."""
    most = most or largest_file() // _CELL
    if columns > MAX_COLUMNS:
        code = "too_many_columns"
        message = f"{columns:,} columns: at most {MAX_COLUMNS:,} are read"
    elif rows * columns > most:
        code = "too_many_cells"
        message = f"{rows:,} rows of {columns:,} columns: at most {most:,} cells are read; --max-file-size allows more"
    else:
        return None
    return file_problem(code, file, message)


def read_frame(file: str, content: bytes, problems: list[Problem], most: int | None = None) -> "pl.DataFrame | None":
    """The table in a Parquet file; None, and a problem, if it cannot be read; a UsageError without polars."""
    need_extra("crowd", f"{file}: a Parquet file")
    import polars as pl

    try:
        size = pl.scan_parquet(io.BytesIO(content))
        if problem := too_many_cells(file, size.select(pl.len()).collect().item(), len(size.collect_schema()), most):
            problems.append(problem)
            return None
        return pl.read_parquet(io.BytesIO(content))
    # A damaged file can make the reader panic, which is no Exception.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0][:200]
        problems.append(file_problem("unreadable_file", file, f"not readable as Parquet: {reason}"))
        return None


def plain_frame(frame: "pl.DataFrame") -> "tuple[pl.DataFrame, list[str]]":
    """The table as texts and integers, whole floats too, NaN as null; and columns of neither, which are empty there."""
    import polars as pl
    from polars import selectors

    # Older versions have no extension types.
    extension = getattr(pl, "BaseExtension", ())
    neither = [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration) or isinstance(dtype, extension)
    ]
    frame = frame.with_columns(pl.lit("").alias(name) for name in neither)
    frame = frame.with_columns(_plain_numbers(column) for column in frame.select(selectors.float()))
    return frame.with_columns((~(selectors.integer() | selectors.string())).cast(pl.String)), neither


def _plain_numbers(column: "pl.Series") -> "pl.Series":
    """Floats as integers if all are whole, since pandas stores integers with gaps as floats; else as texts."""
    import polars as pl

    column = column.fill_nan(None)
    # In 16 bits the bound itself is infinite.
    whole = ((column == column.round()) & (column.abs() <= _EXACT) & column.is_finite()).fill_null(True)
    integers = column.zip_with(whole, pl.Series([None], dtype=column.dtype)).cast(pl.Int64)
    return integers if whole.all() else integers.cast(pl.String).zip_with(whole, column.cast(pl.String))


def write_parquet(out: Path, schema: Schema, rows: Iterable[Sequence[Any]], *, told: Path | None = None) -> int:
    """Write a new file, a group of rows at a time, and give the number of rows; equal rows give equal bytes.

    `told`: the file as messages name it, where `out` only waits to take its place; None for `out`. A UsageError if
    polars is not installed. An InputError if a value is not of the type of its column. An OperationalError if the file
    cannot be written.
    """
    told = told or out
    need_extra("crowd", f"{told}: a Parquet file")
    import polars as pl

    parts = out.with_name(temporary_name(out.name))
    files: list[Path] = []
    sizes: list[int] = []
    # What a process left that was killed.
    shutil.rmtree(parts, ignore_errors=True)
    try:
        parts.mkdir()
        for group in _groups(rows):
            files.append(parts / f"{len(files):08}")
            sizes.append(len(group))
            _frame(told, schema, group).write_parquet(files[-1], compression="lz4")
        if not files:
            files.append(parts / "none")
            pl.DataFrame(schema=schema).write_parquet(files[0])
        # polars reads and writes a part after the other; the last one may be small.
        size = max(_FEWEST, min(sizes[:-1], default=_ROWS))
        pl.scan_parquet(files).sink_parquet(parts / "whole", compression="zstd", row_group_size=size)
        (parts / "whole").replace(out)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:200]
        raise OperationalError(f"{told}: cannot be written: {reason}") from error
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return sum(sizes)


def _frame(told: Path, schema: Schema, group: Sequence[Sequence[Any]]) -> "pl.DataFrame":
    import polars as pl

    try:
        return pl.DataFrame(group, schema=schema, orient="row")
    except (pl.exceptions.PolarsError, TypeError, OverflowError, UnicodeEncodeError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise InputError(f"{told}: a value is not of the type of its column: {reason}") from error


def _groups(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """The rows in groups that fit into memory, whatever the length of their texts."""
    group: list[Sequence[Any]] = []
    length = 0
    for row in rows:
        group.append(row)
        length += sum(len(value) for value in row if isinstance(value, str))
        if len(group) == _ROWS or length >= _LONGEST:
            yield group
            group = []
            length = 0
    if group:
        yield group
