"""Brier's score and calibration error: hand arithmetic, scikit-learn, and what a perfect forecaster gets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from judge.stats.discrimination import PROBABILITY, Forecasts, brier, brier_of_shares, calibration_error, overconfidence


def forecasts(rows: list[list[float]], given: list[int], grade: list[int]) -> Forecasts:
    return Forecasts(np.array(rows), np.array(given), np.array(grade))


@pytest.mark.parametrize(
    ("rows", "grade", "expected"),
    [
        ([[1.0, 0.0]], [0], 0.0),
        ([[1.0, 0.0]], [1], 1.0 + 1.0),
        ([[0.5, 0.5]], [1], 0.25 + 0.25),
        ([[0.25] * 4], [2], 3 * 0.0625 + 0.5625),
        ([[0.8, 0.2], [0.4, 0.6]], [0, 0], ((0.04 + 0.04) + (0.36 + 0.36)) / 2),
    ],
)
def test_brier_by_hand(rows: list[list[float]], grade: list[int], expected: float) -> None:
    assert brier(forecasts(rows, grade, grade)) == pytest.approx(expected, abs=1e-15)


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_brier_is_that_of_scikit_learn(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    p, grade = rng.dirichlet(np.ones(k), 30), rng.integers(0, k, 30)
    items = Forecasts(p, p.argmax(axis=1), grade)
    expected = brier_score_loss(grade, p, labels=list(range(k)), scale_by_half=False) if k > 2 else (
        2 * brier_score_loss(grade, p[:, 1], pos_label=1, scale_by_half=True) if len(set(grade.tolist())) == 2 else None
    )  # fmt: skip
    if expected is not None:
        assert brier(items) == pytest.approx(expected, abs=1e-12)
    share = np.bincount(grade, minlength=k) / 30
    constant = Forecasts(np.tile(share, (30, 1)), items.given, grade)
    assert brier_of_shares(items) == pytest.approx(brier(constant), abs=1e-12)


def test_calibration_error_by_hand() -> None:
    # Bins (.5, .6]: .6 right, .6 wrong; (.8, .9]: .9 right, .85 right; (.9, 1]: 1 wrong.
    confidence, right = [0.6, 0.6, 0.9, 0.85, 1.0], [1, 0, 1, 1, 0]
    items = forecasts([[c, 1 - c] for c in confidence], [0] * 5, [1 - r for r in right])
    by_hand = (abs(1 - 1.2) + abs(2 - 1.75) + abs(0 - 1)) / 5
    assert calibration_error(items) == pytest.approx(by_hand, abs=1e-12)
    assert overconfidence(items) == pytest.approx((3.95 - 3) / 5, abs=1e-12)


def test_confidence_is_of_the_grade_that_was_given() -> None:
    items = forecasts([[0.7, 0.2, 0.1]], [2], [2])
    assert items.confidence.tolist() == [0.1]
    assert calibration_error(items) == pytest.approx(0.9)


@given(st.integers(0, 10_000))
def test_calibration_error_is_that_of_a_loop_over_bins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, grade = rng.dirichlet(np.ones(4), 40), rng.integers(0, 4, 40)
    items = Forecasts(p, p.argmax(axis=1), grade)
    expected = 0.0
    for b in range(10):
        inside = [i for i in range(40) if b / 10 < p[i].max() <= (b + 1) / 10]
        if inside:
            accuracy = np.mean([p[i].argmax() == grade[i] for i in inside])
            expected += len(inside) / 40 * abs(accuracy - np.mean([p[i].max() for i in inside]))
    assert calibration_error(items) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_every_statistic_stays_within_its_bounds(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.1), n)
    items = Forecasts(p, rng.integers(0, 3, n), rng.integers(0, 3, n))
    for statistic in PROBABILITY.values():
        assert statistic.bounds[0] <= statistic.formula(items) <= statistic.bounds[1]
