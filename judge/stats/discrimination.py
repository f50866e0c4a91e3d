"""How well scores tell positive items from negative ones, with intervals over topics: AUC, and differences of it.

An item's *share* is what it adds to the error of the AUC θ of m positive and n negative items: with V the share of the
other class that it is ranked right against, (V - θ) / m if it is positive, (V - θ) / n if it is negative.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judge.records import Estimate
from judge.stats.comparison import FEWEST_COMPARED
from judge.stats.expected import auc, midranks
from judge.stats.means import NO_ERROR, ONE_TOPIC, effective_topics, t_interval, t_quantile, within
from judge.stats.resampling import FEWEST_OTHERS, FEWEST_RESAMPLED
from judge.stats.tables import Floats, Undefined

SAME = "no topic tells them apart"
"""Why two judges whose scores rank alike have no interval of their difference."""


class Contest(NamedTuple):
    """Two judges' scores of the same items of one dataset."""

    a: ArrayLike
    """(N,), the higher the likelier to be positive."""
    b: ArrayLike
    positive: ArrayLike
    """(N,), whether the reference's grade is positive."""
    topics: ArrayLike
    """(N,), each item's topic."""


class _Shares(NamedTuple):
    """Sums of items' shares by topic."""

    of_positive: Floats
    of_negative: Floats
    positives: NDArray[np.int64]
    """How many items of the topic are positive."""
    negatives: NDArray[np.int64]

    @property
    def weights(self) -> Floats:
        """How much of the AUC each topic decides; they add up to 1."""
        return np.asarray(
            (self.positives / self.positives.sum() + self.negatives / self.negatives.sum()) / 2, dtype=np.float64
        )

    @property
    def variance(self) -> float:
        """Obuchowski's variance, from the topics with a positive item, with a negative one, and all."""
        p, q = self.of_positive, self.of_negative
        with_p, with_q, topics = int((self.positives > 0).sum()), int((self.negatives > 0).sum()), len(p)
        return float(
            with_p / (with_p - 1) * (p @ p) + with_q / (with_q - 1) * (q @ q) + 2 * topics / (topics - 1) * (p @ q)
        )


def auc_interval(scores: ArrayLike, positive: ArrayLike, topics: ArrayLike, *, level: float = 0.95) -> Estimate:
    """How often a positive item scores above a negative one, with an interval over topics (N items each).

    Items of a topic may depend on each other, positive and negative ones too. With p_t and q_t the sums of the shares
    of a topic's positive and negative items, V = I₊/(I₊-1) Σ p_t² + I₋/(I₋-1) Σ q_t² + 2 I/(I-1) Σ p_t q_t over the I₊
    topics with a positive item, the I₋ with a negative one and all I. The interval is ± t √V on the log odds of θ; t
    has G* - 1 degrees of freedom, in which a topic counts by how many of the positive and of the negative items it has.
    There is no interval for fewer than FEWEST_RESAMPLED topics of either class, nor for fewer than FEWEST_OTHERS items.
    N. A. Obuchowski (1997), Nonparametric analysis of clustered ROC curve data, Biometrics 53(2), 567-578; with each
    item its own topic it is E. R. DeLong, D. M. DeLong & D. L. Clarke-Pearson (1988), Comparing the areas under two or
    more correlated receiver operating characteristic curves, Biometrics 44(3), 837-845.
    """
    value = auc(scores, positive)
    is_positive, place, count = _placed(positive, topics)
    n = len(is_positive)
    if isinstance(value, Undefined):
        return Estimate(None, None, None, n, count, value.reason)
    of = _by_topic(_shares(scores, is_positive), is_positive, place, count)
    reason = _too_few(of, FEWEST_RESAMPLED)
    if reason is None and value in (0.0, 1.0):
        reason = "perfect separation" if value else "perfect separation the wrong way round"
    bare = Estimate(value, None, None, n, count, reason)
    return bare if reason else t_interval(bare, max(of.variance, 0.0) ** 0.5, of.weights, level=level, bounds=(0, 1))


def auc_difference(contests: Sequence[Contest], *, level: float = 0.95) -> Estimate:
    """The AUC of judge a minus that of judge b on the same items, or the mean of that over several datasets.

    An item's shares of a and b are subtracted, and the variance is that of `auc_interval`; datasets share no topic, so
    their variances add up, with (Σ V_d)² / Σ V_d² / (G*_d - 1) degrees of freedom: a small dataset that brings most of
    the variance leaves few. The interval is ± t standard errors within -1 and 1. There is none where one of the data
    sets has fewer than FEWEST_COMPARED topics of either class.
    F. E. Satterthwaite (1946), An approximate distribution of estimates of variance components, Biometrics Bulletin
    2(6), 110-114.
    """
    differences: list[float] = []
    of_sets: list[_Shares] = []
    items = topics = 0
    undefined: Undefined | None = None
    reason: str | None = None
    for each in contests:
        is_positive, place, count = _placed(each.positive, each.topics)
        items, topics = items + len(is_positive), topics + count
        a, b = auc(each.a, is_positive), auc(each.b, is_positive)
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            undefined = a if isinstance(a, Undefined) else b if isinstance(b, Undefined) else None
            break
        differences.append(a - b)
        shares = _shares(each.a, is_positive) - _shares(each.b, is_positive)
        of_sets.append(_by_topic(shares, is_positive, place, count))
        reason = reason or _too_few(of_sets[-1], FEWEST_COMPARED)
    if undefined is not None or not differences:
        return Estimate(None, None, None, items, topics, undefined.reason if undefined else "no items")
    mean = float(np.mean(differences))
    variances = [of.variance for of in of_sets] if reason is None else []
    variance = sum(variances) / len(of_sets) ** 2
    if reason is None and variance <= NO_ERROR**2:
        reason = SAME if abs(mean) <= NO_ERROR else "no variation between topics"
    counts = [effective_topics(of.weights) for of in of_sets]
    if reason is None and min(counts) < 2:
        reason = ONE_TOPIC
    if reason:
        return Estimate(mean, None, None, items, topics, reason)
    df = sum(variances) ** 2 / sum(V**2 / (count - 1) for V, count in zip(variances, counts, strict=True))
    half = t_quantile(level, df) * variance**0.5
    return Estimate(mean, *within(mean, half, (-1, 1)), items, topics)


def _placed(positive: ArrayLike, topics: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
    """Whether each item is positive, the place of its topic, and how many topics there are."""
    labels, place = np.unique(np.asarray(topics), return_inverse=True)
    return np.asarray(positive, dtype=bool), place, len(labels)


def _shares(scores: ArrayLike, is_positive: NDArray[np.bool_]) -> Floats:
    """Each item's share (N,), from ranks among all items and among those of its class.

    X. Sun & W. Xu (2014), Fast implementation of DeLong's algorithm, IEEE Signal Processing Letters 21(11), 1389-1393.
    """
    x = np.asarray(scores, dtype=np.float64)
    m, n = int(is_positive.sum()), int((~is_positive).sum())
    among_all, among_class = midranks(x), np.empty(len(x))
    among_class[is_positive] = midranks(x[is_positive])
    among_class[~is_positive] = midranks(x[~is_positive])
    beaten = among_all - among_class
    right = np.where(is_positive, beaten / n, 1 - beaten / m)
    return np.asarray((right - right[is_positive].mean()) / np.where(is_positive, m, n), dtype=np.float64)


def _by_topic(shares: Floats, is_positive: NDArray[np.bool_], place: NDArray[np.int64], count: int) -> _Shares:
    return _Shares(
        np.bincount(place, np.where(is_positive, shares, 0.0), count).astype(np.float64),
        np.bincount(place, np.where(is_positive, 0.0, shares), count).astype(np.float64),
        np.bincount(place[is_positive], minlength=count),
        np.bincount(place[~is_positive], minlength=count),
    )


def _too_few(of: _Shares, fewest: int) -> str | None:
    """Why there is no interval, if it is for want of items or topics."""
    for counts, kind in ((of.positives, "positive"), (of.negatives, "negative")):
        if counts.sum() < FEWEST_OTHERS:
            return f"fewer than {FEWEST_OTHERS} {kind} items"
        if (counts > 0).sum() < fewest:
            return f"fewer than {fewest} topics with a {kind} item"
    return None
