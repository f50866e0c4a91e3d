"""Two sets of grades, by assessors or a judge: how far they agree on what both graded, and the holes of each. Pure.

Holes are items that only one of the sets graded; they could move a run's score and the ranking.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.records import Estimate, Record
from judge.results.tables import SEED
from judge.runs.measures import Measures, measure_name
from judge.stats.ranking import possible_tau
from judge.stats.raters import codes_of, compare_raters
from judge.stats.tables import Floats, MarginalTest, Undefined

REPLICATES = 2000
"""Draws of topics behind an interval."""
COMPARED = {
    "percent": "equal grades",
    "kappa": "Cohen's kappa",
    "wkappa": "kappa with quadratic weights",
    "alpha_ordinal": "Krippendorff's alpha, ordinal",
    "ac2": "Gwet's AC2, quadratic weights",
    "bias": "mean of B minus A",
}
"""The statistics of agreement that are shown, in the order of rows, each with a name for people."""

Grades = Mapping[str, Mapping[str, int]]
"""Turn id and item id to a grade; an item is a response or a passage, and both ids are columns of qrels."""


class GradeSet(Record, frozen=True):
    """The grades of one file or folder."""

    name: str
    grades: dict[str, dict[str, int]]
    """As `Grades`; only turns with a grade."""
    scale: tuple[int, ...]
    """All grades that may be given, ascending."""
    higher_is_better: bool = True

    @property
    def items(self) -> int:
        """How many items are graded."""
        return sum(map(len, self.grades.values()))

    @property
    def worst(self) -> int:
        """The grade at the bad end of the scale."""
        return self.scale[0] if self.higher_is_better else self.scale[-1]

    @property
    def best(self) -> int:
        """The grade at the good end of the scale."""
        return self.scale[-1] if self.higher_is_better else self.scale[0]


class SetOfTwo(Record, frozen=True):
    """One of two sets beside the other."""

    name: str
    items: int
    turns: int
    only_items: int
    """Items that the other set did not grade: the holes of the other."""
    only_turns: int
    """Turns of which the other set graded nothing."""
    mean: float
    """The mean grade of the items that both graded."""
    scale: tuple[int, ...]
    higher_is_better: bool


class SetsAgreement(Record, frozen=True):
    """How far two sets agree on the items that both graded."""

    a: SetOfTwo
    b: SetOfTwo
    items: int
    """Items that both graded."""
    turns: int
    """Turns of which both graded some item."""
    topics: int
    """Topics, or themes, of the items that both graded."""
    statistics: dict[str, Estimate]
    """Of COMPARED, with intervals over topics; the bias is that of B against A."""
    confusion: tuple[tuple[int, ...], ...]
    """Counts of items: grades of A in rows, of B in columns, both ascending."""
    marginals: tuple[MarginalTest, ...]


def binary(given: GradeSet, positive: int) -> GradeSet:
    """The set with grade 1 for items that are graded `positive` or better, and 0 for the others.

    >>> binary(GradeSet("qrels", {"1_1": {"p": 2, "q": 1}}, (0, 1, 2)), 2).grades
    {'1_1': {'p': 1, 'q': 0}}
    """
    sign = 1 if given.higher_is_better else -1
    grades: dict[str, dict[str, int]] = {}
    for turn_id, items in given.grades.items():
        grades[turn_id] = {item_id: int(sign * grade >= sign * positive) for item_id, grade in items.items()}
    return GradeSet(given.name, grades, (0, 1))


def common_turns(a: GradeSet, b: GradeSet) -> tuple[str, ...]:
    """The turns of which both sets graded some item, in natural order."""
    return tuple(sorted(a.grades.keys() & b.grades.keys(), key=natural_key))


def sets_agreement(a: GradeSet, b: GradeSet, cluster: Cluster) -> SetsAgreement:
    """Compare two sets of one scale that have an item in common; every statistic gets the same draws."""
    turns = common_turns(a, b)
    items: list[tuple[str, str]] = []
    for turn_id in turns:
        for item_id in a.grades[turn_id].keys() & b.grades[turn_id].keys():
            items.append((turn_id, item_id))
    of_a = [a.grades[turn_id][item_id] for turn_id, item_id in items]
    of_b = [b.grades[turn_id][item_id] for turn_id, item_id in items]
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id, _ in items]
    compared = compare_raters(
        COMPARED,
        a=codes_of(of_a, a.scale),
        b=codes_of(of_b, a.scale),
        units=codes_of(units, list(dict.fromkeys(units))),
        grades=a.scale,
        seed=SEED,
        replicates=REPLICATES,
    )

    def beside(own: GradeSet, other: GradeSet, grades: list[int]) -> SetOfTwo:
        only_items = own.items - len(items)
        only_turns = len(own.grades.keys() - other.grades.keys())
        mean = math.fsum(grades) / len(grades)
        turns = len(own.grades)
        return SetOfTwo(
            name=own.name,
            items=own.items,
            turns=turns,
            only_items=only_items,
            only_turns=only_turns,
            mean=mean,
            scale=own.scale,
            higher_is_better=own.higher_is_better,
        )

    return SetsAgreement(
        a=beside(a, b, of_a),
        b=beside(b, a, of_b),
        items=compared.n,
        turns=len(turns),
        topics=compared.topics,
        statistics=compared.statistics,
        confusion=compared.confusion,
        marginals=compared.marginals,
    )


MEAN = "mean"
"""The measure of responses: the mean grade of what a run ranks first in each turn."""
_MONOTONE = frozenset({"P", "R", "RR", "Success"})
"""Measures of ir_measures that a higher grade of an item that the run ranks can never lower."""


Ranked = Mapping[str, Sequence[str]]
"""What a run ranks: turn id to item ids, best first, each once; both are columns of qrels."""


class MeasureFacts(Record, frozen=True):
    """What is known of a measure before a run is scored."""

    name: str
    cutoff: int | None
    """How many items of a turn count; None for all of them."""
    strict: bool
    """Whether no other grades of the holes can take a score beyond its range."""


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


Scorer = Callable[[Ranked], dict[str, float]]
"""From what a run ranks to the value of each turn that has one."""


def scorer_of(measure: str, given: GradeSet, grades: Grades) -> Scorer:
    """A measure over some grades of a set.

    Under the mean, a turn without a response has the worst grade, and one whose response is not graded no value: no
    grade is not a bad grade. Under a measure of passages, a passage without a grade is not relevant, and a turn without
    passages has 0, as in trec_eval (`-c`).
    """
    measures = None if measure == MEAN else Measures([measure], grades)

    def values(turns: Ranked) -> dict[str, float]:
        if measures is None:
            tops = {turn_id: turns[turn_id][0] if turns.get(turn_id) else None for turn_id in grades}
            first = {turn_id: given.worst if top is None else grades[turn_id].get(top) for turn_id, top in tops.items()}
            return {turn_id: float(grade) for turn_id, grade in first.items() if grade is not None}
        ranking: dict[str, list[tuple[str, float]]] = {}
        for turn_id, items in turns.items():
            ranking[turn_id] = [(item_id, float(len(items) - place)) for place, item_id in enumerate(items)]
        (of_turns,) = measures.values(ranking).values()
        return dict.fromkeys(grades, 0.0) | of_turns

    return values


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
    certain: int
    """Pairs with one possible order under both sets."""
    strict: bool
    reason: str | None = None


def run_holes(
    run_id: str, run: Ranked, a: GradeSet, b: GradeSet, turns: Sequence[str], facts: MeasureFacts
) -> RunHoles:
    """Count a run's holes and bound its scores."""
    top = {turn_id: run[turn_id][: facts.cutoff] for turn_id in turns if run.get(turn_id)}
    ranked: list[tuple[str, str]] = []
    for turn_id, items in top.items():
        ranked.extend((turn_id, item_id) for item_id in items)
    counts = Counter((item_id in a.grades[turn_id], item_id in b.grades[turn_id]) for turn_id, item_id in ranked)
    return RunHoles(
        run_id=run_id,
        items=len(ranked),
        both=counts[True, True],
        only_a=counts[True, False],
        only_b=counts[False, True],
        neither=counts[False, False],
        judged_a=_judged(top, a),
        judged_b=_judged(top, b),
        range_a=_range(run, top, a, b, turns, facts),
        range_b=_range(run, top, b, a, turns, facts),
    )


def _judged(top: Ranked, given: GradeSet) -> float | None:
    shares: list[float] = []
    for turn_id, items in top.items():
        shares.append(sum(item_id in given.grades[turn_id] for item_id in items) / len(items))
    return math.fsum(shares) / len(shares) if shares else None


def _range(
    run: Ranked, top: Ranked, given: GradeSet, other: GradeSet, turns: Sequence[str], facts: MeasureFacts
) -> ScoreRange:
    """The scores of a run with its own holes in a set worst and the others best, and the other way round."""
    holes = {turn_id: other.grades[turn_id].keys() - given.grades[turn_id].keys() for turn_id in turns}
    ends: list[float] = []
    for own, rest in ((given.worst, given.best), (given.best, given.worst)):
        filled: dict[str, dict[str, int]] = {}
        for turn_id in turns:
            filled[turn_id] = given.grades[turn_id] | {
                item_id: own if item_id in top.get(turn_id, ()) else rest for item_id in holes[turn_id]
            }
        end = score(facts.name, given, filled, run, turns)
        if end is None:
            return ScoreRange(None, None)
        ends.append(end)
    return ScoreRange(min(ends), max(ends))


def score(measure: str, given: GradeSet, grades: Grades, run: Ranked, turns: Sequence[str]) -> float | None:
    """A run's mean over the turns in which it has a value, by some grades of a set; None without one."""
    values = scorer_of(measure, given, grades)(run)
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
        return TauRange(least=None, greatest=None, pairs=0, certain=0, strict=strict, reason="fewer than 2 runs")

    def ends(side: Sequence[tuple[ScoreRange, float]]) -> tuple[Floats, Floats]:
        lows = [value if of.low is None else min(of.low, value) for of, value in side]
        highs = [value if of.high is None else max(of.high, value) for of, value in side]
        return np.array(lows), np.array(highs)

    found = possible_tau(
        ends([(row.range_a, a) for row, a, _ in known]), ends([(row.range_b, b) for row, _, b in known])
    )
    if isinstance(found.least, Undefined) or isinstance(found.greatest, Undefined):
        return TauRange(
            least=None,
            greatest=None,
            pairs=found.pairs,
            certain=found.certain,
            strict=strict,
            reason="one side ranks all runs the same",
        )
    return TauRange(least=found.least, greatest=found.greatest, pairs=found.pairs, certain=found.certain, strict=strict)
