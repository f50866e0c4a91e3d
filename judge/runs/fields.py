"""Reading the members of JSON objects one by one: every problem is reported at its JSON path, and reading goes on.

For a value that cannot be read the caller gets a neutral one ("", 0 or an empty list) and a problem at its path.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from judge.io.text import MAX_ID, shown, storable
from judge.records import Problem
from judge.runs.check import as_error, problem

LISTED = 10
"""The most problems of one code that are listed for one list (a response's passages); one more counts the rest."""
MAX_TURNS, MAX_RESPONSES, MAX_ALL_RESPONSES = 10_000, 1_000, 100_000
"""The most turns of a run, responses of a turn and responses of a run that are read; no real run has as many."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TURN_ID = re.compile(r"[^\s_](?:\S*[^\s_])?_[0-9]+(?:-[0-9]+)*")
_MISSING = object()
_Kind = TypeVar("_Kind", str, list[Any], dict[str, Any])

Report = Callable[[str, str, str], None]
"""Takes the code, JSON path and message of a problem."""


class ProblemLog:
    """The problems of one file in the order of reading, after those that are `known`; `turn_id` is the turn at hand.

    None is added at or below a `silent` path, nor after the first `most`, where one is as bad as all. Warnings of the
    codes `errors` are errors.
    """

    def __init__(
        self,
        file: str,
        known: Iterable[Problem] = (),
        silent: Collection[str] = (),
        most: int | None = None,
        errors: Collection[str] = (),
    ) -> None:
        self.file = file
        self.errors = errors
        self.most = most
        self.silent = silent
        self.turn_id: str | None = None
        self.problems = list(known)
        self._listed: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, path: str, message: str, count: int = 1) -> None:
        """Add one problem, which stands for `count` problems of its code."""
        if self.most is not None and len(self.problems) >= self.most:
            return
        if not (self.silent and any(above in self.silent for above in ancestors(path))):
            found = problem(code, self.file, path, message, turn_id=self.turn_id, count=count)
            self.problems.append(as_error(found) if code in self.errors else found)

    def add_once(self, code: str, path: str, message: str) -> None:
        """Add one problem of a code, of which one in a file is enough."""
        if all(known.code != code for known in self.problems):
            self.add(code, path, message)

    def add_entry(self, base: str, code: str, path: str, message: str) -> None:
        """Add one problem of an entry in the list at `base`; only the first `LISTED` of each code are kept."""
        self._listed[base, code] += 1
        if self._listed[base, code] <= LISTED:
            self.add(code, path, message)

    def close_lists(self) -> None:
        """For each list and code, add one problem that counts those that were not kept."""
        for (base, code), count in self._listed.items():
            unlisted = count - LISTED
            if unlisted > 0:
                self.add(code, f"{base}[*]", f"and {unlisted} more like these here", unlisted)
        self._listed.clear()


def ancestors(path: str) -> Iterator[str]:
    """A JSON path and all paths above it, innermost first.

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
    """Whether a turn id has a topic and a turn number and can be a column.

    >>> [usable_turn_id(text) for text in ("9-1_3", "0_3", "132_1-3", "9-1", "9 1_3")]
    [True, True, True, False, False]
    """
    return len(text) <= MAX_ID and text.isprintable() and _TURN_ID.fullmatch(text) is not None


class Fields:
    """The members of one JSON object, each read with a check that reports its problem."""

    def __init__(self, report: Report, path: str, value: Any, known: Collection[str]) -> None:
        """Members not in `known` are reported; a value that is no object is reported and read as empty."""
        self.path = path
        self.readable = type(value) is dict
        self._report = report
        self._values: dict[str, Any] = value if self.readable else {}
        self._strange = [name for name in self._values if name not in known]
        if not self.readable:
            report("wrong_type", path, f"expected an object, found {shown(value)}")
        for name in self._strange[:LISTED]:
            report("unknown_field", member(path, name), "the format has no such field")
        if (unlisted := len(self._strange) - LISTED) > 0:
            report("unknown_field", f"{path}[*]", f"and {unlisted:,} more fields that the format does not have")

    def get(self, name: str) -> Any:
        """The unchecked value; None if it is missing."""
        return self._values.get(name)

    def _typed(self, name: str, kind: type[_Kind], expected: str, optional: bool) -> _Kind:
        """A member of a JSON type; an empty one where it is missing or unreadable."""
        value = self._values.get(name, _MISSING)
        if type(value) is kind:
            return value
        if not (optional and (value is _MISSING or value is None)):
            self._complain(name, value, expected)
        return kind()

    def text(self, name: str, *, optional: bool = False) -> str:
        """A string; "" where it is missing or unreadable."""
        return self._typed(name, str, "a string", optional)

    def label(self, name: str, *, optional: bool = False) -> str:
        """A string that will be stored as an id or a name; "" where it cannot be."""
        value = self.text(name, optional=optional)
        if storable(value):
            return value
        message = f"NUL or a lone surrogate in {shown(value)}"
        self._report("unusable_text", member(self.path, name), message)
        return ""

    def integer(self, name: str) -> int:
        """An integer; 0 where it is missing or unreadable. A number in another form is read with a warning."""
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
        """A number as float; None where it is missing or unreadable. A number in a string is read with a warning."""
        value = self._values.get(name)
        if type(value) is float or value is None:
            return value
        if type(value) is int:
            # Not of the integer itself, which may be too large; the number in its digits is then infinite.
            return float(str(value))
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
        """True or False; None where it is missing or unreadable."""
        value = self._values.get(name)
        if value is None or type(value) is bool:
            return value
        self._complain(name, value, "true or false")
        return None

    def list(self, name: str, *, optional: bool = False) -> list[Any]:
        """A list; empty where it is missing or unreadable."""
        return self._typed(name, list, "a list", optional)

    def object(self, name: str, *, optional: bool = False) -> dict[str, Any]:
        """An object; empty where it is missing or unreadable."""
        return self._typed(name, dict, "an object", optional)

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


def _integer(value: Any) -> int | None:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    return None
