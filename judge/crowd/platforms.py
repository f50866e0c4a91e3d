"""Exports of task platforms as long tables, one row a label, and Prolific's submissions that do not count.

A row of MTurk's batch results and of Label Studio's annotations is one worker on one task, which may show several items
and ask for several criteria; a row of Toloka's assignments is one task of a worker's page. A platform is a row of
`PLATFORMS`.

A form may spread one answer over several columns. `Answer.grade.0` … `Answer.grade.3` are the buttons of one question,
of which the chosen one is true; `Answer.grade-0.on`, `Answer.grade-1.on` are the same built of single buttons;
`Answer.category.label` is the choice of a classifier; `Answer.taskAnswers` holds all of these as JSON.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from judge.crowd.layout import FIELDS, LABEL_OF, LabelProblems, Layout
from judge.crowd.sheets import LabelSheet, plain_text
from judge.io.cells import count
from judge.io.safe import shown
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

GENERAL = {
    *("", "answer", "category", "choice", "choices", "grade", "judgment", "label", "labels", "radio", "rating"),
    *("result", "score", "value"),
}
"""Names of an answer that are taken for the label where only one criterion is asked and no answer has its name."""
_SLOT = re.compile(r"(.+?)(?:_([0-9]{1,6}))?", re.DOTALL)
_NUMBERED = re.compile(r"(?:(.*)[-_.])?(-?[0-9]{1,9})", re.DOTALL)
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


def _answers_of(frame: "pl.DataFrame", columns: Sequence[str], prefix: str) -> list[FormAnswer]:
    """The answers in the columns whose names begin with the prefix, in the order of the table."""
    single: dict[str, str] = {}
    buttons: dict[str, dict[str, str]] = {}
    alone: dict[str, str] = {}
    for column in columns:
        name = column.removeprefix(prefix)
        if name.endswith(_CLASSIFIER):
            single[name.removesuffix(_CLASSIFIER)] = column
        elif "." not in name or not _is_boolean(frame[column]):
            single[name] = column
        else:
            stem, _, value = name.partition(".")
            if name.endswith(".on") or stem == value:
                stem = name.removesuffix(".on") if name.endswith(".on") else stem
                if numbered := _NUMBERED.fullmatch(stem):
                    buttons.setdefault(numbered[1] or "", {})[numbered[2]] = column
                else:
                    alone[stem] = column
            else:
                buttons.setdefault(stem, {})[value] = column
    if len(alone) > 1 and _one_each(frame, list(alone.values())):
        buttons.setdefault("", {}).update(alone)
        alone = {}
    found: list[tuple[str, tuple[str, ...], pl.Expr]]
    found = [(name, (column,), text_of(column)) for name, column in single.items()]
    found += [(name, tuple(of.values()), _chosen(of)) for name, of in buttons.items()]
    # A box of its own: checked is 1.
    found += [(name, (column,), _true(column).cast(int).cast(str)) for name, column in alone.items()]
    answers = [FormAnswer(*_slotted(name), columns_of, label) for name, columns_of, label in found]
    place = {column: i for i, column in enumerate(columns)}
    return sorted(answers, key=lambda answer: (int(answer.slot or 0), place[answer.columns[0]]))


def _slotted(name: str) -> tuple[str, str | None]:
    """A name without the number behind it, and the number."""
    match = _SLOT.fullmatch(name)
    return (match[1], match[2]) if match else (name, None)


def _is_boolean(cells: "pl.Series") -> bool:
    texts = set(cells.cast(str).fill_null("").str.strip_chars().str.to_lowercase().unique()) - {""}
    return bool(texts) and texts <= {"true", "false"}


def _one_each(frame: "pl.DataFrame", columns: Sequence[str]) -> bool:
    """Whether each row chose exactly one of the columns."""
    import polars as pl

    return bool((frame.select(pl.sum_horizontal(_true(column).cast(int) for column in columns)).to_series() == 1).all())


def _chosen(buttons: Mapping[str, str]) -> "pl.Expr":
    import polars as pl

    chosen = [pl.when(_true(column)).then(pl.lit(value)) for value, column in buttons.items()]
    return pl.concat_str(chosen, separator=" and ", ignore_nulls=True)


def _true(column: str) -> "pl.Expr":
    return text_of(column).str.to_lowercase() == "true"


def _unfolded(sheet: LabelSheet, column: str, prefix: str, problems: list[Problem]) -> LabelSheet:
    """The sheet with a column of JSON (`[{"grade": {"0": false, "1": true}}]`) as a column for each value in it."""
    import polars as pl

    cells = sheet.frame[column].cast(pl.String).fill_null("").to_list()
    names: set[str] = set()
    columns: dict[str, list[str]] = {}
    for row, (cell, number) in enumerate(zip(cells, sheet.numbers.tolist(), strict=True)):
        try:
            values = dict(_leaves(msgspec.json.decode(cell), prefix)) if cell.strip() else {}
        except (msgspec.MsgspecError, RecursionError) as error:
            where = f"{sheet.unit} {number}: {column[:60]}"
            problems.append(Problem("not_json", "error", sheet.file, None, where, str(error)))
            continue
        names |= values.keys()
        if len(names) > _MOST_ANSWERS:
            message = f"more than {_MOST_ANSWERS:,} answers up to here: expected those of one form"
            where = f"{sheet.unit} {number}: {column[:60]}"
            problems.append(Problem("not_json", "error", sheet.file, None, where, message))
            columns = {}
            break
        for name, text in values.items():
            columns.setdefault(name, [""] * len(cells))[row] = text
    kept = sheet.frame.drop(column, *(name for name in columns if name in sheet.frame.columns))
    frame = kept.with_columns(pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items())
    return LabelSheet(sheet.file, frame, sheet.numbers, sheet.unit, sheet.problems)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The path of each value, between periods, and the value as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}{key}" if name.endswith((".", ":")) else f"{name}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


# Platforms.


@dataclass(frozen=True, kw_only=True)
class Platform:
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
    packed: str | None = None
    """The column that holds all answers as JSON."""
    control: str | None = None
    """What stands before the columns of known answers."""
    about: tuple[str, ...] = ()
    """Columns about the row, which are no answers."""

    def wrote(self, names: Collection[str]) -> bool:
        """Whether a table with these columns is the platform's."""
        return set(self.marks) <= set(names) and any(name.startswith(self.answers) for name in names)


def platform_rows(
    sheet: LabelSheet, platform: Platform, layout: Layout, problems: LabelProblems
) -> Iterator["pl.DataFrame"]:
    """The labels of an export, a frame for each answer; all labels of a row share its time.

    Rows that the platform or its user rejected are left out, with a warning. The frames have a column `task`, or else
    `response_id` and, unless a bank knows the turns, `turn_id`.

    Args:
        sheet: The export.
        platform: Its platform.
        layout: The options; columns that it gives go before those that the platform names.
        problems: Takes what is wrong with the columns, and warnings.
    """
    import polars as pl

    if platform.status is not None:
        sheet = without(sheet, platform.status, platform.left_out, problems)
    _warn_of_controls(sheet, platform, problems)
    if platform.packed in sheet.frame.columns:
        sheet = _unfolded(sheet, platform.packed, platform.answers, problems)
    frame = sheet.frame
    inputs = _inputs(frame.columns, platform, layout)
    worker = layout.columns.get("worker", platform.marks[0])
    other = {platform.packed, platform.seconds, worker, *platform.marks, *platform.about, *inputs.values()}
    columns = [name for name in frame.columns if name.startswith(platform.answers) and name not in other]
    criterion_input = _input(inputs, "criterion", None)
    answers = _named(
        _answers_of(frame, columns, platform.answers), platform, layout, by_row=criterion_input is not None
    )
    used = {worker, *inputs.values(), *(column for _, answer in answers for column in answer.columns)}
    problems += (problem for name in sorted(used) for problem in sheet.problems.get(name, {}).values())
    fields = ("task",) if any(field == "task" for field, _ in inputs) else ("response_id", "turn_id")
    if layout.turns is not None and not any(field == "turn_id" for field, _ in inputs):
        fields = fields[:1]
    places = {answer.slot: [_input(inputs, field, answer.slot) for field in fields] for _, answer in answers}
    lacking = [
        f"{platform.inputs}{field}{f'_{slot}' if slot else ''}"
        for slot, found in sorted(places.items(), key=lambda place: int(place[0] or 0))
        for field, name in zip(fields, found, strict=True)
        if name is None
    ]
    given = [worker, *layout.columns.values()]
    lacking += [name for name in given if name not in frame.columns and not _is_stem(name, frame.columns, platform)]
    if lacking or not answers:
        heads = ", ".join(shown(name) for name in columns[:20]) or "none"
        message = (
            f"no column {', '.join(dict.fromkeys(lacking))}: name it, as in --column response_id=NAME"
            if lacking
            else f"no answer is {_wanted(layout)}; the answers are {heads}: name it, as in --column label=NAME"
        )
        problems.append(Problem("missing_column", "error", sheet.file, None, "line 1", message))
        return
    items = {slot: text_of(str(found[0])) for slot, found in places.items()}
    labeled = pl.sum_horizontal((items[answer.slot] != "").cast(pl.Int32) for _, answer in answers)
    seconds = layout.columns.get("seconds", platform.seconds)
    for criterion, answer in answers:
        label = answer.label.map_elements(plain_text, return_dtype=pl.String) if not platform.inputs else answer.label
        found = {field: text_of(str(name)) for field, name in zip(fields, places[answer.slot], strict=True)}
        constant = text_of(criterion_input) if criterion is None and criterion_input else pl.lit(criterion)
        read = frame.select(**found, worker=text_of(worker), criterion=constant, label=label)
        rows = with_place(sheet, answer.columns[0], seconds=seconds, shares=labeled).hstack(read)
        yield rows.filter((pl.col(fields[0]) != "") | (pl.col("label") != ""))


def _inputs(names: Sequence[str], platform: Platform, layout: Layout) -> dict[tuple[str, str | None], str]:
    """Field and slot of what was shown to its column."""
    inputs: dict[tuple[str, str | None], str] = {}
    for field in ("turn_id", "response_id", "task", "criterion"):
        given = layout.columns.get(field)
        wanted = (given,) if given else tuple(platform.inputs + alias for alias in FIELDS[field])
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


def _named(
    answers: Sequence[FormAnswer], platform: Platform, layout: Layout, *, by_row: bool
) -> list[tuple[str | None, FormAnswer]]:
    """The answers that are labels, each with its criterion; None where the column of criteria says it (`by_row`)."""
    given = {field: name for field, name in layout.columns.items() if field == "label" or field.startswith(LABEL_OF)}
    whole = None if by_row else layout.only
    if given:
        return [
            (field.removeprefix(LABEL_OF) if field != "label" else whole or answer.name if not by_row else None, answer)
            for field, name in given.items()
            for answer in answers
            if name in answer.columns or name.removeprefix(platform.answers) in (answer.name, _spelled(answer))
        ]
    if layout.known is None and not by_row:
        return [(answer.name or "label", answer) for answer in answers]
    if of_name := [(answer.name, answer) for answer in answers if answer.name in (layout.known or ())]:
        return list(of_name)
    if whole is None and not by_row:
        return []
    names = {answer.name for answer in answers}
    names = names if len(names) == 1 and platform.answers else names & GENERAL
    return [(whole, answer) for answer in answers if answer.name in names] if len(names) == 1 else []


def _spelled(answer: FormAnswer) -> str:
    return f"{answer.name}_{answer.slot}" if answer.slot else answer.name


def _is_stem(name: str, names: Sequence[str], platform: Platform) -> bool:
    """Whether a name that the user gives is that of several columns: buttons of one answer, or slots."""
    return any(column.startswith((f"{name}.", f"{name}_", f"{platform.answers}{name}")) for column in names)


def _wanted(layout: Layout) -> str:
    return " or ".join(map(shown, layout.known or ())) or "a label"


def _warn_of_controls(sheet: LabelSheet, platform: Platform, problems: LabelProblems) -> None:
    if platform.control is None or not sheet.frame.height:
        return
    import polars as pl

    columns = [name for name in sheet.frame.columns if name.startswith(platform.control)]
    if not columns:
        return
    control = sheet.frame.select(pl.any_horizontal(text_of(name) != "" for name in columns)).to_series()
    if control.any():
        numbers = sheet.numbers[control.to_numpy()]
        message = (
            f"{len(numbers):,} labels of control tasks ({platform.control}…) are read as any other; name the items in "
            "--known; this is the first"
        )
        problems.append(Problem("control_tasks", "warning", sheet.file, None, f"{sheet.unit} {numbers[0]}", message))


# Shared with surveys.


def without(sheet: LabelSheet, column: str, values: Collection[str], problems: LabelProblems) -> LabelSheet:
    """The sheet without the rows that have one of the values, in lower case, in a column; with a warning of how many.

    A sheet without the column stays as it is.
    """
    if column not in sheet.frame.columns:
        return sheet
    out = sheet.frame.select(text_of(column).str.to_lowercase().is_in(list(values))).to_series()
    if not out.any():
        return sheet
    values_found = ", ".join(map(shown, sheet.frame.filter(out)[column].cast(str).unique().sort()))
    numbers = sheet.numbers[out.to_numpy()]
    rows = "1 row" if len(numbers) == 1 else f"{len(numbers):,} rows"
    message = f"{rows} left out, {column} {values_found}; this is the first"
    problems.append(Problem("row_left_out", "warning", sheet.file, None, f"{sheet.unit} {numbers[0]}", message))
    return sheet.kept(~out)


def text_of(column: str) -> "pl.Expr":
    """A column's cells without outer white space, empty where there is none."""
    import polars as pl

    return pl.col(column).cast(pl.String).fill_null("").str.strip_chars()


def with_place(sheet: LabelSheet, column: str, *, seconds: str | None, shares: "pl.Expr") -> "pl.DataFrame":
    """Where each cell of a column stands, and the row's seconds over how many labeled items share them."""
    import polars as pl

    if seconds is None or seconds not in sheet.frame.columns:
        share = pl.lit(None, dtype=pl.String)
    else:
        time = text_of(seconds)
        even = (time.cast(pl.Float64, strict=False) / shares).cast(pl.String)
        # A cell that is no number stays text, so that the check of rows reports it.
        share = pl.coalesce(even, pl.when(time != "").then(time))
    return sheet.frame.select(pl.Series("number", sheet.numbers), seconds=share, column=pl.lit(column))


PLATFORMS: dict[str, Platform] = {
    "mturk": Platform(
        marks=("WorkerId",), inputs="Input.", answers="Answer.", seconds="WorkTimeInSeconds", status="AssignmentStatus",
        left_out=("rejected",), packed="Answer.taskAnswers",
    ),
    "toloka": Platform(
        marks=("ASSIGNMENT:worker_id",), inputs="INPUT:", answers="OUTPUT:", status="ASSIGNMENT:status",
        left_out=("rejected", "skipped", "expired"), control="GOLDEN:",
    ),
    "label-studio": Platform(
        marks=("annotator", "annotation_id"), inputs="", answers="", seconds="lead_time",
        about=("id", "created_at", "updated_at", "agreement"),
    ),
}  # fmt: skip
"""Platform to its columns; the order is that of asking."""


_NAMES = (("Participant id", "Status", "Submission id"), ("participant_id", "status", "session_id"))
"""Columns of participant and status, and one more by which the export is known, today and in older exports."""
_LEFT_OUT = ("rejected", "returned", "timed-out", "timed out")


def are_submissions(names: Collection[str]) -> bool:
    """Whether a table with these columns is Prolific's list of submissions."""
    return any(set(known) <= set(names) for known in _NAMES)


def without_left_out(
    frames: Sequence["pl.DataFrame"], submissions: Sequence[LabelSheet], problems: LabelProblems
) -> list["pl.DataFrame"]:
    """The rows of labels without those of participants who were rejected, returned the task or ran out of time.

    A participant who also has a submission that counts stays. Workers whom no list names stay, with a warning; if no
    list names any of them, that is an error.

    Args:
        frames: Rows of labels with a column `worker`.
        submissions: The lists.
        problems: Takes warnings.
    """
    if not submissions:
        return list(frames)
    listed: dict[str, set[str]] = {}
    for sheet in submissions:
        worker, status, _ = next(names for names in _NAMES if set(names) <= set(sheet.frame.columns))
        cells = sheet.frame.select(worker=text_of(worker), status=text_of(status).str.to_lowercase())
        for name, value in cells.iter_rows():
            listed.setdefault(name, set()).add(value)
    out = {name for name, values in listed.items() if values <= set(_LEFT_OUT)}
    workers = {name for frame in frames for name in frame.select(text_of("worker")).to_series().unique()}
    file = ", ".join(sheet.file for sheet in submissions)
    if frames and not workers & listed.keys():
        example = ", ".join(map(shown, sorted(workers)[:3]))
        message = f"lists none of the workers of the labels ({example} …): name their column, --column worker=NAME"
        problems.append(Problem("unknown_worker", "error", file, None, "", message))
        return list(frames)
    if strange := sorted(workers - listed.keys() - {""}):
        message = f"{count(len(strange), 'worker')} of the labels not listed, such as {shown(strange[0])}; they stay"
        problems.append(Problem("unknown_worker", "warning", file, None, "", message))
    kept = [frame.filter(~text_of("worker").is_in(list(out))) for frame in frames]
    lost = sum(frame.height for frame in frames) - sum(frame.height for frame in kept)
    if gone := sorted(out & workers):
        message = (
            f"{count(lost, 'label')} of {count(len(gone), 'participant')} left out, who were rejected, returned the "
            f"task or ran out of time, such as {shown(gone[0])}"
        )
        problems.append(Problem("row_left_out", "warning", file, None, "", message))
    return kept
