"""Gold and labels side by side: what meets what, and what may not meet at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from msgspec.structs import replace

from judge.ask.criteria import find_criterion
from judge.ask.results import Label, Labels
from judge.calibrate.agreement import agreement_row, ceiling
from judge.calibrate.intake import make_panels, parse_scale, read_gold_files, read_sources
from judge.calibrate.panel import Panel, constant, gold_items, make_panel
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow
from judge.io.text import digest
from judge.pool.bank import read_pool_folder
from judge.pool.build import normalize
from judge.pool.records import Pool, RunEntry
from judge.records import Level, Scale
from tests import build
from tests.calibration_world import SCALE, gold_rows, items, labels, pool, row, write_columns, write_gold, write_output
from tests.conftest import put, refused

BINARY = Scale((Level(0, "no", ""), Level(1, "yes", "")), "higher", (1,), None)
INVERTED = Scale((Level(0, "no", ""), Level(1, "yes", "")), "lower", (0,), None)


def panel(rows: list[GoldRow], *said: Labels, scale: Scale = SCALE, **options: object) -> Panel:
    gold = gold_items(rows, None)["groundedness"]
    return make_panel("groundedness", scale, gold, said, **options)  # type: ignore[arg-type]


def test_codes_point_into_the_scale_in_natural_order_of_turns() -> None:
    uneven = build.scale((9, -1, 4), positive=(9,))
    rows = [row("1_10", "R1", 4), row("1_2", "R3", -1), row("1_2", "R2", 9)]
    found = panel(rows, labels("m", {("1_2", "R2"): 4, ("1_10", "R1"): -1}), scale=uneven)
    assert found.grades == (-1, 4, 9)
    assert [(one.turn_id, one.response_id) for one in found.items] == [("1_2", "R2"), ("1_2", "R3"), ("1_10", "R1")]
    assert found.human.tolist() == [2, 0, 1]
    assert found.columns[0].codes.tolist() == [1, -1, 0]
    assert found.columns[0].reasons == (None, "not_judged", None)
    assert found.positive == {2}


def test_themes_join_their_topics_and_the_items_keep_theirs() -> None:
    rows = [row("10-1_1", "R1", 0), row("9-2_1", "R2", 1), row("9-1_2", "R3", 2), row("132_1-1", "R4", 3)]
    found = panel(rows, cluster="theme")
    assert (found.cluster, found.topics) == ("theme", ("9", "10", "132"))
    assert [one.topic_id for one in found.items] == ["9-1", "9-2", "10-1", "132"]
    assert found.topic.tolist() == [0, 0, 1, 2]


def test_the_farthest_is_measured_in_grades_not_in_places() -> None:
    uneven = build.scale((0, 1, 2, 9), positive=(9,))
    found = panel([row("1_1", "R1", 2)], labels("m", {}), scale=uneven)
    assert found.farthest(found.columns[0].codes).tolist() == [3]


def test_several_assessors_are_one_consensus_and_stay_known() -> None:
    rows = [row("1_1", "R1", 3, "ann"), row("1_1", "R1", 3, "ben"), row("1_1", "R1", 0, "cyd"),
            row("1_2", "R2", 0, "ann"), row("1_2", "R2", 1, "ben"), row("1_3", "R3", 2, "cyd")]  # fmt: skip
    found = panel(rows)
    # 3 3 0 has the mode 3; of 0 1 each is half of the item.
    assert found.shares.tolist() == [[0, 0, 0, 1], [0.5, 0.5, 0, 0], [0, 0, 1, 0]]
    assert (found.human.tolist(), found.mean.tolist()) == ([3, -1, 2], [(3 + 3 + 0) / 3, (0 + 1) / 2, 2])
    assert found.tied.tolist() == [False, True, False]
    assert found.reference == "consensus of up to 3 assessors"
    assert {name: codes.tolist() for name, codes in found.assessors.items()} == {
        "ann": [3, 0, -1],
        "ben": [3, 1, -1],
        "cyd": [0, -1, 2],
    }


def test_an_adjudication_is_the_grade_and_the_labels_before_it_stay_the_agreement_of_people() -> None:
    given = [
        row("1_1", "R1", 0, "ann"), row("1_1", "R1", 2, "ben"), row("1_1", "R2", 1, "ann"), row("1_1", "R2", 2, "ben"),
        row("1_1", "R3", 3, "ann"),
    ]  # fmt: skip
    ruled = [row("1_1", "R1", 3, "dee", made="adjudicated"), row("1_1", "R3", 2, "dee", made="adjudicated")]
    before, after = panel(given), panel([*given, *ruled])
    # R1 is tied before; R2 stays so; R3 was of one person.
    assert before.tied.tolist() == [True, True, False]
    assert after.tied.tolist() == [False, True, False]
    assert (after.human.tolist(), after.mean.tolist()) == ([3, -1, 2], [3, (1 + 2) / 2, 2])
    assert after.reference == "consensus of up to 2 assessors, 2 of 3 items adjudicated"
    assert after.made == ("adjudicated", "blind")
    assert {name: codes.tolist() for name, codes in after.assessors.items()} == {"ann": [0, 1, 3], "ben": [2, 2, -1]}
    for one, other in zip(before.against_others(), after.against_others(), strict=True):
        assert (one == other).all()


def test_adjudications_alone_are_grades_of_which_nobody_knows_how_far_people_agree() -> None:
    ruled = [row("1_1", f"R{n}", n, who, made="adjudicated") for n, who in ((1, "dee"), (2, "dee"), (2, "eve"))]
    found = panel(ruled)
    assert (found.reference, found.assessors, found.human.tolist(), found.mean.tolist()) == (
        "adjudication", {}, [1, 2], [1, 2]
    )  # fmt: skip
    assert ceiling(found, found.within("all"), 1, 100) is None


def test_one_assessor_is_called_by_name() -> None:
    assert panel([row("1_1", "R1", 3, "ann")]).reference == "ann"
    assert panel([row("1_1", "R1", 3, "ann", run_id=run) for run in ("ape", "bee")]).reference == "ann"


def test_assessors_who_share_no_item_are_no_consensus() -> None:
    shared_out = [row("1_1", "R1", 3, "ann"), row("1_2", "R2", 0, "ben"), row("1_3", "R3", 0, "cyd")]
    assert panel(shared_out).reference == "assessors, one an item"
    assert panel([*shared_out, row("1_3", "R3", 1, "ann")]).reference == "consensus of up to 2 assessors"


def test_every_run_that_gold_names_for_a_response_is_known() -> None:
    rows = [row("1_1", "R1", 3, "ann", run_id="cat"), row("1_1", "R1", 3, "ann", run_id="ape"),
            row("1_1", "R1", 0, "ben")]  # fmt: skip
    found = panel(rows)
    assert found.items[0].runs == ("ape", "cat")
    # 3 and 0 have no mode; counted once a run, ann would outvote ben.
    assert found.shares.tolist() == [[0.5, 0, 0, 0.5]]


def test_items_weigh_what_they_stand_for() -> None:
    p = [1.0, 0.5, 0.25, 0.25]
    rows = [row(f"{i}_1", f"R{i}", i % 2, inclusion_probability=one) for i, one in enumerate(p)]
    found = panel(rows, labels("m", {(f"{i}_1", f"R{i}"): 0 for i in range(4)}))
    assert found.weights.tolist() == [1, 2, 4, 4]
    assert found.weighted
    codes = found.columns[0].codes
    # 11 in all, over 4 items.
    assert found.tables(codes).sum(axis=0)[:2, 0] == pytest.approx(np.array([5, 6]) * 4 / 11)
    counted = agreement_row(found, found.columns[0], "all", None, seed=1, replicates=10)
    assert [counts[0] for counts in counted.confusion[:2]] == [2, 2]
    # Items that weigh the same among themselves are counted.
    last = np.arange(4) >= 2
    assert found.tables(codes, last).dtype == np.int64
    assert found.tables(codes, last).sum(axis=0)[:2, 0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("rows", "found", "message"),
    [
        ([row("1_1", "R1", 1, inclusion_probability=0.5), row("1_2", "R2", 1), row("1_3", "R3", 1)],
         ("mixed_inclusion", "$.inclusion_probability", None),
         "2 rows have no inclusion probability, others have one: expected it on every row or on none"),
        ([row("1_1", "R1", 1, name, inclusion_probability=p) for name, p in (("ann", 0.5), ("ben", 0.25))],
         ("inclusion_probability", "$.inclusion_probability", "1_1"),
         "response R1 has 0.25 and 0.5: expected one probability"),
        ([row("1_1", "R1", 1, split="dev"), row("2_1", "R2", 1)],
         ("mixed_split", "$.split", None), "1 rows have no split, others have one"),
        ([row("1_1", "R1", 1, split="dev"), row("1_2", "R2", 1, split="test")],
         ("split_topic", "$.split", None), "topic 1 is in dev and in test"),
    ],
)  # fmt: skip
def test_gold_has_one_probability_an_item_and_one_part_a_topic(
    rows: list[GoldRow], found: object, message: str
) -> None:
    (problem,) = refused(panel, rows)
    assert ((problem.code, problem.path, problem.turn_id), problem.message) == (found, message)


def test_an_assessor_counts_once_however_many_files_name_the_grade() -> None:
    rows = [row("1_1", "R1", 3, "ann"), row("1_1", "R1", 3, "ann"), row("1_1", "R1", 0, "ben")]
    # 3 and 0 have no mode. Counted twice, ann would outvote ben.
    assert panel(rows).shares.tolist() == [[0.5, 0, 0, 0.5]]
    with pytest.raises(InputError, match="different grades") as caught:
        panel([row("1_1", "R1", 3, "ann"), row("1_1", "R1", 2, "ann")])
    assert caught.value.problems[0].message == "ann gave response R1 3 and 2: expected one grade"


def test_gold_by_text_alone_needs_a_pool() -> None:
    nameless = GoldRow("1_1", "1", "groundedness", 1, "ann", None, "0" * 64)
    with pytest.raises(UsageError, match="1 gold rows name their response by text_sha256 alone"):
        gold_items([nameless, row("1_2", "R2", 1)], None)


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        ([Label("1_1", "R1", 9)], "off_scale", "grade 9 for R1 by m: expected one of 0, 1, 2, 3"),
        ([Label("1_1", "R1", 1), Label("1_1", "R1", 1)], "duplicate_judgment", "R1 is judged 2 times by m"),
        ([Label("1_1", "R1", 1, sample=-1)], "wrong_sample", "sample -1 of R1: expected 0 to 999"),
        ([Label("1_1", "R1", 1, sample=10**12)], "wrong_sample", "expected 0 to 999"),
        ([Label("9_9", "no gold", 7)], "off_scale", "grade 7"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(said: list[Label], code: str, message: str) -> None:
    with pytest.raises(InputError, match="cannot be compared under groundedness") as caught:
        panel([row("1_1", "R1", 1)], labels("m", said))
    (problem,) = caught.value.problems
    assert problem.code == code
    assert message in problem.message


def test_every_fault_of_gold_and_of_every_judge_is_listed_at_once() -> None:
    rows = [row("1_1", "R1", 4), row("1_2", "R2", -1, "ben")]
    problems = refused(panel, rows, labels("m", {("1_1", "R1"): 8}), labels("n", {("1_1", "R1"): 9}))
    assert [one.code for one in problems] == ["off_scale"] * 4


@pytest.mark.parametrize(("names", "code"), [("mm", "duplicate_judge"), (["constant"], "reserved_name")])
def test_two_files_of_one_judge_and_the_name_of_the_baseline_are_refused(names: Sequence[str], code: str) -> None:
    problems = refused(panel, [row("1_1", "R1", 1)], *(labels(name, {("1_1", "R1"): 1}) for name in names))
    assert problems[0].code == code


def test_the_first_sample_is_the_grade_and_all_are_kept() -> None:
    said = [Label("1_1", "R1", 2), Label("1_1", "R1", 3, sample=2), Label("1_2", "R2", 0, sample=1)]
    (column,) = panel([row("1_1", "R1", 1), row("1_2", "R2", 1)], labels("m", said)).columns
    assert column.codes.tolist() == [2, -1]
    assert column.samples.tolist() == [[2, -1], [-1, 0], [3, -1]]
    assert column.reasons == (None, "not_judged")


def test_the_constant_gives_the_commonest_grade_of_the_part_it_was_made_on() -> None:
    rows = [row(f"{i}_1", f"R{i}", grade) for i, grade in enumerate([0, 0, 2, 2, 3, 3, 3])]
    found = panel(rows)
    assert constant(found, np.ones(7, dtype=bool)).codes.tolist() == [3] * 7
    # Of two equally common ones, the lower.
    assert constant(found, np.arange(7) < 4).codes.tolist() == [0] * 7
    assert constant(found, np.ones(7, dtype=bool)).baseline
    drawn = [row(f"{i}_1", f"R{i}", grade, inclusion_probability=p) for i, (grade, p) in
             enumerate([(3, 1.0), (3, 1.0), (1, 0.2)])]  # fmt: skip
    assert constant(panel(drawn), np.ones(3, dtype=bool)).codes.tolist() == [1] * 3


def test_two_scales_meet_as_positive_or_not_each_by_its_own() -> None:
    rows = [row("1_1", "R1", 0), row("1_2", "R2", 1), row("1_3", "R3", 2), row("1_4", "R4", 3)]
    said = [Label(f"1_{i}", f"R{i}", grade, expected=x) for i, grade, x in
            [(1, 1, 0.9), (2, 1, 0.8), (3, 0, 0.2), (4, 1, 0.7)]]  # fmt: skip
    gold = gold_items(rows, None)["groundedness"]
    found = make_panel("groundedness", SCALE, gold, [replace(labels("m", said), scale=INVERTED)], binary=True)
    assert (found.grades, found.positive, found.higher_is_better) == ((0, 1), {1}, True)
    assert found.human.tolist() == [0, 0, 1, 1]
    # On the inverted scale 0 is the good end, for the grade and for the expected grade.
    assert found.columns[0].codes.tolist() == [0, 0, 1, 0]
    assert found.columns[0].expected.tolist() == [-0.9, -0.8, -0.2, -0.7]


@pytest.mark.parametrize(
    ("text", "polarity", "positive"),
    [
        ("0-3", "higher", (2, 3)),
        ("1-5", "higher", (4, 5)),
        ("0-1", "higher", (1,)),
        ("0-3", "lower", (0, 1)),
        ("-2-2", "higher", (1, 2)),
    ],
)
def test_a_scale_from_two_numbers(text: str, polarity: Literal["higher", "lower"], positive: tuple[int, ...]) -> None:
    found = parse_scale(text, polarity)
    assert (found.positive, found.polarity, found.unable) == (positive, polarity, None)


@pytest.mark.parametrize(
    "text", ["", "3", "0-", "-3", "3-0", "2-2", "0-3-5", "a-b", "0-101", "0–3", " 0-3", "-1--3", "0-²",
             "1" * 5000 + "-3", "0-" + "9" * 5000]
)  # fmt: skip
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected the lowest and the highest grade"):
        parse_scale(text)


def test_gold_of_columns_is_an_assessor_named_after_the_file(tmp_path: Path) -> None:
    path = write_columns(tmp_path / "nist.qrel", {("1_1", "R1"): 3})
    found = read_gold_files([path], "relevance", SCALE)
    assert found.rows == (GoldRow("1_1", "1", "relevance", 3, "nist", "R1"),)
    assert found.columns
    with pytest.raises(UsageError, match="--criterion NAME is needed"):
        read_gold_files([path], None, SCALE)


def test_the_faults_of_all_gold_files_come_at_once(tmp_path: Path) -> None:
    first = write_columns(tmp_path / "a.qrel", {("1_1", "R1"): 3, ("1_2", "R2"): 7})
    second = write_columns(tmp_path / "b.qrel", {("1_1", "R1"): 8})
    third = put(tmp_path / "c.jsonl", '{"turn_id": 7}\n')
    problems = refused(read_gold_files, [first, second, third], "relevance", SCALE)
    assert {(Path(one.file).name, one.path.partition(":")[0]) for one in problems} >= {
        ("a.qrel", "line 2"), ("b.qrel", "line 1"), ("c.jsonl", "line 1")
    }  # fmt: skip


def test_the_faults_of_all_label_files_come_at_once(tmp_path: Path) -> None:
    paths = [write_columns(tmp_path / f"{name}.txt", {("1_1", "R1"): 3, ("1_2", "R2"): 7}) for name in "ab"]
    places = [(Path(one.file).name, one.path) for one in refused(read_sources, paths, None, SCALE)]
    assert places == [("a.txt", "line 2"), ("b.txt", "line 2")]


def panels_of(gold: list[GoldRow], *said: Labels) -> tuple[tuple[Panel, ...], int]:
    prompts = {name: find_criterion(name) for name in ("groundedness/graded", "groundedness/yes_no")}
    return make_panels(gold, said, prompts, {"groundedness": prompts["groundedness/graded"].scale}, "gold")


def by_text(of: Pool, grades: dict[str, int], run_id: bool = False) -> list[GoldRow]:
    return [
        GoldRow(one.turn_id, one.topic_id, "groundedness", grades[one.turn_id], "ann", None,
                digest(normalize(one.text)), entry.run_id if run_id else None)
        for one in of.responses for entry in one.runs
    ]  # fmt: skip


def test_pools_with_other_ids_are_brought_together_through_the_gold() -> None:
    world = items(6, 1)
    first, second = pool(world), pool(list(reversed(world)), shift=100)
    gold = by_text(first, {one.turn_id: one.gold for one in world})
    here = labels("m", {(one.turn_id, one.response_id): one.deserved for one in world})
    there = labels("n", {(one.turn_id, one.response_id): world[i].deserved
                         for i, one in enumerate(reversed(second.responses))})  # fmt: skip
    (found,), unmatched = panels_of(gold, replace(here, pool=first), replace(there, pool=second))
    assert unmatched == 0
    assert found.columns[0].codes.tolist() == found.columns[1].codes.tolist() == [one.deserved for one in world]


def test_labels_by_ids_of_another_pool_never_pass_as_the_first_one_s() -> None:
    world = items(2, 1)
    first = pool(world)
    # The ids are exchanged, so that each id of the second pool names the other response in the first.
    pairs = zip(first.responses, reversed(first.responses), strict=True)
    second = Pool(tuple(replace(one, response_id=other.response_id) for one, other in pairs), first.passages, ())
    gold = by_text(first, {one.turn_id: one.gold for one in world})
    said = labels("n", {(one.turn_id, one.response_id): i for i, one in enumerate(second.responses)})
    (found,), _ = panels_of(gold, replace(labels("m", {}), pool=first), replace(said, pool=second))
    assert found.columns[1].codes.tolist() == [0, 1]


def test_a_response_is_found_by_any_of_the_runs_that_gave_it() -> None:
    # Both runs gave one text. Gold has a row of each; the second pool holds only the run of the second row.
    world = items(3, 1)
    first = pool(world)
    both = (RunEntry("ape", 1, "used", "0" * 64), RunEntry("bee", 1, "used", "0" * 64))
    first = replace(first, responses=tuple(replace(one, runs=both) for one in first.responses))
    second = pool(world, shift=100)
    second = replace(second, responses=tuple(replace(one, runs=both[1:]) for one in second.responses))
    gold = by_text(first, {one.turn_id: one.gold for one in world}, run_id=True)
    said = labels("n", {(one.turn_id, one.response_id): i for i, one in enumerate(second.responses)})
    (found,), unmatched = panels_of(gold, replace(labels("m", {}), pool=first), replace(said, pool=second))
    assert (unmatched, found.columns[1].codes.tolist()) == (0, [0, 1, 2])


def test_gold_outside_the_pool_is_counted() -> None:
    world = items(3, 2)
    gold = [*gold_rows(world), row("99_1", "R00001", 2)]
    (found,), unmatched = panels_of(gold, replace(labels("m", {}), pool=pool(world)))
    assert (len(found.items), unmatched) == (6, 1)


def test_runs_and_lengths_come_from_the_pool() -> None:
    world = items(1, 2)
    (found,), _ = panels_of(gold_rows(world), replace(labels("m", {}), pool=pool(world, words=lambda one: 4)))
    assert [(one.runs, one.words) for one in found.items] == [(("ape",), 7), (("bee",), 7)]
    without = panel([row("1_1", "R1", 1, run_id="ape")])
    assert [(one.runs, one.words) for one in without.items] == [(("ape",), None)]


def test_a_baseline_alone_is_what_the_question_is_about() -> None:
    world = items(2, 1)
    overlap, other = (labels(name, {(one.turn_id, one.response_id): 1 for one in world}, "groundedness/graded")
                      for name in ("baseline/overlap", "server/m"))  # fmt: skip
    (alone,), _ = panels_of(gold_rows(world), overlap)
    (beside,), _ = panels_of(gold_rows(world), overlap, other)
    assert [one.baseline for one in alone.columns] == [False]
    assert [one.baseline for one in beside.columns] == [True, False]


@pytest.mark.parametrize("scale", [BINARY, INVERTED])
def test_scales_of_the_same_numbers_with_other_good_ends_are_not_compared_grade_by_grade(scale: Scale) -> None:
    prompts = {"groundedness/yes_no": find_criterion("groundedness/yes_no")}
    rows = [row("1_1", "R1", 0), row("1_2", "R2", 1)]
    said = labels("m", {("1_1", "R1"): 0, ("1_2", "R2"): 1}, "groundedness/yes_no")
    (found,), _ = make_panels(rows, [said], prompts, {"groundedness": scale}, "gold")
    agrees = found.columns[0].codes.tolist() == found.human.tolist()
    assert agrees == (scale is BINARY)


def test_a_pool_is_found_beside_judgments_or_where_it_is_said_to_be(tmp_path: Path) -> None:
    world = items(1, 2)
    path = write_output(tmp_path / "out", world, {"server/m": {"R00001": 1}})
    (beside,) = read_sources([path], None, None)
    assert beside.pool is not None
    columns = write_columns(tmp_path / "out" / "x.txt", {("1_1", "R00001"): 1})
    (bare,) = read_sources([columns], None, None)
    assert bare.pool is None
    (given_,) = read_sources([columns], tmp_path / "out", None)
    assert given_.pool == read_pool_folder(tmp_path / "out" / "pool.jsonl", "passages.jsonl") == beside.pool


def test_equal_gold_is_read_the_same_from_json_and_from_columns(tmp_path: Path) -> None:
    world = items(2, 2)
    rows = gold_rows(world)
    a = read_gold_files([write_gold(tmp_path / "ann.jsonl", rows)], None, None)
    grades = {(one.turn_id, one.response_id): one.gold for one in world}
    b = read_gold_files([write_columns(tmp_path / "ann.txt", grades)], "groundedness", SCALE)
    assert a.rows == b.rows
    assert a.digest != b.digest
