"""What a judge's label probabilities and expected grades say of assessors' grades; AUC, and differences of it.

An item's *share* is what it adds to the error of the AUC θ of m positive and n negative items: with V the share of the
other class that it is ranked right against, (V - θ) / m if it is positive, (V - θ) / n if it is negative.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from judge.records import Estimate
from judge.stats.comparison import FEWEST_COMPARED
from judge.stats.means import NO_ERROR, ONE_TOPIC, effective_topics, t_interval, t_quantile, within
from judge.stats.resampling import FEWEST_OTHERS, FEWEST_RESAMPLED
from judge.stats.tables import Floats, Undefined


class Expected(NamedTuple):
    """The items that both a judge and the reference graded."""

    expected: Floats
    """(N,), the judge's expected grades."""
    better: Floats
    """(N,), the same, negated where lower grades are better."""
    grade: Floats
    """(N,), the reference's grades."""
    positive: NDArray[np.bool_]
    """(N,), whether the reference's grade is positive."""

    def within(self, kept: NDArray[np.bool_]) -> "Expected":
        """The items of a mask (N,)."""
        return Expected(self.expected[kept], self.better[kept], self.grade[kept], self.positive[kept])


class ProbabilityStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """A row of EXPECTED or PROBABILITY; its interval is a jackknife over topics, of the items as they were drawn."""

    formula: Callable[[Any], float | Undefined]
    """From `Expected` or `Forecasts` to the statistic."""
    about: str
    citation: str
    bounds: tuple[float, float]
    """Least and greatest possible value."""
    by_chance: Callable[[Any], float] | None = None
    """About what a perfect judge gets of so many items. The interval reaches lower by it, as the true value may be
    nearer to 0 by that much, which the spread of the values does not show."""


def spearman(x: ArrayLike, y: ArrayLike) -> float | Undefined:
    """Spearman's rank correlation of two sequences (N,): the product-moment correlation of mid-ranks.

    Mid-ranks 1 2.5 2.5 4 against 1 2 3 4 have the sums of squares 4.5 and 5 about their means, and of products 4.5:

    >>> f"{4.5 / (4.5 * 5) ** 0.5:.6f}", f"{spearman([10, 20, 20, 30], [0, 1, 2, 3]):.6f}"
    ('0.948683', '0.948683')
    """
    a = np.asarray(x, dtype=np.float64)
    b = np.asarray(y, dtype=np.float64)
    if len(a) < 2:
        return Undefined("fewer than 2 pairs")
    if a.min() == a.max() or b.min() == b.max():
        return Undefined("one side is constant")
    return float(np.corrcoef(midranks(a), midranks(b))[0, 1])


def auc(scores: ArrayLike, positive: ArrayLike) -> float | Undefined:
    """How often a positive item scores above a negative one (N,), ties counted half.

    Positive items score .5 and .9, negative ones .5 and .1: of 4 pairs 3 are won and 1 is tied.

    >>> (3 + 1 / 2) / 4, auc([0.5, 0.9, 0.5, 0.1], [True, True, False, False])
    (0.875, 0.875)
    """
    is_positive = np.asarray(positive, dtype=bool)
    above = int(is_positive.sum())
    below = int((~is_positive).sum())
    if not above or not below:
        return Undefined("no positive items" if not above else "no negative items")
    ranks = midranks(np.asarray(scores, dtype=np.float64))
    return float((ranks[is_positive].sum() - above * (above + 1) / 2) / (above * below))


def midranks(x: Floats) -> Floats:
    """Ranks from 1 (N,); ties share the mean of their ranks."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)


EXPECTED: dict[str, ProbabilityStatistic] = {
    "rank_correlation": ProbabilityStatistic(
        formula=lambda items: spearman(items.expected, items.grade),
        about="Spearman's rank correlation of expected grades and assessors' grades",
        citation="C. Spearman (1904), The proof and measurement of association between two things, Am. J. Psychol. "
        "15(1), 72-101",
        bounds=(-1, 1),
    ),
    "auc": ProbabilityStatistic(
        formula=lambda items: auc(items.better, items.positive),
        about="how often the expected grade of a positive item is better than that of a negative one",
        citation="H. B. Mann & D. R. Whitney (1947), On a test of whether one of two random variables is "
        "stochastically larger than the other, Ann. Math. Stat. 18(1), 50-60",
        bounds=(0, 1),
    ),
}
"""By name, in the order of the columns."""


BINS = 10
"""Bins of equal width that calibration error sorts confidence into."""


class Forecasts(NamedTuple):
    """The items that a judge and the reference graded, with the judge's probability of each grade."""

    p: Floats
    """(N, k), a row adds up to 1."""
    given: NDArray[np.integer]
    """(N,), the codes of the judge's grades."""
    grade: NDArray[np.integer]
    """(N,), the codes of the reference's grades."""

    def within(self, kept: NDArray[np.bool_]) -> "Forecasts":
        """The items of a mask (N,)."""
        return Forecasts(self.p[kept], self.given[kept], self.grade[kept])

    @property
    def confidence(self) -> Floats:
        """(N,), the probability of the grade that the judge gave."""
        return np.asarray(np.take_along_axis(self.p, self.given[:, None], axis=1)[:, 0], dtype=np.float64)

    @property
    def correct(self) -> Floats:
        """(N,), 1 where the judge gave the reference's grade, else 0."""
        return np.asarray(self.given == self.grade, dtype=np.float64)


def brier(items: Forecasts) -> float:
    """The mean over items of Σ_k (p_k - y_k)², with y_k 1 for the reference's grade and else 0; 0 to 2.

    Probabilities .7 .2 .1 of a grade 0 and .3 .3 .4 of a grade 1:

    >>> items = Forecasts(np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), np.array([0, 2]), np.array([0, 1]))
    >>> by_hand = ((0.3**2 + 0.2**2 + 0.1**2) + (0.3**2 + 0.7**2 + 0.4**2)) / 2
    >>> f"{by_hand:.6f}", f"{brier(items):.6f}"
    ('0.440000', '0.440000')
    """
    y = np.eye(items.p.shape[1])[items.grade]
    return float(((items.p - y) ** 2).sum(axis=1).mean())


def brier_of_shares(items: Forecasts) -> float:
    """Brier's score of one forecast for all items, the shares of the reference's grades: 1 - Σ_k share_k²."""
    share = np.bincount(items.grade, minlength=items.p.shape[1]) / len(items.grade)
    return float(1 - share @ share)


def calibration_error(items: Forecasts) -> float:
    """The expected calibration error: Σ_b n_b/N |correct_b - confidence_b| over BINS bins (lower, upper] of confidence.

    Two grades given with confidence .9, one of them correct, and one with .4 that is wrong:

    >>> p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    >>> items = Forecasts(p, np.array([0, 0, 1]), np.array([0, 1, 0]))
    >>> by_hand = 2 / 3 * abs(0.5 - 0.9) + 1 / 3 * abs(0 - 0.4)
    >>> f"{by_hand:.6f}", f"{calibration_error(items):.6f}"
    ('0.400000', '0.400000')
    """
    confidence = items.confidence
    gaps = np.bincount(_bins(confidence), weights=items.correct - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def _bins(confidence: Floats) -> NDArray[np.int64]:
    return np.digitize(confidence, np.linspace(0, 1, BINS + 1)[1:-1], right=True)


def calibration_error_by_chance(items: Forecasts) -> float:
    """About the calibration error of a perfect forecaster: √(2/π) Σ_b √(Σ_{i∈b} c_i (1 - c_i)) / N of confidences c.

    >>> items = Forecasts(np.full((200, 2), 0.5), np.zeros(200, int), np.zeros(200, int))
    >>> f"{(2 / np.pi * 50) ** 0.5 / 200:.6f}", f"{calibration_error_by_chance(items):.6f}"
    ('0.028209', '0.028209')
    """
    c = items.confidence
    variances = np.bincount(_bins(c), weights=c * (1 - c))
    return float(np.sqrt(2 / np.pi * variances).sum() / len(c))


def overconfidence(items: Forecasts) -> float:
    """The mean confidence minus the share of correct grades."""
    return float((items.confidence - items.correct).mean())


PROBABILITY: dict[str, ProbabilityStatistic] = {
    "brier": ProbabilityStatistic(
        formula=brier,
        about="the squared distance of the probabilities from the assessor's grade, 0 to 2",
        citation="G. W. Brier (1950), Verification of forecasts expressed in terms of probability, Monthly Weather "
        "Review 78(1), 1-3",
        bounds=(0, 2),
    ),
    "ece": ProbabilityStatistic(
        formula=calibration_error,
        about="the mean gap between confidence and the share of correct grades, in bins of like confidence",
        citation="C. Guo, G. Pleiss, Y. Sun & K. Q. Weinberger (2017), On calibration of modern neural networks, ICML",
        bounds=(0, 1),
        by_chance=calibration_error_by_chance,
    ),
    "overconfidence": ProbabilityStatistic(
        formula=overconfidence,
        about="the mean confidence minus the share of correct grades",
        citation="as for ece, in one bin and with its sign",
        bounds=(-1, 1),
    ),
}
"""By name, in the order of the columns."""


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
        p = self.of_positive
        q = self.of_negative
        with_p = int((self.positives > 0).sum())
        with_q = int((self.negatives > 0).sum())
        topics = len(p)
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
        return Estimate(value=None, low=None, high=None, n=n, topics=count, reason=value.reason)
    of = _by_topic(_shares(scores, is_positive), is_positive, place, count)
    reason = _too_few(of, FEWEST_RESAMPLED)
    if reason is None and value in (0.0, 1.0):
        reason = "perfect separation" if value else "perfect separation the wrong way round"
    bare = Estimate(value=value, low=None, high=None, n=n, topics=count, reason=reason)
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
        items = items + len(is_positive)
        topics = topics + count
        a = auc(each.a, is_positive)
        b = auc(each.b, is_positive)
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            undefined = a if isinstance(a, Undefined) else b if isinstance(b, Undefined) else None
            break
        differences.append(a - b)
        shares = _shares(each.a, is_positive) - _shares(each.b, is_positive)
        of_sets.append(_by_topic(shares, is_positive, place, count))
        reason = reason or _too_few(of_sets[-1], FEWEST_COMPARED)
    if undefined is not None or not differences:
        return Estimate(
            value=None,
            low=None,
            high=None,
            n=items,
            topics=topics,
            reason=undefined.reason if undefined else "no items",
        )
    mean = float(np.mean(differences))
    variances = [of.variance for of in of_sets] if reason is None else []
    variance = sum(variances) / len(of_sets) ** 2
    if reason is None and variance <= NO_ERROR**2:
        reason = SAME if abs(mean) <= NO_ERROR else "no variation between topics"
    counts = [effective_topics(of.weights) for of in of_sets]
    if reason is None and min(counts) < 2:
        reason = ONE_TOPIC
    if reason:
        return Estimate(value=mean, low=None, high=None, n=items, topics=topics, reason=reason)
    df = sum(variances) ** 2 / sum(V**2 / (count - 1) for V, count in zip(variances, counts, strict=True))
    half = t_quantile(level, df) * variance**0.5
    low, high = within(mean, half, (-1, 1))
    return Estimate(value=mean, low=low, high=high, n=items, topics=topics)


def _placed(positive: ArrayLike, topics: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
    """Whether each item is positive, the place of its topic, and how many topics there are."""
    labels, place = np.unique(np.asarray(topics), return_inverse=True)
    return np.asarray(positive, dtype=bool), place, len(labels)


def _shares(scores: ArrayLike, is_positive: NDArray[np.bool_]) -> Floats:
    """Each item's share (N,), from ranks among all items and among those of its class.

    X. Sun & W. Xu (2014), Fast implementation of DeLong's algorithm, IEEE Signal Processing Letters 21(11), 1389-1393.
    """
    x = np.asarray(scores, dtype=np.float64)
    m = int(is_positive.sum())
    n = int((~is_positive).sum())
    among_all = midranks(x)
    among_class = np.empty(len(x))
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
