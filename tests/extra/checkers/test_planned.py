"""A cascade against the judge that it asks, on the same items, and what other bounds would give."""

import numpy as np
import pytest
from msgspec.structs import replace

from judge.ask.results import Labels
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.findings import Calibration, CascadeCost
from judge.calibrate.panel import Panel
from judge.calibrate.report.folder import TABLES, calibration_files
from judge.calibrate.report.pages import calibration_markdown, summary
from judge.extra.checkers.cascade import Cascade, cascade_bounds, tried_bounds
from judge.io.table import records_tsv
from judge.stats.agreement import point
from tests.calibration_world import gold_rows, items, labeled, labels, panel_of

pytestmark = pytest.mark.slow

WORLD = items(topics=24, each=5)
OPTIONS = CalibrationOptions(replicates=200, permutations=200)
PROMPT = "groundedness/sentences"
NAME = "checker/overlap@0.1:0.8+server/m"
SETTLED = 40
"""The first items are settled, by a checker that errs more often than the judge."""
COST = CascadeCost(120, 80, 118, 9000, 6000, 1200, 800, 0.03, 0.02)


def both(*, gold: int = len(WORLD), name: str = NAME) -> Panel:
    alone, checker = labeled(WORLD, 0.1, 1), labeled(WORLD, 0.5, 2)
    keys = [(one.turn_id, one.response_id) for one in WORLD]
    first = [(key, checker[key[1]]) for key in keys[:SETTLED]]
    rest = [(key, alone[key[1]]) for key in keys[SETTLED:]]
    cascade = labels(name, dict(first + rest), PROMPT)
    told = [replace(label, settled=place < SETTLED) for place, label in enumerate(cascade.labels)]
    marked: Labels = replace(cascade, labels=tuple(told))
    return panel_of(gold_rows(WORLD[:gold]), labels("server/m", {key: alone[key[1]] for key in keys}, PROMPT), marked)


def values(gold: int = len(WORLD)) -> tuple[float, float]:
    """The statistic of the judge alone and of the cascade, counted by hand."""
    alone, checker = labeled(WORLD, 0.1, 1), labeled(WORLD, 0.5, 2)
    tables = np.zeros((2, 4, 4))
    for place, one in enumerate(WORLD[:gold]):
        grade = checker[one.response_id] if place < SETTLED else alone[one.response_id]
        tables[0, one.gold, alone[one.response_id]] += 1
        tables[1, one.gold, grade] += 1
    of_alone, of_cascade = (point("wkappa", table, (0, 1, 2, 3)) for table in tables)
    assert isinstance(of_alone, float) and isinstance(of_cascade, float)
    return of_alone, of_cascade


@pytest.fixture(scope="module")
def found() -> Calibration:
    calibration = calibrate([both()], OPTIONS)
    rows = tuple(replace(row, cost=COST) for row in calibration.cascades)
    tried = cascade_bounds(both(), {NAME: Cascade("checker/overlap", 0.1, 0.8)}, 1)
    return replace(calibration, cascades=rows, cascade_bounds=tried)


def test_a_cascade_is_compared_with_its_judge_alone(found: Calibration) -> None:
    (row,) = found.cascades
    assert (row.judge, row.alone, row.prompt, row.items, row.settled) == (NAME, "server/m", PROMPT, 120, 40)
    assert (row.value_alone, row.value_cascade) == pytest.approx(values())
    assert row.difference.value == pytest.approx(values()[1] - values()[0])
    assert row.difference.low is not None and row.difference.low < (row.difference.value or 0) < 0
    pair = next(pair for pair in found.comparisons if "server/m sentences" in (pair.a, pair.b))
    assert (row.p, row.p_max_t) == (pair.p, pair.p_max_t)


@pytest.mark.parametrize(
    ("alone", "cascade", "told"),
    [(0.0, 0.17, "$0.17 in place of $0"), (0.0, 0.0, None), (0.03, None, None), (None, 0.02, None)],
)
def test_dollars_are_said_where_those_of_both_are_known_and_one_costs_something(found, alone, cascade, told) -> None:
    cost = replace(COST, cost_alone=alone, cost_cascade=cascade)
    (row,) = found.cascades
    other = replace(found, cascades=(replace(row, cost=cost),))
    said = " ".join(summary(other).split())
    assert told in said if told else "$" not in said


def test_only_items_with_gold_count() -> None:
    (row,) = calibrate([both(gold=60)], OPTIONS).cascades
    assert (row.items, row.settled) == (60, 40)
    assert (row.value_alone, row.value_cascade) == pytest.approx(values(60))


def test_a_cascade_without_its_judge_has_no_row() -> None:
    assert calibrate([both(name="checker/overlap@0.1:0.8+server/z")], OPTIONS).cascades == ()


def test_bounds_are_tried_around_the_checkers_threshold() -> None:
    tried = tried_bounds(Cascade("checker/overlap", 0.15, 0.8))
    assert len(tried) == 5 * 5 + 1 and Cascade("checker/overlap", 0.15, 0.8) in tried
    # With .9 as the threshold, labels hold for no lower HIGH.
    high = tried_bounds(Cascade("checker/overlap", 0.6, 0.9))
    assert {cascade.high for cascade in high} == {0.9, 1.0} and len(high) == 2 * 5 + 1


def test_a_row_of_other_bounds_says_what_the_comparison_says(found: Calibration) -> None:
    (row,), (same,) = found.cascades, found.cascade_bounds
    assert (same.low, same.high, same.items, same.settled, same.value) == (0.1, 0.8, 120, 40, row.value_cascade)
    assert same.difference.value == pytest.approx(row.difference.value)


def test_every_output_says_what_it_saves_and_what_it_costs(found: Calibration) -> None:
    head, first = records_tsv(TABLES["cascades"], found.cascades).splitlines()
    line = dict(zip(head.split("\t"), first.split("\t"), strict=True))
    assert (line["items"], line["settled"], line["share_settled"]) == ("120", "40", "0.333333")
    assert (line["calls_alone"], line["calls_cascade"], line["cost_cascade"]) == ("120", "80", "0.020000")
    assert line["calls_checker"] == "118"
    assert len(records_tsv(TABLES["cascade_bounds"], found.cascade_bounds).splitlines()) == 2
    report, told = calibration_markdown(found), " ".join(summary(found, 240).split())
    assert "40 of 120 (33 %)" in report and "| 80 in place of 120 | 118 | \\$0.02 in" in report
    assert "| 0.1 | 33 %, -" in report
    assert "40 of 120 (33 %)" in told and "80 in place of 120" in told and "118 $0.02 in place of $0.03" in told, told
    assert "Cascades judge prompt settled alone in the cascade difference" in told
    assert {"cascades.tsv", "cascade_bounds.tsv"} <= calibration_files(found).keys()
    assert (
        not {"cascades.tsv", "cascade_bounds.tsv"}
        & calibration_files(replace(found, cascades=(), cascade_bounds=())).keys()
    )
