"""Exports of task platforms and surveys as long tables, one row a label; Prolific's submissions say whose labels count.

A row of MTurk's batch results and of Label Studio's annotations is one worker on one task, which may show several items
and ask for several criteria. Columns are read by the names that the platform gives; what a requester calls otherwise
than a field or a criterion is named by the user. `KINDS` (`tables.py`) has a row for each.

MTurk may spread one answer over several columns. `Answer.grade.0` … `Answer.grade.3` are the buttons of one question,
of which the chosen one is true; `Answer.grade.label` is the choice of a classifier; `Answer.taskAnswers` holds all of
these as JSON.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from judge.crowd.layout import (
    FIELDS,
    ITEM_GROUPS,
    LABEL_OF,
    SURVEY,
    LabelColumn,
    LabelProblems,
    Layout,
    Wide,
    pattern_of,
)
from judge.crowd.sheets import COMMENT, GROUND_TRUTH, LabelSheet, cell_text, plain_text, text_of, without
from judge.errors import refuse
from judge.io.tabular import read_table
from judge.io.text import count, nearest, shown, tally
from judge.records import Problem, Record, file_problem

if TYPE_CHECKING:
    import polars as pl


_SLOT = re.compile(r"(.+?)(?:_([0-9]{1,6}))?", re.DOTALL)
_CLASSIFIER = ".label"
_MOST_ANSWERS = 1_000
"""The most different values in the answers of a table: each becomes a column."""


class FormAnswer(NamedTuple):
    """One answer: its name, the number of the item that it is about, its columns and its label."""

    name: str
    slot: str | None
    """The number behind the name, where a form shows several items: `relevance_2`."""
    columns: tuple[str, ...]
    label: "pl.Expr"
    """The label as text; of several chosen buttons all, so that it is no label."""


def _answers_of(sheet: LabelSheet, columns: Sequence[str], prefix: str) -> list[FormAnswer]:
    """The answers in the columns whose names begin with the prefix, in the order of the table."""
    single: dict[str, str] = {}
    buttons: dict[str, dict[str, str]] = {}
    for column in columns:
        name = column.removeprefix(prefix)
        if name.endswith(_CLASSIFIER):
            single[name.removesuffix(_CLASSIFIER)] = column
        elif "." in name and _is_boolean(sheet, column):
            stem, _, value = name.partition(".")
            buttons.setdefault(stem, {})[value] = column
        else:
            single[name] = column
    answers: list[FormAnswer] = []
    for name, column in single.items():
        stem, slot = _slotted(name)
        answers.append(FormAnswer(name=stem, slot=slot, columns=(column,), label=text_of(column)))
    for name, choices in buttons.items():
        stem, slot = _slotted(name)
        answers.append(FormAnswer(name=stem, slot=slot, columns=tuple(choices.values()), label=_chosen(choices)))
    return sorted(answers, key=lambda answer: (int(answer.slot or 0), columns.index(answer.columns[0])))


def _slotted(name: str) -> tuple[str, str | None]:
    """A name without the number behind it, and the number."""
    match = _SLOT.fullmatch(name)
    return (match[1], match[2]) if match else (name, None)


def _is_boolean(sheet: LabelSheet, column: str) -> bool:
    texts = {*sheet.texts(text_of(column).str.to_lowercase().unique())} - {""}
    return bool(texts) and texts <= {"true", "false"}


def _chosen(buttons: Mapping[str, str]) -> "pl.Expr":
    import polars as pl

    chosen = [
        pl.when(text_of(column).str.to_lowercase() == "true").then(pl.lit(value)) for value, column in buttons.items()
    ]
    return pl.concat_str(chosen, separator=" and ", ignore_nulls=True)


def _unfolded(sheet: LabelSheet, column: str, prefix: str, problems: LabelProblems) -> LabelSheet:
    """The sheet with a column of JSON (`[{"grade": {"0": false, "1": true}}]`) as a column for each value in it."""
    import polars as pl

    cells = sheet.texts(text_of(column)).to_list()
    columns: dict[str, list[str]] = {}
    for row, (cell, number) in enumerate(zip(cells, sheet.numbers.tolist(), strict=True)):
        where = f"{sheet.unit} {number}: {column[:60]}"
        try:
            values = dict(_leaves(msgspec.json.decode(cell), prefix)) if cell else {}
        except (msgspec.MsgspecError, RecursionError) as error:
            problems.append(sheet.problem("not_json", where, str(error)))
            continue
        if len(columns.keys() | values.keys()) > _MOST_ANSWERS:
            message = f"more than {_MOST_ANSWERS:,} answers up to here: expected those of one form"
            problems.append(sheet.problem("not_json", where, message))
            columns = {}
            break
        for name, text in values.items():
            columns.setdefault(name, [""] * len(cells))[row] = text
    kept = sheet.frame.drop(column, *(name for name in columns if name in sheet.columns))
    return replace(sheet, frame=kept.with_columns(pl.Series(name, cells) for name, cells in columns.items()))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The path of each value, between periods, and the value as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}{key}" if name.endswith((".", ":")) else f"{name}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, cell_text(value)


# Platforms.


class Platform(Record, frozen=True, kw_only=True):
    """How a platform names its columns."""

    marks: tuple[str, ...]
    """Columns by which its exports are known; the first names the worker."""
    inputs: str
    """What stands before the names of what was shown."""
    answers: str
    """What stands before the names of answers."""
    seconds: str | None = None
    """The column of the time that the whole row took."""
    status: str | None = None
    left_out: tuple[str, ...] = ()
    """The values of the column `status` of rows that have no vote, in lower case."""
    reject: str | None = None
    """The column in which the user rejects rows, by whatever they write there."""
    packed: str | None = None
    """The column that holds all answers as JSON."""
    about: tuple[str, ...] = ()
    """Columns about the row, which are no answers."""

    def wrote(self, names: Collection[str]) -> bool:
        """Whether a table with these columns is the platform's, one without workers, inputs or answers too."""
        inputs = any(self.inputs and name.startswith(self.inputs) for name in names)
        answers = any(name.startswith(self.answers) for name in names)
        return (set(self.marks) <= set(names)) + inputs + answers >= 2


def _id_fields(input_fields: Collection[str], layout: Layout) -> tuple[str, ...]:
    """The fields that name what was labeled."""
    if "task" in input_fields:
        return ("task",)
    if layout.turns is not None and "turn_id" not in input_fields:
        return ("response_id",)
    return ("response_id", "turn_id")


def _lacking_inputs(items: Mapping[str | None, Mapping[str, str | None]], platform: Platform) -> list[str]:
    """The columns that name no item where one was labeled, by the number of the item in its row."""
    lacking: list[str] = []
    for slot in sorted(items, key=lambda slot: int(slot or 0)):
        suffix = f"_{slot}" if slot else ""
        lacking += (f"{platform.inputs}{field}{suffix}" for field, name in items[slot].items() if name is None)
    return lacking


def platform_rows(
    sheet: LabelSheet, layout: Layout, problems: LabelProblems, *, platform: Platform
) -> Iterator["pl.DataFrame"]:
    """The labels of an export, a frame for each answer; all labels of a row share its time.

    Rows that the platform or its user rejected are left out, with a warning. The frames have a column `task`, or else
    `response_id` and, unless a bank knows the turns, `turn_id`. Columns of the layout go before those of the platform.
    """
    import polars as pl

    sheet = without(sheet, platform.status, platform.left_out, problems)
    sheet = without(sheet, platform.reject, None, problems)
    if platform.packed in sheet.columns:
        sheet = _unfolded(sheet, str(platform.packed), platform.answers, problems)
    inputs = _inputs(sheet.columns, platform, layout)
    worker = layout.columns.get("worker", platform.marks[0])
    other = {platform.packed, platform.seconds, worker, *platform.marks, *platform.about, *inputs.values()}
    answered = sheet.columns if sheet.controls is None else sheet.controls
    columns = [name for name in answered if name.startswith(platform.answers) and name not in other]
    criterion_input = _input(inputs, "criterion", None)
    answers = _answers_of(sheet, columns, platform.answers)
    labels = _labels_among(answers, platform, layout, by_row=criterion_input is not None)
    used = {worker, *inputs.values()}
    for _, answer in labels:
        used.update(answer.columns)
    # Lists and objects of columns that are not needed do no harm.
    problems += sheet.problems_of(sorted(used))
    fields = _id_fields({field for field, _ in inputs}, layout)
    items: dict[str | None, dict[str, str | None]] = {}
    for _, answer in labels:
        items[answer.slot] = {field: _input(inputs, field, answer.slot) for field in fields}
    asked = (worker, *layout.columns.values())
    lacking = _lacking_inputs(items, platform)
    lacking += (name for name in asked if name not in sheet.columns and not _is_stem(name, sheet.columns, platform))
    if lacking:
        field = "worker" if lacking == [worker] else "response_id"
        problems.append(sheet.problem("missing_column", "line 1", _no_columns(lacking, sheet.columns, field)))
        return
    if not labels:
        problems.append(sheet.problem("missing_column", "line 1", _no_label(answers, columns, layout)))
        return
    cells: dict[str | None, dict[str, pl.Expr]] = {}
    for number, names in items.items():
        cells[number] = {field: text_of(str(name)) for field, name in names.items()}
    shown_items = ((cells[answer.slot][fields[0]] != "").cast(pl.Int32) for _, answer in labels)
    labeled = sheet.texts(pl.sum_horizontal(shown_items))
    seconds = layout.columns.get("seconds", platform.seconds)
    for criterion, answer in labels:
        rows = sheet.rows(
            answer.columns[0],
            seconds,
            labeled,
            **cells[answer.slot],
            worker=text_of(worker),
            criterion=text_of(criterion_input) if criterion is None and criterion_input else pl.lit(criterion),
            label=answer.label if platform.inputs else answer.label.map_elements(plain_text, return_dtype=pl.String),
            **_remarks(sheet, platform),
        )
        yield rows.filter((pl.col(fields[0]) != "") | (pl.col("label") != ""))


def _no_columns(lacking: Iterable[str], columns: Sequence[str], field: str) -> str:
    """Say which columns are missing, and how a field names one."""
    heads = ", ".join(map(shown, columns[:20]))
    return f"no column {', '.join(dict.fromkeys(lacking))}; found {heads}: name it, as in --column {field}=NAME"


def _remarks(sheet: LabelSheet, platform: Platform) -> dict[str, "pl.Expr"]:
    """What a row says beside its labels, as far as the sheet has it: a comment, and whether it is the ground truth."""
    import polars as pl

    remarks: dict[str, pl.Expr] = {}
    if (name := platform.answers + COMMENT) in sheet.columns:
        text = text_of(name)
        remarks["comment"] = text if platform.inputs else text.map_elements(plain_text, return_dtype=pl.String)
    if GROUND_TRUTH in sheet.columns:
        remarks["ground_truth"] = text_of(GROUND_TRUTH)
    return remarks


def _no_label(answers: Sequence[FormAnswer], columns: Sequence[str], layout: Layout) -> str:
    """Say that none of the answers is a label, and which one may be meant."""
    heads = ", ".join(map(shown, columns[:20])) or "none"
    wanted = " or ".join(map(shown, layout.known or ())) or "a label"
    names = list(dict.fromkeys(answer.name for answer in answers))
    meant = nearest(layout.only or "", names) or (names[0] if len(names) == 1 else "NAME")
    option = shlex.quote(f"label={meant}")
    return f"no answer is {wanted}; the answers are {heads}: name it, as in --column {option}"


def _inputs(names: Sequence[str], platform: Platform, layout: Layout) -> dict[tuple[str, str | None], str]:
    """Field and slot of what was shown to its column."""
    inputs: dict[tuple[str, str | None], str] = {}
    for field in ("turn_id", "response_id", "task", "criterion"):
        named = layout.columns.get(field)
        wanted = (named,) if named else tuple(platform.inputs + alias for alias in FIELDS[field])
        for name in names:
            stem, slot = _slotted(name)
            if name in wanted:
                inputs.setdefault((field, None), name)
            elif stem in wanted:
                inputs.setdefault((field, slot), name)
    fields = {field for field, _ in inputs}
    # One of the two says what was labeled; a column of tasks only where there is no other, or where the user names it.
    tasks = "task" in fields and ("task" in layout.columns or "response_id" not in fields)
    passed_over = {"turn_id", "response_id"} if tasks else {"task"}
    return {key: name for key, name in inputs.items() if key[0] not in passed_over}


def _input(inputs: Mapping[tuple[str, str | None], str], field: str, slot: str | None) -> str | None:
    return inputs.get((field, slot)) or inputs.get((field, None))


def _labels_among(
    answers: Sequence[FormAnswer], platform: Platform, layout: Layout, *, by_row: bool
) -> list[tuple[str | None, FormAnswer]]:
    """The answers that are labels, each with its criterion; None where the column of criteria says it (`by_row`)."""
    labels: list[tuple[str | None, FormAnswer]] = []
    label_columns = {
        field: name for field, name in layout.columns.items() if field == "label" or field.startswith(LABEL_OF)
    }
    for field, column in label_columns.items():
        for answer in answers:
            name = f"{answer.name}_{answer.slot}" if answer.slot else answer.name
            if column not in answer.columns and column.removeprefix(platform.answers) not in (answer.name, name):
                continue
            if field != "label":
                criterion: str | None = field.removeprefix(LABEL_OF)
            elif by_row:
                criterion = None
            else:
                criterion = layout.only or answer.name
            labels.append((criterion, answer))
    if label_columns:
        return labels
    if layout.known is None and not by_row:
        return [(answer.name or "label", answer) for answer in answers]
    by_name: list[tuple[str | None, FormAnswer]] = [
        (answer.name, answer) for answer in answers if answer.name in (layout.known or ())
    ]
    whole = None if by_row else layout.only
    if by_name or (whole is None and not by_row):
        return by_name
    names = {answer.name for answer in answers}
    alias = next((alias for alias in FIELDS["label"] if alias in names), None)
    return [(whole, answer) for answer in answers if answer.name == alias]


def _is_stem(name: str, names: Sequence[str], platform: Platform) -> bool:
    """Whether a name that the user gives is that of several columns: buttons of one answer, or slots."""
    return any(column.startswith((f"{name}.", f"{name}_", f"{platform.answers}{name}")) for column in names)


MTURK = Platform(
    marks=("WorkerId",),
    inputs="Input.",
    answers="Answer.",
    seconds="WorkTimeInSeconds",
    status="AssignmentStatus",
    left_out=("rejected",),
    reject="Reject",
    packed="Answer.taskAnswers",
)
LABEL_STUDIO = Platform(
    marks=("annotator", "annotation_id"),
    inputs="",
    answers="",
    seconds="lead_time",
    about=("id", "created_at", "updated_at", "agreement", GROUND_TRUTH),
)


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


def read_questions(path: Path) -> dict[str, LabelColumn]:
    """The questions of a survey's columns, from a table `column, turn_id, response_id, criterion`.

    An InputError if the file is no such table or names a column twice; every problem is listed.
    """
    problems: list[Problem] = []
    needed = ("column", "turn_id", "response_id", "criterion")
    questions: dict[str, LabelColumn] = {}
    for row in read_table(path, problems, needed=needed)[1]:
        column = row.cells["column"]
        question = LabelColumn(
            turn_id=row.cells["turn_id"], response_id=row.cells["response_id"], criterion=row.cells["criterion"]
        )
        if empty := [name for name in needed if not row.cells[name]]:
            code = "empty_cell"
            message = f"{', '.join(empty)} is empty"
        elif questions.setdefault(column, question) is not question:
            code = "duplicate_row"
            message = f"column {shown(column)} is on an earlier line too"
        else:
            continue
        problems.append(file_problem(code, path, message, row.place))
    refuse(problems, f"{path}: not usable as a map of columns: {count(len(problems), 'problem')}")
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

    criterion = layout.only
    seconds = layout.columns.get("seconds")
    questions = _questions(sheet, layout.wide or SURVEY)
    shared = sheet.shared_names({} if "worker" in layout.columns else dict.fromkeys(SURVEY_WORKERS, "worker"))
    problems += shared
    worker = layout.columns.get("worker") or next((name for name in SURVEY_WORKERS if name in sheet.columns), None)
    needed = [name for name in (worker, seconds, *questions) if name]
    # Lists and objects of columns that are not needed do no harm.
    problems += sheet.problems_of(needed)
    lacking = [name for name in needed if name not in sheet.columns]
    messages = [f"no column {', '.join(map(shown, lacking))}"] if lacking else []
    if worker is None:
        heads = ", ".join(map(shown, sheet.columns[:20]))
        messages.append(f"no column that names the participant; found {heads}: name it, as in --column worker=NAME")
    messages += [] if questions else [_NO_QUESTION if layout.wide is None else "no column fits --wide"]
    if criterion is None and any(question.criterion is None for question in questions.values()):
        messages.append("the columns do not say the criterion, and no one criterion is given (--criterion)")
    problems += (sheet.problem("missing_column", "line 1", message) for message in messages)
    if twice := sorted({sheet.repeated[name] for name in questions if name in sheet.repeated}):
        message = f"the header has {', '.join(map(shown, twice))} more than once: name the questions by their places"
        where = f"--wide-map FILE with a column such as {shown(f'{twice[0]}#1')}"
        if isinstance(layout.wide or SURVEY, str):
            problems.append(sheet.problem("repeated_column", "line 1", f"{message}, {where}"))
            return
    if messages or shared or worker is None:
        return
    # What Qualtrics did not export keeps all of its rows.
    if (with_texts := _has_import_ids(sheet)) or "ResponseId" in sheet.columns:
        below = 2 if with_texts else 0
        sheet = replace(sheet, frame=sheet.frame[below:], numbers=sheet.numbers[below:])
        for column, values in _LEFT_OUT.items():
            sheet = without(sheet, column, values, problems)
    labeled = sheet.texts(pl.sum_horizontal((text_of(name) != "").cast(pl.Int32) for name in questions))
    for name, question in questions.items():
        rows = sheet.rows(
            name,
            seconds,
            labeled,
            worker=text_of(worker),
            turn_id=pl.lit(question.turn_id),
            response_id=pl.lit(question.response_id),
            criterion=pl.lit(question.criterion or criterion),
            label=text_of(name),
        )
        yield rows.filter(pl.col("label") != "")


def _questions(sheet: LabelSheet, wide: Wide) -> dict[str, LabelColumn]:
    """Column to question: by the names of the columns; if none fits, by the texts of the questions, where they are."""
    if not isinstance(wide, str):
        return dict(wide)
    pattern = pattern_of(wide, "--wide", "(?P<turn_id>…), (?P<response_id>…), (?P<criterion>…)")
    item = next(name for name in ITEM_GROUPS if name in pattern.groupindex)
    matches = [(name, pattern.fullmatch(sheet.repeated.get(name, name))) for name in sheet.columns]
    if _has_import_ids(sheet) and wide != SURVEY and not any(match for _, match in matches):
        texts = zip(sheet.columns, sheet.frame.row(0), strict=True)
        matches = [(name, pattern.search(str(text))) for name, text in texts]
    return {
        name: LabelColumn(
            turn_id=match["turn_id"] or "",
            response_id=match[item] or "",
            criterion=match.groupdict().get("criterion"),
        )
        for name, match in matches
        if match
    }


def _has_import_ids(sheet: LabelSheet) -> bool:
    """Whether the second row below the header holds Qualtrics' import ids; the first has the questions' texts then."""
    return sheet.frame.height > 1 and any(str(cell).startswith(_IMPORT_ID) for cell in sheet.frame.row(1))


# Prolific.


_SUBMISSIONS = (("Participant id", "Status", "Submission id"), ("participant_id", "status", "session_id"))
"""Columns of participant and status, and one more by which the export is known, today and in older exports."""
_VOTING = {"approved", "partially approved", "awaiting review"}
"""The states of submissions whose labels count; whoever has another state left the task or was turned away."""


def are_submissions(names: Collection[str]) -> bool:
    """Whether a table with these columns is Prolific's list of submissions."""
    return any(set(header) <= set(names) for header in _SUBMISSIONS)


def without_left_out(
    frames: Sequence["pl.DataFrame"], submissions: Sequence[LabelSheet], problems: LabelProblems
) -> list["pl.DataFrame"]:
    """The rows of labels without those of participants whose submissions are neither approved nor to be reviewed.

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
            listed.setdefault(name, set()).add(value.replace("_", " "))
    out = {name for name, values in listed.items() if not values & _VOTING}
    workers: set[str] = set()
    for frame in frames:
        workers.update(frame["worker"].unique())
    file = ", ".join(sheet.file for sheet in submissions)
    if frames and not workers & listed.keys():
        example = ", ".join(map(shown, sorted(workers)[:3]))
        message = f"lists none of the workers of the labels ({example} …): name their column, --column worker=NAME"
        problems.append(file_problem("unknown_worker", file, message))
        return list(frames)
    if strange := sorted(workers - listed.keys() - {""}):
        message = f"{count(len(strange), 'worker')} of the labels not listed, such as {shown(strange[0])}; they stay"
        problems.append(file_problem("unknown_worker", file, message, severity="warning"))
    kept = [frame.filter(~pl.col("worker").is_in(list(out))) for frame in frames]
    lost = sum(frame.height for frame in frames) - sum(frame.height for frame in kept)
    if gone := sorted(out & workers):
        states = Counter[str]()
        for name in gone:
            states.update(state or "no state" for state in listed[name])
        message = (
            f"{count(lost, 'label')} of {count(len(gone), 'participant')} left out, neither approved nor awaiting "
            f"review: {tally(states)}; such as {shown(gone[0])}"
        )
        problems.append(file_problem("row_left_out", file, message, severity="warning"))
    return kept
