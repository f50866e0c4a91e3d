"""What the reports share: numbers as text, names that fit their place, which records belong together."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from judge.findings import AgreementRow, Calibration, Selection, Split, Verdict
from judge.ids import NaturalKey, natural_key
from judge.leaderboard import decimals
from judge.records import Estimate

SEPARABLE = 0.05
"""The level at which the reports call two candidates separable."""
_SPLITS: tuple[Split, ...] = ("test", "all", "dev")


class _OfCriterion(Protocol):
    @property
    def criterion(self) -> str: ...


_Record = TypeVar("_Record", bound=_OfCriterion)


def number(value: float | None, places: int = 3, *, signed: bool = False) -> str:
    """A number for people; a dash where there is none.

    >>> number(-0.0001), number(0.5, 2, signed=True), number(None)
    ('0.000', '+0.50', '-')
    """
    text = decimals(value, places) or "-"
    return f"+{text}" if signed and value is not None and round(value, places) > 0 else text


def interval(estimate: Estimate | None, places: int = 3, *, signed: bool = False) -> str:
    """A value with its interval, `0.610 [0.480, 0.710]`, the value alone, or a dash."""
    if estimate is None or estimate.value is None:
        return "-"
    value = number(estimate.value, places, signed=signed)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = (number(end, places, signed=signed) for end in (estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def p_value(p: float | None) -> str:
    """A p-value with four decimals, never a zero that it is not."""
    return "< 0.0001" if p is not None and p < 0.0001 else number(p, 4)


def count(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> count(1, "judge"), count(2, "judge")
    ('1 judge', '2 judges')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def columns_of(text: str) -> int:
    """Terminal columns that a printable text takes: two a wide character, none a combining mark."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def shorten(text: str, columns: int) -> str:
    """The text in at most so many columns; what is too long loses its middle, as both ends tell names apart.

    >>> shorten("local/qwen3-4b-instruct graded", 19)
    'local/qwe…ct graded'
    """
    if columns_of(text) <= columns:
        return text
    tail = _head(text[::-1], (columns - 1) // 2)[::-1]
    return f"{_head(text, columns - 1 - columns_of(tail))}…{tail}"


def _head(text: str, columns: int) -> str:
    """The longest start of the text that takes at most so many columns."""
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:place]
    return text


def pad(text: str, columns: int) -> str:
    """The text with spaces after it up to so many columns."""
    return text + " " * (columns - columns_of(text))


def fold(text: str, columns: int, indent: str = "  ") -> list[str]:
    """The text in lines of at most so many columns, broken at spaces where it can be; later lines indented."""
    lines = [""]
    for word in text.split():
        while word:
            line = lines[-1]
            start = f"{line} " if line.strip() else line
            if columns_of(start + word) <= columns:
                lines[-1], word = start + word, ""
            elif line.strip():
                lines.append(indent)
            else:
                head = _head(word, columns - columns_of(line))
                lines[-1], word = line + head, word[len(head) :]
    return lines


def of(records: Iterable[_Record], criterion: str) -> list[_Record]:
    """The records of one criterion, in their order."""
    return [record for record in records if record.criterion == criterion]


def criteria(calibration: Calibration) -> list[str]:
    """Every criterion that anything is said about, in order of appearance."""
    records: tuple[_OfCriterion, ...] = (*calibration.agreement, *calibration.verdicts, *calibration.selections)
    return list(dict.fromkeys(record.criterion for record in records))


def selection_of(calibration: Calibration, criterion: str) -> Selection | None:
    """The criterion's selection, if candidates were chosen from."""
    return next(iter(of(calibration.selections, criterion)), None)


def verdict_of(calibration: Calibration, criterion: str) -> Verdict | None:
    """The criterion's one verdict: about the chosen judge where there is one, on test grades rather than others."""
    selection = selection_of(calibration, criterion)
    chosen = selection.chosen if selection else None
    return min(
        of(calibration.verdicts, criterion),
        key=lambda verdict: (verdict.judge != chosen, _SPLITS.index(verdict.split)),
        default=None,
    )


def chosen_of(calibration: Calibration, criterion: str) -> str | None:
    """Judge and variant that the criterion's report is about."""
    selection, verdict = selection_of(calibration, criterion), verdict_of(calibration, criterion)
    return selection.chosen if selection else verdict.judge if verdict else None


def split_of(calibration: Calibration, criterion: str) -> Split:
    """The split that the criterion's report is about: the verdict's, else the most honest one there is."""
    verdict = verdict_of(calibration, criterion)
    splits = {row.split for row in of(calibration.agreement, criterion)}
    return verdict.split if verdict else min(splits or _SPLITS, key=_SPLITS.index)


def best_first(rows: Iterable[AgreementRow]) -> list[AgreementRow]:
    """By the lower bound of the primary statistic, then by its value; undefined ones last."""

    def place(row: AgreementRow) -> tuple[float, float, NaturalKey]:
        primary = row.statistics.get(row.primary)
        ends = (primary.low, primary.value) if primary else (None, None)
        low, value = (math.inf if end is None else -end for end in ends)
        return low, value, natural_key(row.name)

    return sorted(rows, key=place)


def row_of(rows: Sequence[AgreementRow], name: str | None, split: Split) -> AgreementRow | None:
    """The row of a judge on a split."""
    return next((row for row in rows if row.name == name and row.split == split), None)
