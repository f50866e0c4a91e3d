"""nuggetizer's assignments as matches: a line for each answer of a run, with an assignment for every nugget. Pure.

A nugget has no id there, so a match is of the nugget that has its text.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.nuggets.forms.own import first_object
from judge.nuggets.forms.problems import BankProblems
from judge.nuggets.records import MatchedNugget, MatchLabel
from judge.records import Problem
from judge.runs.fields import usable_turn_id
from judge.text.cells import count
from judge.text.safe import digest, shown

ASSIGNED_BY = "nuggetizer"
"""What stands for the judge: the file does not say which model assigned."""
Assignment = Literal["support", "partial_support", "not_support", "failed"]
LABELS: Mapping[Assignment, MatchLabel] = {
    "support": "supports",
    "partial_support": "partly",
    "not_support": "does_not",
}
"""Assignment to label; `failed` has none, because no model answered."""


class _Assigned(msgspec.Struct, frozen=True):
    """One nugget with what a response does with it."""

    text: str
    assignment: Assignment


class _Answer(msgspec.Struct, frozen=True):
    """One line; the text of the answer and what else stands there is not read."""

    qid: str
    nuggets: list[_Assigned]
    run_id: str | None = None


def is_assignments(content: bytes) -> bool:
    """Whether the first line is an object with a list of nuggets."""
    return isinstance(first_object(content).get("nuggets"), list)


def parse_assignments(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The matches in the bytes of a file of assignments; what nuggetizer failed to assign is missing.

    Args:
        content: The bytes, not gzipped.
        name: The file's name, for messages.

    Raises:
        InputError: There is no match, or lines have problems; every problem is listed.
    """
    rows: list[MatchedNugget] = []
    problems = BankProblems(name)
    lines: dict[tuple[str, str], int] = {}
    for number, line in decode_lines(content, _Answer, name, "bad_match"):
        if problems.full:
            break
        if isinstance(line, Problem):
            problems.append(line)
            continue
        path = f"line {number}: $"
        before = len(problems)
        if not usable_turn_id(line.qid):
            message = (
                f"expected the id of a turn such as 9-1_3, because a run answers each once; found {shown(line.qid)}"
            )
            problems.add("bad_id", f"{path}.qid", message)
        if not line.run_id:
            message = "expected the run whose answer it is; assignments of passages are no matches of responses"
            problems.add("missing_field", f"{path}.run_id", message)
        first = lines.setdefault((line.qid, line.run_id or ""), number)
        if first != number:
            problems.add("duplicate_row", path, f"this answer of {shown(line.run_id)} is already on line {first}")
        texts = [problems.text(f"{path}.nuggets[{place}].text", each.text) for place, each in enumerate(line.nuggets)]
        if len(problems) > before:
            continue
        rows += [
            MatchedNugget(
                turn_id=line.qid,
                nugget_id=f"{line.qid}/{place}",
                label=LABELS[each.assignment],
                nugget_sha256=digest(text or ""),
                run_id=line.run_id,
                judge=ASSIGNED_BY,
            )
            for place, (each, text) in enumerate(zip(line.nuggets, texts, strict=True), 1)
            if each.assignment in LABELS
        ]
    if not rows and not problems:
        problems.add("empty_file", "", "expected one assignment or more that did not fail")
    if problems:
        raise InputError(f"{name}: not usable as assignments: {count(len(problems), 'problem')}", problems)
    return tuple(rows)
