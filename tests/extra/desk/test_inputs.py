"""What a desk refuses to open with, and what the labels say as gold."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.desk.assess import Work, open_assess_desk
from judge.gold.draft import ImportOptions
from judge.gold.rows import read_gold, text_digest
from judge.gold.sources import come_up, import_gold
from tests.conftest import put, refused
from tests.extra.desk.world import GRADED, plan_of, response, write_judgments, write_plan, write_pool


@pytest.mark.parametrize(("changes", "said"), [
    ({"assessors": []}, "assessor: expected a value, found none"),
    ({"assessors": ["ann", "Ann"]}, "'ann': given twice"),
    ({"assessors": [" "]}, "expected a name of 1 to 80"),
    ({"assessors": ["a\nb"]}, "expected a name of 1 to 80"),
    ({"assessors": ["x" * 81]}, "expected a name of 1 to 80"),
    ({"double": 0.5}, "needs two assessors or more"),
    ({"assessors": ["ann", "bob"], "double": 1.5}, "expected a share from 0 to 1"),
    ({"judgments": "judgments.jsonl"}, "blind assessors see no judge's grade"),
    ({"made": "postedit"}, "expected --judgments"),
    ({"made": "synthetic"}, "choose from blind, postedit"),
    ({"prompts": ["relevance"]}, "relevance/graded: shown with the conversation, so a topics file is needed"),
    ({"prompts": ["groundedness/graded", "groundedness/yes_no"]}, "are two scales of groundedness"),
    ({"prompts": ["none"]}, "no prompt called 'none'"),
])  # fmt: skip
def test_what_cannot_be_done_is_said_before_anything_is_made(tmp_path, changes: dict[str, Any], said: str) -> None:
    write_pool(tmp_path)
    with pytest.raises(UsageError) as refused, open_assess_desk(plan_of(tmp_path, **changes)):
        pass
    assert said in str(refused.value)
    assert not (tmp_path / "labels.sqlite").exists()


def test_topics_that_lack_a_turn_are_refused(tmp_path: Path) -> None:
    write_pool(tmp_path / "six", 6)
    write_pool(tmp_path, 12)
    with pytest.raises(UsageError, match=r"topics\.json: lacks 3 turns to label: 2-1_1, 2-1_2, 2-1_3"):
        Work(plan_of(tmp_path, topics=tmp_path / "six" / "topics.json"))


def test_a_plan_of_another_pool_is_refused(tmp_path: Path) -> None:
    write_pool(tmp_path)
    plan = write_plan(tmp_path, [3, 40])
    with pytest.raises(InputError, match="not a plan of this pool: 1 problem") as refused:
        Work(plan_of(tmp_path, plan=plan))
    assert [(problem.code, problem.path) for problem in refused.value.problems] == [("not_in_pool", "line 2")]


def test_the_criteria_of_a_plan_are_asked_where_it_asks_for_them(tmp_path: Path) -> None:
    write_pool(tmp_path)
    rows = ((1, ["groundedness"]), (2, ["naturalness"]))
    plan = put(tmp_path / "plan.jsonl", b"".join(write_plan(tmp_path, [n], names).read_bytes() for n, names in rows))
    work = Work(plan_of(tmp_path, plan=plan, prompts=[]))
    assert [item.criteria for item in work.items] == [("groundedness",), ("naturalness",)]
    with pytest.raises(UsageError, match="plans no label of conciseness, only of groundedness, naturalness"):
        Work(plan_of(tmp_path, plan=plan, prompts=["conciseness"], topics=tmp_path / "topics.json"))


def gold_file(folder: Path) -> Path:
    """Grades of all twelve responses, topics 1-1 and 2-1."""
    about = {"criterion": "groundedness", "grade": 2, "assessor": "ann"}
    rows = (
        about | {"turn_id": one.turn_id, "topic_id": one.topic_id, "text_sha256": text_digest(one.text)}
        for one in map(response, range(1, 13))
    )
    return put(folder / "gold.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_sealed_test_items_are_refused(tmp_path: Path) -> None:
    write_pool(tmp_path)
    split = tmp_path / "split"
    assert main(["gold", "split", str(gold_file(tmp_path)), "--test", "0.5", "--seed", "1", "--out", str(split)]) == 0
    held = {json.loads(line)["turn_id"] for line in (split / "test.jsonl").read_text().splitlines()}
    numbers = [n for n in range(1, 13) if response(n).turn_id in held]
    sealed = write_plan(split, numbers[:1])
    for path in (split / "test.jsonl", sealed):
        with pytest.raises(UsageError, match="holds sealed test items"):
            Work(plan_of(tmp_path, plan=path))
    # The dev part is nobody's secret; grades are no plan all the same.
    with pytest.raises(UsageError, match="grades, not a plan"):
        Work(plan_of(tmp_path, plan=split / "dev.jsonl"))
    others = [n for n in range(1, 13) if n not in numbers]
    assert len(Work(plan_of(tmp_path, plan=write_plan(split, others))).items) == len(others)


def test_grades_of_a_judge_must_fit_the_desk(tmp_path: Path) -> None:
    write_pool(tmp_path)
    good = write_judgments(tmp_path, {1: 3})
    work = Work(plan_of(tmp_path, made="postedit", judgments=good))
    assert {key: suggestion.grade for key, suggestion in work.suggestions.items()} == {("R00001", "groundedness"): 3}
    lines = good.read_text(encoding="utf-8")
    # Of several samples the first is shown.
    put(good, lines + lines.replace('"grade":3', '"grade":0').replace('"sample":0', '"sample":1'))
    assert Work(plan_of(tmp_path, made="postedit", judgments=good)).suggestions == work.suggestions
    for change, said in (
        ((GRADED.digest, "0" * 64), "grades under groundedness/graded"),
        (('"1-1_1"', '"1-1_2"'), "grades of another pool"),
        (('"groundedness"', '"relevance"'), "expected the grades of one judge, found none"),
    ):
        put(good, lines.replace(*change))
        with pytest.raises(UsageError, match=said):
            Work(plan_of(tmp_path, made="postedit", judgments=good))
    put(good, lines + lines.replace("server/m", "server/n"))
    with pytest.raises(UsageError, match="expected the grades of one judge, found server/m, server/n"):
        Work(plan_of(tmp_path, made="postedit", judgments=good))


def test_labels_become_gold_with_the_probabilities_of_the_plan(tmp_path, capsys) -> None:
    out = write_pool(tmp_path)
    plan = plan_of(tmp_path, plan=write_plan(tmp_path, [2, 5, 9, 10]), assessors=["ann", "bob"], double=0.5)
    with open_assess_desk(plan) as (_, store):
        items = Work(plan).items
        assert {item.response_id for item in items} == {"R00002", "R00005", "R00009", "R00010"}
        hers = {items[task.item].text_sha256 for task in store.tasks("1")}
        # 2 items are everybody's, 1 more each: 3 tasks. Ann's first is changed, and a label of bob's is undone.
        for path, choices in (
            ("1", [(0, ""), (None, "?"), (1, "")]),
            ("2", [(2, "")] * 3),
        ):
            for task, (grade, comment) in zip(store.tasks(path), choices, strict=True):
                store.save(path, task, grade, comment, "blind")
        store.save("1", store.tasks("1")[0], 3, "now", "blind")
        store.undo("2")
        # Gold can be made while the desk is open.
        gold = tmp_path / "gold.jsonl"
        assert main(["gold", "import", "desk", str(store.path), "--out", str(gold)]) == 0
    said = capsys.readouterr().err
    assert '1 label "unable to judge" left out: no grade' in said
    assert "1 comment on labels that are no grade: only the store has it" in said
    assert "1 task without a label" in said
    rows = read_gold(gold)
    assert sorted((row.assessor, row.grade, row.comment or "") for row in rows) == [
        ("ann", 1, ""), ("ann", 3, "now"), ("bob", 2, ""), ("bob", 2, "")
    ]  # fmt: skip
    for row in rows:
        one = response(int((row.response_id or "R0")[1:]))
        assert (row.turn_id, row.topic_id, row.text_sha256) == (one.turn_id, one.topic_id, text_digest(one.text))
        # In natural order of run ids, 2 comes before 10.
        assert (row.run_id, row.made, row.stratum) == ("run-2", "blind", "drawn")
        # Ann has labeled all that she was dealt, and Bob 2 of 3.
        dealt_to_ann = row.text_sha256 in hers
        assert row.inclusion_probability == pytest.approx(0.25 if dealt_to_ann else 0.25 * 2 / 3)
    assert main(["gold", "check", str(gold), "--pool", str(out)]) == 0
    again = tmp_path / "again.jsonl"
    assert main(["gold", "import", "desk", str(tmp_path / "labels.sqlite"), "--out", str(again)]) == 0
    assert again.read_bytes() == gold.read_bytes()


def test_work_that_stops_half_way_is_a_smaller_random_sample() -> None:
    """Ann has labeled 2 of her 4 and Bob 1 of his 4; items 1 and 2 are everybody's, 3 and 4 hers, 5 and 6 his."""
    tasks = [(item, "groundedness", "ann") for item in (3, 1, 4, 2)]
    tasks += [(item, "groundedness", "bob") for item in (2, 5, 1, 6)]
    labeled = {(3, "groundedness", "ann"), (1, "groundedness", "ann"), (2, "groundedness", "bob")}
    hers, his = 2 / 4, 1 / 4
    either = 1 - (1 - hers) * (1 - his)
    chances = {3: hers, 1: either, 4: hers, 2: either, 5: his, 6: his}
    assert either == 0.625
    assert come_up(tasks, labeled) == {(item, "groundedness"): chance for item, chance in chances.items()}


def test_criteria_come_up_each_by_itself() -> None:
    """Two criteria of each of two items, one item after the other; the third of the four labels is the last given."""
    tasks = [(1, "groundedness", "ann"), (1, "relevance", "ann"), (2, "groundedness", "ann"), (2, "relevance", "ann")]
    chances = {"groundedness": 2 / 2, "relevance": 1 / 2}
    assert come_up(tasks, set(tasks[:3])) == {(item, name): chances[name] for item, name, _ in tasks}


def test_a_whole_pool_labeled_in_part_is_no_census(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 12 responses 3 have a label, the second of the order being left for later: 3 / 12 instead of 1."""
    write_pool(tmp_path)
    with open_assess_desk(plan_of(tmp_path)) as (_, store):
        for place in (0, 2, 3):
            store.save("1", store.tasks("1")[place], 2, "", "blind")
    gold = tmp_path / "gold.jsonl"
    assert main(["gold", "import", "desk", str(store.path), "--out", str(gold)]) == 0
    assert [row.inclusion_probability for row in read_gold(gold)] == [pytest.approx(3 / 12)] * 3
    said = capsys.readouterr().err
    assert "9 tasks without a label: each inclusion probability is the plan's times the share of labels given" in said
    assert "1 task left for later before others that have a label: that choice is not random" in said


def test_a_desk_needs_no_plan_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pool(tmp_path)
    store, gold = tmp_path / "labels.sqlite", tmp_path / "gold.jsonl"
    for option in (["--plan", str(write_plan(tmp_path, [1]))], ["--inclusion", "0.5"]):
        assert main(["gold", "import", "desk", str(store), "--out", str(gold), *option]) == 2
        assert "the desk's file knows how its responses were drawn" in capsys.readouterr().err


def test_what_is_no_store_is_no_gold(tmp_path: Path) -> None:
    notes, missing = tmp_path / "notes.txt", tmp_path / "missing.sqlite"
    notes.write_text("These are notes, of more than a hundred bytes. " * 4, encoding="utf-8")
    problems = refused(import_gold, "desk", [notes, missing], ImportOptions())
    assert [problem.file for problem in problems] == [str(missing), str(notes)]
    assert not missing.exists()


def test_a_store_of_another_version_is_no_gold(tmp_path: Path) -> None:
    write_pool(tmp_path)
    with open_assess_desk(plan_of(tmp_path)) as (_, store):
        store._connection.execute("UPDATE meta SET value = 'judge-labels/9' WHERE key = 'schema'")
    assert refused(import_gold, "desk", [store.path], ImportOptions())[0].message == (
        "a store of 'judge-labels/9', this version of judge reads judge-labels/1 or judge-labels/2"
    )
    said = "no store of labels that this version of judge knows"
    with pytest.raises(InputError, match=said), open_assess_desk(plan_of(tmp_path)):
        pass


def test_a_desk_goes_on_only_with_what_it_began_with(tmp_path: Path) -> None:
    write_pool(tmp_path)
    with open_assess_desk(plan_of(tmp_path)):
        pass
    with open_assess_desk(plan_of(tmp_path)) as (_, store):
        assert len(store.tasks("1")) == 12
    for changes, said in (
        ({"seed": 2}, "seed: 1 there, 2 here"),
        ({"assessors": ["ann", "bob"]}, "assessors: ann there, ann, bob here"),
        ({"prompts": ["groundedness/yes_no"]}, r"prompts: groundedness/graded \(\w+\) there, groundedness/yes_no"),
        ({"plan": write_plan(tmp_path, [1])}, r"items: 12 responses \(\w+\) there, 1 response"),
    ):
        with pytest.raises(InputError, match=said), open_assess_desk(plan_of(tmp_path, **changes)):
            pass
    # Other evidence under the same responses is another question.
    passages = tmp_path / "out" / "pool.jsonl"
    passages.write_text(passages.read_text(encoding="utf-8").replace('["p1","p2"]', '["p1"]'), encoding="utf-8")
    with pytest.raises(InputError, match="items: "), open_assess_desk(plan_of(tmp_path)):
        pass
