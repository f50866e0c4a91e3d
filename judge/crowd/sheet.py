"""A table of labels with the number of each row, as texts and integers."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
