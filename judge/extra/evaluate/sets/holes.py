"""Holes: items that only one of two sets graded, and how far they could move a run's score and the ranking. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from judge.extra.evaluate.sets.grades import Grades, GradeSet
from judge.records import Record
from judge.runs.measures import Measures, measure_name
from judge.stats.system_agreement import possible_tau
from judge.stats.tables import Floats, Undefined

MEAN = "mean"
"""The measure of responses: the mean grade of what a run ranks first in each turn."""
_MONOTONE = frozenset({"P", "R", "RR", "Success"})
"""Measures of ir_measures that a higher grade of an item that the run ranks can never lower."""


class OrderedRun(Record, frozen=True):
    """What a run ranks in each turn."""

    run_id: str
    turns: dict[str, tuple[str, ...]]
    """Turn id to item ids, best first, each once; both are columns of qrels."""


class MeasureFacts(Record, frozen=True):
    """What is known of a measure before a run is scored."""

    name: str
    cutoff: int | None
    """How many items of a turn count; None for all of them."""
    strict: bool
    """Whether no other grades of the holes can take a score beyond its range (`judge.extra.evaluate.sets.holes`)."""


def measure_facts(measure: str) -> MeasureFacts:
    """The facts about a measure."""
    if measure == MEAN:
        return MeasureFacts(MEAN, 1, True)
    import ir_measures

    name = measure_name(measure)
    parsed = ir_measures.parse_measure(name)
    cutoff = parsed.params.get("cutoff")
    strict = parsed.NAME in _MONOTONE and not parsed.params.get("judged_only")
    return MeasureFacts(name, cutoff if isinstance(cutoff, int) else None, strict)


Scorer = Callable[[Mapping[str, Sequence[str]]], dict[str, float]]
"""From turn to ranked items to the value of each turn that has one."""


def scorer_of(measure: str, given: GradeSet, grades: Grades) -> Scorer:
    """A measure over some grades of a set.

    Under the mean, a turn without a response has the worst grade, and one whose response is not graded no value: no
    grade is not a bad grade. Under a measure of passages, a passage without a grade is not relevant, and a turn without
    passages has 0, as in trec_eval (`-c`).
    """
    if measure == MEAN:
        return partial(_first_grades, grades, given.worst)
    return partial(_of_rankings, Measures([measure], grades), tuple(grades))


def _first_grades(grades: Grades, worst: int, turns: Mapping[str, Sequence[str]]) -> dict[str, float]:
    first = {
        turn_id: graded.get(turns[turn_id][0]) if turns.get(turn_id) else worst for turn_id, graded in grades.items()
    }
    return {turn_id: float(grade) for turn_id, grade in first.items() if grade is not None}


def _of_rankings(measures: Measures, graded: Sequence[str], turns: Mapping[str, Sequence[str]]) -> dict[str, float]:
    ranking = {
        turn_id: [(item_id, float(len(items) - place)) for place, item_id in enumerate(items)]
        for turn_id, items in turns.items()
    }
    (values,) = measures.values(ranking).values()
    return dict.fromkeys(graded, 0.0) | values


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
    """Count a run's holes and bound its scores."""
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
    values = scorer_of(measure, given, grades)(run.turns)
    kept = [rounded(values[turn_id]) for turn_id in turns if turn_id in values]
    return math.fsum(kept) / len(kept) if kept else None


def rounded(value: float) -> float:
    """A value such that sums do not depend on the order of the turns."""
    return round(value * GRID) / GRID


def tau_range(holes: Sequence[RunHoles], scores: Sequence[tuple[float | None, float | None]], strict: bool) -> TauRange:
    """The range of τ-b over the runs that have a score under both sets.

    The scores by both sets lie within the ranges, or widen them.
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
