import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, alpha_of_coincidences, krippendorff_alpha, unit_counts
from judge.stats.reliability import alpha_interval, coincidences, fleiss_kappa, gwet_ac, value_counts
from judge.stats.tables import Undefined

LEVELS = ("nominal", "ordinal", "interval")
GRADES = (0, 1, 3)
# Krippendorff (2011), section E, which is irrCAC's raw_4raters too: 4 observers, 12 units, 0 where there is no grade.
FOUR_OBSERVERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
])  # fmt: skip
# 3 coders, 15 units, 0 where there is no value: the worked example of Wikipedia's article on alpha.
THREE_CODERS = np.array([
    [0, 0, 0, 0, 0, 3, 4, 1, 2, 1, 1, 3, 3, 0, 3],
    [1, 0, 2, 1, 3, 3, 4, 3, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 2, 1, 3, 4, 4, 0, 2, 1, 1, 3, 3, 0, 4],
])  # fmt: skip
# Fleiss (1971), Table 1: 30 patients, 6 psychiatrists, 5 diagnoses.
DIAGNOSES = """444444 222555 233335 555555 222444 113333 333355 113334 114444 555555
144444 124444 222333 144444 224445 333335 111455 111112 224444 133555
555555 244444 224555 114444 144445 222224 111155 224444 133333 555555""".split()
# The worked example of Wikipedia's article on Fleiss's kappa: 10 subjects, 14 raters, 5 categories.
FOURTEEN_RATERS = np.array([
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
])  # fmt: skip
ONE_GRADE = Undefined("all raters gave one and the same grade throughout")
LABELS = st.integers(2, 5).flatmap(
    lambda R: st.lists(st.lists(st.integers(-1, 2), min_size=R, max_size=R), min_size=1, max_size=25)
)


def noisy_labels(T: int, units: int, raters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes (raters x T·units) of raters who err the same way within a topic, a tenth missing; and topics."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.arange(T), units)
    z = rng.normal(0, 0.5, T)[topics] + rng.normal(0, 0.8, T * units)
    errors = rng.normal(0, 0.4, (raters, T))[:, topics] + rng.normal(0, 0.6, (raters, T * units))
    labels = np.digitize(z + errors, [-0.7, 0.2, 1])
    return np.where(rng.random(labels.shape) < 0.1, -1, labels).astype(np.int8), topics


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107)])
@pytest.mark.parametrize("grades", [range(1, 6), range(7)])
def test_alpha_of_krippendorffs_example(level: str, expected: float, grades: range) -> None:
    counts = np.stack([(grade == FOUR_OBSERVERS).sum(axis=0) for grade in grades], axis=1)
    # Zeros are missing, not grades.
    counts[:, [grade == 0 for grade in grades]] = 0
    assert krippendorff_alpha(counts, grades, level) == pytest.approx(expected, abs=5e-7)
    pairs = coincidences(counts, np.zeros(12, dtype=np.int64), 1)
    assert alpha_of_coincidences(level, pairs, grades)[0] == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.691358), ("ordinal", 0.806721), ("interval", 0.810845)])
def test_alpha_of_three_coders(level: str, expected: float) -> None:
    counts = value_counts(THREE_CODERS - 1, 4)
    assert krippendorff_alpha(counts, range(1, 5), level) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("level", LEVELS)
@given(LABELS)
def test_alpha_from_coincidences_equals_the_packages_from_labels(level: str, units: list[list[int]]) -> None:
    labels = np.array(units).T
    counts = value_counts(labels, 3)
    ours = alpha_of_coincidences(level, coincidences(counts, np.arange(len(units)) % 3, 3).sum(axis=0)[None], GRADES)
    pairable = counts[counts.sum(axis=1) >= 2]
    if pairable.any(axis=0).sum() > 1:
        values = np.where(labels < 0, np.nan, np.array(GRADES, dtype=float)[labels])
        theirs = krippendorff.alpha(reliability_data=values, level_of_measurement=level, value_domain=GRADES)
        assert ours[0] == pytest.approx(theirs, abs=1e-10)
        assert krippendorff_alpha(counts, GRADES, level) == pytest.approx(theirs, abs=1e-10)
    else:
        assert np.isnan(ours[0])
        assert isinstance(krippendorff_alpha(counts, GRADES, level), Undefined)


@pytest.mark.slow
def test_interval_equals_resampling_the_units_of_whole_topics() -> None:
    grades, level = (0, 1, 2, 3), "ordinal"
    labels, topics = noisy_labels(15, 6, 4, seed=1)
    found = alpha_interval(labels, topics, grades, level, np.random.default_rng(1), replicates=4000)
    counts = value_counts(labels, 4)
    rng = np.random.default_rng(2)
    naive = []
    for _ in range(800):
        units = np.concatenate([np.flatnonzero(topics == t) for t in rng.integers(0, 15, 15)])
        naive.append(krippendorff_alpha(counts[units], grades, level))
    alpha = krippendorff_alpha(counts, grades, level)
    # 2.144787 is t with 14 degrees of freedom.
    width = 2.144787 * math.sqrt(15 / 14) * np.std(naive, ddof=1) / (1 - alpha**2)
    assert found.value == alpha
    assert found.low == pytest.approx(math.tanh(math.atanh(alpha) - width), abs=0.015)
    assert found.high == pytest.approx(math.tanh(math.atanh(alpha) + width), abs=0.015)
    assert (found.n, found.topics, found.reason) == ((counts.sum(axis=1) >= 2).sum(), 15, None)


def test_units_with_one_label_and_their_topics_do_not_count() -> None:
    labels, topics = noisy_labels(8, 5, 3, seed=3)
    lone = np.full((3, 4), -1, dtype=np.int8)
    lone[0] = 2
    more = np.concatenate([labels, lone], axis=1), np.concatenate([topics, [8, 8, 11, 2]])
    grades = (0, 1, 2, 3)
    expected = alpha_interval(labels, topics, grades, "ordinal", np.random.default_rng(1))
    assert alpha_interval(*more, grades, "ordinal", np.random.default_rng(1)) == expected
    assert expected.topics == 8


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[], []], Estimate(None, None, None, 0, 0, "no unit has two grades")),
        ([[0, 1], [-1, -1]], Estimate(None, None, None, 0, 0, "no unit has two grades")),
        ([[1] * 6, [1] * 6], Estimate(None, None, None, 6, 6, ONE_GRADE.reason)),
        ([[0, 1], [0, 1]], Estimate(1.0, None, None, 2, 2, "fewer than 5 topics")),
        ([[0, 1, 0, 1, 2, 2] * 2, [0, 1, 0, 1, 2, 2] * 2], Estimate(1.0, None, None, 12, 12, "perfect agreement")),
        # Without the last unit, all have one grade.
        ([[1] * 6, [1] * 5 + [0]], Estimate(0.0, None, None, 6, 6, "undefined without one of the topics")),
    ],
)
def test_no_interval_without_a_reason(labels: list[list[int]], expected: Estimate) -> None:
    codes = np.array(labels, dtype=np.int8)
    topics = np.arange(codes.shape[1])
    assert alpha_interval(codes, topics, GRADES, "ordinal", np.random.default_rng(1)) == expected


@pytest.mark.parametrize(("weights", "expected"), [("none", 0.775444), ("linear", 0.858739), ("quadratic", 0.914001)])
def test_gwets_coefficients_of_four_raters(weights: str, expected: float) -> None:
    counts = value_counts(FOUR_OBSERVERS - 1, 5)
    assert gwet_ac(counts, range(1, 6), weights) == pytest.approx(expected, abs=5e-7)


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=3, max_size=3))
def test_two_raters_have_the_ac_of_their_table(rows: list[list[int]]) -> None:
    C = np.array(rows)
    for name, weights in (("ac1", "none"), ("ac2", "quadratic")):
        ours = gwet_ac(unit_counts(C), GRADES, weights)
        table = STATISTICS[name](C[None], GRADES)[0]
        assert np.isnan(table) if isinstance(ours, Undefined) else ours == pytest.approx(table, abs=1e-10)


def test_kappa_of_fleisss_diagnoses() -> None:
    counts = np.array([[patient.count(diagnosis) for diagnosis in "12345"] for patient in DIAGNOSES])
    assert counts.shape == (30, 5)
    assert fleiss_kappa(counts) == pytest.approx(0.430245, abs=5e-7)


def test_kappa_of_fourteen_raters() -> None:
    assert fleiss_kappa(FOURTEEN_RATERS) == pytest.approx(0.209931, abs=5e-7)


def test_fleisss_kappa_takes_units_with_missing_grades() -> None:
    counts = value_counts(FOUR_OBSERVERS - 1, 5)
    assert fleiss_kappa(counts) == pytest.approx(0.761169, abs=5e-7)
    with pytest.raises(AssertionError):
        inter_rater.fleiss_kappa(counts)


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=20))
def test_fleisss_kappa_equals_statsmodels(units: list[list[int]]) -> None:
    counts = value_counts(np.array(units).T, 3)
    ours = fleiss_kappa(counts)
    with np.errstate(invalid="ignore"):
        theirs = inter_rater.fleiss_kappa(counts)
    assert np.isnan(theirs) if isinstance(ours, Undefined) else ours == pytest.approx(theirs, abs=1e-10)


@pytest.mark.parametrize("statistic", [fleiss_kappa, lambda counts: gwet_ac(counts, GRADES, "none")])
def test_undefined_reliability_says_why(statistic: object) -> None:
    assert callable(statistic)
    assert statistic(np.array([[0, 4, 0], [0, 4, 0]])) == ONE_GRADE
    assert statistic(np.array([[0, 1, 0], [1, 0, 0]])) == Undefined("no unit has two grades")
