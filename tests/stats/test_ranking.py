import itertools
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.stats.ranking import SYSTEM, TIED, kendall_tau_b, rbo, rbo_b, tau_ap, tau_ap_b, top_k_overlap
from judge.stats.system_agreement import system_agreement
from judge.stats.tables import Undefined

# The example in the README of the R package ircor (Urbano & Marrero 2017), and its test data: x, y, and both with ties.
README = (
    [0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94],
    [0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94],
    [0, 0.2, 0.2, 0.4, 0.6, 0.6, 0.6, 0.8, 1, 1],
    [0.4, 0, 0.2, 0.2, 0.6, 0.6, 0.6, 1, 0.8, 1],
)
SET1 = (
    [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
    [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
    [0.9, 0.4, 0.9, 0.9, 0.7, 0.1, 0.2, 0.4, 0.5, 1],
    [0.8, 0.4, 0.8, 1, 0.7, 0.1, 0.4, 0.5, 0.6, 1],
)
SET2 = (
    [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
    [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
    [0.3, 0.6, 0.2, 0.9, 0.6, 0.2, 0.7, 0.8, 0.7, 0.4],
    [0.3, 0.8, 0.7, 0.9, 0.1, 0.1, 0.5, 0.6, 1, 0.6],
)
SET3 = (
    [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445],
    [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25],
    [0.2, 0.6, 0.9, 0.1, 0.5, 0.6, 0.8, 0.4, 1, 0.4],
    [0.8, 0.3, 0.3, 0.9, 0.6, 0.3, 0.2, 0.9, 0, 0.2],
)
Sample = tuple[list[float], list[float], list[float], list[float]]
VECTORS = st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2))
PERMUTED = st.integers(2, 8).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n))))


def over_broken_ties(
    statistic: Callable[[list[float], list[float]], float | Undefined], x: list[int], y: list[int]
) -> float:
    """The mean over every way of breaking ties in either."""

    def broken(scores: list[int]) -> list[list[float]]:
        n = len(scores)
        found = []
        for tie_breaker in itertools.permutations(range(n)):
            order = sorted(range(n), key=lambda i: (scores[i], tie_breaker[i]))
            found.append([float(order.index(i)) for i in range(n)])
        return found

    return float(np.mean([statistic(a, b) for a, b in itertools.product(broken(x), broken(y))]))


@pytest.mark.parametrize(
    ("sample", "plain", "ties", "symmetric", "symmetric_ties"),
    [(SET1, 0.8519, 0.7454, 0.8333, 0.7321),
     (SET2, 0.2504, 0.2692, 0.2880, 0.2970),
     (SET3, -0.6971, -0.5558, -0.6680, -0.7047)],
)  # fmt: skip
def test_ap_correlations_equal_the_digits_of_ircors_tests(sample, plain, ties, symmetric, symmetric_ties) -> None:
    x, y, x_ties, y_ties = sample
    assert tau_ap(y, x) == pytest.approx(plain, abs=5e-5)
    assert tau_ap(y_ties, x) == pytest.approx(ties, abs=5e-5)
    assert tau_ap_b(x, y) == pytest.approx(symmetric, abs=5e-5)
    assert tau_ap_b(x_ties, y_ties) == pytest.approx(symmetric_ties, abs=5e-5)


def test_correlations_equal_the_digits_of_ircors_readme() -> None:
    x, y, x_ties, y_ties = README
    assert tau_ap(y, x) == pytest.approx(0.7491182, abs=5e-8)
    assert kendall_tau_b(x, y) == pytest.approx(0.7777778, abs=5e-8)
    assert tau_ap(y_ties, x) == pytest.approx(0.6074515, abs=5e-8)
    assert kendall_tau_b(x_ties, y_ties) == pytest.approx(0.75, abs=5e-8)
    assert tau_ap_b(x_ties, y_ties) == pytest.approx(0.6269841, abs=5e-8)
    assert kendall_tau_b(SET1[2], SET1[3]) == pytest.approx(0.939827, abs=5e-7)


@given(VECTORS)
def test_tau_b_equals_scipy(vectors: tuple[list[int], list[int]]) -> None:
    x, y = vectors
    found = kendall_tau_b(x, y)
    if isinstance(found, Undefined):
        assert min(x) == max(x) or min(y) == max(y)
    else:
        assert found == pytest.approx(scipy.stats.kendalltau(x, y).statistic, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "y"), [([1, 1, 2, 3], [1, 2, 2, 3]), ([2, 2, 2, 1], [1, 2, 3, 4]), ([1, 1, 2, 2], [2, 2, 1, 1])]
)
@pytest.mark.parametrize("statistic", [tau_ap, rbo, lambda a, b: top_k_overlap(a, b, 2)])
def test_ties_are_broken_in_every_way(statistic, x, y) -> None:
    assert statistic(x, y) == pytest.approx(over_broken_ties(statistic, x, y), abs=1e-12)


@given(PERMUTED)
def test_identical_and_reversed_rankings_are_the_ends(vectors: tuple[list[int], list[int]]) -> None:
    x, _ = vectors
    turned = [-value for value in x]
    for statistic in (kendall_tau_b, tau_ap, tau_ap_b):
        assert statistic(x, x) == pytest.approx(1)
        assert statistic(x, turned) == pytest.approx(-1)
    assert rbo(x, x) == pytest.approx(1)


@given(VECTORS)
def test_symmetric_statistics_are_and_none_leaves_its_bounds(vectors: tuple[list[int], list[int]]) -> None:
    x, y = vectors
    assume(min(x) < max(x) and min(y) < max(y))
    for statistic in (kendall_tau_b, tau_ap_b, rbo):
        assert statistic(x, y) == pytest.approx(statistic(y, x), abs=1e-12)
    assert all(-1 - 1e-9 <= statistic(x, y) <= 1 + 1e-9 for statistic in (kendall_tau_b, tau_ap, tau_ap_b))
    assert 0 <= rbo(x, y) <= 1 + 1e-9


@given(PERMUTED)
def test_the_order_of_the_items_changes_nothing(vectors: tuple[list[int], list[int]]) -> None:
    x, y = vectors
    by_x = sorted(range(len(x)), key=lambda i: x[i])
    for statistic in (kendall_tau_b, tau_ap, tau_ap_b, rbo):
        assert statistic([x[i] for i in by_x], [y[i] for i in by_x]) == pytest.approx(statistic(x, y), abs=1e-12)


@pytest.mark.parametrize("statistic", [kendall_tau_b, tau_ap, tau_ap_b, rbo, lambda x, y: top_k_overlap(x, y, 1)])
def test_constant_scores_rank_nothing(statistic: Callable[[list[float], list[float]], float | Undefined]) -> None:
    assert statistic([1, 1, 1], [1, 2, 3]) == Undefined("one side is constant")
    assert statistic([1, 2, 3], [2, 2, 2]) == Undefined("one side is constant")


def test_too_few_items_and_unequal_lengths() -> None:
    assert kendall_tau_b([1], [1]) == Undefined("fewer than 2 items")
    assert top_k_overlap([1, 2, 3], [1, 2, 3], 3) == Undefined("no more than 3 items")
    with pytest.raises(ValueError, match="2 and 3 scores"):
        tau_ap([1, 2], [1, 2, 3])


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
