"""What the reading of a dataset comes to: usable responses, rows that have no label or text, and problems."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from judge.errors import InputError
from judge.extra.bench.datasets import LabeledResponse
from judge.io.cells import count
from judge.io.limits import MAX_PROBLEMS
from judge.io.safe import has_content, printable_id, shown, storable
from judge.io.stored import read_stored, unpack
from judge.records import Problem
from judge.runs.document import decode

_Row = TypeVar("_Row")
_Container = TypeVar("_Container", list[Any], dict[str, Any])


class DatasetReading:
    """What has been read so far."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.responses: dict[str, LabeledResponse] = {}
        self.skipped: Counter[str] = Counter()
        self.problems: list[Problem] = []
        self._units: dict[str, str] = {}

    def unit(self, shared: str, item_id: str) -> str:
        """A name for the text that items share, since a whole document is none: the id of its first item."""
        return self._units.setdefault(shared, item_id)

    def add(self, file: Path, where: str, response: LabeledResponse) -> None:
        """Add a response, or count it as skipped if a text of it is empty; an id that is there already is a problem."""
        texts = (response.utterance, *response.passages, *(text for pair in response.context for text in pair))
        if printable_id(response.item_id) != response.item_id:
            self.problem("unusable_id", file, where, f"id {shown(response.item_id)}: unprintable or too long")
        elif not all(map(storable, (response.response or "", *texts))):
            self.problem("wrong_text", file, where, f"{response.item_id}: a text with NUL or a lone surrogate")
        elif response.response is not None and not has_content(response.response):
            self.skipped["empty response"] += 1
        elif response.passages and not any(map(has_content, response.passages)):
            self.skipped["empty evidence"] += 1
        elif response.item_id in self.responses:
            self.problem("repeated_item", file, where, f"{response.item_id} stands in the files more than once")
        else:
            self.responses[response.item_id] = response

    def grade(self, file: Path, where: str, grades: Mapping[str, int], label: str) -> int | None:
        """The grade of a label; None where there is none, which is counted, or where it is none of the scale."""
        if not label.strip():
            self.skipped["no label"] += 1
            return None
        if label not in grades:
            self.problem("wrong_label", file, where, f"label {shown(label)}: expected {' or '.join(map(repr, grades))}")
            return None
        return grades[label]

    def problem(self, code: str, file: Path, where: str, message: str) -> None:
        """Add an error; after very many, one that says that the rest are not listed."""
        if len(self.problems) == MAX_PROBLEMS:
            code, message = "too_many_problems", f"{MAX_PROBLEMS:,} problems up to here; the rest are not listed"
        if len(self.problems) <= MAX_PROBLEMS:
            self.problems.append(Problem(code, "error", str(file), None, where, message))

    def entries(self, file: Path, at: str, row_type: type[_Row]) -> Iterator[tuple[str, _Row]]:
        """The sound entries of a JSON list, each with its JSON path; the others are problems.

        Args:
            file: The file.
            at: The field of the file's object that holds the list; "" if the file is the list.
            row_type: The record that an entry must be; unknown fields are ignored.
        """
        value = self._value(file, list, at)
        for number, entry in enumerate(value or ()):
            where = f"${'.' * bool(at)}{at}[{number}]"
            if (row := self._converted(file, where, entry, row_type)) is not None:
                yield where, row

    def members(self, file: Path, row_type: type[_Row]) -> dict[str, _Row]:
        """The sound members of a JSON object; the others are problems."""
        value = self._value(file, dict)
        rows = {key: self._converted(file, f"$[{shown(key)}]", entry, row_type) for key, entry in (value or {}).items()}
        return {key: row for key, row in rows.items() if row is not None}

    def _value(self, file: Path, kind: type[_Container], at: str = "") -> _Container | None:
        """The list or object of a JSON file, or at a field of its object; None, and a problem, if it is not there."""
        value, problem = decode(unpack(read_stored(file), str(file)).removeprefix(b"\xef\xbb\xbf"), str(file))
        if problem:
            self.problems.append(problem)
            return None
        if at:
            value = value.get(at) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            expected = "a list" if kind is list else "an object"
            self.problem("wrong_type", file, f"$.{at}" if at else "$", f"expected {expected}, found {shown(value)}")
            return None
        return value

    def _converted(self, file: Path, where: str, entry: Any, row_type: type[_Row]) -> _Row | None:
        try:
            return msgspec.convert(entry, row_type)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            self.problem("wrong_type", file, where + path.rstrip("`"), message)
        except UnicodeEncodeError:
            self.problem("wrong_text", file, where, "the name of a field has a lone surrogate")
        return None

    def check(self) -> None:
        """Refuse the files if they have a problem, or if no response is left.

        Raises:
            InputError: With every problem.
        """
        if self.problems:
            file = self.problems[0].file
            raise InputError(f"{file}: not usable: {count(len(self.problems), 'problem')}", self.problems)
        if not self.responses:
            reasons = ", ".join(f"{number} with {reason}" for reason, number in sorted(self.skipped.items()))
            raise InputError(f"no usable response in the dataset: {reasons or 'its files have no rows'}")


Fill = Callable[[Path, DatasetReading], None]
"""Adds to a reading what the files below a folder hold."""


def filled(fill: Fill, folder: Path) -> DatasetReading:
    """What a folder comes to.

    Raises:
        InputError: A file is missing, or the files have problems; all of them are listed.
    """
    reading = DatasetReading()
    fill(folder, reading)
    reading.check()
    return reading


def read_by(fill: Fill) -> Callable[[Path], tuple[LabeledResponse, ...]]:
    """A dataset's `read` from the way its files are read."""
    return lambda folder: tuple(filled(fill, folder).responses.values())


def skipped_by(fill: Fill) -> Callable[[Path], Mapping[str, int]]:
    """A dataset's `skipped` from the way its files are read; reasons in alphabetical order."""
    return lambda folder: dict(sorted(filled(fill, folder).skipped.items()))
