"""The order of judges by a statistic of agreement: on halves of the topics, and beside the order by another one.

Judges are rows of one table; what is asked is whether other topics, or another statistic, would order them alike.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.ranking import kendall_tau_b
from judge.stats.resampling import FEWEST_RESAMPLED, topic_draws, undefined_too_often
from judge.stats.system_agreement import SPLITS
from judge.stats.tables import Floats, Undefined


def halves_tau(
    tables: Sequence[NDArray[Any]], name: str, grades: Sequence[int], rng: np.random.Generator, splits: int = SPLITS
) -> float | Undefined:
    """Mean tau-b of the judges' order on random halves of the topics, each half against the other.

    A half has half the topics, so the order on all of them is steadier than this mean says.
    E. M. Voorhees & C. Buckley (2002), The effect of topic set size on retrieval experiment error, SIGIR, 316-323.

    Args:
        tables: C of every topic (T x k x k) for each judge, the topics in one order.
        name: Key of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        splits: Number of halvings.
    """
    stacked = np.asarray(tables, dtype=np.float64)
    reason = _too_few(stacked)
    if reason:
        return Undefined(reason)
    T = stacked.shape[1]
    first = (rng.permuted(np.tile(np.arange(T), (splits, 1)), axis=1) < T // 2).astype(np.float64)
    one, other = (_worths(stacked, W, name, grades) for W in (first, 1 - first))
    taus = np.array([_tau(x, y) for x, y in zip(one, other, strict=True)])
    undefined = undefined_too_often(taus, "halves")
    return Undefined(undefined) if undefined else float(np.nanmean(taus))


def orders_tau(
    tables: Sequence[NDArray[Any]],
    names: tuple[str, str],
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """Tau-b of the judges' orders by two statistics, with a percentile interval over resampled topics.

    `n` counts the judges. The interval has the properties of `ranking.system_agreement`'s: it describes how the two
    orders would agree on other topics.

    Args:
        tables: C of every topic (T x k x k) for each judge, the topics in one order.
        names: Two keys of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        replicates: Number of resamples.
        level: Confidence level.
    """
    stacked = np.asarray(tables, dtype=np.float64)
    J, T = stacked.shape[:2]
    if J < 2:
        return Estimate(None, None, None, J, T, "fewer than 2 judges")
    a, b = (_worths(stacked, np.ones((1, T)), name, grades)[0] for name in names)
    value = _tau(a, b)
    if np.isnan(value):
        return Estimate(None, None, None, J, T, "a judge has no value, or all have the same")
    if T < FEWEST_RESAMPLED:
        return Estimate(value, None, None, J, T, f"fewer than {FEWEST_RESAMPLED} topics")
    W = topic_draws(T, replicates, rng).astype(np.float64)
    of_a, of_b = (_worths(stacked, W, name, grades) for name in names)
    taus = np.array([_tau(x, y) for x, y in zip(of_a, of_b, strict=True)])
    undefined = undefined_too_often(taus, "topics")
    if undefined:
        return Estimate(value, None, None, J, T, undefined)
    low, high = np.quantile(taus[~np.isnan(taus)], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), J, T)


def _too_few(stacked: Floats) -> str:
    J, T = stacked.shape[:2]
    return "fewer than 2 judges" if J < 2 else f"fewer than {FEWEST_RESAMPLED} topics" if T < FEWEST_RESAMPLED else ""


def _worths(stacked: Floats, W: Floats, name: str, grades: Sequence[int]) -> Floats:
    """The statistic of every judge under topic weights W (B x T), turned so that the greatest is the best (B x J)."""
    statistic, k = STATISTICS[name], stacked.shape[-1]
    columns = [statistic.worth(statistic((W @ C.reshape(len(C), k * k)).reshape(-1, k, k), grades)) for C in stacked]
    return np.stack(columns, axis=1)


def _tau(x: Floats, y: Floats) -> float:
    """Tau-b, or nan where a judge has no value or a side is constant."""
    tau = kendall_tau_b(x, y)
    return float("nan") if isinstance(tau, Undefined) else tau


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
    """The least and the greatest τ_b of two rankings, from the range of each run's score on each side.

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

    Args:
        x: The lowest and the highest score of each run (R,) on one side.
        y: Those on the other side.
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
