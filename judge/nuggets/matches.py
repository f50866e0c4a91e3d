"""Files of matches: judge's own, people's, nuggetizer's and those of CONE-RAG's study; joined to a pool and a bank."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from judge.errors import InputError
from judge.files.jsonl import jsonl_bytes
from judge.files.paths import StrPath
from judge.files.stored import read_stored, unpack
from judge.gold.rows import text_digest
from judge.nuggets.assignments import is_assignments, parse_assignments
from judge.nuggets.forms.own import first_object
from judge.nuggets.label_lines import label_lines, missing_lines
from judge.nuggets.records import MatchedNugget, MatchFailure, MatchLabel, NuggetBank
from judge.nuggets.study import STUDY_LINE, read_study
from judge.pool.records import Pool
from judge.records import Problem
from judge.results.turns import first_ranked
from judge.text.cells import count
from judge.text.ids import topic_of
from judge.text.safe import digest, shown

MATCHES, MATCH_FAILURES = "matches.jsonl", "failures.jsonl"
"""The files of a folder that `judge nuggets match` wrote."""
_ORDER: tuple[MatchLabel, ...] = ("contradicts", "does_not", "partly", "supports")
"""The labels from worst to best for the response."""

PairKey = tuple[str, str]
"""A response id and a nugget id."""


class PairLabels(NamedTuple):
    """What is known of pairs of response and nugget."""

    labels: dict[PairKey, MatchLabel]
    failures: dict[PairKey, MatchFailure]
    """Why a label is missing."""
    inclusion: dict[PairKey, float]
    """The probability with which a person was to match the pair, where the file says so."""
    outside: int
    """Rows of responses that the pool does not have."""
    people: bool
    """Whether people matched; False if judges did."""


class _Line(MatchedNugget, frozen=True, forbid_unknown_fields=True):
    """A line of a file of matches."""

    topic_id: str | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


def read_matches(path: StrPath) -> tuple[MatchedNugget, ...]:
    """The rows of a file of matches, gzipped or not, in its order.

    Raises:
        InputError: The file cannot be read or has problems; every problem is listed.
    """
    path = Path(path)
    content = unpack(read_stored(path), str(path)).removeprefix(b"\xef\xbb\xbf")
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
    return parse_assignments(content, str(path)) if is_assignments(content) else parse_matches(content, str(path))


def parse_matches(content: bytes, name: str) -> tuple[MatchedNugget, ...]:
    """The rows in the bytes of a JSONL file of matches.

    Args:
        content: The bytes, not gzipped.
        name: The file's name, for messages.

    Raises:
        InputError: There is no row, or rows have problems; every problem is listed.
    """
    first: dict[tuple[object, ...], int] = {}

    def problem_of(line: _Line, number: int) -> str | None:
        key = (line.turn_id, line.response_id, line.run_id, line.nugget_id, line.assessor, line.judge)
        if (line.assessor is None) == (line.judge is None):
            return "expected `assessor` for a person's match, or `judge` for a judge's"
        if line.response_id is None and line.run_id is None:
            return "expected `response_id`, or `run_id` for the response that a run ranked first"
        if first.setdefault(key, number) != number:
            return f"the same pair by the same {'judge' if line.judge else 'assessor'} is on line {first[key]}"
        return None

    return label_lines(content, name, _Line, problem_of, code="bad_match", what="matches", expected="one match or more")


def read_match_failures(path: Path) -> tuple[MatchFailure, ...]:
    """The missing matches of a file; none if there is no such file.

    Raises:
        InputError: Lines are damaged; each of them is listed.
    """
    return missing_lines(path, MatchFailure, code="bad_match", what="matches")


def matches_jsonl(rows: Iterable[MatchedNugget | MatchFailure]) -> bytes:
    """The bytes of a file of matches; fields that say nothing are left out."""
    return jsonl_bytes(rows)


def join(
    rows: Sequence[MatchedNugget],
    failures: Sequence[MatchFailure],
    bank: NuggetBank,
    pool: Pool,
    name: str,
    renamed: Mapping[str, str] | None = None,
) -> PairLabels:
    """The label of every pair of response and nugget that was matched.

    Where several judges or several people matched a pair, the label that most of them gave counts; of labels that are
    given equally often, the worse one for the response. Each of them has one vote for a pair. One response may be that
    of several runs: rows that name it by its runs and give one label are one vote.

    Args:
        rows: The matches.
        failures: The missing ones.
        bank: The bank.
        pool: The responses.
        name: The files, for messages.
        renamed: Name of a run in the matches to its id in the pool.

    Raises:
        InputError: Rows are of nuggets that the bank does not have, or has with another text, or of another turn, or
            match a pair that the same judge or assessor has matched. Or people and judges are mixed, or no row is of a
            response of the pool.
    """
    nuggets = {nugget.nugget_id: nugget for nugget in bank.nuggets}
    by_text = {(nugget.scope, digest(nugget.text)): nugget for nugget in reversed(bank.nuggets)}
    responses = {response.response_id: response for response in pool.responses}
    firsts = first_ranked(pool)
    votes: dict[PairKey, list[MatchLabel]] = {}
    inclusion: dict[PairKey, float] = {}
    voted: dict[tuple[PairKey, str | None, str | None], tuple[str, MatchLabel]] = {}
    problems: list[Problem] = []
    outside = 0
    for row in rows:
        nugget = nuggets.get(row.nugget_id)
        if row.nugget_sha256 is not None and (nugget is None or digest(nugget.text) != row.nugget_sha256):
            # The label is of a text: under whichever id the bank has it in this turn or topic.
            scopes = row.turn_id, topic_of(row.turn_id)
            nugget = next((by_text[key] for scope in scopes if (key := (scope, row.nugget_sha256)) in by_text), nugget)
        run_id = (renamed or {}).get(row.run_id or "", row.run_id or "")
        response = (
            responses.get(row.response_id) if row.response_id is not None else firsts.get(run_id, {}).get(row.turn_id)
        )
        message = None
        if nugget is None:
            message = "the bank has no such nugget"
        elif row.nugget_sha256 is not None and row.nugget_sha256 != digest(nugget.text):
            message = "the text of the nugget has changed since it was matched: match again"
        elif response is None or response.turn_id != row.turn_id:
            outside += 1
            continue
        elif row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
            message = f"the pool has another text as {response.response_id}: the match is of another pool"
        elif nugget.scope not in (response.turn_id, response.topic_id):
            message = f"the nugget is of {shown(nugget.scope)}, and the response of turn {shown(row.turn_id)}"
        if message is not None or response is None or nugget is None:
            where = f"nugget {shown(row.nugget_id)}"
            problems.append(Problem("bad_match", "error", name, row.turn_id, where, message or ""))
            continue
        key = response.response_id, nugget.nugget_id
        vote = "" if row.response_id is not None else run_id, row.label
        earlier = voted.setdefault((key, row.judge, row.assessor), vote)
        if earlier is vote:
            votes.setdefault(key, []).append(row.label)
        elif earlier[0] == vote[0] or "" in (earlier[0], vote[0]) or earlier[1] != vote[1]:
            where, who = f"nugget {shown(row.nugget_id)}", shown(row.judge or row.assessor or "")
            message = f"a second match of {key[0]} by {who}: expected one"
            problems.append(Problem("bad_match", "error", name, row.turn_id, where, message))
        drawn = row.inclusion_probability
        if drawn is not None and inclusion.setdefault(key, drawn) != drawn:
            where, message = f"nugget {shown(row.nugget_id)}", f"two inclusion probabilities for {key[0]}: expected one"
            problems.append(Problem("bad_match", "error", name, row.turn_id, where, message))
    if problems:
        raise InputError(f"{name}: not matches of this bank: {count(len(problems), 'row')} with problems", problems)
    people = {row.assessor is not None for row in rows}
    if len(people) > 1:
        raise InputError(f"{name}: matches of people and of judges: give those of judges alone, people's with --gold")
    if rows and not votes:
        raise InputError(
            f"{name}: no match is of a response of the pool; a row names it by `response_id`, or by `turn_id` and a "
            "`run_id` of the pool (--rename gives another name of a run)"
        )
    # The first of several that are equally frequent.
    labels = {key: max(_ORDER, key=given.count) for key, given in votes.items()}
    missing = {
        (failure.response_id, failure.nugget_id): failure
        for failure in failures
        if (failure.response_id, failure.nugget_id) not in labels
    }
    return PairLabels(labels, missing, inclusion, outside, True in people)
