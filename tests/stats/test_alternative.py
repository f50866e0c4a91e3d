import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from judge.stats.alternative import alternative_annotator
from judge.stats.tables import Undefined

NOTHING = -1


def plain(
    humans: dict[str, NDArray[np.int64]], judge: NDArray[np.int64], epsilon: float, score: str
) -> tuple[float, float, dict[str, float]]:
    """The test item by item with scipy's t and statsmodels' Benjamini-Yekutieli."""

    def scored(grade: int, others: list[int]) -> float:
        if score == "accuracy":
            return float(np.mean([grade == other for other in others]))
        return -float(np.sqrt(np.mean([(grade - other) ** 2 for other in others])))

    wins, p_values = [], {}
    for name, own in humans.items():
        judge_wins, human_wins = [], []
        for i in range(len(judge)):
            others = [codes[i] for other, codes in humans.items() if other != name and codes[i] >= 0]
            if own[i] < 0 or judge[i] < 0 or not others:
                continue
            by_judge, by_human = scored(judge[i], others), scored(own[i], others)
            judge_wins.append(int(by_judge >= by_human))
            human_wins.append(int(by_human >= by_judge))
        wins.append(np.mean(judge_wins))
        d = np.subtract(human_wins, judge_wins)
        p_values[name] = float(scipy.stats.ttest_1samp(d, epsilon, alternative="less").pvalue)
    rejected = multipletests(list(p_values.values()), alpha=0.05, method="fdr_by")[0]
    return float(rejected.mean()), float(np.mean(wins)), p_values


def panel(
    seed: int, n: int, raters: int, wrong: float, missing: float
) -> tuple[dict[str, NDArray[np.int64]], np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)

    def graded(share: float) -> NDArray[np.int64]:
        return np.where(rng.random(n) < share, rng.integers(0, 4, n), truth)

    humans = {f"h{i}": np.where(rng.random(n) < missing, NOTHING, graded(0.4)) for i in range(raters)}
    return humans, np.where(rng.random(n) < missing / 2, NOTHING, graded(wrong))


def test_two_assessors_worked_by_hand() -> None:
    # 30 items. a and b agree on 20; on 6 of those the judge differs, on 14 it agrees with both. Of the 10 on which a
    # and b differ, the judge agrees with a on 7 and with neither on 3.
    a = np.array([0] * 30)
    b = np.array([0] * 20 + [1] * 10)
    judge = np.array([1] * 6 + [0] * 14 + [0] * 7 + [2] * 3)
    found = alternative_annotator({"a": a, "b": b}, judge, epsilon=0.2, score="accuracy")
    # Against a, by nearness to b: a wins 6, ties 24. W = 24/30; mean difference 6/30 = .2 = ε, so t = 0 and p = 1/2.
    # Against b, by nearness to a: b wins 6, judge wins 7, ties 17. W = 24/30; mean difference -1/30;
    # variance (13 - 1/30)/29 = .447126; t = (-1/30 - .2) / sqrt(.447126/30) = -1.911268; P(t_29 < t) = .032949.
    assert found.p_values == pytest.approx({"a": 0.5, "b": 0.032949}, abs=1e-6)
    # Benjamini-Yekutieli: .05/2/(1 + 1/2) = .0167 is the limit of the smaller p.
    assert found.rejected == {"a": False, "b": False}
    assert (found.epsilon, found.omega, found.rho) == (0.2, 0, pytest.approx(0.8))
    assert found.n == {"a": 30, "b": 30}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "epsilon", "seed"),
    [("accuracy", 0.0, 0), ("rmse", 0.1, 1), ("accuracy", 0.2, 2), ("rmse", 0.0, 3), ("rmse", 0.2, 4)],
)
def test_equals_the_test_written_out_item_by_item(score: str, epsilon: float, seed: int) -> None:
    humans, judge = panel(seed, 150, 4, wrong=0.1 * seed + 0.1, missing=0.2)
    found = alternative_annotator(humans, judge, epsilon=epsilon, score=score)
    omega, rho, p_values = plain(humans, judge, epsilon, score)
    assert found.p_values == pytest.approx(p_values, rel=1e-9)
    assert (found.omega, found.rho) == pytest.approx((omega, rho))


def test_squared_errors_are_between_scale_values() -> None:
    # b gives the middle grade, c the highest, the judge the lowest. Against c, by nearness to b: one place each, a tie;
    # on the scale 0 1 5 the judge is 1 away and c is 4 away, so the judge wins. Against b, by nearness to c, b wins.
    b, c, judge = np.full(30, 1), np.full(30, 2), np.zeros(30, int)
    by_place = alternative_annotator({"b": b, "c": c}, judge, epsilon=0.2, score="rmse")
    by_value = alternative_annotator({"b": b, "c": c}, judge, epsilon=0.2, score="rmse", grades=(0, 1, 5))
    assert by_place.p_values == pytest.approx({"b": 1, "c": (0.8 / 1) ** 30})
    assert by_value.p_values == pytest.approx({"b": 1, "c": (0.8 / 2) ** 30})


def test_ties_count_for_both_and_without_variance_p_is_the_exact_bound() -> None:
    same = np.tile([0, 1, 2], 20)
    found = alternative_annotator({"a": same, "b": same}, same, epsilon=0.1, score="accuracy")
    # If P(assessor nearer) were at least .1, 60 ties in a row would have probability .9^60 at most.
    assert found.p_values == pytest.approx({"a": 0.9**60, "b": 0.9**60})
    assert (found.omega, found.rho) == (1, 1)
    assert alternative_annotator({"a": same, "b": same}, same, epsilon=0.0, score="accuracy").p_values["a"] == 1
    worst = alternative_annotator({"a": same, "b": same}, (same + 1) % 3, epsilon=0.2, score="accuracy")
    assert (worst.p_values, worst.rho) == ({"a": 1, "b": 1}, 0)


def test_items_of_one_assessor_or_without_a_judge_are_left_out() -> None:
    a = np.array([0] * 40)
    b = np.array([0] * 35 + [NOTHING] * 5)
    judge = np.array([NOTHING] * 3 + [0] * 37)
    assert alternative_annotator({"a": a, "b": b}, judge, epsilon=0.2, score="accuracy").n == {"a": 32, "b": 32}


def test_an_assessor_with_few_items_is_not_tested_but_still_heard() -> None:
    a, b = np.zeros(40, int), np.zeros(40, int)
    c = np.array([0] * 10 + [NOTHING] * 30)
    found = alternative_annotator({"a": a, "b": b, "c": c}, np.zeros(40, int), epsilon=0.2, score="accuracy")
    assert set(found.p_values) == {"a", "b"}
    only_with_c = alternative_annotator({"a": a, "c": c}, a, epsilon=0.2, score="accuracy", fewest=10)
    assert only_with_c.n == {"a": 10, "c": 10}


def test_undefined_with_one_assessor_or_few_items() -> None:
    a = np.zeros(29, int)
    assert alternative_annotator({"a": a}, a, epsilon=0.2, score="accuracy") == Undefined("fewer than 2 assessors")
    assert alternative_annotator({"a": a, "b": a}, a, epsilon=0.2, score="accuracy") == Undefined(
        "no assessor has 30 items that the judge and another assessor graded too"
    )


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_epsilon_off_its_range_is_refused(epsilon: float) -> None:
    a = np.zeros(30, int)
    with pytest.raises(ValueError, match="expected 0 <= epsilon < 1"):
        alternative_annotator({"a": a, "b": a}, a, epsilon=epsilon, score="accuracy")


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_larger_epsilon_never_makes_the_judge_lose(seed: int) -> None:
    humans, judge = panel(seed, 60, 3, wrong=0.5, missing=0.0)
    strict = alternative_annotator(humans, judge, epsilon=0.05, score="accuracy")
    lenient = alternative_annotator(humans, judge, epsilon=0.3, score="accuracy")
    assert strict.omega <= lenient.omega
    assert strict.rho == lenient.rho
    assert all(lenient.p_values[name] <= strict.p_values[name] for name in humans)
