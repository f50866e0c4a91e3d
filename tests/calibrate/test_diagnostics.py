"""What moves a judge that should not, what its grades are worth, and how it would rank runs."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from judge.calibrate.diagnostics import alternative, calibration_map, families, slopes, systems
from judge.calibrate.findings import CalibrationOptions
from judge.calibrate.panel import Case, Panel, gold_items, make_panel
from judge.gold.rows import GoldRow, match
from judge.records import Scale
from tests.calibration_world import RUNS, SCALE, Item, items, labels, panel_of, pool, row

WORLD = items(12, 5)


def panel(grades: dict[str, int], *, words: object = None, world: list[Item] = WORLD, **more: object) -> Panel:
    of = pool(world, words=words) if callable(words) else None  # type: ignore[arg-type]
    rows = [row(one.turn_id, one.response_id, one.gold, run_id=one.run_id) for one in world]
    matched = match(rows, of)[0] if of else None
    gold = gold_items(rows, matched)["groundedness"]
    said = labels("m", {(one.turn_id, one.response_id): grades[one.response_id] for one in world
                        if one.response_id in grades})  # fmt: skip
    return make_panel("groundedness", SCALE, gold, [said], pool=of, **more)  # type: ignore[arg-type]


def case(of: Panel, **options: object) -> Case:
    return Case(of, of.columns[0], "all", CalibrationOptions(**options))  # type: ignore[arg-type]


def gold_of(world: list[Item] = WORLD) -> dict[str, int]:
    return {one.response_id: one.gold for one in world}


def test_a_judge_that_rewards_length_has_a_slope_of_so_many_grades_a_doubling() -> None:
    # Responses of 4, 8 and 16 words are judged 0, 1 and 2 grades too high: a slope of 1, but for one item.
    world = [Item(f"{t}_1", f"R{t:04}{i}", 0, 0, "ape") for t in range(1, 9) for i in range(3)]
    grades = {one.response_id: int(one.response_id[-1]) for one in world}
    grades[world[1].response_id] = 2
    of = panel(grades, words=lambda one: 4 * 2 ** int(one.response_id[-1]) - 3, world=world)
    assert sorted({one.words for one in of.items}) == [4, 8, 16]
    length, place = slopes(case(of))
    # The item in question has the mean length, so it moves the level and not the slope.
    assert (length.facts["what"], length.judge) == ("log2_words", "m")
    assert length.statistics["estimate"].value == pytest.approx(1.0)
    assert (place.facts["what"], place.statistics["estimate"].value) == ("turn_depth", None)
    assert place.statistics["estimate"].reason == "no variation in length or place"
    # Beside 4 words that are shown second, in both orders, the line goes through 0, and the item counts.
    pairs = replace(of, items=tuple(structs.replace(item, seconds=("b",), second_words=4) for item in of.items))
    (only,) = slopes(case(pairs))
    slope = only.statistics["estimate"]
    assert (slope.value, slope.n) == (pytest.approx((8 * (1 * 1 + 2 * 2) + 1) / (8 * (1 + 4))), 24)


def test_without_a_pool_lengths_are_unknown_and_turns_are_not() -> None:
    of = panel(gold_of())
    (only,) = slopes(case(of))
    assert (only.facts["what"], only.statistics["estimate"].value) == ("turn_depth", 0.0)


@pytest.mark.parametrize(("turn_id", "depth"), [("9-1_3", 3), ("132_3-2", 3), ("7_" + "9" * 40, 999_999_999)])
def test_the_depth_is_the_first_number_of_the_turn(turn_id: str, depth: int) -> None:
    rows = [row("1_1", "R1", 0), row("2_1", "R2", 0), row(turn_id, "R3", 0)]
    said = labels("m", {("1_1", "R1"): 0, ("2_1", "R2"): 0, (turn_id, "R3"): 3})
    of = panel_of(rows, said)
    (only,) = slopes(case(of))
    assert only.statistics["estimate"].value == pytest.approx(3 / (depth - 1))


def test_turns_without_a_number_have_no_depth() -> None:
    rows = [row("query", "R1", 0), row("a_b", "R2", 0)]
    said = labels("m", {("query", "R1"): 0, ("a_b", "R2"): 0})
    of = panel_of(rows, said)
    assert list(slopes(case(of))) == []


def test_favor_for_its_own_family_shows() -> None:
    # Runs ape and bee are raised by 1, by 2 in a third of the items of bee; the others are as deserved.
    world = [Item(f"{t}_1", f"R{t:02}{i}", 0, 0, run) for t in range(1, 7) for i, run in enumerate(RUNS)]
    raised = {"ape": lambda t: 1, "bee": lambda t: 2 if t % 3 == 0 else 1}
    grades = {one.response_id: raised.get(one.run_id, lambda t: 0)(int(one.turn_id[0])) for one in world}
    grades["R010"] = 0
    of = panel(grades, world=world)
    of_models = {"ape": "simian", "bee": "simian", "m": "simian", "cat": "feline"}
    feline, simian = families(case(of, families=of_models))
    assert [simian.facts[name] for name in ("family", "is_self", "runs")] == ["simian", True, 2]
    assert simian.facts["mean"] == pytest.approx((5 / 6 + 8 / 6) / 2)
    assert simian.statistics["estimate"].value == simian.facts["mean"]
    assert simian.statistics["estimate"].n == 5
    assert [feline.facts[name] for name in ("family", "is_self", "runs")] == ["feline", False, 1]
    assert feline.statistics["estimate"].low is None
    assert list(families(case(of))) == []


def test_the_map_draws_few_items_to_the_line() -> None:
    rows = [row(f"{i}_1", f"R{i}", grade) for i, grade in enumerate([0, 0, 1, 1, 2, 3])]
    said = labels("m", {(f"{i}_1", f"R{i}"): grade for i, grade in enumerate([0, 0, 0, 3, 3, 3])})
    of = panel_of(rows, said)
    found = list(calibration_map(case(of)))
    assert [(one.facts["grade"], one.facts["n"], one.facts["mean"]) for one in found] == [
        (0, 3, pytest.approx(1 / 3)), (1, 0, None), (2, 0, None), (3, 3, pytest.approx(2.0))
    ]  # fmt: skip
    # The line goes through both means; a cell of 3 items is drawn to it as by 5, an empty one lies on it.
    assert [one.facts["shrunken"] for one in found] == pytest.approx([1 / 3, 1 / 3 + 5 / 9, 1 / 3 + 10 / 9, 2.0])
    assert {one.facts["weight"] for one in found} == {5.0}


def test_the_map_of_a_judge_with_one_grade_is_the_mean_everywhere() -> None:
    rows = [row(f"{i}_1", f"R{i}", grade) for i, grade in enumerate([0, 1, 3, 3])]
    said = labels("m", {(f"{i}_1", f"R{i}"): 2 for i in range(4)})
    of = panel_of(rows, said)
    assert [one.facts["shrunken"] for one in calibration_map(case(of))] == [1.75] * 4
    assert list(calibration_map(case(of)._replace(split="test"))) == []


def test_a_perfect_judge_ranks_runs_as_people_do_and_one_turned_round_in_reverse() -> None:
    deserved = dict(zip(RUNS, (0, 1, 2, 3, 3), strict=True))
    world = [
        Item(f"{t}_1", f"R{t:02}{i}", 0, deserved[run] if (t, run) != (1, "eel") else 2, run)
        for t in range(1, 9) for i, run in enumerate(RUNS)
    ]  # fmt: skip
    same = panel(gold_of(world), world=world)
    turned = panel({name: 3 - grade for name, grade in gold_of(world).items()}, world=world)
    (right,), (wrong,) = (systems(case(of, seed=1, replicates=50)) for of in (same, turned))
    assert (right.facts["runs"], right.split) == (5, "all")
    assert (right.statistics["tau_b"].value, wrong.statistics["tau_b"].value) == (1.0, -1.0)
    # On the half without topic 1, eel ties with another run: of 10 pairs 9 are concordant, and 1 is tied on one side.
    tied = 9 / (9 * 10) ** 0.5
    halves = [[one.facts[name] for name in ("half_human", "half_judge", "halves")] for one in (right, wrong)]
    assert halves == [
        [pytest.approx(tied), pytest.approx(tied), None],
        [pytest.approx(tied), pytest.approx(-tied), None],
    ]
    assert right.statistics["top_1"].value == 1.0
    assert wrong.statistics["top_1"].value == 0.0


@pytest.mark.parametrize("polarity", ["higher", "lower"])
def test_runs_are_ranked_by_the_good_end_of_the_scale(polarity: str) -> None:
    # On each turn the judge gives runs a, b and c 3, 1 and 0, the assessors 0, 2 and 1: of 3 pairs 1 is concordant.
    turned = (lambda grade: grade) if polarity == "higher" else (lambda grade: 3 - grade)
    rows = [row(f"{t}_1", f"R{t}{run}", turned(grade), run_id=run)
            for t in range(1, 7) for run, grade in zip("abc", (0, 2, 1), strict=True)]  # fmt: skip
    said = labels("m", {(one.turn_id, str(one.response_id)): turned((3, 0, 1)[turned(one.grade)]) for one in rows})
    of = panel_of(rows, said, scale=Scale(SCALE.levels, polarity, (0, 1), None))  # type: ignore[arg-type]
    (found,) = systems(case(of, seed=1, replicates=50))
    assert found.statistics["tau_b"].value == pytest.approx(-1 / 3)
    assert found.statistics["top_1"].value == 0.0


def test_two_runs_are_no_ranking() -> None:
    world = [Item(f"{t}_1", f"R{t}{i}", 0, i, run) for t in range(1, 7) for i, run in enumerate(RUNS[:2])]
    of = panel(gold_of(world), world=world)
    assert list(systems(case(of))) == []


def graded_by(*names: str, of: dict[str, list[int]]) -> list[GoldRow]:
    return [row(f"{i}_1", f"R{i}", grade, name) for name in names for i, grade in enumerate(of[name])]


def test_the_alternative_annotator_needs_two_assessors() -> None:
    of = panel(gold_of())
    assert list(alternative(case(of))) == []


def test_a_judge_that_is_one_of_the_assessors_again_may_stand_in_for_any() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 60)
    grades = {name: np.clip(truth + rng.integers(-1, 2, 60), 0, 3).tolist() for name in ("ann", "ben", "cyd")}
    rows = graded_by("ann", "ben", "cyd", of=grades)
    good, bad = (
        panel_of(rows, labels("m", {(f"{i}_1", f"R{i}"): int(grade) for i, grade in enumerate(those)}))
        for those in (truth, 3 - truth)
    )
    right, wrong = ([one.facts for one in alternative(case(of, epsilon=0.2))] for of in (good, bad))
    assert {(one["omega"], one["epsilon"], one["n"]) for one in right} == {(1.0, 0.2, 60)}
    assert {one["assessor"] for one in right} == {"ann", "ben", "cyd"}
    assert {one["omega"] for one in wrong} == {0.0}
    assert right[0]["rho"] > wrong[0]["rho"]


def test_too_few_items_for_the_alternative_annotator_is_a_reason() -> None:
    rows = graded_by("ann", "ben", of={"ann": [0, 1, 2], "ben": [0, 1, 3]})
    of = panel_of(rows, labels("m", {}))
    (found,) = alternative(case(of, epsilon=0.1))
    assert [found.facts.get(name) for name in ("omega", "rho", "p")] == [None, None, None]
    assert found.facts["reason"]
