"""The runs ranked by each of two sets of grades: agreement, pairs that swap; and the tables of two sets. Pure."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from judge.extra.evaluate import measured_run, sets
from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.io.table import Cell, Column, Table
from judge.io.text import count
from judge.records import Estimate, Record
from judge.results.rows import Score
from judge.results.tables import SEED
from judge.stats.ranking import TIED, system_agreement
from judge.stats.run_differences import run_differences
from judge.stats.tables import Floats

ALPHA = 0.05
"""Adjusted p up to which a difference of two runs is significant."""
FLIPS = 10_000
"""Draws of signs of topics."""


class RunBySets(Record, frozen=True):
    """A run under a measure by each set."""

    run_id: str
    a: Score
    b: Score
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
    holes: tuple[sets.RunHoles, ...]
    """In the order of `runs`."""
    tau_b: sets.TauRange


def ranked_by_sets(
    runs: Mapping[str, sets.Ranked],
    a: sets.GradeSet,
    b: sets.GradeSet,
    turns: Sequence[str],
    measure: str,
    cluster: Cluster,
) -> RankedBySets:
    """Rank the runs by each set under a measure.

    The sets have the same good end; turns are those of both, in natural order, and others do not count.
    """
    facts = sets.measure_facts(measure)
    runs = {run_id: runs[run_id] for run_id in sorted(runs, key=natural_key)}
    names = [*runs]
    higher = a.higher_is_better or measure != sets.MEAN
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id in turns]
    measured = [_measured(runs, of, turns, facts.name, cluster) for of in (a, b)]
    values = [_values(side, turns) for side in measured]
    means = [list(map(_mean, matrix)) for matrix in values]
    ranked = [place for place in range(len(runs)) if None not in (means[0][place], means[1][place])]
    rows_of = [matrix[np.array(ranked, dtype=np.intp)] for matrix in values]
    ranks = [_ranks([side[place] or 0.0 for place in ranked], higher_is_better=higher) for side in means]
    rank_of = {place: (first, second) for place, first, second in zip(ranked, *ranks, strict=True)}
    rows = []
    for place, run_id in enumerate(names):
        rank_a, rank_b = rank_of.get(place, (None, None))
        rows.append(RunBySets(run_id=run_id, a=measured[0][place], b=measured[1][place], rank_a=rank_a, rank_b=rank_b))
    order = sorted(range(len(runs)), key=lambda place: (place not in rank_of, rank_of.get(place, (0, 0)), place))
    holes = [sets.run_holes(run_id, run, a, b, turns, facts) for run_id, run in runs.items()]
    (sums_a, counts_a), (sums_b, counts_b) = (_by_topic(side, units) for side in rows_of)
    return RankedBySets(
        measure=facts.name,
        higher_is_better=higher,
        runs=tuple(rows[place] for place in order),
        statistics=system_agreement(
            *(sums_a, counts_a, sums_b, counts_b, np.random.default_rng(SEED)),
            higher_is_better=higher,
            replicates=sets.REPLICATES,
            statistics=TIED,
        ),
        pairs=_paired([names[place] for place in ranked], rows_of, units, ranks),
        holes=tuple(holes[place] for place in order),
        tau_b=sets.tau_range(holes, list(zip(*means, strict=True)), facts.strict),
    )


def run_sums(
    runs: Mapping[str, sets.Ranked], of: sets.GradeSet, turns: Sequence[str], measure: str, cluster: Cluster
) -> tuple[Floats, Floats]:
    """Sums and counts of a measure of passages by run and topic (R x T), runs in their order."""
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id in turns]
    return _by_topic(_values(_measured(runs, of, turns, measure, cluster), turns), units)


def _measured(
    runs: Mapping[str, sets.Ranked], of: sets.GradeSet, turns: Sequence[str], measure: str, cluster: Cluster
) -> list[Score]:
    scorer = sets.scorer_of(measure, of, {turn_id: of.grades[turn_id] for turn_id in turns})
    by_run = {run_id: scorer(run) for run_id, run in runs.items()}
    bounds: tuple[float, float] | None = (float(of.scale[0]), float(of.scale[-1]))
    if measure != sets.MEAN:
        scored = itertools.chain.from_iterable(values.values() for values in by_run.values())
        bounds = (0.0, 1.0) if all(0 <= value <= 1 for value in scored) else None
    return [
        # Each run's own turns, because a response without a grade has no value.
        measured_run(run_id, measure, values, values, "qrels", cluster=cluster, bounds=bounds)
        for run_id, values in by_run.items()
    ]


def _values(runs: Sequence[Score], turns: Sequence[str]) -> Floats:
    """The rounded value of each run in each turn, (R, T); nan where it has none."""
    values = np.full((len(runs), len(turns)), np.nan)
    for row, run in enumerate(runs):
        for column, turn_id in enumerate(turns):
            if turn_id in run.values:
                values[row, column] = sets.rounded(run.values[turn_id])
    return values


def _ranks(means: Sequence[float], *, higher_is_better: bool) -> list[int]:
    """The rank of each run by its mean; equal means share one."""
    sign = 1 if higher_is_better else -1
    return [1 + sum(sign * other > sign * mean for other in means) for mean in means]


def _mean(row: Floats) -> float | None:
    known = row[~np.isnan(row)]
    return float(known.sum() / len(known)) if len(known) else None


def _by_topic(values: Floats, units: Sequence[str]) -> tuple[Floats, Floats]:
    """Sums and counts of each run and topic (R x T), topics in the order of the turns."""
    names = {name: place for place, name in enumerate(dict.fromkeys(units))}
    places = np.array([names[unit] for unit in units], dtype=np.int64)
    sums = np.zeros((len(values), len(names)))
    counts = np.zeros((len(values), len(names)))
    for run, row in enumerate(values):
        known = ~np.isnan(row)
        sums[run] = np.bincount(places[known], weights=row[known], minlength=len(names))
        counts[run] = np.bincount(places[known], minlength=len(names))
    return sums, counts


def _paired(
    names: Sequence[str], values: Sequence[Floats], units: Sequence[str], ranks: Sequence[Sequence[int]]
) -> tuple[PairBySets, ...]:
    if len(names) < 2:
        return ()
    by_a, by_b = (run_differences(side, units, np.random.default_rng(SEED), flips=FLIPS) for side in values)
    pairs = []
    for (x, y, a, _, p_a), (_, _, b, _, p_b) in zip(by_a, by_b, strict=True):
        order_a, order_b = (int(np.sign(side[y] - side[x])) for side in ranks)
        pairs.append(
            PairBySets(run_a=names[x], run_b=names[y], a=a, b=b, p_a=p_a, p_b=p_b, order_a=order_a, order_b=order_b)
        )
    return tuple(pairs)


_STRICT = "{}: the ranges are strict, so no grades of the holes take a score beyond them."
_FILLED = (
    "{} also depends on the best ranking that is possible, so a score may leave its range for grades in between: the "
    "ranges are no strict bounds, nor is that of tau-b."
)
_KINDS = (
    ("A and B", "active", (True, True)),
    ("A only", "mixed", (True, False)),
    ("B only", "mixed", (False, True)),
    ("neither", "passive", (False, False)),
)
"""Under which set a difference is significant, and what agreements of such pairs are called.

N. Ferro & M. Sanderson (2022), How do you test a test? A multifaceted examination of significance tests, WSDM.
"""


def agreement_grids(of: sets.SetsAgreement, cluster: Cluster = "topic") -> dict[str, Table[Any]]:
    """The tables about grades, by file name."""
    return {
        "sets": _sets(of),
        "agreement": _agreement(of, cluster),
        "confusion": _confusion(of),
        "marginals": _marginals(of),
    }


def ranking_grids(measured: Sequence[RankedBySets], cluster: Cluster = "topic") -> dict[str, Table[Any]]:
    """The tables about runs, by file name; every line names its measure."""
    return {
        "runs": _runs(measured),
        "rankings": _rankings(measured, cluster),
        "pairs": _pairs(measured),
        "swaps": _swaps(measured),
        "holes": _holes(measured),
        "tau_range": _tau_range(measured),
    }


def _sets(of: sets.SetsAgreement) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for letter, side in (("A", of.a), ("B", of.b)):
        scale = f"{side.scale[0]}-{side.scale[-1]}"
        if not side.higher_is_better:
            scale += ", lower is better"
        counts = (side.items, side.turns, of.items, side.only_items, side.only_turns)
        lines.append((letter, side.name, *counts, side.mean, scale))
    columns = ("set", "file", "items", "turns", "both", "only_here", "turns_only_here", "mean", "scale")
    note = f"Both graded {count(of.items, 'item')} of {count(of.turns, 'turn')}; the mean is over these. Items of one "
    return Table(lines, columns, "The two sets of grades", (f"{note}set only are holes of the other.",))


def _agreement(of: sets.SetsAgreement, cluster: Cluster) -> Table[Any]:
    lines = (
        (name, sets.COMPARED[name], estimate, estimate.n, estimate.topics, estimate.reason)
        for name, estimate in of.statistics.items()
    )
    title = f"Agreement on the {count(of.items, 'item')} that both graded"
    columns = ("statistic", "meaning", "value", "items", "topics", "note")
    return Table(lines, columns, title, (f"Intervals are 95 %, over {cluster}s.",))


def _confusion(of: sets.SetsAgreement) -> Table[Any]:
    grades = [str(grade) for grade in of.a.scale]
    lines: list[tuple[Cell, ...]] = [(grade, *row, sum(row)) for grade, row in zip(grades, of.confusion, strict=True)]
    columns = [sum(column) for column in zip(*of.confusion, strict=True)]
    heads = ("grade", *(f"b_{grade}" for grade in grades), "items")
    return Table((*lines, ("items", *columns, sum(columns))), heads, "Grades of A in rows, of B in columns")


def _marginals(of: sets.SetsAgreement) -> Table[Any]:
    lines = ((test.name, test.chi2, test.df, test.p, test.reason) for test in of.marginals)
    note = "Both tests take items as independent, topics or not; on many items of few topics p is too small."
    columns = ("test", "chi2", "df", Column("p", p_values=True), "note")
    return Table(lines, columns, "Do A and B use the grades equally often?", (note,))


def _runs(measured: Sequence[RankedBySets]) -> Table[Any]:
    lines = []
    for of in measured:
        for run in of.runs:
            a = run.a.mean
            b = run.b.mean
            lines.append((of.measure, run.run_id, run.rank_a, run.rank_b, a, b, a.n, b.n))
    columns = ("measure", "run", "rank_a", "rank_b", "a", "b", "turns_a", "turns_b")
    note = "a, b: the score by A and by B, with its 95 % interval. turns_a, turns_b: turns in the mean."
    notes = (note, _MEAN) if any(of.measure == sets.MEAN for of in measured) else (note,)
    return Table(lines, columns, "The runs by each set", notes)


_MEAN = (
    "mean: of the grades of what a run ranks first. An unanswered turn has the worst grade; a turn whose response the "
    "set did not grade is left out, other than in `judge evaluate responses`."
)


def _rankings(measured: Sequence[RankedBySets], cluster: Cluster) -> Table[Any]:
    lines: list[tuple[str, str, str, Estimate, int, int, str | None]] = []
    for of in measured:
        for name, estimate in of.statistics.items():
            lines.append((of.measure, name, _MEANING[name], estimate, estimate.n, estimate.topics, estimate.reason))
    notes = (
        f"Intervals are 95 % percentile intervals over {cluster}s, drawn for both rankings together. Every "
        "statistic but swapped is 1 for equal rankings, ties included.",
        f"They are of the agreement to expect on as many other {cluster}s. Without their noise the rankings "
        "agree more (swapped: less), by how much no interval of these says. Resampled rankings are noisier still, "
        "so an interval may lie wholly below its value (that of swapped above).",
    )
    columns = ("measure", "statistic", "meaning", "value", "runs", "topics", "note")
    return Table(lines, columns, "Agreement of the two rankings", notes)


_MEANING = {
    "tau_b": "Kendall's tau",
    "tau_ap_b": "AP correlation, symmetric",
    "rbo_b": "rank-biased overlap, p = .9",
    "top_1": "the best run in common",
    "top_3": "the best 3 in common",
    "top_5": "the best 5 in common",
    "swapped": "pairs in opposite order",
}


def _pairs(measured: Sequence[RankedBySets]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for of in measured:
        for words, name, significant in _KINDS:
            group = [pair for pair in of.pairs if pair.tested and pair.significant == significant]
            lines.append((of.measure, words, name, *_orders(group)))
        if untested := [pair for pair in of.pairs if not pair.tested]:
            lines.append((of.measure, "not tested", None, *_orders(untested)))
    note = (
        f"Significant: p adjusted for all pairs is {ALPHA:g} or less. Tied: by one set, not by the other; pairs that "
    )
    columns = ("measure", "significant_by", "kind", "agree", "disagree", "tied")
    return Table(lines, columns, "Pairs of runs by significance and order", (f"{note}both tie agree.",))


def _orders(group: Sequence[PairBySets]) -> tuple[int, int, int]:
    kinds = Counter("same" if p.order_a == p.order_b else "swapped" if p.swapped else "tied" for p in group)
    return kinds["same"], kinds["swapped"], kinds["tied"]


def _swaps(measured: Sequence[RankedBySets]) -> Table[Any]:
    lines = []
    for of in measured:
        for pair in of.pairs:
            if not pair.swapped:
                continue
            significant_by = "not tested"
            if pair.tested:
                significant_by = next(words for words, _, by in _KINDS if pair.significant == by)
            lines.append((of.measure, pair.run_a, pair.run_b, pair.a, pair.p_a, pair.b, pair.p_b, significant_by))
    note = "Differences are of the first run less the second by each set, on the turns in which both have a value."
    p_a = Column("p_a", p_values=True)
    p_b = Column("p_b", p_values=True)
    columns = ("measure", "run_a", "run_b", "a", p_a, "b", p_b, "significant_by")
    return Table(
        lines, columns, "Pairs of runs in opposite order", (note if lines else "No pair is in opposite order.",)
    )


def _holes(measured: Sequence[RankedBySets]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for of in measured:
        for run, row in zip(of.runs, of.holes, strict=True):
            counts = row.items, row.both, row.only_a, row.only_b, row.neither
            sides = (run.a.mean, row.range_a), (run.b.mean, row.range_b)
            ranges = (
                Estimate(value=mean.value, low=scores.low, high=scores.high, n=mean.n, topics=0)
                for mean, scores in sides
            )
            lines.append((of.measure, row.run_id, *counts, row.judged_a, row.judged_b, *ranges))
    columns = ("measure", "run", "items", "both", "only_a", "only_b", "neither", "judged_a", "judged_b")
    note = "In brackets what the run would score if its own holes had the worst grade and the others the best, or the "
    title = "Holes: what each run ranks that only one set graded"
    return Table(lines, (*columns, "range_a", "range_b"), title, (f"{note}reverse.",))


def _tau_range(measured: Sequence[RankedBySets]) -> Table[Any]:
    notes = dict.fromkeys((_STRICT if of.tau_b.strict else _FILLED).format(of.measure) for of in measured)
    lines = []
    for of in measured:
        tau = of.tau_b
        value = of.statistics["tau_b"].value
        lines.append((of.measure, value, tau.least, tau.greatest, tau.pairs, tau.certain, tau.reason))
    columns = ("measure", "tau_b", "least", "greatest", "pairs", "certain", "note")
    return Table(lines, columns, "What tau-b could be if the holes were graded", notes)
