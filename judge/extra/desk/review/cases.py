"""The disagreements of a calibration folder, and those that a filter keeps. Pure."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from judge.calibrate.disagreements import Disagreement
from judge.extra.desk.pages import whole_number
from judge.io.ids import natural_key

Direction = Literal["", "higher", "lower", "missing"]
"""In which direction a judge errs; "" for any."""

_FILTERS = 50
"""Filters whose disagreements are kept in memory."""
PromptedJudge = tuple[str, str | None]
"""A judge and its prompt, as `criterion/variant`."""


class Filter(NamedTuple):
    """What a visitor wants to see."""

    criterion: str = ""
    judge: int | None = None
    """The place of a judge among those of the cases; None for any."""
    direction: Direction = ""

    @property
    def query(self) -> dict[str, str]:
        """The filter as the fields of an address; what is not set is left out."""
        judge = "" if self.judge is None else str(self.judge)
        fields = {"criterion": self.criterion, "judge": judge, "direction": self.direction}
        return {name: value for name, value in fields.items() if value}


def filter_of(query: Mapping[str, str], judges: int) -> Filter:
    """The filter in an address; what it cannot mean counts as not set."""
    judge, direction = whole_number(query.get("judge")), query.get("direction", "")
    chosen = judge if judge is not None and judge < judges else None
    wanted: Direction = next((known for known in get_args(Direction) if known == direction), "")
    return Filter(query.get("criterion", ""), chosen, wanted)


class Cases:
    """The disagreements, worst first, and which of them a filter keeps."""

    def __init__(self, items: Sequence[Disagreement]) -> None:
        self.items = items
        raters = {(judge.judge, judge.prompt) for item in items for judge in item.judges}
        self.raters: tuple[PromptedJudge, ...] = tuple(
            sorted(raters, key=lambda rater: (natural_key(rater[0]), natural_key(rater[1] or "")))
        )
        """Every judge and prompt, in natural order."""
        self.criteria = tuple(sorted({item.criterion for item in items}))
        place = {rater: number for number, rater in enumerate(self.raters)}
        # Told apart once, so that a page of many thousands is there at once.
        self._errors = [
            [
                (place[judge.judge, judge.prompt], judge.difference)
                for judge in item.judges
                if judge.difference is None or judge.difference
            ]
            for item in items
        ]
        self.kept = functools.lru_cache(_FILTERS)(self._select)
        """The places of the disagreements that a filter keeps, worst first: for one judge, by its own distance."""

    def _select(self, by: Filter) -> tuple[int, ...]:
        wanted = _DIRECTIONS[by.direction]
        found: list[tuple[int, int]] = []
        for place, errors in enumerate(self._errors):
            if by.criterion and self.items[place].criterion != by.criterion:
                continue
            distances = [
                abs(difference or 0) for judge, difference in errors if by.judge in (None, judge) and wanted(difference)
            ]
            if distances:
                found.append((-max(distances), place))
        return tuple(place for _, place in (sorted(found) if by.judge is not None else found))


_DIRECTIONS: Mapping[Direction, Callable[[int | None], bool]] = {
    "": lambda difference: True,
    "higher": lambda difference: difference is not None and difference > 0,
    "lower": lambda difference: difference is not None and difference < 0,
    "missing": lambda difference: difference is None,
}
"""Which of the differences that are not 0 are of a direction."""
