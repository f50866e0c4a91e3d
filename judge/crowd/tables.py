"""Reads tables of people's labels in any layout, a row each; `rows` checks them. A layout is a row of KINDS."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.layout import (
    EXAMPLES,
    FIELDS,
    LABEL_OF,
    LabelColumn,
    LabelProblems,
    LabelTable,
    Layout,
    with_turns,
)
from judge.crowd.platforms import (
    LABEL_STUDIO,
    MTURK,
    are_submissions,
    is_survey,
    platform_rows,
    survey_rows,
    without_left_out,
)
from judge.crowd.rows import IDS, Rows, checked_labels
from judge.crowd.sheets import COMMENT, LabelSheet, frame_sheet, read_sheet, text_of, without
from judge.errors import InputError, UsageError
from judge.gold.draft import OF_PAIR
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
_NO_TURN = "no column of turns (--column turn_id=NAME; or --pool OUT, which knows the turn of each response)"
_NO_WORKER = "no column of workers (--column worker=NAME; or --workers COLUMN... where each worker has a column)"
LONG = "long"
SURVEYS = "survey"
SUBMISSIONS = "submissions"


def read_tables(paths: Sequence[Any], layout: Layout, warnings: list[Problem] | None = None) -> dict[str, CrowdLabels]:
    """Read the labels of all paths and data frames together, by criterion; labels stay in the order of their rows.

    Tables are CSV, TSV, JSON, JSON Lines or Parquet files, gzipped or not, or data frames. The first `MOST_LISTED`
    problems of each code and file are listed, and the others counted; `warnings` gets those that spoil no label. An
    InputError if rows have problems, or a wanted criterion has no label. A UsageError if the options contradict each
    other or are invalid.
    """
    layout = msgspec.structs.replace(layout, columns=field_columns(layout.columns))
    problems = LabelProblems()
    rows, sheets = label_rows(paths, layout, problems, one_order=True)
    labels = checked_labels(Rows(rows, sheets, problems), layout) if rows is not None else {}
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
    paths: Sequence[Any], layout: Layout, problems: LabelProblems, *, one_order: bool = False, remarks: bool = False
) -> tuple["pl.DataFrame | None", list[LabelSheet]]:
    """Every label of all tables as a row, unchecked: IDS, label, seconds, its place (number, annotation, column), file.

    The rows are None without a readable table; beside them stands, by the number in the column `file`, what each table
    was. `one_order`: whether a pair that was shown in both orders gets one id; the labels whose grade is to be turned
    around are `turned` then. `remarks`: whether there are columns `comment` and `ground_truth` too ("true" for the
    labels that a platform marks so). A UsageError if the options contradict each other or are invalid.
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
            for frame in KINDS[kind].rows(sheet, layout, problems):
                rows = with_turns(frame, sheet, layout, problems)
                second = pl.col("second_id") if "second_id" in rows.columns else pl.lit("")
                places = ("number", "annotation", "column")
                more: dict[str, pl.Expr] = {}
                for name in ("comment", "ground_truth") if remarks else ():
                    more[name] = pl.col(name) if name in rows.columns else pl.lit("")
                frames.append(rows.select(*IDS, "label", "seconds", *places, second_id=second, file=file, **more))
        # Only names and numbers are needed from here on.
        sheets.append(replace(sheet, frame=sheet.frame.clear(), numbers=sheet.numbers[:0], problems={}))
    frames = without_left_out(frames, submissions, problems)
    # In the order of the files' rows: a sheet with several columns of labels is read column by column.
    if not frames:
        return None, sheets
    labels = pl.concat(frames).sort("file", "number", maintain_order=True)
    labels = _in_one_order(labels, layout) if one_order else labels
    return _last_labels(labels, sheets, layout, problems) if layout.last else labels, sheets


def _in_one_order(labels: "pl.DataFrame", layout: Layout) -> "pl.DataFrame":
    """The rows with one id for each pair that was shown in both orders, and whether this is the other order.

    The order is that of a known item, else that in which the ids come first.
    """
    import polars as pl

    of_pair = (pl.col("second_id") != "") | pl.col("response_id").is_in([*layout.other_orders])
    pairs = labels.filter(of_pair).select("turn_id", "response_id", "second_id").unique()
    seen = set(pairs.select("turn_id", "response_id").iter_rows())
    one_id: dict[str, str] = {}
    for turn_id, name, second in pairs.iter_rows():
        first = name.removesuffix(f"{OF_PAIR}{second}")
        other = f"{second}{OF_PAIR}{first}" if second else layout.other_orders[name]
        later = (turn_id, other) in seen and natural_key(other) < natural_key(name)
        if Item(turn_id, name) in layout.repeatable:
            continue
        if Item(turn_id, other) in layout.repeatable or later:
            one_id[f"{turn_id}\n{name}"] = other
    pair = pl.concat_str("turn_id", pl.lit("\n"), "response_id")
    turned = pair.is_in([*one_id])
    response_id = pl.when(turned).then(pair.replace(one_id)).otherwise("response_id")
    return labels.with_columns(response_id=response_id, turned=turned)


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
    first: dict[str, str] = {}
    for field, names in FIELDS.items():
        for name in names:
            first[name] = field
    fields = {first.get(name, name): column for name, column in columns.items()}
    if len(fields) < len(columns):
        raise UsageError(f"--column gives one field twice: {', '.join(columns)}")
    return fields


def _check_options(layout: Layout) -> None:
    unknown = [name for name in layout.columns if name not in FIELDS and not name.startswith(LABEL_OF)]
    if unknown:
        raise UsageError(f"{', '.join(map(shown, unknown))} is no field: expected one of {', '.join(FIELDS)}")
    if layout.workers and (idle := sorted(layout.columns.keys() & {"worker", "label"}) or layout.wide):
        named = ", ".join(idle) if isinstance(idle, list) else "questions (--wide)"
        raise UsageError(f"--workers names the columns of labels by worker: a column of {named} cannot go with it")
    if layout.wide is not None and (idle := sorted(layout.columns.keys() - {"worker", "seconds"})):
        raise UsageError(f"a survey's columns are read as --wide says: a column of {', '.join(idle)} cannot go with it")
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
    return next((name for name, kind in KINDS.items() if kind.wrote(sheet)), LONG)


def _long_rows(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> "Iterable[pl.DataFrame]":
    """A frame for each column of labels: its rows with their ids, criterion, label, seconds and place."""
    import polars as pl

    # Toloka's verdict of the requester on the assignment.
    sheet = without(sheet, "ACCEPT:verdict", ("-",), problems)
    columns = _columns(sheet.columns, layout)
    lacking = [f"no column {shown(name)}" for name in layout.columns.values() if name not in sheet.columns]
    labels = _label_columns(sheet, columns, layout)
    lacking += _lacking(columns, layout, labeled=bool(labels))
    needed: dict[str, str] = {}
    for field, names in FIELDS.items():
        if field not in layout.columns:
            needed.update(dict.fromkeys(names, field))
    if shared := sheet.shared_names(needed | {name: field for field, name in layout.columns.items()}):
        problems += shared
        return
    if lacking:
        header = ", ".join(map(shown, sheet.columns[:20]))
        where = "" if sheet.unit == "row" else "line 1"
        problems += (sheet.problem("missing_column", where, f"{message}; found {header}") for message in lacking)
        return
    fields = {field: name for field, name in columns.items() if field in FIELDS and field not in ("label", "seconds")}
    seconds = columns.get("seconds")
    problems += sheet.problems_of(list(dict.fromkeys((*columns.values(), *(column for column, _ in labels)))))
    for column, says in labels:
        about = {field: text_of(name) for field, name in fields.items()}
        about |= {field: pl.lit(value) for field, value in says._asdict().items() if value is not None}
        about.setdefault("criterion", pl.lit(layout.only))
        if COMMENT in sheet.columns and says.worker is None:
            about["comment"] = text_of(COMMENT)
        told = column if len(labels) > 1 or says.criterion else None
        frame = sheet.rows(told, seconds, label=text_of(column), **about)
        used = {*fields.values(), column, seconds}
        wrong: list[int] = []
        for name, rows in sheet.problems.items():
            if name in used:
                wrong += rows
        frame = frame.clear() if 0 in wrong else frame.filter(~pl.col("number").is_in(wrong))
        # In a table with a column for each worker, an empty cell is an item that the worker was not given.
        yield frame if says.worker is None else frame.filter(pl.col("label") != "")


def _label_columns(sheet: LabelSheet, columns: Mapping[str, str], layout: Layout) -> list[tuple[str, LabelColumn]]:
    """The columns of labels, with what their names say."""
    labels: list[tuple[str, LabelColumn]] = []
    if layout.workers:
        for name in sheet.columns:
            if any(name == pattern or fnmatchcase(name, pattern) for pattern in layout.workers):
                labels.append((name, LabelColumn(worker=name)))
        return labels
    for field, name in columns.items():
        if field == "label":
            labels.append((name, LabelColumn()))
        elif field.startswith(LABEL_OF):
            labels.append((name, LabelColumn(criterion=field.removeprefix(LABEL_OF))))
    return labels


def _columns(names: Sequence[str], layout: Layout) -> dict[str, str]:
    """Field to column: as given, else by the names in the header."""
    columns: dict[str, str] = {}
    for field, aliases in FIELDS.items():
        present = [alias for alias in aliases if alias in names]
        if present:
            columns[field] = present[0]
    named = dict(layout.columns)
    if layout.workers:
        columns = {field: name for field, name in columns.items() if field not in ("worker", "label")}
    items = {"turn_id", "response_id"}
    if "task" not in named and (items & named.keys() or items <= columns.keys()):
        columns.pop("task", None)
    elif "task" in columns | named:
        columns = {field: name for field, name in columns.items() if field not in items}
    if any(field.startswith(LABEL_OF) for field in named):
        columns = {field: name for field, name in columns.items() if field not in ("label", "criterion")}
    elif "label" not in columns | named:
        if label_columns := {LABEL_OF + name: name for name in layout.known or () if name in names}:
            columns.pop("criterion", None)
        columns |= label_columns
    return columns | named


def _lacking(columns: Mapping[str, str], layout: Layout, *, labeled: bool) -> list[str]:
    lacking = [] if "worker" in columns or layout.workers else [_NO_WORKER]
    item = "response_id" in columns and ("turn_id" in columns or layout.turns is not None)
    if not item and "task" not in columns:
        lacking.append(_NO_TURN if "response_id" in columns else _NO_ITEM)
    if not labeled:
        sought = " ".join(map(shlex.quote, layout.workers))
        lacking.append(f"no column fits --workers {sought}" if sought else "no column of labels (--column label=NAME)")
    by_criterion = any(field.startswith(LABEL_OF) for field in columns)
    if not by_criterion and "criterion" not in columns and layout.only is None:
        lacking.append("no column of criteria, and no one criterion is given (--criterion, --column criterion=NAME)")
    return lacking


KINDS: dict[str, LabelTable] = {
    LONG: LabelTable(wrote=lambda sheet: False, rows=_long_rows),
    "mturk": LabelTable(
        wrote=lambda sheet: MTURK.wrote(sheet.columns),
        rows=partial(platform_rows, platform=MTURK),
    ),
    "label-studio": LabelTable(
        wrote=lambda sheet: LABEL_STUDIO.wrote(sheet.columns),
        rows=partial(platform_rows, platform=LABEL_STUDIO),
    ),
    SURVEYS: LabelTable(wrote=is_survey, rows=survey_rows),
    # They say whose labels count, and have none themselves.
    SUBMISSIONS: LabelTable(
        wrote=lambda sheet: are_submissions(sheet.columns), rows=lambda sheet, layout, problems: ()
    ),
}
"""Name to layout, in the order of asking; what none of them wrote is long. A new row is a new choice of `--table`."""
