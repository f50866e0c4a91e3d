"""Reading the members of JSON objects by hand, so that every problem is told at its JSON path and reading goes on.

Where a value cannot be read its reader gets a neutral one ("", 0 or an empty list); the problem at that path says so.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from judge.records import Problem
from judge.runs.check.codes import problem
from judge.text.safe import MAX_ID, shown, storable

LISTED = 10
"""Problems of one code listed for one list (a response's passages, say); one more counts the rest."""
MAX_TURNS, MAX_RESPONSES, MAX_ALL_RESPONSES = 10_000, 1_000, 100_000
"""Turns of a run, responses of a turn and responses of a run that are read; beyond that it is no run but an attack."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TURN_ID = re.compile(r"[^\s_](?:\S*[^\s_])?_[0-9]+(?:-[0-9]+)*")
_MISSING = object()

Report = Callable[[str, str, str], None]
"""Called with code, path, message."""


class ProblemLog:
    """The problems of one file, in the order in which they are met; `turn_id` is the turn being looked at."""

    def __init__(self, file: str, silent: Collection[str] = ()) -> None:
        """Nothing is added at or below the paths in `silent`."""
        self.file = file
        self.silent = silent
        self.turn_id: str | None = None
        self.problems: list[Problem] = []
        self._listed: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, path: str, message: str, count: int = 1) -> None:
        """Add one problem, which stands for `count` like it."""
        if not (self.silent and any(above in self.silent for above in ancestors(path))):
            self.problems.append(problem(code, self.file, path, message, turn_id=self.turn_id, count=count))

    def add_entry(self, base: str, code: str, path: str, message: str) -> None:
        """Add one problem of an entry of the list at path `base`, of which only the first `LISTED` are kept."""
        self._listed[base, code] += 1
        if self._listed[base, code] <= LISTED:
            self.add(code, path, message)

    def close_lists(self) -> None:
        """Add one problem for each list and code that counts those not kept."""
        for (base, code), count in self._listed.items():
            more = count - LISTED
            if more > 0:
                self.add(code, f"{base}[*]", f"and {more} more like these here", more)
        self._listed.clear()


def ancestors(path: str) -> Iterator[str]:
    """A JSON path and all that contain it, from the inside.

    >>> list(ancestors("line 3: $.responses[0].rank"))
    ['line 3: $.responses[0].rank', 'line 3: $.responses[0]', 'line 3: $.responses', 'line 3: $']
    """
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


def member(path: str, name: str) -> str:
    """The JSON path of a member of the object at `path`."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{path}.{name}"
    cut = name if len(name) <= MAX_ID else f"{name[:MAX_ID]}…"
    return f"{path}[{json.dumps(cut)}]"


def usable_turn_id(text: str) -> bool:
    """Whether a turn id has a topic and a turn number and can stand in a column.

    >>> [usable_turn_id(text) for text in ("9-1_3", "0_3", "132_1-3", "9-1", "9 1_3")]
    [True, True, True, False, False]
    """
    return len(text) <= MAX_ID and text.isprintable() and _TURN_ID.fullmatch(text) is not None


class Fields:
    """The members of one JSON object, each read with a check that reports what is wrong with it."""

    def __init__(self, report: Report, path: str, value: Any, known: Collection[str]) -> None:
        """Members not in `known` are reported; a value that is no object is reported and read as empty."""
        self.path = path
        self.readable = type(value) is dict
        self._report = report
        self._values: dict[str, Any] = value if self.readable else {}
        self._strange = [name for name in self._values if name not in known]
        if not self.readable:
            report("wrong_type", path, f"expected an object, found {shown(value)}")
        for name in self._strange:
            report("unknown_field", member(path, name), "the format has no such field")

    def get(self, name: str) -> Any:
        """The value as it is, None if missing."""
        return self._values.get(name)

    def text(self, name: str, *, optional: bool = False) -> str:
        """A string, "" where there is none."""
        value = self._values.get(name, _MISSING)
        if type(value) is str:
            return value
        if not (optional and (value is _MISSING or value is None)):
            self._complain(name, value, "a string")
        return ""

    def label(self, name: str, *, optional: bool = False) -> str:
        """A short string that will be stored: an id, a name."""
        value = self.text(name, optional=optional)
        if storable(value):
            return value
        message = f"NUL or a lone surrogate in {shown(value)}"
        self._report("unusable_text", member(self.path, name), message)
        return ""

    def integer(self, name: str) -> int:
        """An integer, 0 where there is none; a number in another form is taken with a warning."""
        value = self._values.get(name, _MISSING)
        if type(value) is int:
            return value
        number = _integer(value)
        if number is None:
            self._complain(name, value, "an integer")
            return 0
        self._coerced(name, value, number)
        return number

    def number(self, name: str) -> float | None:
        """A number as float, None where there is none; a number in a string is taken with a warning."""
        value = self._values.get(name)
        if type(value) is float or value is None:
            return value
        if type(value) is int:
            return _float(value)
        if type(value) is str:
            try:
                number = float(value)
            except ValueError:
                pass
            else:
                self._coerced(name, value, number)
                return number
        self._complain(name, value, "a number")
        return None

    def flag(self, name: str) -> bool | None:
        """True, false, or None where there is no such member."""
        value = self._values.get(name)
        if value is None or type(value) is bool:
            return value
        self._complain(name, value, "true or false")
        return None

    def list(self, name: str, *, optional: bool = False) -> list[Any]:
        """A list, empty where there is none."""
        value = self._values.get(name, _MISSING)
        if type(value) is list:
            return value
        if not (optional and (value is _MISSING or value is None)):
            self._complain(name, value, "a list")
        return []

    def object(self, name: str, *, optional: bool = False) -> dict[str, Any]:
        """An object, empty where there is none."""
        value = self._values.get(name, _MISSING)
        if type(value) is dict:
            return value
        if not (optional and (value is _MISSING or value is None)):
            self._complain(name, value, "an object")
        return {}

    def _complain(self, name: str, value: Any, expected: str) -> None:
        path = member(self.path, name)
        if value is not _MISSING:
            self._report("wrong_type", path, f"expected {expected}, found {shown(value)}")
        elif self.readable:
            instead = ", ".join(map(shown, self._strange[:5]))
            hint = f"; unknown fields here: {instead}" if instead else ""
            self._report("missing_field", path, f"`{name}` is missing, expected {expected}{hint}")

    def _coerced(self, name: str, value: Any, number: float) -> None:
        message = f"{shown(value)} is read as the number {shown(number)}"
        self._report("coerced_value", member(self.path, name), message)


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _integer(value: Any) -> int | None:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    return None
