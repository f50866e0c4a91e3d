import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import SquareTable, mcnemar

from judge.stats.tables import MarginalTest, bowker, stuart_maxwell

# Stuart (1955): unaided distance vision of 7,477 women, right eye by left eye.
VISION = np.array([[1520, 266, 124, 66], [234, 1512, 432, 78], [117, 362, 1772, 205], [36, 82, 179, 492]])
# Agresti: approval of the prime minister, first survey by second.
APPROVAL = np.array([[794, 150], [86, 570]])
POSITIVE = st.lists(st.lists(st.integers(1, 40), min_size=4, max_size=4), min_size=4, max_size=4)


def test_stuarts_vision_data() -> None:
    assert VISION.sum() == 7477
    found = bowker(VISION)
    assert (found.name, found.df, found.reason) == ("bowker", 6, None)
    assert (found.chi2, found.p) == pytest.approx((19.1066, 0.003987), abs=5e-5)
    found = stuart_maxwell(VISION)
    assert (found.name, found.df, found.reason) == ("stuart_maxwell", 3, None)
    assert (found.chi2, found.p) == pytest.approx((11.9566, 0.007533), abs=5e-5)


@pytest.mark.parametrize("test", [bowker, stuart_maxwell])
def test_with_two_grades_both_are_mcnemars(test: object) -> None:
    assert callable(test)
    found = test(APPROVAL)
    # (150 - 86)² / (150 + 86)
    assert found.chi2 == pytest.approx(64**2 / 236) == pytest.approx(17.3559, abs=5e-5)
    assert found.df == 1
    assert found.p == pytest.approx(mcnemar(APPROVAL, exact=False, correction=False).pvalue, rel=1e-10)


@given(POSITIVE)
def test_tests_equal_statsmodels_where_no_cell_is_empty(rows: list[list[int]]) -> None:
    C = np.array(rows)
    table = SquareTable(C, shift_zeros=False)
    for ours, theirs in ((bowker(C), table.symmetry()), (stuart_maxwell(C), table.homogeneity())):
        assert ours.df == theirs.df
        assert ours.chi2 == pytest.approx(theirs.statistic, rel=1e-8, abs=1e-8)
        assert ours.p == pytest.approx(theirs.pvalue, abs=1e-10)


@given(POSITIVE)
def test_a_grade_nobody_gave_changes_no_test(rows: list[list[int]]) -> None:
    C = np.array(rows)
    more = np.zeros((5, 5), dtype=np.int64)
    kept = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])
    more[kept] = C
    for test in (bowker, stuart_maxwell):
        found, expected = test(more), test(C)
        assert found.df == expected.df
        assert (found.chi2, found.p) == pytest.approx((expected.chi2, expected.p), abs=1e-8)


def test_grades_in_groups_that_are_never_confused_add_up() -> None:
    # Two separate tables of two grades: (6 - 2)²/8 = 2 and (1 - 9)²/10 = 6.4, a degree of freedom each.
    C = np.array([[5, 6, 0, 0], [2, 5, 0, 0], [0, 0, 5, 1], [0, 0, 9, 5]])
    for test in (bowker, stuart_maxwell):
        assert (test(C).chi2, test(C).df) == (pytest.approx(2 + 6.4), 2)


@pytest.mark.parametrize(
    ("C", "reason"), [(np.zeros((3, 3), dtype=np.int64), "no pairs"), (np.diag([4, 0, 7]), "no disagreements")]
)
def test_no_test_without_a_reason(C: np.ndarray, reason: str) -> None:
    assert bowker(C) == MarginalTest("bowker", None, None, None, reason)
    assert stuart_maxwell(C) == MarginalTest("stuart_maxwell", None, None, None, reason)


def test_a_p_value_is_never_zero() -> None:
    # 5,000 items of one grade that the other side calls another: chi2 is 5,000, and its tail less than any float.
    C = np.array([[10, 5000], [0, 10]])
    for test in (bowker, stuart_maxwell):
        assert test(C).chi2 == pytest.approx(5000)
        assert 0 < (test(C).p or 0) < 1e-300
