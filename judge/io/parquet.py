"""Parquet files: read as tables of plain values, and written a group of rows at a time, through polars."""

import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from judge.errors import InputError, OperationalError
from judge.io.extras import need_extra
from judge.io.folder import temporary_name
from judge.io.limits import MAX_COLUMNS, largest_file
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl
    from polars.datatypes import DataType, DataTypeClass

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
    """The problem of a table that would fill the memory: small files can be made to unpack to any number of cells.

    Args:
        file: The file, as messages name it.
        rows: Its rows.
        columns: Its columns.
        most: Most cells; None for what a file of the largest size may hold.
    """
    most = most or largest_file() // _CELL
    if columns > MAX_COLUMNS:
        code, message = "too_many_columns", f"{columns:,} columns: at most {MAX_COLUMNS:,} are read"
    elif rows * columns > most:
        code = "too_many_cells"
        message = f"{rows:,} rows of {columns:,} columns: at most {most:,} cells are read; --max-file-size allows more"
    else:
        return None
    return Problem(code, "error", file, None, "", message)


def read_frame(file: str, content: bytes, problems: list[Problem], most: int | None = None) -> "pl.DataFrame | None":
    """The table in a Parquet file; None, and a problem, if it cannot be read or is too large.

    Args:
        file: The file, as messages name it.
        content: Its bytes.
        problems: The list to which problems are added.
        most: Most cells, as for `too_many_cells`.

    Raises:
        UsageError: polars is not installed.
    """
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
        problems.append(Problem("unreadable_file", "error", file, None, "", f"not readable as Parquet: {reason}"))
        return None


def plain_frame(frame: "pl.DataFrame") -> "tuple[pl.DataFrame, list[str]]":
    """The table with integers and texts alone, and the columns that hold neither, which are empty there.

    Columns of whole floats become integers, NaN becomes null, and other columns become texts.
    """
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

    Args:
        out: The file; its folder must exist.
        schema: The polars type of each column.
        rows: A value for each column.
        told: The file as messages name it, where `out` only waits to take its place; None for `out`.

    Raises:
        UsageError: polars is not installed.
        InputError: A value is not of the type of its column.
        OperationalError: The file cannot be written.
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
            group, length = [], 0
    if group:
        yield group
