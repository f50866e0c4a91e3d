from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.records import Failure, Judgment
from judge.io.ids import parse_qrels, qrels_lines
from judge.records import Criterion, Level, Scale
from judge.results.qrels import qrel_name, qrels_text, sidecar
from tests import calibration_world as world
from tests.build import scale

UNABLE = Level(-1, "unable", "Cannot be judged.")
INVERTED = Scale(
    (Level(0, "no", "Nothing unsupported."), Level(1, "yes", "Something unsupported.")), "lower", (0,), UNABLE
)


def criterion(of: Scale = INVERTED, name: str = "groundedness", variant: str = "yesno") -> Criterion:
    return Criterion(name, variant, 2, ("response",), "grade", of, (), None, "", "", "prompt.md", "c" * 64)


def judgment(
    turn_id: str, response_id: str, grade: int, name: str = "groundedness", variant: str = "yesno", **changed: object
) -> Judgment:
    about = {"model": "gpt-x-2026", **changed}
    return world.judgment(turn_id, response_id, grade, "litellm/gpt-x", f"{name}/{variant}", digest="c" * 64, **about)


def failure(response_id: str, reason: str, name: str = "groundedness") -> Failure:
    about = {"criterion": name, "variant": "yesno", "criterion_digest": "c" * 64}
    return world.failure("9-1_3", response_id, reason, "litellm/gpt-x", **about)


def test_grades_stand_as_given_in_natural_order_without_the_unable_and_other_criteria() -> None:
    judgments = [
        judgment("9-1_10", "R00002", 1),
        judgment("9-1_2", "R00010", 0),
        judgment("9-1_2", "R00009", 1),
        judgment("9-1_2", "R00011", -1, unable=True),
        judgment("9-1_2", "R00009", 4, name="naturalness"),
        judgment("9-1_2", "R00009", 3, variant="graded"),
    ]
    assert qrels_text(judgments, criterion()) == "9-1_2 0 R00009 1\n9-1_2 0 R00010 0\n9-1_10 0 R00002 1\n"


def test_dialogues_are_listed_by_topic() -> None:
    of_dialogues = msgspec.structs.replace(criterion(), unit="dialogue")
    judgments = [judgment("9-1_7~0123456789abcdef", "R00002", 1), judgment("9-1_7~fedcba9876543210", "R00001", 0)]
    assert qrels_text(judgments, of_dialogues) == "9-1 0 R00001 0\n9-1 0 R00002 1\n"
    described = sidecar(of_dialogues, judgments, "")
    assert (described["unit"], described["rows"]) == ("dialogue", "topic_id 0 response_id grade")
    # The file has one topic, and so has the share of it.
    assert "over the 1 turns of this file" in described["share"]
    assert "unit" not in sidecar(criterion(), judgments, "")
    with pytest.raises(ValueError, match="R00002 of topic 9-1 has two judgments"):
        qrels_text([*judgments, judgments[0]], of_dialogues)


def test_a_level_below_zero_is_a_grade_where_the_scale_has_it() -> None:
    assert qrels_text([judgment("9-1_2", "R00001", -1)], criterion()) == "9-1_2 0 R00001 -1\n"


def test_no_judgments_give_an_empty_file() -> None:
    assert qrels_text([], criterion()) == ""


def test_two_judgments_of_one_response_are_an_error() -> None:
    with pytest.raises(ValueError, match="R00001 of turn 9-1_2 has two judgments"):
        qrels_text([judgment("9-1_2", "R00001", 0), judgment("9-1_2", "R00001", 0)], criterion())


@given(
    st.dictionaries(st.tuples(st.integers(1, 20), st.integers(0, 99)), st.integers(-1, 4), max_size=30),
    st.randoms(use_true_random=False),
)
def test_qrels_hold_every_grade_once_whatever_the_order(grades, shuffle) -> None:
    judgments = [judgment(f"9-1_{turn}", f"R{number:05}", grade) for (turn, number), grade in grades.items()]
    text = qrels_text(judgments, criterion())
    shuffle.shuffle(judgments)
    assert qrels_text(judgments, criterion()) == text
    rows = parse_qrels(text, "x.qrel")
    assert {(row.turn_id, row.item_id): row.grade for row in rows} == {
        (f"9-1_{turn}", f"R{number:05}"): grade for (turn, number), grade in grades.items()
    }
    assert [(int(row.turn_id[4:]), row.item_id) for row in rows] == sorted(
        (int(row.turn_id[4:]), row.item_id) for row in rows
    )


def test_the_name_says_that_a_machine_made_it() -> None:
    assert qrel_name(criterion()) == "response_groundedness.llm.qrel"
    assert "/" not in qrel_name(criterion(name="../x"))


def test_the_sidecar_says_what_was_asked_who_answered_and_what_is_missing() -> None:
    judgments = [
        judgment("9-1_2", "R00001", 1),
        judgment("9-1_2", "R00002", 0),
        judgment("9-1_2", "R00003", 0, model=None),
        judgment("9-1_2", "R00004", -1, unable=True),
        judgment("9-1_2", "R00001", 4, name="naturalness"),
    ]
    failures = [failure("R5", "unreadable"), failure("R6", "refused"), failure("R7", "refused"),
                failure("R8", "budget", name="naturalness")]  # fmt: skip
    found = sidecar(criterion(), [*judgments, *failures], "CALIBRATED: or so it says.")
    assert found["criterion"] == "groundedness"
    assert (found["prompt"], found["prompt_version"], found["prompt_digest"]) == ("groundedness/yesno", 2, "c" * 64)
    assert found["scale"] == {
        "levels": [
            {"grade": 0, "label": "no", "description": "Nothing unsupported."},
            {"grade": 1, "label": "yes", "description": "Something unsupported."},
        ],
        "polarity": "lower",
        "positive": [0],
        "unable": {"grade": -1, "label": "unable", "description": "Cannot be judged."},
    }
    assert found["reading"] == "lower grades are better; responses judged 'unable' are left out"
    assert (found["judges"], found["models_returned"]) == (["litellm/gpt-x"], ["gpt-x-2026"])
    assert found["counts"] == {
        "graded": 3,
        "by_grade": {"0": 2, "1": 1},
        "unable": 1,
        "failures": {"refused": 2, "unreadable": 1},
    }
    assert "not by human assessors" in found["note"]
    # Grade 0 is positive here, which trec_eval takes for no relevance.
    assert found["share"].startswith("trec_eval cannot make a share of positive grades of this file")
    assert "over the 1 turns of this file" in found["share"]
    assert found["calibration"] == "CALIBRATED: or so it says."
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


def test_the_sidecar_says_which_share_a_reader_of_the_qrels_gets() -> None:
    graded = criterion(scale())
    judgments = [judgment("9-1_2", "R00001", 1), judgment("9-1_2", "R00002", 3), judgment("9-1_3", "R00003", 3)]
    assert sidecar(graded, judgments, "")["share"] == (
        "P(rel=2)@1 of this file and response_runs/, by `trec_eval -c` or ir-measures, is share_of_turns of "
        "leaderboard.tsv: over the 2 turns of this file, where a turn without a grade is not positive; share_positive "
        "there is over the graded turns of the run alone"
    )
    gap = criterion(scale(positive=(1, 3)))
    assert sidecar(gap, judgments, "")["share"].startswith("trec_eval cannot")


def test_released_grades_come_out_in_natural_order_with_nothing_lost(shared: Path) -> None:
    file = shared / "cast-regin" / "response_evaluation" / "qrels" / "response_naturalness.qrel"
    released = parse_qrels(file.read_text(encoding="utf-8"), file.name)
    text = qrels_text([judgment(row.turn_id, row.item_id, row.grade) for row in released], criterion())
    # The released files keep their own order of turns, so only the lines as a set are the same.
    assert text != qrels_lines(released)
    assert sorted(text.splitlines()) == sorted(qrels_lines(released).splitlines())


def test_ids_are_columns_whatever_they_hold() -> None:
    text = qrels_text([judgment("9 1_3", "R 1", 1), judgment("9%201_3", "R 1", 0)], criterion())
    assert text == "9%201_3 0 R%201 1\n9%25201_3 0 R%201 0\n"
