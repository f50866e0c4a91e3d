import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats import consensus
from judge.stats.consensus import SHARES, TIES
from judge.stats.means import consensus as consensus_of_one

GRADES = (0, 1, 2, 3)
LISTS = st.lists(st.lists(st.sampled_from(GRADES), min_size=1, max_size=9), min_size=1, max_size=20)
SCALES = st.lists(st.integers(-6, 9), min_size=2, max_size=5, unique=True).map(lambda grades: tuple(sorted(grades)))


def table(lists, grades=GRADES):
    """Counts (N x k) of lists of labels."""
    return np.array([[labels.count(grade) for grade in grades] for labels in lists], dtype=np.int64).reshape(
        -1, len(grades)
    )


def graded(code, grades=GRADES):
    return [None if place < 0 else grades[place] for place in code.tolist()]


def one(labels, grades=GRADES, **rule):
    return graded(consensus.majority(table([labels], grades), grades, **rule), grades)[0]


@given(LISTS)
def test_the_default_is_the_rule_for_single_lists(lists) -> None:
    assert graded(consensus.majority(table(lists), GRADES)) == [consensus_of_one(labels) for labels in lists]


@pytest.mark.parametrize(
    ("labels", "expected"),
    # In the order of TIES: mean half up, to even, to the middle, floor, nearest mode, lowest, highest, median.
    [
        ([3, 1, 3], (3, 3, 3, 3, 3, 3, 3, 3)),  # one mode, nothing to decide
        ([0, 1], (1, 0, 1, 0, 1, 0, 1, 1)),  # mean 1/2; both modes are as near
        ([1, 2], (2, 2, 2, 1, 2, 1, 2, 2)),  # mean 3/2
        ([2, 3], (3, 2, 2, 2, 3, 2, 3, 3)),  # mean 5/2
        ([0, 0, 3, 3], (2, 2, 2, 1, 3, 0, 3, 2)),  # mean 3/2; nobody said 1 or 2
        ([0, 0, 3, 3, 2], (2, 2, 2, 1, 3, 0, 3, 2)),  # mean 8/5; 3 is 7/5 off, 0 is 8/5
        ([0, 0, 1, 3, 3], (1, 1, 1, 1, 0, 0, 3, 1)),  # mean 7/5; 0 is 7/5 off, 3 is 8/5
        ([0, 1, 2, 3], (2, 2, 2, 1, 2, 0, 3, 2)),  # mean 3/2; four modes, 1 and 2 as near
        ([0, 0, 1, 1, 3], (1, 1, 1, 1, 1, 0, 1, 1)),  # mean 1
    ],
)
def test_ties(labels, expected) -> None:
    assert tuple(one(labels, tie=tie) for tie in TIES) == expected


@pytest.mark.parametrize(
    ("labels", "plurality", "absolute"),
    [
        ([3, 3, 0, 1, 2], 3, 2),  # 2 of 5 for 3; mean 9/5
        ([3, 3, 0, 1], 3, 2),  # exactly half is no absolute majority; mean 7/4
        ([3, 3, 3, 0, 0], 3, 3),
        ([1], 1, 1),
    ],
)
def test_plurality_and_absolute_majority(labels, plurality, absolute) -> None:
    assert one(labels, share="plurality") == plurality
    assert one(labels, share="absolute") == absolute


def test_an_absolute_majority_that_is_missing_leaves_a_single_mode_to_the_rules_on_modes() -> None:
    assert [one([3, 3, 0, 1, 2], share="absolute", tie=tie) for tie in ("nearest-mode", "lowest", "highest")] == [3] * 3


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of plurality, absolute"):
        one([1], share="most")
    with pytest.raises(ValueError, match="mean-half-up"):
        one([1], tie="random")


@given(LISTS, st.sampled_from(list(TIES)), st.sampled_from(list(SHARES)))
def test_a_rule_stays_within_the_labels_and_knows_no_order(lists, tie, share) -> None:
    for labels, grade in zip(
        lists, graded(consensus.majority(table(lists), GRADES, share=share, tie=tie)), strict=True
    ):
        assert min(labels) <= grade <= max(labels)
        most = Counter(labels).most_common()
        if 2 * most[0][1] > len(labels):
            assert grade == most[0][0]
        if tie in {"nearest-mode", "lowest", "highest"}:
            assert labels.count(grade) == most[0][1]


@given(SCALES, st.data())
def test_the_mean_goes_to_the_nearest_grade_of_any_scale(grades, data) -> None:
    labels = data.draw(st.lists(st.sampled_from(grades), min_size=1, max_size=9))
    mean = Fraction(sum(labels), len(labels))
    nearest = max(grades, key=lambda grade: (-abs(grade - mean), grade))
    assert graded(consensus.mean_grade(table([labels], grades), grades), grades) == [nearest]


@given(st.lists(st.sampled_from(GRADES), min_size=1, max_size=12))
def test_on_all_integers_the_mean_is_rounded_in_integer_arithmetic(labels) -> None:
    s, n = sum(labels), len(labels)
    counts = table([labels])
    up, even, floor = (
        graded(TIES[tie].choose(counts, counts > 0, np.array(GRADES)))[0]
        for tie in ("mean-half-up", "mean-half-even", "mean-floor")
    )
    assert (up, even, floor) == ((2 * s + n) // (2 * n), round(Fraction(s, n)), s // n)


@given(LISTS)
def test_medians(lists) -> None:
    # Halfway between two grades the median of codes is rounded up.
    expected = [math.floor(np.median(labels) + 0.5) for labels in lists]
    assert graded(consensus.median_grade(table(lists), GRADES)) == expected


def test_means_and_entropies() -> None:
    counts = table([[0, 1, 2, 3], [2, 2], [0, 0, 0, 1], []])
    assert consensus.means(counts, GRADES)[:3].tolist() == [6 / 4, 2.0, 1 / 4]
    assert consensus.entropy(counts)[:3] == pytest.approx(
        [2, 0, -(3 / 4 * math.log2(3 / 4) + 1 / 4 * math.log2(1 / 4))]
    )
    assert math.copysign(1, consensus.entropy(counts)[1]) == 1
    assert np.isnan([consensus.means(counts, GRADES)[3], consensus.entropy(counts)[3]]).all()


@pytest.mark.parametrize("tie", TIES)
def test_an_item_without_labels_gets_no_grade(tie) -> None:
    counts = table([[], [1]])
    assert consensus.majority(counts, GRADES, tie=tie).tolist() == [-1, 1]
    assert consensus.mean_grade(counts, GRADES).tolist() == [-1, 1]
    assert consensus.median_grade(counts, GRADES).tolist() == [-1, 1]


@given(LISTS)
def test_leaving_one_out(lists) -> None:
    rest = consensus.without_one(table(lists), GRADES)
    for labels, row in zip(lists, rest.tolist(), strict=True):
        for grade in GRADES:
            others = list(labels)
            if grade in others:
                others.remove(grade)
            assert row[grade] == (consensus_of_one(others) if others and grade in labels else -1)


def test_weights_are_log_odds_of_agreement_with_the_others() -> None:
    # Three workers, five items: 0 and 1 always agree, 2 says 3 where they say 0. Leaving one out, worker 0 meets
    # {1's 0, 2's 3}, whose mean 3/2 rounds to 2: no agreement. Worker 2 meets {0, 0}: none either.
    worker, item = np.tile([0, 1, 2], 5), np.repeat(np.arange(5), 3)
    code = np.array([0, 0, 3, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2])
    counts = np.bincount(item * 4 + code, minlength=20).reshape(5, 4)
    weights = consensus.log_odds(worker, item, code, consensus.without_one(counts, GRADES), 4)
    a = 4.5 / 6  # 4 of 5, a half on either side
    assert weights["agreement"] == pytest.approx([a, a, a, 1 / 2])
    assert weights["weight"] == pytest.approx([math.log(a / (1 - a)) + math.log(3)] * 3 + [math.log(3)])


def test_weights_of_guessers_are_zero() -> None:
    # k = 2: odds at or below 1 weigh nothing.
    worker, item, code = np.array([0, 1, 2] * 4), np.repeat(np.arange(4), 3), np.array([0, 0, 1] * 4)
    rest = np.tile(np.array([0, 0], dtype=np.int8), (4, 1))
    weights = consensus.log_odds(worker, item, code, rest, 3, smoothing=1)
    assert weights["agreement"].tolist() == [5 / 6, 5 / 6, 1 / 6]
    assert weights["weight"] == pytest.approx([math.log(5), math.log(5), 0])
    with pytest.raises(ValueError, match="always agrees"):
        consensus.log_odds(worker, item, code, rest, 3, smoothing=0)


def test_weighted_votes_decide_and_equal_sums_tie() -> None:
    worker, item, code = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 0, 0, 1, 1, 1]), np.array([0, 3, 3, 0, 0, 3])
    votes = consensus.weighted_votes(worker, item, code, np.array([0.3, 0.1, 0.2]), (2, 4))
    assert votes[:, [0, 3]] == pytest.approx(np.full((2, 2), 0.3))
    counts = np.bincount(item * 4 + code, minlength=8).reshape(2, 4)
    # .1 + .2 is not .3 in floating point; the tie is one all the same. Means are of plain labels: 6/3 and 3/3.
    assert consensus.majority(counts, GRADES, votes=votes).tolist() == [2, 1]
    heavier = consensus.weighted_votes(worker, item, code, np.array([0.4, 0.1, 0.2]), (2, 4))
    assert consensus.majority(counts, GRADES, votes=heavier).tolist() == [0, 3]
    assert consensus.majority(counts, GRADES, share="absolute", votes=heavier).tolist() == [0, 3]
