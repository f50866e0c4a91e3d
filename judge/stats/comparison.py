"""Paired comparison of judges on the same items, with the topic as the unit that is exchanged."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, Formula, point
from judge.stats.means import t_quantile
from judge.stats.resampling import FEWEST_RESAMPLED, spread, topic_draws, undefined_too_often
from judge.stats.tables import Undefined

REPLICATES = 2000
"""Resamples of topics behind the standard error of a difference."""
ROUNDING = 1e-9
"""Standardized statistics this close are the same number."""


class Comparison(msgspec.Struct, frozen=True):
    """One statistic of judge `a` minus that of judge `b`; no p-value where it is undefined."""

    a: str
    b: str
    difference: Estimate
    """a minus b."""
    p: float | None
    """The p-value of this pair alone."""
    p_max_t: float | None
    """Adjusted for all pairs by the largest standardized difference."""
    p_holm: float | None
    """Adjusted for all pairs after Holm."""
    exact: bool
    """Whether all exchanges were enumerated, not sampled."""


def compare(
    pairs: Mapping[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    permutations: int = 10_000,
    level: float = 0.95,
) -> tuple[Comparison, ...]:
    """Test every pair of judges by exchanging their labels in whole topics.

    Under the null hypothesis the two judges' labels of a topic could be exchanged, so a sample of the null is
    C_a* = Σ_t (1-s_t) C_a,t + s_t C_b,t with a fair coin s_t, and C_b* the other way around. All pairs have the same s,
    which keeps the dependence between pairs that max-T needs. p = (1 + #) / (B + 1) for B sampled s, and # / 2^T when
    all are enumerated. An exchange that leaves the statistic undefined counts as the most extreme. The interval of a
    difference is ± t_{T-1} standard errors from resampled topics. Holm's adjustment can reach α among m pairs only if
    B + 1 >= m / α; max-T always can.

    P. H. Westfall & S. S. Young (1993), Resampling-based multiple testing, Wiley; M. D. Smucker, J. Allan &
    B. Carterette (2007), A comparison of statistical significance tests for information retrieval evaluation, CIKM.

    Args:
        pairs: The tables C of a and b (T x k x k each), counts or weights, over the items that both judged, by the
            names of a and b; all pairs have the same topics in the same order.
        name: Key of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        permutations: B, and the most exchanges to enumerate.
        level: Confidence level.
    """
    if not pairs:
        return ()
    statistic = STATISTICS[name]
    tables = {names: (np.asarray(A, np.float64), np.asarray(B, np.float64)) for names, (A, B) in pairs.items()}
    judged = np.any([A.any(axis=(1, 2)) | B.any(axis=(1, 2)) for A, B in tables.values()], axis=0)
    S, exact = _exchanges(int(judged.sum()), permutations, rng)
    draws: dict[int, NDArray[np.float64]] = {}
    differences = []
    observed, raw = np.full(len(tables), np.nan), np.full(len(tables), np.nan)
    largest = np.zeros(len(S))
    for i, (names, (A, B)) in enumerate(tables.items()):
        difference = _difference(names, A, B, name, grades, rng, draws, level)
        differences.append(difference)
        if difference.value is None:
            continue
        z, scale = _standardized(_exchanged(A[judged], B[judged], S, statistic, grades))
        observed[i] = abs(difference.value) * scale
        raw[i] = _share(int((z >= observed[i] - ROUNDING).sum()), len(S), exact)
        np.maximum(largest, z, out=largest)
    largest.sort()
    beyond = len(S) - np.searchsorted(largest, observed - ROUNDING)
    adjusted = np.full(len(raw), np.nan)
    adjusted[~np.isnan(raw)] = holm(raw[~np.isnan(raw)])
    return tuple(
        Comparison(a, b, difference, None, None, None, exact)
        if difference.value is None
        else Comparison(a, b, difference, float(p), _share(int(count), len(S), exact), float(p_holm), exact)
        for (a, b), difference, p, count, p_holm in zip(tables, differences, raw, beyond, adjusted, strict=True)
    )


def indistinguishable(comparisons: Sequence[Comparison], best: str, alpha: float = 0.05) -> tuple[str, ...]:
    """The judges that max-T does not separate from `best` at level alpha, or that cannot be compared with it."""
    return tuple(
        pair.b if pair.a == best else pair.a
        for pair in comparisons
        if best in (pair.a, pair.b) and (pair.p_max_t is None or pair.p_max_t > alpha)
    )


def sign_flip(differences: NDArray[np.float64], rng: np.random.Generator, *, permutations: int = 10_000) -> float:
    """Two-sided p of the mean of differences (T,) whose signs are arbitrary under the null; exact if 2^T <= B.

    R. A. Fisher (1935), The design of experiments, section 21.

    Differences 1, 2 and 3 have the sum 6; of 8 ways to set the signs only all plus and all minus reach it:

    >>> 2 / 2**3, sign_flip(np.array([1.0, 2.0, 3.0]), np.random.default_rng(1))
    (0.25, 0.25)
    """
    d = np.asarray(differences, dtype=np.float64)
    S, exact = _exchanges(len(d), permutations, rng)
    beyond = np.abs((1 - 2 * S) @ d) >= abs(d.sum()) - ROUNDING * np.abs(d).sum()
    return _share(int(beyond.sum()), len(S), exact)


def holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's adjusted p-values (m,): the running maximum of (m-j+1) p_(j), at most 1.

    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6(2), 65-70.

    >>> [3 * 0.01, 2 * 0.03, max(2 * 0.03, 1 * 0.04)], holm([0.01, 0.03, 0.04]).tolist()
    ([0.03, 0.06, 0.06], [0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _exchanges(T: int, permutations: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], bool]:
    """S (B x T) of 0 and 1: all 2^T rows if `permutations` allows as many, else random ones."""
    if permutations >= 2**T:
        return (np.arange(2**T)[:, None] >> np.arange(T) & 1).astype(np.float64), True
    return rng.integers(0, 2, size=(permutations, T)).astype(np.float64), False


def _share(beyond: int, B: int, exact: bool) -> float:
    return beyond / B if exact else (1 + beyond) / (B + 1)


def _exchanged(
    A: NDArray[np.float64],
    B: NDArray[np.float64],
    S: NDArray[np.float64],
    statistic: Formula,
    grades: Sequence[int],
) -> NDArray[np.float64]:
    """Differences of the statistic (B,) after each exchange of topics."""
    T, k, _ = A.shape
    # Counts are whole numbers and weights on a grid, so these sums are exact.
    moved = (S @ (A - B).reshape(T, k * k)).reshape(len(S), k, k)
    return statistic(A.sum(axis=0) - moved, grades) - statistic(B.sum(axis=0) + moved, grades)


def _standardized(null: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """|T*| / sd* (B,), infinite where undefined, and 1 / sd*; zeros if no exchange makes a difference."""
    defined = ~np.isnan(null)
    sd = float(np.sqrt(np.mean(null[defined] ** 2))) if defined.any() else 0.0
    scale = 1 / sd if sd > 1e-12 else 0.0
    return np.where(defined, np.abs(null) * scale, np.inf), scale


def _difference(
    names: tuple[str, str],
    A: NDArray[np.float64],
    B: NDArray[np.float64],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    draws: dict[int, NDArray[np.float64]],
    level: float,
) -> Estimate:
    """The statistic of A minus that of B; `draws` keeps resamples by T, so pairs with equal T share them."""
    judged = A.any(axis=(1, 2)) | B.any(axis=(1, 2))
    A, B = A[judged], B[judged]
    (T, k, _), n = A.shape, round(A.sum())
    statistic = STATISTICS[name]
    value = float((statistic(A.sum(axis=0)[None], grades) - statistic(B.sum(axis=0)[None], grades))[0])
    if np.isnan(value):
        return Estimate(None, None, None, n, T, _why(names, A, B, name, grades))
    if T < FEWEST_RESAMPLED:
        return Estimate(value, None, None, n, T, f"fewer than {FEWEST_RESAMPLED} topics")
    if T not in draws:
        draws[T] = topic_draws(T, REPLICATES, rng).astype(np.float64)
    of_a, of_b = (statistic((draws[T] @ X.reshape(T, k * k)).reshape(-1, k, k), grades) for X in (A, B))
    without = statistic(A.sum(axis=0) - A, grades) - statistic(B.sum(axis=0) - B, grades)
    undefined = undefined_too_often(of_a - of_b, "topics", without)
    if undefined:
        return Estimate(value, None, None, n, T, undefined)
    se = spread(of_a - of_b)
    if se < 1e-12:
        return Estimate(value, None, None, n, T, "no variation between topics")
    half = t_quantile(level, T - 1) * se
    return Estimate(value, value - half, value + half, n, T)


def _why(
    names: tuple[str, str], A: NDArray[np.float64], B: NDArray[np.float64], name: str, grades: Sequence[int]
) -> str:
    """Which of the two judges has no value, and why."""
    for judge, X in zip(names, (A, B), strict=True):
        value = point(name, X.sum(axis=0), grades)
        if isinstance(value, Undefined):
            return f"{judge}: {value.reason}"
    return f"{name} is undefined"
