"""Checks the labels of all tables, a row each, and makes arrays of those without an error.

Tables may have millions of rows. So each distinct id and label is checked once, and rows only where one is wrong.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels, Item, factorize
from judge.crowd.layout import LAST_COUNTS, LabelProblems, Layout
from judge.crowd.sheets import LabelSheet
from judge.errors import InputError
from judge.gold import CANNOT, folded, is_missing, means_unable, whole
from judge.io.ids import ALIKE, names_alike
from judge.io.text import MAX_ID, SHOWN, count, examples, shown, tally
from judge.records import Severity, file_problem

if TYPE_CHECKING:
    import polars as pl


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

    def item(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """A number for each row's turn and item, in natural order of both."""
        turns = self.codes["turn_id"][rows].astype(np.int64)
        return turns * len(self.names["response_id"]) + self.codes["response_id"][rows]

    def report(
        self, codes: NDArray[np.int32], problems: Mapping[int, tuple[str, str]], among: NDArray[np.bool_] | None = None
    ) -> None:
        """Add a problem for each row with such a value."""
        if problems:
            wrong = np.isin(codes, list(problems))
            for row in np.flatnonzero(wrong if among is None else wrong & among).tolist():
                self.add(row, *problems[int(codes[row])])

    def add(self, row: int, code: str, message: str, severity: Severity = "error") -> None:
        """Add a problem of a row; one with an error has no vote."""
        self.sound[row] &= severity != "error"
        file, where = self.place(row)
        turn_id = self.names["turn_id"][self.codes["turn_id"][row]]
        usable = turn_id and turn_id.isprintable() and len(turn_id) <= MAX_ID
        self.problems.append(
            file_problem(code, file, message, where, turn_id=turn_id if usable else None, severity=severity)
        )

    def warn(self, rows: NDArray[np.intp], code: str, message: str) -> None:
        """Add a warning about rows, at the place of the first."""
        file, where = self.place(int(rows[0]))
        self.problems.append(file_problem(code, file, message, where, severity="warning"))

    def place(self, row: int) -> tuple[str, str]:
        """The file of a row, and where in it the row is."""
        file, *place = self.places.row(row)
        return self.sheets[file].file, self.sheets[file].place(*place)


def checked_labels(table: Rows, layout: Layout) -> dict[str, CrowdLabels]:
    """The labels of rows without an error, by criterion."""
    for field in IDS:
        _check_ids(table, field)
    _tell_alike(table)
    wanted = _check_criteria(table, layout)
    named = zip(table.names["criterion"], wanted, strict=True)
    if len(names := [name for name, want in named if want and layout.grades(name)]) > MAX_CRITERIA:
        several = f"{table.sheets[0].file}: {len(names):,} criteria ({', '.join(map(shown, names[:3]))}, …)"
        raise InputError(f"{several}, expected at most {MAX_CRITERIA}; --column criterion=NAME takes another column")
    _check_labels(table, layout, wanted)
    seconds = _check_seconds(table)
    keep = table.sound & wanted[table.codes["criterion"]]
    result = {}
    for place, criterion in enumerate(table.names["criterion"]):
        rows = np.flatnonzero(keep & (table.codes["criterion"] == place))
        if len(rows) and (grades := layout.grades(criterion)) is not None:
            rows = _once(table, rows, criterion, grades, layout.repeatable)
            result[criterion] = _labels(table, rows, criterion, grades, seconds)
    return result


def _check_ids(table: Rows, field: str) -> None:
    problems: dict[int, tuple[str, str]] = {}
    for code, name in enumerate(table.names[field]):
        if not name:
            problems[code] = "empty_cell", f"{field} is empty"
        elif len(name) > MAX_ID:
            problems[code] = "wrong_id", f"{field} {shown(name)}: longer than {MAX_ID} characters"
        elif not name.isprintable():
            problems[code] = "wrong_id", f"{field} {shown(name)}: holds a character that is not printable"
    table.report(table.codes[field], problems)


def _tell_alike(table: Rows) -> None:
    """Say which workers may be one, because only their way of writing differs."""
    names = table.names["worker"]
    for alike in names_alike(names):
        message = f"{ALIKE}: {examples(map(shown, alike))}; each counts as a worker of its own; this is the first"
        rows = np.flatnonzero(table.codes["worker"] == names.index(alike[0]))
        table.warn(rows, "workers_alike", message)


def _check_criteria(table: Rows, layout: Layout) -> NDArray[np.bool_]:
    """A mask of the wanted criteria; a wanted criterion without a scale is a problem."""
    names = table.names["criterion"]
    read = layout.known if layout.criteria else None
    wanted = np.array([read is None or name in read for name in names], dtype=np.bool_)
    expected = ", ".join(layout.scales) if isinstance(layout.scales, Mapping) else ""
    table.report(
        table.codes["criterion"],
        {
            code: ("unknown_criterion", f"criterion {shown(name)}: expected one of {expected}")
            for code, name in enumerate(names)
            if name and wanted[code] and layout.grades(name) is None
        },
    )
    return wanted


def _check_labels(table: Rows, layout: Layout, wanted: NDArray[np.bool_]) -> None:
    names = table.names["label"]
    texts = [None if _INTEGER.fullmatch(name) else folded(name) for name in names]
    for place, criterion in enumerate(table.names["criterion"]):
        grades = layout.grades(criterion)
        if grades is None or not wanted[place]:
            continue
        of_grade = {grade: code for code, grade in enumerate(grades)}
        words = layout.words(criterion, grades) if any(texts) else {}
        values = [
            int(name) if text is None else words.get(text, whole(text)) for name, text in zip(names, texts, strict=True)
        ]
        unable = [text is not None and means_unable(text) for text in texts]
        of_label = np.array([-1 if v is None else of_grade.get(v, -1) for v in values], dtype=np.int8)
        missing = [
            bool(name) and is_missing(name, on_scale=code >= 0, stated=layout.missing)
            for name, code in zip(names, of_label.tolist(), strict=True)
        ]
        of_label[missing] = -1
        rows = table.codes["criterion"] == place
        table.code[rows] = of_label[table.codes["label"][rows]]
        _turn_around(table, criterion, grades, rows)
        scale = f"{criterion}: expected one of {', '.join(map(str, grades))}"
        wrong = [code for code in range(len(names)) if of_label[code] < 0]
        _leave_out(table, "not_labeled", [code for code in wrong if not names[code]], rows)
        _leave_out(table, _UNABLE, [code for code in wrong if unable[code] and not missing[code]], rows)
        _leave_out_missing(table, criterion, [code for code in wrong if missing[code]], rows)
        problems = {
            code: ("wrong_label", f"label {shown(names[code])} of {scale}")
            for code in wrong
            if names[code] and not unable[code] and not missing[code]
        }
        table.report(table.codes["label"], problems, rows)
        _tell_words(table, criterion, rows, texts, values)
        _explain(table, criterion, layout, rows, list(problems))


def _turn_around(table: Rows, criterion: str, grades: Sequence[int], among: NDArray[np.bool_]) -> None:
    """Turn the grades of pairs in the other order around, and say so."""
    rows = np.flatnonzero(among & table.turned & (table.code >= 0))
    if not len(rows):
        return
    ends = grades[0] + grades[-1]
    if any(ends - grade not in grades for grade in grades):
        scale = ", ".join(map(str, grades))
        message = f"a pair in the other order than before: {scale} of {criterion} cannot be turned around"
        for row in rows.tolist():
            table.add(row, "wrong_label", message)
        return
    table.code[rows] = len(grades) - 1 - table.code[rows]
    message = (
        f"{criterion}, {count(len(rows), 'label')} of pairs that were shown in both orders turned around: a grade "
        f"g counts as {ends} - g, and both orders are one item; this is the first"
    )
    table.warn(rows, "pair_turned", message)


def _leave_out(table: Rows, code: str, labels: Sequence[int], among: NDArray[np.bool_]) -> None:
    out = among & np.isin(table.codes["label"], labels)
    for file in np.unique(table.file[out]).tolist():
        rows = np.flatnonzero(out & (table.file == file))
        message = f"{count(len(rows), 'row')} left out, {_LEFT_OUT[code]}; this is the first"
        table.warn(rows, code, message)
    table.sound &= ~out


def _leave_out_missing(table: Rows, criterion: str, labels: Sequence[int], among: NDArray[np.bool_]) -> None:
    """Leave out the rows whose values stand for no label, and say which values those are."""
    out = among & np.isin(table.codes["label"], labels)
    for file in np.unique(table.file[out]).tolist():
        rows = np.flatnonzero(out & (table.file == file))
        values = Counter(table.names["label"][code] for code in table.codes["label"][rows].tolist())
        left_out = f"{criterion}, {count(len(rows), 'row')} left out, no label"
        message = f"{left_out}: {tally(values)}; this is the first"
        table.warn(rows, "not_labeled", message)
    table.sound &= ~out


def _tell_words(
    table: Rows, criterion: str, rows: NDArray[np.bool_], texts: Sequence[str | None], values: Sequence[int | None]
) -> None:
    """Say which texts were read as which grades."""
    read = enumerate(zip(texts, values, strict=True))
    meant = [code for code, (text, value) in read if text and value is not None]
    of_words = rows & table.sound & np.isin(table.codes["label"], meant)
    if not of_words.any():
        return
    used = np.unique(table.codes["label"][of_words]).tolist()
    meanings = ", ".join(f"{shown(table.names['label'][code])} = {values[code]}" for code in used[:_WORDS])
    more = f" and {len(used) - _WORDS:,} other texts" if len(used) > _WORDS else ""
    times = count(int(of_words.sum()), "time")
    message = f"{criterion}, {times} a text for a grade: {meanings}{more}; this is the first"
    table.warn(np.flatnonzero(of_words), "label_in_words", message)


def _explain(table: Rows, criterion: str, layout: Layout, rows: NDArray[np.bool_], wrong: Sequence[int]) -> None:
    """Say what may have gone wrong where the labels of a criterion are none of its scale."""
    grades = layout.grades(criterion) or ()
    names = table.names["label"]
    times = np.bincount(table.codes["label"][rows], minlength=len(names))
    often = sorted((code for code in wrong if times[code]), key=lambda code: -times[code])
    if not often:
        return
    often_given = tally({names[code]: int(times[code]) for code in often}, _EXAMPLES)
    none = f"--missing {shlex.quote(names[often[0]][:SHOWN])}"
    texts = [code for code in often if not _INTEGER.fullmatch(names[code])]
    if texts:
        option = shlex.quote(f"{names[texts[0]][:SHOWN]}=GRADE")
        name = "column of labels, --column label=NAME" if layout.wanted else "criteria to read, --criterion NAME"
        cause = (
            f"labels of {criterion} are texts: {often_given}; say the grade of each, --label {option}, or that it is "
            f"no label, {none}, or name the {name}"
        )
    else:
        cause = (
            f"labels of {criterion} are off its scale {min(grades)}-{max(grades)}: {often_given}; check --scale, or "
            f"say that a value is no label, {none}"
        )
    table.problems.causes.append(cause)


def _check_seconds(table: Rows) -> NDArray[np.float32] | None:
    import polars as pl

    if table.seconds.null_count() == len(table.seconds):
        return None
    texts = table.seconds.fill_null("")
    values = texts.cast(pl.Float32, strict=False).fill_null(np.nan).to_numpy()
    for row in np.flatnonzero((~np.isfinite(values) & (texts != "").to_numpy()) | (values < 0)):
        table.add(int(row), "wrong_seconds", f"seconds {shown(texts[int(row)])}: expected a number of zero or more")
    return values


def _once(
    table: Rows, rows: NDArray[np.intp], criterion: str, grades: Sequence[int], repeatable: Collection[Item]
) -> NDArray[np.intp]:
    """The rows without those in which a worker labels an item again; those of repeatable items stay."""
    import polars as pl

    turns = {name: code for code, name in enumerate(table.names["turn_id"])}
    ids = {name: code for code, name in enumerate(table.names["response_id"])}
    exempt = [turns[turn] * len(ids) + ids[item] for turn, item in repeatable if turn in turns and item in ids]
    items = table.item(rows)
    who = {"row": rows, "item": items, "worker": table.codes["worker"][rows], "exempt": np.isin(items, exempt)}
    first = pl.col("row").first().over("item", "worker")
    again = pl.DataFrame(who).with_columns(first=first).filter((pl.col("row") != pl.col("first")) & ~pl.col("exempt"))
    for row, earlier in again.select("row", "first").iter_rows():
        worker, item = (shown(table.names[field][table.codes[field][row]]) for field in ("worker", "response_id"))
        code = table.code[row]
        before = table.code[earlier]
        between = _between(table, row, earlier, grades)
        repetition = f"worker {worker} labels {item} under {criterion} again: {grades[code]}"
        file, where = table.place(earlier)
        if code == before:
            table.add(row, "duplicate_row", f"{repetition} as at {where} of {file}; counted once", "warning")
        elif between is not None:
            # Whoever takes a side in one order and the other side in the other prefers none.
            table.code[earlier] = between
            otherwise = f"in the other order than at {where} of {file}, where it is {grades[before]}"
            message = f"{repetition} {otherwise}; counted once, as {grades[between]}"
            table.add(row, "duplicate_row", message, "warning")
        else:
            differs = f"{repetition}, but {grades[before]} at {where} of {file}; {LAST_COUNTS}"
            table.add(row, "different_labels", differs)
    return np.setdiff1d(rows, again["row"].to_numpy(), assume_unique=True)


def _between(table: Rows, row: int, earlier: int, grades: Sequence[int]) -> int | None:
    """The code between two labels of a pair in both orders, halves towards the middle; None of labels of one order.

    On a scale without a grade in the middle, labels as far from it on both sides have none either.
    """
    places = int(table.code[row]) + int(table.code[earlier])
    if table.turned[row] == table.turned[earlier] or (places == len(grades) - 1 and places % 2):
        return None
    return places // 2 + (places % 2 if places < len(grades) - 1 else 0)


def _labels(
    table: Rows, rows: NDArray[np.intp], criterion: str, grades: tuple[int, ...], seconds: NDArray[np.float32] | None
) -> CrowdLabels:
    workers, worker = np.unique(table.codes["worker"][rows], return_inverse=True)
    numbers = table.item(rows)
    items, item = np.unique(numbers, return_inverse=True)
    if all(sheet.ordered for sheet in table.sheets):
        order = np.argsort(np.unique(numbers, return_index=True)[1])
        items = items[order]
        item = np.argsort(order)[item]
    n = len(table.names["response_id"])
    turn_ids, item_ids = (np.array(table.names[field], dtype=object) for field in ("turn_id", "response_id"))
    labeled = tuple(map(Item, turn_ids[items // n].tolist(), item_ids[items % n].tolist()))
    names = tuple(table.names["worker"][code] for code in workers)
    return CrowdLabels(
        criterion=criterion,
        grades=grades,
        workers=names,
        items=labeled,
        worker=worker.astype(np.int32),
        item=item.astype(np.int32),
        code=table.code[rows],
        seconds=None if seconds is None else seconds[rows],
    )
