"""Every statistic of one judge, under any name, and that none is about anything but what both graded."""

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from judge.ask.results import Label
from judge.calibrate.agreement import agreement_row, ceiling
from judge.calibrate.calibration import parse_requirement, worst_codes
from judge.calibrate.findings import AgreementRow, Split
from judge.calibrate.panel import Panel, constant
from judge.gold.rows import GoldRow
from judge.records import Level, Scale
from judge.stats.agreement import STATISTICS, point
from judge.stats.comparison import after_choice, compare, nested_folds
from judge.stats.resampling import resampled
from tests.calibration_world import SCALE, labels, panel_of, row

ITEMS = [
    ("1_1", 0, 0), ("1_2", 3, 3), ("2_1", 1, 2), ("2_2", 2, 2), ("3_1", 3, 1),
    ("3_2", 3, 3), ("4_1", 0, 0), ("4_2", 1, 2), ("5_1", 2, 3), ("5_2", 3, 3),
]  # fmt: skip


def panel(
    rows: Sequence[GoldRow], grades: Mapping[tuple[str, str], int | None] | Sequence[Label], scale: Scale = SCALE
) -> Panel:
    return panel_of(rows, labels("m", grades), scale=scale)


def found(of: Panel, split: Split = "all", replicates: int = 100) -> AgreementRow:
    mask = of.within(split)
    return agreement_row(of, of.columns[0], split, ceiling(of, mask, 1, replicates), 1, replicates)


def paired(grades: Sequence[tuple[str, int, int | None]]) -> AgreementRow:
    """Agreement on (turn_id, human, judge), one response each."""
    rows = [row(turn, f"R{i}", human) for i, (turn, human, _) in enumerate(grades)]
    said = {(turn, f"R{i}"): judge for i, (turn, _, judge) in enumerate(grades)}
    return found(panel(rows, said))


def test_every_statistic_is_about_the_pairs_that_both_graded() -> None:
    one = paired(ITEMS)
    human, judge = [human for _, human, _ in ITEMS], [judge for _, _, judge in ITEMS]
    assert (one.judge, one.prompt, one.criterion, one.split, one.reference) == ("m", None, "groundedness", "all", "ann")
    assert (one.gold, one.n, one.topics, one.coverage, one.without_grade) == (10, 10, 5, 1.0, {})
    assert tuple(one.statistics) == (*STATISTICS, "rank_correlation", "auc")
    assert one.statistics["percent"].value == 6 / 10
    assert one.statistics["within_one"].value == 9 / 10
    assert one.statistics["bias"].value == pytest.approx((1 - 2 + 1 + 1) / 10)
    assert one.statistics["mae"].value == pytest.approx((1 + 2 + 1 + 1) / 10)
    for name, weights in (("kappa", None), ("wkappa", "quadratic"), ("wkappa_linear", "linear")):
        assert one.statistics[name].value == pytest.approx(cohen_kappa_score(human, judge, weights=weights))
    assert one.confusion == ((2, 0, 0, 0), (0, 0, 2, 0), (0, 0, 1, 1), (0, 1, 0, 3))
    assert one.statistics["rank_correlation"].reason == "the judge gives no label probabilities"
    assert one.primary == "wkappa"


def test_coverage_counts_why_there_is_no_grade() -> None:
    rows = [row(f"{i}_1", f"R{i}", i % 4) for i in range(8)]
    said = [Label("0_1", "R0", 0), Label("1_1", "R1", 1), Label("2_1", "R2", None, "unable"),
            Label("3_1", "R3", None, "unreadable"), Label("4_1", "R4", None, "unreadable")]  # fmt: skip
    one = found(panel(rows, said))
    assert (one.gold, one.n, one.coverage) == (8, 2, 2 / 8)
    assert one.without_grade == {"not_judged": 3, "unable": 1, "unreadable": 2}
    assert one.statistics["percent"].value == 1.0
    # As wrong as can be: two of eight are right, whatever the six would have been.
    assert one.worst_case["percent"] == 2 / 8
    assert one.worst_case["wkappa"] < 0


def test_leaving_out_what_it_would_have_got_wrong_raises_a_judge_s_value_but_not_its_worst_case() -> None:
    full = paired(ITEMS)
    shy = paired([(turn, human, judge if judge == human else None) for turn, human, judge in ITEMS])
    assert shy.statistics["wkappa"].value == 1.0
    assert shy.worst_case["wkappa"] < full.worst_case["wkappa"]


def test_no_common_grade_leaves_every_statistic_undefined_and_no_item_divides_by_zero() -> None:
    one = found(panel([row("1_1", "R1", 1)], {("9_1", "R9"): 1}))
    assert (one.gold, one.n, one.topics, one.coverage) == (1, 0, 0, 0.0)
    for estimate in one.statistics.values():
        assert estimate.value is None
        assert estimate.reason
    assert one.confusion == ((0,) * 4,) * 4
    one = found(panel([row("1_1", "R1", 1, split="test")], {("1_1", "R1"): 1}), "dev")
    assert (one.gold, one.n, one.coverage, one.ceiling) == (0, 0, 0.0, None)


def test_each_split_has_its_own_statistics() -> None:
    rows = [row(f"{t}_{i}", f"R{t}{i}", i % 4, split="dev" if t < 5 else "test") for t in range(10) for i in range(4)]
    said = {(one.turn_id, one.response_id or ""): one.grade if one.split == "dev" else 3 - one.grade for one in rows}
    of = panel(rows, said)
    assert (found(of, "dev").statistics["wkappa"].value, found(of, "dev").gold) == (1.0, 20)
    assert (found(of, "test").statistics["wkappa"].value, found(of, "test").gold) == (-1.0, 20)


def test_the_expected_grade_is_ranked_against_gold() -> None:
    rows = [row(f"{i}_1", f"R{i}", grade) for i, grade in enumerate([0, 1, 2, 3])]
    expected = [0.1, 1.9, 1.2, 2.8]
    one = found(panel(rows, [Label(f"{i}_1", f"R{i}", 1, expected=x) for i, x in enumerate(expected)]))
    # Ranks 1 3 2 4 against 1 2 3 4: 1 - 6 * 2 / (4 * 15). Positive are 2 and 3: of four pairs three are won.
    assert one.statistics["rank_correlation"].value == pytest.approx(1 - 6 * 2 / 60)
    assert one.statistics["auc"].value == 3 / 4
    assert roc_auc_score([0, 0, 1, 1], expected) == 3 / 4
    assert one.statistics["kappa"].value == pytest.approx(0)


def test_where_lower_is_better_the_low_expected_grades_are_the_positive_ones() -> None:
    inverted = Scale((Level(0, "0", ""), Level(1, "1", "")), "lower", (0,), None)
    rows = [row(f"{i}_1", f"R{i}", grade) for i, grade in enumerate([0, 0, 1, 1])]
    said = [Label(f"{i}_1", f"R{i}", round(x), expected=x) for i, x in enumerate([0.1, 0.2, 0.7, 0.9])]
    one = found(panel(rows, said, inverted))
    assert one.statistics["auc"].value == 1.0
    assert one.statistics["rank_correlation"].value > 0.8


def test_probabilities_for_some_grades_only_are_not_called_none() -> None:
    rows = [row(f"{i}_1", f"R{i}", i) for i in range(3)]
    said = [Label(f"{i}_1", f"R{i}", i, expected=x) for i, x in enumerate([0.5, None, 1.5])]
    reasons = {found(panel(rows, said)).statistics[name].reason for name in ("rank_correlation", "auc")}
    assert reasons == {"label probabilities for only 2 of 3 grades"}


def test_the_constant_is_measured_like_any_judge() -> None:
    of = panel([row(turn, f"R{i}", human) for i, (turn, human, _) in enumerate(ITEMS)], {})
    mask = of.within("all")
    one = agreement_row(of, constant(of, mask), "all", None, 1, 100)
    assert (one.judge, one.baseline, one.coverage) == ("constant", True, 1.0)
    assert one.statistics["percent"].value == 4 / 10
    assert one.statistics["wkappa"].value == 0
    assert one.statistics["tau_b"].value is None


@pytest.mark.parametrize(
    ("ann", "ben"), [([0, 1, 2, 3, 3, 0], [0, 1, 2, 3, 2, 1]), ([0, 0, 3, 3, 1, 2], [3, 3, 0, 0, 2, 1])]
)
def test_the_ceiling_of_two_assessors_is_the_statistic_between_them(ann: list[int], ben: list[int]) -> None:
    rows = [row(f"{i}_1", f"R{i}", grade, name) for name, grades in (("ann", ann), ("ben", ben))
            for i, grade in enumerate(grades)]  # fmt: skip
    of = panel(rows, {})
    between = ceiling(of, of.within("all"), 1, 100)
    assert between.value == pytest.approx(cohen_kappa_score(ann, ben, weights="quadratic"))
    assert (between.n, between.topics) == (6, 6)


def test_the_ceiling_of_three_is_each_against_the_consensus_of_the_others() -> None:
    grades = {"ann": [0, 1, 2, 3], "ben": [0, 1, 3, 3], "cyd": [1, 1, 3, 0]}
    rows = [row(f"{i}_1", f"R{i}", grade, name) for name, those in grades.items() for i, grade in enumerate(those)]
    of = panel([*rows, row("9_1", "R9", 0, "ann")], {})
    # Each against the modes of the others; two that differ are half of the item each, so all pairs stand here twice.
    pairs = [
        *((0, 0), (0, 1), (1, 1), (1, 1), (2, 3), (2, 3), (3, 3), (3, 0)),
        *((0, 0), (0, 1), (1, 1), (1, 1), (3, 2), (3, 3), (3, 3), (3, 0)),
        *((1, 0), (1, 0), (1, 1), (1, 1), (3, 2), (3, 3), (0, 3), (0, 3)),
    ]
    between = ceiling(of, of.within("all"), 1, 100)
    assert between.value == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True), weights="quadratic"))
    # 12 pairs of 4 items; that of ann alone is none of them.
    assert (between.n, between.topics) == (4, 4)


def test_a_tie_of_assessors_takes_no_side() -> None:
    """Two judges agree with both assessors where these agree; where they tie, one says no, and the other yes."""
    rows, strict, lenient = [], [], []
    for topic in range(1, 26):
        for place in range(4):
            turn_id, response_id = f"{topic}_{place}", f"R{topic}_{place}"
            tie = place == 0 and topic <= 20
            said = (topic + place) % 2
            rows += [row(turn_id, response_id, grade, name) for name, grade in
                     (("ann", 0 if tie else said), ("ben", 1 if tie else said))]  # fmt: skip
            strict.append(Label(turn_id, response_id, 0 if tie else said))
            lenient.append(Label(turn_id, response_id, 1 if tie else said))
    low, high = (found(panel(rows, labels)) for labels in (strict, lenient))
    # 80 of 100 agree, and half of each of the 20 ties.
    assert low.statistics["percent"].value == high.statistics["percent"].value == pytest.approx(0.9)
    assert low.statistics["bias"].value == pytest.approx(-high.statistics["bias"].value) == pytest.approx(-0.1)
    assert (low.n, low.tied, sum(map(sum, low.confusion))) == (100, 20, 80)
    # No judge can agree with more than half of a tie.
    assert low.worst_case["percent"] == pytest.approx(0.9)


def drawn(p_of: Mapping[int, float]) -> AgreementRow:
    """A judge on every item of a grid of pairs, which were drawn with probabilities by the judge's grade."""
    pairs = [(human, judge) for human in range(4) for judge in range(4) for _ in range(1 + 3 * (human == judge))]
    rows = [row(f"{i % 9}_{i}", f"R{i}", human, inclusion_probability=p_of[judge]) for i, (human, judge) in
            enumerate(pairs)]  # fmt: skip
    said = [Label(f"{i % 9}_{i}", f"R{i}", judge, expected=judge + i / 100) for i, (_, judge) in enumerate(pairs)]
    return found(panel(rows, said))


def test_statistics_are_of_what_the_gold_was_drawn_from() -> None:
    one, plain = drawn({0: 0.1, 1: 1.0, 2: 1.0, 3: 0.5}), drawn(dict.fromkeys(range(4), 0.5))
    pairs = [(human, judge) for human in range(4) for judge in range(4) for _ in range(1 + 3 * (human == judge))]
    weights = [{0: 10, 1: 1, 2: 1, 3: 2}[judge] for _, judge in pairs]
    human, judge = zip(*pairs, strict=True)
    for name, kind in (("kappa", None), ("wkappa", "quadratic"), ("wkappa_linear", "linear")):
        expected = cohen_kappa_score(human, judge, weights=kind, sample_weight=weights)
        assert one.statistics[name].value == pytest.approx(expected)
        assert one.worst_case.get(name, expected) == pytest.approx(expected)
        assert one.statistics[name].low < expected < one.statistics[name].high
    bias = np.average(np.subtract(judge, human), weights=weights)
    assert one.statistics["bias"].value == pytest.approx(bias)
    assert plain.statistics["bias"].value == pytest.approx(0)
    # Items are counted as they are.
    assert (one.n, one.coverage, one.confusion, one.marginals) == (28, 1.0, plain.confusion, plain.marginals)
    assert {estimate.n for estimate in one.statistics.values()} == {28}
    assert {estimate.reason for estimate in one.item.values()} == {"items have unequal weights, or two orders each"}
    assert set(one.design_effect.values()) == {None}
    for name in ("rank_correlation", "auc"):
        assert (one.statistics[name].value, one.statistics[name].low) == (
            plain.statistics[name].value, plain.statistics[name].low
        )  # fmt: skip
        assert one.statistics[name].reason == ("of the items as they were drawn: not weighted by inclusion probability")
        assert plain.statistics[name].reason is None


def test_equal_probabilities_change_nothing() -> None:
    assert drawn(dict.fromkeys(range(4), 0.3)) == drawn(dict.fromkeys(range(4), 1.0))


def test_assessors_who_share_no_item_give_no_ceiling() -> None:
    of = panel([row("1_1", "R1", 1, "ann"), row("1_2", "R2", 1, "ben")], {})
    assert ceiling(of, of.within("all"), 1, 100) is None
    assert ceiling(of, of.within("test"), 1, 100) is None


def test_the_same_samples_again_are_perfectly_reliable_and_other_ones_are_not() -> None:
    rows = [row(f"{i}_1", f"R{i}", i % 4) for i in range(12)]
    same = [Label(f"{i}_1", f"R{i}", i % 4, sample=s) for i in range(12) for s in range(3)]
    other = [Label(f"{i}_1", f"R{i}", (i + s) % 4, sample=s) for i in range(12) for s in range(3)]
    assert found(panel(rows, same)).test_retest.value == 1.0
    assert found(panel(rows, other)).test_retest.value < 0.5
    assert found(panel(rows, [one for one in same if one.sample == 0])).test_retest is None


@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3) | st.none()), min_size=1, max_size=25),
    st.randoms(use_true_random=False),
)
def test_the_order_of_items_changes_nothing(items: list[tuple[int, int, int | None]], shuffle: random.Random) -> None:
    rows = [row(f"{topic}_1", f"R{i}", human) for i, (topic, human, _) in enumerate(items)]
    said = [Label(f"{topic}_1", f"R{i}", judge, None if judge is not None else "unable")
            for i, (topic, _, judge) in enumerate(items)]  # fmt: skip
    before = found(panel(rows, said), replicates=20)
    shuffle.shuffle(rows)
    shuffle.shuffle(said)
    assert found(panel(rows, said), replicates=20) == before


@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3) | st.none()), min_size=1, max_size=25)
)
def test_no_number_is_nan_and_what_is_undefined_has_a_reason(items: list[tuple[int, int, int | None]]) -> None:
    one = paired([(f"{topic}_1", human, judge) for topic, human, judge in items])
    assert one.n + sum(one.without_grade.values()) == one.gold
    for estimate in (*one.statistics.values(), *one.item.values()):
        numbers = [x for x in (estimate.value, estimate.low, estimate.high) if x is not None]
        assert not np.isnan(numbers).any()
        assert (estimate.low is None) == (estimate.high is None)
        assert estimate.low is not None or estimate.reason
        if estimate.low is not None and estimate.value is not None:
            assert estimate.low <= estimate.value + 1e-9
            assert estimate.value <= estimate.high + 1e-9
    assert all(value is None or not np.isnan(value) for value in one.worst_case.values())


GRADES = (0, 1, 2, 3)
TWIN = "twin"
ROWS = ("percent", "bias", "wkappa", "alpha_ordinal", "ac2", "tau_b")
"""A row of each family, and the signed one."""


@pytest.fixture(params=ROWS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a row, which is there a second time as TWIN."""
    monkeypatch.setitem(STATISTICS, TWIN, STATISTICS[request.param])
    return str(request.param)


def tables(seed: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = np.zeros((9, 4, 4), dtype=np.int64)
    for topic in counts:
        human = rng.integers(0, 4, 6)
        judge = np.clip(np.rint(human + rng.normal(0.3, spread, 6)), 0, 3).astype(int)
        np.add.at(topic, (human, judge), 1)
    return counts


def test_every_family_has_a_row_here() -> None:
    assert {STATISTICS[name].family for name in ROWS} == {statistic.family for statistic in STATISTICS.values()}


def test_values_intervals_and_reasons(name: str) -> None:
    for C in (tables(1, 0.8), tables(2, 0.1), tables(1, 0.8)[:3], tables(1, 0.8) * 0.5, np.eye(4, dtype=int)[None] * 7):
        assert point(TWIN, C.sum(axis=0), GRADES) == point(name, C.sum(axis=0), GRADES)
        same, twin = (resampled(one, C, GRADES, np.random.default_rng(1), replicates=99) for one in (name, TWIN))
        assert same == twin


def test_choices_and_comparisons(name: str) -> None:
    several = np.array([tables(seed, spread) for seed, spread in ((1, 1.2), (2, 0.4), (3, 0.7))])
    assert nested_folds(several, TWIN, GRADES, np.random.default_rng(1)) == nested_folds(
        several, name, GRADES, np.random.default_rng(1)
    )
    for candidates in (several, np.array([np.eye(4, dtype=int)[None].repeat(9, axis=0)] * 2)):
        assert after_choice(candidates, 1, TWIN, GRADES, np.random.default_rng(1), replicates=99) == after_choice(
            candidates, 1, name, GRADES, np.random.default_rng(1), replicates=99
        )
    pairs = {("a", "b"): (several[0], several[1])}
    assert compare(pairs, TWIN, GRADES, np.random.default_rng(1), permutations=99) == compare(
        pairs, name, GRADES, np.random.default_rng(1), permutations=99
    )


@pytest.mark.parametrize("bound", [".lo>=0.1", ".hi<=0.1"])
def test_requirements(name: str, bound: str) -> None:
    judged = panel([row(f"{turn}_1", f"R{turn}", turn % 4) for turn in range(8)], {})
    same, twin = (worst_codes(judged, judged.columns[0].codes, parse_requirement(one + bound)) for one in (name, TWIN))
    assert same.tolist() == twin.tolist()


def test_rows_of_agreement(name: str) -> None:
    rows = [row(turn, f"R{i}", human) for i, (turn, human, _) in enumerate(ITEMS)]
    said = {(turn, f"R{i}"): judge for i, (turn, _, judge) in enumerate(ITEMS) if i}
    of = panel(rows, said)
    found = agreement_row(of, of.columns[0], "all", None, 1, 50)
    for values in (found.statistics, found.item, found.design_effect):
        assert values[TWIN] == values[name]
    assert (TWIN in found.worst_case) == (name in found.worst_case) == STATISTICS[name].worst_case
    assert found.worst_case.get(TWIN) == found.worst_case.get(name)
