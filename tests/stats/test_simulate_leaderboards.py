"""A fast part of `bench/simulate_leaderboards.py`; with few replicates a figure may be out by MARGIN of its errors."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent.parent.parent / "bench" / "simulate_leaderboards.py"
MARGIN = 2.5

spec = importlib.util.spec_from_file_location("simulate_leaderboards", SCRIPT)
assert spec is not None and spec.loader is not None
simulate: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(simulate)


def rng() -> np.random.Generator:
    return np.random.default_rng(21)


def all_within(findings: list[Any]) -> bool:
    return all(figure.within(MARGIN) for figure in findings)


def test_with_ten_gold_grades_a_run_intervals_cover_and_some_pairs_are_told_apart() -> None:
    findings = simulate.with_gold(10, 60, rng())
    assert all_within(findings)
    coverage, _, apart, false = (figure.obtained for figure in findings)
    # Before λ and variances were shared, intervals covered .93 and 1 to 4 % of the pairs were told apart.
    assert coverage > 0.94
    assert apart > 0.055
    assert false <= 0.05


@pytest.mark.parametrize("kind", ["e", "s", "d"])
def test_equal_runs_are_seldom_told_apart_from_eight_topics_on(kind: str) -> None:
    assert all_within(getattr(simulate, kind)(60, rng(), runs=(5, 10, 24), topics=(8,)))


def test_runs_of_unequal_noise_are_seldom_told_apart() -> None:
    assert all_within(simulate.n(60, rng(), runs=(10,), topics=(8, 25)))


def test_differences_have_power_and_point_the_right_way() -> None:
    assert all_within(simulate.p(4, rng()))


def test_the_command_fails_if_a_band_is_broken_and_names_an_unknown_simulation() -> None:
    wrong = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", "G10,Z9"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "no simulation Z9" in wrong.stderr


def test_a_broken_band_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = simulate.finding("X", "coverage", [0.0, 0.1], 0.9)
    monkeypatch.setattr(simulate, "SIMULATIONS", {"X": (lambda replicates, rng: [broken], 2)})
    monkeypatch.setattr(sys, "argv", ["simulate_leaderboards.py"])
    assert simulate.main() == 1
    assert "1 out of band" in capsys.readouterr().out
