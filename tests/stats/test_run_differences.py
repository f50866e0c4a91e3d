import math
from itertools import product

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from judge.stats import resampling
from judge.stats import run_differences as module
from judge.stats.means import t_quantile
from judge.stats.run_differences import Difference, run_differences


def compared(rows: object, turns: int = 1, **options: int) -> list[Difference]:
    """Runs of grades, `turns` of them a topic."""
    grades = np.array(rows, dtype=np.float64)
    topics = [str(turn // turns) for turn in range(grades.shape[1])]
    return list(run_differences(grades, topics, np.random.default_rng(2), **options))


def hall(d: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Hall's transformed t of topics of equal size, by scipy's skewness."""
    T, g = d.shape[axis], stats.skew(d, axis=axis)
    x = d.mean(axis) / d.std(axis, ddof=1)
    return math.sqrt(T) * (x + g * x**2 / 3 + g**2 * x**3 / 27 + g / (6 * T))


@pytest.mark.parametrize("skewed", [np.sqrt, np.exp])
def test_a_pair_has_the_mean_of_its_common_turns_with_an_interval_over_topics(skewed: np.ufunc) -> None:
    """The oracle: the t interval, or Hall's, whichever reaches farther."""
    rng = np.random.default_rng(4)
    a, b = skewed(rng.exponential(1, 10)), rng.normal(0, 0.1, 10)
    (found,) = compared([[*a, math.nan, 3.0], [*b, 2.0, math.nan]])
    d, t = a - b, t_quantile(0.95, 9)
    half = t * d.std(ddof=1) / math.sqrt(10)
    ends = [float(optimize.brentq(lambda mean, end=end: hall(d - mean) - end, -99, 99)) for end in (t, -t)]
    assert (found.a, found.b, found.difference.n, found.difference.topics) == (0, 1, 10, 10)
    assert (found.difference.value, found.difference.low, found.difference.high) == pytest.approx(
        (d.mean(), min(d.mean() - half, ends[0]), max(d.mean() + half, ends[1]))
    )


def test_signs_are_the_same_however_many_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(5).integers(0, 4, (4, 30))
    whole = compared(rows, flips=100)
    monkeypatch.setattr(module, "_CHUNK", 70)
    monkeypatch.setattr(resampling, "_BLOCK", 70)
    assert compared(rows, flips=100) == whole


def test_one_pair_has_the_p_value_of_scipys_exact_test_of_signs() -> None:
    """The oracle: all 2^10 signs, with Hall's transformed t as the statistic."""
    d = np.random.default_rng(6).normal(0.6, 1, 10)
    (found,) = compared([d, np.zeros(10)])
    theirs = stats.permutation_test(
        (d, np.zeros(10)),
        lambda x, y, axis=-1: np.abs(hall(x - y, axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.p_adjusted == found.p


def test_adjusted_p_values_are_those_of_the_step_down_by_hand() -> None:
    """All signs by plain loops: the largest t* among the pairs whose t is no larger, then the running maximum."""
    rng = np.random.default_rng(8)
    grades = rng.integers(0, 4, (4, 16)) + np.array([[0], [0], [1], [2]])
    found = compared(grades, 2)
    D = [(grades[one.a] - grades[one.b]).reshape(8, 2).sum(axis=1) for one in found]

    def t(sums: np.ndarray) -> float:
        return abs(float(hall(sums)))

    observed = [t(sums) for sums in D]
    order = sorted(range(6), key=lambda pair: -observed[pair])
    draws = [[t(np.array(signs) * sums) for sums in D] for signs in product([1, -1], repeat=8)]
    expected, least = {}, 0.0
    for place, pair in enumerate(order):
        beyond = np.mean([max(draw[other] for other in order[place:]) >= observed[pair] - 1e-9 for draw in draws])
        least = expected[pair] = max(least, beyond)
    assert [one.p_adjusted for one in found] == pytest.approx([expected[pair] for pair in range(6)])
    assert [one.p for one in found] == pytest.approx(
        [np.mean([draw[pair] >= observed[pair] - 1e-9 for draw in draws]) for pair in range(6)]
    )
    assert all(one.p <= one.p_adjusted for one in found)


def test_below_eight_topics_there_is_neither_interval_nor_p() -> None:
    (seven,) = compared([[1.0] * 7 + [math.nan], [0.0, 0.5] * 4])
    assert (seven.difference.low, seven.p, seven.p_adjusted) == (None, None, None)
    assert (seven.difference.value, seven.difference.reason) == (pytest.approx(11 / 14), "fewer than 8 topics")
    (eight,) = compared([[1.0] * 8, [0.0, 0.5] * 4])
    assert (eight.difference.reason, eight.p) == (None, 2 / 2**8)


def test_no_interval_goes_beyond_the_scale() -> None:
    rows = [[4.0] * 10, [0.0] * 9 + [2.0]]
    (free,), (bounded,) = compared(rows), compared(rows, most=4)
    assert free.difference.high > 4
    assert bounded == free._replace(difference=msgspec.structs.replace(free.difference, high=4))
    assert compared(rows[::-1], most=4)[0].difference.low == -4


def test_equal_runs_and_runs_without_common_turns() -> None:
    same, apart, other = compared([[1.0] * 8 + [math.nan] * 8, [1.0] * 16, [math.nan] * 8 + [0.0] * 8])
    assert (same.difference.value, same.p, same.p_adjusted) == (0.0, 1.0, 1.0)
    assert (apart.difference.value, apart.difference.reason, apart.p) == (None, "no differences", None)
    assert (other.difference.value, other.difference.topics) == (1.0, 8)
    assert compared([[1.0] * 8]) == []


def test_topics_of_unequal_size_are_skewed_as_their_residuals() -> None:
    """By hand: the residuals S_t - n_t mean, in signs that leave their places."""
    d, sizes = np.random.default_rng(7).exponential(1, 30) - 0.7, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    topics = np.repeat(np.arange(10), sizes)
    (found,) = run_differences(np.array([d, 0 * d]), list(map(str, topics)), np.random.default_rng(2))
    S, n = np.bincount(topics, weights=d), np.array(sizes)

    def t(sums: NDArray[np.float64]) -> float:
        r = sums - n * sums.sum() / 30
        x = sums.sum() / math.sqrt(10 * 10 / 9 * (r**2).sum())
        g = (r**3).mean() / (r**2).mean() ** 1.5
        return abs(x + g * x**2 / 3 + g**2 * x**3 / 27 + g / 60)

    assert found.p == np.mean([t(np.array(signs) * S) >= t(S) - 1e-9 for signs in product([1, -1], repeat=10)])


def test_sampled_signs_are_close_to_all_signs() -> None:
    d = np.random.default_rng(6).normal(0.6, 1, 12)
    (exact,), (sampled,) = compared([d, np.zeros(12)]), compared([d, np.zeros(12)], flips=3000)
    assert sampled.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p * (1 - exact.p) / 3000))
    assert sampled.p >= 1 / 3001
    assert compared([d, np.zeros(12)], flips=3000) == [sampled]
