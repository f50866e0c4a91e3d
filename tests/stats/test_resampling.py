import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, PairMean, point
from judge.stats.discrimination import auc, spearman
from judge.stats.means import mean_interval
from judge.stats.resampling import item_draws, jackknife_interval, resampled, spread, topic_draws, undefined_too_often
from judge.stats.tables import Undefined, confusion, topic_tables
from tests.stats.test_agreement import COHEN, llmjudge_tables

GRADES = (0, 1, 2, 3)
MEANS = tuple(name for name, statistic in STATISTICS.items() if isinstance(statistic.formula, PairMean))
COEFFICIENTS = tuple(name for name in STATISTICS if name not in MEANS)


def topics_of_a_noisy_judge(T: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tables = np.zeros((T, 4, 4), dtype=np.int64)
    for t in range(T):
        z = rng.normal(0, 0.5) + rng.normal(0, 0.9, 7)
        human, judge = (np.digitize(x, [-0.7, 0.2, 1]) for x in (z, z + rng.normal(0, 0.4) + rng.normal(0, 0.7, 7)))
        np.add.at(tables[t], (human, judge), 1)
    return tables


def items_of(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Topic, human and judge code of every item."""
    topics, human, judge = np.repeat(np.argwhere(tables >= 0), tables.reshape(-1), axis=0).T
    return topics, human, judge


def test_draws_of_topics_have_as_many_topics_as_there_are() -> None:
    draws = topic_draws(7, 500, np.random.default_rng(1))
    assert draws.shape == (500, 7)
    assert (draws.sum(axis=1) == 7).all()
    # A count is binomial(7, 1/7), with variance 6/7.
    assert draws.var() == pytest.approx(6 / 7, abs=0.06)


def test_draws_of_many_topics_are_those_of_one_call() -> None:
    # Four rows at a time, of 200,000 numbers together.
    draws = topic_draws(50_000, 9, np.random.default_rng(1))
    at_once = np.random.default_rng(1).multinomial(50_000, np.full(50_000, 1 / 50_000), size=9)
    assert draws.itemsize == 4
    assert np.array_equal(draws, at_once)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wkappa", "alpha_ordinal", "tau_b"])
def test_interval_equals_resampling_whole_topics_item_by_item(name: str) -> None:
    tables = topics_of_a_noisy_judge(12, seed=3)
    found = resampled(name, tables, GRADES, np.random.default_rng(1), replicates=4000).estimate
    rng = np.random.default_rng(99)
    naive = []
    for _ in range(3000):
        C = np.zeros((4, 4), dtype=np.int64)
        for t in rng.integers(0, 12, 12):
            C += tables[t]
        naive.append(STATISTICS[name](C[None], GRADES)[0])
    value = point(name, tables.sum(axis=0), GRADES)
    # Resamples of 12 topics vary by 11/12 of what 12 topics do.
    width = 2.200985 * math.sqrt(12 / 11) * np.std(naive, ddof=1) / (1 - value**2)
    assert found.value == value
    assert found.low == pytest.approx(math.tanh(math.atanh(value) - width), abs=0.015)
    assert found.high == pytest.approx(math.tanh(math.atanh(value) + width), abs=0.015)
    assert (found.n, found.topics, found.reason) == (84, 12, None)


def test_spread_of_resampled_items_is_near_the_analytic_standard_error() -> None:
    # Fleiss, Cohen & Everitt (1969) on Cohen's table of 200: .051002.
    draws = item_draws(COHEN, 20_000, np.random.default_rng(1))
    found = spread(STATISTICS["kappa"](draws, (1, 2, 3)), 200)
    assert cohens_kappa(COHEN).std_kappa == pytest.approx(0.051002, abs=5e-7)
    assert found == pytest.approx(0.051002, rel=0.04)


def test_undefined_replicates_are_left_out_of_the_spread() -> None:
    assert spread(np.array([1.0, np.nan, 3.0]), 9) == pytest.approx(math.sqrt(9 / 8) * math.sqrt(2))
    assert spread(np.array([np.nan, 3.0]), 9) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_means_over_pairs_have_the_interval_of_a_mean(items: list[tuple[int, int, int]]) -> None:
    tables = np.stack([confusion([(h, j) for t, h, j in items if t == topic], GRADES) for topic in range(6)])
    for name in MEANS:
        found = resampled(name, tables, GRADES, np.random.default_rng(1))
        scores = STATISTICS[name].formula.scores(GRADES)
        values, topics = [float(scores[h, j]) for _, h, j in items], [str(t) for t, _, _ in items]
        bounds = (scores.min(), scores.max())
        expected = mean_interval(values, topics, bounds=bounds, what="pairs")
        each = mean_interval(values, [str(i) for i in range(len(items))], bounds=bounds, what="pairs")
        if len(set(values)) == 1:
            # What has no variation has another interval.
            continue
        assert (found.estimate.n, found.estimate.topics) == (expected.n, expected.topics)
        assert found.estimate.reason == expected.reason
        assert (found.item.low is None) == (each.low is None)
        for one, other in ((found.estimate, expected), (found.item, each)):
            assert one.value == pytest.approx(other.value, abs=1e-12)
            assert one.low == pytest.approx(other.low, abs=1e-10)
            assert one.high == pytest.approx(other.high, abs=1e-10)


@pytest.mark.parametrize("name", ["percent", "bias"])
def test_design_effect_of_copies_is_their_number(name: str) -> None:
    rng = np.random.default_rng(2)
    tables = np.zeros((40, 4, 4), dtype=np.int64)
    tables[np.arange(40), rng.integers(0, 4, 40), rng.integers(0, 4, 40)] = 6
    # Σ (6 d)² T/(T - 1) over Σ 6 d² N/(N - 1), with T = 40 and N = 240.
    found = resampled(name, tables, GRADES, np.random.default_rng(1)).design_effect
    assert found == pytest.approx(6 * (40 / 39) / (240 / 239))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wkappa", "ac1"])
def test_design_effect_of_copies_is_near_their_number(name: str) -> None:
    rng = np.random.default_rng(2)
    tables = np.zeros((60, 4, 4), dtype=np.int64)
    human = rng.integers(0, 4, 60)
    tables[np.arange(60), human, np.where(rng.random(60) < 0.6, human, rng.integers(0, 4, 60))] = 6
    found = resampled(name, tables, GRADES, np.random.default_rng(1), replicates=8000)
    assert found.design_effect == pytest.approx(6, rel=0.15)
    assert found.item.high - found.item.low < found.estimate.high - found.estimate.low


@pytest.mark.long
@pytest.mark.parametrize("name", ["wkappa", "ac2", "percent"])
def test_interval_covers_the_truth_in_about_95_of_100_worlds(name: str) -> None:
    truth = point(name, topics_of_a_noisy_judge(20_000, seed=0).sum(axis=0), GRADES)
    rng = np.random.default_rng(5)
    found = [
        resampled(name, topics_of_a_noisy_judge(20, seed), GRADES, rng, replicates=500).estimate
        for seed in range(1, 301)
    ]
    covered = sum(one.low <= truth <= one.high for one in found)
    assert 0.90 * 300 <= covered <= 0.98 * 300


@pytest.mark.parametrize("name", STATISTICS)
def test_topics_without_pairs_change_nothing(name: str) -> None:
    tables = topics_of_a_noisy_judge(8, seed=4)
    with_empty = np.concatenate([tables, np.zeros((3, 4, 4), dtype=np.int64)])
    found = resampled(name, tables, GRADES, np.random.default_rng(7))
    assert resampled(name, with_empty, GRADES, np.random.default_rng(7)) == found
    assert found.estimate.low < found.estimate.value < found.estimate.high
    assert found.design_effect > 0


@pytest.mark.parametrize("name", STATISTICS)
def test_the_same_generator_gives_the_same_interval(name: str) -> None:
    tables = topics_of_a_noisy_judge(8, seed=4)
    first, again, other = (resampled(name, tables, GRADES, np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert first == again
    assert (first == other) == (STATISTICS[name].interval != "fisher")


def nine(*pairs: tuple[int, int]) -> np.ndarray:
    return np.stack([confusion(pairs, GRADES)] * 9)


@pytest.mark.parametrize(
    ("tables", "value", "topics", "reason"),
    [
        (np.zeros((3, 4, 4), dtype=np.int64), None, 0, "no pairs"),
        (topics_of_a_noisy_judge(4, seed=1), 0.5, 4, "fewer than 5 topics"),
        (nine((2, 2)), None, 9, "both raters gave one and the same grade throughout"),
        (nine((0, 0), (3, 3), (1, 2)), 0.9, 9, "no variation between topics"),
        (np.concatenate([topics_of_a_noisy_judge(4, seed=1), np.zeros((9, 4, 4), dtype=np.int64)]), 0.5, 4,
         "fewer than 5 topics"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["wkappa", "alpha_ordinal", "ac2"])
def test_no_interval_without_a_reason(name, tables, value, topics, reason) -> None:
    found = resampled(name, tables, GRADES, np.random.default_rng(1))
    one = found.estimate
    assert (one.low, one.high, one.n, one.topics, one.reason) == (None, None, tables.sum(), topics, reason)
    assert one.value == (None if value is None else pytest.approx(value, abs=0.3))
    assert found.design_effect is None


def test_without_an_error_the_interval_is_exact() -> None:
    # Of all topics 1 - .05^(1/9) may have an error if none of nine has one; of all items 1 - .05^(1/18).
    q, of_items = 1 - 0.05 ** (1 / 9), 1 - 0.05 ** (1 / 18)
    assert (q, of_items) == pytest.approx((0.283129, 0.153318), abs=1e-6)
    found = resampled("wkappa", nine((0, 0), (3, 3)), GRADES, np.random.default_rng(1))
    # There 0 is called 3, and 3 is called 0: κ = 1 - 2 q where both grades are as frequent.
    assert found.estimate == Estimate(1, pytest.approx(1 - 2 * q), 1, 18, 9)
    assert found.item == Estimate(1, pytest.approx(1 - 2 * of_items), 1, 18, 9)
    assert found.design_effect is None
    percent = resampled("percent", nine((0, 0), (3, 3)), GRADES, np.random.default_rng(1)).estimate
    assert (percent.value, percent.low, percent.high) == (1, pytest.approx(1 - q), 1)
    # 0 may be called 3 or 3 be called 0, but not both in one direction: half of the items move by 3.
    bias = resampled("bias", nine((0, 0), (3, 3)), GRADES, np.random.default_rng(1)).estimate
    assert (bias.low, bias.high) == pytest.approx((-1.5 * q, 1.5 * q))
    # A judge who is one too high throughout: a share q may be right up to the top, or down to the bottom.
    high = resampled("bias", nine((0, 1), (2, 3)), GRADES, np.random.default_rng(1)).estimate
    assert (high.low, high.high) == pytest.approx((1 - q + q * -1.0, 1 - q + q * 2.0), abs=0.01)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize(("T", "each"), [(20, 5), (30, 12), (100, 1)])
def test_no_error_is_never_worth_less_than_the_worst_one(name: str, T: int, each: int) -> None:
    places = np.arange(T * each)
    human, topics = places * 7 // 5 % 4, places // each
    tables = topic_tables(human, human, topics, 4, T)
    none = resampled(name, tables, GRADES, np.random.default_rng(1)).estimate
    lows, highs = [], []
    for item in range(0, T * each, 1 + T * each // 30):
        for end in {0, 3} - {int(human[item])}:
            said = human.copy()
            said[item] = end
            one = resampled(name, topic_tables(human, said, topics, 4, T), GRADES, np.random.default_rng(1)).estimate
            lows.append(one.low if one.low is not None else -math.inf)
            highs.append(one.high if one.high is not None else math.inf)
    # Topics hold different grades, so one error weighs a little more in one than in another.
    assert none.low >= min(lows) - 0.02
    assert none.high <= max(highs) + 0.02
    assert none.low <= none.value <= none.high


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        (nine((0, 0), (3, 3))[:4], "fewer than 5 topics"),
        (np.stack([confusion([(0, 0), (3, 3)], GRADES)] * 5 + [confusion([(0, 0), (3, 3)] * 40, GRADES)]),
         "most items are of one topic"),
        (np.stack([confusion([(0, 0)] * 3, GRADES)] * 8 + [confusion([(3, 3)], GRADES)] * 4),
         "fewer than 5 items off the commonest grade"),
    ],
)  # fmt: skip
def test_perfect_agreement_of_too_little_has_no_interval(tables: np.ndarray, reason: str) -> None:
    found = resampled("wkappa", tables, GRADES, np.random.default_rng(1)).estimate
    assert (found.value, found.low, found.high, found.reason) == (1, None, None, reason)


@pytest.mark.long
@pytest.mark.parametrize("whole_topics", [False, True])
def test_no_error_says_no_more_than_it_knows(whole_topics: bool) -> None:
    """Of 400 worlds with errors so rare that many show none, the lower end lies above the truth in 5 % at most."""
    rng, share, missed = np.random.default_rng(8), 0.14 if whole_topics else 0.02, 0
    for _ in range(400):
        human = rng.integers(0, 2, 100)
        topics = np.repeat(np.arange(20), 5)
        wrong = (rng.random(20) < share)[topics] if whole_topics else rng.random(100) < share
        tables = topic_tables(human, np.where(wrong, 1 - human, human), topics, 2, 20)
        low = resampled("kappa", tables, (0, 1), rng, replicates=200).estimate.low
        # κ = 1 - 2 p where both grades are as frequent and p of them are wrong.
        missed += low is not None and low > 1 - 2 * share
    assert missed <= 0.075 * 400


def test_a_share_that_cannot_vary_has_no_interval() -> None:
    tables = np.stack([confusion([(0, 0), (1, 1)], (0, 1))] * 9)
    found = resampled("within_one", tables, (0, 1), np.random.default_rng(1))
    assert (found.estimate.low, found.estimate.reason) == (None, "all pairs equal")


def test_perfect_disagreement_has_no_interval() -> None:
    found = resampled("wkappa", nine((0, 3), (3, 0)), GRADES, np.random.default_rng(1))
    assert found.estimate == Estimate(-1.0, None, None, 18, 9, "perfect disagreement")
    assert found.item == Estimate(-1.0, None, None, 18, 9, "perfect disagreement")


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_items_get_an_interval_where_topics_are_too_few(name: str) -> None:
    found = resampled(name, topics_of_a_noisy_judge(2, seed=9), GRADES, np.random.default_rng(1))
    assert found.estimate.reason == "fewer than 5 topics"
    assert found.item.low < found.item.value < found.item.high
    few = resampled(name, nine((0, 0), (1, 2))[:2], GRADES, np.random.default_rng(1))
    assert few.item.reason == "fewer than 5 items"


def test_resamples_that_agree_throughout_count_for_ac1() -> None:
    tables = np.zeros((25, 2, 2), dtype=np.int64)
    tables[:, 1, 1] = 4
    tables[0, 0, 1] = 1
    found = resampled("ac1", tables, (0, 1), np.random.default_rng(1)).estimate
    # Without topic 0 all agree, and AC1 is 1 by its formula, so that topic decides how wide the interval is.
    assert 0.9 < found.low < found.value < found.high < 1
    # Kappa of most resamples is 0 or undefined: it gets no such luck.
    assert resampled("kappa", tables, (0, 1), np.random.default_rng(1)).estimate.value == 0


def one_in_two(T: int, varied: int) -> np.ndarray:
    """Topics of ten pairs (0, 0), but for the first few, which have each of the four pairs and more of what agrees."""
    tables = np.zeros((T, 2, 2), dtype=np.int64)
    tables[:, 0, 0] = 10
    tables[:varied] = [[4, 1], [1, 4]]
    return tables


@pytest.mark.parametrize("name", ["kappa", "wkappa", "alpha_ordinal", "tau_b"])
def test_one_topic_with_all_the_variation_gives_no_interval(name: str) -> None:
    found = resampled(name, one_in_two(25, 1), (0, 1), np.random.default_rng(1))
    # 36 of 100 resamples lack the topic; in the others its weight alone differs.
    assert found.estimate.value is not None
    assert (found.estimate.low, found.estimate.reason) == (None, "undefined without one of the topics")
    assert found.design_effect is None


def test_two_topics_with_all_the_variation_give_no_interval_either() -> None:
    found = resampled("kappa", one_in_two(25, 2), (0, 1), np.random.default_rng(1)).estimate
    # (23/25)^25 = .124.
    assert (found.low, found.reason) == (None, "undefined on 12% of resampled topics")
    assert resampled("kappa", one_in_two(25, 5), (0, 1), np.random.default_rng(1)).estimate.low is not None


@pytest.mark.parametrize(
    ("undefined", "without", "reason"),
    [
        (0, None, None),
        (5, None, None),
        (6, None, "undefined on 6% of resampled topics"),
        (0, [0.5, math.nan], "undefined without one of the topics"),
        (0, [0.5, 0.4], None),
    ],
)
def test_so_many_resamples_may_be_undefined(undefined: int, without: list[float] | None, reason: str | None) -> None:
    replicates = np.where(np.arange(100) < undefined, np.nan, 0.5)
    left = None if without is None else np.array(without)
    assert undefined_too_often(replicates, "topics", left) == reason


def drawn_by_label(T: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Codes, topics and probabilities of gold that holds all that the judge calls positive and a tenth of the rest."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.arange(T), 60)
    z = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 1, 60 * T)
    human = (z > 1.2).astype(int)
    judge = (z + rng.normal(0, 0.3, T)[topics] + rng.normal(0, 0.7, 60 * T) > 1.2).astype(int)
    p = np.where(judge == 1, 1.0, 0.1)
    taken = rng.random(60 * T) < p
    return human[taken], judge[taken], topics[taken], p[taken]


@pytest.mark.long
def test_gold_drawn_by_the_judge_s_label_gives_the_kappa_of_what_it_was_drawn_from() -> None:
    human, judge, topics, p = drawn_by_label(20_000, seed=0)
    truth = point("kappa", topic_tables(human, judge, topics, 2, 20_000, 1 / p).sum(axis=0), (0, 1))
    weighted, plain, reasons = [], [], set()
    for seed in range(1, 201):
        human, judge, topics, p = drawn_by_label(30, seed)
        tables = [topic_tables(human, judge, topics, 2, 30, w) for w in (1 / p, None)]
        (one, other) = (resampled("kappa", C, (0, 1), np.random.default_rng(1), replicates=300) for C in tables)
        weighted.append(one.estimate.low <= truth <= one.estimate.high)
        plain.append(other.estimate.low <= truth <= other.estimate.high)
        reasons.add((one.estimate.n == len(human), one.item.low, one.item.reason, one.design_effect))
    # 95 % less three standard errors, and less what 30 topics are known to lose.
    assert np.mean(weighted) >= 0.88
    assert np.mean(plain) <= 0.2
    assert reasons == {(True, None, "items have unequal weights, or two orders each", None)}


@pytest.mark.parametrize("name", STATISTICS)
def test_weights_that_are_whole_numbers_are_items_that_many_times(name: str) -> None:
    counts = topics_of_a_noisy_judge(12, seed=3)
    found, same = (resampled(name, C, GRADES, np.random.default_rng(1)) for C in (counts, counts.astype(np.float64)))
    assert same.estimate.value == pytest.approx(found.estimate.value, abs=1e-12)
    assert (same.estimate.low, same.estimate.high) == pytest.approx((found.estimate.low, found.estimate.high))
    assert (same.estimate.n, same.estimate.topics) == (84, 12)
    assert (same.item.value, same.item.low, same.item.reason) == (
        pytest.approx(found.estimate.value), None, "items have unequal weights, or two orders each"
    )  # fmt: skip


def test_ac2_has_the_jackknife_s_error_on_fishers_z() -> None:
    tables = topics_of_a_noisy_judge(12, seed=3)
    found = resampled("ac2", tables, GRADES, np.random.default_rng(1))
    C = tables.sum(axis=0)
    left = [STATISTICS["ac2"]((C - table)[None], GRADES)[0] for table in tables]
    # √(T/(T-1)) √((T-1)/T Σ (θ_(t) - θ̄)²), and 2.200985 is t with 11 degrees of freedom.
    width = 2.200985 * math.sqrt(12 * np.var(left)) / (1 - found.estimate.value**2)
    ends = np.tanh(np.arctanh(found.estimate.value) + np.array([-width, width]))
    assert (found.estimate.low, found.estimate.high) == pytest.approx(tuple(ends), abs=1e-6)
    items = [confusion([(h, j)], GRADES) for _, h, j in zip(*items_of(tables), strict=True)]
    left = [STATISTICS["ac2"]((C - item)[None], GRADES)[0] for item in items]
    width = scipy.stats.t.ppf(0.975, 83) * math.sqrt(84 * np.var(left)) / (1 - found.item.value**2)
    assert found.item.low == pytest.approx(math.tanh(math.atanh(found.item.value) - width), abs=1e-9)


def test_kappa_needs_five_items_off_the_commonest_grade() -> None:
    tables = np.zeros((12, 2, 2), dtype=np.int64)
    tables[:, 0, 0] = 7
    tables[:4, 1, 1] = 1
    tables[4:8, 0, 1] = 1
    few = resampled("kappa", tables, (0, 1), np.random.default_rng(1))
    assert (few.estimate.low, few.estimate.reason) == (None, "fewer than 5 items off the commonest grade")
    assert few.item.reason == few.estimate.reason
    # Gwet's coefficients are made for such tables.
    assert resampled("ac1", tables, (0, 1), np.random.default_rng(1)).estimate.low is not None
    tables[8, 1, 0] = 1
    assert resampled("kappa", tables, (0, 1), np.random.default_rng(1)).estimate.low is not None


def test_topics_of_unequal_size_leave_fewer_degrees_of_freedom() -> None:
    tables = topics_of_a_noisy_judge(10, seed=4)
    found = resampled("wkappa", tables, GRADES, np.random.default_rng(1), replicates=500).estimate
    same = np.concatenate([tables[:9], 30 * tables[9:]])
    wide = resampled("wkappa", same, GRADES, np.random.default_rng(1), replicates=500).estimate
    # 9 topics of 7 items and one of 210: G* = 273² / (9 * 7² + 210²) = 1.67.
    assert found.low is not None
    assert (wide.low, wide.reason) == (None, "most items are of one topic")
    some = np.concatenate([tables[:5], 3 * tables[5:]])
    # 5 of 7 and 5 of 21: G* = 140² / (5 * 49 + 5 * 441) = 8.
    draws = topic_draws(10, 500, np.random.default_rng(1)).astype(float)
    replicates = STATISTICS["wkappa"]((draws @ some.reshape(10, -1)).reshape(-1, 4, 4), GRADES)
    one = resampled("wkappa", some, GRADES, np.random.default_rng(1), replicates=500).estimate
    width = scipy.stats.t.ppf(0.975, 7) * replicates.std(ddof=1) * math.sqrt(10 / 9) / (1 - one.value**2)
    assert one.low == pytest.approx(math.tanh(math.atanh(one.value) - width), abs=1e-9)


def test_an_end_may_reach_farther_below_than_above() -> None:
    tables = topics_of_a_noisy_judge(12, seed=3)
    for name in ("wkappa", "ac2", "percent"):
        plain, longer = (
            resampled(name, tables, GRADES, np.random.default_rng(1), below=below).estimate for below in (None, 4.0)
        )
        assert longer.low < plain.low
        assert (longer.high, longer.value) == (plain.high, plain.value)


def test_jackknife_of_a_mean_with_one_item_a_topic_is_the_t_interval() -> None:
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    found = jackknife_interval(lambda kept: float(x[kept].mean()), np.array([4, 8, 15, 16, 23]), bounds=(0, 1))
    expected = mean_interval(x.tolist(), list("abcde"), bounds=(0, 1))
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert (found.n, found.topics, found.reason) == (5, 5, None)


@pytest.mark.slow
def test_jackknife_of_spearman_is_near_the_bootstrap_over_topics() -> None:
    rng = np.random.default_rng(3)
    topics = np.repeat(np.arange(40), 6)
    x = rng.normal(0, 0.7, 40)[topics] + rng.normal(0, 1, 240)
    y = x + rng.normal(0, 0.7, 40)[topics] + rng.normal(0, 0.7, 240)
    found = jackknife_interval(lambda kept: spearman(x[kept], y[kept]), topics)
    replicates = []
    for _ in range(1000):
        kept = (rng.integers(0, 40, 40)[:, None] * 6 + np.arange(6)).ravel()
        replicates.append(spearman(x[kept], y[kept]))
    # 2.022691 is t with 39 degrees of freedom.
    assert (found.high - found.low) / 2 == pytest.approx(2.022691 * np.std(replicates), rel=0.15)


def test_jackknife_stays_within_its_bounds() -> None:
    scores, positive = np.array([1, 2, 3, 4, 5, 0.5]), np.array([False, False, True, True, True, True])
    found = jackknife_interval(lambda kept: auc(scores[kept], positive[kept]), np.arange(6), bounds=(0.5, 1))
    assert found.value == 6 / 8
    assert 0.5 < found.low < 6 / 8 < found.high < 1


@pytest.mark.parametrize(
    ("scores", "positive", "topics", "expected"),
    [
        ([1, 2], [True, True], [0, 1], Estimate(None, None, None, 2, 2, "no negative items")),
        ([1, 2], [True, False], [0, 1], Estimate(0.0, None, None, 2, 2, "fewer than 5 topics")),
        ([1, 2, 3, 4, 5], [0, 0, 0, 0, 1], [1, 2, 3, 4, 5],
         Estimate(1.0, None, None, 5, 5, "without topic 5: no positive items")),
        ([1, 2] * 5, [0, 1] * 5, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
         Estimate(1.0, None, None, 10, 5, "no variation between topics")),
    ],
)  # fmt: skip
def test_no_jackknife_interval_without_a_reason(scores, positive, topics, expected) -> None:
    def statistic(kept: np.ndarray) -> float | Undefined:
        return auc(np.array(scores)[kept], np.array(positive)[kept])

    assert jackknife_interval(statistic, np.array(topics)) == expected


def test_topics_make_the_interval_of_a_real_judge_several_times_wider(shared: Path) -> None:
    found = resampled("kappa", llmjudge_tables(shared, "willia-umbrela1"), GRADES, np.random.default_rng(1))
    # The percentile interval over 25 topics is [.167, .390]; over 4,423 items as if independent [.265, .307].
    assert found.estimate.value == pytest.approx(0.286272, abs=5e-7)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((0.167, 0.390), abs=0.02)
    assert (found.item.low, found.item.high) == pytest.approx((0.265, 0.307), abs=0.002)
    assert 17 <= found.design_effect <= 40


def test_more_topics_than_a_jackknife_leaves_out_are_left_out_in_groups() -> None:
    values = np.random.default_rng(2).normal(size=6000)
    topics = np.repeat(np.arange(3000), 2)
    calls: list[int] = []

    def mean(kept: NDArray[np.bool_]) -> float:
        calls.append(int(kept.sum()))
        return float(values[kept].mean())

    found = jackknife_interval(mean, topics, bounds=(-9, 9))
    # All items, then without each of 1,000 groups of three topics.
    assert calls == [6000] + 1000 * [5994]
    assert (found.n, found.topics) == (6000, 3000)
    assert found.low is not None
    assert found.high is not None
    # The standard error of a mean of 3,000 topics, and t of 999 degrees of freedom.
    error = values.reshape(3000, 2).mean(axis=1).std(ddof=1) / 3000**0.5
    assert (found.high - found.low) / 2 == pytest.approx(1.9623 * error, rel=0.05)
    calls.clear()
    jackknife_interval(mean, topics % 1000, bounds=(-9, 9))
    assert calls == [6000] + 1000 * [5994]


def test_a_group_without_which_a_statistic_is_undefined_is_named_as_some_topics() -> None:
    def only_with_the_first(kept: NDArray[np.bool_]) -> float | Undefined:
        return 1.0 if kept[0] else Undefined("no positive items")

    found = jackknife_interval(only_with_the_first, np.arange(1500))
    assert (found.value, found.low, found.reason) == (1.0, None, "without some topics: no positive items")
    found = jackknife_interval(only_with_the_first, np.arange(1000))
    assert found.reason == "without topic 0: no positive items"
