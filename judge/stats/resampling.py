"""Intervals of agreement statistics over topics, and over items as if topics did not matter.

Everything is drawn from tables of counts, so only the cost of making the tables grows with the items.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, PairMean, Statistic, point
from judge.stats.means import FEWEST_TOPICS, t_quantile
from judge.stats.tables import Floats, Undefined, is_weighted

FEWEST_RESAMPLED = 5
"""Fewest topics to resample; a mean needs fewer, but few topics give few different resamples."""
MOST_UNDEFINED = 0.05
"""Largest share of undefined resamples under an interval.

Above it the defined ones are a biased sample: if only one topic has any disagreement, each of them has that topic, and
they hardly differ.
"""
UNEQUAL = "items have unequal weights"
"""Why tables of weights have no interval over items: they do not hold the weight of each item."""


class Resampled(msgspec.Struct, frozen=True):
    """A statistic with its interval over topics, beside the one that ignores them."""

    estimate: Estimate
    """With the interval over topics."""
    item: Estimate
    """With the interval over items."""
    design_effect: float | None
    """Squared ratio of the two standard errors; None where either interval is undefined."""


def topic_draws(T: int, replicates: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each of T topics is in each of B resamples of T topics with replacement (B x T)."""
    return rng.multinomial(T, np.full(T, 1 / T), size=replicates)


def weighted_resample(
    name: str, C: NDArray[np.int64], grades: Sequence[int], rng: np.random.Generator, replicates: int
) -> Floats:
    """A statistic of resamples of the items behind C, topics ignored (B,): multinomial draws over its k² cells."""
    n = int(C.sum())
    draws = rng.multinomial(n, C.reshape(-1) / n, size=replicates)
    return STATISTICS[name](draws.reshape(replicates, *C.shape), grades)


def resampled(
    name: str,
    tables: NDArray[Any],
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
) -> Resampled:
    """A statistic with its intervals over topics and over items.

    The statistic's row says which kind: cluster-robust t intervals for means over pairs, bias-corrected and accelerated
    ones, or the bootstrap's standard error on Fisher's z (`fisher_interval`). Whole topics are drawn with replacement.
    Tables of weights have no interval over items.

    Args:
        name: Key of STATISTICS.
        tables: C of every topic (T x k x k), counts or weights, in an order that does not depend on the input's.
        grades: The scale's grades, ascending.
        rng: The source of randomness.
        replicates: Number of resamples.
        level: Confidence level.
    """
    judged, C = tables[tables.any(axis=(1, 2))], tables.sum(axis=0)
    n, T = round(C.sum()), len(judged)
    value = point(name, C, grades)
    if isinstance(value, Undefined):
        undefined = Estimate(None, None, None, n, T, value.reason)
        return Resampled(undefined, undefined, None)
    statistic = STATISTICS[name]
    if isinstance(statistic.formula, PairMean):
        return _of_mean(value, statistic.formula.scores(grades), judged, level)
    drawn = topic_draws(T, replicates, rng).astype(np.float64) @ judged.reshape(T, -1)
    topics = statistic(drawn.reshape(replicates, *C.shape), grades)
    items = None if is_weighted(C) else weighted_resample(name, C, grades, rng, replicates)
    if statistic.interval == "bca":
        return _accelerated(statistic, value, topics, items, judged, grades, level)
    estimate = fisher_interval(value, topics, n, T, T, "topics", level, without=statistic(C - judged, grades))
    if items is None:
        return Resampled(estimate, Estimate(value, None, None, n, T, UNEQUAL), None)
    return _pair(estimate, fisher_interval(value, items, n, T, n, "items", level), spread(topics), spread(items))


def undefined_too_often(replicates: Floats, what: str, without: Floats | None = None) -> str | None:
    """Why too many replicates are undefined to measure the spread; None if they are not.

    Args:
        replicates: A statistic of resamples (B,), nan where undefined.
        what: The units that were resampled, for the reason.
        without: The statistic without each unit in turn (T,), nan where undefined.
    """
    if without is not None and np.isnan(without).any():
        return f"undefined without one of the {what}"
    share = float(np.isnan(replicates).mean())
    return f"undefined on {share:.0%} of resampled {what}" if share > MOST_UNDEFINED else None


def spread(replicates: Floats) -> float:
    """The standard error of a statistic from its replicates (B,); undefined ones are left out."""
    defined = replicates[~np.isnan(replicates)]
    return float(defined.std(ddof=1)) if len(defined) > 1 else 0.0


def fisher_interval(
    value: float,
    replicates: Floats,
    n: int,
    T: int,
    units: int,
    what: str,
    level: float = 0.95,
    *,
    without: Floats | None = None,
) -> Estimate:
    """tanh(atanh κ ± t SE / (1 - κ²)) of a coefficient κ with SE from its replicates.

    The standard error is carried to Fisher's z by its derivative, since κ of a replicate may be 1, where z is infinite.
    There is no interval where too many replicates are undefined, nor for κ = ±1. If all T topics agree, that bounds the
    share of topics that agree, but not κ, which also depends on the grades in topics that would not.

    Args:
        value: κ.
        replicates: κ of resamples (B,), nan where undefined.
        n: Number of items, for the record.
        T: Number of topics, for the record.
        units: How many units were drawn; t has one degree of freedom fewer.
        what: The units in words, for the reason of a missing interval.
        level: Confidence level.
        without: κ without each unit in turn (T,), nan where undefined; None skips this check.
    """
    se = spread(replicates)
    reason = no_interval(value, se, units, what, undefined_too_often(replicates, what, without))
    if reason:
        return Estimate(value, None, None, n, T, reason)
    z, width = np.arctanh(value), t_quantile(level, units - 1) * se / (1 - value**2)
    return Estimate(value, float(np.tanh(z - width)), float(np.tanh(z + width)), n, T)


def bca(
    value: float, replicates: Floats, jackknife: Floats, weights: NDArray[Any], width: float
) -> tuple[float, float]:
    """The bias-corrected and accelerated percentile interval.

    B. Efron (1987), Better bootstrap confidence intervals, JASA 82(397), 171-185.

    Args:
        value: The statistic.
        replicates: The statistic of resamples (B,).
        jackknife: The statistic without a unit, once for each kind of unit (J,).
        weights: How many units each entry of `jackknife` stands for (J,).
        width: Half of the interval's width, in standard errors of a normal distribution.
    """
    from scipy.special import ndtr, ndtri

    below = float(((replicates < value) + (replicates == value) / 2).mean())
    # With all replicates on one side the correction would be infinite.
    z0 = ndtri(np.clip(below, 0.5 / len(replicates), 1 - 0.5 / len(replicates)))
    d = np.average(jackknife, weights=weights) - jackknife
    squares = float((weights * d**2).sum())
    a = float((weights * d**3).sum()) / (6 * squares**1.5) if squares else 0.0
    z = z0 + np.array([-width, width])
    # Where the acceleration outruns the normal scale, the end is that of the replicates.
    low, high = np.quantile(replicates, ndtr(z0 + z / np.maximum(1 - a * z, 1e-12)))
    return float(low), float(high)


def jackknife_interval(
    statistic: Callable[[NDArray[np.bool_]], float | Undefined],
    topics: NDArray[Any],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """A statistic of items with a t interval, its variance from leaving out one topic at a time.

    V = (T - 1)/T Σ_t (θ_(t) - θ̄)², and t has T - 1 degrees of freedom.
    B. Efron & C. Stein (1981), The jackknife estimate of variance, Ann. Stat. 9(3), 586-596.

    Args:
        statistic: From the items that are kept, as a mask (N,), to its value.
        topics: Each item's topic (N,).
        level: Confidence level.
        bounds: Least and greatest possible value; the interval is clipped to them.
    """
    labels, place = np.unique(topics, return_inverse=True)
    n, T = len(place), len(labels)
    value = statistic(np.ones(n, dtype=bool))
    if isinstance(value, Undefined):
        return Estimate(None, None, None, n, T, value.reason)
    if T < FEWEST_RESAMPLED:
        return Estimate(value, None, None, n, T, f"fewer than {FEWEST_RESAMPLED} topics")
    left: list[float] = []
    for t in range(T):
        without = statistic(place != t)
        if isinstance(without, Undefined):
            return Estimate(value, None, None, n, T, f"without topic {labels[t]}: {without.reason}")
        left.append(without)
    se = float(np.sqrt((T - 1) * np.var(left)))
    if se < 1e-12:
        return Estimate(value, None, None, n, T, "no variation between topics")
    half = t_quantile(level, T - 1) * se
    return Estimate(value, max(value - half, bounds[0]), min(value + half, bounds[1]), n, T)


def no_interval(value: float, se: float, units: int, what: str, undefined: str | None = None) -> str | None:
    """Why a coefficient gets no interval, or None.

    Args:
        value: The coefficient.
        se: Its standard error.
        units: How many units were drawn.
        what: The units in words.
        undefined: The result of `undefined_too_often`.
    """
    if units < FEWEST_RESAMPLED:
        return f"fewer than {FEWEST_RESAMPLED} {what}"
    if 1 - value**2 < 1e-12:
        return "perfect agreement" if value > 0 else "perfect disagreement"
    if undefined:
        return undefined
    return f"no variation between {what}" if se < 1e-12 else None


def _accelerated(
    statistic: Statistic,
    value: float,
    topics: Floats,
    items: Floats | None,
    judged: NDArray[Any],
    grades: Sequence[int],
    level: float,
) -> Resampled:
    """Bias-corrected and accelerated intervals over topics and over items.

    Percentiles are those of √(T/(T-1)) t_{T-1} and not of a normal distribution. In simulations of 12 to 25 topics that
    raises the coverage of 95 % intervals from 90 to 94 % to 93 to 96 %.
    T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69(4), 371-386.
    """
    C = judged.sum(axis=0)
    n, T = round(C.sum()), len(judged)

    def interval(
        replicates: Floats, left: NDArray[Any], weights: NDArray[Any], units: int, what: str
    ) -> tuple[Estimate, float]:
        # AC's formula gives 1 for a single grade throughout; an interval without such resamples would be biased.
        drawn, jackknife = (np.nan_to_num(values, nan=1.0) for values in (replicates, statistic(left, grades)))
        se = spread(drawn)
        reason = no_interval(value, se, units, what)
        if reason:
            return Estimate(value, None, None, n, T, reason), se
        width = (units / (units - 1)) ** 0.5 * t_quantile(level, units - 1)
        return Estimate(value, *bca(value, drawn, jackknife, weights, width), n, T), se

    estimate, topic_se = interval(topics, C - judged, np.ones(T), T, "topics")
    if items is None:
        return Resampled(estimate, Estimate(value, None, None, n, T, UNEQUAL), None)
    cells = np.flatnonzero(C)
    less_item = (C.reshape(-1) - np.eye(C.size, dtype=np.int64)[cells]).reshape(-1, *C.shape)
    item, item_se = interval(items, less_item, C.reshape(-1)[cells], n, "items")
    return _pair(estimate, item, topic_se, item_se)


def _of_mean(mean: float, scores: Floats, judged: NDArray[Any], level: float) -> Resampled:
    """The interval of `means.mean_interval` from tables, and the same with every item as its own topic."""
    C, counts = judged.sum(axis=0), judged.sum(axis=(1, 2))
    total, n, T = float(C.sum()), round(C.sum()), len(judged)
    seen = scores[C > 0]
    residuals = np.tensordot(judged, scores, axes=2) - counts * mean

    def interval(squares: float, units: int, what: str) -> tuple[Estimate, float]:
        if units < FEWEST_TOPICS:
            return Estimate(mean, None, None, n, T, f"fewer than {FEWEST_TOPICS} {what}"), 0.0
        if seen.min() == seen.max():
            return Estimate(mean, None, None, n, T, "all pairs equal"), 0.0
        se = float(np.sqrt(units / (units - 1) * squares)) / total
        if se <= 1e-12 * np.abs(seen).max():
            return Estimate(mean, None, None, n, T, "all topic means equal"), 0.0
        half = t_quantile(level, units - 1) * se
        low, high = max(mean - half, float(scores.min())), min(mean + half, float(scores.max()))
        return Estimate(mean, low, high, n, T), se

    estimate, topic_se = interval(float(residuals @ residuals), T, "topics")
    if is_weighted(C):
        return Resampled(estimate, Estimate(mean, None, None, n, T, UNEQUAL), None)
    item, item_se = interval(float((C * (scores - mean) ** 2).sum()), n, "items")
    return _pair(estimate, item, topic_se, item_se)


def _pair(estimate: Estimate, item: Estimate, topic_se: float, item_se: float) -> Resampled:
    known = estimate.low is not None and item.low is not None
    return Resampled(estimate, item, (topic_se / item_se) ** 2 if known else None)
