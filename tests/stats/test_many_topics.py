"""Thousands of topics are compared without holding all their signs."""

import numpy as np
import pytest

import judge.stats.run_differences as module
from judge.stats import comparison
from judge.stats.comparison import simultaneous_quantile
from judge.stats.run_differences import run_differences


def test_signs_drawn_by_rows_give_the_p_values_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(7)
    grades = rng.integers(0, 4, size=(3, 400)).astype(float)
    topics = [str(number) for number in range(400)]
    whole = run_differences(grades, topics, np.random.default_rng(1), flips=2_000)
    monkeypatch.setattr(module, "_MOST_SIGNS", 0)
    assert run_differences(grades, topics, np.random.default_rng(1), flips=2_000) == whole


def test_the_largest_t_is_the_same_when_its_draws_are_made_by_rows(monkeypatch):
    tables = np.random.default_rng(3).integers(0, 4, size=(3, 40, 3, 3)) + 4 * np.eye(3, dtype=np.int64)
    whole = simultaneous_quantile(tables, 0, "wkappa", (0, 1, 2), np.random.default_rng(2))
    # Seven rows of 40 topics at a time.
    monkeypatch.setattr(comparison, "_MOST_NUMBERS", 300)
    by_rows = simultaneous_quantile(tables, 0, "wkappa", (0, 1, 2), np.random.default_rng(2))
    assert by_rows == pytest.approx(whole, rel=1e-12)
