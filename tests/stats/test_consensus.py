import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from statistics import multimode
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

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
def test_each_label_is_set_against_the_modes_of_the_others(lists) -> None:
    item = np.array([place for place, labels in enumerate(lists) for _ in labels], dtype=np.int64)
    code = np.array([grade for labels in lists for grade in labels], dtype=np.int64)
    # Every label by a worker of its own.
    tables = consensus.against_others(np.arange(len(item)), item, code, table(lists), len(item))
    for label, (place, own) in enumerate(zip(item.tolist(), code.tolist(), strict=True)):
        others = list(lists[place])
        others.remove(own)
        most = multimode(others) if others else []
        shares = [1 / len(most) if grade in most else 0.0 for grade in GRADES]
        assert tables[label, :, own].tolist() == pytest.approx(shares)
        assert tables[label].sum() == pytest.approx(float(bool(others)))


def of_labels(code: Sequence[int], workers: int, k: int) -> NDArray[Any]:
    """Tables of workers who label all items, in turn."""
    items = len(code) // workers
    worker, item = np.tile(range(workers), items), np.repeat(np.arange(items), workers)
    counts = np.bincount(item * k + code, minlength=items * k).reshape(items, k)
    return consensus.against_others(worker, item, np.array(code), counts, workers)


def test_weights_are_log_odds_of_agreement_with_the_others() -> None:
    # Three workers, five items: 0 and 1 always agree, 2 says 3 where they say 0. Leaving one out, worker 0 meets
    # {1's 0, 2's 3} there, a tie of which one half agrees: 4.5 of 5. Worker 2 meets {0, 0}: 4 of 5.
    tables = of_labels([0, 0, 3, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2], 3, 4)
    weights = consensus.log_odds(tables)
    a, b = 5 / 6, 4.5 / 6  # half a pseudo-label on either side
    assert weights["agreement"] == pytest.approx([a, a, b])
    assert weights["weight"] == pytest.approx([math.log(of / (1 - of)) + math.log(3) for of in (a, a, b)])


def test_weights_of_guessers_are_zero() -> None:
    # k = 2: odds at or below 1 weigh nothing. Workers 0 and 1 meet ties: half of 4. Worker 2 meets {0, 0}: 0 of 4.
    tables = of_labels([0, 0, 1] * 4, 3, 2)
    weights = consensus.log_odds(tables, smoothing=1)
    assert weights["agreement"].tolist() == [3 / 6, 3 / 6, 1 / 6]
    assert weights["weight"].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="always agrees"):
        consensus.log_odds(tables, smoothing=0)


def test_ties_of_the_others_take_no_side() -> None:
    # Turning the scale around turns no worker's agreement, whatever the labels.
    code = np.random.default_rng(1).integers(0, 4, 5 * 40)
    tables, turned = of_labels(code, 5, 4), of_labels(3 - code, 5, 4)
    assert turned == pytest.approx(tables[:, ::-1, ::-1])
    # Three careful workers beside two who always say 1: on an item of truth 0, a careful worker meets {0, 0, 1, 1}.
    zeros, ones = [0, 0, 0, 1, 1], [1, 1, 1, 1, 1]
    careful = consensus.log_odds(of_labels((zeros + ones) * 10, 5, 2), smoothing=0.5)
    # Half of 10 ties and 10 of 10: 15 of 20. Who always says 1 meets {0, 0, 0, 1}: 10 of 20.
    assert careful["agreement"].tolist() == [15.5 / 21] * 3 + [10.5 / 21] * 2
    assert careful["weight"].tolist() == pytest.approx([math.log(15.5 / 5.5)] * 3 + [0, 0])


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
