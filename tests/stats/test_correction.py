import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.special import digamma, polygamma

from judge.stats.correction import Corrected, correct, tuned_weight
from judge.stats.gold_sample import Prior, RunGrades, fit_prior, inverse_trigamma
from judge.stats.means import clopper_pearson, t_quantile
from judge.stats.separation import compact_letters, places, range_quantile, separated

SCALE = (0, 3)


def run(judged, gold, pi=None, topics=None, strata=None, family=None) -> RunGrades:
    """A run of one response a turn; `gold` by place, `pi` the same for all or by place."""
    f = np.array(judged, dtype=np.float64)
    y = np.full(len(f), np.nan)
    for place, grade in gold.items():
        y[place] = grade
    inclusion = np.full(len(f), len(gold) / max(len(f), 1) if pi is None else np.nan)
    if pi is not None:
        for place in gold:
            inclusion[place] = pi[place] if isinstance(pi, dict) else pi
    codes = np.arange(len(f)) if topics is None else np.array(topics)
    return RunGrades(f, y, inclusion, codes, np.arange(len(f)), None if strata is None else np.array(strata), family)


def one(grades: RunGrades, target="pool", bounds=SCALE, **options) -> Corrected:
    return correct([grades], target=target, bounds=bounds, **options)[0]


JUDGED = [3, 2, 3, 1, 2, 3, 3, 0, 2, 1, 3, 3, 2, 1, 3, 2, 3, 3, 1, 2]
GOLD = {0: 2, 1: 2, 2: 3, 3: 0, 4: 1, 5: 3, 6: 2, 7: 0, 8: 1, 9: 1}


def test_a_simple_random_sample_has_the_textbook_interval() -> None:
    found = one(run(JUDGED, GOLD))
    y, f = np.array(list(GOLD.values())), np.array(JUDGED[:10])
    n, N = 10, 20
    weight = np.cov(y, f)[0, 1] / np.var(f, ddof=1)
    assert (found.method, found.n, found.df) == ("ppi++", n, n - 2)
    assert found.weight == pytest.approx(weight)
    e = y - weight * f
    assert found.value == pytest.approx(weight * np.mean(JUDGED) + e.mean())
    V = (1 - n / N) * ((e - e.mean()) ** 2).sum() / (n - 2) / n
    assert found.se == pytest.approx(math.sqrt(V))
    assert found.low == pytest.approx(found.value - t_quantile(0.95, n - 2) * math.sqrt(V))
    assert found.high == pytest.approx(found.value + t_quantile(0.95, n - 2) * math.sqrt(V))
    assert found.effective_n == pytest.approx(n * ((y - y.mean()) ** 2).sum() / ((e - e.mean()) ** 2).sum())
    assert found.bias == pytest.approx((f - y).mean())


@pytest.mark.slow
def test_the_point_is_that_of_ppi_python_with_the_pool_as_its_unlabeled_data() -> None:
    ppi_py = pytest.importorskip("ppi_py")
    pi = {place: 0.2 + 0.05 * place for place in GOLD}
    w = np.array([1 / pi[place] for place in GOLD])
    for inclusion, weights in ((None, None), (pi, w)):
        found = one(run(JUDGED, GOLD, inclusion))
        theirs = ppi_py.ppi_mean_pointestimate(
            np.array(list(GOLD.values()), dtype=float), np.array(JUDGED[:10], dtype=float),
            np.array(JUDGED, dtype=float), lam=found.weight, w=weights,
        )  # fmt: skip
        assert found.value == pytest.approx(float(theirs[0]), abs=1e-10)


def test_weights_undo_a_sample_that_prefers_some_responses() -> None:
    """Of 4 responses judged 0 all have gold, of 16 judged 1 eight have: the mean is that of the strata, weighted."""
    judged = [0] * 4 + [1] * 16
    gold = dict(enumerate([1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1]))
    pi = dict.fromkeys(range(4), 1.0) | dict.fromkeys(range(4, 12), 0.5)
    found = one(run(judged, gold, pi), bounds=(0, 1))
    assert found.weight == 0.0
    assert found.value == pytest.approx((4 * 1 / 2 + 16 * 3 / 4) / 20)


def test_gold_chosen_with_certainty_adds_no_variance() -> None:
    gold = dict(enumerate([3, 0, 2, 2, 1, 3, 1, 2, 0, 3, 2, 1]))
    judged = [2, 1] * 8
    pi = dict.fromkeys(range(4), 1.0) | dict.fromkeys(range(4, 12), 8 / 12)
    w = np.array([1.0] * 4 + [1.5] * 8) / 16
    y = np.array(list(gold.values()))
    f = np.array(judged[:12])
    assert tuned_weight([(y, f, w)]) == 0.0
    V = (1 - 8 / 12) * 1.5**2 / 16**2 * 8 / (8 - 2) * sum((y[4:] - y[4:].mean()) ** 2)
    found = one(run(judged, gold, pi))
    assert (found.se, found.df, found.drawn) == (pytest.approx(math.sqrt(V)), 8 - 2, 8)
    strata = [0] * 4 + [1] * 12
    again = one(run(judged, gold, pi, strata=strata))
    assert (again.se, again.df) == (pytest.approx(found.se), found.df)


def test_drawn_gold_is_weighed_by_its_chances() -> None:
    judged, y = [2, 1] * 8, np.array([3, 0, 2, 2, 1, 3, 1, 2, 0, 3])
    pi = np.array([1, 1, 0.8, 0.4, 0.5, 0.5, 0.25, 0.4, 0.8, 0.5])
    found = one(run(judged, dict(enumerate(y)), dict(enumerate(pi))))
    w = 1 / pi / (1 / pi).sum()
    e = y - found.weight * np.array(judged[:10])
    q, u = 1 - pi, w * (e - w @ e)
    V = 8 / (8 - 2) * (q * (u - q @ u / q.sum()) ** 2).sum()
    assert (found.se, found.df) == (pytest.approx(math.sqrt(V)), 6)


def test_few_drawn_grades_share_a_variance_however_many_are_certain() -> None:
    certain = dict.fromkeys(range(10), 1.0)
    grades = dict(enumerate([3, 2] * 5))
    a = run([3, 2] * 20, grades | {10: 1, 11: 2, 12: 3}, certain | dict.fromkeys((10, 11, 12), 0.1))
    alone = one(a)
    e = np.array([1 - 3, 2 - 2, 3 - 3])
    s2 = ((e - e.mean()) ** 2).sum() / 2
    assert (alone.method, alone.n, alone.drawn, alone.df) == ("ppi++ pooled", 13, 3, 2)
    assert alone.se == pytest.approx(math.sqrt(s2 * 3 * 0.9 * (10 / 40) ** 2))
    b = run([3, 2] * 20, grades | {10: 1}, certain | {10: 1 / 30})
    assert (one(b).low, one(b).reason) == (
        None, "too few gold grades were drawn, in this run and all others, for an interval",
    )  # fmt: skip
    shared = correct([a, b], target="pool", bounds=SCALE)[1]
    assert (shared.df, shared.se) == (2, pytest.approx(math.sqrt(s2 * (1 - 1 / 30) * (30 / 40) ** 2)))


@pytest.mark.long
@pytest.mark.parametrize(("certain", "left", "m"), [(10, 30, 3), (15, 60, 3), (20, 40, 4), (30, 40, 5), (5, 35, 10)])
def test_intervals_hold_the_truth_where_part_of_the_gold_is_certain(certain: int, left: int, m: int) -> None:
    rng = np.random.default_rng(12)
    N = certain + left
    covered = []
    for _ in range(400):
        z = rng.normal(size=N)
        y, f = np.digitize(z, [-0.7, 0.2, 1]), np.digitize(z + 0.4 + rng.normal(0, 0.7, N), [-0.7, 0.2, 1])
        picks = [*range(certain), *(certain + rng.permutation(left)[:m]).tolist()]
        pi = {place: 1.0 if place < certain else m / left for place in picks}
        found = one(run(f, {place: int(y[place]) for place in picks}, pi, strata=[1] * N))
        covered.append(found.low <= y.mean() <= found.high)
    assert np.mean(covered) >= 0.92


def test_strata_are_centered_one_by_one() -> None:
    judged = [0, 1] * 10
    gold = {0: 0, 2: 1, 4: 0, 6: 1, 8: 0, 1: 3, 3: 2, 5: 3, 7: 3, 9: 2}
    strata = [0, 1] * 10
    found = one(run(judged, gold, 0.5, strata=strata))
    weight = found.weight
    first, second = np.array([0, 1, 0, 1, 0]), np.array([3, 2, 3, 3, 2]) - weight
    squares = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
    assert found.df == 10 - 1 - 2
    assert found.se**2 == pytest.approx(10 / (10 - 1 - 2) * (1 - 0.5) * squares / 100)
    # One with a single gold grade has no center of its own.
    strata = [9] + [0] * 19
    assert one(run(JUDGED, GOLD, strata=strata)) .se == one(run(JUDGED, GOLD)).se  # fmt: skip


def test_a_census_is_exact_and_a_sample_of_topics() -> None:
    found = one(run([3, 3, 2], {0: 1, 1: 2, 2: 2}, 1.0))
    assert (found.method, found.value, found.low, found.high) == ("census", 5 / 3, 5 / 3, 5 / 3)
    assert (found.weight, found.effective_n, found.bias) == (None, None, pytest.approx(1.0))
    found = one(run([3, 3, 2, 0], {0: 1, 1: 2, 2: 2, 3: 0}, 1.0, topics=[0, 0, 1, 2]), "topics")
    psi = [1 + 2 - 2 * 5 / 4, 2 - 5 / 4, 0 - 5 / 4]
    # Topics of 2, 1 and 1 responses count as 4² / (2² + 1 + 1).
    assert (found.method, found.value, found.df) == ("census", 5 / 4, pytest.approx(16 / 6 - 1))
    assert found.se == pytest.approx(math.sqrt(3 / 2 * sum(part**2 for part in psi)) / 4)


def test_topic_intervals_add_up_judge_and_gold_by_topic() -> None:
    topics = [place // 4 for place in range(20)]
    found = one(run(JUDGED, GOLD, topics=topics), "topics")
    f, y = np.array(JUDGED, dtype=float), np.array(list(GOLD.values()))
    e = y - found.weight * f[:10]
    psi = [
        found.weight * (f[4 * t : 4 * t + 4] - f.mean()).sum() / 20
        + sum(e[i] - e.mean() for i in range(10) if i // 4 == t) / 10
        for t in range(5)
    ]
    # Gold is in three topics of the five.
    assert (found.df, found.topics) == (2, 3)
    assert found.se == pytest.approx(math.sqrt(3 / 2 * sum(part**2 for part in psi)))
    fewer = one(run(JUDGED, GOLD, topics=[place // 10 for place in range(10)] + [1, 2] * 5), "topics")
    assert (fewer.low, fewer.reason) == (None, "gold in fewer than 3 topics")
    found = one(run(JUDGED, GOLD, topics=[0, 1] * 10), "topics")
    assert (found.low, found.high, found.reason) == (None, None, "fewer than 3 topics")


def test_few_gold_grades_share_the_variance_of_all_runs() -> None:
    a = run([3, 2, 1, 0, 2, 2], {0: 2, 1: 2, 2: 0})
    b = run([1, 1, 0, 2, 3, 3], {0: 0, 1: 1, 2: 1, 3: 0})
    first, second = correct([a, b], target="pool", bounds=SCALE)
    e = np.array([-1, 0, -1]), np.array([-1, 0, 1, -2])
    s2 = sum(((errors - errors.mean()) ** 2).sum() for errors in e) / (2 + 3)
    assert (first.method, first.weight, first.df) == ("ppi++ pooled", 1.0, 5)
    assert first.value == pytest.approx(10 / 6 - 2 / 3)
    assert first.se == pytest.approx(math.sqrt((1 - 3 / 6) * s2 / 3))
    assert second.se == pytest.approx(math.sqrt((1 - 4 / 6) * s2 / 4))


@pytest.mark.parametrize(("rare", "df"), [(1, 2), (4, 5), (5, 12)])
def test_the_shared_variance_of_skewed_grades_rests_on_the_rare_ones(rare: int, df: int) -> None:
    """Of 6 runs with 3 gold grades each, there are 12 degrees of freedom unless three quarters are equal."""
    y = [0, 1, 2, 0, 1][:rare] + [3] * (18 - rare)
    runs = [run([3, 2] * 4, dict(enumerate(y[place::6]))) for place in range(6)]
    assert {found.df for found in correct(runs, target="pool", bounds=SCALE)} == {df}


def test_two_gold_grades_correct_nothing_unless_the_family_does() -> None:
    kin = [
        run([3, 3, 2, 2], {i: y}, 0.25, family="gpt") for i, y in ((0, 2), (1, 3))
    ]  # fmt: skip
    kin += [run([3, 3, 2, 2], {2: 0, 3: 1}, 0.5, family="gpt"), run([1, 2, 1, 2], {0: 3, 1: 3}, 0.5, family="llama")]
    for found in correct(kin, target="pool", bounds=SCALE):
        assert (found.method, found.value, found.reason) == ("raw", None, "fewer than 3 gold grades")
    *gpt, llama = correct(kin, target="pool", bounds=SCALE, fallback="family")
    errors = [2 - 3, 3 - 3, 0 - 2, 1 - 2]
    assert {found.method for found in gpt} == {"family"}
    assert [found.value for found in gpt] == pytest.approx([10 / 4 + np.mean(errors)] * 3)
    assert (llama.value, llama.reason) == (None, "fewer than 3 gold grades, and too few in its family")


def test_a_family_is_corrected_over_turns_and_topics() -> None:
    """Errors by turn: -1, 0, -2, -1, the last two of one run; by run: -1, 0, -1.5, and 1/2 is the variance within."""
    kin = [run([3, 3, 2, 2], {i: y}, 0.25, family="gpt") for i, y in ((0, 2), (1, 3))]
    kin.append(run([3, 3, 2, 2], {2: 0, 3: 1}, 0.5, family="gpt"))
    first, *_ = correct(kin, target="pool", bounds=(-9, 9), fallback="family")
    tau2 = np.var([-1, 0, -1.5], ddof=1) - 1 / 2 * (1 + 1 + 1 / 2) / 3
    V = 4 / 3 * (0 + 1 + 1 + 0) / 4**2 + tau2 * (1 + 1 / 3)
    assert tau2 > 0
    assert (first.se, first.df) == (pytest.approx(math.sqrt(V)), 2)
    wider, *_ = correct(kin, target="topics", bounds=(-9, 9), fallback="family")
    assert wider.se == pytest.approx(math.sqrt(V + 4 / 3 * 4 * 0.5**2 / 4**2))


@pytest.mark.parametrize(
    ("golds", "reason"),
    [
        ([{0: 2, 1: 1}, {0: 3, 1: 3}], "fewer than 3 gold grades, and too few in its family"),
        ([{0: 2}, {1: 3}, {2: 0}], "fewer than 3 gold grades, and too few in its family"),
        ([{0: 2, 1: 2}, {2: 1}, {3: 1}], "gold minus judge is the same all through its family"),
        ([{}, {}], "fewer than 3 gold grades, and too few in its family"),
    ],
)
def test_a_family_needs_gold_too(golds: list[dict[int, int]], reason: str) -> None:
    kin = [run([3, 3, 2, 2], gold, 0.25, family="gpt") for gold in golds]
    for found in correct(kin, target="pool", bounds=SCALE, fallback="family"):
        assert (found.method, found.value, found.reason) == ("raw", None, reason)


def test_a_run_without_judgments_is_not_corrected() -> None:
    empty = run([], {})
    for fallback in (None, "family"):
        found = correct([empty, run(JUDGED, GOLD)], target="topics", bounds=SCALE, fallback=fallback)
        assert (found[0].n, found[0].value, found[0].bias) == (0, None, None)
        assert found[1].value is not None
    assert one(empty).value is None


def test_few_gold_grades_without_any_error_anywhere_are_degenerate() -> None:
    found = one(run([3, 2, 1, 0, 2, 2], {0: 3, 1: 2, 2: 1}))
    p = 0.025 ** (1 / 3)
    assert (found.method, found.degenerate, found.effective_n) == ("ppi++ pooled", True, None)
    assert found.low == pytest.approx(p * 10 / 6)
    assert found.high == pytest.approx(p * 10 / 6 + (1 - p) * 3)


def test_few_gold_grades_for_new_topics_share_the_variance_of_topics() -> None:
    judged, topics = [3, 2, 1, 0, 2, 2], [0, 0, 1, 1, 2, 2]
    found = one(run(judged, {0: 2, 1: 2, 2: 0, 3: 0}, topics=topics), "topics")
    f, e = np.array(judged), {0: -1, 1: 0, 2: -1, 3: 0}
    center = -2 / 4
    psi = [
        (f - f.mean())[2 * t : 2 * t + 2].sum() / 6 + sum((e[i] - center) / 4 for i in e if i // 2 == t)
        for t in range(3)
    ]
    # Gold is in two topics of the three.
    assert (found.method, found.df) == ("ppi++ pooled", 1)
    assert found.se == pytest.approx(math.sqrt(2 / 1 * sum(part**2 for part in psi)))
    # Topics of 4, 1 and 1 responses count as 6² / (4² + 1 + 1) = 2, those of 6, 1 and 1 as 8² / (6² + 1 + 1) < 2.
    gold = {0: 2, 1: 2, 2: 0, 4: 1}
    assert one(run(judged, gold, topics=[0, 0, 0, 0, 1, 2]), "topics").df == 1
    most_of_one = one(run([*judged, 1, 1], gold | {6: 1}, topics=[0, 0, 0, 0, 0, 0, 1, 2]), "topics")
    assert (most_of_one.low, most_of_one.reason) == (None, "most items are of one topic")
    two = run([3, 2, 1, 0], {0: 2, 1: 2, 2: 0}, topics=[0, 0, 1, 1])
    assert one(two, "topics").reason == "fewer than 3 topics"


def test_a_correction_beyond_the_scale_is_no_certainty() -> None:
    """Gold says 0 where the judge says 3: the judge's mean less 3 is below the scale, with its whole interval."""
    judged = [3, 3, 3, *[0] * 20, *[1] * 7]
    others = [run([3, 2, 1, 0] * 7, {0: 3, 1: 2, 2: 1, 3: 1}) for _ in range(4)]
    found, *_ = correct([run(judged, {0: 0, 1: 0, 2: 0}), *others], target="pool", bounds=SCALE)
    assert found.value == found.low == 0
    # At least .025^(1/3) of all are 0; the others may be 3.
    assert (found.high, found.degenerate) == (pytest.approx(3 * (1 - 0.025 ** (1 / 3))), True)
    exact = one(run([3, 3, 3], {0: 0, 1: 0, 2: 0}, 1.0))
    assert (exact.value, exact.low, exact.high, exact.degenerate) == (0, 0, 0, False)


def test_more_equal_gold_makes_a_run_no_less_sure() -> None:
    """Of 20 runs most have equal gold; their intervals narrow from 7 to 8 grades, as those of all others do."""
    widths = []
    for n in (5, 7, 8, 10, 15):
        runs = [run([3] * 30 + [2] * 10, {place: 3 - (place == 0 and k % 5 == 0) for place in range(n)})
                for k in range(20)]  # fmt: skip
        found = correct(runs, target="pool", bounds=SCALE)[1]
        assert (found.method, found.degenerate, found.value <= 3) == ("ppi++ pooled", False, True)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)


@pytest.mark.long
@pytest.mark.parametrize("n", [5, 7, 8, 10, 15])
def test_intervals_of_runs_with_one_common_grade_hold_the_truth(n: int) -> None:
    """85 % of 20 runs' responses have the highest grade."""
    rng, covered = np.random.default_rng(3), []
    for _ in range(20):
        quality, turn = rng.normal(0, 0.3, 20), rng.normal(0, 0.5, 100)
        runs, truth = [], []
        for own in quality:
            z = own + turn + rng.normal(0, 0.8, 100)
            y, f = (np.digitize(x, [-1.645, -1.282, -1.036]) for x in (z, z + rng.normal(0.2, 0.6, 100)))
            runs.append(run(f, {int(place): int(y[place]) for place in rng.permutation(100)[:n]}, strata=[0] * 100))
            truth.append(y.mean())
        found = correct(runs, target="pool", bounds=SCALE)
        covered += [each.low <= mean <= each.high for each, mean in zip(found, truth, strict=True)]
        assert all(each.low < each.high for each in found)
    assert np.mean(covered) >= 0.92


def test_corrected_means_stay_on_the_scale() -> None:
    found = one(run([3, 3, 3, 3, 2, 2], {4: 3, 5: 3, 0: 3}))
    assert (found.value, found.high) == (3.0, 3.0)


def test_all_labels_equal_leave_room_by_clopper_and_pearson() -> None:
    """iKAT 2023 naturalness: 73 of 73 responses of one run have the highest grade; with 74 the mean is not exact."""
    found = one(run([4] * 74, dict.fromkeys(range(73), 4)), bounds=(0, 4))
    assert (found.method, found.value, found.high, found.degenerate) == ("gold only", 4.0, 4.0, True)
    assert clopper_pearson(73, 73)[0] == pytest.approx(0.9507, abs=5e-5)
    assert found.low == pytest.approx(4 * clopper_pearson(73, 73)[0])


def test_a_judge_that_errs_nowhere_in_the_gold_may_err_elsewhere() -> None:
    gold = {place: JUDGED[place] for place in range(10)}
    found = one(run(JUDGED, gold))
    p, mean = 0.025 ** (1 / 10), np.mean(JUDGED)
    assert (found.degenerate, found.value) == (True, pytest.approx(mean))
    assert (found.low, found.high) == (pytest.approx(p * mean), pytest.approx(p * mean + (1 - p) * 3))


def test_three_equal_labels_are_degenerate_whatever_other_runs_vary() -> None:
    same, other = run([3] * 9, {0: 3, 1: 3, 2: 3}), run(JUDGED, GOLD)
    found, _ = correct([same, other], target="pool", bounds=SCALE)
    assert found.degenerate
    assert found.low == pytest.approx(3 * 0.025 ** (1 / 3))


@pytest.mark.parametrize(
    ("y", "f", "weight"),
    [
        ([0, 1, 2, 3] * 3, [0, 1, 2, 3] * 3, 1.0),
        ([0, 2, 4, 6] * 3, [0, 1, 2, 3] * 3, 1.0),
        ([0, 1, 2, 3] * 3, [0, 2, 4, 6] * 3, 0.5),
        ([0, 1, 2, 3] * 3, [2] * 12, 0.0),
        ([2] * 12, [0, 1, 2, 3] * 3, 0.0),
        ([3, 0, 0, 0] * 3, [0, 1, 2, 3] * 3, 0.0),
    ],
)
def test_the_judges_weight(y: list[int], f: list[int], weight: float) -> None:
    n = len(y)
    assert tuned_weight([(np.array(y, float), np.array(f, float), np.full(n, 1 / n))]) == pytest.approx(weight)


@pytest.mark.parametrize(("n", "used"), [(8, False), (13, False), (14, True)])
def test_a_judge_of_little_correlation_is_left_out(n: int, used: bool) -> None:
    """ρ = .3: the gold alone is better up to n - 2 = 1/.09 = 11.1."""
    x = np.sin(np.arange(n) * 1.7)
    u = np.cos(np.arange(n) ** 2 * 0.9)
    x -= x.mean()
    u -= u.mean()
    u -= (u @ x) / (x @ x) * x
    y = 0.3 * x / math.sqrt(x @ x) + math.sqrt(1 - 0.09) * u / math.sqrt(u @ u)
    assert (tuned_weight([(y, x, np.full(n, 1 / n))]) > 0) == used


def test_certain_gold_that_does_not_cover_the_run_is_refused() -> None:
    with pytest.raises(ValueError, match="does not cover"):
        one(run([1, 2, 3], {0: 1, 1: 2}, 1.0))
    with pytest.raises(ValueError, match="does not cover"):
        correct([run([1, 2], {0: 1, 1: 2}, 1.0), run([1, 2, 3], {0: 1, 1: 2}, 1.0)], target="pool", bounds=SCALE)
    with pytest.raises(ValueError, match="at most 1"):
        one(run([1, 2, 3], {0: 1, 1: 2}, 1.5))


@pytest.mark.parametrize("target", ["pool", "topics"])
def test_a_run_whose_gold_happens_to_be_certain_has_no_interval(target: str) -> None:
    certain = run([3, 2, 2, 0, 1], {0: 2, 1: 2, 2: 0}, 1.0)
    found, drawn = correct([certain, run(JUDGED, GOLD)], target=target, bounds=SCALE)
    assert (found.method, found.value, found.weight) == ("ppi++", pytest.approx(8 / 5 - 3 / 3), 1.0)
    assert (found.low, found.se, found.drawn) == (None, None, 0)
    assert found.reason == "its gold was all chosen for certain, which says nothing of the other responses"
    assert drawn.low is not None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_order_of_responses_and_runs_does_not_matter(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    target = data.draw(st.sampled_from(["pool", "topics"]))
    runs = [draw_run(rng, 20, n) for n in (2, 5, 12)]
    shuffled = []
    for grades in runs:
        parts = grades.judged, grades.gold, grades.inclusion, grades.topics, grades.turns
        order = rng.permutation(20)
        shuffled.append(RunGrades(*(part[order] for part in parts)))
    found = correct(runs, target=target, bounds=SCALE)
    again = correct(shuffled[::-1], target=target, bounds=SCALE)[::-1]
    for a, b in zip(found, again, strict=True):
        assert (a.method, a.df, a.value is None) == (b.method, b.df, b.value is None)
        if a.value is not None:
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-9, abs=1e-9)


def draw_run(rng: np.random.Generator, N: int, n: int) -> RunGrades:
    y = rng.integers(0, 4, N)
    f = np.clip(y + rng.integers(-1, 2, N), 0, 3)
    return run(f, {int(place): int(y[place]) for place in rng.permutation(N)[:n]}, topics=np.arange(N) // 4)


def estimate(value: float, influence: list[float] | None = None, se: float | None = None, df: float = 100) -> Corrected:
    psi = None if influence is None else np.array(influence)
    spread = se if psi is None else float(np.sqrt(psi @ psi))
    return Corrected("ppi++", 10, value, value - 1, value + 1, spread, df, influence=psi, own_df=df, scale=1.0)


def placed(runs: list[Corrected], topics: float = 25, higher: bool = True) -> list[tuple[object, ...] | None]:
    found = places([replace(run, topics=topics) for run in runs], higher_is_better=higher)
    return [place and (place.rank, place.low, place.high, place.letters) for place in found]


def test_runs_far_apart_are_separated_and_neighbors_share_letters() -> None:
    runs = [estimate(value, se=0.1) for value in (1.0, 1.2, 2.0, 1.1)]
    assert placed(runs) == [(4, 2, 4, "b"), (2, 2, 4, "b"), (1, 1, 1, "a"), (3, 2, 4, "b")]
    assert placed(runs, higher=False) == [(1, 1, 3, "a"), (3, 1, 3, "a"), (4, 4, 4, "b"), (2, 1, 3, "a")]


def test_no_run_is_told_apart_on_fewer_than_eight_topics() -> None:
    runs = [estimate(value, se=0.1) for value in (1.0, 1.2, 2.0)]
    assert placed(runs, 7) == [(3, None, None, ""), (2, None, None, ""), (1, None, None, "")]
    assert placed(runs, 8) == [(3, 2, 3, "b"), (2, 2, 3, "b"), (1, 1, 1, "a")]
    some = [replace(run, topics=topics) for run, topics in zip(runs, (8, 8, 7.9), strict=True)]
    found = places(some, higher_is_better=True)
    assert [place.letters for place in found if place] == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("sizes", "count", "letters"),
    [
        # (14 + 21)² / (14² + 21 1²): one topic of 22 has 40 % of the turns.
        ([14, *[1] * 21], 35**2 / (14**2 + 21), {""}),
        # (2 + 21)² / (2² + 21 1²)
        ([2, *[1] * 21], 23**2 / (2**2 + 21), {"a", "b"}),
    ],
)
@pytest.mark.parametrize("target", ["pool", "topics"])
def test_topics_of_unequal_size_count_as_fewer(target, sizes, count, letters) -> None:
    topics = [topic for topic, size in enumerate(sizes) for _ in range(size)]
    codes = range(len(topics))
    high, low = ([grade - (place % 5 == 0) for place in codes] for grade in (3, 1))
    runs = [run(grades, dict(enumerate(grades)), 1.0, topics=topics) for grades in (high, low)]
    found = correct(runs, target=target, bounds=SCALE)
    assert [each.topics for each in found] == [pytest.approx(count)] * 2
    assert {place.letters for place in places(found, higher_is_better=True) if place} == letters


def test_what_runs_share_in_a_turn_cancels() -> None:
    rng = np.random.default_rng(1)
    turn = rng.normal(0, 0.05, 40)
    alike = [estimate(1.0, list(turn)), estimate(1.1, list(turn + rng.normal(0, 0.002, 40)))]
    alone = [estimate(1.0, [*turn, *[0] * 40]), estimate(1.1, [*[0] * 40, *turn])]
    assert separated(alike)[0, 1]
    assert not separated(alone)[0, 1]


def test_a_run_without_an_interval_is_apart_from_none_and_one_without_a_mean_has_no_place() -> None:
    runs = [estimate(0.0, se=0.01), Corrected("ppi++", 10, 3.0), Corrected("raw", 1), estimate(1.0, se=0.01)]
    # The run without a mean may stand before or behind each of the others.
    assert placed(runs) == [(3, 2, 4, "b"), (1, 1, 4, "ab"), None, (2, 1, 3, "a")]


def test_exact_means_are_apart_if_they_differ() -> None:
    runs = [estimate(value, [0.0] * 5) for value in (1.0, 1.0, 1.5)]
    assert separated(runs).tolist() == [[False, False, True], [False, False, True], [True, True, False]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0.05, 0.3, 2.0])), min_size=1, max_size=8), st.booleans()
)
def test_a_rank_lies_within_its_interval(runs: list[tuple[int, float]], higher: bool) -> None:
    for rank, low, high, _ in placed([estimate(value / 4, se=se) for value, se in runs], higher=higher):
        assert 1 <= low <= rank <= high <= len(runs)


def test_equal_means_share_a_rank() -> None:
    assert [place[0] for place in placed([estimate(v, se=0.1) for v in (2.0, 2.0, 1.0)])] == [1, 1, 3]


def test_two_runs_are_compared_by_students_t_of_their_differences() -> None:
    psi, other = np.array([0.03, -0.05, 0.02, 0.04, -0.04]), np.array([0.01, -0.02, 0.0, 0.02, -0.01])
    bound = t_quantile(0.95, 4) * math.sqrt(((psi - other) ** 2).sum())
    found = [
        separated([estimate(0, list(psi), df=4), estimate(distance * bound, list(other), df=4)])[0, 1]
        for distance in (0.99, 1.01)
    ]
    assert found == [False, True]


def test_pairs_are_apart_by_tukeys_range_of_a_common_variance() -> None:
    """Three runs alike in variance: s0² is the mean of the three V, with at most (3 - 1) 6 = 12 degrees of freedom."""
    rows = [[1, -1, 1, -1, 1, -1, 0], [1, 1, -1, -1, 0, 1, -1], [-1, 1, 1, 0, -1, -1, 1]]
    psi = np.array(rows) / 100
    V = [((psi[a] - psi[b]) ** 2).sum() for a, b in ((0, 1), (0, 2), (1, 2))]
    # Published tables have 3.773 for three means and 12 degrees of freedom.
    bound = 3.773 / math.sqrt(2) * math.sqrt(sum(V) / 3)
    found = [
        separated([estimate(0, list(psi[0]), df=6), estimate(0, list(psi[1]), df=6),
                   estimate(distance * bound, list(psi[2]), df=6)])
        for distance in (0.999, 1.001)
    ]  # fmt: skip
    assert not found[0].any()
    assert found[1].tolist() == [[False, False, True], [False, False, True], [True, True, False]]


@pytest.mark.slow
def test_the_range_is_that_of_statsmodels() -> None:
    libqsturng = pytest.importorskip("statsmodels.stats.libqsturng")
    for R, df in ((3, 12), (5, 7), (24, 30), (10, 161)):
        assert range_quantile(R, df) * math.sqrt(2) == pytest.approx(libqsturng.qsturng(0.95, R, df), rel=2e-3)


def significance(R: int) -> st.SearchStrategy[tuple[int, set[tuple[int, int]]]]:
    return st.tuples(st.just(R), st.sets(st.sampled_from(list(combinations(range(R), 2)))))


@given(st.integers(2, 7).flatmap(significance))
def test_runs_share_a_letter_if_and_only_if_they_are_not_apart(case: tuple[int, set[tuple[int, int]]]) -> None:
    R, pairs = case
    apart = np.zeros((R, R), dtype=bool)
    for i, j in pairs:
        apart[i, j] = apart[j, i] = True
    letters = compact_letters(apart, range(R))
    for i, j in combinations(range(R), 2):
        assert bool(set(letters[i]) & set(letters[j])) != apart[i, j]
    assert letters[0].startswith("a")


def test_variances_of_a_scaled_f_distribution_give_its_parameters_back() -> None:
    rng = np.random.default_rng(3)
    d, d0, s0 = 8.0, 10.0, 0.3
    prior = fit_prior(s0 * rng.f(d, d0, 40_000), np.full(40_000, d))
    assert prior.df == pytest.approx(d0, rel=0.05)
    assert prior.variance == pytest.approx(s0, rel=0.02)


def test_variances_that_differ_by_chance_alone_share_their_mean() -> None:
    variances, df = np.array([1.0, 1.1, 0.9, 1.0]), np.array([8.0, 8.0, 8.0, 16.0])
    prior = fit_prior(variances, df)
    assert prior == (math.inf, pytest.approx((8 * 1.0 + 8 * 1.1 + 8 * 0.9 + 16 * 1.0) / 40))
    assert prior.moderate(variances, df).tolist() == [prior.variance] * 4
    # Two share nothing.
    assert fit_prior(variances[:2], df[:2]) == Prior(0.0, 0.0)
    assert Prior(0.0, 0.0).moderate(variances, df).tolist() == variances.tolist()


def test_a_variance_of_runs_that_err_alike_has_the_degrees_of_one_of_them() -> None:
    errors = hadamard(8)[1:5]
    for of_runs, df in ((errors[[0, 0, 0, 0]], 7), (errors, 4 * 7), (errors[[0, 0, 1, 1]], 2 * 7)):
        runs = [run([1] * 16, dict(enumerate(1 + row))) for row in of_runs]
        assert [each.df for each in correct(runs, target="pool", bounds=SCALE)] == pytest.approx([df] * 4)


def test_three_variances_by_hand() -> None:
    """Equal degrees of freedom: e = log s² - ψ(d/2) + log(d/2), and ψ'(d0/2) = var e - ψ'(d/2)."""
    logs = np.array([-2.0, 0.0, 2.0])
    prior = fit_prior(np.exp(logs), np.full(3, 4.0))
    assert float(polygamma(1, prior.df / 2)) == pytest.approx(4.0 - float(polygamma(1, 2.0)))
    centre = 0.0 - digamma(2.0) + math.log(2.0)
    assert math.log(prior.variance) == pytest.approx(centre + digamma(prior.df / 2) - math.log(prior.df / 2))


@given(st.floats(1e-8, 1e9))
def test_the_inverse_of_trigamma_is_its_inverse(y: float) -> None:
    assert float(polygamma(1, inverse_trigamma(y))) == pytest.approx(y, rel=1e-3)
