"""A row of STATISTICS under a new name gives what it gave: nothing asks for a statistic by name."""

import numpy as np
import pytest

from judge.calibrate.agreement import agreement_row
from judge.calibrate.calibration import parse_requirement, worst_codes
from judge.stats.agreement import STATISTICS, point
from judge.stats.comparison import compare
from judge.stats.resampling import resampled
from judge.stats.selection import after_choice, nested_folds
from tests.calibrate.test_agreement import ITEMS, panel
from tests.calibration_world import row

GRADES = (0, 1, 2, 3)
TWIN = "twin"
ROWS = ("percent", "bias", "wkappa", "alpha_ordinal", "ac2", "tau_b")
"""A row of each family, and the signed one."""


@pytest.fixture(params=ROWS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a row, which is there a second time as TWIN."""
    monkeypatch.setitem(STATISTICS, TWIN, STATISTICS[request.param])
    return str(request.param)


def tables(seed: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = np.zeros((9, 4, 4), dtype=np.int64)
    for topic in counts:
        human = rng.integers(0, 4, 6)
        judge = np.clip(np.rint(human + rng.normal(0.3, spread, 6)), 0, 3).astype(int)
        np.add.at(topic, (human, judge), 1)
    return counts


def test_every_family_has_a_row_here() -> None:
    assert {STATISTICS[name].family for name in ROWS} == {statistic.family for statistic in STATISTICS.values()}


def test_values_intervals_and_reasons(name: str) -> None:
    for C in (tables(1, 0.8), tables(2, 0.1), tables(1, 0.8)[:3], tables(1, 0.8) * 0.5, np.eye(4, dtype=int)[None] * 7):
        assert point(TWIN, C.sum(axis=0), GRADES) == point(name, C.sum(axis=0), GRADES)
        same, twin = (resampled(one, C, GRADES, np.random.default_rng(1), replicates=99) for one in (name, TWIN))
        assert same == twin


def test_choices_and_comparisons(name: str) -> None:
    several = np.array([tables(seed, spread) for seed, spread in ((1, 1.2), (2, 0.4), (3, 0.7))])
    assert nested_folds(several, TWIN, GRADES, np.random.default_rng(1)) == nested_folds(
        several, name, GRADES, np.random.default_rng(1)
    )
    for candidates in (several, np.array([np.eye(4, dtype=int)[None].repeat(9, axis=0)] * 2)):
        assert after_choice(candidates, 1, TWIN, GRADES, np.random.default_rng(1), replicates=99) == after_choice(
            candidates, 1, name, GRADES, np.random.default_rng(1), replicates=99
        )
    pairs = {("a", "b"): (several[0], several[1])}
    assert compare(pairs, TWIN, GRADES, np.random.default_rng(1), permutations=99) == compare(
        pairs, name, GRADES, np.random.default_rng(1), permutations=99
    )


@pytest.mark.parametrize("bound", [".lo>=0.1", ".hi<=0.1"])
def test_requirements(name: str, bound: str) -> None:
    judged = panel([row(f"{turn}_1", f"R{turn}", turn % 4) for turn in range(8)], {})
    same, twin = (worst_codes(judged, judged.columns[0].codes, parse_requirement(one + bound)) for one in (name, TWIN))
    assert same.tolist() == twin.tolist()


def test_rows_of_agreement(name: str) -> None:
    rows = [row(turn, f"R{i}", human) for i, (turn, human, _) in enumerate(ITEMS)]
    said = {(turn, f"R{i}"): judge for i, (turn, _, judge) in enumerate(ITEMS) if i}
    of = panel(rows, said)
    found = agreement_row(of, of.columns[0], "all", None, 1, 50)
    for values in (found.statistics, found.item, found.design_effect):
        assert values[TWIN] == values[name]
    assert (TWIN in found.worst_case) == (name in found.worst_case) == STATISTICS[name].worst_case
    assert found.worst_case.get(TWIN) == found.worst_case.get(name)
