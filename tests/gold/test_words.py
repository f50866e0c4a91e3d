"""Which grade a text means."""

import pytest

from judge.ask.criteria import bundled_criteria
from judge.gold.grades import folded, level_words


def test_levels_mean_their_grades_by_name_and_by_description() -> None:
    words = level_words("groundedness", (0, 1, 2, 3), bundled_criteria())
    names = ("Not grounded", "WEAKLY grounded.", " Mostly  grounded", "fully grounded")
    assert [words[folded(name)] for name in names] == [0, 1, 2, 3]
    description = "Not grounded. It takes nothing from the passages beyond names and the subject."
    assert words[folded(description)] == 0


@pytest.mark.parametrize("scale", [(1, 2, 3, 4), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_levels_of_another_scale_mean_nothing(scale: tuple[int, ...]) -> None:
    assert folded("Mostly grounded") not in level_words("groundedness", scale, bundled_criteria())


def test_another_criterion_means_nothing() -> None:
    assert level_words("novelty", (0, 1, 2, 3), bundled_criteria()) == {}
