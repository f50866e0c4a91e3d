"""The log of a run's fixes, and the fixes that every list and number shares. Pure."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import msgspec

from judge.runs.fields import Fields, member


class Fix(msgspec.Struct, frozen=True):
    """One change of a run file."""

    file: str
    turn_id: str | None
    path: str
    """JSON path in the file as it was given; `base[3:7]` where entries 3 to 6 of a list were reordered."""
    code: str
    """Code of the problem that is fixed."""
    before: Any
    """The earlier JSON value; None also where there was none."""
    after: Any
    """The new JSON value; None where it is removed."""


class FixLog:
    """The fixes of one run in the order of making."""

    def __init__(self, file: str) -> None:
        self.fixes: list[Fix] = []
        self._file = file
        self.turn_id: str | None = None
        """The turn in work."""

    def note(self, code: str, path: str, before: Any, after: Any) -> None:
        """Log a fix of the turn in work."""
        self.fixes.append(Fix(file=self._file, turn_id=self.turn_id, path=path, code=code, before=before, after=after))

    def coerce(self, value: dict[str, Any], name: str, path: str, read: Callable[[Fields, str], float | None]) -> None:
        """Write a number in another form as the number that its reader reads."""
        before = value.get(name)
        if type(before) is int or (type(before) is float and read is Fields.number) or before is None:
            return
        codes: list[str] = []
        fields = Fields(lambda code, path, message: codes.append(code), path, {name: before}, (name,))
        number = read(fields, name)
        if codes == ["coerced_value"] and number is not None and isfinite(number):
            value[name] = number
            self.note("coerced_value", member(path, name), before, number)

    def coerce_members(self, value: Any, path: str) -> None:
        """Write the numbers of an object as numbers."""
        for name in value if type(value) is dict else ():
            self.coerce(value, name, path, Fields.number)

    def moved(self, code: str, path: str, names: Sequence[Any], order: Sequence[int]) -> None:
        """Log a new order, from the first entry that moved to the last."""
        moved = [k for k, old in enumerate(order) if k != old]
        start = moved[0]
        stop = moved[-1] + 1
        self.note(code, f"{path}[{start}:{stop}]", list(names[start:stop]), [names[k] for k in order[start:stop]])


def scores_of(values: Any) -> list[float]:
    """The values if all of them are finite numbers; else an empty list."""
    scores = list(values)
    return scores if all(score is not None and is_score(score) and isfinite(score) for score in scores) else []


def is_score(value: Any) -> bool:
    """Whether a score is missing or a number that a float can hold."""
    return value is None or type(value) is float or (type(value) is int and abs(value) < 10**300)


def rises(scores: Sequence[float]) -> bool:
    """Whether some score is above the one before."""
    return any(score > previous for previous, score in pairwise(scores))
