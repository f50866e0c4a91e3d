import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.stats.agreement import (
    Undefined,
    agreement_weights,
    cohen_kappa,
    confusion,
    kappa_interval,
    krippendorff_alpha,
    percent,
    spearman,
    unit_counts,
    within_one,
)
from judge.trec import parse_qrels

GRADES = (0, 1, 2, 3)
COHEN = 200 * np.array([[0.44, 0.05, 0.01], [0.07, 0.20, 0.03], [0.09, 0.05, 0.06]])
PARADOX = np.array([[118, 5], [2, 0]])
# Human rows 0-3, judge columns 0-3; kappa and ordinal alpha as published in arXiv 2502.13908, Tables 3 and 4.
LLMJUDGE = {
    "umbrela1": (
        [[1521, 369, 88, 27], [579, 457, 157, 40], [189, 280, 270, 69], [46, 125, 93, 113]],
        (0.286272, 0.491793, 0.504356, 0.396269),
    ),
    "h2oloo-fewself": (
        [[1586, 229, 98, 92], [602, 302, 183, 146], [225, 143, 212, 228], [57, 58, 64, 198]],
        (0.277434, 0.495764, 0.504593, 0.399820),
    ),
    "NIST-instruct0": (
        [[834, 859, 312, 0], [226, 693, 314, 0], [43, 397, 368, 0], [12, 143, 222, 0]],
        (0.187721, 0.381923, 0.382815, 0.279903),
    ),
    "TREMA-rubric0": (
        [[1612, 371, 0, 22], [868, 340, 0, 25], [478, 303, 0, 27], [164, 197, 0, 16]],
        (0.077933, 0.103604, 0.162285, 0.112693),
    ),
}
NAN = float("nan")
# Krippendorff (2011), section E: 4 observers, 12 units, missing data.
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def counts_of(raters: list[list[float]], grades: range) -> np.ndarray:
    table = np.array(raters)
    return np.stack([(table == grade).sum(axis=0) for grade in grades], axis=1)


def test_confusion_counts_every_grade_of_the_scale_in_ascending_order() -> None:
    C = confusion([(3, 0), (0, 0), (0, 0), (-1, 3)], (3, 0, -1))
    assert C.tolist() == [[0, 0, 1], [0, 2, 0], [0, 1, 0]]


def test_a_grade_off_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="5"):
        confusion([(2, 5)], GRADES)


def test_weights_follow_scale_values_and_not_positions() -> None:
    # On the scale -1, 0, 3 the range is 4.
    assert agreement_weights((-1, 0, 3), "linear").tolist() == [[1, 3 / 4, 0], [3 / 4, 1, 1 / 4], [0, 1 / 4, 1]]
    assert agreement_weights((-1, 0, 3), "quadratic")[0].tolist() == [1, 1 - (1 / 4) ** 2, 0]
    assert agreement_weights((-1, 0, 3), "none").tolist() == np.eye(3).tolist()


def test_percent_and_within_one_count_pairs() -> None:
    C = confusion([(0, 0), (1, 2), (3, 1), (2, 2)], GRADES)
    assert percent(C) == 2 / 4
    assert within_one(C, GRADES) == 3 / 4
    # On the scale 0, 2, 3 a step from 0 to 2 is not within one.
    assert within_one(confusion([(0, 2), (2, 3)], (0, 2, 3)), (0, 2, 3)) == 1 / 2


@pytest.mark.parametrize(("kind", "expected"), [("none", 0.491525), ("linear", 0.473684), ("quadratic", 0.454545)])
def test_kappa_of_cohens_table(kind: str, expected: float) -> None:
    assert cohen_kappa(COHEN, agreement_weights((1, 2, 3), kind)) == pytest.approx(expected, abs=5e-7)


def test_weighted_kappa_with_cohens_own_disagreement_weights() -> None:
    W = 1 - np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]]) / 6
    assert cohen_kappa(COHEN, W) == pytest.approx(0.347826, abs=5e-7)


def test_kappa_of_two_by_two_worked_by_hand() -> None:
    # p_o = 35/50; p_e = (25*30 + 25*20)/2500 = .5; (.7 - .5)/.5 = .4
    assert cohen_kappa(np.array([[20, 5], [10, 15]]), np.eye(2)) == pytest.approx(0.4)


def test_high_agreement_may_go_with_negative_kappa() -> None:
    assert percent(PARADOX) == 118 / 125 == 0.944
    assert cohen_kappa(PARADOX, np.eye(2)) == pytest.approx(-0.0234, abs=5e-5)


@pytest.mark.parametrize("name", LLMJUDGE)
def test_published_judges_of_the_llmjudge_challenge(name: str) -> None:
    rows, (kappa, ordinal, quadratic, linear) = LLMJUDGE[name]
    C = np.array(rows)
    assert C.sum() == 4423
    assert cohen_kappa(C, agreement_weights(GRADES, "none")) == pytest.approx(kappa, abs=5e-7)
    assert cohen_kappa(C, agreement_weights(GRADES, "quadratic")) == pytest.approx(quadratic, abs=5e-7)
    assert cohen_kappa(C, agreement_weights(GRADES, "linear")) == pytest.approx(linear, abs=5e-7)
    assert krippendorff_alpha(unit_counts(C), GRADES, "ordinal") == pytest.approx(ordinal, abs=5e-7)


def test_weights_come_from_the_declared_scale_and_not_from_the_grades_seen() -> None:
    human, judge = [0, 0, 1, 1, 3, 3, 3, 0, 1, 3], [0, 1, 1, 3, 3, 3, 1, 0, 1, 3]
    ours = cohen_kappa(confusion(zip(human, judge, strict=True), GRADES), agreement_weights(GRADES, "quadratic"))
    assert ours == pytest.approx(cohen_kappa_score(human, judge, weights="quadratic", labels=GRADES), abs=1e-12)
    assert ours == pytest.approx(0.7097, abs=5e-5)
    assert cohen_kappa_score(human, judge, weights="quadratic") == pytest.approx(0.7619, abs=5e-5)


def test_undefined_agreement_says_why() -> None:
    nothing, constant = np.zeros((4, 4), dtype=int), confusion([(2, 2)] * 9, GRADES)
    W = agreement_weights(GRADES, "quadratic")
    assert percent(nothing) == within_one(nothing, GRADES) == cohen_kappa(nothing, W) == Undefined("no pairs")
    assert cohen_kappa(constant, W) == Undefined("both raters gave one and the same grade throughout")
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(unit_counts(nothing), GRADES, level) == Undefined("no unit has two grades")
        assert krippendorff_alpha(unit_counts(constant), GRADES, level) == Undefined(
            "all raters gave one and the same grade throughout"
        )


def test_a_constant_judge_has_kappa_zero() -> None:
    C = confusion([(0, 1), (1, 1), (3, 1)], GRADES)
    assert cohen_kappa(C, agreement_weights(GRADES, "quadratic")) == pytest.approx(0, abs=1e-12)


def test_unit_counts_put_both_raters_grades_of_a_unit_together() -> None:
    assert unit_counts(np.array([[1, 2], [0, 1]])).tolist() == [[2, 0], [1, 1], [1, 1], [0, 2]]


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107)])
def test_alpha_of_krippendorffs_example_with_missing_grades(level: str, expected: float) -> None:
    counts = counts_of(FOUR_OBSERVERS, range(1, 6))
    assert krippendorff_alpha(counts, range(1, 6), level) == pytest.approx(expected, abs=5e-7)


def test_an_unused_grade_changes_no_alpha() -> None:
    counts = counts_of(FOUR_OBSERVERS, range(7))
    assert krippendorff_alpha(counts, range(7), "ordinal") == pytest.approx(0.815388, abs=5e-7)


def test_interval_alpha_measures_distance_in_scale_values() -> None:
    # Units (0, 1), (3, 3), (1, 1): D_o = 2 * 1 / 6; of the 30 ordered pairs of 0 1 1 1 3 3, 6 are 1 apart, 4 are 3
    # and 12 are 2, so D_e = (6 * 1 + 4 * 9 + 12 * 4) / 30.
    counts = unit_counts(confusion([(0, 1), (3, 3), (1, 1)], (0, 1, 3)))
    assert krippendorff_alpha(counts, (0, 1, 3), "interval") == pytest.approx(1 - (2 / 6) / (90 / 30))


def topics_of_a_noisy_judge(T: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tables = np.zeros((T, 4, 4), dtype=np.int64)
    for t in range(T):
        z = rng.normal(0, 0.5) + rng.normal(0, 0.9, 7)
        human, judge = (np.digitize(x, [-0.7, 0.2, 1]) for x in (z, z + rng.normal(0, 0.4) + rng.normal(0, 0.7, 7)))
        np.add.at(tables[t], (human, judge), 1)
    return tables


def test_kappa_interval_equals_resampling_whole_topics_item_by_item() -> None:
    tables, W = topics_of_a_noisy_judge(12, seed=3), agreement_weights(GRADES, "quadratic")
    found = kappa_interval(tables, W, np.random.default_rng(1), replicates=4000)
    rng = np.random.default_rng(99)
    kappas = [cohen_kappa(tables[rng.integers(0, 12, 12)].sum(axis=0), W) for _ in range(4000)]
    kappa = cohen_kappa(tables.sum(axis=0), W)
    width = 2.200985 * np.std(kappas, ddof=1) / (1 - kappa**2)
    assert found.value == kappa
    assert found.low == pytest.approx(math.tanh(math.atanh(kappa) - width), abs=0.01)
    assert found.high == pytest.approx(math.tanh(math.atanh(kappa) + width), abs=0.01)
    assert (found.n, found.topics, found.reason) == (84, 12, None)


def test_kappa_interval_covers_the_truth_in_about_95_of_100_worlds() -> None:
    W = agreement_weights(GRADES, "quadratic")
    truth = cohen_kappa(topics_of_a_noisy_judge(20_000, seed=0).sum(axis=0), W)
    rng = np.random.default_rng(5)
    found = [kappa_interval(topics_of_a_noisy_judge(12, seed), W, rng, replicates=500) for seed in range(1, 301)]
    covered = sum(one.low <= truth <= one.high for one in found)
    assert 0.90 * 300 <= covered <= 0.98 * 300


def test_topics_without_pairs_change_nothing() -> None:
    tables, W = topics_of_a_noisy_judge(8, seed=4), agreement_weights(GRADES, "linear")
    found = kappa_interval(tables, W, np.random.default_rng(7))
    with_empty = np.concatenate([tables, np.zeros((3, 4, 4), dtype=np.int64)])
    assert kappa_interval(with_empty, W, np.random.default_rng(7)) == found


def test_kappa_interval_is_reproducible_from_its_generator() -> None:
    tables, W = topics_of_a_noisy_judge(8, seed=4), agreement_weights(GRADES, "none")
    assert kappa_interval(tables, W, np.random.default_rng(7)) == kappa_interval(tables, W, np.random.default_rng(7))


@pytest.mark.parametrize(
    ("tables", "value", "topics", "reason"),
    [
        (np.zeros((0, 4, 4), dtype=np.int64), None, 0, "no pairs"),
        (topics_of_a_noisy_judge(4, seed=1), 0.5, 4, "fewer than 5 topics"),
        (np.stack([confusion([(2, 2)] * 3, GRADES)] * 9), None, 9,
         "both raters gave one and the same grade throughout"),
        (np.stack([confusion([(0, 0), (3, 3)], GRADES)] * 9), 1.0, 9, "perfect agreement"),
        (np.stack([confusion([(0, 3), (3, 0)], GRADES)] * 9), -1.0, 9, "perfect disagreement"),
        (np.stack([confusion([(0, 0), (3, 3), (1, 2)], GRADES)] * 9), 0.9, 9, "no variation between topics"),
        (np.concatenate([topics_of_a_noisy_judge(4, seed=1), np.zeros((9, 4, 4), dtype=np.int64)]), 0.5, 4,
         "fewer than 5 topics"),
    ],
)  # fmt: skip
def test_kappa_interval_is_none_with_a_reason(
    tables: np.ndarray, value: float | None, topics: int, reason: str
) -> None:
    found = kappa_interval(tables, agreement_weights(GRADES, "quadratic"), np.random.default_rng(1))
    assert (found.low, found.high, found.topics, found.reason) == (None, None, topics, reason)
    assert found.value == (None if value is None else pytest.approx(value, abs=0.3))


def test_spearman_shares_ranks_among_ties() -> None:
    # Ranks 1 2.5 2.5 4 against 1 2 3 4: sums of squares 4.5 and 5, products 4.5.
    assert spearman([10, 20, 20, 30], [0, 1, 2, 3]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert spearman([1, 2], [5, 5]) == Undefined("one side is constant")
    assert spearman([1], [5]) == Undefined("fewer than 2 pairs")


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_spearman_equals_scipys(pairs: list[tuple[float, int]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)


@given(st.lists(st.tuples(st.sampled_from(GRADES), st.sampled_from(GRADES)), min_size=1, max_size=40))
def test_kappa_equals_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    for kind, weights in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        ours = cohen_kappa(confusion(pairs, GRADES), agreement_weights(GRADES, kind))
        if isinstance(ours, Undefined):
            assert len({grade for pair in pairs for grade in pair}) == 1
        else:
            human, judge = zip(*pairs, strict=True)
            theirs = cohen_kappa_score(human, judge, weights=weights, labels=GRADES)
            assert ours == pytest.approx(theirs, abs=1e-10)


def llmjudge_tables(shared: Path, name: str) -> np.ndarray:
    """The confusion table of every query (25 x 4 x 4) of one published judge."""
    folder = shared / "llmjudge"
    human, judge = (
        {(row.turn_id, row.item_id): row.grade for row in parse_qrels(file.read_text(encoding="utf-8"), file.name)}
        for file in (folder / "llmjudge_test.qrel", folder / "judges" / f"{name}.txt")
    )
    assert human.keys() == judge.keys()
    return np.stack(
        [
            confusion([(human[key], judge[key]) for key in human if key[0] == query], GRADES)
            for query in sorted({query for query, _ in human})
        ]
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("willia-umbrela1", "umbrela1"),
        ("h2oloo-fewself", "h2oloo-fewself"),
        ("NISTRetrieval-instruct0", "NIST-instruct0"),
        ("TREMA-rubric0", "TREMA-rubric0"),
    ],
)
def test_the_released_label_files_give_the_published_tables(shared: Path, file: str, name: str) -> None:
    assert llmjudge_tables(shared, file).sum(axis=0).tolist() == LLMJUDGE[name][0]


def test_topics_make_the_interval_of_a_real_judge_several_times_wider(shared: Path) -> None:
    found = kappa_interval(llmjudge_tables(shared, "willia-umbrela1"), np.eye(4), np.random.default_rng(1))
    # The percentile interval over 25 topics is [.167, .390]; over 4,423 items as if independent [.265, .307].
    assert found.value == pytest.approx(0.286272, abs=5e-7)
    assert (found.low, found.high) == pytest.approx((0.167, 0.390), abs=0.02)
    assert found.high - found.low > 4 * (0.307 - 0.265)
