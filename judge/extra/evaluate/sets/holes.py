"""Holes: items that only one of two sets graded, and how far they could move a run's score and the ranking. Pure."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from judge.extra.evaluate.sets.grades import Grades, GradeSet
from judge.extra.evaluate.sets.measures import MeasureFacts, OrderedRun, measure_of
from judge.records import Record
from judge.stats.judge_orders import possible_tau
from judge.stats.tables import Floats, Undefined

GRID = 2.0**30
"""Values are rounded to parts of this, so that sums of equal values are equal in any order."""


class ScoreRange(Record, frozen=True):
    """What a run could score by a set if the set had graded its holes."""

    low: float | None
    """With the run's own holes graded worst and all others best; None where the run has no score either way."""
    high: float | None
    """With its own holes graded best and all others worst."""


class RunHoles(Record, frozen=True):
    """The grades of what a run ranks, down to the measure's cutoff, over the turns of both sets."""

    run_id: str
    items: int
    both: int
    only_a: int
    """Holes of B."""
    only_b: int
    """Holes of A."""
    neither: int
    judged_a: float | None
    """The mean over the run's turns of the share of its items that A graded, `Judged@k`; None without an item."""
    judged_b: float | None
    range_a: ScoreRange
    range_b: ScoreRange


class TauRange(Record, frozen=True):
    """Between what τ-b of the two rankings could lie if the holes were graded."""

    least: float | None
    greatest: float | None
    pairs: int
    """Pairs of runs."""
    certain: int
    """Pairs with one possible order under both sets."""
    strict: bool
    """Whether the ranges of the scores are strict."""
    reason: str | None = None
    """Why there is no range."""


def run_holes(run: OrderedRun, a: GradeSet, b: GradeSet, turns: Sequence[str], facts: MeasureFacts) -> RunHoles:
    """Count a run's holes and bound its scores.

    Args:
        run: The run.
        a: The first set.
        b: The second set.
        turns: The turns of both sets.
        facts: The measure.
    """
    top = {turn_id: run.turns[turn_id][: facts.cutoff] for turn_id in turns if run.turns.get(turn_id)}
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for turn_id, items in top.items():
        for item_id in items:
            counts[item_id in a.grades[turn_id], item_id in b.grades[turn_id]] += 1
    return RunHoles(
        run_id=run.run_id,
        items=sum(counts.values()),
        both=counts[True, True],
        only_a=counts[True, False],
        only_b=counts[False, True],
        neither=counts[False, False],
        judged_a=_judged(top, a),
        judged_b=_judged(top, b),
        range_a=_range(run, top, a, b, turns, facts),
        range_b=_range(run, top, b, a, turns, facts),
    )


def _judged(top: Mapping[str, Sequence[str]], given: GradeSet) -> float | None:
    shares = [sum(item_id in given.grades[turn_id] for item_id in items) / len(items) for turn_id, items in top.items()]
    return math.fsum(shares) / len(shares) if shares else None


def _range(
    run: OrderedRun,
    top: Mapping[str, Sequence[str]],
    given: GradeSet,
    other: GradeSet,
    turns: Sequence[str],
    facts: MeasureFacts,
) -> ScoreRange:
    """The scores of a run with its own holes in a set worst and the others best, and the other way round."""
    holes = {turn_id: other.grades[turn_id].keys() - given.grades[turn_id].keys() for turn_id in turns}
    ends: list[float] = []
    for own, rest in ((given.worst, given.best), (given.best, given.worst)):
        filled = {
            turn_id: {
                **given.grades[turn_id],
                **{item_id: own if item_id in top.get(turn_id, ()) else rest for item_id in holes[turn_id]},
            }
            for turn_id in turns
        }
        end = score(facts.name, given, filled, run, turns)
        if end is None:
            return ScoreRange(None, None)
        ends.append(end)
    return ScoreRange(min(ends), max(ends))


def score(measure: str, given: GradeSet, grades: Grades, run: OrderedRun, turns: Sequence[str]) -> float | None:
    """A run's mean over the turns in which it has a value; None without one."""
    values = measure_of(measure, given, grades).by_turn(run.turns)
    kept = [rounded(values[turn_id]) for turn_id in turns if turn_id in values]
    return math.fsum(kept) / len(kept) if kept else None


def rounded(value: float) -> float:
    """A value such that sums do not depend on the order of the turns."""
    return round(value * GRID) / GRID


def tau_range(holes: Sequence[RunHoles], scores: Sequence[tuple[float | None, float | None]], strict: bool) -> TauRange:
    """The range of τ-b over the runs that have a score under both sets.

    Args:
        holes: A row for each run.
        scores: The run's scores by both sets; they lie within the ranges, or widen them.
        strict: Whether the ranges of the scores are strict.
    """
    known = [(row, a, b) for row, (a, b) in zip(holes, scores, strict=True) if a is not None and b is not None]
    if len(known) < 2:
        return TauRange(None, None, 0, 0, strict, "fewer than 2 runs")

    def ends(side: Sequence[tuple[ScoreRange, float]]) -> tuple[Floats, Floats]:
        lows = [value if of.low is None else min(of.low, value) for of, value in side]
        highs = [value if of.high is None else max(of.high, value) for of, value in side]
        return np.array(lows), np.array(highs)

    found = possible_tau(
        ends([(row.range_a, a) for row, a, _ in known]), ends([(row.range_b, b) for row, _, b in known])
    )
    if isinstance(found.least, Undefined) or isinstance(found.greatest, Undefined):
        return TauRange(None, None, found.pairs, found.certain, strict, "one side ranks all runs the same")
    return TauRange(found.least, found.greatest, found.pairs, found.certain, strict)
