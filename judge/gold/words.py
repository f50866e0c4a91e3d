"""Labels written as words: which grade a text means, as the user says or as a criterion's levels are called. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from judge.records import Criterion

Words = Mapping[str, int]
"""Text, folded, to grade."""
UNABLE = "unable"
"""What an assessor gives in place of a grade where none can be given."""
CANNOT = "Unable to judge"
"""The same in words."""
_NAME = re.compile(r"[^.:;!?]+")


def folded(text: str) -> str:
    r"""A text as it is compared: without case, outer white space, and a period at its end.

    >>> folded(" Mostly  grounded. ")
    'mostly grounded'
    """
    return " ".join(text.split()).rstrip(".").casefold()


def means_unable(text: str) -> bool:
    """Whether a label says that no grade can be given.

    >>> means_unable("Unable to judge."), means_unable("2")
    (True, False)
    """
    return folded(text) in (folded(UNABLE), folded(CANNOT))


def level_words(criterion: str, grades: Sequence[int], prompts: Iterable[Criterion]) -> dict[str, int]:
    """What the levels of a criterion's prompts call its grades: labels, descriptions, and the names these begin with.

    A prompt on another scale says nothing about the grades of this one. A text that two levels share means nothing.

    Args:
        criterion: The criterion of the labels.
        grades: Its scale, ascending.
        prompts: All prompts there are.
    """
    meanings: dict[str, set[int]] = {}
    for prompt in prompts:
        levels = prompt.scale.levels
        if prompt.name != criterion or sorted(level.grade for level in levels) != list(grades):
            continue
        for level in levels:
            begins = _NAME.match(level.description)
            for text in (level.label, level.description, begins[0] if begins else ""):
                meanings.setdefault(folded(text), set()).add(level.grade)
    return {text: next(iter(grades)) for text, grades in meanings.items() if text and len(grades) == 1}
