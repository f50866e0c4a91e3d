"""Gold: grades by people, planned, labeled, imported, checked, split, sealed, and matched to a pool.

rows     reads gold files strictly and matches their rows to a pool
check    lists every problem of gold files
sources  reads grades as others publish them (rag2024 those of TREC RAG 2024); draft turns them into gold rows
seal     separates the dev part from the test part, and guards the latter; its ledger records each look at it
plan     draws the responses to label next, by sampling, which also deals them to assessors
sheets/  shows it to assessors, as tables, pages, and batches of platforms

Here is what labels in words mean: what the user says, else how the levels of the criterion's prompt are called.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from judge.ask.criteria import bundled_criteria, default_prompts, find_criterion
from judge.io.text import shown
from judge.records import Criterion

Words = Mapping[str, int]
"""Text, folded, to grade."""
UNABLE = "unable"
"""What an assessor gives in place of a grade where none can be given."""
CANNOT = "Unable to judge"
"""The same in words."""
NO_LABEL = ("NA", "N/A", "#N/A", "<NA>", "nan", "None", "null", "-", "Unsure", "Skip", "Skipped")
"""Texts of programs and people that say there is no label, in any case."""
NO_LABEL_CODES = (-1, -2, 99)
"""Numbers that say so where the scale does not have them."""
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


def levels_said(prompt: Criterion | None) -> str:
    """The grades of a prompt, as messages have them in brackets; "" without one.

    >>> levels_said(find_criterion("groundedness")), levels_said(None)
    (' (0, 1, 2, 3 in groundedness/graded)', '')
    """
    if prompt is None:
        return ""
    grades = sorted(level.grade for level in prompt.scale.levels)
    return f" ({', '.join(map(str, grades))} in {prompt.prompt_id})"


_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FEW_DIGITS = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_WHOLE = re.compile(r"([+-]?[0-9]{1,9})\.0+", re.ASCII)


def whole(text: str) -> int | None:
    """The integer in a text such as `2.0`, as pandas writes integers with gaps; None for any other text."""
    match = _WHOLE.fullmatch(text)
    return int(match[1]) if match else None


def value_key(text: str) -> str:
    """A label as it is compared with the values that are none.

    >>> value_key("-1.0"), value_key("+1"), value_key("n/a ")
    ('-1', '1', 'n/a')
    """
    text = text.strip()
    value = int(text) if _FEW_DIGITS.fullmatch(text) else whole(text)
    return folded(text) if value is None else str(value)


_NO_LABEL_KEYS = frozenset(value_key(text) for text in (*NO_LABEL, *map(str, NO_LABEL_CODES)))


def is_missing(text: str, *, on_scale: bool, stated: Collection[str] = ()) -> bool:
    """Whether a value stands for no label: one that the user states (as keys), or off the scale one that always does.

    >>> is_missing("NA", on_scale=False), is_missing("99", on_scale=True), is_missing("5", on_scale=False, stated="5")
    (True, False, True)
    """
    key = value_key(text)
    return key in stated or (not on_scale and key in _NO_LABEL_KEYS)


class GradeMeanings:
    """Texts to grades, by criterion; a prompt file is read when the first text of its criterion is."""

    def __init__(
        self,
        given: Mapping[str, int] | None = None,
        prompts: Iterable[Criterion] = (),
        missing: Iterable[str] = (),
    ) -> None:
        """Take what the user says, under any criterion; a grade off the scale of its criterion's prompt is a problem.

        Where none of the prompts is about a criterion, its default prompt is. `missing`: values that are no label.
        """
        self._missing = frozenset(map(value_key, missing))
        self._given = {folded(text): grade for text, grade in (given or {}).items()}
        self._stated = {prompt.name: prompt for prompt in prompts}
        self._prompt = cache(self._prompt_of)
        self._words = cache(self._words_of)

    def is_stated(self, criterion: str) -> bool:
        """Whether the user names a prompt of this criterion."""
        return criterion in self._stated

    def grade(self, criterion: object, text: str) -> int | None:
        """The grade that a text stands for; None if it stands for none. Digits in place of a number stand for none."""
        if _DIGITS.fullmatch(text):
            return None
        return (self._words(str(criterion)) | self._given).get(folded(text), whole(text))

    def is_missing(self, criterion: object, value: int | str) -> bool:
        """Whether a value of a table stands for no label; where the scale is not known, any number is on it."""
        grade = self.grade(criterion, value) if isinstance(value, str) else value
        on_scale = grade is not None and self.problem(criterion, grade) is None
        return is_missing(str(value), on_scale=on_scale, stated=self._missing)

    def problem(self, criterion: object, grade: int | str) -> str | None:
        """What is wrong with a grade, in words; None if nothing is known to be."""
        name = str(criterion)
        if isinstance(grade, int):
            prompt = self._prompt(name)
            if prompt is None or grade in (scale := [level.grade for level in prompt.scale.levels]):
                return None
            other = "" if name in self._stated else f", as in {prompt.prompt_id}; --prompt names another prompt"
            return f"{grade} of {name}: expected one of {', '.join(map(str, sorted(scale)))}{other}"
        levels = levels_said(self._prompt(name))
        return (
            f"{shown(grade)}: expected an integer{levels}, or what the levels of {shown(criterion)} are called; say "
            "the grade of a text, as in --label 'Mostly grounded=2', or that it is no label, --missing VALUE"
        )

    def _words_of(self, name: str) -> dict[str, int]:
        own = self._prompt(name)
        grades = sorted(level.grade for level in own.scale.levels) if own else ()
        prompts = bundled_criteria() if own and name not in self._stated else (own,) if own else ()
        return level_words(name, grades, prompts)

    def _prompt_of(self, name: str) -> Criterion | None:
        return self._stated.get(name) or (find_criterion(name) if name in default_prompts() else None)
