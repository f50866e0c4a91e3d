"""Makes gold rows from the grades of a file: adds options and texts, and reports every problem."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import alias_notes, is_opposite, own_name
from judge.errors import refuse
from judge.gold import CANNOT, GradeMeanings, means_unable
from judge.gold.plan import PlanRow
from judge.gold.rows import GoldRow, field_problems, pair_digest, response_digest, row_key, text_digest
from judge.io.ids import ALIKE, column, names_alike, natural_key, own_turn_id, topic_of
from judge.io.text import count, examples, shown, storable, tally
from judge.pool.build import Candidate
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem, file_problem
from judge.runs.document import open_document

Fault = tuple[str, str, str]
"""Code, JSON path and message of a problem."""


class Draft(msgspec.Struct):
    """One grade as a file gives it."""

    file: str
    place: str
    """The line or the JSON path, as a message names it."""
    values: dict[str, Any]
    """Fields of a gold row; None where the file gives no value."""

    def problem(self, code: str, where: str, message: str) -> Problem:
        """An error at this place."""
        turn_id = self.values.get("turn_id")
        path = ": ".join(part for part in (self.place, where) if part)
        return file_problem(code, self.file, message, path, turn_id=turn_id if isinstance(turn_id, str) else None)


class SourceContent(msgspec.Struct):
    """The grades and texts of a source, before they are gold rows."""

    defaults: dict[str, Any] = {}
    """Values of fields that neither the file nor the options give."""
    drafts: list[Draft] = []
    candidates: list[Candidate] = []
    problems: list[Problem] = []
    notes: list[str] = []
    gaps: bool = False
    """Whether it is a table of people, in which a value may stand for no label."""
    unstated: bool = False
    """Whether the files do not say how the grades came about, so that the user must."""
    remedy: str = ""
    """What a user may do about two grades of one response by one assessor, in words."""


class ImportOptions(msgspec.Struct, frozen=True):
    """What the user's options add to a source."""

    constants: Mapping[str, Any] = {}
    """Field to value, for fields that the file leaves open."""
    columns: Mapping[str, str] = {}
    """Field to column of a table."""
    bank: Mapping[str, str] | None = None
    """Response id to text."""
    pool: Pool | None = None
    plan: Mapping[tuple[str, str], PlanRow] | None = None
    """(turn_id, response_id) to the row of the plan that the responses were drawn by."""
    meanings: GradeMeanings = GradeMeanings()
    """What texts in place of grades mean."""
    generic_as_zero: bool = False
    """Take BEGIN's generic responses as grade 0, not attributable; otherwise they are left out."""


def complete(content: SourceContent, options: ImportOptions) -> tuple[GoldRow, ...]:
    """The rows without a problem, in the order of the source; problems and notes are added to the content.

    A turn may hold one text under two ids, as in CAsT-ReGIn. Its second grade is then given to a second assessor
    (`crowd#2`), so that neither of the two grades is lost.
    """
    rows: dict[tuple[str | None, ...], tuple[Draft, GoldRow]] = {}
    responses = options.pool.responses if options.pool else ()
    pooled: dict[tuple[str, str], PooledResponse] = {}
    for response in responses:
        pooled[response.listed_under, response.response_id] = response
        pooled[response.turn_id, response.response_id] = response
    for response in responses:
        # Qrels and tables name a passage by its own id.
        pooled.setdefault((response.turn_id, response.listed_as), response)
        pooled.setdefault((response.turn_id, column(response.listed_as)), response)
    planned_texts = {(row.turn_id, row.text_sha256): row for row in (options.plan or {}).values()}
    repeated = unable = 0
    missing: Counter[str] = Counter()
    called: dict[str, None] = {}
    for draft in content.drafts:
        values = _filled(draft, content, options)
        if isinstance(name := values.get("criterion"), str) and not options.meanings.is_stated(name):
            if is_opposite(name):
                content.problems.append(_opposite(draft, name))
                continue
            values["criterion"] = own_name(name)
            called[name] = None
        if isinstance(text := values.get("grade"), str) and means_unable(text):
            unable += 1
            continue
        value = values.get("grade") if content.gaps else None
        if isinstance(value, int | str) and options.meanings.is_missing(values.get("criterion"), value):
            missing[str(value)] += 1
            continue
        named = values.get("response_id")
        problems = _add_text(values, options, pooled)
        if options.plan is not None:
            # Published labels name a citation by its texts alone.
            text = str(values.get("turn_id")), str(values.get("text_sha256"))
            if named is None and text in planned_texts:
                values["response_id"] = planned_texts[text].response_id
            problems += _add_plan(values, options.plan, named)
        problems += _add_grade(values, options.meanings)
        values = {field: value for field, value in values.items() if value is not None}
        # A grade that is no integer is reported once, and so is a missing turn, which the topic is taken from.
        reported = {where for _, where, _ in problems} | ({"$.topic_id"} if "turn_id" not in values else set())
        problems += [problem for problem in field_problems(values) if problem[1] not in reported]
        if problems:
            content.problems += (draft.problem(code, where, message) for code, where, message in problems)
            continue
        row = GoldRow(**values)
        number = 1
        while (earlier := rows.get(row_key(row))) and earlier[1].response_id != row.response_id:
            number += 1
            row = msgspec.structs.replace(row, assessor=f"{values['assessor']}#{number}")
        if earlier:
            where = f"{earlier[0].place} of {earlier[0].file}{content.remedy}"
            message = f"the same response, criterion and assessor are already at {where}"
            content.problems.append(draft.problem("duplicate_row", "$", message))
            continue
        repeated += number > 1
        rows[row_key(row)] = draft, row
    content.notes += (*alias_notes(called), *_left_out(unable, missing))
    assessors = dict.fromkeys(row.assessor for _, row in rows.values())
    content.notes += [f"{ALIKE}: {examples(map(shown, alike))}" for alike in names_alike(assessors)]
    if repeated:
        content.notes.append(
            f"{repeated} grades are of texts that already have a grade in the same turn: their assessor ends in #2"
        )
    return tuple(row for _, row in rows.values())


def _left_out(unable: int, missing: Counter[str]) -> Iterator[str]:
    """How many labels are no grades, in words; `missing` counts each value that stands for none."""
    if unable:
        yield f"{count(unable, 'label')} left out: {CANNOT.lower()}"
    if missing:
        yield f"{count(missing.total(), 'value')} left out, which stand for no label: {tally(missing)}"


def _opposite(draft: Draft, name: str) -> Problem:
    """The problem of a grade of the opposite of a criterion."""
    message = (
        f"{shown(name)} is the opposite of {own_name(name)}: turn the grades around and name that, or name the prompt "
        "of your own with --prompt PATH"
    )
    return draft.problem("wrong_value", "$.criterion", message)


OF_PAIR = "|"
"""What stands between the ids of the responses of a pair that has no id of its own."""


def banked(bank: Mapping[str, str], item_id: str) -> tuple[str, ...] | None:
    """The text of a bank that has an id, or the two texts of a pair of ids; None without."""
    if item_id in bank:
        return (bank[item_id],)
    first, _, second = item_id.partition(OF_PAIR)
    return (bank[first], bank[second]) if first in bank and second in bank else None


def banked_digest(texts: Sequence[str]) -> str:
    """The digest that names in gold what a bank has under an id."""
    return pair_digest(*texts) if len(texts) > 1 else text_digest(texts[0])


def read_bank(path: Path) -> dict[str, str]:
    """The texts of a response bank, a JSON object from id to text; an InputError if the file is none."""
    document = open_document(path)
    errors = [problem for problem in document.problems if problem.severity == "error"]
    if not errors and not isinstance(document.value, dict):
        errors = [file_problem("not_a_bank", document.file, "expected an object from id to text", "$")]
    for item_id, text in (document.value or {}).items() if not errors else ():
        if not isinstance(text, str) or not storable(text):
            message = f"{shown(text)}: expected a text without NUL and lone surrogates"
            errors.append(file_problem("not_a_bank", document.file, message, f"$[{shown(item_id)}]"))
    refuse(errors, f"{path}: not usable as a response bank")
    bank: dict[str, str] = document.value
    return bank


def _filled(draft: Draft, content: SourceContent, options: ImportOptions) -> dict[str, Any]:
    """The draft's own values, in which the fields that it leaves open are now set."""
    values = draft.values
    for field, value in (*options.constants.items(), *content.defaults.items()):
        if values.get(field) is None:
            values[field] = value
    if isinstance(turn_id := values.get("turn_id"), str) and values.get("topic_id") is None:
        values["topic_id"] = topic_of(turn_id)
    return values


def _add_text(
    values: dict[str, Any], options: ImportOptions, by_id: Mapping[tuple[str, str], PooledResponse]
) -> list[Fault]:
    """Set `text_sha256` in place: of the given text, else of the text that the bank or the pool has under the id."""
    text = values.pop("text", None)
    response_id = values.get("response_id")
    if values.get("text_sha256") is None and text is not None:
        values["text_sha256"] = text_digest(text)
    if values.get("text_sha256") is not None or not isinstance(response_id, str):
        return []
    if options.bank is not None:
        texts = banked(options.bank, response_id)
        if texts is None:
            return [("not_in_bank", "$.response_id", f"{shown(response_id)} has no text in the bank")]
        values["text_sha256"] = banked_digest(texts)
    if options.pool is not None:
        turn_id = str(values.get("turn_id"))
        response = by_id.get((turn_id, response_id)) or by_id.get((own_turn_id(turn_id), response_id))
        if response is None:
            return [("not_in_pool", "$.response_id", f"the pool has no {shown(response_id)} in this turn")]
        if values.get("topic_id") == topic_of(turn_id):
            values["topic_id"] = response.topic_id
        values["turn_id"] = response.turn_id
        values["response_id"] = response.response_id
        values["text_sha256"] = response_digest(response)
        # One text may rest on different passages in different runs, so the row names a run.
        if values.get("run_id") is None and response.runs:
            values["run_id"] = min((entry.run_id for entry in response.runs), key=natural_key)
    return []


def _add_grade(values: dict[str, Any], meanings: GradeMeanings) -> list[Fault]:
    grade = values.get("grade")
    criterion = values.get("criterion")
    if isinstance(grade, str) and (meaning := meanings.grade(criterion, grade)) is not None:
        values["grade"] = grade = meaning
    if not isinstance(grade, int | str) or (message := meanings.problem(criterion, grade)) is None:
        return []
    return [("wrong_value", "$.grade", message)]


def _add_plan(values: dict[str, Any], plan: Mapping[tuple[str, str], PlanRow], named: object) -> list[Fault]:
    """Set the inclusion probability and the stratum in place, as the plan gives them.

    `named`: the id in the file, in whose place a pool has its own.
    """
    planned = plan.get((str(values.get("turn_id")), str(values.get("response_id"))))
    if planned is None:
        what, place = ("such text", "$.text_sha256") if named is None else (shown(named), "$.response_id")
        message = f"the plan has no {what} in this turn, so its inclusion probability is unknown"
        return [("not_in_plan", place, message)]
    if isinstance(name := values.get("criterion"), str) and name not in planned.criteria:
        return [("not_in_plan", "$.criterion", f"{shown(name)}: the plan names {', '.join(planned.criteria)}")]
    values["inclusion_probability"] = planned.inclusion_probability
    values["stratum"] = planned.stratum
    if values.get("text_sha256") is None:
        values["text_sha256"] = planned.text_sha256
        values["run_id"] = values.get("run_id") or next(iter(planned.runs), None)
    return []
