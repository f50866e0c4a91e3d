"""A slope with a topic-clustered interval, and the difference of two means."""

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.means import FEWEST_TOPICS, effective_topics, t_quantile


def slope_interval(
    x: NDArray[np.float64], y: NDArray[np.float64], topics: NDArray[np.int64], *, level: float = 0.95
) -> Estimate:
    """The least-squares slope of y on x with a cluster-robust t interval over topics.

    With residuals e and x centered, V = T/(T-1) Σ_t (Σ_{i∈t} x_i e_i)² / (Σ x_i²)². Topics count by how much of the
    slope they decide: t has G* - 1 degrees of freedom, with Σ_{i∈t} x_i² for sizes (`means.effective_topics`).
    K.-Y. Liang & S. Zeger (1986), Longitudinal data analysis using generalized linear models, Biometrika 73(1), 13-22.

    Args:
        x: The property that should not matter (N,).
        y: The values that it may move (N,).
        topics: Each item's topic (N,).
        level: Confidence level.
    """
    n, T = len(x), len(np.unique(topics))
    if n < 3 or np.ptp(x) == 0:
        return Estimate(None, None, None, n, T, "fewer than 3 items" if n < 3 else "no variation in length or place")
    centered = x - x.mean()
    spread = float(centered @ centered)
    slope = float(centered @ y) / spread
    if T < FEWEST_TOPICS:
        return Estimate(slope, None, None, n, T, f"fewer than {FEWEST_TOPICS} topics")
    residual = y - y.mean() - slope * centered
    place = np.unique(topics, return_inverse=True)[1]
    sums = np.bincount(place, weights=centered * residual)
    se = float(np.sqrt(T / (T - 1) * (sums @ sums))) / spread
    if se < 1e-12:
        return Estimate(slope, None, None, n, T, "no variation between topics")
    count = effective_topics(np.bincount(place, weights=centered**2))
    if count < 2:
        return Estimate(slope, None, None, n, T, "one topic decides most of the slope")
    half = t_quantile(level, count - 1) * se
    return Estimate(slope, slope - half, slope + half, n, T)


def welch(a: NDArray[np.float64], b: NDArray[np.float64], *, level: float = 0.95) -> Estimate:
    """mean(a) - mean(b) of two samples (n_a,) and (n_b,) with Welch's t interval; `n` counts the values of both.

    B. L. Welch (1947), The generalization of Student's problem, Biometrika 34(1-2), 28-35.
    """
    n = len(a) + len(b)
    if not len(a) or not len(b):
        return Estimate(None, None, None, n, 0, "one side is empty")
    difference = float(a.mean() - b.mean())
    if len(a) < 2 or len(b) < 2:
        return Estimate(difference, None, None, n, 0, "fewer than 2 runs on one side")
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if va + vb < 1e-24:
        return Estimate(difference, None, None, n, 0, "no variation between runs")
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = t_quantile(level, df) * (va + vb) ** 0.5
    return Estimate(difference, difference - half, difference + half, n, 0)
