"""Is agreement on new topics no worse than it was on others, up to a margin? Two independent samples of topics. Pure.

With the agreement κ_o on the old topics, κ_n on the new ones and a margin M, the null hypothesis κ_n - κ_o <= -M is
rejected at a one-sided level of 2.5 % where the 95 % interval of the difference lies above -M.
W. C. Blackwelder (1982), "Proving the null hypothesis" in clinical trials, Controlled Clinical Trials 3(4), 345-353;
G. Piaggio, D. R. Elbourne, S. J. Pocock, S. J. W. Evans & D. G. Altman (2012), Reporting of noninferiority and
equivalence randomized trials, JAMA 308(24), 2594-2604.

The interval is made from those of both sides, so that a result can be compared which was published with its interval.
G. Y. Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12(4), 399-413.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from msgspec.structs import replace

from judge.records import Estimate
from judge.stats.means import t_quantile, within
from judge.stats.tables import Undefined

LEVEL = 0.95
"""Two-sided level of the intervals: what one end decides has a one-sided level of 2.5 %."""
POWER = 0.8
"""Probability with which planned labels show that unchanged agreement carries."""
MOST_TOPICS = 100_000
"""Where the search for a number of topics ends."""

CarryWord = Literal["CARRIES", "DOES NOT CARRY", "INCONCLUSIVE"]
"""Whether agreement on other topics holds here, in a word."""


def independent_difference(new: Estimate, old: Estimate) -> Estimate:
    """The difference new - old of independent samples with 95 % intervals; `n` and `topics` are those of the new one.

    With the distances of each value to its ends, L = d - √((n - l_n)² + (u_o - o)²) and U = d + √((u_n - n)² +
    (o - l_o)²) (Zou 2007). There is none, but a reason, where a side has none.

    >>> new, old = Estimate(0.50, 0.47, 0.54, 400, 40), Estimate(0.52, 0.46, 0.56, 300, 30)
    >>> found = independent_difference(new, old)
    >>> f"{-0.02 - (0.03**2 + 0.04**2) ** 0.5:.4f} {-0.02 + (0.04**2 + 0.06**2) ** 0.5:.4f}"
    '-0.0700 0.0521'
    >>> f"{found.low:.4f} {found.high:.4f}"
    '-0.0700 0.0521'
    """
    bare = Estimate(value=None, low=None, high=None, n=new.n, topics=new.topics)
    if old.value is None or old.low is None or old.high is None:
        return replace(bare, reason=f"the certified value has no interval: {old.reason}")
    if new.value is None:
        return replace(bare, reason=new.reason)
    d = new.value - old.value
    if new.low is None or new.high is None:
        return replace(bare, value=d, reason=new.reason)
    low = d - math.hypot(new.value - new.low, old.high - old.value)
    high = d + math.hypot(new.high - new.value, old.value - old.low)
    return replace(bare, value=d, low=low, high=high)


def carry_word(difference: Estimate, margin: float) -> CarryWord:
    """CARRIES where the interval of new - old lies above -margin, DOES NOT CARRY where it lies below it."""
    if difference.low is None or difference.high is None:
        return "INCONCLUSIVE"
    if difference.low > -margin:
        return "CARRIES"
    return "DOES NOT CARRY" if difference.high < -margin else "INCONCLUSIVE"


class TopicSpread(NamedTuple):
    """How a coefficient varies with topics and with the labels of a topic, from one sample."""

    error: float
    """Standard error, over topics."""
    topics: int
    labels: float
    """Labels a topic."""
    design_effect: float | None
    """None where it is not known."""

    def error_of(self, topics: int, labels: float) -> float:
        """The standard error over so many topics with so many labels each.

        Of m labels a topic the design effect is 1 + (m - 1) ρ. Without a known one, topics alone count.

        20 topics with 5 labels each have a standard error of .06 and a design effect of 2, so ρ is 1/4. With 9 labels
        on each of 40 topics the design effect is 3 of 360 labels, where it was 2 of 100:

        >>> f"{0.06 * ((3 / 360) / (2 / 100)) ** 0.5:.6f}"
        '0.038730'
        >>> f"{TopicSpread(0.06, 20, 5, 2.0).error_of(40, 9):.6f}"
        '0.038730'
        """
        if self.design_effect is None or self.labels <= 1:
            return self.error * math.sqrt(self.topics / topics)
        rho = min(max((self.design_effect - 1) / (self.labels - 1), 0.0), 1.0)
        here = (1 + (self.labels - 1) * rho) / (self.topics * self.labels)
        there = (1 + (labels - 1) * rho) / (topics * labels)
        return self.error * math.sqrt(there / here)


def spread_of(estimate: Estimate, design_effect: float | None) -> TopicSpread | Undefined:
    """The standard error behind a coefficient's 95 % interval, and the sizes of its sample.

    The upper end tells it: the lower one is moved where the interval allows for a choice among several.

    On Fisher's z the interval reaches t SE / (1 - κ²) from κ, with as many degrees of freedom as topics less one.
    Topics of unequal size have fewer, and the error is then taken a little too large.

    >>> high = math.tanh(math.atanh(0.5) + t_quantile(0.95, 24) * 0.06 / (1 - 0.5**2))
    >>> f"{spread_of(Estimate(0.5, 0.37, high, 200, 25), None).error:.6f}"
    '0.060000'
    """
    value = estimate.value
    high = estimate.high
    if value is None or high is None:
        return Undefined(f"no interval: {estimate.reason}")
    if not -1 < value < high < 1 or estimate.topics < 2:
        return Undefined("no disagreement to learn from")
    reach = math.atanh(high) - math.atanh(value)
    return TopicSpread(
        error=(1 - value**2) * reach / t_quantile(LEVEL, estimate.topics - 1),
        topics=estimate.topics,
        labels=estimate.n / estimate.topics,
        design_effect=design_effect,
    )


def topics_to_carry(old: Estimate, spread: TopicSpread, margin: float, labels: float, at_least: int) -> int | Undefined:
    """The fewest new topics that show with POWER that agreement carries, where it has not changed at all.

    Over samples of old and new topics the difference has the error √(s_o² + s_n²), so the margin has to be
    √((o - l_n)² + (u_o - o)²) + z √(s_o² + s_n²), with the POWER quantile z of a normal distribution. `spread` is that
    of the old topics, `labels` those of a new one.
    """
    value = old.value
    if value is None or old.high is None:
        return Undefined(f"no interval: {old.reason}")
    above = old.high - value
    z = t_quantile(2 * POWER - 1, math.inf)
    least = above + z * spread.error
    if margin <= least:
        return Undefined(f"the error of the certified value alone asks for a margin above {least:.3f}")

    def enough(topics: int) -> bool:
        error = spread.error_of(topics, labels)
        of_both = math.hypot(error, spread.error)
        # Where the difference is as low as this, the new value is low, and its interval wide.
        there = value - z * error**2 / of_both
        below = _reach(there, error * (1 - there**2) / (1 - value**2), topics)[0]
        return math.hypot(below, above) + z * of_both <= margin

    return _fewest(enough, at_least)


def topics_to_decide(
    new: Estimate, old: Estimate, spread: TopicSpread, margin: float, at_least: int
) -> int | Undefined:
    """The fewest new topics, with as many labels each as now, that decide if the difference stays what it is.

    `spread` is that of the new topics.
    """
    if new.value is None or old.value is None or old.low is None or old.high is None:
        return Undefined("a value has no interval")
    value = new.value
    beyond = value - old.value + margin
    of_old = old.high - old.value if beyond > 0 else old.value - old.low
    if abs(beyond) <= of_old:
        return Undefined(
            f"the difference is {abs(beyond):.3f} from the margin, and the certified value's own interval reaches "
            f"{of_old:.3f}"
        )

    def enough(topics: int) -> bool:
        below, above = _reach(value, spread.error_of(topics, spread.labels), topics)
        return math.hypot(below if beyond > 0 else above, of_old) < abs(beyond)

    return _fewest(enough, at_least)


def _reach(value: float, error: float, topics: int) -> tuple[float, float]:
    """How far below and above a coefficient the interval reaches over so many topics of equal size."""
    low, high = within(value, t_quantile(LEVEL, topics - 1) * error, (-1, 1))
    return value - low, high - value


def _fewest(enough: Callable[[int], bool], at_least: int) -> int | Undefined:
    """The fewest topics that are enough, where more always are."""
    low = at_least - 1
    high = at_least
    while not enough(high):
        if high >= MOST_TOPICS:
            return Undefined(f"more than {MOST_TOPICS} topics")
        low = high
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
