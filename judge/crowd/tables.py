"""Reads tables of workers' labels, long or wide, into arrays; every problem is reported with its row.

Tables may have millions of rows. So each distinct id and label is checked once, and rows only where one is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from judge.crowd.labels import CrowdLabels
from judge.crowd.layout import EXAMPLES, FIELDS, LABEL_OF, LabelProblems, Layout, with_turns
from judge.crowd.platforms import PLATFORMS, platform_rows
from judge.crowd.rows import IDS, Rows
from judge.crowd.sheets import DataFrame, LabelSheet, frame_sheet, read_sheet, text_of
from judge.crowd.wide import are_submissions, is_survey, survey_rows, without_left_out
from judge.errors import InputError, UsageError
from judge.io.ids import natural_key
from judge.io.text import count, shown
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

MAX_GRADES = 100
_NO_ITEM = (
    "no columns of turns and of responses or questions, nor of tasks (--column turn_id=NAME --column response_id=NAME, "
    "or --column task=NAME)"
)
LONG, SURVEYS, SUBMISSIONS = "long", "survey", "submissions"
KINDS = (LONG, *PLATFORMS, SURVEYS, SUBMISSIONS)


def read_tables(
    paths: Sequence[Path | DataFrame], layout: Layout, warnings: list[Problem] | None = None
) -> dict[str, CrowdLabels]:
    """Read the labels of all files together, by criterion; labels stay in the order of the files' rows.

    Tables are CSV, TSV, JSON, JSON Lines or Parquet files, gzipped or not, or data frames. The first `MOST_LISTED`
    problems of each code and file are listed, and the others counted; `warnings` gets those that spoil no label. An
    InputError if rows have problems, or a wanted criterion has no label. A UsageError if the options contradict each
    other or are invalid.
    """
    layout = msgspec.structs.replace(layout, columns=field_columns(layout.columns))
    problems = LabelProblems()
    rows, sheets = label_rows(paths, layout, problems)
    labels = Rows(rows, sheets, problems).labels(layout) if rows is not None else {}
    listed = in_order(problems, sheets)
    if n := problems.total("error"):
        cause = problems.likely() if n > EXAMPLES else ""
        errors = [problem for problem in listed if problem.severity == "error"]
        raise InputError(f"not usable as labels: {count(n, 'problem')}{cause}", errors)
    _check_found(labels, layout, sheets, listed)
    if warnings is not None:
        warnings += listed
    return labels


def label_rows(
    paths: Sequence[Path | DataFrame], layout: Layout, problems: LabelProblems
) -> tuple["pl.DataFrame | None", list[LabelSheet]]:
    """Every label of all tables as a row, unchecked: IDS, label, seconds, its place (number, annotation, column), file.

    The rows are None without a readable table; beside them stands, by the number in the column `file`, what each table
    was. A UsageError if the options contradict each other or are invalid.
    """
    import polars as pl

    _check_options(layout)
    frames: list[pl.DataFrame] = []
    sheets: list[LabelSheet] = []
    submissions: list[LabelSheet] = []
    for place, path in enumerate(paths, start=1):
        sheet = read_sheet(path, problems) if isinstance(path, Path) else frame_sheet(f"table {place}", path, problems)
        if sheet is None:
            continue
        if (kind := _kind(sheet, layout)) == SUBMISSIONS:
            submissions.append(sheet)
        else:
            file = pl.lit(len(sheets), dtype=pl.Int32)
            read = {LONG: _long_rows, SURVEYS: survey_rows}.get(kind) or partial(
                platform_rows, platform=PLATFORMS[kind]
            )
            for frame in read(sheet, layout=layout, problems=problems):
                rows = with_turns(frame, sheet, layout, problems)
                frames.append(rows.select(*IDS, "label", "seconds", "number", "annotation", "column", file=file))
        # Only names and numbers are needed from here on.
        sheets.append(LabelSheet(sheet.file, sheet.frame.clear(), sheet.numbers[:0], sheet.unit))
    frames = without_left_out(frames, submissions, problems)
    # In the order of the files' rows: a sheet with several columns of labels is read column by column.
    if not frames:
        return None, sheets
    labels = pl.concat(frames).sort("file", "number", maintain_order=True)
    return _last_labels(labels, sheets, layout, problems) if layout.last else labels, sheets


def _last_labels(
    rows: "pl.DataFrame", sheets: Sequence[LabelSheet], layout: Layout, problems: LabelProblems
) -> "pl.DataFrame":
    """The rows without labels that their worker gave anew, by the numbers of annotations, else by the order of rows."""
    import polars as pl

    repeatable = pl.concat_str("turn_id", pl.lit("\n"), "response_id").is_in(list(map("\n".join, layout.repeatable)))
    counts = pl.col("label").ne("") & pl.col("worker").ne("") & ~repeatable
    order = pl.col("annotation").cast(pl.Int64, strict=False).fill_null(-1)
    numbered = rows.with_row_index("place")
    last = numbered.filter(counts).sort(order, "place").unique(IDS, keep="last")["place"]
    kept = ~counts | pl.col("place").is_in(last.implode())
    if (out := numbered.filter(~kept)).height:
        file, *place = out.select("file", "number", "column", "annotation").row(0)
        message = f"{count(out.height, 'label')} left out, which the same worker gave anew; this is the first"
        problems.append(sheets[file].problem("row_left_out", sheets[file].place(*place), message, "warning"))
    return numbered.filter(kept).drop("place")


def in_order(problems: LabelProblems, sheets: Sequence[LabelSheet]) -> list[Problem]:
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
        columns = ", ".join(map(shown, dict.fromkeys(name for sheet in sheets for name in sheet.columns[:20])))
        contents = f"labels of {', '.join(map(shown, labels)) or 'no criterion'}, columns {columns}"
        names = ", ".join(map(shown, lacking)) or "any criterion"
        raise InputError(f"{files}: no label of {names}; found {contents}", warnings)


def field_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns by the first name of their field."""
    first = {name: field for field, names in FIELDS.items() for name in names}
    fields = {first.get(name, name): column for name, column in columns.items()}
    if len(fields) < len(columns):
        raise UsageError(f"--column gives one field twice: {', '.join(columns)}")
    return fields


def _check_options(layout: Layout) -> None:
    unknown = [name for name in layout.columns if name not in FIELDS and not name.startswith(LABEL_OF)]
    if unknown:
        raise UsageError(f"{', '.join(map(shown, unknown))} is no field: expected one of {', '.join(FIELDS)}")
    if layout.wide is not None and (idle := sorted(layout.columns.keys() - {"worker", "seconds"})):
        raise UsageError(f"a survey's columns are read as --wide says: a column of {', '.join(idle)} cannot go with it")
    if layout.kind not in (None, *KINDS):
        raise UsageError(f"{shown(layout.kind)} is no kind of table: expected one of {', '.join(KINDS)}")
    if "task" in layout.columns and {"turn_id", "response_id"} & layout.columns.keys():
        raise UsageError("a column of tasks tells turn and item: it cannot go with columns of them")
    for scale in layout.scales.values() if isinstance(layout.scales, Mapping) else [layout.scales]:
        if not 2 <= len(set(scale)) <= MAX_GRADES:
            raise UsageError(f"a scale has 2 to {MAX_GRADES} grades, not {len(set(scale))}")
    if without := [criterion for criterion in layout.wanted or () if layout.grades(criterion) is None]:
        raise UsageError(f"no scale for {', '.join(map(shown, without))}")


def _kind(sheet: LabelSheet, layout: Layout) -> str:
    """What a table is: as the user says, else by its columns."""
    if are_submissions(sheet.columns) and layout.kind != LONG:
        return SUBMISSIONS
    if layout.kind is not None:
        return layout.kind
    if layout.wide is not None:
        return SURVEYS
    platforms = (name for name, platform in PLATFORMS.items() if platform.wrote(sheet.columns))
    return next(platforms, SURVEYS if is_survey(sheet) else LONG)


def _long_rows(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> "Iterable[pl.DataFrame]":
    """A frame for each column of labels: its rows with their ids, criterion, label, seconds and place."""
    import polars as pl

    columns = _columns(sheet.columns, layout)
    lacking = [f"no column {shown(name)}" for name in columns.values() if name not in sheet.columns]
    if lacking := lacking + _lacking(columns, layout):
        header = ", ".join(map(shown, sheet.columns[:20]))
        where = "" if sheet.unit == "row" else "line 1"
        problems += (sheet.problem("missing_column", where, f"{message}; found {header}") for message in lacking)
        return
    problems += sheet.problems_of([*columns.values()])
    fields = {field: name for field, name in columns.items() if field in FIELDS and field not in ("label", "seconds")}
    for field, name in columns.items():
        if field != "label" and not field.startswith(LABEL_OF):
            continue
        about = {of: text_of(column) for of, column in fields.items()} | {"label": text_of(name)}
        if own := field.removeprefix(LABEL_OF) if field != "label" else None:
            about["criterion"] = pl.lit(own)
        about.setdefault("criterion", pl.lit(layout.only))
        frame = sheet.rows(name if own else None, columns.get("seconds"), **about)
        used = {*fields.values(), name, columns.get("seconds")}
        wrong = [number for column, rows in sheet.problems.items() if column in used for number in rows]
        yield frame.clear() if 0 in wrong else frame.filter(~pl.col("number").is_in(wrong))


def _columns(names: Sequence[str], layout: Layout) -> dict[str, str]:
    """Field to column: as given, else by the names in the header."""
    known = {field: name for field, aliases in FIELDS.items() for name in reversed(aliases) if name in names}
    given = dict(layout.columns)
    items = {"turn_id", "response_id"}
    if "task" not in given and (items & given.keys() or items <= known.keys()):
        known.pop("task", None)
    elif "task" in known | given:
        known = {field: name for field, name in known.items() if field not in items}
    if any(field.startswith(LABEL_OF) for field in given):
        known = {field: name for field, name in known.items() if field not in ("label", "criterion")}
    elif "label" not in known | given:
        if label_columns := {LABEL_OF + name: name for name in layout.known or () if name in names}:
            known.pop("criterion", None)
        known |= label_columns
    return known | given


def _lacking(columns: Mapping[str, str], layout: Layout) -> list[str]:
    lacking = [] if "worker" in columns else ["no column of workers"]
    item = "response_id" in columns and ("turn_id" in columns or layout.turns is not None)
    lacking += [] if item or "task" in columns else [_NO_ITEM]
    labels = any(field.startswith(LABEL_OF) for field in columns)
    lacking += [] if labels or "label" in columns else ["no column of labels"]
    if not labels and "criterion" not in columns and layout.only is None:
        lacking.append("no column of criteria, and no one criterion is given (--criterion, --column criterion=NAME)")
    return lacking
