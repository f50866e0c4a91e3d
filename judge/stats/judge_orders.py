"""The order of judges by a statistic of agreement: on halves of the topics, and beside the order by another one.

Judges are rows of one table; what is asked is whether other topics, or another statistic, would order them alike.
"""

from collections.abc import Sequence
from typing import Any

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
