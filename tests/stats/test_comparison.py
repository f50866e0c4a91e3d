import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from judge.records import Estimate
from judge.stats import comparison
from judge.stats.agreement import STATISTICS
from judge.stats.comparison import JudgeDifference, holm, sign_flip
from tests.stats.test_agreement import llmjudge_tables
from tests.stats.test_selection import misread, rng

MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48])
GRADES = (0, 1, 2)


def compare(*arguments: Any, **options: Any) -> tuple[JudgeDifference, ...]:
    return comparison.compare(*arguments, **options).pairs


def judges(seed: int, T: int, m: int, turns: int = 6, noise: float = 0.8) -> list[NDArray[np.int64]]:
    """Tables of m judges that differ by chance alone."""
    source = rng(seed)
    truth = source.normal(size=(T, turns)) + source.normal(size=(T, 1)) / 2
    return list(misread(source, truth, [noise] * m))


def right_and_wrong(right: list[int], of: int = 4) -> NDArray[np.int64]:
    """One table a topic with so many of its items on the diagonal, the rest beside it."""
    return np.array([[[count, of - count], [0, 0]] for count in right])


def test_darwins_maize_by_exact_sign_flips() -> None:
    # Fisher (1935): 863 of 32768 sign patterns have a sum of 314 or more.
    assert sign_flip(MAIZE, rng(), permutations=2**15) == 1726 / 32768


def test_sign_flips_equal_scipys_exact_permutation_test() -> None:
    d = np.array([0.3, -0.1, 0.25, 0.4, 0.0, 0.15, -0.05])
    oracle = scipy.stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(d, rng()) == pytest.approx(oracle.pvalue, abs=1e-15)


def test_sampled_sign_flips_are_near_the_exact_p_and_never_0() -> None:
    assert sign_flip(MAIZE, rng(), permutations=20_000) == pytest.approx(1726 / 32768, abs=0.006)
    assert sign_flip(np.ones(60), rng(), permutations=99) == 1 / 100


def test_no_difference_at_all_has_p_1() -> None:
    assert sign_flip(np.zeros(5), rng()) == 1
    assert sign_flip(np.zeros(40), rng(), permutations=99) == 1


def test_holm_worked_by_hand() -> None:
    # .005*4 = .02; .01*3 = .03; .03*2 = .06; .04*1 = .04, raised to the .06 before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1, 1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_equals_statsmodels(p: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # It collects the garbage of the whole process at each call.
        patch.setattr("gc.collect", lambda: 0)
        expected = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(expected, abs=1e-12)


def test_exchange_of_topics_worked_by_hand() -> None:
    # Agreements by topic, of 4 items each. a: 4 4 3, b: 1 2 3; differences 3 2 0 of 12 items.
    # |±3 ±2 ±0| >= 5 for 4 of the 8 exchanges, and the larger the sum, the smaller its standard error.
    a, b = right_and_wrong([4, 4, 3]), right_and_wrong([1, 2, 3])
    (found,) = compare({("a", "b"): (a, b)}, "percent", (0, 1), rng())
    assert found.difference == Estimate(pytest.approx(5 / 12), None, None, 12, 3, "fewer than 5 topics")
    assert (found.p, found.p_max_t, found.p_holm, found.exact) == (0.5, None, None, True)


def test_max_t_and_holm_worked_by_hand() -> None:
    # Of 8 topics of 4 items, a - b is 1 1 1 and a - c 1 1 -1 on the first three, else 0. With the sum S of three signs,
    # t² = S² / (3 - S²/8), so |S| orders t: over the exchanges s = (±, ±, ±) with s_1 = +, a - b has
    # |s_1 + s_2 + s_3| = 3 1 1 1, a - c |s_1 + s_2 - s_3| = 1 3 1 1.
    # Raw p: 1/4 for 3, 1 for 1. The larger of the two is 3 3 1 1: max-T 1/2 and 1. Holm: 2/4 and 1.
    a, b, c = (right_and_wrong([*first, 2, 2, 2, 2, 2]) for first in ([2, 2, 2], [1, 1, 1], [1, 1, 3]))
    first, second = compare({("a", "b"): (a, b), ("a", "c"): (a, c)}, "percent", (0, 1), rng())
    assert (first.p, first.p_max_t, first.p_holm) == (0.25, 0.5, 0.5)
    assert (second.p, second.p_max_t, second.p_holm) == (1, 1, 1)


def test_a_less_extreme_pair_is_not_compared_with_a_more_extreme_one() -> None:
    # a - b is 1 1 1 on three topics, c - d is 1 1 on two others: t² is 9 / (3 - 9/8) = 4.8 or 1 / (3 - 1/8) = .35, and
    # 4 / (2 - 4/8) = 2.7 or 0. Raw p: 1/4 and 1/2. The larger one reaches 4.8 in 1/4 of the exchanges. It reaches 2.7
    # in 1 - 3/4 * 1/2 = 5/8 of them, but the second step looks at c - d alone: 1/2.
    a, b, c, d = (
        right_and_wrong(right) for right in ([2] * 8, [1, 1, 1, 2, 2, 2, 2, 2], [2] * 8, [2, 2, 2, 1, 1, 2, 2, 2])
    )
    first, second = compare({("a", "b"): (a, b), ("c", "d"): (c, d)}, "percent", (0, 1), rng())
    assert (first.p, first.p_max_t, first.p_holm) == (0.25, 0.25, 0.5)
    assert (second.p, second.p_max_t, second.p_holm) == (0.5, 0.5, 0.5)


def test_fewer_than_8_topics_adjust_nothing_and_eliminate_nobody() -> None:
    a, b = right_and_wrong([4] * 7), right_and_wrong([1, 0, 1, 0, 1, 0, 1])
    found = comparison.compare({("a", "b"): (a, b)}, "percent", (0, 1), rng())
    (pair,) = found.pairs
    assert (pair.p, pair.p_max_t, pair.p_holm) == (2 / 2**7, None, None)
    assert pair.difference.low is not None
    assert pair.difference.reason == "fewer than 8 topics: p is not adjusted for all pairs"
    assert found.best == {"a", "b"}
    longer = right_and_wrong([4] * 8), right_and_wrong([1, 0, 1, 0, 1, 0, 1, 0])
    found = comparison.compare({("a", "b"): longer}, "percent", (0, 1), rng())
    assert (found.pairs[0].p_max_t, found.pairs[0].difference.reason, found.best) == (2 / 2**8, None, {"a"})


@pytest.mark.long
def test_judges_of_llmjudge_are_told_apart_though_their_margins_differ(shared: Path) -> None:
    files = sorted((shared / "llmjudge" / "judges").glob("*.txt"))
    # RMITIR-llama70B has grades off the scale.
    tables = {path.stem: llmjudge_tables(shared, path.stem) for path in files if path.stem != "RMITIR-llama70B"}
    pairs = {(a, b): (tables[a], tables[b]) for a, b in itertools.combinations(tables, 2)}
    found = comparison.compare(pairs, "wkappa", (0, 1, 2, 3), rng(), permutations=2000)
    # Without an error for each exchange, 5 of 120 pairs are separable, and one judge is worse than the best.
    assert len(found.pairs) == 120
    assert 14 <= sum(pair.p_max_t <= 0.05 for pair in found.pairs) <= 22
    assert "h2oloo-fewself" in found.best
    assert {"TREMA-other", "TREMA-4prompts", "TREMA-rubric0"} <= set(tables) - found.best


def studentized(A: NDArray[np.int64], B: NDArray[np.int64], swaps: tuple[int, ...], name: str) -> float:
    """The difference after an exchange over its error, which adds a little of one topic at a time."""
    sides = np.stack([np.where(np.array(swaps)[:, None, None] == 1, *pair) for pair in ((B, A), (A, B))]).astype(float)
    pooled, little = sides.sum(axis=1, keepdims=True), 1e-6
    formula = STATISTICS[name]
    value = formula(pooled[:, 0], GRADES)
    moved = formula((pooled + little * sides).reshape(-1, *A.shape[1:]), GRADES).reshape(2, -1)
    moves = (moved - value[:, None]) / little
    return abs(value[0] - value[1]) / math.sqrt(((moves[0] - moves[1]) ** 2).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["percent", "wkappa"])
def test_step_down_and_elimination_equal_brute_force(name: str) -> None:
    T, names = 8, "abcd"
    tables = {judge: judges(5, T, 1, noise=noise)[0] for judge, noise in zip(names, (0.3, 0.4, 0.9, 2.5), strict=True)}
    pairs = list(itertools.combinations(names, 2))
    found = comparison.compare({(a, b): (tables[a], tables[b]) for a, b in pairs}, name, GRADES, rng())
    exchanges = list(itertools.product((0, 1), repeat=T))
    null = {pair: [studentized(tables[pair[0]], tables[pair[1]], s, name) for s in exchanges] for pair in pairs}
    observed = {pair: null[pair][0] for pair in pairs}

    def share(among: list[tuple[str, str]], least: float) -> float:
        return float(np.mean([max(null[pair][i] for pair in among) >= least * (1 - 1e-5) for i in range(2**T)]))

    left, p, running = sorted(pairs, key=lambda pair: -observed[pair]), {}, 0.0
    while left:
        running = max(running, share(left, observed[left[0]]))
        p[left.pop(0)] = running
    for pair in found.pairs:
        assert pair.p == share([(pair.a, pair.b)], observed[pair.a, pair.b])
        assert pair.p_max_t == p[pair.a, pair.b]
    alive = set(names)
    while len(alive) > 1:
        among = [pair for pair in pairs if set(pair) <= alive]
        worst = max(among, key=lambda pair: observed[pair])
        if share(among, observed[worst]) > 0.05:
            break
        values = {judge: float(STATISTICS[name](tables[judge].sum(axis=0)[None], GRADES)[0]) for judge in worst}
        alive.remove(min(worst, key=lambda judge: values[judge]))
    assert found.best == alive
    assert 1 <= len(alive) < 4


def test_sampled_exchange_is_near_the_exact_p() -> None:
    A, B = judges(3, 9, 2)
    exact = compare({("a", "b"): (A, B)}, "wkappa", GRADES, rng(), permutations=512)[0]
    sampled = compare({("a", "b"): (A, B)}, "wkappa", GRADES, rng(), permutations=511)[0]
    assert (exact.exact, sampled.exact) == (True, False)
    # Three standard errors of a share near one half among 511.
    assert sampled.p == pytest.approx(exact.p, abs=3 * math.sqrt(0.25 / 511))


def test_percent_over_topics_of_one_item_is_a_sign_flip() -> None:
    right_a, right_b = [1, 1, 1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 1, 0, 0, 1]
    a, b = right_and_wrong(right_a, of=1), right_and_wrong(right_b, of=1)
    (found,) = compare({("a", "b"): (a, b)}, "percent", (0, 1), rng())
    assert found.p == sign_flip(np.array(right_a) - np.array(right_b), rng())


@given(st.integers(0, 10_000), st.integers(2, 12), st.sampled_from(["percent", "kappa", "wkappa", "mae", "bias"]))
@settings(max_examples=40, deadline=None)
def test_adjusted_p_is_no_smaller_and_p_never_0(seed: int, T: int, name: str) -> None:
    tables = judges(seed, T, 4)
    pairs = {(f"j{i}", f"j{j}"): (tables[i], tables[j]) for i, j in itertools.combinations(range(4), 2)}
    found = [one for one in compare(pairs, name, GRADES, rng(seed), permutations=200) if one.p is not None]
    for one in found:
        assert 1 / 201 <= one.p <= 1
        if T >= 8:
            assert one.p <= one.p_max_t <= 1
            assert one.p <= one.p_holm <= 1
        else:
            assert (one.p_max_t, one.p_holm) == (None, None)


@given(st.integers(0, 10_000), st.integers(5, 14))
@settings(max_examples=25, deadline=None)
def test_turning_a_pair_around_mirrors_the_difference_alone(seed: int, T: int) -> None:
    A, B = judges(seed, T, 2)
    (ab,) = compare({("a", "b"): (A, B)}, "wkappa", GRADES, rng(seed), permutations=500)
    (ba,) = compare({("b", "a"): (B, A)}, "wkappa", GRADES, rng(seed), permutations=500)
    assert (ab.p, ab.p_max_t) == (ba.p, ba.p_max_t)
    assert ab.difference.value == pytest.approx(-ba.difference.value, abs=1e-12)
    if ab.difference.low is not None:
        assert (ab.difference.low, ab.difference.high) == pytest.approx((-ba.difference.high, -ba.difference.low))


def test_interval_is_the_bootstrap_standard_error_times_t() -> None:
    # Of percent with as many items a topic the bootstrap variance of the difference has a closed form: the variance
    # of the T per-topic differences with divisor T, over T; T / (T - 1) makes good what few topics vary too little.
    right_a, right_b = [4, 3, 4, 2, 4, 3, 1, 4], [2, 3, 1, 2, 3, 4, 1, 2]
    pair = {("a", "b"): (right_and_wrong(right_a), right_and_wrong(right_b))}
    found = compare(pair, "percent", (0, 1), rng())[0].difference
    d = (np.array(right_a) - np.array(right_b)) / 4
    half = 2.364624 * math.sqrt(8 / 7 * d.var() / 8)
    assert found.value == pytest.approx(d.mean())
    assert found.high - found.value == pytest.approx(half, rel=0.05)
    assert found.value - found.low == pytest.approx(half, rel=0.05)
    assert (found.n, found.topics, found.reason) == (32, 8, None)


def test_equal_judges_differ_by_nothing() -> None:
    (A,) = judges(1, 20, 1)
    (found,) = compare({("a", "b"): (A, A)}, "wkappa", GRADES, rng(), permutations=99)
    assert found.difference == Estimate(0, None, None, 120, 20, "no variation between topics")
    assert (found.p, found.p_max_t, found.p_holm) == (1, 1, 1)


@pytest.mark.parametrize("name", [name for name, statistic in STATISTICS.items() if statistic.slopes])
def test_slopes_in_closed_form_are_those_of_small_steps(name: str) -> None:
    statistic = STATISTICS[name]
    C = np.concatenate([np.array(judges(3, 10, 1)[0], dtype=np.float64), np.full((1, 3, 3), 0.0)]).reshape(-1, 9)
    C[-1, 4] = 5
    terms = statistic.terms(GRADES)
    value, by_steps = comparison._with_slopes(C.T, replace(statistic, slopes=None), GRADES)
    same, slopes = comparison._with_slopes((C @ terms).T, statistic, GRADES)
    assert same == pytest.approx(value, nan_ok=True)
    assert np.isnan(value[-1]) and np.isnan(slopes[:, -1]).all()
    assert terms @ slopes == pytest.approx(by_steps, rel=1e-4, abs=1e-5, nan_ok=True)


def test_topics_without_items_change_nothing() -> None:
    A, B = judges(5, 8, 2)
    empty = np.zeros((3, 3, 3), dtype=np.int64)
    padded = (np.concatenate([A[:4], empty, A[4:]]), np.concatenate([B[:4], empty, B[4:]]))
    assert compare({("a", "b"): padded}, "wkappa", GRADES, rng()) == compare(
        {("a", "b"): (A, B)}, "wkappa", GRADES, rng()
    )


def test_an_undefined_difference_has_a_reason_and_is_no_member_of_the_family() -> None:
    A, B = judges(2, 6, 2)
    one_grade = np.zeros_like(A)
    one_grade[:, 1, 1] = 6
    alone = compare({("a", "b"): (A, B)}, "kappa", GRADES, rng())
    undefined, defined = compare({("a", "c"): (A, one_grade), ("a", "b"): (A, B)}, "kappa", GRADES, rng())
    assert undefined.difference == Estimate(
        None, None, None, 36, 6, "c: both raters gave one and the same grade throughout"
    )
    assert (undefined.p, undefined.p_max_t, undefined.p_holm) == (None, None, None)
    assert (defined,) == alone


def test_a_difference_that_hangs_on_one_topic_has_no_interval() -> None:
    A = np.zeros((25, 2, 2), dtype=np.int64)
    A[:, 0, 0] = 10
    B = A.copy()
    A[0], B[0] = [[5, 0], [0, 5]], [[4, 1], [1, 4]]
    (found,) = compare({("a", "b"): (A, B)}, "kappa", (0, 1), rng(), permutations=99)
    assert found.difference.value > 0
    assert (found.difference.low, found.difference.reason) == (None, "undefined without one of the topics")
    A[1], B[1] = A[0], B[0]
    (found,) = compare({("a", "b"): (A, B)}, "kappa", (0, 1), rng(), permutations=99)
    # Neither topic is in (23/25)^25 = .124 of all resamples, and in .13 of these.
    assert (found.difference.low, found.difference.reason) == (None, "undefined on 13% of resampled topics")


def test_an_exchange_without_a_kappa_counts_as_extreme() -> None:
    A = np.array([[[1, 0], [0, 1]], [[2, 0], [0, 0]]])
    B = np.array([[[0, 0], [0, 0]], [[1, 1], [0, 0]]])
    # None or both exchanged: kappa 1 against 0. One of them: somebody is left with a's table of topic 2, which has
    # only one cell and so no kappa.
    (found,) = compare({("a", "b"): (A, B)}, "kappa", (0, 1), rng())
    assert found.difference.value == pytest.approx(1)
    assert found.p == 1


def test_weighted_tables_are_compared_as_counts_are() -> None:
    A, B = judges(1, 12, 2)
    (counted,) = compare({("a", "b"): (A, B)}, "wkappa", GRADES, rng(), permutations=99)
    (weighted,) = compare({("a", "b"): (A / 8, B / 8)}, "wkappa", GRADES, rng(), permutations=99)
    assert (weighted.p, weighted.exact) == (counted.p, counted.exact)
    assert weighted.difference.low == pytest.approx(counted.difference.low)
    one_grade = np.zeros((12, 3, 3))
    one_grade[:, 1, 1] = 1 / 8
    (nothing,) = compare({("a", "b"): (A / 8, one_grade)}, "kappa", GRADES, rng())
    assert nothing.difference.reason == "b: both raters gave one and the same grade throughout"


def test_no_pairs_no_comparisons() -> None:
    assert compare({}, "wkappa", GRADES, rng()) == ()


def test_elimination_looks_at_candidates_alone_and_keeps_whom_it_cannot_compare() -> None:
    tables = {"a": right_and_wrong([4] * 8), "b": right_and_wrong([3, 4] * 4), "c": right_and_wrong([0, 1] * 4)}
    nothing = np.zeros((8, 2, 2), dtype=np.int64)
    pairs = {(x, y): (tables[x], tables[y]) for x, y in itertools.combinations("abc", 2)}
    pairs["a", "d"] = nothing, nothing
    found = comparison.compare(pairs, "percent", (0, 1), rng())
    # a - b is 1 0 1 0 …: |±1 ±1 ±1 ±1| = 4 for 2 of 16 exchanges. c is behind on every topic.
    assert found.best == {"a", "b", "d"}
    assert comparison.compare(pairs, "percent", (0, 1), rng(), candidates=["b", "c"]).best == {"b"}
    # The least distance is the best.
    assert comparison.compare(pairs, "mae", (0, 1), rng()).best == {"a", "b", "d"}
