"""Means and slopes with topic-clustered intervals, the consensus of assessors, and intervals of proportions."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.records import Estimate

FEWEST_TOPICS = 3
"""Fewest topics for the interval of a mean; intervals of 2 topics are as wide as the scale and say nothing."""
ONE_TOPIC = "most items are of one topic"
"""Why there is no interval where topics count as fewer than 2 (`effective_topics`)."""
NO_ERROR = 1e-12
"""Standard errors below this are zero, but for rounding."""


def mean_interval(
    values: Sequence[float],
    topics: Sequence[str],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    what: str = "grades",
) -> Estimate:
    """The mean x̄ over all N items with a cluster-robust t interval; the topic is the unit that was sampled.

    V = T/(T-1) Σ_t (Σ_{i∈t} (x_i - x̄))² / N², and t has G* - 1 degrees of freedom (`effective_topics`). The interval is
    x̄ ± t √V or, on a scale, the same within its bounds (`within`). It is undefined where V says nothing about the
    spread: fewer than FEWEST_TOPICS topics, most items of one topic, or no variation; the reason says `what` varies.

    Topics with the values 3 3, 2 1 and 0 have the mean 9/5 and residuals 2.4, -.6 and -1.8, and count as 25/9 topics:

    >>> estimate = mean_interval([3, 3, 2, 1, 0], ["a", "a", "b", "b", "c"])
    >>> V = 3 / 2 * (2.4**2 + 0.6**2 + 1.8**2) / 5**2
    >>> f"{9 / 5 - t_quantile(0.95, 25 / 9 - 1) * V**0.5:.6f}", f"{estimate.low:.6f}"
    ('-1.843186', '-1.843186')

    A ValueError if `values` and `topics` differ in length.
    """
    by_topic: dict[str, list[float]] = defaultdict(list)
    for x, topic in zip(values, topics, strict=True):
        by_topic[topic].append(x)
    n = len(values)
    t = len(by_topic)
    if n == 0:
        return Estimate(value=None, low=None, high=None, n=0, topics=0, reason=f"no {what}")
    # fsum rounds once, so the order of the items cannot change a digit.
    mean = math.fsum(values) / n
    if t < FEWEST_TOPICS:
        return Estimate(value=mean, low=None, high=None, n=n, topics=t, reason=f"fewer than {FEWEST_TOPICS} topics")
    if min(values) == max(values):
        return Estimate(value=mean, low=None, high=None, n=n, topics=t, reason=f"all {what} equal")
    sums = [math.fsum([*xs, -len(xs) * mean]) for xs in by_topic.values()]
    se = math.sqrt(t / (t - 1) * math.fsum(s * s for s in sums)) / n
    if se <= 1e-12 * max(map(abs, values)):
        return Estimate(value=mean, low=None, high=None, n=n, topics=t, reason="all topic means equal")
    sizes = [len(xs) for xs in by_topic.values()]
    return t_interval(Estimate(value=mean, low=None, high=None, n=n, topics=t), se, sizes, level=level, bounds=bounds)


def share_interval(hits: Sequence[float] | NDArray[Any], sizes: Sequence[float] | NDArray[Any]) -> Estimate:
    """A share of items with the interval of `mean_interval`, from the hits and the items of each topic (T,).

    Of 3, 2 and 1 items of three topics 2, 0 and 1 are hits:

    >>> of_items = mean_interval([1, 1, 0, 0, 0, 1], ["a", "a", "a", "b", "b", "c"], bounds=(0, 1))
    >>> share_interval([2, 0, 1], [3, 2, 1]) == of_items
    True
    """
    n_t = np.asarray(sizes, dtype=np.float64)
    h_t = np.asarray(hits, dtype=np.float64)[n_t > 0]
    n_t = n_t[n_t > 0]
    n = round(n_t.sum())
    T = len(n_t)
    if not T:
        return Estimate(value=None, low=None, high=None, n=0, topics=0, reason="no items")
    share = float(h_t.sum() / n_t.sum())
    bare = Estimate(value=share, low=None, high=None, n=n, topics=T)
    if T < FEWEST_TOPICS:
        return replace(bare, reason=f"fewer than {FEWEST_TOPICS} topics")
    if share in (0, 1):
        return replace(bare, reason="none of them" if share == 0 else "all of them")
    residuals = h_t - n_t * share
    se = math.sqrt(T / (T - 1) * math.fsum(residuals**2)) / n_t.sum()
    if se <= NO_ERROR:
        return replace(bare, reason="all topic shares equal")
    return t_interval(bare, se, n_t, level=0.95, bounds=(0, 1))


def t_interval(
    bare: Estimate,
    se: float,
    sizes: Sequence[float] | NDArray[Any],
    *,
    level: float,
    bounds: tuple[float, float] | None = None,
    below: float | None = None,
    what: str = "topics",
) -> Estimate:
    """An estimate without interval, with ± t standard errors on it, within `bounds` if there are any (`within`).

    t has G* - 1 degrees of freedom for units of these sizes (`effective_topics`). The interval reaches `below` standard
    errors below the value; as many as above if None. There is none, but a reason, if nothing varies between the units
    (`what`), or they count as fewer than 2.
    """
    value = bare.value
    count = effective_topics(sizes)
    if value is None:
        return bare
    if se < NO_ERROR or count < 2:
        return replace(bare, reason=f"no variation between {what}" if se < NO_ERROR else ONE_TOPIC)
    half = t_quantile(level, count - 1) * se
    low, high = (
        within(value, size, bounds) if bounds else (value - size, value + size)
        for size in (half if below is None else below * se, half)
    )
    return replace(bare, low=low[0], high=high[1])


def effective_topics(sizes: Sequence[float] | NDArray[Any]) -> float:
    """G* = N² / Σ n_t²: how many topics of equal size say as much about a standard error.

    A. V. Carter, K. T. Schnepel & D. G. Steigerwald (2017), Asymptotic behavior of a t-test robust to cluster
    heterogeneity, Rev. Econ. Stat. 99(4), 698-709.

    >>> effective_topics([7, 7, 7]), effective_topics([6, 1, 1])
    (3.0, 1.6842105263157894)
    """
    n = np.asarray(sizes, dtype=np.float64)
    return float(n.sum() ** 2 / (n @ n))


def within(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval value ± half, carried to the log odds of the value's place between its bounds and back.

    It stays inside the bounds and is longer towards the middle, as the error of a mean of grades is. Between -1 and 1
    it is the interval on Fisher's z: the log odds of (1 + κ) / 2 are 2 atanh κ. A value at a bound, or below a bound of
    ∞, has no log odds, and its interval is cut there.

    >>> low, high = within(0.5, 0.15, (-1, 1))
    >>> f"{low:.6f} {high:.6f}", f"{math.tanh(math.atanh(0.5) - 0.15 / (1 - 0.5**2)):.6f}"
    ('0.335760 0.634735', '0.335760')
    """
    least, most = bounds
    share = (value - least) / (most - least)
    if not 0 < share < 1:
        return max(value - half, least), min(value + half, most)
    odds = share / (1 - share)
    step = half / ((most - least) * share * (1 - share))
    # Beyond e^700 a float would overflow; the end is the bound long before.
    shares = [1 / (1 + math.exp(min(sign * step - math.log(odds), 700.0))) for sign in (1, -1)]
    return least + (most - least) * shares[0], least + (most - least) * shares[1]


def t_quantile(level: float, df: float) -> float:
    """Half the width of a two-sided t interval, in standard errors; `df` may be infinite for a normal interval."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))


def consensus(grades: Sequence[int], middle: float = math.inf) -> int:
    """The grade of several assessors: the mode or, where it is not unique, the mean of all, halves towards `middle`.

    Halves go up unless it is given: the rule of CAsT-ReGIn, whose organizers do not say how they rounded.

    >>> consensus([3, 1, 3]), consensus([0, 1]), consensus([1, 2]), consensus([1, 2], middle=1)
    (3, 1, 2, 1)
    """
    counts = Counter(grades)
    most = max(counts.values())
    modes = [grade for grade, count in counts.items() if count == most]
    n = len(grades)
    up, rest = divmod(2 * sum(grades) + n, 2 * n)
    return modes[0] if len(modes) == 1 else up - (rest == 0 and up > middle)


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion, from the quantiles of beta distributions.

    C. J. Clopper & E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26(4), 404-413.

    Ten of ten have the probability p^10, which is 2.5 % at the lower end:

    >>> f"{0.025 ** (1 / 10):.6f}", f"{clopper_pearson(10, 10)[0]:.6f}"
    ('0.691503', '0.691503')

    A ValueError if `successes` is not in 0 to n, or n is 0.
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n}: expected 0 to n of one or more")
    k = successes
    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high


def most_unseen(units: float, level: float = 0.95) -> float:
    """The greatest share of all units that may differ where none of these does: 1 - (1 - level)^(1/n), which is exact.

    Where a share p of all topics has an error, none of 20 has one with probability (1 - p)^20:

    >>> f"{most_unseen(20):.4f}", f"{(1 - most_unseen(20)) ** 20:.4f}"
    ('0.1391', '0.0500')

    All of the error is on one side, unlike that of `clopper_pearson`. Units of unequal size count as fewer
    (`effective_topics`), so their number need not be whole.
    """
    return float(1 - (1 - level) ** (1 / units))


def unvarying_interval(
    estimate: Estimate, topics: Sequence[str], ends: tuple[float, float], *, level: float = 0.95
) -> Estimate:
    """The exact interval of a mean of values that are all equal, of items of these topics.

    With topics drawn like these, at most a share q of all has another value (`most_unseen`), which may be at either of
    the `ends` throughout. Nothing shows the size of what was not seen.

    All of 8 topics have the value 0 between -3 and 3, and 1 - .025^(1/8) of all may have another:

    >>> still = unvarying_interval(Estimate(0.0, None, None, 8, 8), list("abcdefgh"), (-3, 3))
    >>> f"{still.low:.4f} {still.high:.4f}", f"{3 * (1 - 0.025 ** (1 / 8)):.4f}"
    ('-1.1082 1.1082', '1.1082')
    """
    if estimate.value is None:
        return estimate
    share = most_unseen(effective_topics([*Counter(topics).values()]), (1 + level) / 2)
    low, high = ((1 - share) * estimate.value + share * end for end in ends)
    return replace(estimate, low=low, high=high)


def slope_interval(
    x: NDArray[np.float64], y: NDArray[np.float64], topics: NDArray[np.int64], *, level: float = 0.95
) -> Estimate:
    """The least-squares slope of y (N,) on x (N,) with a cluster-robust t interval over topics (N,).

    With residuals e and x centered, V = T/(T-1) Σ_t (Σ_{i∈t} x_i e_i)² / (Σ x_i²)². Topics count by how much of the
    slope they decide: t has G* - 1 degrees of freedom, with Σ_{i∈t} x_i² for sizes (`means.effective_topics`).
    K.-Y. Liang & S. Zeger (1986), Longitudinal data analysis using generalized linear models, Biometrika 73(1), 13-22.
    """
    n = len(x)
    T = len(np.unique(topics))
    if n < 3 or np.ptp(x) == 0:
        return Estimate(
            value=None,
            low=None,
            high=None,
            n=n,
            topics=T,
            reason="fewer than 3 items" if n < 3 else "no variation in length or place",
        )
    centered = x - x.mean()
    spread = float(centered @ centered)
    slope = float(centered @ y) / spread
    if T < FEWEST_TOPICS:
        return Estimate(value=slope, low=None, high=None, n=n, topics=T, reason=f"fewer than {FEWEST_TOPICS} topics")
    residual = y - y.mean() - slope * centered
    place = np.unique(topics, return_inverse=True)[1]
    sums = np.bincount(place, weights=centered * residual)
    se = float(np.sqrt(T / (T - 1) * (sums @ sums))) / spread
    found = t_interval(
        Estimate(value=slope, low=None, high=None, n=n, topics=T),
        se,
        np.bincount(place, weights=centered**2),
        level=level,
    )
    return replace(found, reason="one topic decides most of the slope") if found.reason == ONE_TOPIC else found


def welch(a: NDArray[np.float64], b: NDArray[np.float64], *, level: float = 0.95) -> Estimate:
    """mean(a) - mean(b) of two samples (n_a,) and (n_b,) with Welch's t interval; `n` counts the values of both.

    B. L. Welch (1947), The generalization of Student's problem, Biometrika 34(1-2), 28-35.
    """
    n = len(a) + len(b)
    if not len(a) or not len(b):
        return Estimate(value=None, low=None, high=None, n=n, topics=0, reason="one side is empty")
    difference = float(a.mean() - b.mean())
    if len(a) < 2 or len(b) < 2:
        return Estimate(value=difference, low=None, high=None, n=n, topics=0, reason="fewer than 2 runs on one side")
    va = float(a.var(ddof=1)) / len(a)
    vb = float(b.var(ddof=1)) / len(b)
    if va + vb < 1e-24:
        return Estimate(value=difference, low=None, high=None, n=n, topics=0, reason="no variation between runs")
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = t_quantile(level, df) * (va + vb) ** 0.5
    return Estimate(value=difference, low=difference - half, high=difference + half, n=n, topics=0)
