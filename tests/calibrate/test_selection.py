"""The choice among judges, what it costs, and the whole of a calibration on panels."""

from collections.abc import Mapping

import pytest

from judge.ask.results import Labels
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.calibration import parse_requirement
from judge.calibrate.findings import Calibration
from judge.calibrate.panel import Panel
from judge.calibrate.selection import candidates, choose, comparisons
from judge.stats.agreement import point
from tests.calibration_world import Item, items, labeled, labels, panel_of, row

WORLD = items()


def said(name: str, noise: float, seed: int, world: list[Item] = WORLD, prompt: str | None = None) -> Labels:
    grades = labeled(world, noise, seed)
    return labels(name, {(one.turn_id, one.response_id): grades[one.response_id] for one in world}, prompt)


def panel(*judges: Labels, dev_topics: int | None = None, world: list[Item] = WORLD, **more: object) -> Panel:
    rows = []
    for one in world:
        if dev_topics is not None:
            more["split"] = "dev" if int(one.turn_id.partition("_")[0]) <= dev_topics else "test"
        rows.append(row(one.turn_id, one.response_id, one.gold, **more))
    return panel_of(rows, *judges, baselines=("baseline/overlap",))


def calibrated(of: Panel, *rules: str, **more: object) -> Calibration:
    requirements = tuple(map(parse_requirement, rules))
    return calibrate([of], CalibrationOptions(requirements=requirements, replicates=60, permutations=60, **more))  # type: ignore[arg-type]


def test_the_best_by_the_primary_statistic_is_chosen() -> None:
    of = panel(said("bad", 0.8, 1), said("good", 0.1, 2), said("middling", 0.4, 3))
    chosen = choose(of, "all")
    values = {one.name: point("wkappa", of.tables(one.codes).sum(axis=0), of.grades) for one in of.columns}
    assert chosen.name == max(values, key=lambda name: values[name]) == "good"


def test_no_judge_wins_by_failing_on_what_it_would_get_wrong() -> None:
    honest = said("honest", 0.2, 1)
    right = {(one.turn_id, one.response_id): one.gold for one in WORLD[:40]}
    of = panel(honest, labels("shy", right))
    assert point("wkappa", of.tables(of.columns[1].codes).sum(axis=0), of.grades) == 1.0
    chosen = choose(of, "all")
    assert chosen.name == "honest"


def test_of_equals_the_first_by_name_is_chosen_and_nobody_of_nobody() -> None:
    twins = (said("a", 0.2, 1), said("b", 0.2, 1))
    chosen = choose(panel(*twins), "all")
    assert chosen.name == "a"
    assert choose(panel(labels("silent", {})), "all") is None
    assert choose(panel(), "all") is None


def test_a_baseline_is_never_chosen_however_good() -> None:
    of = panel(said("baseline/overlap", 0.0, 1), said("m", 0.5, 2))
    assert [one.name for one in candidates(of)] == ["m"]
    chosen = choose(of, "all")
    assert chosen.name == "m"


def test_pairs_are_compared_on_the_items_that_both_graded() -> None:
    half: Mapping[tuple[str, str], int] = {(one.turn_id, one.response_id): one.gold for one in WORLD[:60]}
    of = panel(said("a", 0.3, 1), labels("b", half), said("c", 0.3, 3))
    rows, _ = comparisons(of, of.columns, "all", 1, 60)
    assert [(one.a, one.b, one.difference.n) for one in rows] == [("a", "b", 60), ("a", "c", 120), ("b", "c", 60)]
    ab = rows[0]
    kappa = point("wkappa", of.tables(of.columns[0].codes, of.columns[1].codes >= 0).sum(axis=0), of.grades)
    assert ab.difference.value == pytest.approx(kappa - 1.0)


def test_baselines_are_always_there_and_the_constant_needs_no_labels() -> None:
    found = calibrated(panel(said("m", 0.2, 1), said("baseline/overlap", 0.5, 2)))
    assert [(one.judge, one.baseline) for one in found.agreement] == [
        ("m", False), ("constant", True), ("baseline/overlap", True)
    ]  # fmt: skip
    assert [one.tried for one in found.selections] == [("m",)]


def test_the_judge_chosen_on_dev_is_the_only_one_reported_on_test() -> None:
    of = panel(said("bad", 0.8, 1), said("good", 0.1, 2), said("baseline/overlap", 0.5, 3), dev_topics=12)
    found = calibrated(of)
    on_test = [one.judge for one in found.agreement if one.split == "test"]
    assert on_test == ["good", "constant", "baseline/overlap"]
    assert {one.judge for one in found.agreement if one.split == "dev"} == {"bad", *on_test}
    (choice,), (verdict,) = found.selections, found.verdicts
    assert (choice.chosen, choice.chosen_on, verdict.split, verdict.judge) == ("good", "dev", "test", "good")
    test = next(one for one in found.agreement if (one.judge, one.split) == ("good", "test"))
    assert choice.test == test.statistics["wkappa"] == verdict.estimate
    assert choice.value.value - choice.test.value == pytest.approx(choice.optimism)
    assert {one.split for one in (*found.comparisons, *found.findings["systems"])} == {"dev"}
    # Nothing else was computed from test grades of the others.
    assert {one.facts["n"] for one in found.findings["calibration_map"] if one.judge == "bad"} != {0}
    assert sum(one.facts["n"] for one in found.findings["calibration_map"] if one.judge == "bad") == 60


def test_the_constant_on_test_is_the_commonest_grade_of_dev() -> None:
    world = [Item(f"{t}_{i}", f"R{t:02}{i}", 0, 0 if t <= 6 else 3, "ape") for t in range(1, 13) for i in range(3)]
    found = calibrated(panel(said("m", 0.3, 1, world), dev_topics=6, world=world))
    row = next(one for one in found.agreement if (one.judge, one.split) == ("constant", "test"))
    assert row.statistics["percent"].value == 0.0


def test_without_a_test_part_the_interval_allows_for_the_choice() -> None:
    found = calibrated(panel(*(said(f"m{i}", 0.5, i) for i in range(4))))
    (choice,) = found.selections
    assert choice.test is None
    assert choice.nested is not None
    assert choice.after_choice.value == choice.value.value
    assert choice.after_choice.low < choice.value.low < choice.value.high
    assert choice.after_choice.high == pytest.approx(choice.value.high, abs=0.02)
    assert choice.optimism == pytest.approx(choice.value.value - choice.nested)
    assert found.verdicts[0].estimate == choice.after_choice
    assert "after choosing among 4 on the same grades" in found.verdicts[0].reasons[0]
    assert any("the best of 4 was chosen and is reported on the same grades" in one for one in found.warnings)


def test_a_choice_is_scored_on_the_items_judged_and_again_on_all() -> None:
    most, half = dict(list(perfect().items())[:110]), dict(list(perfect().items())[::2])
    (choice,) = calibrated(panel(labels("most", most), labels("half", half))).selections
    assert (choice.chosen, choice.nested, choice.optimism) == ("most", 1.0, 0.0)
    # The last two of 24 topics have no grade by the chosen judge.
    after = choice.after_choice
    assert (after.value, after.high, after.n, after.topics, after.reason) == (1, 1, 110, 22, None)
    assert 0.6 < after.low < 0.9
    assert (choice.value.low, choice.value.high) == (pytest.approx(after.low, abs=0.1), 1)
    assert choice.after_choice_worst.low < choice.after_choice_worst.value < 0.95
    assert choice.after_choice_worst.n == 120


def test_the_choice_that_is_repeated_counts_missing_grades_as_the_choice_does() -> None:
    half = labels("half", dict(list(perfect().items())[::2]))
    honest, noise = said("honest", 0.2, 1), said("noise", 1.0, 3)
    (choice,), (same,) = (calibrated(panel(honest, other)).selections for other in (half, noise))
    # On what it judged, `half` is perfect; were it chosen for that, the interval would be about another judge.
    assert choice.chosen == same.chosen == "honest"
    assert choice.nested == same.nested
    assert choice.after_choice_worst is not None and same.after_choice_worst is None
    assert choice.after_choice.value == same.after_choice.value == choice.value.value
    assert choice.optimism == pytest.approx(choice.value.value - choice.nested)


def test_the_choice_and_comparisons_go_by_what_the_gold_was_drawn_from() -> None:
    # One judge is right about the many of which few were drawn, the other about the few.
    rows = [row(one.turn_id, one.response_id, one.gold, inclusion_probability=0.05 if i % 5 else 1.0)
            for i, one in enumerate(WORLD)]  # fmt: skip
    many, few = (
        {key: grade if (i % 5 > 0) == side else (grade + 1) % 4 for i, (key, grade) in enumerate(perfect().items())}
        for side in (True, False)
    )
    of = panel_of(rows, labels("few", few), labels("many", many))
    (choice,) = calibrated(of).selections
    (pair,), _ = comparisons(of, of.columns, "all", 1, 60)
    assert choice.chosen == "many"
    assert choice.value.value > 0.9
    assert choice.after_choice.value > 0.9
    assert pair.difference.value == pytest.approx(of_rows(of, 0) - of_rows(of, 1))
    assert pair.difference.value < -0.5
    assert (pair.difference.n, choice.after_choice.n) == (120, 120)


def of_rows(of: Panel, place: int) -> float:
    value = point("wkappa", of.tables(of.columns[place].codes).sum(axis=0), of.grades)
    assert isinstance(value, float)
    return value


def perfect() -> dict[tuple[str, str], int]:
    return {(one.turn_id, one.response_id): one.gold for one in WORLD}


def test_fewer_than_8_topics_tell_no_two_judges_apart_and_the_output_says_so() -> None:
    few = [item for item in WORLD if int(item.turn_id.partition("_")[0].partition("-")[0]) <= 7]
    found = calibrated(panel(said("good", 0.0, 1, few), said("noise", 1.0, 3, few), world=few))
    warning = "groundedness: judges are compared on 7 topics; fewer than 8 tell no two of them apart"
    assert warning in found.warnings
    assert found.selections[0].not_separable == ("noise",)
    (pair,) = found.comparisons
    assert (pair.p_max_t, pair.p_holm) == (None, None)
    assert pair.p < 0.05
    more = calibrated(panel(said("good", 0.0, 1), said("noise", 1.0, 3)))
    assert more.selections[0].not_separable == ()
    assert not any("tell no two" in text for text in more.warnings)


def test_one_candidate_was_not_chosen() -> None:
    found = calibrated(panel(said("m", 0.1, 1)))
    (choice,) = found.selections
    assert (choice.nested, choice.after_choice, choice.optimism, choice.not_separable) == (None, None, None, ())
    assert found.verdicts[0].word == "TRUSTED"
    assert not any("was chosen" in one for one in found.warnings)


def test_who_cannot_be_told_from_the_chosen_one_is_named() -> None:
    found = calibrated(panel(said("a", 0.1, 1), said("b", 0.12, 2), said("noise", 1.0, 3)))
    (choice,) = found.selections
    assert {choice.chosen, *choice.not_separable} == {"a", "b"}


@pytest.mark.parametrize(("statistic", "bound"), [("wkappa", 0.5), ("percent", 0.8)])
def test_missing_grades_make_no_judge_trusted_by_whatever_statistic(statistic: str, bound: float) -> None:
    right = {(one.turn_id, one.response_id): one.gold if i % 3 else 3 - one.gold for i, one in enumerate(WORLD)}
    easy = {key: grade for key, grade in right.items() if grade == perfect()[key] or key[0].endswith("_1")}
    assert len(easy) < 0.8 * len(WORLD)
    found = calibrated(panel(labels("shy", easy)), f"{statistic}.lo>={bound}")
    row = found.agreement[0]
    assert row.statistics[statistic].low >= bound
    assert found.verdicts[0].word == "INCONCLUSIVE"


def test_gold_that_is_not_blind_makes_nobody_trusted_and_is_said() -> None:
    found = calibrated(panel(said("m", 0.05, 1), made="synthetic"))
    assert found.verdicts[0].word == "INCONCLUSIVE"
    assert any("the gold was not graded blind (synthetic)" in one for one in found.warnings)


def test_nobody_to_choose_is_no_verdict() -> None:
    found = calibrated(panel(labels("silent", {})))
    assert ([one.word for one in found.verdicts], found.selections) == (["INCONCLUSIVE"], ())
    assert [(one.judge, one.n) for one in found.agreement] == [("silent", 0), ("constant", 120)]


def test_gold_that_is_all_test_chooses_nobody() -> None:
    found = calibrated(panel(said("m", 0.1, 1), dev_topics=0))
    assert [one.word for one in found.verdicts] == ["INCONCLUSIVE"]
    assert {one.gold for one in found.agreement} == {0}


def test_warnings_say_what_gold_is_too_little_for() -> None:
    little = items(6, 3)
    found = calibrated(panel(said("m", 0.2, 1, little), world=little))
    assert found.warnings[0] == (
        "groundedness: 18 judged gold items on 6 topics cannot make a judge trusted: that takes 100 on 20"
    )
    assert any("fewer than 5 gold items of grade" in one for one in found.warnings)
    assert calibrated(panel(said("m", 0.2, 1))).warnings == ()


def test_a_second_question_to_sealed_grades_is_warned_about() -> None:
    of = panel(said("m", 0.1, 1), dev_topics=12)
    first, second = (calibrated(of, openings=n) for n in (1, 2))
    assert first.selections[0].openings == 1
    assert not any("sealed" in one for one in first.warnings)
    assert any("opened for 2 different questions" in one for one in second.warnings)


def test_seed_and_data_decide_everything() -> None:
    judges = (said("a", 0.3, 1), said("b", 0.3, 2))
    once, again = (calibrated(panel(*judges), seed=5) for _ in range(2))
    assert once == again
    assert calibrated(panel(*judges), seed=6) != once


def test_panels_come_one_after_the_other() -> None:
    of = panel(said("m", 0.1, 1))
    one, two = (calibrate([of] * n, CalibrationOptions(replicates=20, permutations=20)) for n in (1, 2))
    assert two.agreement == one.agreement * 2
    assert two.verdicts == one.verdicts * 2
