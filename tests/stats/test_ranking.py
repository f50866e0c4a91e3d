import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judge.records import Estimate
from judge.stats.ranking import (
    SYSTEM,
    TIED,
    Halves,
    batched_tau_b,
    kendall_tau_b,
    rbo,
    rbo_b,
    split_half,
    system_agreement,
    tau_ap,
    tau_ap_b,
    top_k_overlap,
)
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
    for statistic in (kendall_tau_b, tau_ap_b, rbo, rbo_b):
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


scores = st.lists(st.integers(0, 3).map(float), min_size=2, max_size=7).filter(lambda x: len(set(x)) > 1)


def value(name: str, x: list[float], y: list[float]) -> float:
    return float(TIED[name].formula(np.array([x]), np.array([y]))[0])


@given(scores)
def test_everything_but_the_swaps_is_1_for_equal_rankings(x: list[float]) -> None:
    found = {name: value(name, x, x) for name, row in TIED.items() if row.fewest <= len(x)}
    assert found == pytest.approx(dict.fromkeys(found, 1.0) | {"swapped": 0.0})


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


def runs(seed: int, R: int, T: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, (R, T))
    quality = np.linspace(0, 3, R)[:, None] + rng.normal(size=(R, T)) / 4
    return counts, np.round(quality * counts), np.round((quality + noise * rng.normal(size=(R, T))) * counts)


def test_run_means_weigh_items_not_topics() -> None:
    # Run a: (4 + 0) / (1 + 4) = .8, run b: (3 + 2) / (1 + 4) = 1 by the assessors; means of topic means would be 2 and
    # 1.75. The judge has a 1.0, b .8: the other way around.
    human, counts = np.array([[4.0, 0.0], [3.0, 2.0]]), np.array([[1, 4], [1, 4]])
    judge = human[::-1]
    found = system_agreement(human, counts, judge, counts, np.random.default_rng(1), higher_is_better=True)
    assert list(found) == ["tau_b", "tau_ap", "rbo", "top_1"]
    assert found["tau_b"] == Estimate(-1, None, None, 2, 2, "fewer than 5 topics")
    assert found["top_1"].value == 0
    same = system_agreement(human, counts, human, counts, np.random.default_rng(1), higher_is_better=True)
    assert [one.value for one in same.values()] == pytest.approx([1, 1, 1, 1])


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_system_agreement_equals_the_statistics_of_run_means(higher_is_better: bool) -> None:
    counts, human, judge = runs(3, 8, 12, 2.0)
    sign = 1 if higher_is_better else -1
    x, y = sign * judge.sum(axis=1) / counts.sum(axis=1), sign * human.sum(axis=1) / counts.sum(axis=1)
    rng = np.random.default_rng(1)
    found = system_agreement(human, counts, judge, counts, rng, higher_is_better=higher_is_better, replicates=50)
    expected = {"tau_b": kendall_tau_b(x, y), "tau_ap": tau_ap(x, y), "rbo": rbo(x, y)}
    expected |= {f"top_{k}": top_k_overlap(x, y, k) for k in (1, 3, 5)}
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected)
    assert list(found) == list(expected)
    assert {(one.n, one.topics) for one in found.values()} == {(8, 12)}


@pytest.mark.slow
def test_interval_holds_the_percentiles_of_resampled_topics() -> None:
    counts, human, judge = runs(5, 6, 10, 3.0)
    found = system_agreement(human, counts, judge, counts, np.random.default_rng(1), higher_is_better=True)["tau_b"]
    rng = np.random.default_rng(2)
    plain = []
    for _ in range(2000):
        drawn = rng.integers(0, 10, 10)
        means = [X[:, drawn].sum(axis=1) / counts[:, drawn].sum(axis=1) for X in (judge, human)]
        plain.append(scipy.stats.kendalltau(*means).statistic)
    # Neighboring values of tau among 6 runs are 2/15 apart.
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(plain, [0.025, 0.975])), abs=2 / 15)
    assert found.low < found.value < found.high


def test_runs_without_items_are_not_ranked_and_empty_topics_not_counted() -> None:
    counts, human, judge = runs(7, 5, 9, 1.0)
    more = [np.pad(X, ((0, 1), (0, 2))) for X in (human, counts, judge, counts)]
    rngs = [np.random.default_rng(1), np.random.default_rng(1)]
    assert system_agreement(*more, rngs[0], higher_is_better=True) == system_agreement(
        human, counts, judge, counts, rngs[1], higher_is_better=True
    )


@pytest.mark.parametrize(("there", "undefined"), [(1, "33%"), (2, "9%"), (3, None)])
def test_sparse_gold_leaves_the_interval_out(there: int, undefined: str | None) -> None:
    # Of 6 topics the first run has items in 1, 2 or 3. A resample has none of them with probability (5/6)^6 = .335,
    # (4/6)^6 = .088 or (3/6)^6 = .016.
    counts = np.ones((4, 6), dtype=np.int64)
    counts[0, there:] = 0
    human = counts * np.arange(4)[:, None]
    found = system_agreement(human, counts, human, counts, np.random.default_rng(1), higher_is_better=True)["tau_b"]
    no_interval = Estimate(1, None, None, 4, 6, f"undefined on {undefined} of resampled topics")
    assert found == (no_interval if undefined else Estimate(1, 1, 1, 4, 6))


def test_undefined_system_agreement_has_a_reason() -> None:
    counts, human, _ = runs(1, 3, 6, 1.0)
    found = system_agreement(human, counts, 2 * counts, counts, np.random.default_rng(1), higher_is_better=True)
    assert list(found) == ["tau_b", "tau_ap", "rbo", "top_1"]
    assert found["rbo"] == Estimate(None, None, None, 3, 6, "one side ranks all runs the same")
    alone = [X[:1] for X in (human, counts, human, counts)]
    found = system_agreement(*alone, np.random.default_rng(1), higher_is_better=True)
    assert found["tau_b"] == Estimate(None, None, None, 1, 6, "fewer than 2 runs")


@given(st.integers(0, 1000), st.integers(2, 7), st.integers(5, 9))
@settings(max_examples=25, deadline=None)
def test_intervals_stay_within_the_bounds_of_the_statistic(seed: int, R: int, T: int) -> None:
    counts, human, judge = runs(seed, R, T, 2.0)
    rng = np.random.default_rng(seed)
    found = system_agreement(human, counts, judge, counts, rng, higher_is_better=True, replicates=60)
    for name, one in found.items():
        if one.low is not None:
            floor = -1 if name.startswith("tau") else 0
            assert floor - 1e-9 <= one.low <= one.high <= 1 + 1e-9
            assert not math.isnan(one.value)


@pytest.mark.long
def test_halves_rank_as_well_as_the_noise_of_both_allows() -> None:
    counts, human, _ = runs(5, 6, 10, 0.0)
    noise = np.random.default_rng(9).normal(size=human.shape)
    found = split_half(human + 4 * noise, counts, human, counts, np.random.default_rng(1), higher_is_better=True)
    rng = np.random.default_rng(2)
    half = rng.permuted(np.tile(np.arange(10), (3000, 1)), axis=1) < 5
    (one, other), (judge, _) = (
        [side @ X.T / (side @ counts.T) for side in (half.astype(float), (~half).astype(float))]
        for X in (human + 4 * noise, human)
    )
    own, across = batched_tau_b(one, other), batched_tau_b(judge, other)
    # Three standard errors of 500 halves.
    assert found.human == pytest.approx(np.mean(own), abs=3 * np.std(own) / 500**0.5)
    assert found.judge == pytest.approx(np.mean(across), abs=3 * np.std(across) / 500**0.5)
    assert found.human < found.judge < 1
    turned = split_half(human + 4 * noise, counts, human, counts, np.random.default_rng(1), higher_is_better=False)
    assert (turned.human, turned.judge) == pytest.approx((found.human, found.judge))


@pytest.mark.slow
def test_runs_that_are_close_have_a_low_ceiling() -> None:
    rng = np.random.default_rng(4)
    counts, alike = np.full((12, 20), 3), rng.normal(size=(12, 20))
    apart = alike + 9 * np.arange(12)[:, None]
    close, far = (split_half(X, counts, X, counts, rng, higher_is_better=True) for X in (alike, apart))
    assert close.human == close.judge < 0.3
    assert (far.human, far.judge) == (1, 1)


def test_no_halves_without_a_reason() -> None:
    counts, human, judge = runs(5, 6, 4, 1.0)
    rng = np.random.default_rng(1)
    few = split_half(human, counts, judge, counts, rng, higher_is_better=True)
    assert few == Halves(None, None, "fewer than 5 topics")
    assert split_half(*(X[:1] for X in (human, counts, judge, counts)), rng, higher_is_better=True) == Halves(
        None, None, "fewer than 2 runs"
    )
    counts, human, judge = runs(5, 6, 8, 1.0)
    once = counts * (np.arange(8) == 0)
    assert split_half(human * (once > 0), once, judge, counts, rng, higher_is_better=True) == Halves(
        None, None, "most halves of the topics lack a run, or rank all runs the same"
    )


@pytest.mark.long
def test_the_interval_is_of_the_agreement_to_expect_on_as_many_other_topics() -> None:
    """Moved to lie around the value (2 value - high, 2 value - low) it would hold that in about .7 of worlds."""
    rng, worlds, R, T = np.random.default_rng(11), 150, 12, 15
    ones = np.ones((R, T))
    held = moved = 0
    for _ in range(worlds):
        human = rng.normal(0, 0.2, R)
        judge = human + rng.normal(0, 0.07, R)
        # The first draw is the sample, the other 40 tell what to expect.
        shared = rng.normal(0, 0.5, (41, R, T))
        xs, ys = (mean[:, None] + shared + rng.normal(0, 0.3, (41, R, T)) for mean in (human, judge))
        truth = batched_tau_b(xs[1:].mean(2), ys[1:].mean(2)).mean()
        x, y = xs[0], ys[0]
        found = system_agreement(x, ones, y, ones, rng, higher_is_better=True, replicates=400)["tau_b"]
        assert found.value is not None and found.low is not None and found.high is not None
        held += found.low <= truth <= found.high
        moved += 2 * found.value - found.high <= truth <= 2 * found.value - found.low
    assert held / worlds >= 0.92
    assert moved / worlds <= 0.85
