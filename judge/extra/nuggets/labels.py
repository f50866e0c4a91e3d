"""Matches and claims joined to a pool and a bank: the label of every pair and of every sentence. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from judge.errors import InputError
from judge.extra.nuggets.records import (
    CLAIM_LABELS,
    ClaimLabel,
    LabelFailure,
    MatchedNugget,
    MatchLabel,
    Nugget,
    NuggetBank,
    ResponseClaims,
)
from judge.gold.rows import text_digest
from judge.io.cells import count
from judge.io.ids import topic_of
from judge.io.safe import digest, shown
from judge.io.words import split_sentences
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem
from judge.results.turns import first_ranked

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


def nuggets_for(response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> tuple[Nugget, ...]:
    """The nuggets that a response may say: those of its turn, then those of its topic."""
    return (*scopes.get(response.turn_id, ()), *scopes.get(response.topic_id, ()))


def nuggets_digest(nuggets: Iterable[Nugget]) -> str:
    """SHA-256 over the texts of nuggets, in order."""
    return digest("\n".join(digest(nugget.text) for nugget in nuggets))


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
    given equally often, the worse one for the response. Each of them has one vote for a pair. One response may be that
    of several runs: rows that name it by its runs and give one label are one vote.

    `renamed` has the name of a run in the matches and its id in the pool; `name` names the files in messages.
    """
    problems: list[Problem] = []
    pairs, outside = _pairs(rows, bank, pool, renamed or {}, name, problems)
    votes: dict[PairKey, list[MatchLabel]] = {}
    inclusion: dict[PairKey, float] = {}
    voted: dict[tuple[PairKey, str | None, str | None], tuple[str, MatchLabel]] = {}
    for row, key, run_id in pairs:
        where, vote = f"nugget {shown(row.nugget_id)}", (run_id, row.label)
        earlier = voted.setdefault((key, row.judge, row.assessor), vote)
        if earlier is vote:
            votes.setdefault(key, []).append(row.label)
        elif earlier[0] == vote[0] or "" in (earlier[0], vote[0]) or earlier[1] != vote[1]:
            message = f"a second match of {key[0]} by {shown(row.judge or row.assessor or '')}: expected one"
            problems.append(Problem("bad_match", "error", name, row.turn_id, where, message))
        drawn = row.inclusion_probability
        if drawn is not None and inclusion.setdefault(key, drawn) != drawn:
            message = f"two inclusion probabilities for {key[0]}: expected one"
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
    missing = {(failure.response_id, failure.nugget_id or ""): failure for failure in failures}
    return PairLabels(
        labels, {key: missing[key] for key in missing if key not in labels}, inclusion, outside, True in people
    )


def _pairs(
    rows: Sequence[MatchedNugget],
    bank: NuggetBank,
    pool: Pool,
    renamed: Mapping[str, str],
    name: str,
    problems: list[Problem],
) -> tuple[list[tuple[MatchedNugget, PairKey, str]], int]:
    """Rows with their pairs and the runs that name these, how many are of other responses; problems are added."""
    nuggets = {nugget.nugget_id: nugget for nugget in bank.nuggets}
    by_text = {(nugget.scope, digest(nugget.text)): nugget for nugget in reversed(bank.nuggets)}
    responses = {response.response_id: response for response in pool.responses}
    firsts = first_ranked(pool)
    pairs: list[tuple[MatchedNugget, PairKey, str]] = []
    outside = 0
    for row in rows:
        nugget = nuggets.get(row.nugget_id)
        if row.nugget_sha256 is not None and (nugget is None or digest(nugget.text) != row.nugget_sha256):
            # The label is of a text: under whichever id the bank has it in this turn or topic.
            scopes = row.turn_id, topic_of(row.turn_id)
            nugget = next((by_text[key] for scope in scopes if (key := (scope, row.nugget_sha256)) in by_text), nugget)
        run_id = "" if row.response_id is not None else renamed.get(row.run_id or "", row.run_id or "")
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
        elif row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
            message = f"the pool has another text as {response.response_id}: the match is of another pool"
        elif nugget.scope not in (response.turn_id, response.topic_id):
            message = f"the nugget is of {shown(nugget.scope)}, and the response of turn {shown(row.turn_id)}"
        else:
            pairs.append((row, (response.response_id, nugget.nugget_id), run_id))
        if message is not None:
            problems.append(Problem("bad_match", "error", name, row.turn_id, f"nugget {shown(row.nugget_id)}", message))
    return pairs, outside


def join_claims(
    rows: Sequence[ResponseClaims], failures: Sequence[LabelFailure], bank: NuggetBank, pool: Pool, name: str
) -> KnownClaims:
    """The labels of the sentences of every response that was labeled.

    Where several judges or several people labeled a response, the label that most of them gave a sentence counts; of
    labels that are given equally often, the worse one for the response.
    """
    responses = {response.response_id: response for response in pool.responses}
    scopes = bank.by_scope()
    given: dict[str, list[tuple[ClaimLabel, ...]]] = {}
    voted: set[tuple[str, str | None, str | None]] = set()
    problems: list[Problem] = []
    outside = 0
    for row in rows:
        response = responses.get(row.response_id)
        if response is None or response.turn_id != row.turn_id:
            outside += 1
            continue
        key = row.response_id, row.judge, row.assessor
        message = _mismatch(row, response, scopes)
        if message is None and key in voted:
            message = f"labeled a second time by {row.judge or row.assessor}: expected once"
        voted.add(key)
        if message is None:
            given.setdefault(row.response_id, []).append(row.labels)
        else:
            where = f"response {row.response_id}"
            problems.append(Problem("bad_claims", "error", name, row.turn_id, where, message))
    if problems:
        raise InputError(f"{name}: not claims of this pool and bank: {count(len(problems), 'row')}", problems)
    if len({row.assessor is None for row in rows}) > 1:
        raise InputError(f"{name}: labels of people and of judges: give one kind")
    if len({row.passages for row in rows}) > 1:
        raise InputError(f"{name}: passages were shown for some responses and not for others: give one kind")
    if rows and not given:
        raise InputError(f"{name}: no row is of a response of the pool")
    labels = {response_id: tuple(map(_majority, zip(*votes, strict=True))) for response_id, votes in given.items()}
    missing = {failure.response_id: failure for failure in failures if failure.response_id not in labels}
    return KnownClaims(labels, missing, any(row.passages for row in rows), outside)


def _majority(labels: tuple[ClaimLabel, ...]) -> ClaimLabel:
    """The most frequent label; the first of CLAIM_LABELS of several that are equally frequent."""
    return max(CLAIM_LABELS, key=labels.count)


def _mismatch(row: ResponseClaims, response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> str | None:
    """Why a row cannot be of this response and these nuggets, or None."""
    nuggets = nuggets_for(response, scopes)
    if not nuggets:
        return "the bank has no nugget of its turn or topic"
    if row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
        return "the pool has another text: the labels are of another pool"
    if row.nuggets_sha256 is not None and row.nuggets_sha256 != nuggets_digest(nuggets):
        return "the nuggets have changed since its sentences were labeled: label again"
    sentences = len(split_sentences(response.text))
    if len(row.labels) != sentences:
        return f"found {count(len(row.labels), 'label')}, expected one for each of its {count(sentences, 'sentence')}"
    return None
