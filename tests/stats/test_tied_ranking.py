import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.ranking import SYSTEM, TIED, rbo, rbo_b, tau_ap, top_k_overlap
from judge.stats.system_agreement import system_agreement

TIE = [3.0, 2.0, 2.0, 1.0]
scores = st.lists(st.integers(0, 3).map(float), min_size=2, max_size=7).filter(lambda x: len(set(x)) > 1)


def value(name: str, x: list[float], y: list[float]) -> float:
    return float(TIED[name].formula(np.array([x]), np.array([y]))[0])


def test_a_ranking_with_a_tie_fully_agrees_with_itself_here_and_not_where_ties_are_broken_at_random() -> None:
    assert value("tau_b", TIE, TIE) == 1
    assert value("tau_ap_b", TIE, TIE) == 1
    assert value("rbo_b", TIE, TIE) == pytest.approx(1)
    # By chance the second place is rightly above the third in half of the cases: 2/3 (1 + 3/4 + 1) - 1.
    assert tau_ap(TIE, TIE) == pytest.approx(2 / 3 * (1 + (1 + 1 / 2) / 2 + 1) - 1)
    assert rbo(TIE, TIE) != pytest.approx(1)


@given(scores)
def test_everything_but_the_swaps_is_1_for_equal_rankings(x: list[float]) -> None:
    found = {name: value(name, x, x) for name, row in TIED.items() if row.fewest <= len(x)}
    assert found == pytest.approx(dict.fromkeys(found, 1.0) | {"swapped": 0.0})


@given(scores, st.randoms(use_true_random=False))
def test_no_statistic_depends_on_which_side_comes_first(x: list[float], random: object) -> None:
    y = list(x)
    random.shuffle(y)  # type: ignore[attr-defined]
    names = [name for name, row in TIED.items() if row.fewest <= len(x)]
    assert [value(name, x, y) for name in names] == pytest.approx([value(name, y, x) for name in names])


def test_without_ties_they_are_the_statistics_of_random_breaking() -> None:
    x = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    for y in itertools.islice(itertools.permutations(x), 0, 720, 37):
        assert value("rbo_b", x, list(y)) == pytest.approx(rbo(x, y))
        assert value("top_3", x, list(y)) == pytest.approx(top_k_overlap(x, y, 3))


def test_a_tie_for_the_first_place_counts_by_its_length() -> None:
    # Of (a b) c and a (b c) the best run is a or b, and a: 1/2 · 1 over √((1/4 + 1/4) · 1).
    assert value("top_1", [2, 2, 1], [2, 1, 1]) == pytest.approx(0.5 / 0.5**0.5)
    # The best two are a b, and a with b or c: (1 · 1 + 1 · 1/2) over √((1 + 1)(1 + 1/4 + 1/4)).
    A_2 = 1.5 / 3**0.5
    by_hand = 0.9**3 + 0.1 * (0.5 / 0.5**0.5 + A_2 * 0.9 + 0.9**2)
    assert rbo_b([2, 2, 1], [2, 1, 1]) == pytest.approx(by_hand)


def test_swapped_is_the_share_of_pairs_in_opposite_order() -> None:
    # Of the pairs ab, ac, bc only bc swaps; the pair that one side ties does not.
    assert value("swapped", [3, 2, 1], [3, 1, 2]) == pytest.approx(1 / 3)
    assert value("swapped", [3, 2, 2], [3, 1, 2]) == 0


def test_topics_are_drawn_for_both_rankings_together() -> None:
    # Each topic has its own order of the runs, so that rankings of different draws would differ.
    sums = np.random.default_rng(1).integers(0, 9, (5, 12)).astype(float)
    counts = np.ones_like(sums)
    rng = np.random.default_rng(2)
    found = system_agreement(sums, counts, sums, counts, rng, higher_is_better=True, replicates=300, statistics=TIED)
    lows = {name: each.low for name, each in found.items() if name != "swapped"}
    assert lows == pytest.approx(dict.fromkeys(lows, 1.0))
    assert (found["swapped"].value, found["swapped"].high) == (0, 0)


def test_the_statistics_of_a_calibration_are_as_before() -> None:
    sums, counts = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    found = system_agreement(sums, counts, sums, counts, np.random.default_rng(1), higher_is_better=True)
    assert found.keys() == {name for name, row in SYSTEM.items() if row.fewest <= 3}
