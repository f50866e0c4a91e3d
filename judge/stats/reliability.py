"""Reliability of any number of raters, from how often each unit got each grade."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import alpha_of_coincidences, krippendorff_alpha
from judge.stats.resampling import fisher_interval, topic_draws
from judge.stats.tables import Floats, ScaleType, Undefined, Weights, agreement_weights


def value_counts(labels: NDArray[np.integer[Any]], k: int) -> NDArray[np.int64]:
    """How often each unit got each grade (N x k), from the codes of R raters (R x N)."""
    counts = np.empty((labels.shape[1], k), dtype=np.int64)
    for code in range(k):
        counts[:, code] = np.count_nonzero(labels == code, axis=0)
    return counts


def coincidences(counts: NDArray[np.int64], topics: NDArray[np.integer[Any]], T: int) -> Floats:
    """Every topic's table of coincidences (T x k x k): Σ_u (v vᵀ - diag v) / (m_u - 1) over units with m_u ≥ 2 grades.

    Alpha is a function of the sum of these tables, so topics are resampled by resampling tables. Counts are N x k; each
    unit's topic (N,) is from 0 to T - 1.
    """
    m = counts.sum(axis=1)
    pairable = m >= 2
    topic = topics[pairable]
    share = 1.0 / (m[pairable] - 1)
    # A contiguous row for each grade, because the loop multiplies grade by grade.
    v = np.ascontiguousarray(counts[pairable].T, dtype=np.float64)
    k = len(v)
    pairs = np.empty((T, k, k))
    for i in range(k):
        for j in range(i, k):
            both = v[i] * (v[j] - (i == j)) * share
            pairs[:, i, j] = pairs[:, j, i] = np.bincount(topic, weights=both, minlength=T)
    return pairs


def alpha_interval(
    labels: NDArray[np.integer[Any]],
    topics: NDArray[np.integer[Any]],
    grades: Sequence[int],
    level: ScaleType,
    rng: np.random.Generator,
    replicates: int = 1000,
) -> Estimate:
    """Krippendorff's alpha with a 95 % interval over topics, as `resampling.fisher_interval`.

    Labels are codes of R raters, or of R samples of one judge (R x N), -1 where there is no grade. `n` counts the units
    with two grades or more, `topics` the topics that have any.
    """
    counts = value_counts(labels, len(grades))
    value = krippendorff_alpha(counts, grades, level)
    return _over_topics(value, counts, _pairs(counts, topics), grades, level, rng, replicates)


def alpha_of_counts(
    counts: NDArray[np.int64],
    topics: NDArray[np.integer[Any]],
    grades: Sequence[int],
    level: ScaleType,
    rng: np.random.Generator,
    replicates: int = 1000,
) -> Estimate:
    """`alpha_interval` from how often each unit got each grade (N x k), for units with thousands of raters.

    The `krippendorff` package needs memory for units times squared grades; this function does not.
    """
    pairs = _pairs(counts, topics)
    alpha = float(alpha_of_coincidences(level, pairs.sum(axis=0)[None], grades)[0])
    reason = "all raters gave one and the same grade throughout" if len(pairs) else "no unit has two grades"
    value = Undefined(reason) if np.isnan(alpha) else alpha
    return _over_topics(value, counts, pairs, grades, level, rng, replicates)


def _pairs(counts: NDArray[np.int64], topics: NDArray[np.integer[Any]]) -> Floats:
    """The coincidences of every topic that has any."""
    pairs = coincidences(counts, topics, int(topics.max(initial=-1)) + 1)
    return pairs[pairs.any(axis=(1, 2))]


def _over_topics(
    value: float | Undefined,
    counts: NDArray[np.int64],
    pairs: Floats,
    grades: Sequence[int],
    level: ScaleType,
    rng: np.random.Generator,
    replicates: int,
) -> Estimate:
    """Alpha's value with its interval from resampled topics."""
    n = int((counts.sum(axis=1) >= 2).sum())
    T = len(pairs)
    if isinstance(value, Undefined):
        return Estimate(value=None, low=None, high=None, n=n, topics=T, reason=value.reason)
    drawn = topic_draws(T, replicates, rng).astype(np.float64) @ pairs.reshape(T, -1)
    alphas = alpha_of_coincidences(level, drawn.reshape(-1, *pairs.shape[1:]), grades)
    without = _without(pairs, grades, level)
    sizes = pairs.sum(axis=(1, 2))
    return fisher_interval(
        Estimate(value=value, low=None, high=None, n=n, topics=T),
        alphas,
        sizes,
        "topics",
        without=without,
        others=units_off_commonest(counts),
    )


def units_off_commonest(counts: NDArray[np.int64]) -> int:
    """How many units with two grades or more have one that is not the commonest, from counts (N x k)."""
    v = counts[counts.sum(axis=1) >= 2]
    return int((v.sum(axis=1) > v[:, v.sum(axis=0).argmax()]).sum())


def _without(pairs: Floats, grades: Sequence[int], level: ScaleType) -> Floats:
    """Alpha without each topic in turn (T,)."""
    # Shares 1 / (m - 1) are not exact, so a difference could leave a rest that counts as a grade; sums cannot.
    before, after = (np.cumsum(part, axis=0) - part for part in (pairs, pairs[::-1]))
    return alpha_of_coincidences(level, before + after[::-1], grades)


def gwet_ac(counts: NDArray[np.int64], grades: Sequence[int], weights: Weights) -> float | Undefined:
    """Gwet's AC1 (weights `none`) or AC2 of any number of raters, from counts (N x k).

    K. L. Gwet (2014), Handbook of Inter-Rater Reliability, 4th ed., chapters 3 and 5.

    Three raters give two units the grades 0 0 0 and 0 1 1. Of the second unit's three pairs 1 agrees; π is 2/3 and 1/3:

    >>> p_a, p_e = (1 + 1 / 3) / 2, (2 / 3 * 1 / 3 + 1 / 3 * 2 / 3) * 2 / (2 * 1)
    >>> f"{(p_a - p_e) / (1 - p_e):.6f}", f"{gwet_ac(np.array([[3, 0], [1, 2]]), (0, 1), 'none'):.6f}"
    ('0.400000', '0.400000')
    """
    W = agreement_weights(grades, weights)
    k = len(W)
    return _beyond_chance(counts, W, lambda share: float(W.sum() / (k * (k - 1)) * (share * (1 - share)).sum()))


def fleiss_kappa(counts: NDArray[np.int64]) -> float | Undefined:
    """Fleiss's kappa of any number of raters from counts (N x k); units may differ in how many grades they have.

    J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76(5), 378-382.

    The two units of `gwet_ac`, with chance as the sum of squared shares:

    >>> p_a, p_e = (1 + 1 / 3) / 2, (2 / 3) ** 2 + (1 / 3) ** 2
    >>> f"{(p_a - p_e) / (1 - p_e):.6f}", f"{fleiss_kappa(np.array([[3, 0], [1, 2]])):.6f}"
    ('0.250000', '0.250000')
    """
    return _beyond_chance(counts, np.eye(counts.shape[1]), lambda share: float((share**2).sum()))


def _beyond_chance(counts: NDArray[np.int64], W: Floats, chance: Callable[[Floats], float]) -> float | Undefined:
    """(p_a - p_e) / (1 - p_e): p_a over units with two grades, p_e from the mean of all units' shares of grades."""
    m = counts.sum(axis=1)
    pairable = m >= 2
    if not pairable.any():
        return Undefined("no unit has two grades")
    if counts.any(axis=0).sum() == 1:
        return Undefined("all raters gave one and the same grade throughout")
    v = counts[pairable]
    size = m[pairable]
    p_a = float(((v * (v @ W - 1)).sum(axis=1) / (size * (size - 1))).mean())
    p_e = chance((counts[m > 0] / m[m > 0, None]).mean(axis=0))
    return (p_a - p_e) / (1 - p_e)
