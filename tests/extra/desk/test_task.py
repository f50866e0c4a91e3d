"""What a prompt becomes on the page of a task."""

import pytest

from judge.ask.criteria import bundled_criteria, find_criterion
from judge.ask.prompt import guidance
from judge.extra.desk.assess import label_words, level_keys, question
from judge.extra.desk.store import DeskLabel
from judge.records import Level


@pytest.mark.parametrize(
    ("grades", "keys"),
    [
        ((0, 1, 2, 3), "0123"),
        ((1, 0), "10"),
        # Not all are digits, so each has its place.
        ((-1, 0, 1), "123"),
        ((8, 9, 10), "123"),
    ],
)
def test_the_key_of_a_level_is_its_grade_or_its_place(grades: tuple[int, ...], keys: str) -> None:
    assert "".join(level_keys([Level(grade, str(grade), "") for grade in grades]).values()) == keys


def test_a_tenth_place_has_no_key() -> None:
    keys = level_keys([Level(grade, str(grade), "") for grade in range(10, 21)])
    assert list(keys.values()) == [*map(str, range(1, 10)), "", ""]


@pytest.mark.parametrize("criterion", bundled_criteria(), ids=lambda criterion: criterion.prompt_id)
def test_every_prompt_has_guidance_without_marks_of_its_own(criterion) -> None:  # type: ignore[no-untyped-def]
    paragraphs = guidance(criterion)
    assert paragraphs and paragraphs[0].startswith("You ")
    # The rubric has the levels, so no paragraph announces them.
    assert all("{{" not in text and not text.endswith(":") for text in [*paragraphs, question(criterion)])
    assert question(criterion) == "" or question(criterion).endswith("?")


@pytest.mark.parametrize(
    ("prompt", "grade", "words"),
    [
        ("groundedness/graded", 2, "2"),
        ("groundedness/yes_no", 1, "1 yes"),
        ("groundedness/yes_no", 0, "0 no"),
        ("relevance/ikat", None, "unable to judge"),
    ],
)
def test_a_label_in_words(prompt: str, grade: int | None, words: str) -> None:
    assert label_words(find_criterion(prompt), DeskLabel(grade, "")) == words
