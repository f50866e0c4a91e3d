"""Judgments as CAsT-ReGIn released them, read by `judge crowd`: its qrels come out byte for byte."""

import json
from pathlib import Path

import pytest

from judge.cli import call
from tests.conftest import PROJECT, put, refused
from tests.crowd import world

KEYS = {
    "response": ("Responses", "Response ID", "Response Text"),
    "question": ("Questions", "Question ID", "Question Text"),
}
QRELS = {
    "response_evaluation/qrels/response_relevance.qrel": "response/qrels/response_relevance.qrel",
    "response_evaluation/qrels/response_naturalness.qrel": "response/qrels/response_naturalness.qrel",
    "response_evaluation/qrels/response_conciseness.qrel": "response/qrels/response_conciseness.qrel",
    "clarifying_question_evaluation/qrels/question_novelty.qrel": "question/qrels/question_novelty.qrel",
    "clarifying_question_evaluation/qrels/question_diversity.qrel": "question/qrels/question_diversity.qrel",
    "clarifying_question_evaluation/qrels/question_relevance_all.qrel": "question/qrels/question_relevance.qrel",
    "clarifying_question_evaluation/qrels/question_relevance_filtered.qrel":
        "question/qrels/filtered/question_relevance.qrel",
}  # fmt: skip
"""The released qrels, to those of `judge crowd`."""


def run(judgments: Path, out: Path, *options: object) -> int:
    return call("crowd", [str(judgments), "--scale", "0-3", "--out", str(out), *map(str, options)])


def judgments(turns: dict[str, dict[str, dict[str, object]]], unit: str = "response") -> str:
    """Turn to item to grades, in the shape of the release, with a line for each value."""
    items, name, text = KEYS[unit]
    made = {
        turn_id: {items: [{name: item_id, text: "One.", **grades} for item_id, grades in of_turn.items()]}
        for turn_id, of_turn in turns.items()
    }
    return json.dumps(made, indent=4)


def test_the_qrels_of_the_release_come_out_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    folder = shared / "cast-regin"
    questions = folder / "clarifying_question_evaluation"
    turns = questions / "mi_subset_turns.txt"
    assert run(folder / "response_evaluation/qrels/response_judgments.json", tmp_path / "response") == 0
    options = ("--unit", "question", "--mi-turns", turns)
    assert run(questions / "qrels/question_judgments.json", tmp_path / "question", *options) == 0
    for released, made in QRELS.items():
        assert (tmp_path / made).read_bytes() == (folder / released).read_bytes(), released
    # The eighth has the lines of the turns that call for initiative, of all turns and not of the filtered ones.
    every = (questions / "qrels/question_relevance_all.qrel").read_text(encoding="utf-8").splitlines(keepends=True)
    subset = set(turns.read_text(encoding="utf-8").split())
    expected = [line for line in every if line.split()[0] in subset]
    assert len(expected) == 246
    assert (tmp_path / "question/qrels/subset/question_relevance.qrel").read_text() == "".join(expected)


def test_items_stay_in_the_order_of_their_file_and_grades_go_by_name(tmp_path: Path) -> None:
    pool = [
        line.split("\t")[::2][:2]
        for line in (PROJECT / "examples/regin/response_pool_depth_1.pool").read_text().splitlines()
    ]
    turns: dict[str, dict[str, dict[str, object]]] = {}
    for place, (turn_id, item_id) in enumerate(reversed(pool)):
        grades = {"Relevance": place % 4, "Naturalness": place % 2}
        turns.setdefault(turn_id, {})[item_id] = dict(reversed(grades.items())) if place % 3 else grades
    file = put(tmp_path / "judgments.json", judgments(turns))
    bank = PROJECT / "examples/regin/response_bank.json"
    assert run(file, tmp_path / "out", "--bank", bank) == 0
    for name, base in (("relevance", 4), ("naturalness", 2)):
        lines = [f"{turn_id} 0 {item_id} {place % base}\n" for place, (turn_id, item_id) in enumerate(reversed(pool))]
        assert (tmp_path / f"out/qrels/response_{name}.qrel").read_text() == "".join(lines)
    assert json.loads((tmp_path / "out/bank.json").read_bytes()) == json.loads(bank.read_bytes())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    turns = {"1_2": {"Q9": {"Novelty": 3}}, "1_1": {"Q1": {"Novelty": 0, "Relevance": 2}}}
    assert run(put(tmp_path / "j.json", judgments(turns, "question")), tmp_path / "a", "--unit", "question") == 0
    assert run(tmp_path / "a/question_judgments.json", tmp_path / "b", "--unit", "question") == 0
    # Judgments are written in natural order.
    assert (tmp_path / "a/qrels/question_novelty.qrel").read_text() == "1_2 0 Q9 3\n1_1 0 Q1 0\n"
    assert (tmp_path / "b/qrels/question_novelty.qrel").read_text() == "1_1 0 Q1 0\n1_2 0 Q9 3\n"
    written = (tmp_path / f"{folder}/question_judgments.json" for folder in "ab")
    assert len({path.read_bytes() for path in written}) == 1


def test_faults_name_the_item(tmp_path: Path) -> None:
    turns = {"1_1": {"R1": {"Relevance": 4}, "": {"Relevance": 2}, "R3": {"Relevance": "high"}}}
    file = put(tmp_path / "j.json", judgments(turns))
    problems = world.problems_of(file, scales={"relevance": world.SCALE})
    assert [(problem.code, problem.path) for problem in problems] == [
        ("wrong_label", "item 1"),
        ("empty_cell", "item 2"),
        ("wrong_label", "item 3"),
    ]


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        ('{"1_1": {"Responses": []}}', "empty_file", ""),
        ('{"1_1": {"Responses": [{"Response ID": "R1", "Relevance": 1}]}, "1_2": {}}', "wrong_type", "$['1_2']"),
        ('{"1_1": {"Responses": [7]}}', "not_json", "$[...][...][0]"),
    ],
)  # fmt: skip
def test_damaged_judgments_are_refused(tmp_path: Path, content: str, code: str, path: str) -> None:
    file = put(tmp_path / "j.json", content)
    (problem,) = refused(run, file, tmp_path / "out")
    assert (problem.code, problem.path) == (code, path)
    assert not (tmp_path / "out").exists()
