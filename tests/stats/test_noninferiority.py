"""Agreement on new topics against that on others: the interval of the difference, its word, and the topics to plan."""

import math

import pytest

from judge.records import Estimate
from judge.stats.means import t_quantile
from judge.stats.noninferiority import (
    TopicSpread,
    carry_word,
    independent_difference,
    spread_of,
    topics_to_carry,
    topics_to_decide,
)
from judge.stats.tables import Undefined


def value(value: float, low: float | None, high: float | None, n: int = 200, topics: int = 40) -> Estimate:
    return Estimate(value, low, high, n, topics, None if low is not None else "fewer than 5 topics")


@pytest.mark.parametrize(
    ("new", "old", "low", "high"),
    [
        # .03 below the new value and .04 above the old one make .05; .06 above and .08 below make .10.
        (value(0.50, 0.47, 0.56), value(0.52, 0.44, 0.56), -0.02 - 0.05, -0.02 + 0.10),
        # Perfect agreement has nothing above it.
        (value(0.80, 0.70, 0.88), value(1.00, 0.94, 1.00), -0.20 - 0.10, -0.20 + 0.10),
        (value(1.00, 0.90, 1.00), value(0.80, 0.70, 0.80), 0.20 - 0.10, 0.20 + 0.10),
    ],
)
def test_the_interval_of_a_difference_is_made_from_those_of_both_sides(new, old, low, high) -> None:
    found = independent_difference(new, old)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert (found.n, found.topics) == (200, 40)


@pytest.mark.parametrize(
    ("new", "old", "difference", "reason"),
    [
        (
            value(0.5, 0.4, 0.6),
            value(0.6, None, None),
            None,
            "the certified value has no interval: fewer than 5 topics",
        ),
        (value(0.5, None, None), value(0.6, 0.5, 0.7), -0.1, "fewer than 5 topics"),
        (Estimate(None, None, None, 3, 1, "no pairs"), value(0.6, 0.5, 0.7), None, "no pairs"),
    ],
)
def test_without_an_interval_of_a_side_there_is_none_of_the_difference(new, old, difference, reason) -> None:
    found = independent_difference(new, old)
    assert (found.value, found.low, found.high) == (difference and pytest.approx(difference), None, None)
    assert found.reason == reason
    assert carry_word(found, 0.1) == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.099, 0.2, "CARRIES"), (-0.1, 0.2, "INCONCLUSIVE"), (-0.2, 0.0, "INCONCLUSIVE"),
        (-0.2, -0.1, "INCONCLUSIVE"), (-0.2, -0.101, "DOES NOT CARRY"), (0.1, 0.2, "CARRIES"),
    ],
)  # fmt: skip
def test_the_word_is_where_the_interval_lies_to_a_margin_of_a_tenth(low, high, word) -> None:
    assert carry_word(value(0.0, low, high), 0.1) == word


def test_the_standard_error_is_read_off_the_upper_end_of_an_interval() -> None:
    # On Fisher's z the interval reaches t · SE / (1 - κ²); the lower end may allow for a choice.
    high = math.tanh(math.atanh(0.6) + t_quantile(0.95, 39) * 0.05 / (1 - 0.6**2))
    spread = spread_of(value(0.6, 0.3, high), 1.5)
    assert not isinstance(spread, Undefined)
    assert spread == (pytest.approx(0.05), 40, 5.0, 1.5)


@pytest.mark.parametrize("estimate", [value(1.0, 0.9, 1.0), value(0.5, None, None)])
def test_there_is_no_error_behind_perfect_agreement_or_no_interval(estimate: Estimate) -> None:
    assert isinstance(spread_of(estimate, 1.0), Undefined)


@pytest.mark.parametrize(
    ("design_effect", "topics", "labels", "expected"),
    [
        # Labels that are independent of each other: 4 times as many labels, half the error.
        (1.0, 40, 10, 0.06 / 2),
        # Labels of a topic that are all alike: topics alone count, 4 times as many.
        (5.0, 80, 1, 0.06 / 2),
        # ρ is (2 - 1) / (5 - 1) = 1/4: 100 labels at 2, then 400 labels at 1 + 4 / 4 = 2.
        (2.0, 80, 5, 0.06 / 2),
        # Not known: topics alone count.
        (None, 80, 1, 0.06 / 2),
    ],
)
def test_the_error_goes_down_by_labels_as_far_as_they_are_not_alike(design_effect, topics, labels, expected) -> None:
    assert TopicSpread(0.06, 20, 5.0, design_effect).error_of(topics, labels) == pytest.approx(expected)


OLD = value(0.0, -0.03, 0.03, 4000, 400)
"""At κ = 0 intervals are symmetric, but for Fisher's z."""
SPREAD = TopicSpread(0.015, 400, 10.0, None)


def test_a_margin_within_the_certificates_own_error_is_never_reached() -> None:
    # .03 above the value, and the .8 quantile .8416 times its error: .0426.
    found = topics_to_carry(OLD, SPREAD, 0.03 + 0.0126, 10, at_least=20)
    assert isinstance(found, Undefined)
    assert found.reason == "the error of the certified value alone asks for a margin above 0.043"
    assert not isinstance(topics_to_carry(OLD, SPREAD, 0.03 + 0.0127, 10, at_least=20), Undefined)


def test_planned_topics_are_the_fewest_whose_interval_and_power_fit_the_margin() -> None:
    topics = topics_to_carry(OLD, SPREAD, 0.1, 10, at_least=20)
    assert not isinstance(topics, Undefined)

    def needed(T: int) -> float:
        error = 0.015 * (400 / T) ** 0.5
        of_both = math.hypot(error, 0.015)
        there = -0.8416212 * error**2 / of_both
        low = math.tanh(math.atanh(there) - t_quantile(0.95, T - 1) * error)
        return math.hypot(there - low, 0.03) + 0.8416212 * of_both

    assert needed(topics) <= 0.1 < needed(topics - 1)
    assert topics_to_carry(OLD, SPREAD, 0.9, 10, at_least=20) == 20


def test_topics_that_would_decide_are_those_whose_interval_leaves_the_margin() -> None:
    new = value(-0.02, -0.12, 0.08, 400, 40)
    spread = TopicSpread(0.05, 40, 10.0, None)
    topics = topics_to_decide(new, OLD, spread, 0.1, at_least=20)
    assert not isinstance(topics, Undefined)

    def low(T: int) -> float:
        below = math.tanh(math.atanh(-0.02) - t_quantile(0.95, T - 1) * 0.05 * (40 / T) ** 0.5 / (1 - 0.02**2))
        return -0.02 - math.hypot(-0.02 - below, 0.03)

    assert low(topics) > -0.1 >= low(topics - 1)
    # .13 below: .03 beyond the margin, which the certificate's own .03 covers.
    beyond = topics_to_decide(value(-0.13, -0.2, -0.05), OLD, spread, 0.1, at_least=20)
    assert isinstance(beyond, Undefined)
    assert (
        beyond.reason == "the difference is 0.030 from the margin, and the certified value's own interval reaches 0.030"
    )
    assert not isinstance(topics_to_decide(value(-0.14, -0.2, -0.05), OLD, spread, 0.1, at_least=20), Undefined)
