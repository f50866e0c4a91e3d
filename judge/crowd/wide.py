"""Surveys (Qualtrics) as long tables, one row a label, and Prolific's submissions, which say whose labels count.

A survey has a row for each participant and a column for each question.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.crowd.layout import ITEM_GROUPS, SURVEY, LabelProblems, Layout, Question, Wide, pattern_of
from judge.crowd.sheets import LabelSheet, text_of, without
from judge.errors import InputError
from judge.io.tabular import read_table
from judge.io.text import count, shown
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

SURVEY_WORKERS = ("worker", "worker_id", "PROLIFIC_PID", "Participant id", "participant_id", "WorkerId", "ResponseId")
"""Columns that may name a participant; the first one present is used. Qualtrics' `ResponseId` names the record."""
_RECORD = {"ResponseId", "RecordedDate"}
"""Columns that Qualtrics gives every record."""
_IMPORT_ID = '{"ImportId"'
_LEFT_OUT = {
    # The same twice: the numbers are those of exports with numeric values.
    "Status": (
        *("survey preview", "survey test", "spam", "preview spam", "imported spam", "offline spam", "offline preview"),
        *("1", "2", "8", "9", "12", "17", "24"),
    ),
    "DistributionChannel": ("preview", "test"),
    "Finished": ("false", "0", "no"),
}
"""Column of Qualtrics to the values of records that have no vote."""
_NO_QUESTION = (
    "no column's name says what was labeled, as 1-1_2.R00003.relevance does: say it with --wide PATTERN, which is also "
    "tried on the questions' texts, or with --wide-map FILE"
)


def read_questions(path: Path) -> dict[str, Question]:
    """The questions of a survey's columns, from a table `column, turn_id, response_id, criterion`.

    An InputError if the file is no such table or names a column twice; every problem is listed.
    """
    problems: list[Problem] = []
    needed = ("column", "turn_id", "response_id", "criterion")
    questions: dict[str, Question] = {}
    for row in read_table(path, problems, needed=needed)[1]:
        column, *fields = (row.cells[name] for name in needed)
        if empty := [name for name in needed if not row.cells[name]]:
            code, message = "empty_cell", f"{', '.join(empty)} is empty"
        elif questions.setdefault(column, asked := Question(*fields)) is not asked:
            code, message = "duplicate_row", f"column {shown(column)} is on an earlier line too"
        else:
            continue
        problems.append(Problem(code, "error", str(path), None, row.place, message))
    if problems:
        raise InputError(f"{path}: not usable as a map of columns: {count(len(problems), 'problem')}", problems)
    return questions


def is_survey(sheet: LabelSheet) -> bool:
    """Whether Qualtrics exported the table."""
    return _has_import_ids(sheet) or set(sheet.columns) >= _RECORD


def survey_rows(sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> Iterator["pl.DataFrame"]:
    """The labels of a survey, a frame for each question; an empty cell is a question that was not shown.

    Qualtrics' two rows below the header are passed over, and with a warning its previews, spam and unfinished records.
    A participant's seconds are shared evenly. A UsageError if the pattern is no regular expression or lacks a group.
    """
    import polars as pl

    problems += sheet.problems_of([*sheet.problems])
    criterion, seconds = layout.only, layout.columns.get("seconds")
    questions = _questions(sheet, layout.wide or SURVEY)
    worker = layout.columns.get("worker") or next((name for name in SURVEY_WORKERS if name in sheet.columns), None)
    lacking = [name for name in (worker, seconds, *questions) if name and name not in sheet.columns]
    messages = [f"no column {', '.join(map(shown, lacking))}"] if lacking else []
    messages += [] if worker else [f"no column that names the participant: expected one of {', '.join(SURVEY_WORKERS)}"]
    messages += [] if questions else [_NO_QUESTION if layout.wide is None else "no column fits --wide"]
    if criterion is None and any(question.criterion is None for question in questions.values()):
        messages.append("the columns do not say the criterion, and no one criterion is given (--criterion)")
    problems += (sheet.problem("missing_column", "line 1", message) for message in messages)
    if messages or worker is None:
        return
    # What Qualtrics did not export keeps all of its rows.
    if (with_texts := _has_import_ids(sheet)) or "ResponseId" in sheet.columns:
        below = 2 if with_texts else 0
        sheet = replace(sheet, frame=sheet.frame[below:], numbers=sheet.numbers[below:])
        for column, values in _LEFT_OUT.items():
            sheet = without(sheet, column, values, problems)
    labeled = sheet.texts(pl.sum_horizontal((text_of(name) != "").cast(pl.Int32) for name in questions))
    for name, question in questions.items():
        asked = question._replace(criterion=question.criterion or criterion)._asdict()
        about = {field: pl.lit(value) for field, value in asked.items()}
        rows = sheet.rows(name, seconds, labeled, worker=text_of(worker), label=text_of(name), **about)
        yield rows.filter(pl.col("label") != "")


def _questions(sheet: LabelSheet, wide: Wide) -> dict[str, Question]:
    """Column to question: by the names of the columns; if none fits, by the texts of the questions, where they are."""
    if not isinstance(wide, str):
        return dict(wide)
    pattern = pattern_of(wide, "--wide", "(?P<turn_id>…), (?P<response_id>…), (?P<criterion>…)")
    item = next(name for name in ITEM_GROUPS if name in pattern.groupindex)
    matches = [(name, pattern.fullmatch(name)) for name in sheet.columns]
    if _has_import_ids(sheet) and wide != SURVEY and not any(match for _, match in matches):
        texts = zip(sheet.columns, sheet.frame.row(0), strict=True)
        matches = [(name, pattern.search(str(text))) for name, text in texts]
    return {
        name: Question(match["turn_id"] or "", match[item] or "", match.groupdict().get("criterion"))
        for name, match in matches
        if match
    }


def _has_import_ids(sheet: LabelSheet) -> bool:
    """Whether the second row below the header holds Qualtrics' import ids; the first has the questions' texts then."""
    return sheet.frame.height > 1 and any(str(cell).startswith(_IMPORT_ID) for cell in sheet.frame.row(1))


# Prolific.


_SUBMISSIONS = (("Participant id", "Status", "Submission id"), ("participant_id", "status", "session_id"))
"""Columns of participant and status, and one more by which the export is known, today and in older exports."""
_NO_VOTE = ("rejected", "returned", "timed-out", "timed out")


def are_submissions(names: Collection[str]) -> bool:
    """Whether a table with these columns is Prolific's list of submissions."""
    return any(set(known) <= set(names) for known in _SUBMISSIONS)


def without_left_out(
    frames: Sequence["pl.DataFrame"], submissions: Sequence[LabelSheet], problems: LabelProblems
) -> list["pl.DataFrame"]:
    """The rows of labels without those of participants who were rejected, returned the task or ran out of time.

    A participant who also has a submission that counts stays. Workers whom no list names stay, with a warning; if no
    list names any of them, that is an error.
    """
    import polars as pl

    if not submissions:
        return list(frames)
    listed: dict[str, set[str]] = {}
    for sheet in submissions:
        worker, status, _ = next(names for names in _SUBMISSIONS if set(names) <= set(sheet.columns))
        cells = sheet.frame.select(worker=text_of(worker), status=text_of(status).str.to_lowercase())
        for name, value in cells.iter_rows():
            listed.setdefault(name, set()).add(value)
    out = {name for name, values in listed.items() if values <= set(_NO_VOTE)}
    workers = {name for frame in frames for name in frame["worker"].unique()}
    file = ", ".join(sheet.file for sheet in submissions)
    if frames and not workers & listed.keys():
        example = ", ".join(map(shown, sorted(workers)[:3]))
        message = f"lists none of the workers of the labels ({example} …): name their column, --column worker=NAME"
        problems.append(Problem("unknown_worker", "error", file, None, "", message))
        return list(frames)
    if strange := sorted(workers - listed.keys() - {""}):
        message = f"{count(len(strange), 'worker')} of the labels not listed, such as {shown(strange[0])}; they stay"
        problems.append(Problem("unknown_worker", "warning", file, None, "", message))
    kept = [frame.filter(~pl.col("worker").is_in(list(out))) for frame in frames]
    lost = sum(frame.height for frame in frames) - sum(frame.height for frame in kept)
    if gone := sorted(out & workers):
        message = (
            f"{count(lost, 'label')} of {count(len(gone), 'participant')} left out, who were rejected, returned the "
            f"task or ran out of time, such as {shown(gone[0])}"
        )
        problems.append(Problem("row_left_out", "warning", file, None, "", message))
    return kept
