"""Means with topic-clustered intervals."""

import math
from collections import defaultdict
from collections.abc import Sequence

from judge.records import Estimate

FEWEST_TOPICS = 3
"""Fewest topics that a mean gets an interval for.

In simulations 95 % intervals hold the truth in 91 to 94 % of worlds of 3 to 25 topics. Those of 2 topics are as wide as
the scale and say nothing.
"""


def mean_interval(
    values: Sequence[float],
    topics: Sequence[str],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    what: str = "grades",
) -> Estimate:
    """The mean x̄ over all N items with a cluster-robust t interval; the topic is the unit that was sampled.

    V = T/(T-1) Σ_t (Σ_{i∈t} (x_i - x̄))² / N², and the interval is x̄ ± t_{T-1} √V, clipped to `bounds`.
    It is undefined where V says nothing about the spread: fewer than FEWEST_TOPICS topics, or no variation.

    Args:
        values: x_i, one an item.
        topics: The topic of each item.
        level: Confidence level.
        bounds: Least and greatest possible value.
        what: What the values are, for the reason of an undefined interval.

    Raises:
        ValueError: `values` and `topics` differ in length.
    """
    by_topic: dict[str, list[float]] = defaultdict(list)
    for x, topic in zip(values, topics, strict=True):
        by_topic[topic].append(x)
    n, t = len(values), len(by_topic)
    if n == 0:
        return Estimate(None, None, None, 0, 0, f"no {what}")
    # fsum rounds once, so the order of the items cannot change a digit.
    mean = math.fsum(values) / n
    if t < FEWEST_TOPICS:
        return Estimate(mean, None, None, n, t, f"fewer than {FEWEST_TOPICS} topics")
    if min(values) == max(values):
        return Estimate(mean, None, None, n, t, f"all {what} equal")
    sums = [math.fsum([*xs, -len(xs) * mean]) for xs in by_topic.values()]
    se = math.sqrt(t / (t - 1) * math.fsum(s * s for s in sums)) / n
    if se <= 1e-12 * max(map(abs, values)):
        return Estimate(mean, None, None, n, t, "all topic means equal")
    low, high = mean - t_quantile(level, t - 1) * se, mean + t_quantile(level, t - 1) * se
    if bounds is not None:
        low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    return Estimate(mean, low, high, n, t)


def t_quantile(level: float, df: int) -> float:
    """Half the width of a two-sided t interval, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))
