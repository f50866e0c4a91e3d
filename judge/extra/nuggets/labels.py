"""Labels of matches and of claims: their files, and the label of every pair and of every sentence.

Files are judge's own, people's, nuggetizer's assignments, RAGDoll's verdicts and those of CONE-RAG's study. An
assignment or verdict names no nugget id, so its match is of the nugget that has its text.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from judge.crowd.released import STUDY_LINE, read_study
from judge.errors import InputError, refuse
from judge.extra.nuggets import (
    CLAIM_LABELS,
    BankProblems,
    ClaimLabel,
    LabelFailure,
    MatchedNugget,
    MatchLabel,
    Nugget,
    NuggetBank,
    ResponseClaims,
    first_object,
)
from judge.gold.rows import text_digest
from judge.io.files import BOM, StrPath, decode_lines, file_in, read_content
from judge.io.ids import topic_of
from judge.io.text import count, digest, shown
from judge.io.words import split_sentences
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem, file_problem
from judge.results.turns import first_ranked

MATCHES, CLAIMS, LABEL_FAILURES = "matches.jsonl", "claims.jsonl", "failures.jsonl"
"""The files of a folder that `judge nuggets match` or `claims` wrote."""
ASSIGNED_BY = {"nuggets": "nuggetizer", "criteria": "ragdoll"}
"""What stands for the judge, by what a line lists: the file does not say which model assigned."""
Assignment = Literal["support", "partial_support", "not_support", "failed"]
CriterionVerdict = Literal["satisfied", "partially_satisfied", "not_satisfied", "failed"]
LABELS: Mapping[Assignment | CriterionVerdict, MatchLabel] = {
    "support": "supports", "partial_support": "partly", "not_support": "does_not",
    "satisfied": "supports", "partially_satisfied": "partly", "not_satisfied": "does_not",
}  # fmt: skip
"""Assignment or verdict to label; `failed` has none, because no model answered."""
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


class KnownClaims(NamedTuple):
    """What is known of the sentences of responses."""

    labels: dict[str, tuple[ClaimLabel, ...]]
    """Response id to the labels of its sentences."""
    failures: dict[str, LabelFailure]
    """Response id to why labels are missing."""
    passages: bool
    """Whether passages may carry a sentence."""
    outside: int
    """Rows of responses that the pool does not have."""


class _MatchLine(MatchedNugget, frozen=True, forbid_unknown_fields=True):
    topic_id: str | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None

    key: ClassVar = ("turn_id", "response_id", "run_id", "nugget_id", "assessor", "judge")
    """The fields that say who labeled what; a file has one line for it."""
    code: ClassVar = "bad_match"
    words: ClassVar = ("matches", "match", "pair", "one match or more")
    """How messages call the file, what one person gives, of what, and what a file has."""

    def lack(self) -> str | None:
        named = self.response_id is not None or self.run_id is not None
        return None if named else "expected `response_id`, or `run_id` for the response that a run ranked first"


class _ClaimsLine(ResponseClaims, frozen=True, forbid_unknown_fields=True):
    topic_id: str | None = None

    key: ClassVar = ("response_id", "assessor", "judge")
    code: ClassVar = "bad_claims"
    words: ClassVar = ("claims", "labels", "response", "the labels of one response or more")

    def lack(self) -> str | None:
        shown = "passage" not in self.labels or self.passages
        return None if shown else 'the label "passage" without `"passages": true`, which says that passages were shown'


def read_matches(path: StrPath) -> tuple[MatchedNugget, ...]:
    """The rows of a file of matches, gzipped or not, in its order."""
    path = Path(path)
    content = read_content(path).removeprefix(BOM)
    first = content.lstrip().partition(b"\n")[0].decode(errors="replace").strip()
    if STUDY_LINE.fullmatch(first) and not first_object(content):
        return tuple(
            MatchedNugget(
                turn_id=turn_id,
                nugget_id=f"{turn_id}/{nugget}",
                label="supports" if yes else "does_not",
                run_id=run_id,
                # The same pair in another task is another person's label of it.
                assessor=f"task {task}",
            )
            for task, turn_id, nugget, run_id, yes in read_study(path)
        )
    assigned = any(isinstance(first_object(content).get(name), list) for name in ASSIGNED_BY)
    return _assignments(content, str(path)) if assigned else parse_matches(content, str(path))


def parse_matches(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The rows in the bytes of a JSONL file of matches, called `name` in messages."""
    return _label_lines(content, name, _MatchLine)


def read_claims(path: StrPath) -> tuple[ResponseClaims, ...]:
    """The rows of a file of claims, gzipped or not, in its order."""
    return parse_claims(read_content(path), str(path))


def parse_claims(content: bytes, name: str) -> tuple[ResponseClaims, ...]:
    """The rows in the bytes of a JSONL file of claims, called `name` in messages."""
    return _label_lines(content, name, _ClaimsLine)


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
    found: list[LabelFailure] = []
    for path in filter(Path.exists, (path / LABEL_FAILURES for path in map(Path, given) if path.is_dir())):
        problems: list[Problem] = []
        lines = decode_lines(read_content(path), LabelFailure, str(path), "bad_failure", problems)
        found += [failure for _, failure in lines]
        refuse(problems, f"{path}: not usable as missing labels")
    return found


def _label_lines(content: bytes, name: str, form: type[_MatchLine | _ClaimsLine]) -> tuple[Any, ...]:
    what, by_one, of, expected = form.words
    rows: list[Any] = []
    problems: list[Problem] = []
    first: dict[object, int] = {}
    for number, line in decode_lines(content, form, name, form.code, problems):
        message = line.lack()
        if (line.assessor is None) == (line.judge is None):
            message = f"expected `assessor` for a person's {by_one}, or `judge` for a judge's"
        elif message is None:
            earlier = first.setdefault(tuple(getattr(line, name) for name in form.key), number)
            who = "judge" if line.judge else "assessor"
            message = None if earlier == number else f"the same {of} by the same {who} is on line {earlier}"
        if message is not None:
            problems.append(Problem(form.code, "error", name, line.turn_id, f"line {number}: $", message))
        rows.append(line)
    if not rows and not problems:
        problems.append(file_problem("empty_file", name, f"expected {expected}"))
    refuse(problems, f"{name}: not usable as {what}: {count(len(problems), 'problem')}")
    return tuple(rows)


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


def _assignments(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The matches in the bytes of a file of assignments; what nuggetizer failed to assign is missing."""
    rows: list[MatchedNugget] = []
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
        for place, each in enumerate(getattr(line, held) or ()):
            at = f"{path}.{held}[{place}]"
            text, assigned = problems.text(f"{at}.text", each.text), getattr(each, field)
            if assigned is None:
                problems.add("missing_field", at, f"`{field}` is missing")
            elif assigned in LABELS and text is not None:
                of: dict[str, Any] = {"nugget_sha256": digest(text), "run_id": line.run_id, "judge": ASSIGNED_BY[held]}
                rows.append(MatchedNugget(turn_id, f"{line.qid}/{place + 1}", LABELS[assigned], **of))
    if not rows and not problems:
        problems.add("empty_file", "", "expected one assignment or more that did not fail")
    refuse(problems, f"{name}: not usable as assignments: {count(len(problems), 'problem')}")
    return tuple(rows)


def nuggets_for(response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> tuple[Nugget, ...]:
    """The nuggets that a response may say: those of its turn, then those of its topic."""
    return (*scopes.get(response.turn_id, ()), *scopes.get(response.topic_id, ()))


def nuggets_digest(nuggets: Iterable[Nugget]) -> str:
    """SHA-256 over the texts of nuggets, in order."""
    return digest("\n".join(digest(nugget.text) for nugget in nuggets))


class _Votes:
    """The labels that judges or people gave, by what they are of, and what is wrong with their rows.

    Each judge and each assessor has one vote. One response may be that of several runs: rows that name it by its runs
    and give one label are one vote.
    """

    def __init__(self, name: str, code: str) -> None:
        self.of: dict[Any, list[Any]] = {}
        self.outside = 0
        """Rows of responses that the pool does not have."""
        self._name, self._code = name, code
        self._voted: dict[object, tuple[str, object]] = {}
        self._problems: list[Problem] = []

    def take(self, row: MatchedNugget | ResponseClaims, key: object, label: object, run_id: str = "") -> bool:
        """Count the vote of a row; False if its judge or assessor has another one."""
        vote = run_id, label
        earlier = self._voted.setdefault((key, row.judge, row.assessor), vote)
        if earlier is vote:
            self.of.setdefault(key, []).append(label)
        return earlier is vote or not (earlier[0] == run_id or "" in (earlier[0], run_id) or earlier[1] != label)

    def refuse(self, row: MatchedNugget | ResponseClaims, where: str, message: str) -> None:
        """A row that cannot be counted."""
        self._problems.append(Problem(self._code, "error", self._name, row.turn_id, where, message))

    def check(self, what: str) -> None:
        """Refuse the rows if one of them cannot be counted."""
        refuse(self._problems, f"{self._name}: {what.format(count(len(self._problems), 'row'))}")


def join(
    rows: Sequence[MatchedNugget],
    failures: Sequence[LabelFailure],
    bank: NuggetBank,
    pool: Pool,
    name: str,
    renamed: Mapping[str, str] | None = None,
) -> PairLabels:
    """The label of every pair of response and nugget that was matched.

    Where several judges or several people matched a pair, the label that most of them gave counts; of labels that are
    given equally often, the worse one for the response. `renamed` has the name of a run in the matches and its id in
    the pool; `name` names the files in messages.
    """
    votes, inclusion = _Votes(name, "bad_match"), dict[PairKey, float]()
    place_of = _places(bank, pool, renamed or {})
    for row in rows:
        response, nugget, run_id, message = place_of(row)
        where = f"nugget {shown(row.nugget_id)}"
        if message is not None:
            votes.refuse(row, where, message)
        elif response is None or nugget is None:
            votes.outside += 1
        else:
            key = response.response_id, nugget.nugget_id
            if not votes.take(row, key, row.label, run_id):
                who = shown(row.judge or row.assessor or "")
                votes.refuse(row, where, f"a second match of {key[0]} by {who}: expected one")
            drawn = row.inclusion_probability
            if drawn is not None and inclusion.setdefault(key, drawn) != drawn:
                votes.refuse(row, where, f"two inclusion probabilities for {key[0]}: expected one")
    votes.check("not matches of this bank: {} with problems")
    people = {row.assessor is not None for row in rows}
    if len(people) > 1:
        raise InputError(f"{name}: matches of people and of judges: give those of judges alone, people's with --gold")
    if rows and not votes.of:
        raise InputError(
            f"{name}: no match is of a response of the pool; a row names it by `response_id`, or by `turn_id` and a "
            "`run_id` of the pool (--rename gives another name of a run)"
        )
    # The first of several that are equally frequent.
    labels = {key: max(_ORDER, key=given.count) for key, given in votes.of.items()}
    missing = {(each.response_id, each.nugget_id or ""): each for each in failures}
    missing = {key: each for key, each in missing.items() if key not in labels}
    return PairLabels(labels, missing, inclusion, votes.outside, True in people)


_Place = tuple[PooledResponse | None, Nugget | None, str, str | None]


def _places(bank: NuggetBank, pool: Pool, renamed: Mapping[str, str]) -> Callable[[MatchedNugget], _Place]:
    """Finds the response and the nugget of a row, the run that names the response, and why the row is of neither."""
    nuggets = {nugget.nugget_id: nugget for nugget in bank.nuggets}
    by_text = {(nugget.scope, digest(nugget.text)): nugget for nugget in reversed(bank.nuggets)}
    responses = {response.response_id: response for response in pool.responses}
    firsts = first_ranked(pool)

    def place_of(row: MatchedNugget) -> _Place:
        nugget, sha256 = nuggets.get(row.nugget_id), row.nugget_sha256
        if sha256 is not None and (nugget is None or digest(nugget.text) != sha256):
            # The label is of a text: under whichever id the bank has it in this turn or topic.
            keys = ((row.turn_id, sha256), (topic_of(row.turn_id), sha256))
            nugget = next((by_text[key] for key in keys if key in by_text), nugget)
        run_id, response = "", responses.get(row.response_id or "")
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


def join_claims(
    rows: Sequence[ResponseClaims], failures: Sequence[LabelFailure], bank: NuggetBank, pool: Pool, name: str
) -> KnownClaims:
    """The labels of the sentences of every response that was labeled.

    Where several judges or several people labeled a response, the label that most of them gave a sentence counts; of
    labels that are given equally often, the worse one for the response.
    """
    responses = {response.response_id: response for response in pool.responses}
    scopes, votes = bank.by_scope(), _Votes(name, "bad_claims")
    for row in rows:
        response = responses.get(row.response_id)
        if response is None or response.turn_id != row.turn_id:
            votes.outside += 1
            continue
        message = _mismatch(row, response, scopes)
        if not votes.take(row, row.response_id, row.labels) and message is None:
            message = f"labeled a second time by {row.judge or row.assessor}: expected once"
        if message is not None:
            votes.refuse(row, f"response {row.response_id}", message)
    votes.check("not claims of this pool and bank: {}")
    if len({row.assessor is None for row in rows}) > 1:
        raise InputError(f"{name}: labels of people and of judges: give one kind")
    if len({row.passages for row in rows}) > 1:
        raise InputError(f"{name}: passages were shown for some responses and not for others: give one kind")
    if rows and not votes.of:
        raise InputError(f"{name}: no row is of a response of the pool")
    # The first of CLAIM_LABELS of several that are equally frequent.
    labels = {
        key: tuple(max(CLAIM_LABELS, key=sentence.count) for sentence in zip(*given, strict=True))
        for key, given in votes.of.items()
    }
    missing = {failure.response_id: failure for failure in failures if failure.response_id not in labels}
    return KnownClaims(labels, missing, any(row.passages for row in rows), votes.outside)


def _mismatch(row: ResponseClaims, response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> str | None:
    """Why a row cannot be of this response and these nuggets, or None."""
    nuggets, sentences = nuggets_for(response, scopes), len(split_sentences(response.text))
    if not nuggets:
        return "the bank has no nugget of its turn or topic"
    if row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
        return "the pool has another text: the labels are of another pool"
    if row.nuggets_sha256 is not None and row.nuggets_sha256 != nuggets_digest(nuggets):
        return "the nuggets have changed since its sentences were labeled: label again"
    if len(row.labels) != sentences:
        return f"found {count(len(row.labels), 'label')}, expected one for each of its {count(sentences, 'sentence')}"
    return None
