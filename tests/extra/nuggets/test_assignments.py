"""nuggetizer's assignments as matches, and its metrics from them."""

import json
from collections import Counter
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.extra.nuggets import NuggetBank
from judge.extra.nuggets.forms import parse_bank
from judge.extra.nuggets.labels import join, read_labels_of, read_matches
from judge.extra.nuggets.scores import MEASURES, nugget_scores, run_units
from judge.pool.records import Pool
from tests.conftest import put, refused
from tests.extra.nuggets.world import pool, response

ANSWERS: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("1-1_1", [("A.", "vital", "support"), ("B.", "vital", "partial_support"), ("C.", "okay", "not_support")]),
    ("1-1_2", [("D.", "okay", "support"), ("E.", "okay", "partial_support"), ("F.", "vital", "not_support"),
               ("G.", "okay", "support")]),
]  # fmt: skip


def line(qid: str, nuggets: list[tuple[str, str, str]], **more: object) -> str:
    listed = [{"text": text, "importance": weight, "assignment": label} for text, weight, label in nuggets]
    fields = {"query": "?", "qid": qid, "answer_text": "x", "response_length": 3, "run_id": "r", "nuggets": listed}
    return json.dumps({name: value for name, value in (fields | more).items() if value is not None}) + "\n"


def file(folder: Path, *lines: str) -> Path:
    return put(folder / "assignments.jsonl", "".join(lines))


def bank() -> NuggetBank:
    """The bank that nuggetizer's assignments hold."""
    return parse_bank("".join(line(*answer) for answer in ANSWERS).encode(), "bank")


def both() -> Pool:
    return pool(response(1, "1-1_1", "r"), response(2, "1-1_2", "r"), turns=("1-1_1", "1-1_2"))


def test_the_metrics_are_those_of_nuggetizer(tmp_path: Path) -> None:
    rows = read_matches(file(tmp_path, *(line(*answer) for answer in ANSWERS)))
    known = join(rows, (), bank(), both(), "a")
    assert not known.people
    values = {
        unit.scope: {name: measure(unit.nuggets, unit.labels) for name, measure in MEASURES.items()}
        for unit in run_units(both(), bank(), known)
    }
    # One of three supported and one in part; of the two vital ones, one and one in part.
    assert values["1-1_1"] == {
        "strict_all_score": 1 / 3, "all_score": (1 + 0.5) / 3,
        "strict_vital_score": 1 / 2, "vital_score": (1 + 0.5) / 2, "contradicted": 0,
        # Vital nuggets weigh 2.
        "strict_weighted_score": 2 / 5, "weighted_score": (2 + 2 * 0.5) / 5,
    }  # fmt: skip
    # Two of four supported and one in part; the only vital one is not supported.
    assert values["1-1_2"] == {
        "strict_all_score": 2 / 4, "all_score": (2 + 0.5) / 4,
        "strict_vital_score": 0, "vital_score": 0, "contradicted": 0,
        "strict_weighted_score": 2 / 5, "weighted_score": (2 + 0.5) / 5,
    }  # fmt: skip
    # nuggetizer's line `all` has the means of the lines.
    means = {row.criterion: row.mean.value for row in nugget_scores(run_units(both(), bank(), known), "topic")}
    assert means["all_score"] == pytest.approx((0.5 + 0.625) / 2)
    assert means["strict_all_score"] == pytest.approx((1 / 3 + 0.5) / 2)
    assert means["vital_score"] == pytest.approx(0.75 / 2)
    assert means["strict_vital_score"] == pytest.approx(0.5 / 2)


@pytest.mark.parametrize(("nuggets", "strict_vital", "strict_all", "vital", "everything"), [
    # The numbers that nuggetizer's own test of its pipeline expects: 1 of 2, and a half.
    ([("vital", "support"), ("okay", "partial_support")], 1.0, 0.5, 1.0, 0.75),
    # Its page of inputs and outputs shows these assignments: 2 of 4, and a half.
    (
        [("vital", "support"), ("vital", "support"), ("okay", "partial_support"), ("okay", "not_support")],
        *(1.0, 0.5, 1.0, 0.625),
    ),
])  # fmt: skip
def test_published_examples_give_their_numbers(tmp_path, nuggets, strict_vital, strict_all, vital, everything) -> None:
    listed = [(f"Fact {place}.", weight, label) for place, (weight, label) in enumerate(nuggets)]
    path = file(tmp_path, line("1-1_1", listed))
    made = parse_bank(path.read_bytes(), "bank")
    one = pool(response(1, "1-1_1", "r"), turns=("1-1_1",))
    (unit,) = run_units(one, made, join(read_matches(path), (), made, one, "a"))
    values = [
        MEASURES[name](unit.nuggets, unit.labels)
        for name in ("strict_vital_score", "strict_all_score", "vital_score", "all_score")
    ]
    assert values == [strict_vital, strict_all, vital, everything]


def test_a_nugget_is_found_by_its_text_whatever_its_id(tmp_path: Path) -> None:
    rows = read_matches(file(tmp_path, line("1-1_1", [("B.", "okay", "support"), ("A.", "okay", "not_support")])))
    own = b'{"nugget_id":"1-1_1/1","turn_id":"1-1_1","text":"A."}\n{"nugget_id":"x","topic_id":"1-1","text":"B."}\n'
    known = join(rows, (), parse_bank(own, "bank"), both(), "a")
    assert known.labels == {("R00001", "x"): "supports", ("R00001", "1-1_1/1"): "does_not"}


def test_verdicts_of_criteria_give_their_weighted_scores(tmp_path: Path) -> None:
    rows = [("A.", 5, "satisfied"), ("B.", 2, "partially_satisfied"), ("C.", 3, "not_satisfied")]
    faults = [("D.", -4, "satisfied"), ("E.", -2, "partially_satisfied"), ("F.", -1, "not_satisfied")]
    criteria = [{"text": text, "weight": weight, "verdict": verdict} for text, weight, verdict in rows + faults]
    # A topic of a citation track is one turn.
    path = file(tmp_path, json.dumps({"qid": "7", "run_id": "r", "criteria": criteria}))
    made, one = parse_bank(path.read_bytes(), "bank"), pool(response(1, "7_1", "r"), turns=("7_1",))
    known = join(read_matches(path), (), made, one, "a")
    assert not known.people
    (unit,) = run_units(one, made, known)
    assert (unit.scope, unit.status, unit.values) == ("7", "matched", {
        "weighted_score": (5 + 2 / 2 - 4 - 2 / 2) / (5 + 2 + 3), "strict_weighted_score": (5 - 4) / (5 + 2 + 3),
        # What is no wish counts in no other recall.
        "all_score": (1 + 1 / 2) / 3, "strict_all_score": 1 / 3, "contradicted": 0,
        "vital_score": None, "strict_vital_score": None,
    })  # fmt: skip


def test_what_failed_is_missing_and_no_label(tmp_path: Path) -> None:
    rows = read_matches(file(tmp_path, line("1-1_1", [("A.", "vital", "failed"), ("B.", "okay", "support")])))
    assert [(row.label, row.judge) for row in rows] == [("supports", "nuggetizer")]
    with pytest.raises(InputError, match="not usable as assignments"):
        read_matches(file(tmp_path, line("1-1_1", [("A.", "vital", "failed")])))


A, B = ("A.", "vital", "support"), ("B.", "vital", "support")
FAILED = ("B.", "vital", "failed")
LISTS = [
    # What is listed for the second turn, its status, its reasons, and the bound of two turns that deserve 1.
    ([A, B], "matched", {}, 1.0),
    ([A, FAILED], "incomplete", {"1-1_2/2": "failed"}, 0.75),
    ([("A.", "vital", "failed"), FAILED], "incomplete", {"1-1_2/1": "failed", "1-1_2/2": "failed"}, 0.5),
    ([B], "incomplete", {"1-1_2/1": "not_listed"}, 0.75),
    ([FAILED], "incomplete", {"1-1_2/1": "not_listed", "1-1_2/2": "failed"}, 0.5),
    ([], "incomplete", {"1-1_2/1": "not_listed", "1-1_2/2": "not_listed"}, 0.5),
    # Nobody asked: the turn counts as the other does.
    (None, "left_out", {"1-1_2/1": "not_asked", "1-1_2/2": "not_asked"}, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("listed", "status", "reasons", "bound"), LISTS)
def test_what_failed_and_what_a_list_lacks_count_as_the_worst(tmp_path, listed, status, reasons, bound) -> None:
    made = parse_bank((line("1-1_1", [A, B]) + line("1-1_2", [A, B])).encode(), "bank")
    second = [] if listed is None else [line("1-1_2", listed)]
    path = file(tmp_path, line("1-1_1", [A, B]), *second)
    known = read_labels_of([path], made, both(), {})
    first, unit = run_units(both(), made, known)
    assert (first.status, unit.status, unit.reasons) == ("matched", status, reasons)
    row = next(row for row in nugget_scores([first, unit], "topic") if row.criterion == "all_score")
    assert row.bound == pytest.approx(bound)
    assert row.reasons == dict(Counter(reasons.values()))
    # Another file has what this one lacks.
    match = {"turn_id": "1-1_2", "label": "supports", "run_id": "other", "judge": "server/m"}
    rows = [json.dumps({**match, "nugget_id": f"1-1_2/{number}"}) for number in (1, 2)]
    whole = put(tmp_path / "whole.jsonl", "\n".join(rows))
    again = read_labels_of([path, whole], made, both(), {"other": "r"})
    assert not again.failures
    assert {unit.status for unit in run_units(both(), made, again)} == {"matched"}


def test_a_list_of_a_turn_lacks_nothing_of_its_topic(tmp_path: Path) -> None:
    own = b'{"nugget_id":"1-1_1/1","turn_id":"1-1_1","text":"A."}\n{"nugget_id":"x","topic_id":"1-1","text":"B."}\n'
    made = parse_bank(own, "bank")
    path = file(tmp_path, line("1-1_1", [A]))
    assert not read_labels_of([path], made, both(), {}).failures
    unknown = file(tmp_path, line("1-1_1", [A]), line("1-1_2", [("Z.", "okay", "failed")]), line("9-1_1", [FAILED]))
    assert not read_labels_of([unknown], made, both(), {}).failures


@pytest.mark.parametrize(("bad", "place"), [
    (line("a topic", [("A.", "okay", "support")]), "line 2: $.qid"),
    (json.dumps({"qid": "7", "run_id": "r", "criteria": [{"text": "A."}]}), "line 2: $.criteria[0]"),
    (json.dumps({"qid": "7", "run_id": "r", "nuggetts": []}), "line 2: $"),
    (json.dumps({"qid": "7", "run_id": "r", "nuggets": [], "criteria": []}), "line 2: $"),
    (json.dumps({"qid": "7", "run_id": "r", "criteria": [{"text": "A.", "verdict": "met"}]}),
     "line 2: $.criteria[0].verdict"),
    (line("1-1_1", [("A.", "okay", "supports")]), "line 2: $.nuggets[0].assignment"),
    (line("1-1_1", [(" ", "okay", "support")]), "line 2: $.nuggets[0].text"),
    (line("1-1_1", [("A.", "okay", "support")], run_id=None, docid="d1"), "line 2: $.run_id"),
    (line("1-1_2", [("A.", "okay", "support")]), "line 2: $"),
])  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, bad: str, place: str) -> None:
    problems = refused(read_matches, file(tmp_path, line("1-1_2", [("A.", "okay", "support")]), bad))
    assert [problem.path for problem in problems] == [place]


def test_a_bank_is_read_of_assignments_that_repeat_it_for_each_answer() -> None:
    """TREC RAG's file has a line for each run and topic, with the nuggets of the topic in each."""
    nuggets = [("A.", "okay", "support"), ("B.", "vital", "not_support")]
    again = [("B.", "vital", "support"), ("A.", "okay", "failed")]
    bank = parse_bank("".join((line("7", nuggets), line("7", again, run_id="s"))).encode(), "bank")
    assert [(nugget.nugget_id, nugget.text, nugget.importance) for nugget in bank.nuggets] == [
        ("7/1", "A.", "okay"),
        ("7/2", "B.", "vital"),
    ]
    with pytest.raises(InputError) as caught:
        parse_bank("".join((line("7", nuggets), line("7", nuggets[:1], run_id="s"))).encode(), "bank")
    assert "'7' has other nuggets than on line 1" in str(caught.value.problems)


def test_assignments_that_are_given_as_gold_are_those_of_people(tmp_path: Path) -> None:
    assigned = file(tmp_path, *(line(*answer) for answer in ANSWERS))
    people = read_labels_of([assigned], bank(), both(), {}, by_people=True)
    judge = read_labels_of([assigned], bank(), both(), {})
    assert people.people and not judge.people
    assert people.labels == judge.labels and people.failures == {}
