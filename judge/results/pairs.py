"""Pairs of responses that a judge compared in both orders, and what they come to: ratings of runs. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from judge.ask.records import Failure, Judgment
from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.io.table import Column, RecordColumns, Table, fields, records_table
from judge.io.text import count, interval, markdown_cell
from judge.pool.build import normalize
from judge.pool.pairs import equal_responses, other_orders
from judge.pool.records import Pool
from judge.records import Criterion, Estimate, Scale
from judge.results.rows import RowFlag, Score, estimate_of, noted, too_few_topics
from judge.stats.correction import Corrected
from judge.stats.preference import Ratings, rating_places, ratings
from judge.stats.separation import Place
from judge.stats.tables import Floats, Undefined

Duel = tuple[str, tuple[tuple[str, ...], tuple[str, ...]], tuple[float | None, float | None], Any]
"""What the judge said of a pair: the turn; the runs that gave the one response and the other; what the one got, shown
first and shown second (1 better, .5 tie, 0 worse; None without a verdict); and what it got in both orders, else why
there is no such verdict: a reason, a `TurnGrade` of "unable", or None where not asked."""


COUNTS = ("won", "tied", "lost", "flipped", "missing")
"""Of a run or of two: pairs won, tied and lost; those whose verdict changed with the order; those of which an order has
no verdict."""
_KINDS = (1.0, 0.5, 0.0, "flipped", "missing")
"""What became of a pair, in the order of COUNTS."""
FEWEST_LACKING = 2
"""Fewest pairs without a verdict that say something of a response which they have in common."""
COLUMNS: RecordColumns = {
    **fields("criterion rank rank_lo=place.low rank_hi=place.high tie=place.letters run=run_id rating=mean.value"),
    **fields("lo=mean.low hi=mean.high"),
    "win_rate": lambda score: win_rate(score),
    **fields(" ".join(f"{name}=counts.{name}" for name in COUNTS)),
    **fields("topics=mean.topics"),
    "flags": lambda score: " ".join(score.flags),
    "note": lambda score: noted(
        "; ".join(filter(None, (score.mean.reason or score.few_topics, _rated_again(score)))) or None, score.cluster
    ),
}
PAIR_COLUMNS = ("criterion", "run_a", "run_b", *COUNTS)
"""Of the table of pairs of runs: what `run_a` did against `run_b`."""
_SHOWN: RecordColumns = {
    **fields("rank ranks tie=place.letters run=run_id"),
    Column("rating [95 %]", 2, signed=True): lambda score: score.mean,
    Column("win rate", 2): lambda score: win_rate(score),
    "w-t-l": lambda score: "{won}-{tied}-{lost}".format(**score.counts),
    **fields("flipped=counts.flipped missing=counts.missing"),
    "note": lambda score: "; ".join(filter(None, (score.mean.reason, " ".join(score.flags)))),
}


def win_rate(score: Score) -> float | None:
    """The share of decided pairs that a run won, a tie being half a win."""
    decided = score.counts["won"] + score.counts["tied"] + score.counts["lost"]
    return (score.counts["won"] + score.counts["tied"] / 2) / decided if decided else None


def _rated_again(score: Score) -> str:
    """How often runs were rated, each time but the last before more pairs were drawn; empty if it was once."""
    return f"runs rated {score.more['looks']} times" if score.more["looks"] > 1 else ""


RATINGS = """
rating: the logarithm of a run's strength (Bradley and Terry, with Davidson's ties), 0 for the mean run. Only pairs with
the same verdict in both orders count: where two runs differ by 0.7, the better one wins twice as many of these as it
loses. By single verdicts they would differ less, by as much as the judge is noisy; so ratings by two judges are not on
one scale. w-t-l: pairs won, tied and lost. flipped: pairs whose verdict changed with the order. missing: pairs of which
an order has no verdict. Neither is a tie. MISSING: the run has turns without a response, or turns in which its response
may be why two or more pairs, all that it is in, have no verdict. Such turns are in no rating; the bound of its win rate
counts them as lost. ranks: those that the run may have. Runs that share a letter (tie) cannot be told apart. Both hold
for all runs at once with 95 % confidence. Where all responses to a turn are equal, those of two runs that are drawn
there tie and no judge is asked; other equal responses are not compared.
"""


def duels(pool: Pool, outcomes: Mapping[str, Any], scale: Scale) -> list[Duel]:
    """The pairs of a pool; `outcomes` has the grade of a response id, or the reason why there is none.

    Equal responses tie (`equal_responses`), though nobody was asked about them.
    """
    others = other_orders(pool)
    found: list[Duel] = []
    for item in pool.responses:
        if normalize(item.text) > normalize(item.second):
            continue
        answers = [outcomes.get(each.response_id) for each in (item, others[item.response_id])]
        first, other = (_share(answer, scale) for answer in answers)
        said = first, None if other is None else 1 - other
        outcome: Any = said[0] if said[0] == said[1] else "flipped"
        if None in said:
            outcome = answers[said.index(None)]
        firsts = tuple(entry.run_id for entry in item.runs if entry.rank == 1)
        seconds = tuple(entry.run_id for entry in item.runs if entry.rank == 2)
        found.append((item.turn_id, (firsts, seconds), said, outcome))
    found += [(turn_id, ((one,), (other,)), (None, None), 0.5) for turn_id, one, other in equal_responses(pool)]
    return found


def at_fault(compared: Iterable[Duel], counts_against: Callable[[Any, str], bool]) -> set[tuple[str, str]]:
    """Run and turn where the run's response may be why its pairs have no verdict.

    None of its pairs in the turn has one, for reasons that may lie in a response, and at least FEWEST_LACKING responses
    that it met have one with others. One pair alone lacks a verdict by chance as often as the judge fails.
    `counts_against`: whether the lack of a verdict is for such a reason, by what there is instead and turn.
    """
    given: set[tuple[str, str]] = set()
    lacking: dict[tuple[str, str], list[tuple[tuple[str, ...], bool]]] = defaultdict(list)
    for turn_id, runs, _, outcome in compared:
        for side, run_ids in enumerate(runs):
            for run_id in run_ids:
                if isinstance(outcome, float) or outcome == "flipped":
                    given.add((run_id, turn_id))
                else:
                    lacking[run_id, turn_id].append((runs[1 - side], counts_against(outcome, turn_id)))
    at_fault: set[tuple[str, str]] = set()
    for (run_id, turn_id), pairs in lacking.items():
        if (run_id, turn_id) in given or not all(against for _, against in pairs):
            continue
        met = sum(all((other, turn_id) in given for other in others) for others, _ in pairs)
        if met >= FEWEST_LACKING:
            at_fault.add((run_id, turn_id))
    return at_fault


def agreed(pool: Pool, results: Iterable[Judgment | Failure], criterion: Criterion) -> list[Judgment]:
    """The judgments of pairs in which one judge, under one prompt, says the same in both orders."""
    others = other_orders(pool)
    found = (each for each in results if isinstance(each, Judgment) and each.criterion == criterion.name)
    given = {(each.judge, each.variant, each.response_id): each for each in found if each.response_id in others}
    said = {key: share for key, each in given.items() if (share := _share(each, criterion.scale)) is not None}
    return [given[key] for key, share in said.items() if said.get((*key[:2], others[key[2]].response_id)) == 1 - share]


def _share(answer: Any, scale: Scale) -> float | None:
    """What the response shown first got."""
    return None if answer is None or isinstance(answer, str) or answer.unable else share_of_first(answer.grade, scale)


def share_of_first(grade: float, scale: Scale) -> float:
    """What a grade gives the response shown first: 1 where it is the better one, .5 in a tie, else 0."""
    ahead = (2 * grade - sum(scale.ends)) * (1 if scale.polarity == "higher" else -1)
    return 0.5 + 0.5 * ((ahead > 0) - (ahead < 0))


def rated_runs(
    compared: Sequence[Duel],
    flags: Mapping[str, tuple[RowFlag, ...]],
    criterion: Criterion,
    cluster: Cluster,
    looks: int = 1,
) -> tuple[list[Score], list[tuple[object, ...]], str]:
    """The rows of the flagged runs, best first; those of pairs of runs; and what to know about verdicts and letters.

    `looks`: how often runs were rated, each time but the last before more pairs were drawn.
    """
    order, topics, counts = _empty(compared, flags, cluster)
    tallies: dict[tuple[str, str], Counter[object]] = defaultdict(Counter)
    for turn_id, runs, _, outcome in compared:
        topic = topics[turn_id]
        decided = isinstance(outcome, float)
        for a, b in product(*runs):
            i = order[a]
            j = order[b]
            tallies[a, b][outcome if decided or outcome == "flipped" else "missing"] += 1
            tallies[b, a][1 - outcome if decided else "flipped" if outcome == "flipped" else "missing"] += 1
            if decided:
                counts[topic, i, j, round(2 - 2 * outcome)] += 1
    met = ((a, b) for a, b in tallies if order[a] < order[b])
    lines = [
        (criterion.name, a, b, *(tallies[a, b][kind] for kind in _KINDS))
        for a, b in sorted(met, key=lambda pair: (order[pair[0]], order[pair[1]]))
    ]
    of_runs = {run_id: Counter[object]() for run_id in order}
    for (a, _), tally in tallies.items():
        of_runs[a] += tally
    rows = _rows(ratings(counts), counts, of_runs, flags, criterion.name, cluster, looks)
    said = [_of_places(first_place(compared, flags, cluster), compared)]
    unplaced = [row.more["topics"] for row in rows if row.few_topics]
    if unplaced:
        why = too_few_topics(max(unplaced), cluster)
        said.append(f"{why[0].upper()}{why[1:]}.")
    if looks > 1:
        said.append(
            f"The runs were rated {looks} times, and each time but the last the ratings decided which pairs were drawn "
            "next (--extend). Ranks and letters are as sure as they say at one look alone: whoever stops when runs are "
            f"told apart does so by mistake up to {looks} times as often."
        )
    return rows, lines, " ".join(said)


def _empty(
    compared: Sequence[Duel], run_ids: Iterable[str], cluster: Cluster
) -> tuple[dict[str, int], dict[str, int], Floats]:
    """The place of each run, that of the topic of each turn, and counts as of `ratings`, still 0."""
    order = {run_id: place for place, run_id in enumerate(sorted(run_ids, key=natural_key))}
    topics = {turn_id: cluster_of(topic_of(turn_id), cluster) for turn_id, *_ in compared}
    codes = {topic: code for code, topic in enumerate(sorted(set(topics.values()), key=natural_key))}
    counts = np.zeros((len(codes), len(order), len(order), 3))
    return order, {turn_id: codes[topic] for turn_id, topic in topics.items()}, counts


def first_place(compared: Sequence[Duel], run_ids: Iterable[str], cluster: Cluster) -> Estimate:
    """The advantage of the first place, of pairs with a verdict in both orders: h of `ratings`."""
    order, topics, counts = _empty(compared, run_ids, cluster)
    for turn_id, runs, (first, second), _ in compared:
        if first is not None and second is not None:
            for i, j in ((order[a], order[b]) for a, b in product(*runs)):
                counts[topics[turn_id], i, j, round(2 - 2 * first)] += 1
                counts[topics[turn_id], j, i, round(2 * second)] += 1
    found = ratings(counts, home=True)
    return (
        Estimate(value=None, low=None, high=None, n=0, topics=0, reason=found.reason)
        if isinstance(found, Undefined)
        else found[2]
    )


def _rows(
    found: Ratings | Undefined,
    counts: Floats,
    of_runs: Mapping[str, Counter[object]],
    flags: Mapping[str, tuple[RowFlag, ...]],
    name: str,
    cluster: Cluster,
    looks: int,
) -> list[Score]:
    of_topics = counts.sum(axis=(2, 3)) + counts.sum(axis=(1, 3))
    topics = (of_topics > 0).sum(axis=0).tolist()
    why = found.reason if isinstance(found, Undefined) else None
    runs: Sequence[Corrected] = [Corrected("raw", 0, reason=why)] * len(of_runs)
    of_places: Sequence[Place | None] = [None] * len(of_runs)
    if not isinstance(found, Undefined):
        runs = found[0]
        of_places = rating_places(found, counts)
    scores = []
    for number, (run_id, tally) in enumerate(of_runs.items()):
        rating = runs[number]
        scores.append(
            Score(
                run_id=run_id,
                criterion=name,
                mean=estimate_of(rating, topics=topics[number], n=round(of_topics[:, number].sum())),
                place=of_places[number],
                counts={name: tally[kind] for name, kind in zip(COUNTS, _KINDS, strict=True)},
                flags=flags[run_id],
                more={"topics": rating.topics, "looks": looks},
                cluster=cluster,
            )
        )
    return sorted(scores, key=lambda score: (score.rank is None, score.rank or 0, -(win_rate(score) or 0.0)))


def _of_places(advantage: Estimate, compared: Sequence[Duel]) -> str:
    """How far the place of a response decides."""
    known = [
        (first, 1 - second, outcome)
        for *_, (first, second), outcome in compared
        if first is not None and second is not None
    ]
    # Each verdict once, though several runs may have given a response.
    ahead = [share for *of_first, _ in known for share in of_first if share != 0.5]
    flipped = sum(outcome == "flipped" for *_, outcome in known)
    if not known:
        return "No pair has a verdict in both orders."
    share = f"{100 * sum(ahead) / len(ahead):.0f} %" if ahead else "none"
    home = f"unknown: {advantage.reason}" if advantage.value is None else f"{interval(advantage, 2)} in log-odds"
    return (
        f"Of the verdicts that prefer a response, {share} prefer the one that is shown first. What that place alone is "
        f"worth between equal runs: {home}. {flipped} of {count(len(known), 'pair')} flipped with the order and are "
        "missing."
    )


def ratings_markdown(rows: Sequence[Score], advantages: Mapping[str, str]) -> str:
    """A table for each criterion, and how to read it; empty without rows."""
    parts = []
    for name, said in advantages.items():
        body = rating_board(rows, name).body(words={2, 3, len(_SHOWN) - 1})
        parts.append(f"\n## {markdown_cell(name)}: ratings\n\n{said}\n\n{body}\n{RATINGS}")
    return "".join(parts)


def rating_board(rows: Iterable[Score], name: str) -> Table[Any]:
    """The rows of one criterion for people."""
    return records_table(_SHOWN, (row for row in rows if row.criterion == name), f"{name}: ratings", places=2)
