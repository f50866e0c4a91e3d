"""The order of judges on halves of the topics, and by two statistics."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from judge.records import Estimate
from judge.stats.agreement import point
from judge.stats.system_agreement import halves_tau, orders_tau
from judge.stats.tables import Undefined

GRADES = (0, 1, 2)


def alike(right: int) -> np.ndarray:
    """Eight equal topics of ten pairs, of which so many agree."""
    C = np.array([[right // 2, 10 - right, 0], [0, 0, 0], [0, 0, right - right // 2]])
    return np.repeat(C[None], 8, axis=0)


def noisy(seed: int, judges: int = 5, topics: int = 12) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 6, size=(topics, 3, 3)) for _ in range(judges)]


def test_equal_topics_order_the_judges_alike() -> None:
    tables = [alike(right) for right in (4, 6, 8)]
    assert halves_tau(tables, "kappa", GRADES, np.random.default_rng(1)) == pytest.approx(1)
    assert orders_tau(tables, ("kappa", "percent"), GRADES, np.random.default_rng(1)) == Estimate(1.0, 1.0, 1.0, 3, 8)


def test_noise_orders_halves_less_well_than_a_real_difference() -> None:
    real = [tables + 20 * judge * np.eye(3, dtype=np.int64) for judge, tables in enumerate(noisy(2))]
    of_noise, of_real = (halves_tau(of, "kappa", GRADES, np.random.default_rng(3)) for of in (noisy(2), real))
    assert isinstance(of_noise, float)
    assert isinstance(of_real, float)
    assert of_noise < 0.5 < of_real


@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_that_of_scipy_and_lies_in_its_interval(seed: int) -> None:
    tables = noisy(seed)
    estimate = orders_tau(tables, ("kappa", "mae"), GRADES, np.random.default_rng(1))
    kappas, errors = ([point(name, C.sum(axis=0), GRADES) for C in tables] for name in ("kappa", "mae"))
    # A small error is the better one.
    assert estimate.value == pytest.approx(kendalltau(kappas, [-float(x) for x in errors]).statistic)  # type: ignore[arg-type]
    assert estimate.low is not None
    assert estimate.value is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value <= estimate.high
    assert (estimate.n, estimate.topics) == (5, 12)


def test_a_statistic_agrees_with_itself() -> None:
    assert orders_tau(noisy(1), ("kappa", "kappa"), GRADES, np.random.default_rng(1)).low == 1.0


def test_there_is_no_order_of_one_judge_or_on_few_topics() -> None:
    rng = np.random.default_rng(1)
    assert halves_tau(noisy(1, judges=1), "kappa", GRADES, rng) == Undefined("fewer than 2 judges")
    assert halves_tau(noisy(1, topics=4), "kappa", GRADES, rng) == Undefined("fewer than 5 topics")
    assert orders_tau(noisy(1, judges=1), ("kappa", "ac2"), GRADES, rng).reason == "fewer than 2 judges"
    few = orders_tau(noisy(1, topics=4), ("kappa", "ac2"), GRADES, rng)
    assert few.value is not None
    assert (few.low, few.reason) == (None, "fewer than 5 topics")


def test_judges_that_all_say_the_same_have_no_order() -> None:
    tables = [alike(6), alike(6)]
    rng = np.random.default_rng(1)
    assert isinstance(halves_tau(tables, "kappa", GRADES, rng), Undefined)
    assert orders_tau(tables, ("kappa", "ac2"), GRADES, rng).value is None
