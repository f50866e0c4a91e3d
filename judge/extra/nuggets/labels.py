"""Matches: their files, and the label of every pair of response and nugget.

Files are judge's own, people's, nuggetizer's assignments, RAGDoll's verdicts and those of CONE-RAG's study. An
assignment or verdict names no nugget id, so its match is of the nugget that has its text.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from judge.errors import InputError, refuse
from judge.extra.nuggets import (
    BankProblems,
    LabelFailure,
    MatchedNugget,
    MatchLabel,
    Nugget,
    NuggetBank,
    first_object,
)
from judge.extra.nuggets.study import STUDY_LINE, read_study
from judge.gold.rows import text_digest
from judge.io.files import BOM, StrPath, decode_lines, file_in, read_content
from judge.io.ids import natural_key, topic_of
from judge.io.text import count, digest, examples, shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem, file_problem
from judge.results.ranked import first_ranked

MATCHED = "nuggets.json"
"""What the matches in their folder were made of."""
MATCHES, LABEL_FAILURES = "matches.jsonl", "failures.jsonl"
"""The files of a folder that `judge nuggets match` wrote."""
ASSIGNED_BY = {"nuggets": "nuggetizer", "criteria": "ragdoll"}
"""What stands for the judge, by what a line lists: the file does not say which model assigned."""
PEOPLE = "people"
"""What stands for the assessor of assignments that people made."""
Assignment = Literal["support", "partial_support", "not_support", "failed"]
CriterionVerdict = Literal["satisfied", "partially_satisfied", "not_satisfied", "failed"]
LABELS: Mapping[Assignment | CriterionVerdict, MatchLabel] = {
    "support": "supports", "partial_support": "partly", "not_support": "does_not",
    "satisfied": "supports", "partially_satisfied": "partly", "not_satisfied": "does_not",
}  # fmt: skip
"""Assignment or verdict to label; `failed` has none, because the reply could not be read or no model answered."""
_ORDER: tuple[MatchLabel, ...] = ("contradicts", "does_not", "partly", "supports")
"""The labels from worst to best for the response."""

PairKey = tuple[str, str]
"""A response id and a nugget id."""


class PairLabels(NamedTuple):
    """What is known of pairs of response and nugget."""

    labels: dict[PairKey, MatchLabel]
    failures: dict[PairKey, LabelFailure]
    """Why a label is missing."""
    inclusion: dict[PairKey, float]
    """The probability with which a person was to match the pair, where the file says so."""
    outside: int
    """Rows of responses that the pool does not have."""
    people: bool
    """Whether people matched; False if judges did."""
    repeated: int = 0
    """Rows left out: another run has the same response, and its row, which says something else, came first."""

    @property
    def notes(self) -> tuple[str, ...]:
        """In words, what rows were not used."""
        notes: list[str] = []
        if self.outside:
            notes.append(f"{count(self.outside, 'match', 'matches')} of responses that are not in the pool")
        if self.repeated:
            notes.append(
                f"{count(self.repeated, 'match', 'matches')} left out: another run's match of the same response and "
                "nugget came first, and differs"
            )
        return tuple(notes)


class _MatchLine(MatchedNugget, frozen=True, forbid_unknown_fields=True):
    topic_id: str | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class _AssignedList(NamedTuple):
    """The nuggets that a file of assignments lists for the answer of a run."""

    turn_id: str
    run_id: str
    judge: str
    listed: frozenset[str]
    """SHA-256 of the text of each."""
    failed: frozenset[str]
    """Those that nobody managed to assign."""


def read_matches(path: StrPath) -> tuple[MatchedNugget, ...]:
    """The rows of a file of matches, gzipped or not, in its order."""
    return _read_matches(Path(path), by_people=False)[0]


def _read_matches(path: Path, *, by_people: bool) -> tuple[tuple[MatchedNugget, ...], tuple[_AssignedList, ...]]:
    """The rows of a file of matches, and its lists of nuggets where it has such.

    `by_people`: assignments, which do not say who made them, are people's.
    """
    content = read_content(path).removeprefix(BOM)
    first = content.lstrip().partition(b"\n")[0].decode(errors="replace").strip()
    if STUDY_LINE.fullmatch(first) and not first_object(content):
        return read_study(path), ()
    if any(isinstance(first_object(content).get(name), list) for name in ASSIGNED_BY):
        rows, lists = _assignments(content, str(path))
        if by_people:
            rows = tuple(msgspec.structs.replace(row, judge=None, assessor=PEOPLE) for row in rows)
            lists = ()
        return rows, lists
    return parse_matches(content, str(path)), ()


def parse_matches(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The rows in the bytes of a JSONL file of matches, called `name` in messages."""
    rows: list[MatchedNugget] = []
    problems: list[Problem] = []
    first: dict[object, int] = {}
    for number, line in decode_lines(content, _MatchLine, name, "bad_match", problems):
        message = None
        if (line.assessor is None) == (line.judge is None):
            message = "expected `assessor` for a person's match, or `judge` for a judge's"
        elif line.response_id is None and line.run_id is None:
            message = "expected `response_id`, or `run_id` for the response that a run ranked first"
        else:
            key = line.turn_id, line.response_id, line.run_id, line.nugget_id, line.assessor, line.judge
            earlier = first.setdefault(key, number)
            if earlier != number:
                who = "judge" if line.judge else "assessor"
                message = f"the same pair by the same {who} is on line {earlier}"
        if message is not None:
            problems.append(file_problem("bad_match", name, message, f"line {number}: $", turn_id=line.turn_id))
        rows.append(line)
    if not rows and not problems:
        problems.append(file_problem("empty_file", name, "expected one match or more"))
    refuse(problems, f"{name}: not usable as matches: {count(len(problems), 'problem')}")
    return tuple(rows)


def read_labels_of(
    given: Sequence[StrPath], bank: NuggetBank, pool: Pool, renamed: Mapping[str, str], *, by_people: bool = False
) -> PairLabels:
    """The labels of files and folders of matches, joined to a bank and a pool.

    `by_people`: assignments, which do not say who made them, are people's.
    """
    rows: list[MatchedNugget] = []
    failures = _failures_of(given)
    for path in given:
        matches, lists = _read_matches(Path(file_in(path, MATCHES)), by_people=by_people)
        rows += matches
        failures += _unassigned(lists, bank, pool, renamed)
    return join(rows, failures, bank, pool, ", ".join(map(str, given)), renamed)


def _failures_of(given: Sequence[StrPath]) -> list[LabelFailure]:
    """The missing labels of folders; none if a folder has no file of them."""
    found: list[LabelFailure] = []
    for path in filter(Path.exists, (path / LABEL_FAILURES for path in map(Path, given) if path.is_dir())):
        problems: list[Problem] = []
        lines = decode_lines(read_content(path), LabelFailure, str(path), "bad_failure", problems)
        found += [failure for _, failure in lines]
        refuse(problems, f"{path}: not usable as missing labels")
    return found


class _AssignedNugget(msgspec.Struct, frozen=True):
    """A nugget with its assignment, or a criterion with its verdict."""

    text: str
    assignment: Assignment | None = None
    verdict: CriterionVerdict | None = None


class _AssignedAnswer(msgspec.Struct, frozen=True):
    """One line of assignments; the text of the answer and what else stands there is not read."""

    qid: str
    nuggets: list[_AssignedNugget] | None = None
    criteria: list[_AssignedNugget] | None = None
    run_id: str | None = None


def _assignments(content: bytes, name: str) -> tuple[tuple[MatchedNugget, ...], tuple[_AssignedList, ...]]:
    """The matches in the bytes of a file of assignments, and its lists; what failed to be assigned is no match."""
    rows: list[MatchedNugget] = []
    lists: list[_AssignedList] = []
    problems = BankProblems(name)
    for number, line in problems.lines(content, _AssignedAnswer, "bad_match"):
        path = f"line {number}: $"
        scope = problems.scope(f"{path}.qid", line.qid)
        if not line.run_id:
            message = "expected the run whose answer it is; assignments of passages are no matches of responses"
            problems.add("missing_field", f"{path}.run_id", message)
        if first := problems.earlier((line.qid, line.run_id), f"line {number}"):
            problems.add("duplicate_row", path, f"this answer of {shown(line.run_id)} is already on {first}")
        if (line.nuggets is None) == (line.criteria is None):
            problems.add("missing_field", path, "expected either `nuggets` or `criteria`")
        held, field = ("nuggets", "assignment") if line.criteria is None else ("criteria", "verdict")
        # A topic that a run answers as a whole is one turn.
        turn_id = (scope or ("", None))[1] or f"{line.qid}_1"
        listed: set[str] = set()
        failed: set[str] = set()
        for place, each in enumerate(getattr(line, held) or ()):
            at = f"{path}.{held}[{place}]"
            text = problems.text(f"{at}.text", each.text)
            assigned = getattr(each, field)
            if assigned is None:
                problems.add("missing_field", at, f"`{field}` is missing")
            elif text is not None:
                sha256 = digest(text)
                listed.add(sha256)
                if assigned not in LABELS:
                    failed.add(sha256)
                    continue
                of: dict[str, Any] = {"nugget_sha256": sha256, "run_id": line.run_id, "judge": ASSIGNED_BY[held]}
                rows.append(MatchedNugget(turn_id, f"{line.qid}/{place + 1}", LABELS[assigned], **of))
        assigned_list = _AssignedList(
            turn_id=turn_id,
            run_id=line.run_id or "",
            judge=ASSIGNED_BY[held],
            listed=frozenset(listed),
            failed=frozenset(failed),
        )
        lists.append(assigned_list)
    if not rows and not problems:
        problems.add("empty_file", "", "expected one assignment or more that did not fail")
    refuse(problems, f"{name}: not usable as assignments: {count(len(problems), 'problem')}")
    return tuple(rows), tuple(lists)


def _unassigned(
    lists: Iterable[_AssignedList], bank: NuggetBank, pool: Pool, renamed: Mapping[str, str]
) -> list[LabelFailure]:
    """What a file of assignments was to say of an answer, and does not: nuggetizer counts it as the worst.

    A list is of the turn or topic whose nuggets it names, and lacks the other ones of that.
    """
    firsts = first_ranked(pool)
    scopes = bank.by_scope()
    lacking: list[LabelFailure] = []
    for each in lists:
        response = firsts.get(renamed.get(each.run_id, each.run_id), {}).get(each.turn_id)
        if response is None:
            continue
        for scope in (each.turn_id, topic_of(each.turn_id)):
            nuggets = {nugget.nugget_id: digest(nugget.text) for nugget in scopes.get(scope, ())}
            if each.listed.isdisjoint(nuggets.values()) and (each.listed or scope != each.turn_id):
                continue
            for nugget_id, sha256 in nuggets.items():
                if sha256 in each.listed - each.failed:
                    continue
                reason: Literal["failed", "not_listed"] = "failed" if sha256 in each.failed else "not_listed"
                failure = LabelFailure(
                    turn_id=each.turn_id,
                    nugget_id=nugget_id,
                    response_id=response.response_id,
                    reason=reason,
                    detail="the file says that it failed"
                    if reason == "failed"
                    else "the file does not list the nugget",
                    judge=each.judge,
                )
                lacking.append(failure)
    return lacking


def join(
    rows: Sequence[MatchedNugget],
    failures: Sequence[LabelFailure],
    bank: NuggetBank,
    pool: Pool,
    name: str,
    renamed: Mapping[str, str] | None = None,
) -> PairLabels:
    """The label of every pair of response and nugget that was matched.

    Each judge and each assessor has one vote. Where several judges or several people matched a pair, the label that
    most of them gave counts; of labels that are given equally often, the worse one for the response. Where the same
    text stands in several runs, and its rows differ, the first counts. `renamed` has the name of a run in the matches
    and its id in the pool; `name` names the files in messages.
    """
    votes: dict[PairKey, list[MatchLabel]] = {}
    voted: dict[tuple[PairKey, str | None, str | None], tuple[str, MatchLabel]] = {}
    inclusion: dict[PairKey, float] = {}
    outside = 0
    repeated = 0
    problems: list[Problem] = []

    def add(row: MatchedNugget, message: str) -> None:
        where = f"nugget {shown(row.nugget_id)}"
        problems.append(file_problem("bad_match", name, message, where, turn_id=row.turn_id))

    place_of = _places(bank, pool, renamed or {})
    for row in rows:
        response, nugget, run_id, message = place_of(row)
        if message is not None:
            add(row, message)
        elif response is None or nugget is None:
            outside += 1
        else:
            key = response.response_id, nugget.nugget_id
            vote = run_id, row.label
            earlier = voted.setdefault((key, row.judge, row.assessor), vote)
            if earlier is vote:
                votes.setdefault(key, []).append(row.label)
            # One response may be that of several runs: rows that name it by its runs are one vote.
            elif earlier[0] == run_id or "" in (earlier[0], run_id):
                add(row, f"a second match of {key[0]} by {shown(row.judge or row.assessor or '')}: expected one")
            elif earlier[1] != row.label:
                repeated += 1
            drawn = row.inclusion_probability
            if drawn is not None and inclusion.setdefault(key, drawn) != drawn:
                add(row, f"two inclusion probabilities for {key[0]}: expected one")
    refuse(problems, f"{name}: not matches of this bank: {count(len(problems), 'row')} with problems")
    people = {row.assessor is not None for row in rows}
    if len(people) > 1:
        raise InputError(f"{name}: matches of people and of judges: give those of judges alone, people's with --gold")
    if rows and not votes:
        raise InputError(
            f"{name}: no match is of a response of the pool; a row names it by `response_id`, or by `turn_id` and a "
            f"`run_id` of the pool (--rename gives another name of a run){_runs_in_words(rows, pool)}"
        )
    # The first of several that are equally frequent.
    labels = {key: max(_ORDER, key=given.count) for key, given in votes.items()}
    missing = {(each.response_id, each.nugget_id): each for each in failures}
    missing = {key: each for key, each in missing.items() if key not in labels}
    return PairLabels(
        labels=labels,
        failures=missing,
        inclusion=inclusion,
        outside=outside,
        people=True in people,
        repeated=repeated,
    )


def _runs_in_words(rows: Sequence[MatchedNugget], pool: Pool) -> str:
    """The first runs that rows name and those that the pool has, where they are others."""
    named = sorted({row.run_id for row in rows if row.run_id is not None}, key=natural_key)
    pooled = sorted({entry.run_id for response in pool.responses for entry in response.runs}, key=natural_key)
    if not named or not pooled or not set(named).isdisjoint(pooled):
        return ""
    return f": the rows name {examples(map(shown, named), 3)}, and the pool has {examples(map(shown, pooled), 3)}"


_Place = tuple[PooledResponse | None, Nugget | None, str, str | None]


def _places(bank: NuggetBank, pool: Pool, renamed: Mapping[str, str]) -> Callable[[MatchedNugget], _Place]:
    """Finds the response and the nugget of a row, the run that names the response, and why the row is of neither."""
    nuggets = {nugget.nugget_id: nugget for nugget in bank.nuggets}
    by_text = {(nugget.scope, digest(nugget.text)): nugget for nugget in reversed(bank.nuggets)}
    responses = {response.response_id: response for response in pool.responses}
    firsts = first_ranked(pool)

    def place_of(row: MatchedNugget) -> _Place:
        nugget = nuggets.get(row.nugget_id)
        sha256 = row.nugget_sha256
        if sha256 is not None and (nugget is None or digest(nugget.text) != sha256):
            # The label is of a text: under whichever id the bank has it in this turn or topic.
            keys = ((row.turn_id, sha256), (topic_of(row.turn_id), sha256))
            nugget = next((by_text[key] for key in keys if key in by_text), nugget)
        run_id = ""
        response = responses.get(row.response_id or "")
        if row.response_id is None:
            run_id = renamed.get(row.run_id or "", row.run_id or "")
            response = firsts.get(run_id, {}).get(row.turn_id)
        message = None
        if nugget is None:
            message = "the bank has no such nugget"
        elif sha256 is not None and sha256 != digest(nugget.text):
            message = "the text of the nugget has changed since it was matched: match again"
        elif response is None or response.turn_id != row.turn_id:
            response = None
        elif row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
            message = f"the pool has another text as {response.response_id}: the match is of another pool"
        elif nugget.scope not in (response.turn_id, response.topic_id):
            message = f"the nugget is of {shown(nugget.scope)}, and the response of turn {shown(row.turn_id)}"
        return response, nugget, run_id, message

    return place_of
