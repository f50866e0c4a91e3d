"""Krippendorff's alpha, from the grades of each unit or from tables of coincidences."""

from collections.abc import Sequence
from typing import Any

import krippendorff
import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats, ScaleType, Undefined, ratio, sums


def unit_counts(C: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each unit got each grade (units x k), from the table of two raters."""
    k = len(C)
    eye = np.eye(k, dtype=np.int64)
    return np.repeat((eye[:, None] + eye).reshape(k * k, k), C.reshape(-1), axis=0)


def krippendorff_alpha(counts: NDArray[np.int64], grades: Sequence[int], level: ScaleType) -> float | Undefined:
    """Alpha of any number of raters from how often each unit got each grade (units x k), or why it is undefined.

    `ordinal` is Krippendorff's metric, which depends on how often each grade was given; it is not Gwet's.
    K. Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    pairable = counts[counts.sum(axis=1) >= 2]
    if not len(pairable):
        return Undefined("no unit has two grades")
    if pairable.any(axis=0).sum() == 1:
        return Undefined("all raters gave one and the same grade throughout")
    return float(krippendorff.alpha(value_counts=pairable, value_domain=sorted(grades), level_of_measurement=level))


def alpha_of_coincidences(level: ScaleType, coincidences: NDArray[Any], grades: Sequence[int]) -> Floats:
    """Alpha of each of B tables of coincidences (B x k x k); nan where only one grade was given.

    α = 1 - (n - 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck. The ordinal metric is the distance between mid-ranks, since
    Σ_{g=c..k} n_g - (n_c + n_k)/2 = |M_k - M_c| with M_c = Σ_{g≤c} n_g - n_c/2.
    """
    flat, given, _ = sums(coincidences)
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
    # Weights of a resample may add up to less than 1, where n - 1 would be negative; counts cannot.
    return 1.0 - ratio(np.maximum(given.sum(axis=1) - 1, 0) * observed, expected)
