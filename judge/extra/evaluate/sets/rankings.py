"""The runs ranked by each of two sets of grades: how far the rankings agree, and which pairs of runs swap. Pure."""

from collections.abc import Callable, Sequence

import numpy as np

from judge.extra.evaluate.scores import MeasuredRun, measured_run
from judge.extra.evaluate.sets.grades import GradeSet
from judge.extra.evaluate.sets.holes import RunHoles, TauRange, rounded, run_holes, tau_range
from judge.extra.evaluate.sets.measures import MEAN, OrderedRun, measure_facts, measure_of
from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.records import Estimate, Record
from judge.stats.run_differences import run_differences
from judge.stats.system_agreement import system_agreement
from judge.stats.tables import Floats
from judge.stats.tied_ranking import TIED

ALPHA = 0.05
"""Adjusted p up to which a difference of two runs is significant."""


class RunBySets(Record, frozen=True):
    """A run under a measure by each set."""

    run_id: str
    a: MeasuredRun
    b: MeasuredRun
    rank_a: int | None
    """1 for the best; runs that tie share a rank; None without a score under both sets."""
    rank_b: int | None


class PairBySets(Record, frozen=True):
    """Two runs: the first less the second by each set, over the turns in which both runs have a value."""

    run_a: str
    run_b: str
    a: Estimate
    """The difference by set A, with the interval of this pair alone."""
    b: Estimate
    p_a: float | None
    """Adjusted for all pairs; None where topics are too few for a test."""
    p_b: float | None
    order_a: int
    """1 where the first run ranks above the second by set A, -1 below, 0 where they tie."""
    order_b: int

    @property
    def significant(self) -> tuple[bool, bool]:
        """Whether the difference is significant by each set."""
        return self.p_a is not None and self.p_a <= ALPHA, self.p_b is not None and self.p_b <= ALPHA

    @property
    def tested(self) -> bool:
        """Whether both sets have a test."""
        return self.p_a is not None and self.p_b is not None

    @property
    def swapped(self) -> bool:
        """Whether the sets order the runs the opposite way."""
        return self.order_a * self.order_b < 0


class RankedBySets(Record, frozen=True):
    """The runs under one measure by two sets."""

    measure: str
    higher_is_better: bool
    runs: tuple[RunBySets, ...]
    """By rank of A, then of B, then natural order; runs without a rank come last."""
    statistics: dict[str, Estimate]
    """Of TIED, as far as there are runs for them; topics are drawn for both rankings together."""
    pairs: tuple[PairBySets, ...]
    """Every two runs that have a rank."""
    holes: tuple[RunHoles, ...]
    """In the order of `runs`."""
    tau_b: TauRange


def ranked_by_sets(
    runs: Sequence[OrderedRun],
    a: GradeSet,
    b: GradeSet,
    turns: Sequence[str],
    measure: str,
    *,
    cluster: Cluster,
    rng: Callable[[], np.random.Generator],
    replicates: int,
    flips: int,
) -> RankedBySets:
    """Rank the runs by each set under a measure.

    Args:
        runs: Each run once.
        a: The first set.
        b: The second set, with the same good end.
        turns: The turns of both sets, in natural order; others do not count.
        measure: `mean`, or as ir_measures writes it.
        cluster: The unit of intervals and tests.
        rng: Makes the source of randomness.
        replicates: How many resamples of the topics.
        flips: How many random signs of the tests.

    Raises:
        UsageError: ir_measures does not compute the measure.
    """
    facts = measure_facts(measure)
    runs = sorted(runs, key=lambda run: natural_key(run.run_id))
    higher = a.higher_is_better or measure != MEAN
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id in turns]
    measured = [_measured(runs, of, turns, facts.name, cluster) for of in (a, b)]
    values = [
        np.array([[rounded(run.turns[turn]) if turn in run.turns else np.nan for turn in turns] for run in side])
        for side in measured
    ]
    means = [[_mean(row) for row in side] for side in values]
    ranked = [place for place in range(len(runs)) if all(side[place] is not None for side in means)]
    rows_of = [side[np.array(ranked, dtype=np.intp)] for side in values]
    ranks = [_ranks([side[place] or 0.0 for place in ranked], higher) for side in means]
    rank_of = {place: (first, second) for place, first, second in zip(ranked, *ranks, strict=True)}
    rows = [
        RunBySets(run.run_id, measured[0][place], measured[1][place], *rank_of.get(place, (None, None)))
        for place, run in enumerate(runs)
    ]
    order = sorted(range(len(runs)), key=lambda place: (place not in rank_of, rank_of.get(place, (0, 0)), place))
    holes = [run_holes(run, a, b, turns, facts) for run in runs]
    (sums_a, counts_a), (sums_b, counts_b) = (_by_topic(side, units) for side in rows_of)
    return RankedBySets(
        measure=facts.name,
        higher_is_better=higher,
        runs=tuple(rows[place] for place in order),
        statistics=system_agreement(
            *(sums_a, counts_a, sums_b, counts_b, rng()),
            higher_is_better=higher,
            replicates=replicates,
            statistics=TIED,
        ),
        pairs=_pairs([runs[place].run_id for place in ranked], rows_of, units, ranks, rng, flips),
        holes=tuple(holes[place] for place in order),
        tau_b=tau_range(holes, list(zip(*means, strict=True)), facts.strict),
    )


def _measured(
    runs: Sequence[OrderedRun], of: GradeSet, turns: Sequence[str], measure: str, cluster: Cluster
) -> list[MeasuredRun]:
    scorer = measure_of(measure, of, {turn_id: of.grades[turn_id] for turn_id in turns})
    by_run = [scorer.by_turn(run.turns) for run in runs]
    bounds: tuple[float, float] | None = (float(of.scale[0]), float(of.scale[-1]))
    if measure != MEAN:
        bounds = (0.0, 1.0) if all(0 <= value <= 1 for values in by_run for value in values.values()) else None
    return [
        # Each run's own turns, because a response without a grade has no value.
        measured_run(run.run_id, measure, values, values, "qrels", cluster=cluster, bounds=bounds)
        for run, values in zip(runs, by_run, strict=True)
    ]


def _mean(row: Floats) -> float | None:
    known = row[~np.isnan(row)]
    return float(known.sum() / len(known)) if len(known) else None


def _ranks(scores: Sequence[float], higher: bool) -> list[int]:
    return [1 + sum(other > score if higher else other < score for other in scores) for score in scores]


def _by_topic(values: Floats, units: Sequence[str]) -> tuple[Floats, Floats]:
    """Sums and counts of each run and topic (R x T), topics in the order of the turns."""
    names = {name: place for place, name in enumerate(dict.fromkeys(units))}
    places = np.array([names[unit] for unit in units], dtype=np.int64)
    sums, counts = np.zeros((len(values), len(names))), np.zeros((len(values), len(names)))
    for run, row in enumerate(values):
        known = ~np.isnan(row)
        sums[run] = np.bincount(places[known], weights=row[known], minlength=len(names))
        counts[run] = np.bincount(places[known], minlength=len(names))
    return sums, counts


def _pairs(
    names: Sequence[str],
    values: Sequence[Floats],
    units: Sequence[str],
    ranks: Sequence[Sequence[int]],
    rng: Callable[[], np.random.Generator],
    flips: int,
) -> tuple[PairBySets, ...]:
    if len(names) < 2:
        return ()
    by_a, by_b = (run_differences(side, units, rng(), flips=flips) for side in values)
    return tuple(
        PairBySets(
            run_a=names[of_a.a],
            run_b=names[of_a.b],
            a=of_a.difference,
            b=of_b.difference,
            p_a=of_a.p_adjusted,
            p_b=of_b.p_adjusted,
            order_a=int(np.sign(ranks[0][of_a.b] - ranks[0][of_a.a])),
            order_b=int(np.sign(ranks[1][of_a.b] - ranks[1][of_a.a])),
        )
        for of_a, of_b in zip(by_a, by_b, strict=True)
    )
