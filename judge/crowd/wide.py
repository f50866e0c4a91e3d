"""Surveys (Qualtrics, behind Prolific) turned into long tables: one row a label, the column it stood in kept.

A survey has a row for each participant and a column for each question.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from judge.crowd.layout import SURVEY, LabelProblems, Layout, Question, Wide
from judge.crowd.platforms import text_of, with_place, without
from judge.crowd.sheets import LabelSheet
from judge.errors import InputError, UsageError
from judge.io.cells import count
from judge.io.safe import shown
from judge.io.tabular import read_table
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

SURVEY_WORKERS = ("worker", "worker_id", "PROLIFIC_PID", "Participant id", "participant_id", "WorkerId", "ResponseId")
"""Columns that may name a participant; the first one present is used. Qualtrics' `ResponseId` names the record."""
_RECORD = {"ResponseId", "RecordedDate"}
"""Columns that Qualtrics gives every record."""
_IMPORT_ID = '{"ImportId"'
_QUALTRICS_STATUS = {
    *("survey preview", "survey test", "spam", "preview spam", "imported spam", "offline spam", "offline preview"),
    # The same where values are exported as numbers.
    *("1", "2", "8", "9", "12", "17", "24"),
}
_UNFINISHED = {"false", "0", "no"}
_PREVIEW = {"preview", "test"}
_NO_QUESTION = (
    "no column's name says what was labeled, as 1-1_2.R00003.relevance does: say it with --wide PATTERN, which is also "
    "tried on the questions' texts, or with --wide-map FILE"
)
_ITEM_GROUPS = ("response_id", "question_id", "item_id")


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
        where = row.place
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


def is_survey(sheet: LabelSheet) -> bool:
    """Whether Qualtrics exported the table."""
    return _has_import_ids(sheet) or set(sheet.frame.columns) >= _RECORD


def survey_rows(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> Iterator["pl.DataFrame"]:
    """The labels of a survey, a frame for each question; an empty cell is a question that was not shown.

    Args:
        sheet: The export; Qualtrics' two rows below the header are passed over, and with a warning its previews,
            spam and unfinished records.
        layout: The options: what the columns ask about, else what their names say; `worker` and `seconds`, where they
            are not named as platforms do. Seconds are shared evenly.
        problems: Takes what is wrong with the columns.

    Raises:
        UsageError: The pattern is no regular expression or lacks a group.
    """
    import polars as pl

    columns, criterion = layout.columns, layout.only
    questions = _questions(sheet, layout.wide or SURVEY)
    worker = columns.get("worker") or next((name for name in SURVEY_WORKERS if name in sheet.frame.columns), None)
    needed = [name for name in (worker, columns.get("seconds"), *questions) if name]
    lacking = [name for name in needed if name not in sheet.frame.columns]
    messages = [f"no column {', '.join(map(shown, lacking))}"] if lacking else []
    messages += [] if worker else [f"no column that names the participant: expected one of {', '.join(SURVEY_WORKERS)}"]
    messages += [] if questions else [_NO_QUESTION if layout.wide is None else "no column fits --wide"]
    if criterion is None and any(question.criterion is None for question in questions.values()):
        messages.append("the columns do not say the criterion, and no one criterion is given (--criterion)")
    problems += (Problem("missing_column", "error", sheet.file, None, "line 1", message) for message in messages)
    if messages or worker is None:
        return
    sheet = _sound_of_qualtrics(sheet, problems)
    labeled = pl.sum_horizontal((text_of(name) != "").cast(pl.Int32) for name in questions)
    for name, question in questions.items():
        yield (
            with_place(sheet, name, seconds=columns.get("seconds"), shares=labeled)
            .with_columns(
                worker=sheet.frame[worker],
                turn_id=pl.lit(question.turn_id),
                response_id=pl.lit(question.response_id),
                criterion=pl.lit(question.criterion or criterion),
                label=sheet.frame[name],
            )
            .filter(sheet.frame.select(text_of(name) != "").to_series())
        )


def _questions(sheet: LabelSheet, wide: Wide) -> dict[str, Question]:
    """Column to question: by the names of the columns; if none fits, by the texts of the questions, where they are."""
    if not isinstance(wide, str):
        return dict(wide)
    try:
        pattern = re.compile(wide)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"--wide {shown(wide)} is no regular expression: {error}") from error
    item = next((name for name in _ITEM_GROUPS if name in pattern.groupindex), None)
    if item is None or "turn_id" not in pattern.groupindex:
        raise UsageError(f"--wide {shown(wide)}: expected groups (?P<turn_id>…), (?P<response_id>…), (?P<criterion>…)")
    names = sheet.frame.columns
    matches = [(name, pattern.fullmatch(name)) for name in names]
    if _has_import_ids(sheet) and wide != SURVEY and not any(match for _, match in matches):
        matches = [(name, pattern.search(str(text))) for name, text in zip(names, sheet.frame.row(0), strict=True)]
    return {
        name: Question(match["turn_id"] or "", match[item] or "", match.groupdict().get("criterion"))
        for name, match in matches
        if match
    }


def _has_import_ids(sheet: LabelSheet) -> bool:
    """Whether the second row below the header holds Qualtrics' import ids; the first has the questions' texts then."""
    return sheet.frame.height > 1 and any(str(cell).startswith(_IMPORT_ID) for cell in sheet.frame.row(1))


def _sound_of_qualtrics(sheet: LabelSheet, problems: LabelProblems) -> LabelSheet:
    """The sheet without what Qualtrics exports beside the participants' finished records.

    Those are the question texts and import ids below the header, and rows that are previews, spam or unfinished.
    """
    if _has_import_ids(sheet):
        sheet = LabelSheet(sheet.file, sheet.frame[2:], sheet.numbers[2:], sheet.unit, sheet.problems)
    elif "ResponseId" not in sheet.frame.columns:
        return sheet
    for column, values in (
        ("Status", _QUALTRICS_STATUS),
        ("DistributionChannel", _PREVIEW),
        ("Finished", _UNFINISHED),
    ):
        sheet = without(sheet, column, values, problems)
    return sheet
