"""Data frames of labels, and other tables with typed columns, as sheets."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from judge.errors import UsageError
from judge.io.safe import shown
from judge.io.stored import sha256
from judge.io.tabular import NEITHER, plain_frame
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl


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

    @property
    def columns(self) -> Any:
        """The names of the columns."""


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
    return typed_sheet(name, frame, problems)


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


def typed_sheet(file: str, frame: "pl.DataFrame", problems: list[Problem]) -> LabelSheet | None:
    """Typed columns: integers stay, columns of whole floats become integers, other columns text; NaN is empty."""
    frame, neither = plain_frame(frame)
    if not frame.height:
        problems.append(Problem("empty_file", "error", file, None, "", "the table has no row"))
        return None
    cell_problems = {
        name: {0: Problem("wrong_type", "error", file, None, f"column {shown(name)}", NEITHER)} for name in neither
    }
    return LabelSheet(file, frame, np.arange(1, frame.height + 1), "row", cell_problems)
