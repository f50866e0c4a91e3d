"""Files of matches and of claims: judge's own, people's, nuggetizer's assignments and those of CONE-RAG's study.

An assignment of nuggetizer names no nugget id, so its match is of the nugget that has its text.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from judge.crowd.released import STUDY_LINE, read_study
from judge.errors import InputError
from judge.extra.nuggets.forms.own import first_object
from judge.extra.nuggets.forms.problems import BankProblems
from judge.extra.nuggets.labels import KnownClaims, PairLabels, join, join_claims
from judge.extra.nuggets.records import LabelFailure, MatchedNugget, MatchLabel, NuggetBank, ResponseClaims
from judge.io.cells import count
from judge.io.line_stream import decode_lines
from judge.io.paths import StrPath, file_in
from judge.io.safe import digest, shown
from judge.io.stored import read_stored, unpack
from judge.pool.records import Pool
from judge.records import Problem
from judge.runs.fields import usable_turn_id

MATCHES, CLAIMS, LABEL_FAILURES = "matches.jsonl", "claims.jsonl", "failures.jsonl"
"""The files of a folder that `judge nuggets match` or `claims` wrote."""
ASSIGNED_BY = "nuggetizer"
"""What stands for the judge: the file does not say which model assigned."""
Assignment = Literal["support", "partial_support", "not_support", "failed"]
LABELS: Mapping[Assignment, MatchLabel] = {
    "support": "supports",
    "partial_support": "partly",
    "not_support": "does_not",
}
"""Assignment to label; `failed` has none, because no model answered."""


class _MatchLine(MatchedNugget, frozen=True, forbid_unknown_fields=True):
    """A line of a file of matches."""

    topic_id: str | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None

    def lack(self) -> str | None:
        """Why the line says nothing."""
        named = self.response_id is not None or self.run_id is not None
        return None if named else "expected `response_id`, or `run_id` for the response that a run ranked first"


class _ClaimsLine(ResponseClaims, frozen=True, forbid_unknown_fields=True):
    """A line of a file of claims."""

    topic_id: str | None = None

    def lack(self) -> str | None:
        """Why the line says nothing."""
        shown = "passage" not in self.labels or self.passages
        return None if shown else 'the label "passage" without `"passages": true`, which says that passages were shown'


class _LabelFile(NamedTuple):
    """A kind of file of labels, and how messages name it."""

    line: type[Any]
    key: tuple[str, ...]
    """The fields that say who labeled what; a file has one line for it."""
    code: str
    what: str
    by_one: str
    of: str
    expected: str


_MATCH_FILE = _LabelFile(
    line=_MatchLine,
    key=("turn_id", "response_id", "run_id", "nugget_id", "assessor", "judge"),
    code="bad_match",
    what="matches",
    by_one="match",
    of="pair",
    expected="one match or more",
)
_CLAIMS_FILE = _LabelFile(
    line=_ClaimsLine,
    key=("response_id", "assessor", "judge"),
    code="bad_claims",
    what="claims",
    by_one="labels",
    of="response",
    expected="the labels of one response or more",
)


def read_matches(path: StrPath) -> tuple[MatchedNugget, ...]:
    """The rows of a file of matches, gzipped or not, in its order."""
    path = Path(path)
    content = _content(path)
    first = content.lstrip().partition(b"\n")[0].decode(errors="replace").strip()
    if STUDY_LINE.fullmatch(first) and not first_object(content):
        return tuple(
            MatchedNugget(
                turn_id=match.turn_id,
                nugget_id=f"{match.turn_id}/{match.nugget}",
                label="supports" if match.yes else "does_not",
                run_id=match.run_id,
                # The same pair in another task is another person's label of it.
                assessor=f"task {match.task}",
            )
            for match in read_study(path)
        )
    assigned = isinstance(first_object(content).get("nuggets"), list)
    return _assignments(content, str(path)) if assigned else parse_matches(content, str(path))


def parse_matches(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The rows in the bytes of a JSONL file of matches, called `name` in messages."""
    return _label_lines(content, name, _MATCH_FILE)


def read_claims(path: StrPath) -> tuple[ResponseClaims, ...]:
    """The rows of a file of claims, gzipped or not, in its order."""
    return parse_claims(_content(Path(path)), str(path))


def parse_claims(content: bytes, name: str) -> tuple[ResponseClaims, ...]:
    """The rows in the bytes of a JSONL file of claims, called `name` in messages."""
    return _label_lines(content, name, _CLAIMS_FILE)


def read_labels_of(given: Sequence[StrPath], bank: NuggetBank, pool: Pool, renamed: Mapping[str, str]) -> PairLabels:
    """The labels of files and folders of matches, joined to a bank and a pool."""
    rows = [row for path in given for row in read_matches(file_in(path, MATCHES))]
    return join(rows, _failures_of(given), bank, pool, ", ".join(map(str, given)), renamed)


def read_claims_of(given: Sequence[StrPath], bank: NuggetBank, pool: Pool) -> KnownClaims:
    """The labels of files and folders of claims, joined to a bank and a pool."""
    rows = [row for path in given for row in read_claims(file_in(path, CLAIMS))]
    return join_claims(rows, _failures_of(given), bank, pool, ", ".join(map(str, given)))


def _failures_of(given: Sequence[StrPath]) -> list[LabelFailure]:
    """The missing labels of folders; none if a folder has no file of them."""
    paths = [path / LABEL_FAILURES for path in map(Path, given) if path.is_dir()]
    found: list[LabelFailure] = []
    for path in paths:
        lines = decode_lines(_content(path), LabelFailure, str(path), "bad_failure") if path.exists() else ()
        rows = [row for _, row in lines]
        if problems := [row for row in rows if isinstance(row, Problem)]:
            raise InputError(f"{path}: not usable as missing labels", problems)
        found += [row for row in rows if isinstance(row, LabelFailure)]
    return found


def _content(path: Path) -> bytes:
    return unpack(read_stored(path), str(path)).removeprefix(b"\xef\xbb\xbf")


def _label_lines(content: bytes, name: str, form: _LabelFile) -> tuple[Any, ...]:
    rows: list[Any] = []
    problems: list[Problem] = []
    first: dict[object, int] = {}
    for number, line in decode_lines(content, form.line, name, form.code):
        if isinstance(line, Problem):
            problems.append(line)
            continue
        message = line.lack()
        if (line.assessor is None) == (line.judge is None):
            message = f"expected `assessor` for a person's {form.by_one}, or `judge` for a judge's"
        elif message is None:
            earlier = first.setdefault(tuple(getattr(line, name) for name in form.key), number)
            who = "judge" if line.judge else "assessor"
            message = None if earlier == number else f"the same {form.of} by the same {who} is on line {earlier}"
        if message is not None:
            problems.append(Problem(form.code, "error", name, line.turn_id, f"line {number}: $", message))
        rows.append(line)
    if not rows and not problems:
        problems.append(Problem("empty_file", "error", name, None, "", f"expected {form.expected}"))
    if problems:
        raise InputError(f"{name}: not usable as {form.what}: {count(len(problems), 'problem')}", problems)
    return tuple(rows)


class _AssignedNugget(msgspec.Struct, frozen=True):
    """One nugget with what a response does with it."""

    text: str
    assignment: Assignment


class _AssignedAnswer(msgspec.Struct, frozen=True):
    """One line of assignments; the text of the answer and what else stands there is not read."""

    qid: str
    nuggets: list[_AssignedNugget]
    run_id: str | None = None


def _assignments(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The matches in the bytes of a file of assignments; what nuggetizer failed to assign is missing."""
    rows: list[MatchedNugget] = []
    problems = BankProblems(name)
    lines: dict[tuple[str, str], int] = {}
    for number, line in problems.sound(decode_lines(content, _AssignedAnswer, name, "bad_match")):
        path = f"line {number}: $"
        before = len(problems)
        if not usable_turn_id(line.qid):
            expected = "expected the id of a turn such as 9-1_3, because a run answers each once"
            problems.add("bad_id", f"{path}.qid", f"{expected}; found {shown(line.qid)}")
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
