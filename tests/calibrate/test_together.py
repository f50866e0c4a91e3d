"""A prompt asked together with others against the same prompt asked alone, on the same items."""

import numpy as np
import pytest
from msgspec.structs import replace

from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.findings import Calibration, GroupCost, TogetherRow
from judge.calibrate.panel import Panel
from judge.calibrate.report.folder import calibration_files
from judge.calibrate.report.pages import calibration_markdown, summary
from judge.stats.agreement import point
from tests.calibration_world import gold_rows, items, labeled, labels, panel_of

pytestmark = pytest.mark.slow

WORLD = items(topics=24, each=5)
OPTIONS = CalibrationOptions(replicates=200, permutations=200)
ALONE, TOGETHER = "groundedness/graded", "groundedness/graded+naturalness"
COST = GroupCost("server/m", (ALONE, "naturalness/graded"), 240, 120, 9000, 7000, 3000, 2800)


def panel(*judges: tuple[str, str, float]) -> Panel:
    """Judges by name and prompt that err at random as often as said; the first ten items have no grade together."""
    said = []
    for seed, (judge, prompt, noise) in enumerate(judges):
        grades = labeled(WORLD, noise, seed)
        graded = WORLD[10:] if "+" in prompt else WORLD
        by_item = {(one.turn_id, one.response_id): grades[one.response_id] for one in graded}
        said.append(labels(judge, by_item, prompt))
    return panel_of(gold_rows(WORLD), *said)


@pytest.fixture(scope="module")
def found() -> Calibration:
    of = panel(
        ("server/m", TOGETHER, 0.5),
        ("server/m", ALONE, 0.1),
        ("server/z", ALONE, 0.2),
        ("server/z", TOGETHER, 0.2),
        ("server/y", TOGETHER, 0.1),
    )
    return replace(calibrate([of], OPTIONS), group_costs=(COST,))


def test_each_judge_is_compared_with_itself_on_the_items_that_both_graded(found: Calibration) -> None:
    assert [(row.judge, row.alone, row.together) for row in found.together] == [
        ("server/m", ALONE, TOGETHER),
        ("server/z", ALONE, TOGETHER),
    ]
    row = found.together[0]
    values = []
    for seed, noise in ((1, 0.1), (0, 0.5)):
        grades = labeled(WORLD, noise, seed)
        counts = np.zeros((4, 4))
        for one in WORLD[10:]:
            counts[one.gold, grades[one.response_id]] += 1
        values.append(point("wkappa", counts, (0, 1, 2, 3)))
    assert [row.value_alone, row.value_together] == pytest.approx(values)
    assert row.difference.value == pytest.approx(values[1] - values[0])
    assert (row.difference.n, row.difference.topics) == (110, 22)
    assert row.difference.low is not None and row.difference.high is not None
    assert row.difference.low < row.difference.value < row.difference.high < 0


def test_the_difference_is_the_one_among_all_comparisons_whichever_way_round(found: Calibration) -> None:
    pairs = {frozenset((pair.a, pair.b)): pair for pair in found.comparisons}
    for row in found.together:
        pair = pairs[frozenset(f"{row.judge} {prompt.partition('/')[2]}" for prompt in (row.alone, row.together))]
        sign = 1 if pair.a.endswith("naturalness") else -1
        assert row.difference.value == pytest.approx(sign * (pair.difference.value or 0.0))
        assert (row.p, row.p_max_t) == (pair.p, pair.p_max_t)
        width = (row.difference.high or 0.0) - (row.difference.low or 0.0)
        assert width == pytest.approx((pair.difference.high or 0.0) - (pair.difference.low or 0.0))


def test_every_output_says_what_it_costs_and_what_it_saves(found: Calibration) -> None:
    row: TogetherRow = found.together[0]
    lines = calibration_files(found)["together.tsv"].decode().splitlines()
    cells = dict(zip(lines[0].split("\t"), lines[1].split("\t"), strict=True))
    assert (cells["alone"], cells["together"], cells["n"], cells["topics"]) == (ALONE, TOGETHER, "110", "22")
    assert float(cells["difference"]) == pytest.approx(row.difference.value, abs=1e-6)
    report = calibration_markdown(found)
    assert "### Asked together with other criteria" in report
    assert "| server/m | groundedness/graded, naturalness/graded | 240 | 120 | 9000 | 7000 | 3000 | 2800 |" in report
    shown = " ".join(summary(found, 200).split())
    assert f" {row.value_alone:.3f} {row.value_together:.3f} " in shown
    assert f" {row.difference.value:.3f} [-" in shown
    assert "Asked together with other criteria judge asked as alone together difference" in shown
    assert "server/m graded+naturalness" in shown
    assert "240 120" in shown and "9000 7000 3000 2800" in shown


def test_nothing_is_said_where_nothing_was_asked_both_ways() -> None:
    only = calibrate([panel(("server/m", TOGETHER, 0.1), ("server/n", ALONE, 0.1))], OPTIONS)
    assert only.together == only.group_costs == ()
    assert "together.tsv" not in calibration_files(only)
    assert "sked together" not in calibration_markdown(only) + summary(only)
