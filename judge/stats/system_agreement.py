"""Agreement of two rankings, and how far the choice of topics moves it: of runs by a judge and by assessors, of judges.

Judges are ordered by a statistic of agreement; what is asked is whether other topics, or another statistic, would order
them alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.ranking import SYSTEM, Batched, RankStatistic, batched_tau_b, defined_values
from judge.stats.resampling import FEWEST_RESAMPLED, pooled, topic_draws, undefined_too_often
from judge.stats.tables import Floats, Undefined

_LEVEL = 0.95
SPLITS = 500
"""Random halves of the topics behind `split_half`."""
MOST_CELLS = 4_000_000
"""Most cells of a B x R x R array; resamples are taken in lots of this size."""


class Halves(msgspec.Struct, frozen=True):
    """Mean tau-b of two rankings of the runs, each made on its own half of the topics; None has a `reason`."""

    human: float | None
    """The assessors' on both halves: a ranking's agreement with itself on other topics, a ceiling of the next."""
    judge: float | None
    """The judge's on one half, the assessors' on the other."""
    reason: str | None = None


def split_half(
    human_sums: Floats,
    human_counts: Floats,
    judge_sums: Floats,
    judge_counts: Floats,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
) -> Halves:
    """How well half of the topics ranks the runs as the other half does, by assessors and by the judge.

    Where runs are close, the assessors' own ranking changes with the topics, and only a judge with less noise than
    theirs agrees with it any better. Arguments are those of `system_agreement`. Halves are random; ones on which a run
    has no item, or a side ranks all runs the same, are left out.
    E. M. Voorhees & C. Buckley (2002), The effect of topic set size on retrieval experiment error, SIGIR, 316-323.
    """
    sums, counts = _ranked(human_sums, human_counts, judge_sums, judge_counts, higher_is_better)
    T, R = sums[0].shape
    if R < 2 or T < FEWEST_RESAMPLED:
        return Halves(None, None, "fewer than 2 runs" if R < 2 else f"fewer than {FEWEST_RESAMPLED} topics")
    (judge, human), (_, other) = (_run_means(W, sums, counts) for W in _halves(T, SPLITS, rng))
    own, across = (_in_lots(batched_tau_b, X, other) for X in (human, judge))
    known = ~(np.isnan(own) | np.isnan(across))
    if 2 * known.sum() < SPLITS:
        return Halves(None, None, "most halves of the topics lack a run, or rank all runs the same")
    return Halves(float(own[known].mean()), float(across[known].mean()))


def system_agreement(
    human_sums: Floats,
    human_counts: Floats,
    judge_sums: Floats,
    judge_counts: Floats,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
    replicates: int = 2000,
    statistics: Mapping[str, RankStatistic] | None = None,
) -> dict[str, Estimate]:
    """The judge's ranking of R runs against the assessors', with 95 % percentile intervals over resampled topics.

    These statistics are bounded and take few values, so neither a normal nor a t interval fits them; a percentile
    interval stays within bounds, and is too narrow where topics are few. It describes how these two rankings would
    agree on other topics, noise of both included. Where runs are close, both are noisy, so it lies below the agreement
    of the true rankings and may not hold it; `split_half` says how noisy the assessors' ranking is. Resamples in which
    a run has no item or a side is constant are left out. `n` counts the runs that have an item on both sides; other
    runs are not ranked.

    Sums and counts are of the grades by run and topic (R x T), over the items that both sides graded. Every statistic
    of SYSTEM, or of `statistics`, that R runs allow is estimated.
    """
    sums, counts = _ranked(human_sums, human_counts, judge_sums, judge_counts, higher_is_better)
    T, R = sums[0].shape
    formulas = {name: row.formula for name, row in (statistics or SYSTEM).items() if row.fewest <= R}
    if R < 2:
        return dict.fromkeys(formulas, Estimate(None, None, None, R, T, "fewer than 2 runs"))
    judge, human = _run_means(np.ones((1, T)), sums, counts)
    points = {name: float(defined_values(f, judge, human)[0]) for name, f in formulas.items()}
    judge, human = _run_means(topic_draws(T, replicates, rng).astype(np.float64), sums, counts)
    resampled = {name: _in_lots(f, judge, human) for name, f in formulas.items()}
    return {name: _estimate(value, resampled[name], R, T) for name, value in points.items()}


def _ranked(
    human_sums: Floats, human_counts: Floats, judge_sums: Floats, judge_counts: Floats, higher_is_better: bool
) -> tuple[list[Floats], list[Floats]]:
    """Sums, turned so that the greatest is the best, and counts of judge and assessors (T x R each).

    Only runs that have an item on both sides are ranked, and only their topics are used.
    """
    sign = 1.0 if higher_is_better else -1.0
    ranked = (human_counts.sum(axis=1) > 0) & (judge_counts.sum(axis=1) > 0)
    used = (human_counts[ranked].sum(axis=0) > 0) | (judge_counts[ranked].sum(axis=0) > 0)
    return (
        [sign * X[ranked][:, used].T for X in (judge_sums, human_sums)],
        [X[ranked][:, used].T for X in (judge_counts, human_counts)],
    )


def _run_means(W: Floats, sums: Sequence[Floats], counts: Sequence[Floats]) -> list[Floats]:
    """Means of every run (B x R) under topic weights (B x T), on each side; nan where a run has no item."""
    totals = [W @ X for X in counts]
    return [np.where(N > 0, W @ X / np.maximum(N, 1), np.nan) for X, N in zip(sums, totals, strict=True)]


def _in_lots(statistic: Batched, X: Floats, Y: Floats) -> Floats:
    """`defined_values` (B,), so many of them at a time that the memory holds their B x R x R array."""
    B, R = X.shape
    lots = np.array_split(np.arange(B), -(-B * R * R // MOST_CELLS))
    return np.concatenate([defined_values(statistic, X[lot], Y[lot]) for lot in lots])


def _estimate(value: float, resampled: Floats, R: int, T: int) -> Estimate:
    if np.isnan(value):
        return Estimate(None, None, None, R, T, "one side ranks all runs the same")
    few = f"fewer than {FEWEST_RESAMPLED} topics" if T < FEWEST_RESAMPLED else undefined_too_often(resampled, "topics")
    if few:
        return Estimate(value, None, None, R, T, few)
    defined = resampled[~np.isnan(resampled)]
    low, high = np.quantile(defined, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(value, float(low), float(high), R, T)


def halves_tau(
    tables: Sequence[NDArray[Any]], name: str, grades: Sequence[int], rng: np.random.Generator, splits: int = SPLITS
) -> float | Undefined:
    """Mean tau-b of the judges' order on random halves of the topics, each half against the other.

    Each judge has C of every topic (T x k x k), the topics in one order. A half has half the topics, so the order on
    all of them is steadier than this mean says.
    E. M. Voorhees & C. Buckley (2002), The effect of topic set size on retrieval experiment error, SIGIR, 316-323.
    """
    stacked = np.asarray(tables, dtype=np.float64)
    J, T = stacked.shape[:2]
    if J < 2 or T < FEWEST_RESAMPLED:
        return Undefined("fewer than 2 judges" if J < 2 else f"fewer than {FEWEST_RESAMPLED} topics")
    taus = _in_lots(batched_tau_b, *(_worths(stacked, W, name, grades) for W in _halves(T, splits, rng)))
    undefined = undefined_too_often(taus, "halves")
    return Undefined(undefined) if undefined else float(np.nanmean(taus))


def orders_tau(
    tables: Sequence[NDArray[Any]],
    names: tuple[str, str],
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
) -> Estimate:
    """Tau-b of the judges' orders by two statistics, with a 95 % percentile interval over resampled topics.

    `n` counts the judges. The interval has the properties of `system_agreement`'s: it describes how the two orders
    would agree on other topics. The tables are those of `halves_tau`.
    """
    stacked = np.asarray(tables, dtype=np.float64)
    J, T = stacked.shape[:2]
    if J < 2:
        return Estimate(None, None, None, J, T, "fewer than 2 judges")

    def taus(W: Floats) -> Floats:
        return _in_lots(batched_tau_b, *(_worths(stacked, W, name, grades) for name in names))

    value = float(taus(np.ones((1, T)))[0])
    if np.isnan(value):
        return Estimate(None, None, None, J, T, "a judge has no value, or all have the same")
    return _estimate(value, taus(topic_draws(T, replicates, rng).astype(np.float64)), J, T)


def _halves(T: int, splits: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Which topics are in each of two random halves (splits x T)."""
    first = (rng.permuted(np.tile(np.arange(T), (splits, 1)), axis=1) < T // 2).astype(np.float64)
    return first, 1 - first


def _worths(stacked: Floats, W: Floats, name: str, grades: Sequence[int]) -> Floats:
    """The statistic of every judge under topic weights W (B x T), turned so that the greatest is the best (B x J)."""
    statistic = STATISTICS[name]
    return np.stack([statistic.worth(statistic(pooled(W, C), grades)) for C in stacked], axis=1)


_Mask = NDArray[np.bool_]


class PossibleTau(NamedTuple):
    """Between what τ_b lies, and how many pairs of runs have one possible order on both sides."""

    least: float | Undefined
    greatest: float | Undefined
    pairs: int
    certain: int


class _Orders(NamedTuple):
    """Which orders a side leaves possible, for each pair of runs."""

    up: _Mask
    tied: _Mask
    down: _Mask

    def turned(self) -> "_Orders":
        return _Orders(self.down, self.tied, self.up)


def possible_tau(x: tuple[Floats, Floats], y: tuple[Floats, Floats]) -> PossibleTau:
    """The least and the greatest τ_b of two rankings, from the range of each run's score on each side, (R,) each.

    The first of two runs may be above the second where its highest score is above the lowest of the second, and they
    may tie where their ranges meet. Every pair takes the order on each side, among the possible ones, that serves the
    bound: concordant if it can be, else tied on a side, else discordant. A pair adds to a side's untied pairs, under
    the root of τ_b, as its order there says. Orders of different pairs are taken as free of each other, so the bounds
    hold, and may be wider than any scores within the ranges can reach.

    Of the scores 3, 2 and 1 to 2.5 only the last two may change places, so 2 or 3 of 3 pairs are concordant:

    >>> sure = np.array([3.0, 2.0, 1.0])
    >>> found = possible_tau((sure, np.array([3.0, 2.0, 2.5])), (sure, sure))
    >>> f"{(2 - 1) / 3:.6f}", f"{found.least:.6f}", found.greatest, found.certain
    ('0.333333', '0.333333', 1.0, 2)
    """
    first, second = _orders(*x), _orders(*y)
    certain = int(((_count(first) == 1) & (_count(second) == 1)).sum())
    pairs = len(first.up)
    greatest, least = _greatest(first, second), _greatest(first.turned(), second)
    return PossibleTau(least if isinstance(least, Undefined) else 0.0 - least, greatest, pairs, certain)


def _orders(low: Floats, high: Floats) -> _Orders:
    i, j = np.triu_indices(len(low), 1)
    return _Orders(high[i] > low[j], (low[i] <= high[j]) & (low[j] <= high[i]), high[j] > low[i])


def _count(orders: _Orders) -> NDArray[np.int64]:
    held: NDArray[np.int64] = np.sum(orders, axis=0)
    return held


def _greatest(x: _Orders, y: _Orders) -> float | Undefined:
    """The greatest τ_b; the least is the negative of that against a reversed side."""
    if any(not (side.up | side.down).any() for side in (x, y)):
        return Undefined("one side ranks all runs the same")
    concordant = (x.up & y.up) | (x.down & y.down)
    tied = (x.tied | y.tied) & ~concordant
    discordant = ~(concordant | tied)
    total = int(concordant.sum()) - int(discordant.sum())
    if not total:
        return 0.0
    untied = []
    for side, other in ((x, y), (y, x)):
        # Ties lift a positive τ and lower a negative one, so of the tied pairs as many count here as serve the bound.
        counted = ~side.tied if total > 0 else (side.up | side.down) & other.tied
        untied.append(int((concordant | discordant).sum() + (tied & counted).sum()))
    return float(total / (untied[0] * untied[1]) ** 0.5)
