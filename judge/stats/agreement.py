"""Agreement of two raters on a declared ordinal scale, for one table or for a batch of resampled ones.

C is the table of counts: human grades in rows, judge grades in columns, both over all grades of the scale in
ascending order, so that a grade nobody gave has its row too and distances stay as declared. *Codes* are places in
that order, -1 where there is no grade. Where items stand for unequal numbers of others, C holds sums of their weights
instead, as floats; integers are counts.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import krippendorff
import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

FEWEST_TOPICS = 5
"""Fewest topics that a coefficient gets an interval for; more than a mean, because few topics give few resamples."""

GRID = 2.0**-28
"""Weights are multiples of this, so that sums and differences of tables are exact, as those of counts are."""

Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]
Floats = NDArray[np.float64]
Statistic = Callable[[NDArray[Any], Sequence[int]], Floats]
"""From B tables (B x k x k) and the scale's grades to B values; nan where a table does not define it."""


class Undefined(msgspec.Struct, frozen=True):
    """A statistic that these data do not define, and why."""

    reason: str


def confusion(pairs: Iterable[tuple[int, int]], grades: Sequence[int]) -> NDArray[np.int64]:
    """C (k x k) from (human, judge) pairs over the scale's k grades.

    Raises:
        ValueError: A grade is not on the scale.
    """
    index = {grade: i for i, grade in enumerate(sorted(grades))}
    C = np.zeros((len(index), len(index)), dtype=np.int64)
    for human, judge in pairs:
        if human not in index or judge not in index:
            raise ValueError(f"grades {human} and {judge}: the scale has {', '.join(map(str, index))}")
        C[index[human], index[judge]] += 1
    return C


def topic_tables(
    human: NDArray[np.integer[Any]],
    judge: NDArray[np.integer[Any]],
    topics: NDArray[np.integer[Any]],
    k: int,
    T: int,
    weights: Floats | None = None,
) -> NDArray[Any]:
    """C of every topic (T x k x k) from the codes of N items; items that lack either grade are left out.

    Counts, as integers; with weights that differ, sums of weights whose mean over the counted items is 1, as floats.

    Args:
        human: Codes (N,).
        judge: Codes (N,).
        topics: Each item's topic (N,), from 0 to T - 1.
        k: Number of grades.
        T: Number of topics.
        weights: How many items each stands for (N,), up to a factor; alike if None.
    """
    both = (human >= 0) & (judge >= 0)
    cell = (topics[both].astype(np.int64) * k + human[both]) * k + judge[both]
    if weights is not None and both.any():
        w = np.round(weights[both] / weights[both].mean() / GRID) * GRID
        if w.min() < w.max():
            return np.bincount(cell, weights=w, minlength=T * k * k).reshape(T, k, k)
    return np.bincount(cell, minlength=T * k * k).reshape(T, k, k).astype(np.int64, copy=False)


def agreement_weights(grades: Sequence[int], kind: Weights) -> Floats:
    """W (k x k): 1 - (d/R)^p with d between scale values and R the scale's range; the identity for `none`.

    J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220.
    """
    g = np.array(sorted(grades), dtype=np.float64)
    if kind == "none":
        return np.eye(len(g))
    d: Floats = np.abs(g[:, None] - g) / (g[-1] - g[0])
    return 1.0 - d if kind == "linear" else 1.0 - d**2


def mean_scores(name: str, grades: Sequence[int]) -> Floats:
    """What each cell adds to a statistic that is a mean over pairs (k x k), in scale values.

    Raises:
        KeyError: The statistic is not one of MEANS.
    """
    g = np.array(sorted(grades), dtype=np.float64)
    return np.asarray(MEANS[name](g - g[:, None]), dtype=np.float64)


def is_weighted(tables: NDArray[Any]) -> bool:
    """Whether tables hold sums of weights, not counts."""
    return not np.issubdtype(tables.dtype, np.integer)


def point(name: str, C: NDArray[Any], grades: Sequence[int]) -> float | Undefined:
    """One of STATISTICS of one table, or why there is none; alpha of counts is the `krippendorff` package's.

    Raises:
        KeyError: There is no such statistic.
    """
    statistic = STATISTICS[name]
    if not C.sum():
        return Undefined("no pairs")
    value = float(statistic(C[None], grades)[0])
    if np.isnan(value):
        same = (C.any(axis=1) | C.any(axis=0)).sum() == 1
        return Undefined(f"{'both raters gave one and the same' if same else 'one rater gave one'} grade throughout")
    if name in ALPHAS and not is_weighted(C):
        return krippendorff_alpha(unit_counts(C), grades, ALPHAS[name])
    return value


def unit_counts(C: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each unit got each grade (units x k), from the table of two raters."""
    k = len(C)
    eye = np.eye(k, dtype=np.int64)
    return np.repeat((eye[:, None] + eye).reshape(k * k, k), C.reshape(-1), axis=0)


def krippendorff_alpha(counts: NDArray[np.int64], grades: Sequence[int], level: Level) -> float | Undefined:
    """Alpha of any number of raters from how often each unit got each grade (units x k); 0 for missing.

    `ordinal` is Krippendorff's metric, which depends on how often each grade was given, and not Gwet's ordinal weights.
    K. Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    pairable = counts[counts.sum(axis=1) >= 2]
    if not len(pairable):
        return Undefined("no unit has two grades")
    if pairable.any(axis=0).sum() == 1:
        return Undefined("all raters gave one and the same grade throughout")
    return float(krippendorff.alpha(value_counts=pairable, value_domain=sorted(grades), level_of_measurement=level))


def alpha_of_coincidences(level: Level, coincidences: NDArray[Any], grades: Sequence[int]) -> Floats:
    """Alpha of each of B tables of coincidences (B x k x k); nan where only one grade was given.

    α = 1 - (n - 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck. The ordinal metric is the distance between mid-ranks, since
    Σ_{g=c..k} n_g - (n_c + n_k)/2 = |M_k - M_c| with M_c = Σ_{g≤c} n_g - n_c/2.
    """
    flat, given, _ = _sums(coincidences)
    k = given.shape[1]
    if level == "ordinal":
        ranks = np.cumsum(given, axis=1) - given / 2
        metric = (ranks[:, :, None] - ranks[:, None, :]) ** 2
        observed = np.einsum("bc,bc->b", flat, metric.reshape(-1, k * k))
        expected = np.einsum("bi,bij,bj->b", given, metric, given, optimize=True)
    else:
        g = np.array(sorted(grades), dtype=np.float64)
        fixed = 1.0 - np.eye(k) if level == "nominal" else (g[:, None] - g) ** 2
        observed, expected = flat @ fixed.reshape(-1), ((given @ fixed) * given).sum(axis=1)
    # Weights of a resample may add up to less than one grade; counts never do.
    return 1.0 - _ratio(np.maximum(given.sum(axis=1) - 1, 0) * observed, expected)


def spearman(x: ArrayLike, y: ArrayLike) -> float | Undefined:
    """Spearman's rank correlation of two sequences (N,): the product-moment correlation of mid-ranks."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(a) < 2:
        return Undefined("fewer than 2 pairs")
    if a.min() == a.max() or b.min() == b.max():
        return Undefined("one side is constant")
    return float(np.corrcoef(_midranks(a), _midranks(b))[0, 1])


def auc(scores: ArrayLike, positive: ArrayLike) -> float | Undefined:
    """How often a positive item scores above a negative one (N,), ties counted half.

    H. B. Mann & D. R. Whitney (1947), On a test of whether one of two random variables is stochastically larger than
    the other, Ann. Math. Stat. 18(1), 50-60.
    """
    is_positive = np.asarray(positive, dtype=bool)
    above, below = int(is_positive.sum()), int((~is_positive).sum())
    if not above or not below:
        return Undefined("no positive items" if not above else "no negative items")
    ranks = _midranks(np.asarray(scores, dtype=np.float64))
    return float((ranks[is_positive].sum() - above * (above + 1) / 2) / (above * below))


def _midranks(x: Floats) -> Floats:
    """Ranks from 1, ties sharing the mean of theirs."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)


def _sums(C: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """B tables as rows (B x k²), and their row and column sums (B x k)."""
    k = C.shape[-1]
    # Products with constant matrices: summing short axes is many times slower.
    flat = np.asarray(C, dtype=np.float64).reshape(-1, k * k)
    return flat, flat @ np.repeat(np.eye(k), k, axis=0), flat @ np.tile(np.eye(k), (k, 1))


def _ratio(over: Floats, under: Floats) -> Floats:
    """A quotient; nan where `under` is 0, which these sums of counts are exactly or not at all."""
    quotient = np.full(over.shape, np.nan)
    np.divide(over, under, out=quotient, where=under > 0)
    return quotient


def _mean(name: str, C: NDArray[Any], grades: Sequence[int]) -> Floats:
    """The mean of a score over the pairs of each table."""
    flat, human, _ = _sums(C)
    return _ratio(flat @ mean_scores(name, grades).reshape(-1), human.sum(axis=1))


def _kappa(kind: Weights, C: NDArray[Any], grades: Sequence[int]) -> Floats:
    """κ = 1 - Σ P∘D / Σ (r cᵀ)∘D with D = 1 - W; nan where both raters gave one and the same grade.

    J. Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), 37-46.
    """
    flat, human, judge = _sums(C)
    D = 1.0 - agreement_weights(grades, kind)
    return 1.0 - _ratio(human.sum(axis=1) * (flat @ D.reshape(-1)), ((human @ D) * judge).sum(axis=1))


def _alpha(level: Level, C: NDArray[Any], grades: Sequence[int]) -> Floats:
    """Krippendorff's alpha of two raters, each pair of grades counted in both orders."""
    return alpha_of_coincidences(level, C + C.swapaxes(1, 2), grades)


def _gwet(kind: Weights, C: NDArray[Any], grades: Sequence[int]) -> Floats:
    """AC1 and AC2: (p_a - p_e) / (1 - p_e), p_e = ΣW Σ π(1 - π) / (k(k - 1)) with π the mean of both marginals.

    The formula gives 1 where only one grade was given; such a table says nothing about chance, so it is nan here.
    K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement, Brit. J.
    Math. Stat. Psychol. 61(1), 29-48.
    """
    flat, human, judge = _sums(C)
    k, W = human.shape[1], agreement_weights(grades, kind)
    n = human.sum(axis=1)
    p_a = _ratio(flat @ W.reshape(-1), n)
    share = (human + judge) / np.where(n > 0, 2 * n, 1)[:, None]
    p_e = W.sum() / (k * (k - 1)) * (share * (1 - share)).sum(axis=1)
    return np.where((share > 0).sum(axis=1) > 1, (p_a - p_e) / (1 - p_e), np.nan)


def _tau_b(C: NDArray[Any], grades: Sequence[int]) -> Floats:
    """Kendall's τ_b: concordant less discordant pairs of items over √(pairs untied by one · by the other).

    M. G. Kendall (1945), The treatment of ties in ranking problems, Biometrika 33(3), 239-251.
    """
    flat, human, judge = _sums(C)
    k, n = human.shape[1], human.sum(axis=1)
    S = np.triu(np.ones((k, k)), 1)
    # Σ_ab S_ia C_ab (Sᵀ - S)_bj: pairs beyond (i, j) on both sides, less those beyond on one and before on the other.
    beyond = flat @ np.kron(S, S - S.T).T
    by_human, by_judge = (np.sqrt(n**2 - (side**2).sum(axis=1)) for side in (human, judge))
    return _ratio(2 * (flat * beyond).sum(axis=1), by_human * by_judge)


MEANS: dict[str, Callable[[Floats], NDArray[Any]]] = {
    "percent": lambda d: d == 0,
    "within_one": lambda d: np.abs(d) <= 1,
    "mae": np.abs,
    "bias": lambda d: d,
}
"""Statistics that are means over pairs, from judge less human in scale values."""

ALPHAS: dict[str, Level] = {"alpha_nominal": "nominal", "alpha_ordinal": "ordinal", "alpha_interval": "interval"}

STATISTICS: dict[str, Statistic] = {
    "percent": partial(_mean, "percent"),
    "within_one": partial(_mean, "within_one"),
    "kappa": partial(_kappa, "none"),
    "wkappa_linear": partial(_kappa, "linear"),
    "wkappa": partial(_kappa, "quadratic"),
    **{name: partial(_alpha, level) for name, level in ALPHAS.items()},
    "ac1": partial(_gwet, "none"),
    "ac2": partial(_gwet, "quadratic"),
    "tau_b": _tau_b,
    "mae": partial(_mean, "mae"),
    "bias": partial(_mean, "bias"),
}
"""By name; `wkappa` and `ac2` have quadratic weights, `bias` is the mean of judge less human."""
