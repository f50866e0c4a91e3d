"""A run's passages as one ranking a turn, to which passage qrels can be applied. Pure."""

from collections.abc import Iterable, Sequence
from math import isfinite

from judge.files.trec import column
from judge.runs.formats import rules_of
from judge.runs.formats.shape import Rules
from judge.runs.provenance import MAX_PASSAGES
from judge.runs.records import Provenance, Response, Run, RunTurn
from judge.text.ids import natural_key


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
    responses = sorted(turn.responses, key=lambda response: response.rank)
    if not _divisible(responses):
        return _distinct(passage for response in responses for passage in _by_score(response.provenance))
    scores: dict[str, float] = {}
    for place, response in enumerate(responses, 1):
        divisor = 1 if rules.keyed else place + 1
        for passage in response.provenance:
            scores.setdefault(passage.passage_id, (passage.score or 0.0) / divisor)
    return sorted(scores, key=lambda passage_id: -scores[passage_id])


def _divisible(responses: Sequence[Response]) -> bool:
    """Whether scores of different responses can be compared once they are divided by place."""
    scores = [passage.score for response in responses for passage in response.provenance]
    lowest = 0.0 if len(responses) > 1 else float("-inf")
    return all(score is not None and isfinite(score) and score >= lowest for score in scores)


def _by_score(passages: Sequence[Provenance]) -> Sequence[Provenance]:
    if all(passage.score is not None and isfinite(passage.score) for passage in passages):
        return sorted(passages, key=lambda passage: -(passage.score or 0.0))
    return passages


def _distinct(passages: Iterable[Provenance]) -> list[str]:
    return list(dict.fromkeys(passage.passage_id for passage in passages))
