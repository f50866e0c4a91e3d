"""Reads tables of workers' labels, long or wide, checks them, and makes arrays; every problem has its row.

Tables may have millions of rows. So each distinct id and label is checked once, and rows only where one is wrong.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels, Item, factorize
from judge.crowd.layout import (
    EXAMPLES,
    FIELDS,
    LABEL_OF,
    LAST_COUNTS,
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
from judge.crowd.sheets import LabelSheet, frame_sheet, read_sheet, text_of, without
from judge.errors import InputError, UsageError
from judge.gold import CANNOT, folded, is_missing, means_unable, whole
from judge.gold.draft import OF_PAIR
from judge.io.ids import ALIKE, names_alike, natural_key
from judge.io.text import MAX_ID, SHOWN, count, examples, shown, tally
from judge.records import Problem, Severity

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
    paths: Sequence[Any], layout: Layout, problems: LabelProblems, *, one_order: bool = False
) -> tuple["pl.DataFrame | None", list[LabelSheet]]:
    """Every label of all tables as a row, unchecked: IDS, label, seconds, its place (number, annotation, column), file.

    The rows are None without a readable table; beside them stands, by the number in the column `file`, what each table
    was. `one_order`: whether a pair that was shown in both orders gets one id; the labels whose grade is to be turned
    around are `turned` then. A UsageError if the options contradict each other or are invalid.
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
                frames.append(rows.select(*IDS, "label", "seconds", *places, second_id=second, file=file))
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
        known, known_otherwise = (Item(turn_id, order) in layout.repeatable for order in (name, other))
        later = (turn_id, other) in seen and natural_key(other) < natural_key(name)
        if not known and (known_otherwise or later):
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
    first = {name: field for field, names in FIELDS.items() for name in names}
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
    needed = {name: field for field, names in FIELDS.items() if field not in layout.columns for name in names}
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
    if layout.workers:
        return [
            (name, LabelColumn(worker=name))
            for name in sheet.columns
            if any(name == pattern or fnmatchcase(name, pattern) for pattern in layout.workers)
        ]
    labels: list[tuple[str, LabelColumn]] = []
    for field, name in columns.items():
        if field == "label":
            labels.append((name, LabelColumn()))
        elif field.startswith(LABEL_OF):
            labels.append((name, LabelColumn(criterion=field.removeprefix(LABEL_OF))))
    return labels


def _columns(names: Sequence[str], layout: Layout) -> dict[str, str]:
    """Field to column: as given, else by the names in the header."""
    known = {field: name for field, aliases in FIELDS.items() for name in reversed(aliases) if name in names}
    given = dict(layout.columns)
    if layout.workers:
        known = {field: name for field, name in known.items() if field not in ("worker", "label")}
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


_UNABLE = "unable_to_judge"
_LEFT_OUT = {"not_labeled": "label is empty", _UNABLE: CANNOT.lower()}
"""Code to why a row has no vote."""
IDS = ("worker", "turn_id", "response_id", "criterion")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
MAX_CRITERIA = 500
"""Each has files, models and lines of its own; published studies ask about 1 to 14."""
_WORDS = 12
"""Texts that stand for grades that a warning names."""
_EXAMPLES = 3
"""Wrong labels that a likely cause names."""


class Rows:
    """All rows of all files; their problems are added to `problems`."""

    def __init__(self, frame: "pl.DataFrame", sheets: Sequence[LabelSheet], problems: LabelProblems) -> None:
        self.sheets = sheets
        self.problems = problems
        self.names: dict[str, list[str]] = {}
        self.codes: dict[str, NDArray[np.int32]] = {}
        for name in (*IDS, "label"):
            self.names[name], self.codes[name] = factorize(frame[name])
        self.turned = frame["turned"].to_numpy()
        """Whether the label is of a pair in the other order than that of its id."""
        self.seconds = frame["seconds"]
        self.file = frame["file"].to_numpy()
        self.places = frame.select("file", "number", "column", "annotation")
        self.sound = np.ones(frame.height, dtype=np.bool_)
        self.code = np.full(frame.height, -1, dtype=np.int8)
        """The index of each label in its scale."""

    def labels(self, layout: Layout) -> dict[str, CrowdLabels]:
        """The labels of rows without an error, by criterion."""
        for field in IDS:
            self._check_ids(field)
        self._tell_alike()
        wanted = self._check_criteria(layout)
        named = zip(self.names["criterion"], wanted, strict=True)
        if len(names := [name for name, want in named if want and layout.grades(name)]) > MAX_CRITERIA:
            found = f"{self.sheets[0].file}: {len(names):,} criteria ({', '.join(map(shown, names[:3]))}, …)"
            raise InputError(f"{found}, expected at most {MAX_CRITERIA}; --column criterion=NAME takes another column")
        self._check_labels(layout, wanted)
        seconds = self._check_seconds()
        keep = self.sound & wanted[self.codes["criterion"]]
        result = {}
        for place, criterion in enumerate(self.names["criterion"]):
            rows = np.flatnonzero(keep & (self.codes["criterion"] == place))
            if len(rows) and (grades := layout.grades(criterion)) is not None:
                rows = self._once(rows, criterion, grades, layout.repeatable)
                result[criterion] = self._labels(rows, criterion, grades, seconds)
        return result

    def _check_ids(self, field: str) -> None:
        problems: dict[int, tuple[str, str]] = {}
        for code, name in enumerate(self.names[field]):
            if not name:
                problems[code] = "empty_cell", f"{field} is empty"
            elif len(name) > MAX_ID:
                problems[code] = "wrong_id", f"{field} {shown(name)}: longer than {MAX_ID} characters"
            elif not name.isprintable():
                problems[code] = "wrong_id", f"{field} {shown(name)}: holds a character that is not printable"
        self._report(self.codes[field], problems)

    def _tell_alike(self) -> None:
        """Say which workers may be one, because only their way of writing differs."""
        names = self.names["worker"]
        for alike in names_alike(names):
            first = int(np.flatnonzero(self.codes["worker"] == names.index(alike[0]))[0])
            file, where = self._place(first)
            message = f"{ALIKE}: {examples(map(shown, alike))}; each counts as a worker of its own; this is the first"
            self.problems.append(
                Problem(code="workers_alike", severity="warning", file=file, turn_id=None, path=where, message=message)
            )

    def _check_criteria(self, layout: Layout) -> NDArray[np.bool_]:
        """A mask of the wanted criteria; a wanted criterion without a scale is a problem."""
        names = self.names["criterion"]
        read = layout.known if layout.criteria else None
        wanted = np.array([read is None or name in read for name in names], dtype=np.bool_)
        expected = ", ".join(layout.scales) if isinstance(layout.scales, Mapping) else ""
        self._report(
            self.codes["criterion"],
            {
                code: ("unknown_criterion", f"criterion {shown(name)}: expected one of {expected}")
                for code, name in enumerate(names)
                if name and wanted[code] and layout.grades(name) is None
            },
        )
        return wanted

    def _check_labels(self, layout: Layout, wanted: NDArray[np.bool_]) -> None:
        names = self.names["label"]
        texts = [None if _INTEGER.fullmatch(name) else folded(name) for name in names]
        for place, criterion in enumerate(self.names["criterion"]):
            grades = layout.grades(criterion)
            if grades is None or not wanted[place]:
                continue
            of_grade = {grade: code for code, grade in enumerate(grades)}
            words = layout.words(criterion, grades) if any(texts) else {}
            given = zip(names, texts, strict=True)
            values = [int(name) if text is None else words.get(text, whole(text)) for name, text in given]
            unable = [text is not None and means_unable(text) for text in texts]
            of_label = np.array([-1 if v is None else of_grade.get(v, -1) for v in values], dtype=np.int8)
            missing = [
                bool(name) and is_missing(name, on_scale=code >= 0, stated=layout.missing)
                for name, code in zip(names, of_label.tolist(), strict=True)
            ]
            of_label[missing] = -1
            rows = self.codes["criterion"] == place
            self.code[rows] = of_label[self.codes["label"][rows]]
            self._turn_around(criterion, grades, rows)
            scale = f"{criterion}: expected one of {', '.join(map(str, grades))}"
            wrong = [code for code in range(len(names)) if of_label[code] < 0]
            self._leave_out("not_labeled", [code for code in wrong if not names[code]], rows)
            self._leave_out(_UNABLE, [code for code in wrong if unable[code] and not missing[code]], rows)
            self._leave_out_missing(criterion, [code for code in wrong if missing[code]], rows)
            problems = {
                code: ("wrong_label", f"label {shown(names[code])} of {scale}")
                for code in wrong
                if names[code] and not unable[code] and not missing[code]
            }
            self._report(self.codes["label"], problems, rows)
            self._tell_words(criterion, rows, texts, values)
            self._explain(criterion, layout, rows, list(problems))

    def _turn_around(self, criterion: str, grades: Sequence[int], among: NDArray[np.bool_]) -> None:
        """Turn the grades of pairs in the other order around, and say so."""
        rows = np.flatnonzero(among & self.turned & (self.code >= 0))
        if not len(rows):
            return
        ends = grades[0] + grades[-1]
        if any(ends - grade not in grades for grade in grades):
            scale = ", ".join(map(str, grades))
            message = f"a pair in the other order than before: {scale} of {criterion} cannot be turned around"
            for row in rows.tolist():
                self._add(row, "wrong_label", message)
            return
        self.code[rows] = len(grades) - 1 - self.code[rows]
        file, where = self._place(int(rows[0]))
        message = (
            f"{criterion}, {count(len(rows), 'label')} of pairs that were shown in both orders turned around: a grade "
            f"g counts as {ends} - g, and both orders are one item; this is the first"
        )
        self.problems.append(
            Problem(code="pair_turned", severity="warning", file=file, turn_id=None, path=where, message=message)
        )

    def _leave_out(self, code: str, labels: Sequence[int], among: NDArray[np.bool_]) -> None:
        out = among & np.isin(self.codes["label"], labels)
        for file in np.unique(self.file[out]).tolist():
            rows = np.flatnonzero(out & (self.file == file))
            name, where = self._place(int(rows[0]))
            message = f"{count(len(rows), 'row')} left out, {_LEFT_OUT[code]}; this is the first"
            self.problems.append(
                Problem(code=code, severity="warning", file=name, turn_id=None, path=where, message=message)
            )
        self.sound &= ~out

    def _leave_out_missing(self, criterion: str, labels: Sequence[int], among: NDArray[np.bool_]) -> None:
        """Leave out the rows whose values stand for no label, and say which values those are."""
        out = among & np.isin(self.codes["label"], labels)
        for file in np.unique(self.file[out]).tolist():
            rows = np.flatnonzero(out & (self.file == file))
            values = Counter(self.names["label"][code] for code in self.codes["label"][rows].tolist())
            name, where = self._place(int(rows[0]))
            left_out = f"{criterion}, {count(len(rows), 'row')} left out, no label"
            message = f"{left_out}: {tally(values)}; this is the first"
            self.problems.append(
                Problem(code="not_labeled", severity="warning", file=name, turn_id=None, path=where, message=message)
            )
        self.sound &= ~out

    def _tell_words(
        self, criterion: str, rows: NDArray[np.bool_], texts: Sequence[str | None], values: Sequence[int | None]
    ) -> None:
        """Say which texts were read as which grades."""
        read = enumerate(zip(texts, values, strict=True))
        meant = [code for code, (text, value) in read if text and value is not None]
        of_words = rows & self.sound & np.isin(self.codes["label"], meant)
        if not of_words.any():
            return
        first = int(np.flatnonzero(of_words)[0])
        used = np.unique(self.codes["label"][of_words]).tolist()
        meanings = ", ".join(f"{shown(self.names['label'][code])} = {values[code]}" for code in used[:_WORDS])
        more = f" and {len(used) - _WORDS:,} other texts" if len(used) > _WORDS else ""
        file, where = self._place(first)
        times = count(int(of_words.sum()), "time")
        message = f"{criterion}, {times} a text for a grade: {meanings}{more}; this is the first"
        self.problems.append(
            Problem(code="label_in_words", severity="warning", file=file, turn_id=None, path=where, message=message)
        )

    def _explain(self, criterion: str, layout: Layout, rows: NDArray[np.bool_], wrong: Sequence[int]) -> None:
        """Say what may have gone wrong where the labels of a criterion are none of its scale."""
        grades = layout.grades(criterion) or ()
        names = self.names["label"]
        times = np.bincount(self.codes["label"][rows], minlength=len(names))
        often = sorted((code for code in wrong if times[code]), key=lambda code: -times[code])
        if not often:
            return
        often_given = tally({names[code]: int(times[code]) for code in often}, _EXAMPLES)
        none = f"--missing {shlex.quote(names[often[0]][:SHOWN])}"
        texts = [code for code in often if not _INTEGER.fullmatch(names[code])]
        if texts:
            option = shlex.quote(f"{names[texts[0]][:SHOWN]}=GRADE")
            name = "column of labels, --column label=NAME" if layout.wanted else "criteria to read, --criterion NAME"
            said = f"labels of {criterion} are texts: {often_given}"
            cause = (
                f"{said}; say the grade of each, --label {option}, or that it is no label, {none}, or name the {name}"
            )
        else:
            said = f"labels of {criterion} are off its scale {min(grades)}-{max(grades)}: {often_given}"
            cause = f"{said}; check --scale, or say that a value is no label, {none}"
        self.problems.causes.append(cause)

    def _check_seconds(self) -> NDArray[np.float32] | None:
        import polars as pl

        if self.seconds.null_count() == len(self.seconds):
            return None
        texts = self.seconds.fill_null("")
        values = texts.cast(pl.Float32, strict=False).fill_null(np.nan).to_numpy()
        for row in np.flatnonzero((~np.isfinite(values) & (texts != "").to_numpy()) | (values < 0)):
            self._add(int(row), "wrong_seconds", f"seconds {shown(texts[int(row)])}: expected a number of zero or more")
        return values

    def _once(
        self, rows: NDArray[np.intp], criterion: str, grades: Sequence[int], repeatable: Collection[Item]
    ) -> NDArray[np.intp]:
        """The rows without those in which a worker labels an item again; those of repeatable items stay."""
        import polars as pl

        turns, ids = ({name: code for code, name in enumerate(self.names[of])} for of in ("turn_id", "response_id"))
        known = [turns[turn] * len(ids) + ids[item] for turn, item in repeatable if turn in turns and item in ids]
        items = self._item(rows)
        who = {"row": rows, "item": items, "worker": self.codes["worker"][rows], "exempt": np.isin(items, known)}
        first = pl.col("row").first().over("item", "worker")
        again = (
            pl.DataFrame(who).with_columns(first=first).filter((pl.col("row") != pl.col("first")) & ~pl.col("exempt"))
        )
        for row, earlier in again.select("row", "first").iter_rows():
            worker, item = (shown(self.names[field][self.codes[field][row]]) for field in ("worker", "response_id"))
            code, before = self.code[row], self.code[earlier]
            between = self._between(row, earlier, grades)
            repetition = f"worker {worker} labels {item} under {criterion} again: {grades[code]}"
            file, where = self._place(earlier)
            if code == before:
                self._add(row, "duplicate_row", f"{repetition} as at {where} of {file}; counted once", "warning")
            elif between is not None:
                # Whoever takes a side in one order and the other side in the other prefers none.
                self.code[earlier] = between
                said = f"in the other order than at {where} of {file}, where it is {grades[before]}"
                message = f"{repetition} {said}; counted once, as {grades[between]}"
                self._add(row, "duplicate_row", message, "warning")
            else:
                differs = f"{repetition}, but {grades[before]} at {where} of {file}; {LAST_COUNTS}"
                self._add(row, "different_labels", differs)
        return np.setdiff1d(rows, again["row"].to_numpy(), assume_unique=True)

    def _between(self, row: int, earlier: int, grades: Sequence[int]) -> int | None:
        """The code between two labels of a pair in both orders, halves towards the middle; None of labels of one order.

        On a scale without a grade in the middle, labels as far from it on both sides have none either.
        """
        places = int(self.code[row]) + int(self.code[earlier])
        if self.turned[row] == self.turned[earlier] or (places == len(grades) - 1 and places % 2):
            return None
        return places // 2 + (places % 2 if places < len(grades) - 1 else 0)

    def _item(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """A number for each row's turn and item, in natural order of both."""
        turns = self.codes["turn_id"][rows].astype(np.int64)
        return turns * len(self.names["response_id"]) + self.codes["response_id"][rows]

    def _labels(
        self, rows: NDArray[np.intp], criterion: str, grades: tuple[int, ...], seconds: NDArray[np.float32] | None
    ) -> CrowdLabels:
        workers, worker = np.unique(self.codes["worker"][rows], return_inverse=True)
        numbers = self._item(rows)
        items, item = np.unique(numbers, return_inverse=True)
        if all(sheet.ordered for sheet in self.sheets):
            order = np.argsort(np.unique(numbers, return_index=True)[1])
            items = items[order]
            item = np.argsort(order)[item]
        n = len(self.names["response_id"])
        turn_ids, item_ids = (np.array(self.names[field], dtype=object) for field in ("turn_id", "response_id"))
        labeled = tuple(map(Item, turn_ids[items // n].tolist(), item_ids[items % n].tolist()))
        names = tuple(self.names["worker"][code] for code in workers)
        return CrowdLabels(
            criterion=criterion,
            grades=grades,
            workers=names,
            items=labeled,
            worker=worker.astype(np.int32),
            item=item.astype(np.int32),
            code=self.code[rows],
            seconds=None if seconds is None else seconds[rows],
        )

    def _report(
        self, codes: NDArray[np.int32], problems: Mapping[int, tuple[str, str]], among: NDArray[np.bool_] | None = None
    ) -> None:
        """Add a problem for each row with such a value."""
        if problems:
            wrong = np.isin(codes, list(problems))
            for row in np.flatnonzero(wrong if among is None else wrong & among).tolist():
                self._add(row, *problems[int(codes[row])])

    def _add(self, row: int, code: str, message: str, severity: Severity = "error") -> None:
        self.sound[row] &= severity != "error"
        file, where = self._place(row)
        turn_id = self.names["turn_id"][self.codes["turn_id"][row]]
        usable = turn_id and turn_id.isprintable() and len(turn_id) <= MAX_ID
        self.problems.append(
            Problem(
                code=code,
                severity=severity,
                file=file,
                turn_id=turn_id if usable else None,
                path=where,
                message=message,
            )
        )

    def _place(self, row: int) -> tuple[str, str]:
        file, *place = self.places.row(row)
        return self.sheets[file].file, self.sheets[file].place(*place)


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
