import numpy as np
import pytest
import scipy.stats
import statsmodels.api
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.records import Estimate
from judge.stats.means import slope_interval, welch

SMALL = st.integers(-20, 20).map(lambda n: n / 4)


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(0, 5)), min_size=6, max_size=40))
def test_the_interval_is_that_of_statsmodels_but_for_the_small_sample_factor(data) -> None:
    x, y, topics = (np.array(column) for column in zip(*data, strict=True))
    T = len(set(topics.tolist()))
    assume(T >= 3 and np.ptp(x) > 0)
    found = slope_interval(x, y, topics)
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
    found = slope_interval(x, y, np.repeat([1, 2, 3], 2))
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
    assert slope_interval(np.array(x), np.array(y), np.array(topics)) == expected


# scipy warns of samples whose values are all the same.
@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")
@given(st.lists(SMALL, min_size=2, max_size=20), st.lists(SMALL, min_size=2, max_size=20))
def test_welch_is_scipy_s(a: list[float], b: list[float]) -> None:
    found = welch(np.array(a), np.array(b))
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
    assert welch(np.array(a), np.array(b)) == expected
