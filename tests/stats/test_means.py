import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import statsmodels.api
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judge.records import Estimate
from judge.stats import means

ITEMS = st.lists(
    st.tuples(st.integers(0, 4) | st.floats(0, 4), st.sampled_from(["9-1", "9-2", "10-1", "11-1", "12-1"])),
    min_size=1,
    max_size=60,
)


def test_one_item_a_topic_gives_the_ordinary_t_interval() -> None:
    # Variance of 1 2 3 4 with ddof 1 is 5/3; standard error sqrt(5/3/4).
    found = means.mean_interval([1, 2, 3, 4], list("abcd"))
    assert found.high == pytest.approx(2.5 + 3.182446305 * math.sqrt(5 / 12), abs=1e-8)


def test_interval_on_a_scale_is_one_of_log_odds() -> None:
    # 1.8 of 3 is a share of .6, whose log odds are log(.6 / .4), with a standard error of √V / 3 / (.6 * .4).
    found = means.mean_interval([3, 3, 2, 1, 0], ["a", "a", "b", "b", "c"], bounds=(0, 3))
    half = scipy.stats.t.ppf(0.975, 25 / 9 - 1) * math.sqrt(0.5616) / 3 / 0.24
    ends = scipy.special.expit(math.log(0.6 / 0.4) + np.array([-half, half])) * 3
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-9)
    assert 0 < found.low < found.high < 3


@pytest.mark.parametrize("bounds", [(0, 1), (-3, 3), (1, 4)])
def test_an_interval_stays_within_its_bounds_and_mirrors(bounds: tuple[float, float]) -> None:
    least, most = bounds
    for value in np.linspace(least, most, 9):
        for half in (1e-9, 0.3, 1e3, 1e300):
            low, high = means.within(float(value), half, bounds)
            assert least <= low <= value <= high <= most
            mirrored = means.within(least + most - float(value), half, bounds)
            assert mirrored == pytest.approx((least + most - high, least + most - low), abs=1e-9)
    low, high = means.within((least + most) / 2, 1e-6, bounds)
    assert high - low == pytest.approx(2e-6, rel=1e-3)


def test_a_topic_with_most_of_the_items_leaves_no_interval() -> None:
    # 4² + 1 + 1 of 6² make 2 topics, 5² + 1 + 1 of 7² make 1.8.
    assert (means.effective_topics([4, 1, 1]), means.effective_topics([5, 1, 1])) == (36 / 18, 49 / 27)
    even = means.mean_interval([1, 2, 2, 1, 3, 1], ["a"] * 4 + ["b", "c"])
    assert even.low is not None
    uneven = means.mean_interval([1, 2, 2, 1, 2, 3, 1], ["a"] * 5 + ["b", "c"])
    assert (uneven.low, uneven.reason) == (None, "most items are of one topic")


@pytest.mark.parametrize(
    ("values", "topics", "expected"),
    [
        ([], [], Estimate(None, None, None, 0, 0, "no grades")),
        ([2], ["a"], Estimate(2.0, None, None, 1, 1, "fewer than 3 topics")),
        ([1, 3], ["a", "a"], Estimate(2.0, None, None, 2, 1, "fewer than 3 topics")),
        ([4] * 73, [str(i % 23) for i in range(73)], Estimate(4.0, None, None, 73, 23, "all grades equal")),
        ([1, 2, 1, 2], ["a", "a", "b", "b"], Estimate(1.5, None, None, 4, 2, "fewer than 3 topics")),
        ([0.1, 0.2] * 3, ["a", "a", "b", "b", "c", "c"],
         Estimate(0.9 / 6, None, None, 6, 3, "all topic means equal")),
    ],
)  # fmt: skip
def test_undefined_interval_keeps_the_value_and_gives_a_reason(values, topics, expected) -> None:
    found = means.mean_interval(values, topics)
    assert found.value == pytest.approx(expected.value)
    assert (found.low, found.high, found.n, found.topics, found.reason) == (
        None, None, expected.n, expected.topics, expected.reason,
    )  # fmt: skip


def test_values_without_topics_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        means.mean_interval([1, 2], ["a"])


def test_t_quantiles_equal_the_printed_table() -> None:
    assert means.t_quantile(0.95, 1) == pytest.approx(12.706205, abs=1e-6)
    assert means.t_quantile(0.95, 22) == pytest.approx(2.073873, abs=1e-6)
    assert means.t_quantile(0.90, 5) == pytest.approx(2.015048, abs=1e-6)


@given(ITEMS, st.randoms(use_true_random=False))
def test_interval_holds_the_mean_and_does_not_depend_on_order(items, shuffle) -> None:
    values, topics = [x for x, _ in items], [topic for _, topic in items]
    found = means.mean_interval(values, topics, bounds=(0, 4))
    assert found.value == pytest.approx(sum(values) / len(values))
    if found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.value <= found.high <= 4
        assert found.reason is None
    else:
        assert found.reason
    again = list(items)
    shuffle.shuffle(again)
    assert means.mean_interval([x for x, _ in again], [topic for _, topic in again], bounds=(0, 4)) == found


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_the_interval_of_a_proportion_is_that_of_statsmodels(counts: tuple[int, int], level: float) -> None:
    theirs = proportion_confint(*counts, alpha=1 - level, method="beta")
    assert means.clopper_pearson(*counts, level) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to n"):
        means.clopper_pearson(successes, n)


@pytest.mark.parametrize(
    ("grades", "one"),
    [
        ([2], 2),
        ([0, 3, 3], 3),
        ([0, 1], 1),
        ([1, 2, 3], 2),
        ([0, 0, 3, 3, 2], 2),
        ([0, 0, 2, 2], 1),
        # The mean of -2 and -1 is -1.5; half up is -1.
        ([-2, -1], -1),
    ],
)
def test_consensus_is_the_mode_or_the_mean_rounded_half_up(grades: list[int], one: int) -> None:
    assert means.consensus(grades) == one
    assert means.consensus(grades[::-1]) == one
    # Towards the middle, two responses in other order get the mirrored grade.
    assert means.consensus(grades, middle=1) == 2 - means.consensus([2 - grade for grade in grades], middle=1)


SMALL = st.integers(-20, 20).map(lambda n: n / 4)


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(0, 5)), min_size=6, max_size=40))
def test_the_interval_is_that_of_statsmodels_but_for_the_small_sample_factor(data) -> None:
    x, y, topics = (np.array(column) for column in zip(*data, strict=True))
    T = len(set(topics.tolist()))
    assume(T >= 3 and np.ptp(x) > 0)
    found = means.slope_interval(x, y, topics)
    assume(found.low is not None)
    fitted = statsmodels.api.OLS(y, statsmodels.api.add_constant(x)).fit(
        cov_type="cluster", cov_kwds={"groups": topics, "use_correction": False}
    )
    decided = np.array([((x - x.mean())[topics == topic] ** 2).sum() for topic in set(topics.tolist())])
    count = decided.sum() ** 2 / (decided**2).sum()
    half = scipy.stats.t.ppf(0.975, count - 1) * fitted.bse[1] * (T / (T - 1)) ** 0.5
    assert found.value == pytest.approx(fitted.params[1], abs=1e-9)
    assert found.high - found.value == pytest.approx(half, rel=1e-6, abs=1e-9)
    assert found.value - found.low == pytest.approx(half, rel=1e-6, abs=1e-9)


def test_a_slope_that_one_topic_decides_has_no_interval() -> None:
    x, y = np.array([-9.0, 9.0, -1.0, 1.0, -1.0, 1.0]), np.array([-3.0, 4.0, 0.0, 1.0, 1.0, -1.0])
    found = means.slope_interval(x, y, np.repeat([1, 2, 3], 2))
    # Topics decide 162, 2 and 2 of Σ x² = 166: 166² / (162² + 8) = 1.05 topics.
    assert (found.value, found.low) == (pytest.approx((27 + 36 + 1 - 2) / 166), None)
    assert found.reason == "one topic decides most of the slope"


@pytest.mark.parametrize(
    ("x", "y", "topics", "expected"),
    [
        ([1.0, 2.0], [0.0, 1.0], [0, 1], Estimate(None, None, None, 2, 2, "fewer than 3 items")),
        ([1.0] * 4, [0.0, 1.0, 2.0, 3.0], [0, 1, 2, 3],
         Estimate(None, None, None, 4, 4, "no variation in length or place")),
        ([0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [0, 0, 1], Estimate(2.0, None, None, 3, 2, "fewer than 3 topics")),
        ([0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [0, 1, 2], Estimate(2.0, None, None, 3, 3, "no variation between topics")),
    ],
)  # fmt: skip
def test_a_slope_is_undefined_with_a_reason(x, y, topics, expected) -> None:
    assert means.slope_interval(np.array(x), np.array(y), np.array(topics)) == expected


# scipy warns of samples whose values are all the same.
@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")
@given(st.lists(SMALL, min_size=2, max_size=20), st.lists(SMALL, min_size=2, max_size=20))
def test_welch_is_scipy_s(a: list[float], b: list[float]) -> None:
    found = means.welch(np.array(a), np.array(b))
    assert (found.n, found.value) == (len(a) + len(b), pytest.approx(np.mean(a) - np.mean(b)))
    if found.low is None:
        assert np.var(a) == np.var(b) == 0
        assert found.reason == "no variation between runs"
        return
    interval = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([], [1.0, 2.0], Estimate(None, None, None, 2, 0, "one side is empty")),
        ([3.0], [1.0, 2.0], Estimate(1.5, None, None, 3, 0, "fewer than 2 runs on one side")),
        ([3.0, 3.0], [1.0, 1.0], Estimate(2.0, None, None, 4, 0, "no variation between runs")),
    ],
)
def test_a_difference_of_few_runs_has_no_interval(a: list[float], b: list[float], expected: Estimate) -> None:
    assert means.welch(np.array(a), np.array(b)) == expected
