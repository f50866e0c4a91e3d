"""Agreement of two raters, or more, on a declared ordinal scale.

C is the table of counts: human grades in rows, judge grades in columns, both over all grades of the scale in
ascending order, so that a grade nobody gave has its row too and distances stay as declared.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import krippendorff
import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.means import t_quantile

FEWEST_TOPICS = 5
"""Fewest topics that kappa gets an interval for; more than a mean, because few topics give few different resamples."""


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


def agreement_weights(grades: Sequence[int], kind: Literal["none", "linear", "quadratic"]) -> NDArray[np.float64]:
    """W (k x k): 1 - (d/R)^p with d between scale values and R the scale's range; the identity for `none`.

    J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220.
    """
    g = np.array(sorted(grades), dtype=np.float64)
    if kind == "none":
        return np.eye(len(g))
    d: NDArray[np.float64] = np.abs(g[:, None] - g) / (g[-1] - g[0])
    return 1.0 - d if kind == "linear" else 1.0 - d**2


def percent(C: NDArray[np.int64]) -> float | Undefined:
    """Share of pairs with the same grade."""
    return float(np.trace(C) / C.sum()) if C.sum() else Undefined("no pairs")


def within_one(C: NDArray[np.int64], grades: Sequence[int]) -> float | Undefined:
    """Share of pairs whose grades differ by at most 1 in scale value."""
    g = np.array(sorted(grades))
    return float(C[np.abs(g[:, None] - g) <= 1].sum() / C.sum()) if C.sum() else Undefined("no pairs")


def cohen_kappa(C: NDArray[np.int64], W: NDArray[np.float64]) -> float | Undefined:
    """κ = (p_o - p_e) / (1 - p_e), with p_o = Σ P∘W and p_e = Σ (r cᵀ)∘W.

    J. Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), 37-46.
    """
    if not C.sum():
        return Undefined("no pairs")
    kappa = float(_kappa(C[None], W)[0])
    return Undefined("both raters gave one and the same grade throughout") if np.isnan(kappa) else kappa


def _kappa(C: NDArray[Any], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """κ of each of B tables (B x k x k); nan where p_e = 1."""
    P = C / C.sum(axis=(1, 2), keepdims=True)
    p_o = (P * W).sum(axis=(1, 2))
    p_e = np.einsum("bi,ij,bj->b", P.sum(axis=2), W, P.sum(axis=1))
    defined = 1 - p_e > 1e-12
    return np.where(defined, (p_o - p_e) / np.where(defined, 1 - p_e, 1.0), np.nan)


def unit_counts(C: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each unit got each grade (units x k), from the table of two raters."""
    k = len(C)
    eye = np.eye(k, dtype=np.int64)
    return np.repeat((eye[:, None] + eye).reshape(k * k, k), C.reshape(-1), axis=0)


def krippendorff_alpha(
    counts: NDArray[np.int64], grades: Sequence[int], level: Literal["nominal", "ordinal", "interval"]
) -> float | Undefined:
    """Alpha of any number of raters from how often each unit got each grade (units x k); 0 for missing.

    K. Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    pairable = counts[counts.sum(axis=1) >= 2]
    if not len(pairable):
        return Undefined("no unit has two grades")
    if (pairable.sum(axis=0) > 0).sum() == 1:
        return Undefined("all raters gave one and the same grade throughout")
    return float(krippendorff.alpha(value_counts=pairable, value_domain=sorted(grades), level_of_measurement=level))


def kappa_interval(
    tables: NDArray[np.int64],
    W: NDArray[np.float64],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """κ with an interval over topics: tanh(atanh κ ± t_{T-1} SE / (1 - κ²)), SE from resampled topics.

    Whole topics are drawn with replacement, at a cost that does not grow with the items. The standard error
    is carried to Fisher's z by its derivative, since κ of a replicate may be 1, where z is infinite.

    Args:
        tables: C of every topic (T x k x k), in an order that does not depend on the input's.
        W: Agreement weights (k x k).
        rng: The source of randomness.
        replicates: Number of resamples.
        level: Confidence level.
    """
    C = tables.sum(axis=0)
    n, T, k = int(C.sum()), int((tables.sum(axis=(1, 2)) > 0).sum()), len(C)
    kappa = cohen_kappa(C, W)
    if isinstance(kappa, Undefined):
        return Estimate(None, None, None, n, T, kappa.reason)
    if T < FEWEST_TOPICS:
        return Estimate(kappa, None, None, n, T, f"fewer than {FEWEST_TOPICS} topics")
    judged = tables[tables.sum(axis=(1, 2)) > 0].reshape(T, k * k)
    draws = rng.multinomial(T, np.full(T, 1 / T), size=replicates)
    kappas = _kappa((draws @ judged).reshape(replicates, k, k), W)
    kappas = kappas[~np.isnan(kappas)]
    se = float(kappas.std(ddof=1)) if len(kappas) > 1 else 0.0
    if 1 - kappa**2 < 1e-12:
        return Estimate(kappa, None, None, n, T, "perfect agreement" if kappa > 0 else "perfect disagreement")
    if se < 1e-12:
        return Estimate(kappa, None, None, n, T, "no variation between topics")
    z, width = np.arctanh(kappa), t_quantile(level, T - 1) * se / (1 - kappa**2)
    return Estimate(kappa, float(np.tanh(z - width)), float(np.tanh(z + width)), n, T)


def spearman(x: Sequence[float], y: Sequence[float]) -> float | Undefined:
    """Spearman's rank correlation: the product-moment correlation of mid-ranks."""
    if len(x) < 2:
        return Undefined("fewer than 2 pairs")
    if min(x) == max(x) or min(y) == max(y):
        return Undefined("one side is constant")
    return float(np.corrcoef(_midranks(x), _midranks(y))[0, 1])


def _midranks(x: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from 1, ties sharing the mean of theirs."""
    _, inverse, counts = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)
