"""What the page of one task shows, ready to be inserted. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from judge.ask.blocks import NO_ANSWER, needs_turn
from judge.ask.prompt import PLACEHOLDER, guidance
from judge.extra.desk.assess.inputs import Suggestion, Work
from judge.extra.desk.assess.store import DeskLabel, DeskTask
from judge.gold.grades import CANNOT, UNABLE
from judge.records import Criterion, JudgedUnit, Level
from judge.runs.records import Turn

_UNABLE_KEY = "u"
_HEADLINE = re.compile(r"([^.:;]{1,40}\.)\s+(.+)")
"""A short first sentence, such as "Mostly grounded."."""
_UNDECIDED = "It cannot be decided from what is shown."


class LevelRow(NamedTuple):
    """One level that can be chosen."""

    value: str
    """A grade, or UNABLE."""
    key: str
    """The key that chooses it; empty for a tenth level and further ones."""
    label: str
    """The word for it, or what its description begins with; may be empty."""
    description: str
    chosen: bool
    suggested: bool
    """Whether the judge gave it."""


class TaskView(NamedTuple):
    """What the page of one task shows."""

    task: DeskTask
    criterion: str
    question: str
    guidance: Sequence[str]
    """What the prompt says to a judge, in paragraphs."""
    sentence_levels: Sequence[tuple[str, str]]
    response: str
    passages: Sequence[str | None]
    """The texts of the used passages; None where there is no text."""
    passages_count: bool
    """Whether a judge sees the passages under this prompt."""
    turn: Turn | None
    turn_counts: bool
    """Whether a judge sees the conversation under this prompt."""
    unit: JudgedUnit
    """What is labeled: the response, or the dialogue that it ends."""
    levels: Sequence[LevelRow]
    comment: str
    judge: str | None
    """Whose grade is shown."""


def task_view(work: Work, task: DeskTask, choice: DeskLabel | None) -> TaskView:
    """What the page of a task shows.

    Args:
        work: What is labeled.
        task: The task.
        choice: What the assessor chose earlier.
    """
    item, response = work.items[task.item], work.responses[task.item]
    criterion = work.criteria[task.criterion]
    suggestion = work.suggestions.get((item.response_id, task.criterion))
    return TaskView(
        task=task,
        criterion=criterion.name,
        question=question(criterion),
        guidance=guidance(criterion),
        sentence_levels=[(level.label, level.description) for level in criterion.sentence_levels],
        response=response.text or NO_ANSWER,
        passages=[work.passages.get(key) for key in response.passages],
        passages_count="passages" in criterion.inputs,
        turn=work.turns.get(item.turn_id),
        turn_counts=needs_turn(criterion),
        unit=response.unit,
        levels=_levels(criterion, choice, suggestion),
        comment=choice.comment if choice else "",
        judge=suggestion.judge if suggestion else None,
    )


def question(criterion: Criterion) -> str:
    """What a prompt asks after all it has shown; empty if it only shows."""
    return " ".join(PLACEHOLDER.sub("", criterion.user).split())


def label_words(criterion: Criterion, choice: DeskLabel) -> str:
    """A choice in one or two words."""
    if choice.grade is None:
        return CANNOT.lower()
    label = next((level.label for level in criterion.scale.levels if level.grade == choice.grade), "")
    return str(choice.grade) if label in ("", str(choice.grade)) else f"{choice.grade} {label}"


def _levels(criterion: Criterion, choice: DeskLabel | None, suggestion: Suggestion | None) -> list[LevelRow]:
    scale = criterion.scale
    keys = level_keys(scale.levels)
    given = _value(choice.grade) if choice else _value(suggestion.grade) if suggestion else None
    suggested = _value(suggestion.grade) if suggestion else None
    rows = [(str(level.grade), keys[level.grade], *_headed(level)) for level in scale.levels]
    rows.append((UNABLE, _UNABLE_KEY, f"{CANNOT}.", scale.unable.description if scale.unable else _UNDECIDED))
    return [LevelRow(*row, chosen=row[0] == given, suggested=row[0] == suggested) for row in rows]


def level_keys(levels: Sequence[Level]) -> Mapping[int, str]:
    """The key of each grade: the grade itself where every grade is a digit, else its place on the scale."""
    grades = [level.grade for level in levels]
    if all(0 <= grade <= 9 for grade in grades):
        return {grade: str(grade) for grade in grades}
    return {grade: str(place) if place <= 9 else "" for place, grade in enumerate(grades, 1)}


def _headed(level: Level) -> tuple[str, str]:
    """The label and the description of a level; a number is replaced by the words that the description begins with."""
    if level.label != str(level.grade):
        return level.label, level.description
    begins = _HEADLINE.fullmatch(level.description)
    return (begins[1], begins[2]) if begins else ("", level.description)


def _value(grade: int | None) -> str:
    return UNABLE if grade is None else str(grade)
