"""The items of a folder of `judge calibrate`: those on which a judge differs from assessors or from another judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.stored import read_stored
from judge.records import Problem, Record
from judge.report.items import Assessment, Item, Opinion, UsedPassage
from judge.runs.records import Exchange, Turn
from judge.text.cells import count

DISAGREEMENTS = "disagreements.jsonl"
"""The file of the items, worst first."""


class _Gold(Record, frozen=True):
    grade: int | None
    assessors: tuple[Assessment, ...] = ()


class _Judged(Record, frozen=True):
    judge: str
    prompt: str | None = None
    grade: int | None = None
    expected: float | None = None
    rationale: str | None = None
    reason: str | None = None


class _Passage(Record, frozen=True):
    id: str
    text: str | None = None


class _Line(Record, frozen=True):
    turn_id: str
    topic_id: str
    response_id: str
    criterion: str
    judges: tuple[_Judged, ...]
    gold: _Gold | None = None
    text: str | None = None
    passages: tuple[_Passage, ...] = ()
    utterance: str | None = None
    context: tuple[Exchange, ...] = ()


class CalibrationItems(NamedTuple):
    """The items of one calibration, with a side for each judge under each prompt."""

    sides: tuple[str, ...]
    items: tuple[Item, ...]
    turns: dict[str, Turn]


def read_calibration_items(folder: Path, first: int) -> CalibrationItems:
    """Read the items of a folder of `judge calibrate`.

    Args:
        folder: The folder.
        first: The number of its first side among those that are shown.

    Raises:
        InputError: The file of the items cannot be read; every damaged line is listed.
    """
    path = folder / DISAGREEMENTS
    problems: list[Problem] = []
    lines: list[_Line] = []
    for _, row in decode_lines(read_stored(path), _Line, str(path), "not_a_disagreement"):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            lines.append(row)
    if problems:
        raise InputError(f"{path}: {count(len(problems), 'line')} with problems (not_a_disagreement)", problems)
    sides: dict[tuple[str, str], int] = {}
    for line in lines:
        for judged in line.judges:
            sides.setdefault(_side(judged), first + len(sides))
    turns = {line.turn_id: turn for line in lines if (turn := _turn(line))}
    return CalibrationItems(tuple(map(_name, sides)), tuple(_items(lines, sides)), turns)


def _side(judged: _Judged) -> tuple[str, str]:
    return judged.judge, judged.prompt or ""


def _name(side: tuple[str, str]) -> str:
    judge, prompt = side
    return f"{judge}, {prompt}" if prompt else judge


def _items(lines: list[_Line], sides: dict[tuple[str, str], int]) -> Iterator[Item]:
    for line in lines:
        yield Item(
            turn_id=line.turn_id,
            topic_id=line.topic_id,
            criterion=line.criterion,
            text=line.text,
            truncated=False,
            passages=tuple(UsedPassage(passage.id, passage.text, None) for passage in line.passages),
            runs=(),
            opinions={sides[_side(judged)]: _opinion(line, judged) for judged in line.judges},
            gold=line.gold.assessors if line.gold else (),
            gold_grade=line.gold.grade if line.gold else None,
        )


def _opinion(line: _Line, judged: _Judged) -> Opinion:
    return Opinion(
        response_id=line.response_id,
        judge=judged.judge,
        prompt=judged.prompt or "",
        grade=judged.grade,
        reason=judged.reason if judged.grade is None else None,
        expected=judged.expected,
        rationale=judged.rationale,
    )


def _turn(line: _Line) -> Turn | None:
    if line.utterance is None:
        return None
    return Turn(
        turn_id=line.turn_id,
        topic_id=line.topic_id,
        utterance=line.utterance,
        resolved_utterance=None,
        context=line.context,
        ptkb=(),
    )
