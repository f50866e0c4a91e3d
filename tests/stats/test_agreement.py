import doctest
from collections.abc import Sequence
from pathlib import Path

import krippendorff
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa

from judge.io.ids import parse_qrels
from judge.stats import agreement, comparison, discrimination, means, ranking, reliability, tables
from judge.stats.agreement import STATISTICS, PairMean, point, primary_statistic
from judge.stats.discrimination import auc, spearman
from judge.stats.tables import Undefined, agreement_weights, confusion, topic_tables

GRADES = (0, 1, 2, 3)
UNEVEN = (-1, 0, 3)
COHEN = np.rint(200 * np.array([[0.44, 0.05, 0.01], [0.07, 0.20, 0.03], [0.09, 0.05, 0.06]])).astype(np.int64)
PARADOX = np.array([[118, 5], [2, 0]])
# Human rows 0-3, judge columns 0-3; kappa and ordinal alpha as published in arXiv 2502.13908, Tables 3 and 4.
LLMJUDGE = {
    "umbrela1": (
        [[1521, 369, 88, 27], [579, 457, 157, 40], [189, 280, 270, 69], [46, 125, 93, 113]],
        {"kappa": 0.286272, "alpha_ordinal": 0.491793, "wkappa": 0.504356, "wkappa_linear": 0.396269,
         "ac1": 0.404579, "ac2": 0.732516},
    ),
    "h2oloo-fewself": (
        [[1586, 229, 98, 92], [602, 302, 183, 146], [225, 143, 212, 228], [57, 58, 64, 198]],
        {"kappa": 0.277434, "alpha_ordinal": 0.495764, "wkappa": 0.504593, "wkappa_linear": 0.399820,
         "ac1": 0.384814, "ac2": 0.664961},
    ),
    "NIST-instruct0": (
        [[834, 859, 312, 0], [226, 693, 314, 0], [43, 397, 368, 0], [12, 143, 222, 0]],
        {"kappa": 0.187721, "alpha_ordinal": 0.381923, "wkappa": 0.382815, "wkappa_linear": 0.279903,
         "ac1": 0.260869, "ac2": 0.700182},
    ),
    "TREMA-rubric0": (
        [[1612, 371, 0, 22], [868, 340, 0, 25], [478, 303, 0, 27], [164, 197, 0, 16]],
        {"kappa": 0.077933, "alpha_ordinal": 0.103604, "wkappa": 0.162285, "wkappa_linear": 0.112693,
         "ac1": 0.312877, "ac2": 0.658657},
    ),
}  # fmt: skip
CONSTANT = "both raters gave one and the same grade throughout"
PAIRS = st.lists(st.tuples(st.sampled_from(GRADES), st.sampled_from(GRADES)), min_size=1, max_size=40)
TABLES = st.lists(
    st.lists(st.lists(st.integers(0, 6) | st.just(0), min_size=4, max_size=4), min_size=4, max_size=4),
    min_size=1,
    max_size=5,
)


def number(name: str, C: np.ndarray, grades: Sequence[int] = GRADES) -> float:
    value = point(name, C, grades)
    assert not isinstance(value, Undefined), value.reason
    return value


def test_a_grade_off_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="5"):
        confusion([(2, 5)], GRADES)


def test_topic_tables_leave_out_items_without_both_grades_and_keep_empty_topics() -> None:
    human, judge = np.array([0, 1, -1, 1, 0, 1]), np.array([0, 0, 1, -1, 0, 1])
    tables = topic_tables(human, judge, np.array([2, 0, 0, 1, 2, 2]), 2, 4)
    assert tables.tolist() == [[[0, 0], [1, 0]], [[0, 0], [0, 0]], [[2, 0], [0, 1]], [[0, 0], [0, 0]]]
    assert tables.dtype == np.int64


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=30))
def test_topic_tables_are_the_confusions_of_the_topics(items: list[tuple[int, int, int]]) -> None:
    human, judge, topics = np.array(items, dtype=np.int8).reshape(-1, 3).T
    expected = [confusion([(h, j) for h, j, t in items if t == topic], GRADES).tolist() for topic in range(3)]
    assert topic_tables(human, judge, topics, 4, 3).tolist() == expected


def test_weighted_tables_add_up_to_the_items_they_count() -> None:
    human, judge, topics = np.array([0, 1, 1, 0, -1]), np.array([0, 1, 0, -1, 0]), np.array([0, 0, 2, 1, 1])
    tables = topic_tables(human, judge, topics, 2, 3, np.array([1.0, 2.0, 3.0, 50.0, 70.0]))
    # Three pairs weigh 1, 2 and 3, 2 on average; the others have no pair and no say.
    assert tables.tolist() == [[[0.5, 0], [0, 1]], [[0, 0], [0, 0]], [[0, 0], [1.5, 0]]]


@pytest.mark.parametrize("weight", [1.0, 0.3, 1 / 0.07])
def test_equal_weights_are_no_weights(weight: float) -> None:
    human, judge, topics = np.array([0, 1, 1, -1]), np.array([0, 1, 0, 1]), np.array([0, 0, 2, 1])
    tables = topic_tables(human, judge, topics, 2, 3, np.array([weight, weight, weight, 99.0]))
    assert tables.dtype == np.int64
    assert tables.tolist() == topic_tables(human, judge, topics, 2, 3).tolist()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(1e-4, 1)), min_size=2, max_size=30))
def test_a_topic_taken_from_weighted_tables_leaves_nothing_behind(items: list[tuple[int, int, float]]) -> None:
    human, judge, _ = np.array(items, dtype=np.int64).T
    weights = 1 / np.array([p for _, _, p in items])
    tables = topic_tables(human, judge, np.arange(len(items)), 3, len(items), weights)
    # Order of summation and subtraction make no difference, so what has one grade is known to.
    assert (tables.sum(axis=0) - tables[0] == tables[:0:-1].sum(axis=0)).all()


@given(TABLES)
def test_weights_that_are_counts_give_what_counts_give(tables: list[list[list[int]]]) -> None:
    C = np.array(tables).sum(axis=0)
    for name in STATISTICS:
        counted, weighted = point(name, C, GRADES), point(name, C.astype(np.float64), GRADES)
        assert counted == (weighted if isinstance(weighted, Undefined) else pytest.approx(weighted, abs=1e-12))


@pytest.mark.parametrize("name", [name for name in STATISTICS if not name.startswith("alpha")])
def test_the_unit_of_weights_does_not_matter(name: str) -> None:
    C = np.array(LLMJUDGE["umbrela1"][0], dtype=np.float64)
    # Below a half in all, which no table of counts is.
    assert number(name, C / C.sum() / 8) == pytest.approx(number(name, C))


def test_weights_follow_scale_values_and_not_positions() -> None:
    # On the scale -1, 0, 3 the range is 4.
    assert agreement_weights(UNEVEN, "linear").tolist() == [[1, 3 / 4, 0], [3 / 4, 1, 1 / 4], [0, 1 / 4, 1]]
    assert agreement_weights(UNEVEN, "quadratic")[0].tolist() == [1, 1 - (1 / 4) ** 2, 0]
    assert agreement_weights(UNEVEN, "none").tolist() == np.eye(3).tolist()


def test_the_published_columns_keep_their_order() -> None:
    published = [
        "percent", "within_one", "kappa", "wkappa_linear", "wkappa", "alpha_nominal", "alpha_ordinal",
        "alpha_interval", "ac1", "ac2", "tau_b", "mae", "bias",
    ]  # fmt: skip
    assert [name for name in STATISTICS if name in published] == published


@pytest.mark.parametrize("name", STATISTICS)
def test_a_row_agrees_with_its_formula(name: str) -> None:
    row = STATISTICS[name]
    mean = isinstance(row.formula, PairMean)
    assert mean == (row.family == "mean") == (row.interval == "t") == (row.citation is None)
    assert row.about and not row.about.endswith(".")
    assert not row.worst_case or row.best != "zero", "the farthest grade may be on the good side of a direction"
    # A judge that always agrees has the best value, and one that is above in one place and below in another has not.
    agreeing, erring = np.diag([3, 2, 2, 3]), np.array([[1, 2, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [2, 0, 0, 1]])
    best, worse = row.worth(row(np.array([agreeing, erring]), GRADES))
    assert best > worse
    # Where grades are names, those of a wrong grade do not matter; where they are an order, distances do not.
    other_wrong = np.array([[1, 0, 2, 0], [0, 2, 1, 0], [0, 0, 2, 0], [2, 0, 0, 1]])
    if row.scale == "nominal":
        assert np.isclose(row(erring[None], GRADES), row(erring[None], (0, 1, 5, 40)))
    elif row.scale == "ordinal":
        assert np.isclose(row(other_wrong[None], GRADES), row(other_wrong[None], (0, 1, 5, 40)))
    else:
        assert not np.isclose(row(other_wrong[None], GRADES), row(other_wrong[None], (0, 1, 5, 40)))


@pytest.mark.parametrize("k", [2, 3, 4, 10])
def test_one_statistic_is_the_primary_one_on_any_scale(k: int) -> None:
    scales = [row.primary for row in STATISTICS.values() if row.primary]
    assert sorted(scales) == ["more grades", "two grades"]
    assert primary_statistic(k) == ("kappa" if k == 2 else "wkappa")


def test_every_statistic_has_a_worked_example() -> None:
    examples = [
        example.source
        for module in (agreement, discrimination, ranking, reliability, means, comparison, tables)
        for docstring in doctest.DocTestFinder().find(module)
        for example in docstring.examples
    ]
    for name in STATISTICS:
        assert any(f"point({quote}{name}{quote}" in source for source in examples for quote in "\"'"), name
    named = "spearman auc kendall_tau_b tau_ap tau_ap_b rbo top_k_overlap gwet_ac fleiss_kappa mean_interval"
    for name in (named + " clopper_pearson sign_flip holm bowker stuart_maxwell").split():
        assert any(f"{name}(" in source for source in examples), name


def test_means_over_pairs_are_in_scale_values() -> None:
    # On the scale -1, 0, 3 a step from 0 to 3 is not within one.
    uneven = confusion([(0, 3), (3, 0), (0, 3), (-1, 0)], UNEVEN)
    assert number("within_one", uneven, UNEVEN) == 1 / 4
    assert number("mae", uneven, UNEVEN) == (3 + 3 + 3 + 1) / 4
    assert number("bias", uneven, UNEVEN) == (3 - 3 + 3 + 1) / 4


@pytest.mark.parametrize(
    ("name", "expected"), [("kappa", 0.491525), ("wkappa_linear", 0.473684), ("wkappa", 0.454545), ("ac1", 0.575972)]
)
def test_coefficients_of_cohens_table(name: str, expected: float) -> None:
    assert number(name, COHEN, (1, 2, 3)) == pytest.approx(expected, abs=5e-7)


def test_high_agreement_may_go_with_negative_kappa_and_high_ac1() -> None:
    assert number("percent", PARADOX, (0, 1)) == 118 / 125 == 0.944
    assert number("kappa", PARADOX, (0, 1)) == pytest.approx(-0.0234, abs=5e-5)
    assert number("ac1", PARADOX, (0, 1)) == pytest.approx(0.9408, abs=5e-5)


@pytest.mark.parametrize("name", LLMJUDGE)
def test_published_judges_of_the_llmjudge_challenge(name: str) -> None:
    rows, expected = LLMJUDGE[name]
    C = np.array(rows)
    assert C.sum() == 4423
    assert {key: number(key, C) for key in expected} == pytest.approx(expected, abs=5e-7)


def test_weights_come_from_the_declared_scale_and_not_from_the_grades_seen() -> None:
    human, judge = [0, 0, 1, 1, 3, 3, 3, 0, 1, 3], [0, 1, 1, 3, 3, 3, 1, 0, 1, 3]
    ours = number("wkappa", confusion(zip(human, judge, strict=True), GRADES))
    assert ours == pytest.approx(cohen_kappa_score(human, judge, weights="quadratic", labels=GRADES), abs=1e-12)
    assert ours == pytest.approx(0.7097, abs=5e-5)
    assert cohen_kappa_score(human, judge, weights="quadratic") == pytest.approx(0.7619, abs=5e-5)


@pytest.mark.parametrize("name", STATISTICS)
def test_no_pairs_define_nothing(name: str) -> None:
    nothing = np.zeros((4, 4), dtype=np.int64)
    assert point(name, nothing, GRADES) == Undefined("no pairs")
    assert np.isnan(STATISTICS[name](nothing[None], GRADES)).all()


@pytest.mark.parametrize("name", STATISTICS)
def test_one_grade_throughout_leaves_only_means_over_pairs(name: str) -> None:
    constant = confusion([(2, 2)] * 9, GRADES)
    formula = STATISTICS[name].formula
    mean = isinstance(formula, PairMean)
    assert point(name, constant, GRADES) == (formula.scores(GRADES)[2, 2] if mean else Undefined(CONSTANT))
    assert np.isnan(STATISTICS[name](constant[None], GRADES)).all() == (not mean)


def test_a_constant_judge_has_no_tau() -> None:
    C = confusion([(0, 1), (1, 1), (3, 1)], GRADES)
    assert point("tau_b", C, GRADES) == Undefined("one rater gave one grade throughout")


def test_an_unknown_statistic_is_refused() -> None:
    with pytest.raises(KeyError, match="gamma"):
        point("gamma", COHEN, (1, 2, 3))


@given(TABLES)
def test_a_batch_equals_its_tables_one_by_one(tables: list[list[list[int]]]) -> None:
    batch = np.array(tables)
    for name, row in STATISTICS.items():
        for C, value in zip(batch, row(batch, GRADES), strict=True):
            alone = point(name, C, GRADES)
            same = np.isnan(value) if isinstance(alone, Undefined) else abs(value - alone) <= 1e-10
            assert same, name


@given(PAIRS)
def test_kappa_equals_scikit_learns_and_statsmodels(pairs: list[tuple[int, int]]) -> None:
    C = confusion(pairs, GRADES)
    for name, weights in (("kappa", None), ("wkappa_linear", "linear"), ("wkappa", "quadratic")):
        ours = point(name, C, GRADES)
        if isinstance(ours, Undefined):
            assert len({grade for pair in pairs for grade in pair}) == 1
        else:
            human, judge = zip(*pairs, strict=True)
            assert ours == pytest.approx(cohen_kappa_score(human, judge, weights=weights, labels=GRADES), abs=1e-10)
            # statsmodels wants weights of disagreement and computes the variance too, which may be undefined.
            with np.errstate(all="ignore"):
                theirs = cohens_kappa(C, weights=1 - agreement_weights(GRADES, weights) if weights else None)
            assert ours == pytest.approx(theirs.kappa, abs=1e-10)


@given(PAIRS)
def test_alpha_from_the_table_equals_the_packages_from_the_grades(pairs: list[tuple[int, int]]) -> None:
    human, judge = ([UNEVEN[min(grade, 2)] for grade in side] for side in zip(*pairs, strict=True))
    C = confusion(zip(human, judge, strict=True), UNEVEN)
    for level in ("nominal", "ordinal", "interval"):
        ours = STATISTICS[f"alpha_{level}"](C[None], UNEVEN)[0]
        if len({*human, *judge}) > 1:
            theirs = krippendorff.alpha(reliability_data=[human, judge], level_of_measurement=level)
            assert ours == pytest.approx(theirs, abs=1e-10)
            assert point(f"alpha_{level}", C, UNEVEN) == pytest.approx(theirs, abs=1e-10)


@given(PAIRS)
def test_tau_b_from_the_table_equals_scipys_from_the_grades(pairs: list[tuple[int, int]]) -> None:
    human, judge = zip(*pairs, strict=True)
    ours = STATISTICS["tau_b"](confusion(pairs, GRADES)[None], GRADES)[0]
    if len(set(human)) > 1 and len(set(judge)) > 1:
        assert ours == pytest.approx(scipy.stats.kendalltau(human, judge).statistic, abs=1e-10)
    else:
        assert np.isnan(ours)


@given(PAIRS)
def test_means_over_pairs_equal_those_of_the_pairs(pairs: list[tuple[int, int]]) -> None:
    C = confusion(pairs, GRADES)
    d = np.array([judge - human for human, judge in pairs])
    found = {name: number(name, C) for name in ("percent", "within_one", "mae", "bias")}
    assert found == pytest.approx(
        {"percent": (d == 0).mean(), "within_one": (abs(d) <= 1).mean(), "mae": abs(d).mean(), "bias": d.mean()}
    )


@given(TABLES)
def test_with_two_grades_all_weights_are_one(tables: list[list[list[int]]]) -> None:
    batch = np.array(tables)[:, :2, :2]
    for names in (("kappa", "wkappa_linear", "wkappa"), ("alpha_nominal", "alpha_interval"), ("ac1", "ac2")):
        first, *others = (STATISTICS[name](batch, (0, 1)) for name in names)
        for other in others:
            np.testing.assert_allclose(other, first, atol=1e-12)


def test_spearman_and_auc_are_undefined_with_a_reason() -> None:
    assert spearman([1, 2], [5, 5]) == Undefined("one side is constant")
    assert spearman([1], [5]) == Undefined("fewer than 2 pairs")
    assert auc([0.5, 0.9], [True, True]) == Undefined("no negative items")
    assert auc([0.5, 0.9], [False, False]) == Undefined("no positive items")


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_spearman_equals_scipys(pairs: list[tuple[float, int]]) -> None:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.3, 0.5, 2.0]) | st.floats(0, 3), st.booleans()), min_size=2))
def test_auc_equals_scikit_learns(items: list[tuple[float, bool]]) -> None:
    scores, positive = zip(*items, strict=True)
    if len(set(positive)) == 2:
        assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-10)


def llmjudge_tables(shared: Path, name: str) -> np.ndarray:
    """The confusion table of every query (25 x 4 x 4) of one published judge."""
    folder = shared / "llmjudge"
    human, judge = (
        {(row.turn_id, row.item_id): row.grade for row in parse_qrels(file.read_text(encoding="utf-8"), file.name)}
        for file in (folder / "llmjudge_test.qrel", folder / "judges" / f"{name}.txt")
    )
    assert human.keys() == judge.keys()
    queries = sorted({query for query, _ in human})
    topics = np.array([queries.index(query) for query, _ in human])
    codes = (np.array([grades[key] for key in human]) for grades in (human, judge))
    return topic_tables(*codes, topics, 4, len(queries))


@pytest.mark.parametrize(
    ("file", "name", "kappa", "alpha"),
    [
        ("willia-umbrela1", "umbrela1", 0.2863, 0.4918),
        ("h2oloo-fewself", "h2oloo-fewself", 0.2774, 0.4958),
        ("NISTRetrieval-instruct0", "NIST-instruct0", 0.1877, 0.3819),
        ("TREMA-rubric0", "TREMA-rubric0", 0.0779, 0.1036),
    ],
)
def test_the_released_label_files_give_the_published_agreement(shared, file, name, kappa, alpha) -> None:
    tables = llmjudge_tables(shared, file)
    C = tables.sum(axis=0)
    assert len(tables) == 25
    assert C.tolist() == LLMJUDGE[name][0]
    assert (round(number("kappa", C), 4), round(number("alpha_ordinal", C), 4)) == (kappa, alpha)
