"""Agreement of two sets of grades, by hand."""

from collections.abc import Iterator

import pytest

from judge.extra.evaluate.sets import COMPARED, GradeSet, SetsAgreement, binary, common_turns, sets_agreement

SCALE = (0, 1, 2, 3)


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judge.extra.evaluate.sets.REPLICATES", 20)
        yield


def of(rows: dict[str, dict[str, int]], scale: tuple[int, ...] = SCALE, name: str = "qrels") -> GradeSet:
    return GradeSet(name, rows, scale)


def compared(a: GradeSet, b: GradeSet) -> SetsAgreement:
    return sets_agreement(a, b, "topic")


A = of({"1_1": {"p": 0, "q": 3, "r": 1}, "1_2": {"p": 2, "q": 2}, "2_1": {"p": 1}, "3_1": {"p": 1}})
B = of({"1_1": {"p": 0, "q": 2, "s": 1}, "1_2": {"p": 2, "q": 3}, "2_1": {"p": 0, "q": 0}, "4_1": {"p": 1}})


def test_only_items_of_both_sets_are_compared() -> None:
    # Both graded 1_1 p and q, 1_2 p and q, and 2_1 p: pairs (0,0) (3,2) (2,2) (2,3) (1,0).
    found = compared(A, B)
    assert (found.items, found.turns, found.topics) == (5, 3, 2)
    assert (found.a.items, found.a.only_items, found.a.only_turns) == (7, 2, 1)
    assert (found.b.items, found.b.only_items, found.b.only_turns) == (8, 3, 1)
    assert found.confusion == ((1, 0, 0, 0), (1, 0, 0, 0), (0, 0, 1, 1), (0, 0, 1, 0))
    assert found.statistics["percent"].value == 2 / 5
    assert found.statistics["bias"].value == pytest.approx((0 - 1 + 0 + 1 - 1) / 5)
    assert (found.a.mean, found.b.mean) == ((0 + 3 + 2 + 2 + 1) / 5, (0 + 2 + 2 + 3 + 0) / 5)
    # Chance: the share of each grade in A times that in B: 0 1/5·2/5, 1 1/5·0, 2 2/5·2/5, 3 1/5·1/5.
    by_chance = (2 + 0 + 4 + 1) / 25
    assert found.statistics["kappa"].value == pytest.approx((2 / 5 - by_chance) / (1 - by_chance))
    # One pair above the diagonal and three below, each cell alone: (1,0), (2,3) against (3,2).
    assert found.marginals[0].chi2 == pytest.approx((0 - 1) ** 2 / 1 + (1 - 1) ** 2 / 2)


def test_a_set_agrees_fully_with_itself() -> None:
    found = compared(A, A)
    values = {name: estimate.value for name, estimate in found.statistics.items()}
    assert values == dict.fromkeys(COMPARED, 1.0) | {"bias": 0.0}
    assert (found.a.only_items, found.b.only_items) == (0, 0)
    assert [test.chi2 for test in found.marginals] == [None, None]


def test_swapping_the_sets_turns_the_bias_and_keeps_the_rest() -> None:
    one_way, other_way = compared(A, B), compared(B, A)
    for name in COMPARED:
        sign = -1 if name == "bias" else 1
        assert one_way.statistics[name].value == pytest.approx(sign * (other_way.statistics[name].value or 0.0))
    assert one_way.confusion == tuple(zip(*other_way.confusion, strict=True))
    assert (one_way.a, one_way.b) == (other_way.b, other_way.a)


def test_binary_takes_grades_that_are_as_good_or_better() -> None:
    assert binary(of({"1_1": {"p": 3, "q": 2, "r": 1}}), 2) == of({"1_1": {"p": 1, "q": 1, "r": 0}}, (0, 1))
    inverted = GradeSet("qrels", {"1_1": {"p": 3, "q": 2, "r": 1}}, SCALE, False)
    assert binary(inverted, 2) == of({"1_1": {"p": 0, "q": 1, "r": 1}}, (0, 1))


def test_common_turns_are_in_natural_order() -> None:
    rows = {turn: {"p": 1} for turn in ("9-1_10", "9-1_2", "10-1_1")}
    assert common_turns(of(rows), of(rows | {"8-1_1": {"p": 0}})) == ("9-1_2", "9-1_10", "10-1_1")
