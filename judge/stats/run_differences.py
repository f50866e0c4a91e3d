"""Differences of run means over the same turns, every pair of runs tested together with the topic as the unit."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.means import mean_interval
from judge.stats.resampling import random_signs, share_beyond, topic_signs
from judge.stats.tables import Floats

FEWEST_TOPICS_COMPARED = 8
"""Fewest common topics for an interval and a p-value.

The signs of 7 topics can be set in 64 ways up to a turn of all, so no p-value is below 1/64 = .016, and among several
pairs none is small.
"""
ROUNDING = 1e-9
"""Studentized differences this close are the same number."""
_CHUNK = 2**18
"""Numbers that are held at once, few enough for the cache of a processor."""
_MOST_SIGNS = 2**26
"""The most signs that are held at once; of more topics, they are drawn a few rows at a time."""


class Difference(NamedTuple):
    """The mean of run `a` less that of run `b`."""

    a: int
    """Place of the run."""
    b: int
    difference: Estimate
    """Over the turns of both runs, with the interval of this pair alone (`for_skewness`)."""
    p: float | None
    """The p-value of this pair alone; None without an interval."""
    p_adjusted: float | None
    """Adjusted for all pairs."""


def run_differences(
    grades: Floats,
    topics: Sequence[str],
    rng: np.random.Generator,
    *,
    most: float = math.inf,
    flips: int = 10_000,
    level: float = 0.95,
) -> tuple[Difference, ...]:
    """Compare every two runs (R x N, nan where a turn does not count for a run) on the turns that both have.

    No interval goes beyond `most`, the greatest difference that the scale allows.

    Under the null hypothesis of a pair, the sum D_t of its differences in topic t could as well be -D_t. So Σ g_t D_t
    over its cluster-robust standard error is a draw t* of t for signs g, the same for all pairs; the identity is among
    them. Each t is first corrected for the skewness of its topics (`_without_skewness`), since the differences of a run
    that fails on a few whole topics are not symmetric. All 2^T signs are taken where they are at most B = `flips`, else
    p = (1 + #) / (B + 1). The adjusted p of a pair compares its t with the largest t* of the pairs whose t is no larger
    (step-down), and is no smaller than that of a pair with a larger t. It keeps the family-wise error in whichever
    pairs the null holds.
    J. P. Romano & M. Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis testing, JASA
    100(469), 94-108; L. Boytsov, A. Belova & P. Westfall (2013), Deciding on an adjustment for multiplicity in IR
    experiments, SIGIR.

    One pair has the p-value of R. A. Fisher's test: of the 2^8 ways to set the signs of eight equal differences, only
    all plus and all minus reach the sum.

    >>> (found,) = run_differences(np.array([[1.0] * 8, [0.0] * 8]), list("abcdefgh"), np.random.default_rng(0))
    >>> found.p, 2 / 2**8
    (0.0078125, 0.0078125)
    """
    names, codes = np.unique(np.asarray(topics), return_inverse=True)
    pairs = list(combinations(range(len(grades)), 2))
    if not pairs:
        return ()
    estimates: list[Estimate] = []
    tested: list[int] = []
    sums = np.zeros((len(pairs), len(names)))
    sizes = np.zeros((len(pairs), len(names)))
    for place, (a, b) in enumerate(pairs):
        d = grades[a] - grades[b]
        both = ~np.isnan(d)
        sums[place] = np.bincount(codes[both], weights=d[both], minlength=len(names))
        sizes[place] = np.bincount(codes[both], minlength=len(names))
        of = [topics[turn] for turn in np.flatnonzero(both).tolist()]
        estimate = mean_interval(d[both].tolist(), of, level=level, what="differences")
        estimates.append(for_skewness(estimate, sums[place], sizes[place], most))
        if estimate.topics >= FEWEST_TOPICS_COMPARED:
            tested.append(place)
    p, adjusted = _p_values(sums[tested], sizes[tested], flips, rng)
    p_values = {place: (float(p[k]), float(adjusted[k])) for k, place in enumerate(tested)}
    differences: list[Difference] = []
    for place, ((a, b), estimate) in enumerate(zip(pairs, estimates, strict=True)):
        alone, with_all = p_values.get(place, (None, None))
        differences.append(Difference(a=a, b=b, difference=estimate, p=alone, p_adjusted=with_all))
    return tuple(differences)


def _without_skewness(x: Floats, skewness: Floats, T: Floats | int) -> Floats:
    """Means over standard deviations of T topics, made nearly symmetric: x + γ x²/3 + γ² x³/27 + γ/(6T).

    P. Hall (1992), On the removal of skewness by transformation, J. R. Stat. Soc. B 54(1), 221-228.
    """
    u = skewness * x / 3
    return x * (1 + u + u * u / 3) + skewness / (6 * T)


def for_skewness(estimate: Estimate, D: Floats, n: Floats, most: float) -> Estimate:
    """The t interval of sums D in topics of size n (T,), made to hold the one on `_without_skewness` as well.

    It ends at ±`most`. With fewer than FEWEST_TOPICS_COMPARED topics, which show no skewness, there is none.
    """
    T = estimate.topics
    if estimate.value is not None and T < FEWEST_TOPICS_COMPARED:
        return Estimate(
            value=estimate.value,
            low=None,
            high=None,
            n=estimate.n,
            topics=T,
            reason=f"fewer than {FEWEST_TOPICS_COMPARED} topics",
        )
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    residuals = (D - n * estimate.value)[n > 0]
    spread = np.sqrt((residuals**2).mean())
    skewness = (residuals**3).mean() / spread**3
    sd = T * np.sqrt(T / (T - 1)) * spread / n.sum()
    y = np.array([1, -1]) * (estimate.high - estimate.value) / sd - skewness / (6 * T)
    x = (np.cbrt(1 + skewness * y) - 1) * 3 / skewness if abs(skewness) > ROUNDING else y
    low, high = estimate.value - sd * x
    return msgspec.structs.replace(
        estimate, low=max(min(estimate.low, float(low)), -most), high=min(max(estimate.high, float(high)), most)
    )


def _p_values(D: Floats, n: Floats, flips: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The p-values of P pairs alone and adjusted (P, P), from sums and sizes of topics (P x T)."""
    P, T = D.shape
    B = flips
    exact = False
    blocks: Iterable[NDArray[Any]]
    if flips * T > _MOST_SIGNS:
        blocks = random_signs(T, flips, rng)
    else:
        signs, exact = topic_signs(T, flips, rng)
        B = len(signs)
        blocks = (signs,)
    t_of = _studentized(D, n)
    observed = t_of(np.ones((1, D.shape[1])))[0]
    order = np.argsort(observed, kind="stable")
    alone = np.zeros(P)
    beyond = np.zeros(P)
    rows = max(1, _CHUNK // max(P, T, 1))
    for S in (block[start : start + rows] for block in blocks for start in range(0, len(block), rows)):
        if P == 0:
            # The signs are drawn all the same, so that the criterion after this one has its own.
            continue
        t = t_of(S.astype(np.float64))
        alone += (t >= observed - ROUNDING).sum(axis=0)
        # From the smallest t on, the largest t* of all pairs up to this one.
        largest = np.maximum.accumulate(t[:, order], axis=1)
        beyond[order] += (largest >= observed[order] - ROUNDING).sum(axis=0)
    p, adjusted = (share_beyond(count, B, exact) for count in (alone, beyond))
    from_largest = order[::-1]
    adjusted[from_largest] = np.maximum.accumulate(adjusted[from_largest])
    return p, adjusted


def _studentized(D: Floats, n: Floats) -> Callable[[Floats], Floats]:
    """From signs (B x T) to |t| of Σ g_t D_t, corrected for skewness, for each signs and pair (B x P).

    The residuals are g_t D_t - n_t mean. Where all topics agree the error is 0, and the ratio infinite; it is 0 where
    no topic differs.
    """
    T = (n > 0).sum(axis=1)
    N = n.sum(axis=1)
    scale = (D**2).sum(axis=1)
    n2 = (n * n).sum(axis=1)
    n3 = (n * n * n).sum(axis=1)
    n_D2 = (n * D * D).sum(axis=1)
    sums = [np.ascontiguousarray(of.T) for of in (D, 2 * n * D, D * D * D, 3 * n * n * D)]
    least = ROUNDING * scale
    root = np.sqrt(T)
    per_topic = T / np.sqrt(np.maximum(T - 1, 1))

    def t(S: Floats) -> Floats:
        total, with_n, cubed, with_n2 = (S @ of for of in sums)
        mean = total / N
        squares = scale - mean * (with_n - mean * n2)
        cubes = cubed - mean * (3 * n_D2 - mean * (with_n2 - mean * n3))
        squares[squares <= least] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            sd = np.sqrt(squares)
            of_t: Floats = root * np.abs(_without_skewness(total / (sd * per_topic), root * cubes / (squares * sd), T))
        of_t[squares == 0] = np.inf
        of_t[np.abs(total) <= ROUNDING * np.sqrt(scale)] = 0.0
        return of_t

    return t
