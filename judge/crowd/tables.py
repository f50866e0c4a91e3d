"""Reads tables of workers' labels, long or wide, into arrays; every problem is reported with its row.

Tables may have millions of rows. So each distinct id and label is checked once, and rows only where one is wrong.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.problems import LabelProblems
from judge.crowd.rows import IDS, TASK, Layout, Rows, Scales
from judge.crowd.sheets import LabelSheet, read_sheet
from judge.crowd.wide import Wide, is_mturk, mturk_rows, survey_rows
from judge.errors import InputError, UsageError
from judge.records import Problem
from judge.text.ids import natural_key
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl

MAX_GRADES = 100
_LABEL_OF = "label:"


def read_tables(
    paths: Sequence[Path],
    *,
    columns: Mapping[str, str],
    scales: Scales,
    wide: Wide | None = None,
    criteria: Sequence[str] = (),
    task: str = TASK,
    turns: Mapping[str, str] | None = None,
    beside: Collection[str] = (),
    repeatable: Collection[Item] = (),
    warnings: list[Problem] | None = None,
) -> dict[str, CrowdLabels]:
    """Read the labels of all files together, by criterion; labels stay in the order of the files' rows.

    The first `MOST_LISTED` problems of each code and file are listed, and the others counted.

    Args:
        paths: CSV, TSV, JSON Lines or Parquet files, gzipped or not.
        columns: Field to column, where the header does not name the field; see `Layout`.
        scales: Grades by criterion; another criterion is a problem. Or the grades of every criterion.
        wide: What the columns of a survey ask about; MTurk's exports are known by their header.
        criteria: The wanted criteria; all, if empty. A single one applies to tables that name none.
        task: The pattern of the cells of a column `task`.
        turns: Item id to turn id, for tables without turns.
        beside: More criteria to read, if tables have them and they have a scale.
        repeatable: Items that a worker may label more than once under a criterion.
        warnings: Gets the problems that do not make labels unusable.

    Raises:
        InputError: Rows have problems, or a wanted criterion has no label.
        UsageError: The options contradict each other or are invalid.
    """
    layout = Layout(columns, scales, criteria, wide, task, turns, beside, repeatable)
    _check_options(layout)
    problems = LabelProblems()
    frames: list[pl.DataFrame] = []
    sheets: list[LabelSheet] = []
    for path in paths:
        sheet = read_sheet(path, problems)
        if sheet is None:
            continue
        for frame in _long(sheet, layout, problems):
            frames.append(_marked(frame, len(sheets)))
        # Only names and numbers are needed from here on.
        sheets.append(LabelSheet(sheet.file, sheet.frame.clear(), sheet.numbers[:0], sheet.unit))
    labels = Rows(_joined(frames), sheets, problems).labels(layout) if frames else {}
    listed = _listed(problems, sheets)
    if n := problems.total("error"):
        raise InputError(
            f"not usable as labels: {n:,} {'problem' if n == 1 else 'problems'}",
            [problem for problem in listed if problem.severity == "error"],
        )
    _check_found(labels, layout, sheets, listed)
    if warnings is not None:
        warnings += listed
    return labels


def _listed(problems: LabelProblems, sheets: Sequence[LabelSheet]) -> list[Problem]:
    """The problems in the order of files and rows; after those of a file, how many more it has."""
    order = {sheet.file: place for place, sheet in enumerate(sheets)}
    return sorted(
        [*problems, *(rest := problems.rest())],
        key=lambda problem: (order.get(problem.file, -1), problem in rest, natural_key(problem.path)),
    )


def _check_found(
    labels: Mapping[str, CrowdLabels], layout: Layout, sheets: Sequence[LabelSheet], warnings: Sequence[Problem]
) -> None:
    lacking = [name for name in layout.wanted or () if name not in labels]
    if lacking or not labels:
        files = ", ".join(sheet.file for sheet in sheets)
        columns = ", ".join(map(shown, dict.fromkeys(name for sheet in sheets for name in sheet.frame.columns[:20])))
        contents = f"labels of {', '.join(map(shown, labels)) or 'no criterion'}, columns {columns}"
        names = ", ".join(map(shown, lacking)) or "any criterion"
        raise InputError(f"{files}: no label of {names}; found {contents}", warnings)


def _check_options(layout: Layout) -> None:
    unknown = [name for name in layout.columns if name not in FIELDS and not name.startswith(_LABEL_OF)]
    if unknown:
        raise UsageError(f"{', '.join(map(shown, unknown))} is no field: expected one of {', '.join(FIELDS)}")
    if layout.wide is not None and (idle := sorted(layout.columns.keys() - {"worker", "seconds"})):
        raise UsageError(f"a survey's columns are read as --wide says: a column of {', '.join(idle)} cannot go with it")
    if "task" in layout.columns and {"turn_id", "item_id"} & layout.columns.keys():
        raise UsageError("a column of tasks tells turn and item: it cannot go with columns of them")
    for scale in layout.scales.values() if isinstance(layout.scales, Mapping) else [layout.scales]:
        if not 2 <= len(set(scale)) <= MAX_GRADES:
            raise UsageError(f"a scale has 2 to {MAX_GRADES} grades, not {len(set(scale))}")
    if without := [criterion for criterion in layout.wanted or () if layout.grades(criterion) is None]:
        raise UsageError(f"no scale for {', '.join(map(shown, without))}")


# From a sheet to rows of one label each.


def _long(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> Iterable["pl.DataFrame"]:
    if layout.wide is not None or is_mturk(sheet.frame.columns):
        problems += (problem for by_row in sheet.problems.values() for problem in by_row.values())
    if layout.wide is not None:
        return survey_rows(sheet, layout.wide, layout.columns, layout.only, problems)
    if is_mturk(sheet.frame.columns):
        if layout.columns:
            raise UsageError(f"{sheet.file}: an export of MTurk is read by its own columns, not by those given")
        return mturk_rows(sheet, layout.known, problems)
    return _long_rows(sheet, layout, problems)


def _long_rows(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> list["pl.DataFrame"]:
    """A frame of rows for each column of labels; none, and a problem, if columns are missing."""
    import polars as pl

    columns = _columns(sheet.frame.columns, layout)
    lacking = [f"no column {shown(name)}" for name in columns.values() if name not in sheet.frame.columns]
    lacking += _lacking(columns, layout)
    if lacking:
        header = ", ".join(map(shown, sheet.frame.columns[:20]))
        where = "" if sheet.unit == "row" else "line 1"
        problems += (
            Problem("missing_column", "error", sheet.file, None, where, f"{message}; found {header}")
            for message in lacking
        )
        return []
    problems += (problem for name in columns.values() for problem in sheet.problems.get(name, {}).values())
    fields = {field: pl.col(name) for field, name in columns.items() if field in FIELDS and field != "label"}
    fields.setdefault("criterion", pl.lit(layout.only))
    fields.setdefault("seconds", pl.lit(None, dtype=pl.String))
    labels = {
        None if field == "label" else field.removeprefix(_LABEL_OF): name
        for field, name in columns.items()
        if field not in FIELDS or field == "label"
    }
    numbers = pl.Series("number", sheet.numbers)
    frames = []
    for criterion, name in labels.items():
        frame = sheet.frame.select(numbers, **fields, label=pl.col(name))
        used = {columns[field] for field in fields if field in columns} | {name}
        wrong = [number for column in used for number in sheet.problems.get(column, ())]
        if wrong:
            frame = frame.clear() if 0 in wrong else frame.filter(~pl.col("number").is_in(wrong))
        if criterion is not None:
            frame = frame.with_columns(criterion=pl.lit(criterion), column=pl.lit(name))
        frames.append(_with_turns(frame, sheet, layout, problems))
    return frames


def _columns(names: Sequence[str], layout: Layout) -> dict[str, str]:
    """Field to column: as given, else by the names in the header."""
    known = {
        field: next(name for name in aliases if name in names)
        for field, aliases in FIELDS.items()
        if any(name in names for name in aliases)
    }
    given = dict(layout.columns)
    items = {"turn_id", "item_id"}
    if "task" not in given and (items & given.keys() or items <= known.keys()):
        known.pop("task", None)
    elif "task" in known | given:
        known = {field: name for field, name in known.items() if field not in items}
    if any(field.startswith(_LABEL_OF) for field in given):
        known = {field: name for field, name in known.items() if field not in ("label", "criterion")}
    elif "label" not in known | given:
        label_columns = {_LABEL_OF + criterion: criterion for criterion in layout.known or () if criterion in names}
        known = {
            field: name for field, name in known.items() if field != "criterion" or not label_columns
        } | label_columns
    return known | given


def _lacking(columns: Mapping[str, str], layout: Layout) -> list[str]:
    """The missing columns, in words."""
    lacking = [] if "worker" in columns else ["no column of workers"]
    item = "item_id" in columns and ("turn_id" in columns or layout.turns is not None)
    lacking += [] if item or "task" in columns else ["no columns of turns and of responses or questions, nor of tasks"]
    labels = any(field.startswith(_LABEL_OF) for field in columns)
    lacking += [] if labels or "label" in columns else ["no column of labels"]
    if not labels and "criterion" not in columns and layout.only is None:
        lacking.append("no column of criteria, and no one criterion is given")
    return lacking


def _with_turns(frame: "pl.DataFrame", sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> "pl.DataFrame":
    """The frame with turn and item in separate columns; a task or item without a turn is a problem."""
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

        return _split(frame, "item_id", look_up, "unknown_item", "is not in the bank", sheet, problems)
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
    return joined.filter(~unknown).drop(column).rename({"item of it": "item_id"})


def _marked(frame: "pl.DataFrame", place: int) -> "pl.DataFrame":
    """The frame with its columns in a fixed order and the index of its file."""
    import polars as pl

    if "column" not in frame.columns:
        frame = frame.with_columns(column=pl.lit(None, dtype=pl.String))
    return frame.select(*IDS, "label", "seconds", "number", "column", file=pl.lit(place, dtype=pl.Int32))


def _joined(frames: Sequence["pl.DataFrame"]) -> "pl.DataFrame":
    """All frames as one, in the order of the files' rows; mixed columns hold texts."""
    import polars as pl

    mixed = [name for name in (*IDS, "label", "seconds") if len({frame.schema[name] for frame in frames}) > 1]
    joined = pl.concat([frame.with_columns(pl.col(mixed).cast(pl.String)) for frame in frames])
    # A wide table is read column by column.
    several = len({frame["file"][0] for frame in frames if frame.height}) < len(frames)
    return joined.sort("file", "number", maintain_order=True) if several else joined


FIELDS: dict[str, tuple[str, ...]] = {
    "worker": ("worker", "worker_id"),
    "turn_id": ("turn_id",),
    "item_id": ("item_id", "response_id", "question_id"),
    "task": ("task",),
    "criterion": ("criterion",),
    "label": ("label",),
    "seconds": ("seconds",),
}
"""Field of a long table to the column names that it may have; the first one in the header is used."""
