"""Label probabilities from judgments to the report."""

import numpy as np
import pytest
from msgspec.structs import replace

from judge.ask.results import Label
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.findings import Calibration, FindingRow
from judge.calibrate.panel import Panel
from judge.calibrate.report.pages import calibration_markdown
from judge.records import Level, Scale
from judge.stats.discrimination import PROBABILITY, Forecasts, brier, calibration_error, calibration_error_by_chance
from judge.stats.resampling import jackknife_interval
from tests.calibration_world import SCALE, gold_rows, items, labels, panel_of

WORLD = items(topics=8, each=4)
OPTIONS = CalibrationOptions(replicates=200, permutations=200)
P = {grade: {str(other): 0.7 if other == grade else 0.1 for other in range(4)} for grade in range(4)}


def panel(probabilities: list[dict[str, float] | None], scale: Scale = SCALE, *, binary: bool = False) -> Panel:
    """A judge that gives the deserved grades, with these probabilities."""
    said = [
        Label(one.turn_id, one.response_id, one.deserved, probabilities=p)
        for one, p in zip(WORLD, probabilities, strict=True)
    ]
    return panel_of(gold_rows(WORLD), replace(labels("m", said), scale=scale), binary=binary)


def found(of: Panel) -> tuple[Calibration, FindingRow]:
    calibration = calibrate([of], OPTIONS)
    (row,) = calibration.findings["probabilities"]
    return calibration, row


def test_the_scores_are_of_the_probabilities_with_intervals_over_topics() -> None:
    of = panel([P[one.deserved] for one in WORLD])
    _, row = found(of)
    right = sum(one.deserved == one.gold for one in WORLD)
    # A grade that is right has .3² + 3 × .1², one that is wrong .7² + .9² + 2 × .1².
    by_hand = (right * 0.12 + (32 - right) * 1.32) / 32
    estimate = row.statistics["brier"]
    assert estimate.value == pytest.approx(by_hand, abs=1e-12)
    assert row.statistics["ece"].value == pytest.approx(abs(right / 32 - 0.7), abs=1e-12)
    assert row.statistics["overconfidence"].value == pytest.approx(0.7 - right / 32, abs=1e-12)
    share = np.bincount([one.gold for one in WORLD], minlength=4) / 32
    assert row.facts["brier_of_shares"] == pytest.approx(1 - float(share @ share), abs=1e-12)
    (column,) = of.columns
    everything = Forecasts(column.probabilities, column.codes, of.human)
    expected = jackknife_interval(lambda kept: brier(everything.within(kept)), of.topic, bounds=(0, 2))
    assert (estimate.low, estimate.high) == (expected.low, expected.high)
    assert (estimate.n, estimate.topics) == (32, 8)


def test_the_interval_of_a_calibration_error_reaches_lower_by_what_chance_gives() -> None:
    of = panel([P[one.deserved] for one in WORLD])
    _, row = found(of)
    (column,) = of.columns
    items = Forecasts(column.probabilities, column.codes, of.human)
    plain = jackknife_interval(lambda kept: calibration_error(items.within(kept)), of.topic, bounds=(0, 1))
    # All 32 have the confidence .7 in one bin: √(2/π) √(32 × .7 × .3) / 32.
    by_chance = (2 / np.pi * 32 * 0.21) ** 0.5 / 32
    assert calibration_error_by_chance(items) == pytest.approx(by_chance)
    ece = row.statistics["ece"]
    assert (ece.low, ece.high) == (pytest.approx(max(plain.low - by_chance, 0)), plain.high)


def test_a_calibration_error_near_chance_may_be_0() -> None:
    right = sum(one.deserved == one.gold for one in WORLD) / 32
    rest = (1 - right) / 3
    p = {grade: {str(other): right if other == grade else rest for other in range(4)} for grade in range(4)}
    _, row = found(panel([p[one.deserved] for one in WORLD]))
    ece = row.statistics["ece"]
    assert 0 == ece.low < ece.high
    assert ece.reason is None


def test_probabilities_are_those_of_grades_without_what_is_no_grade() -> None:
    unable = Scale(SCALE.levels, "higher", (2, 3), Level(9, "cannot say", ""))
    p = {"0": 0.1, "1": 0.1, "2": 0.1, "3": 0.1, "cannot say": 0.1, "elsewhere": 0.5}
    (column,) = panel([p] * 32, unable).columns
    assert column.probabilities.tolist() == [[0.25] * 4] * 32


def test_where_grades_count_as_positive_or_not_so_do_their_probabilities() -> None:
    (column,) = panel([P[one.deserved] for one in WORLD], binary=True).columns
    # Grades 2 and 3 are positive: .7 + .1 where the judge gives one of them, else .1 + .1.
    expected = [0.8 if one.deserved >= 2 else 0.2 for one in WORLD]
    by_id = dict(zip([one.response_id for one in WORLD], expected, strict=True))
    places = [by_id[item.response_id] for item in panel([None] * 32).items]
    assert column.probabilities[:, 1].tolist() == pytest.approx(places)


@pytest.mark.parametrize("missing", [1, 32])
def test_without_the_probabilities_of_every_grade_there_is_no_row(missing: int) -> None:
    of = panel([None if place < missing else P[one.deserved] for place, one in enumerate(WORLD)])
    assert calibrate([of], OPTIONS).findings["probabilities"] == ()


def test_unequal_weights_are_said_not_to_count() -> None:
    rows = [
        replace(one, inclusion_probability=0.5 if place % 2 else 0.25) for place, one in enumerate(gold_rows(WORLD))
    ]
    said = [Label(one.turn_id, one.response_id, one.deserved, probabilities=P[one.deserved]) for one in WORLD]
    _, row = found(panel_of(rows, labels("m", said)))
    assert "not weighted by inclusion probability" in str(row.statistics["ece"].reason)


def test_they_stand_in_table_and_report() -> None:
    calibration, row = found(panel([P[one.deserved] for one in WORLD]))
    head, line = FINDINGS["probabilities"].tsv(calibration.findings["probabilities"]).splitlines()
    cells = dict(zip(head.split("\t"), line.split("\t"), strict=True))
    ends = [column for name in PROBABILITY for column in (name, f"{name}_lo", f"{name}_hi")]
    assert [*cells] == ["judge", "prompt", "criterion", "split", *ends, "brier_of_shares", "n", "topics", "note"]
    assert cells["brier"] == f"{row.statistics['brier'].value:.6f}"
    assert (cells["n"], cells["topics"]) == ("32", "8")
    assert "### Are its label probabilities probabilities?" in calibration_markdown(calibration)
