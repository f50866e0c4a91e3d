"""Statistics of a judge's label probabilities, and of the expected grades they give, against assessors' grades."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """About what a perfect judge gets of so many items. A value below twice that has no interval: the true one is
    nearer to 0 by an amount that its spread does not show."""


def spearman(x: ArrayLike, y: ArrayLike) -> float | Undefined:
    """Spearman's rank correlation of two sequences (N,): the product-moment correlation of mid-ranks.

    Mid-ranks 1 2.5 2.5 4 against 1 2 3 4 have the sums of squares 4.5 and 5 about their means, and of products 4.5:

    >>> f"{4.5 / (4.5 * 5) ** 0.5:.6f}", f"{spearman([10, 20, 20, 30], [0, 1, 2, 3]):.6f}"
    ('0.948683', '0.948683')
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
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
    above, below = int(is_positive.sum()), int((~is_positive).sum())
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
