"""Wide exports of survey and task platforms, turned into long tables: one row a label, the column it stood in kept.

MTurk writes a row for each assignment, with the items it showed and the answers numbered alike; a survey (Qualtrics,
behind Prolific) writes a row for each participant, with a column for each question.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from judge.crowd.problems import LabelProblems
from judge.crowd.sheets import LabelSheet
from judge.errors import InputError, UsageError
from judge.files.tabular import read_table
from judge.records import Problem
from judge.text.cells import count
from judge.text.safe import shown

if TYPE_CHECKING:
    import polars as pl

SURVEY_WORKERS = ("worker", "worker_id", "PROLIFIC_PID", "Participant id", "participant_id", "WorkerId", "ResponseId")
"""Columns that may name a participant; the first one present is used. Qualtrics' `ResponseId` names the record."""
_INPUT = re.compile(r"Input\.(turn_id|response_id|question_id|item_id)(?:_([0-9]{1,6}))?")
_ANSWER = re.compile(r"Answer\.(.+?)(?:_([0-9]{1,6}))?")
_IMPORT_ID = '{"ImportId"'
_QUALTRICS_STATUS = {
    *("survey preview", "survey test", "spam", "preview spam", "imported spam", "offline spam", "offline preview"),
    # The same where values are exported as numbers.
    *("1", "2", "8", "9", "12", "17", "24"),
}
_UNFINISHED = {"false", "0", "no"}
_PREVIEW = {"preview", "test"}
_ITEM_GROUPS = ("response_id", "question_id", "item_id")


class Question(NamedTuple):
    """What a column of a survey asks about."""

    turn_id: str
    item_id: str
    criterion: str | None
    """None where the pattern does not say."""


Wide = str | Mapping[str, Question]
"""A regular expression over column names with groups turn_id, response_id and criterion, or a question by column."""


def read_questions(path: Path) -> dict[str, Question]:
    """The questions of a survey's columns, from a table `column, turn_id, response_id, criterion`.

    Raises:
        InputError: The file is no such table or names a column twice; every problem is listed.
    """
    problems: list[Problem] = []
    needed = ("column", "turn_id", "response_id", "criterion")
    questions: dict[str, Question] = {}
    for row in read_table(path, problems, needed=needed)[1]:
        column, *fields = (row.cells[name] for name in needed)
        where = f"line {row.line}"
        empty = [name for name in needed if not row.cells[name]]
        if empty:
            problems.append(Problem("empty_cell", "error", str(path), None, where, f"{', '.join(empty)} is empty"))
        elif column in questions:
            message = f"column {shown(column)} is on an earlier line too"
            problems.append(Problem("duplicate_row", "error", str(path), None, where, message))
        else:
            questions[column] = Question(*fields)
    if problems:
        raise InputError(f"{path}: not usable as a map of columns: {count(len(problems), 'problem')}", problems)
    return questions


def is_mturk(names: Collection[str]) -> bool:
    """Whether a table with these columns is MTurk's."""
    return "WorkerId" in names and any(map(_INPUT.fullmatch, names)) and any(map(_ANSWER.fullmatch, names))


def mturk_rows(sheet: LabelSheet, known: Collection[str] | None, problems: LabelProblems) -> Iterator["pl.DataFrame"]:
    """The labels of an MTurk export, a frame for each answer column; all labels of an assignment share its work time.

    Assignments that were rejected are left out, with a warning.

    Args:
        sheet: The export.
        known: The criteria there are; other answers are passed over. None if every answer is a label.
        problems: Takes what is wrong with the columns, and the warning.
    """
    import polars as pl

    sheet = _without(sheet, "AssignmentStatus", {"rejected"}, problems)
    frame = sheet.frame
    inputs = {(m[1] == "turn_id", m[2]): m[0] for m in map(_INPUT.fullmatch, frame.columns) if m}
    answers = [m for m in map(_ANSWER.fullmatch, frame.columns) if m and (known is None or m[1] in known)]
    answers.sort(key=lambda answer: int(answer[2] or 0))
    slots = {answer[2] for answer in answers}
    lacking = [
        f"Input.{'turn_id' if turn else 'response_id'}{f'_{n}' if n else ''}"
        for n in sorted(slots, key=lambda n: int(n or 0))
        for turn in (True, False)
        if (turn, n) not in inputs and (turn, None) not in inputs
    ]
    if lacking or not answers:
        message = f"no column {', '.join(lacking)}" if lacking else "no answer column of a known criterion"
        problems.append(Problem("missing_column", "error", sheet.file, None, "line 1", message))
        return
    items = {n: _text(inputs.get((False, n)) or inputs[False, None]) for n in slots}
    shown_items = pl.sum_horizontal((items[answer[2]] != "").cast(pl.Int32) for answer in answers)
    for answer in answers:
        label, item = _text(answer[0]), items[answer[2]]
        yield (
            _long(sheet, answer[0], seconds="WorkTimeInSeconds", shares=shown_items)
            .with_columns(
                worker=frame["WorkerId"],
                turn_id=frame.select(_text(inputs.get((True, answer[2])) or inputs[True, None])).to_series(),
                item_id=frame.select(item).to_series(),
                criterion=pl.lit(answer[1]),
                label=frame[answer[0]],
            )
            .filter(frame.select((item != "") | (label != "")).to_series())
        )


def survey_rows(
    sheet: LabelSheet, wide: Wide, columns: Mapping[str, str], criterion: str | None, problems: LabelProblems
) -> Iterator["pl.DataFrame"]:
    """The labels of a survey, a frame for each question; an empty cell is a question that was not shown.

    Args:
        sheet: The export; Qualtrics' two rows below the header are passed over, and with a warning its previews,
            spam and unfinished records.
        wide: What the columns ask about.
        columns: `worker` and `seconds`, where they are not named as platforms do. Seconds are shared evenly.
        criterion: The criterion of columns that name none.
        problems: Takes what is wrong with the columns.

    Raises:
        UsageError: The pattern is no regular expression or lacks a group.
    """
    import polars as pl

    questions = _questions(sheet.frame.columns, wide)
    worker = columns.get("worker") or next((name for name in SURVEY_WORKERS if name in sheet.frame.columns), None)
    needed = [name for name in (worker, columns.get("seconds"), *questions) if name]
    lacking = [name for name in needed if name not in sheet.frame.columns]
    messages = [f"no column {', '.join(map(shown, lacking))}"] if lacking else []
    messages += [] if worker else [f"no column that names the participant: expected one of {', '.join(SURVEY_WORKERS)}"]
    messages += [] if questions else ["no column fits --wide"]
    if criterion is None and any(question.criterion is None for question in questions.values()):
        messages.append("the columns do not say the criterion, and no one criterion is given")
    problems += (Problem("missing_column", "error", sheet.file, None, "line 1", message) for message in messages)
    if messages or worker is None:
        return
    sheet = _sound_of_qualtrics(sheet, problems)
    labeled = pl.sum_horizontal((_text(name) != "").cast(pl.Int32) for name in questions)
    for name, question in questions.items():
        yield (
            _long(sheet, name, seconds=columns.get("seconds"), shares=labeled)
            .with_columns(
                worker=sheet.frame[worker],
                turn_id=pl.lit(question.turn_id),
                item_id=pl.lit(question.item_id),
                criterion=pl.lit(question.criterion or criterion),
                label=sheet.frame[name],
            )
            .filter(sheet.frame.select(_text(name) != "").to_series())
        )


def _questions(names: Sequence[str], wide: Wide) -> dict[str, Question]:
    if not isinstance(wide, str):
        return dict(wide)
    try:
        pattern = re.compile(wide)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--wide {shown(wide)} is no regular expression: {error}") from error
    item = next((name for name in _ITEM_GROUPS if name in pattern.groupindex), None)
    if item is None or "turn_id" not in pattern.groupindex:
        raise UsageError(f"--wide {shown(wide)}: expected groups (?P<turn_id>…), (?P<response_id>…), (?P<criterion>…)")
    matches = ((name, pattern.fullmatch(name)) for name in names)
    return {
        name: Question(match["turn_id"] or "", match[item] or "", match.groupdict().get("criterion"))
        for name, match in matches
        if match
    }


def _sound_of_qualtrics(sheet: LabelSheet, problems: LabelProblems) -> LabelSheet:
    """The sheet without what Qualtrics exports beside the participants' finished records.

    Those are the question texts and import ids below the header, and rows that are previews, spam or unfinished.
    """
    below = sheet.frame.height > 1 and any(str(cell).startswith(_IMPORT_ID) for cell in sheet.frame.row(1))
    if below:
        sheet = LabelSheet(sheet.file, sheet.frame[2:], sheet.numbers[2:], sheet.unit, sheet.problems)
    elif "ResponseId" not in sheet.frame.columns:
        return sheet
    for column, values in (
        ("Status", _QUALTRICS_STATUS),
        ("DistributionChannel", _PREVIEW),
        ("Finished", _UNFINISHED),
    ):
        sheet = _without(sheet, column, values, problems)
    return sheet


def _without(sheet: LabelSheet, column: str, values: Collection[str], problems: LabelProblems) -> LabelSheet:
    """The sheet without the rows that have one of the values, in lower case, in a column; with a warning of how many.

    A sheet without the column stays as it is.
    """
    if column not in sheet.frame.columns:
        return sheet
    out = sheet.frame.select(_text(column).str.to_lowercase().is_in(list(values))).to_series()
    if not out.any():
        return sheet
    values_found = ", ".join(map(shown, sheet.frame.filter(out)[column].cast(str).unique().sort()))
    numbers = sheet.numbers[out.to_numpy()]
    rows = "1 row" if len(numbers) == 1 else f"{len(numbers):,} rows"
    message = f"{rows} left out, {column} {values_found}; this is the first"
    problems.append(Problem("row_left_out", "warning", sheet.file, None, f"{sheet.unit} {numbers[0]}", message))
    kept = ~out
    return LabelSheet(sheet.file, sheet.frame.filter(kept), sheet.numbers[kept.to_numpy()], sheet.unit, sheet.problems)


def _text(column: str) -> "pl.Expr":
    """A column's cells without outer white space, empty where there is none."""
    import polars as pl

    return pl.col(column).cast(pl.String).fill_null("").str.strip_chars()


def _long(sheet: LabelSheet, column: str, *, seconds: str | None, shares: "pl.Expr") -> "pl.DataFrame":
    """Where each cell of a column stands, and the row's seconds over how many labeled items share them."""
    import polars as pl

    if seconds is None or seconds not in sheet.frame.columns:
        share = pl.lit(None, dtype=pl.String)
    else:
        time = _text(seconds)
        even = (time.cast(pl.Float64, strict=False) / shares).cast(pl.String)
        # A cell that is no number stays text, so that the check of rows reports it.
        share = pl.coalesce(even, pl.when(time != "").then(time))
    return sheet.frame.select(pl.Series("number", sheet.numbers), seconds=share, column=pl.lit(column))
