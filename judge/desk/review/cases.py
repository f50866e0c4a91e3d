"""The disagreements of a calibration folder, and those that a filter keeps. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from judge.calibrate.disagreements import Disagreement, JudgeGrade
from judge.calibrate.report.disagreements import LINES
from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.records import Problem
from judge.text.cells import count
from judge.text.ids import natural_key

Direction = Literal["", "higher", "lower", "missing"]
"""In which direction a judge errs; "" for any."""

Rater = tuple[str, str | None]
"""A judge and its prompt, as `criterion/variant`."""


class Filter(NamedTuple):
    """What a visitor wants to see."""

    criterion: str = ""
    judge: int | None = None
    """The place of a judge among `raters`; None for any."""
    direction: Direction = ""

    @property
    def query(self) -> dict[str, str]:
        """The filter as the fields of an address; what is not set is left out."""
        judge = "" if self.judge is None else str(self.judge)
        fields = {"criterion": self.criterion, "judge": judge, "direction": self.direction}
        return {name: value for name, value in fields.items() if value}


class Case(NamedTuple):
    """A disagreement with its place in the file."""

    place: int
    item: Disagreement


def parse_cases(content: bytes, name: str) -> tuple[Disagreement, ...]:
    """The disagreements in the bytes of a `disagreements.jsonl`.

    Raises:
        InputError: Some lines are none; every such line is listed.
    """
    lines = [row for _, row in decode_lines(content, Disagreement, name, "not_a_disagreement")]
    problems = [row for row in lines if isinstance(row, Problem)]
    if problems:
        raise InputError(f"{name}: {count(len(problems), 'line')} not as `judge calibrate` writes {LINES}", problems)
    return tuple(row for row in lines if isinstance(row, Disagreement))


def raters(items: Iterable[Disagreement]) -> tuple[Rater, ...]:
    """Every judge and prompt, in natural order."""
    found = {(judge.judge, judge.prompt) for item in items for judge in item.judges}
    return tuple(sorted(found, key=lambda rater: (natural_key(rater[0]), natural_key(rater[1] or ""))))


def filter_of(query: Mapping[str, str], judges: int) -> Filter:
    """The filter in an address; what it cannot mean counts as not set."""
    judge, direction = query.get("judge", ""), query.get("direction", "")
    chosen = int(judge) if judge.isascii() and judge.isdecimal() and len(judge) < 7 and int(judge) < judges else None
    wanted: Direction = next((known for known in get_args(Direction) if known == direction), "")
    return Filter(query.get("criterion", ""), chosen, wanted)


def kept(items: Sequence[Disagreement], of: Sequence[Rater], by: Filter) -> tuple[Case, ...]:
    """The disagreements that a filter keeps, worst first: for one judge, by its own distance."""
    wanted = of[by.judge] if by.judge is not None else None
    found: list[tuple[int, Case]] = []
    for place, item in enumerate(items):
        if by.criterion and item.criterion != by.criterion:
            continue
        erring = [judge for judge in item.judges if wanted in (None, (judge.judge, judge.prompt)) and _errs(judge, by)]
        if erring:
            found.append((max(abs(judge.difference or 0) for judge in erring), Case(place, item)))
    if wanted is not None:
        found.sort(key=lambda pair: -pair[0])
    return tuple(case for _, case in found)


def _errs(judge: JudgeGrade, by: Filter) -> bool:
    difference = judge.difference
    match by.direction:
        case "higher":
            return difference is not None and difference > 0
        case "lower":
            return difference is not None and difference < 0
        case "missing":
            return difference is None
        case _:
            return difference != 0
