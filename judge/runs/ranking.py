"""The passages that a response uses, a run's passages as one ranking a turn, and plain TREC runs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import msgspec

from judge.io.ids import column, natural_key, parse_run, trec_order
from judge.runs.formats import rules_of
from judge.runs.formats.shape import Rules
from judge.runs.formats.trec import MAX_PASSAGES
from judge.runs.records import Provenance, ProvenanceRule, Response, Run, RunTurn

TOP_PASSAGES = 5
"""How many passages count as used when a response flags none (TREC iKAT guidelines)."""


def used_provenance(response: Response, format: str) -> tuple[tuple[Provenance, ...], ProvenanceRule]:
    """The used passages of a response, and the rule that determined them.

    Used are the passages that are flagged `used`, or cited. Without any, the first five count by falling score, or in
    the order of the list where a score is missing or not finite. A passage that is listed twice counts once.
    """
    flagged = [passage for passage in response.listed if passage.used]
    if flagged:
        return _firsts(flagged), "citations" if rules_of(format).keyed else "used"
    return _firsts(_by_score(response.provenance))[:TOP_PASSAGES], "top5"


def has_scores(provenance: Sequence[Provenance]) -> bool:
    """Whether every passage has a score to rank by."""
    return all(passage.score is not None and isfinite(passage.score) for passage in provenance)


def _by_score(passages: Sequence[Provenance]) -> Sequence[Provenance]:
    """The passages by falling score, or in the order of the list where a score is missing or not finite."""
    return sorted(passages, key=lambda passage: -(passage.score or 0.0)) if has_scores(passages) else passages


def _firsts(passages: Iterable[Provenance]) -> tuple[Provenance, ...]:
    """The first listing of each passage."""
    first: dict[str, Provenance] = {}
    for passage in passages:
        first.setdefault(passage.passage_id, passage)
    return tuple(first.values())


FEWEST_TURNS = 3
"""Turns with absent evidence of the smallest run that is named for them."""


def absent_evidence(turns: Iterable[tuple[int, int]], what: str) -> str | None:
    """What to say of a run in most of whose turns a used passage is absent; None of any other run.

    Args:
        turns: For each turn of the run, how many used passages are absent, and how many there are.
        what: What it is that such a passage is or lacks, after "a used passage".

    >>> absent_evidence([(1, 2), (2, 2), (2, 2), (0, 2)], "is not there")
    'in 3 of its 4 turns a used passage is not there: 5 of all 8 used passages'
    """
    counts = list(turns)
    hit = sum(absent > 0 for absent, _ in counts)
    if hit < FEWEST_TURNS or 2 * hit <= len(counts):
        return None
    absent, used = (sum(column) for column in zip(*counts, strict=True))
    return f"in {hit} of its {len(counts)} turns a used passage {what}: {absent} of all {used} used passages"


def ranking(run: Run) -> dict[str, list[tuple[str, float]]]:
    """(passage id, score) pairs by turn id, best first, with scores k, k-1, …, 1; turns in natural order.

    A turn without passages has an empty ranking. Runs of some formats name the passages of a turn, which are ranked by
    falling score. The others name passages for each response: a passage counts at its first occurrence in order of
    rank, by its score divided by one more than the response's place, as in the tracks' own `generate_run.py`.

    Where a score is missing, not finite or (with several responses) below zero, a division would be wrong. Then all
    passages of a response come before those of the next, by falling score or, without scores, in the order of the
    list. Equal scores keep the order of the list.

    The scores are new in every turn because evaluation tools sort by score alone, in single precision and with ties
    broken by passage id: no other scores keep the order for certain.
    """
    rules = rules_of(run.format)
    rankings: dict[str, list[tuple[str, float]]] = {}
    for turn in sorted(run.turns, key=lambda turn: natural_key(turn.turn_id)):
        order = _order(turn, rules)[:MAX_PASSAGES]
        rankings.setdefault(turn.turn_id, [(key, float(len(order) - place)) for place, key in enumerate(order)])
    return rankings


def provenance_run(run: Run) -> str:
    """`turn_id Q0 passage_id rank score run_id`, ranks from 1, scores as in `ranking`."""
    tag = column(run.run_id)
    return "".join(
        f"{column(turn_id)} Q0 {column(passage_id)} {place} {score:.0f} {tag}\n"
        for turn_id, passages in ranking(run).items()
        for place, (passage_id, score) in enumerate(passages, 1)
    )


def _order(turn: RunTurn, rules: Rules) -> list[str]:
    """The turn's passage ids, best first."""
    lists = [response.provenance for response in sorted(turn.responses, key=lambda response: response.rank)]
    if not _divisible(lists):
        return [passage.passage_id for passage in _firsts(passage for each in lists for passage in _by_score(each))]
    scores: dict[str, float] = {}
    for place, passages in enumerate(lists, 1):
        divisor = 1 if rules.keyed else place + 1
        for passage in passages:
            scores.setdefault(passage.passage_id, (passage.score or 0.0) / divisor)
    return sorted(scores, key=lambda passage_id: -scores[passage_id])


def _divisible(lists: Sequence[Sequence[Provenance]]) -> bool:
    """Whether scores of different responses can be compared once they are divided by place."""
    scores = [passage.score for passages in lists for passage in passages]
    lowest = 0.0 if len(lists) > 1 else float("-inf")
    return all(score is not None and isfinite(score) and score >= lowest for score in scores)


class TrecRanking(msgspec.Struct, frozen=True):
    """A run file of six columns."""

    run_id: str
    ranking: dict[str, list[tuple[str, float]]]
    """As `judge.runs.ranking.ranking` gives it: (item id, score) pairs by turn, best first, scores k, k-1, …, 1."""
    repeated: int
    """Lines that name an item of a turn again; the line with the highest score counts."""
    cut: int
    """Items after the first `MAX_PASSAGES` of a turn."""


def parse_trec_run(text: str, name: str) -> TrecRanking:
    """The run in a file of six columns as rankings, ordered as trec_eval orders them.

    Raises:
        InputError: As of `parse_run`; an item that is named again counts by its highest score.
    """
    run = parse_run(text, name, again="best")
    return TrecRanking(
        run.run_id,
        {turn_id: _ranked(run.scores[turn_id]) for turn_id in sorted(run.scores, key=natural_key)},
        run.repeated,
        sum(max(0, len(items) - MAX_PASSAGES) for items in run.scores.values()),
    )


def _ranked(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """The first items of a turn, with new scores that no tool can take for equal."""
    order = trec_order(scores)[:MAX_PASSAGES]
    return [(item_id, float(len(order) - place)) for place, item_id in enumerate(order)]
