"""What a label is about where no two columns say it: tasks that name turn and response, a pool that knows the turns."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from judge.crowd.frames import LabelSheet
from judge.crowd.layout import Layout
from judge.crowd.problems import LabelProblems
from judge.errors import UsageError
from judge.records import Problem
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl


def with_turns(frame: "pl.DataFrame", sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> "pl.DataFrame":
    """The frame with turn and response in columns of their own; a task or response without a turn is a problem."""
    if "task" in frame.columns:
        pattern = _task_pattern(layout.task)
        item = next(name for name in ("response_id", "question_id", "item_id") if name in pattern.groupindex)

        def split(cell: str) -> tuple[str, str] | None:
            match = pattern.fullmatch(cell)
            return (match["turn_id"] or "", match[item] or "") if match else None

        return _split(frame, "task", split, "wrong_task", "does not fit the pattern of tasks", sheet, problems)
    if "turn_id" not in frame.columns and (turns := layout.turns) is not None:

        def look_up(cell: str) -> tuple[str, str] | None:
            return (turns[cell], cell) if cell in turns else None

        return _split(frame, "response_id", look_up, "unknown_item", "is not in the bank", sheet, problems)
    return frame


def _task_pattern(task: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(task)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--task {shown(task)} is no regular expression: {error}") from error
    if not {"response_id", "question_id", "item_id"} & pattern.groupindex.keys() or "turn_id" not in pattern.groupindex:
        raise UsageError(f"--task {shown(task)}: expected groups (?P<turn_id>…) and (?P<response_id>…)")
    return pattern


def _split(
    frame: "pl.DataFrame",
    column: str,
    split: Callable[[str], tuple[str, str] | None],
    code: str,
    message: str,
    sheet: LabelSheet,
    problems: LabelProblems,
) -> "pl.DataFrame":
    import polars as pl

    cells = frame[column].cast(pl.String).fill_null("").str.strip_chars()
    distinct = cells.unique()
    parts = [split(cell) for cell in distinct.to_list()]
    table = pl.DataFrame(
        {
            column: distinct,
            "turn_id": pl.Series([part and part[0] for part in parts], dtype=pl.String),
            "item of it": pl.Series([part and part[1] for part in parts], dtype=pl.String),
        }
    )
    joined = frame.with_columns(cells.alias(column)).join(table, on=column, how="left", maintain_order="left")
    unknown = joined["turn_id"].is_null()
    for number, cell in joined.filter(unknown).select("number", column).iter_rows():
        problem = (code, f"{column} {shown(cell)} {message}") if cell else ("empty_cell", f"{column} is empty")
        problems.append(Problem(problem[0], "error", sheet.file, None, f"{sheet.unit} {number}", problem[1]))
    return joined.filter(~unknown).drop(column).rename({"item of it": "response_id"})
