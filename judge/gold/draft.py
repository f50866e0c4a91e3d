"""From what a file of grades says to gold rows: options and texts added, every fault found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError
from judge.gold.plan import PlanRow
from judge.gold.rows import GoldRow, field_faults, row_key, text_digest
from judge.pool.build import Candidate
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem
from judge.runs.document import open_document
from judge.text.ids import natural_key, topic_of
from judge.text.safe import shown, storable


class Draft(msgspec.Struct):
    """One grade as a file gives it."""

    file: str
    place: str
    values: dict[str, Any]
    """Fields of a gold row; those that are None are open."""

    def problem(self, code: str, where: str, message: str) -> Problem:
        """An error at this place."""
        turn_id = self.values.get("turn_id")
        path = ": ".join(part for part in (self.place, where) if part)
        return Problem(code, "error", self.file, turn_id if isinstance(turn_id, str) else None, path, message)


class Found(msgspec.Struct):
    """What a source holds."""

    defaults: dict[str, Any] = {}
    """Fields that neither the file nor the options give."""
    drafts: list[Draft] = []
    candidates: list[Candidate] = []
    """The graded responses, if the source has their texts."""
    problems: list[Problem] = []
    notes: list[str] = []


class ImportOptions(msgspec.Struct, frozen=True):
    """What the user adds to a source."""

    constants: Mapping[str, Any] = {}
    """Field to value, where the file says nothing."""
    columns: Mapping[str, str] = {}
    """Field to column of a table."""
    bank: Mapping[str, str] | None = None
    """Response id to text."""
    pool: Pool | None = None
    plan: Mapping[tuple[str, str], PlanRow] | None = None
    """The plan that the responses were drawn by, by turn and response id."""
    generic_as_zero: bool = False
    """BEGIN's generic responses as not attributable; otherwise they are left out."""


def complete(found: Found, options: ImportOptions) -> tuple[GoldRow, ...]:
    """The gold rows; faults go to the problems, what the user should know to the notes.

    Where one text stands in a turn under two ids (as in CAsT-ReGIn), its second grade is that of a second assessor
    (`crowd#2`): two judgments of one response, neither lost.
    """
    rows: dict[tuple[str | None, ...], tuple[Draft, GoldRow]] = {}
    by_id = {(one.turn_id, one.response_id): one for one in options.pool.responses} if options.pool else None
    again = 0
    for draft in found.drafts:
        values = draft.values
        for field, value in (*options.constants.items(), *found.defaults.items()):
            if values.get(field) is None:
                values[field] = value
        if isinstance(turn_id := values.get("turn_id"), str) and values.get("topic_id") is None:
            values["topic_id"] = topic_of(turn_id)
        faults = _add_text(values, options, by_id) + _add_plan(values, options.plan)
        values = {field: value for field, value in values.items() if value is not None}
        # A missing turn is fault enough: the topic is taken from it.
        faults += [fault for fault in field_faults(values) if fault[1] != "$.topic_id" or "turn_id" in values]
        if faults:
            found.problems += (draft.problem(code, where, message) for code, where, message in faults)
            continue
        row = GoldRow(**values)
        number = 1
        while (other := rows.get(row_key(row))) and other[1].response_id != row.response_id:
            number += 1
            row = msgspec.structs.replace(row, assessor=f"{values['assessor']}#{number}")
        if other:
            message = f"the same response, criterion and assessor are already at {other[0].place} of {other[0].file}"
            found.problems.append(draft.problem("duplicate_row", "$", message))
            continue
        again += number > 1
        rows[row_key(row)] = draft, row
    if again:
        found.notes.append(f"{again} grades are of texts that have one in the same turn already: assessor ends in #2")
    return tuple(row for _, row in rows.values())


def read_bank(path: Path) -> dict[str, str]:
    """The texts of a response bank, a JSON object from id to text.

    Raises:
        InputError: The file cannot be read or is no bank.
    """
    document = open_document(path)
    errors = [problem for problem in document.problems if problem.severity == "error"]
    if not errors and not isinstance(document.value, dict):
        errors = [Problem("not_a_bank", "error", document.file, None, "$", "expected an object from id to text")]
    for item_id, text in (document.value or {}).items() if not errors else ():
        if not isinstance(text, str) or not storable(text):
            message = f"{shown(text)}: expected a text without NUL and lone surrogates"
            errors.append(Problem("not_a_bank", "error", document.file, None, f"$[{shown(item_id)}]", message))
    if errors:
        raise InputError(f"{path}: not usable as a response bank", errors)
    bank: dict[str, str] = document.value
    return bank


def _add_text(
    values: dict[str, Any], options: ImportOptions, by_id: Mapping[tuple[str, str], PooledResponse] | None
) -> list[tuple[str, str, str]]:
    """Name the response by its text, in place: the text given, or the bank's or the pool's under its id."""
    text, response_id = values.pop("text", None), values.get("response_id")
    if values.get("text_sha256") is None and text is not None:
        values["text_sha256"] = text_digest(text)
    if values.get("text_sha256") is not None or not isinstance(response_id, str):
        return []
    if options.bank is not None:
        if response_id not in options.bank:
            return [("not_in_bank", "$.response_id", f"{shown(response_id)} has no text in the bank")]
        values["text_sha256"] = text_digest(options.bank[response_id])
    if by_id is not None:
        response = by_id.get((str(values.get("turn_id")), response_id))
        if response is None:
            return [("not_in_pool", "$.response_id", f"the pool has no {shown(response_id)} in this turn")]
        values["text_sha256"] = text_digest(response.text)
        # The run tells the same text with other passages apart.
        if values.get("run_id") is None and response.runs:
            values["run_id"] = min((entry.run_id for entry in response.runs), key=natural_key)
    return []


def _add_plan(values: dict[str, Any], plan: Mapping[tuple[str, str], PlanRow] | None) -> list[tuple[str, str, str]]:
    """Take over with which probability a response was drawn, in place."""
    if plan is None:
        return []
    planned = plan.get((str(values.get("turn_id")), str(values.get("response_id"))))
    if planned is None:
        named = shown(values.get("response_id"))
        return [("not_in_plan", "$.response_id", f"the plan has no {named} in this turn: how it was drawn is unknown")]
    values["inclusion_probability"] = planned.inclusion_probability
    values["stratum"] = planned.stratum
    if values.get("text_sha256") is None:
        values["text_sha256"] = planned.text_sha256
        values["run_id"] = values.get("run_id") or next(iter(planned.runs), None)
    return []
