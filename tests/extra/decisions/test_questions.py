"""How a request becomes questions, and what completion their answers make."""

import json

import pytest

from judge.ask.records import Unreadable, Verdict
from judge.ask.verdict import parse
from judge.extra.decisions.questions import Decision, completion_of, questions_of, shares
from judge.judges.records import PROMPT_CUT, Completion
from judge.records import Level, Scale
from tests.ask.test_loop import criterion
from tests.mock import ask


def scale(*grades: int, positive: tuple[int, ...] = (), unable: bool = False) -> Scale:
    levels = tuple(Level(grade, f"L{grade}", f"Level {grade}.") for grade in grades)
    return Scale(levels, "higher", positive, Level(-9, "unable", "Cannot say.") if unable else None)


@pytest.mark.parametrize(("of", "kind", "labels"), [
    (scale(0, 1, 2, 3), "score", ["L0", "L1", "L2", "L3"]),
    # The order of a score is that of the grades, whatever the file's.
    (scale(2, 0, 1), "score", ["L0", "L1", "L2"]),
    (scale(-1, 0, 1, 2), "score", ["L-1", "L0", "L1", "L2"]),
    (scale(*range(10)), "score", [f"L{grade}" for grade in range(10)]),
    (scale(*range(11)), "choice", [f"L{grade}" for grade in range(11)]),
    (scale(1, 0, positive=(1,)), "predicate", ["L1", "L0"]),
    (scale(0, 1, positive=(1,)), "predicate", ["L1", "L0"]),
    # True is what is positive, and the higher grade where both are or neither is.
    (scale(0, 1, positive=(0,)), "predicate", ["L0", "L1"]),
    (scale(0, 1), "predicate", ["L1", "L0"]),
    (scale(0, 1, unable=True), "choice", ["L0", "L1", "unable"]),
    (scale(0, 1, 2, 3, unable=True), "choice", ["L0", "L1", "L2", "L3", "unable"]),
])  # fmt: skip
def test_a_scale_is_one_question(of: Scale, kind: str, labels: list[str]) -> None:
    (question,) = questions_of(ask("decision", scale=of, labels=of.labels))
    assert question.kind == kind
    assert [label for label, _ in question.options] == labels
    assert question.instructions == "You grade responses."
    described = {level.label: level.description for level in of.levels} | {"unable": "Cannot say."}
    assert all(description == described[label] for label, description in question.options)


def test_each_sentence_is_a_choice() -> None:
    asked = questions_of(ask("decision", sentences=3, labels=("good", "bad")))
    assert [question.kind for question in asked] == ["choice"] * 3
    assert {question.options for question in asked} == {(("good", None), ("bad", None))}
    assert [question.instructions for question in asked] == [
        f"You grade responses.\n\nThe question is about sentence [{number}] alone." for number in (1, 2, 3)
    ]


ASKED = ask("decision")


@pytest.mark.parametrize(("masses", "grade", "expected"), [
    ({"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}, 3, 2.0),
    # Equally likely labels: the first one of the prompt file.
    ({"0": 0.1, "1": 0.4, "2": 0.4, "3": 0.1}, 1, 1.5),
    ({"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25}, 0, 1.5),
    # What does not add up to one is shared out.
    ({"0": 0.0, "1": 0.0, "2": 0.1, "3": 0.3}, 3, 2.75),
])  # fmt: skip
def test_the_grade_is_the_likeliest(masses: dict[str, float], grade: int, expected: float) -> None:
    completion = completion_of(ASKED, [Decision(masses, {"type": "score"})], None)
    verdict = parse(completion, criterion(), "decision", 0)
    assert isinstance(verdict, Verdict)
    assert (verdict.grade, verdict.rationale) == (grade, None)
    assert verdict.expected == pytest.approx(expected)
    assert json.loads(completion.raw or "") == {"type": "score"}
    assert sum((completion.probabilities or {}).values()) == pytest.approx(1)


@pytest.mark.parametrize(("decisions", "reason", "detail"), [
    ([Decision(None, {"type": "refusal"}, refused=True)], "refused", "the provider reports a refusal"),
    ([Decision(None, {"type": "score"})], "unreadable", "the reply is empty"),
])  # fmt: skip
def test_what_is_no_answer_is_no_grade(decisions: list[Decision], reason: str, detail: str) -> None:
    completion = completion_of(ASKED, decisions, None)
    assert completion.probabilities is None
    assert parse(completion, criterion(), "decision", 0) == Unreadable(reason, detail)  # type: ignore[arg-type]


def test_sentences_have_a_line_each_and_fail_together() -> None:
    asked = ask("decision", sentences=2, labels=("good", "bad"))
    answers = [Decision({"good": 0.2, "bad": 0.8}, "a"), Decision({"good": 0.5, "bad": 0.5}, "b")]
    assert completion_of(asked, answers, None) == Completion(
        "1: bad\n2: good", "stop", None, raw='["a", "b"]', probabilities=None
    )
    assert completion_of(asked, [answers[0], Decision(None, "b")], None).text == ""
    assert completion_of(asked, [answers[0], Decision(None, "b", refused=True)], None).finish_reason == "refusal"
    assert completion_of(asked, answers, "cut").finish_reason == PROMPT_CUT


@pytest.mark.parametrize(("whole", "questions", "each"), [
    (100, [1, 1, 1], [34, 33, 33]),
    (7, [2, 3], [4, 3]),
    (0, [1, 1], [0, 0]),
    (None, [1, 1], [None, None]),
])  # fmt: skip
def test_tokens_are_shared_out_by_question(whole: int | None, questions: list[int], each: list[int | None]) -> None:
    assert shares(whole, questions) == each
