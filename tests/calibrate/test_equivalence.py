"""Two one-sided tests: the interval within the margin, and assessors and judge on equal terms."""

import numpy as np
import pytest
from scipy.stats import t

from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.diagnostics import FINDINGS
from judge.calibrate.findings import FindingRow
from judge.calibrate.panel import Panel
from judge.calibrate.report.pages import calibration_markdown, summary
from judge.calibrate.selection import ASSESSORS, word_of
from judge.records import Estimate
from judge.stats.agreement import point
from judge.stats.comparison import compare
from judge.stats.tables import confusion, topic_tables
from tests.calibration_world import gold_rows, items, labeled, labels, panel_of, row

WORLD = items(topics=24, each=5)
OPTIONS = CalibrationOptions(replicates=200, permutations=200, margin=0.2)


def panel(noises: dict[str, float], assessors: int = 1) -> Panel:
    """Judges that err at random as often as said, and assessors of like quality."""
    rows = []
    for number in range(assessors):
        by_id = labeled(WORLD, 0.2, 100 + number)
        rows += [row(one.turn_id, one.response_id, by_id[one.response_id], f"a{number}") for one in WORLD]
    said = []
    for seed, (name, noise) in enumerate(noises.items()):
        grades = labeled(WORLD, noise, seed)
        said.append(labels(name, {(one.turn_id, one.response_id): grades[one.response_id] for one in WORLD}))
    return panel_of(rows or gold_rows(WORLD), *said)


def rows_of(of: Panel, options: CalibrationOptions = OPTIONS) -> dict[str, FindingRow]:
    return {str(one.facts["b"]): one for one in calibrate([of], options).findings["equivalence"]}


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.09, 0.09, "EQUIVALENT"), (-0.1, 0.09, "INCONCLUSIVE"), (-0.09, 0.1, "INCONCLUSIVE"),
        (-0.5, 0.5, "INCONCLUSIVE"), (0.11, 0.3, "DIFFERENT"), (-0.3, -0.11, "DIFFERENT"), (0.09, 0.3, "INCONCLUSIVE"),
        (None, None, "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_the_word_is_where_the_interval_lies_to_a_margin_of_a_tenth(low, high, word) -> None:
    assert word_of(Estimate(0.0, low, high, 10, 5), 0.1) == word


def test_a_judge_of_like_quality_is_equivalent_and_a_poor_one_different() -> None:
    good, poor = rows_of(panel({"one": 0.05, "other": 0.1, "poor": 0.9})).values()
    assert {good.name, good.facts["b"]} == {"one", "other"}
    assert (poor.name, poor.facts["b"]) == (good.name, "poor")
    assert (good.facts["equivalence"], poor.facts["equivalence"]) == ("EQUIVALENT", "DIFFERENT")
    assert (good.facts["margin"], good.facts["statistic"], good.split) == (0.2, "wkappa", "all")


def test_the_interval_is_that_of_the_comparison_at_ninety_percent() -> None:
    of = panel({"best": 0.05, "alike": 0.3})
    found = calibrate([of], OPTIONS)
    (wide,), (row_,) = found.comparisons, found.findings["equivalence"]
    sign = 1 if wide.a == row_.name else -1
    assert row_.statistics["difference"].value == pytest.approx(sign * wide.difference.value)
    halves = [(one.high - one.low) / 2 for one in (row_.statistics["difference"], wide.difference)]
    # The same seed draws the same topics; the comparison also draws exchanges first, so its error differs a little.
    assert halves[0] / halves[1] == pytest.approx(t.ppf(0.95, 23) / t.ppf(0.975, 23), rel=0.08)


def test_without_a_margin_nothing_is_tested() -> None:
    assert rows_of(panel({"best": 0.05, "alike": 0.1}), CalibrationOptions(replicates=200, permutations=200)) == {}


@pytest.mark.parametrize("assessors", [2, 3])
def test_judge_and_assessors_are_set_against_the_same_grades(assessors: int) -> None:
    of = panel({"m": 0.2}, assessors)
    by_name = {name: codes.tolist() for name, codes in of.assessors.items()}
    (judge,) = of.columns
    pairs_judge, pairs_assessors = [], []
    for name, own in by_name.items():
        rest = [codes for other, codes in by_name.items() if other != name]
        for i in range(len(of.items)):
            given = [codes[i] for codes in rest]
            # Two that differ have no mode, and are half of the item each; so all are counted twice.
            for others in given if len(given) == 2 else given * 2:
                pairs_judge.append((others, int(judge.codes[i])))
                pairs_assessors.append((others, own[i]))
    expected = [point("wkappa", confusion(pairs, range(4)), (0, 1, 2, 3)) for pairs in (pairs_judge, pairs_assessors)]
    difference = rows_of(of)[ASSESSORS].statistics["difference"]
    assert difference.value == pytest.approx(expected[0] - expected[1], abs=1e-12)
    assert (difference.n, difference.topics) == (120, 24)


def test_a_judge_as_noisy_as_the_assessors_is_equivalent_to_them() -> None:
    assert rows_of(panel({"m": 0.2}, 3))[ASSESSORS].facts["equivalence"] == "EQUIVALENT"
    assert rows_of(panel({"m": 0.95}, 3))[ASSESSORS].facts["equivalence"] == "DIFFERENT"


def test_one_assessor_has_nobody_to_agree_with() -> None:
    assert ASSESSORS not in rows_of(panel({"best": 0.05, "alike": 0.1}))


def test_it_stands_in_table_report_and_summary() -> None:
    found = calibrate([panel({"m": 0.2, "poor": 0.9}, 2)], OPTIONS)
    lines = FINDINGS["equivalence"].tsv(found.findings["equivalence"]).splitlines()
    assert [line.split("\t")[3:5] for line in lines[1:]] == [["m", "poor"], ["m", "assessors"]]
    markdown = calibration_markdown(found)
    assert "### Is it as good as another judge, or as an assessor?" in markdown
    assert "wkappa differs by less than 0.200" in markdown
    text = " ".join(summary(found, 120).split())
    assert "Is it as good as another judge, or as an assessor? judge against grades difference [90 %]" in text
    assert text.count(" EQUIVALENT ") == 1
    # Without an output folder there is no calibration.md.
    assert "equivalence (wider terminal or --json)" in " ".join(summary(found, 60, "--json").split())


@pytest.mark.long
def test_a_true_difference_of_the_margin_is_called_equivalent_in_five_percent_of_worlds_or_less() -> None:
    rng = np.random.default_rng(1)
    topic = np.repeat(np.arange(25), 8)
    called = 0
    worlds = 200
    for _ in range(worlds):
        human = rng.integers(0, 2, 200)
        # Symmetric errors of .1 and .2 on even grades: kappa .8 and .6.
        a, b = (np.where(rng.random(200) < error, 1 - human, human) for error in (0.1, 0.2))
        tables = tuple(topic_tables(human, codes, topic, 2, 25) for codes in (a, b))
        (found,) = compare({("a", "b"): tables}, "kappa", (0, 1), rng, permutations=1, level=0.9).pairs
        called += word_of(found.difference, 0.2) == "EQUIVALENT"
    # Nominal .05, Monte Carlo standard error .015.
    assert called / worlds <= 0.095
