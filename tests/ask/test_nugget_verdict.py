import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.criteria import find_criterion
from judge.ask.questions import inquiry
from judge.ask.records import Task, Unreadable, Verdict
from judge.ask.verdict import LONGEST_NUGGET, MOST_LISTED, parse
from judge.io.text import has_content, storable
from judge.judges.records import AnswerForm, Completion
from tests.ask.test_prompt import pooled, turn
from tests.ask.test_prompt import render as rendered

CREATION = find_criterion("nugget_creation")


def read(reply: str, form: AnswerForm = "json", finish: str = "stop") -> tuple[str, ...] | str:
    """The nuggets, or why there are none."""
    verdict = parse(Completion(reply, finish, None), CREATION, form, 0)
    if isinstance(verdict, Unreadable):
        return verdict.reason
    assert verdict.grade == bool(verdict.nuggets)
    return verdict.nuggets


def replied(nuggets: object, grade: str = "some") -> str:
    return json.dumps({"nuggets": nuggets, "grade": grade})


@pytest.mark.parametrize(
    ("form", "reply", "expected"),
    [
        ("json", replied(["A is b.", "C\n is  d."]), ("A is b.", "C is d.")),
        ("json", replied([], "none"), ()),
        ("json", "```json\n" + replied(["A."]) + "\n```", ("A.",)),
        ("text", "- A is b.\n- C is d.\nGrade: some", ("A is b.", "C is d.")),
        ("text", "Nuggets:\n1. A is b.\n2. C.\n3. D.\n\n**Grade: some**", ("A is b.", "C.", "D.")),
        ("text", "There is nothing here.\nGrade: none", ()),
        ("json", "- A is b.\nGrade: some", ("A is b.",)),
        ("text", "- A is b.\n\n- **C is d.**\n```\nGrade: some", ("A is b.", "**C is d.**")),
        # The list and the grade contradict each other.
        ("json", replied([], "some"), "unreadable"),
        ("json", replied(["A."], "none"), "unreadable"),
        ("text", "Nothing.\nGrade: some", "unreadable"),
        ("text", "- A.\nGrade: none", "unreadable"),
        # Not a list of texts.
        ("json", replied("A."), "unreadable"),
        ("json", replied([{"text": "A."}]), "unreadable"),
        ("json", '{"grade": "some"}', "unreadable"),
        ("json", '{"nuggets": ["A."]}', "unreadable"),
        ("json", replied(["A.", " \u200b"]), "unreadable"),
        ("json", replied(["A\x00."]), "unreadable"),
        ("json", replied(["x" * (LONGEST_NUGGET + 1)]), "unreadable"),
        ("json", replied([f"A is {n}." for n in range(MOST_LISTED + 1)]), "unreadable"),
        ("json", replied(["A."], "many"), "unreadable"),
        # A list that is quoted.
        ("text", "It says:\n- B.\nSo:\n- A.\nGrade: some", "unreadable"),
        ("text", "It says:\n- B.\n\n- A.\n- C.\nGrade: some", "unreadable"),
        ("text", "- A.\nIt also says:\n1. B.\nGrade: some", "unreadable"),
        ("text", "It says:\n- B.\nThat is a fact.\nGrade: some", "unreadable"),
        ("text", "- A is b\n  and c.\nGrade: some", "unreadable"),
        # Two answers.
        ("json", replied(["A."]) + replied(["B."]), "unreadable"),
        ("json", replied(["A."]) + replied(["A."]), ("A.",)),
        ("json", '{"nuggets": ["B."]}' + replied(["A."]), "unreadable"),
        ("json", replied(["A."]) + '{"grade": "some"}', "unreadable"),
        ("json", replied(["A."]) + replied([], "none"), "unreadable"),
        ("text", "- A.\nGrade: some\n- B.", "unreadable"),
        ("json", "", "unreadable"),
        ("json", "I'm sorry, I can't.", "refused"),
    ],
)
def test_a_list_is_read_or_refused(form: AnswerForm, reply: str, expected: tuple[str, ...] | str) -> None:
    assert read(reply, form) == expected


@pytest.mark.parametrize(
    "before",
    [
        "The source lists these facts:",
        "The response says",
        "A team wrote the following, which I do not adopt.\n\nNuggets:",
        "Nuggets of the source:",
        "Its own words are\n> Nuggets:",
        "## What it claims",
        '"Nuggets:"',
        "Here is the list that I was told to copy:",
    ],
)
@pytest.mark.parametrize("mark", ["- {}", "* {}", "• {}", "  - {}", "{number}. {}", "{number}) {}"])
@pytest.mark.parametrize("apart", ["\n", "\n\n"])
@pytest.mark.parametrize("own", [(), ("It snows.", "It is cold.")])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_list_that_is_quoted_before_the_own_list_is_refused(
    before: str, mark: str, apart: str, own: tuple[str, ...], form: AnswerForm
) -> None:
    # The first line of a quotation that introduces itself, as if it went on to the grade.
    listed = ["Our system is the best.", "No other system answers this.", *own]
    lines = [mark.format(text, number=number) for number, text in enumerate(listed, 1)]
    assert read(apart.join([before, *lines]) + "\nGrade: some", form) == "unreadable"


@pytest.mark.parametrize(
    "listed",
    [
        # Two lists in one: the second begins again, is set in, or is introduced by an item.
        "1. Ours is the best.\n2. It wins.\n1. It snows.\n2. It is cold.",
        "3. Ours is the best.\n4. It snows.",
        "- Ours is the best.\n- It wins.\n1. It snows.\n2. It is cold.",
        "* Ours is the best.\n- It snows.",
        "1. Ours is the best.\n2) It snows.",
        "1. Ours is the best.\n- It snows.\n1) It is cold.",
        "- It says\n  - Ours is the best.\n  - It wins.",
        "  - Ours is the best.\n- It snows.",
        "- The source claims:\n- Ours is the best.\n- It snows.",
        "- **The source claims：**\n- Ours is the best.",
        "> - Ours is the best.\n- It snows.",
    ],
)
def test_a_list_that_may_be_of_two_is_refused(listed: str) -> None:
    assert read(f"{listed}\nGrade: some", "text") == "unreadable"
    assert read(f"Nuggets:\n{listed}\nGrade: some", "text") == "unreadable"


@pytest.mark.parametrize("heading", ["", "Nuggets:\n", "**Nuggets**:\n", "## Nuggets\n\n", "```\n", "\n \n"])
def test_an_own_list_stands_alone_or_under_its_heading(heading: str) -> None:
    for listed in ("- It snows.\n- It is cold.", "1. It snows.\n2. It is cold.", "  * It snows.\n  * It is cold."):
        assert read(f"{heading}{listed}\nGrade: some", "text") == ("It snows.", "It is cold.")


def test_a_reply_that_was_cut_off_is_no_short_list() -> None:
    assert read('{"nuggets": ["A is b.", "C', finish="length") == "truncated"
    assert read("- A is b.\n- C is", "text", finish="length") == "truncated"
    assert read("- A.\nGrade: some", "text", finish="length") == "truncated"


def test_an_unreadable_list_is_asked_for_once_more_in_the_same_form() -> None:
    criterion = find_criterion("nugget_creation")
    for form in ("json", "text"):
        request = rendered(Task(pooled("It is cold."), criterion), {}, turn("x"), form)
        assert request.lists_nuggets
        talk = inquiry(criterion, request)
        next(talk)
        again = talk.send(Completion("Hm.", "stop", None))
        assert request.messages[-1].content.endswith(again.messages[-1].content.partition("\n")[2])
        with pytest.raises(StopIteration) as stop:
            talk.send(Completion(replied(["A."]) if form == "json" else "- A.\nGrade: some", "stop", None))
        assert stop.value.value.repaired
        assert stop.value.value.verdict.nuggets == ("A.",)


PIECES = ["- ", "1. ", "A is b.", "\n", "Grade: some", "Grade: none", '{"nuggets": [', '"A"', "], ", '"grade": "some"}',
          "\x00", "\ud800", "</think>", '"']  # fmt: skip


@given(
    reply=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4))).map("".join),
    form=st.sampled_from(["json", "text"]),
    finish=st.sampled_from(["stop", "length", None]),
)
def test_what_is_read_can_stand_in_a_bank(reply: str, form: AnswerForm, finish: str | None) -> None:
    verdict = parse(Completion(reply, finish, None), CREATION, form, 0)
    if isinstance(verdict, Verdict):
        assert verdict.grade == bool(verdict.nuggets)
        for text in verdict.nuggets:
            assert has_content(text) and storable(text) and "\n" not in text and len(text) <= LONGEST_NUGGET
