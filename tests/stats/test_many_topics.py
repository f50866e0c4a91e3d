"""Thousands of topics are compared without holding all their signs."""

import numpy as np

import judge.stats.run_differences as module
from judge.stats.run_differences import run_differences


def test_signs_drawn_by_rows_give_the_p_values_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(7)
    grades = rng.integers(0, 4, size=(3, 400)).astype(float)
    topics = [str(number) for number in range(400)]
    whole = run_differences(grades, topics, np.random.default_rng(1), flips=2_000)
    monkeypatch.setattr(module, "_MOST_SIGNS", 0)
    assert run_differences(grades, topics, np.random.default_rng(1), flips=2_000) == whole
