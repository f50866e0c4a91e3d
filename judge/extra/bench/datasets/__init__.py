"""Datasets: public labels by people, each read from the folder that a user downloaded.

A `Dataset` is the labels of one criterion, or of one part of a release; `grounded` has those of responses and their
evidence, `graded` those of the other criteria. Nothing is shipped: a dataset is read where its files are below the
user's folder, whether that is one download or holds several clones of repositories.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from judge.errors import InputError
from judge.io.files import BOM, Problems, decode_lines, distinct, files_below, read_content
from judge.io.files import read_stored as read_stored
from judge.io.files import unpack as unpack
from judge.io.ids import groups_of, natural_key
from judge.io.text import count, has_content, printable_id, shown, storable
from judge.records import Record
from judge.runs.document import decode

_Row = TypeVar("_Row")
_Container = TypeVar("_Container", list[Any], dict[str, Any])
Rung = Literal["easy", "middle", "hard"]
"""How far word overlap alone already goes; a judge is worth its price above the first rung."""


class LabeledResponse(Record, frozen=True):
    """A response that people judged under one criterion."""

    item_id: str
    """Unique in the dataset."""
    unit: str
    """The topic or source document that it shares with others; intervals are over units."""
    grade: int
    """What people agreed on."""
    grades: tuple[int, ...] = ()
    """Of each assessor, where they were released."""
    response: str | None = None
    """None where the text was not released, so that only stored labels can be compared."""
    passages: tuple[str, ...] = ()
    utterance: str = ""
    context: tuple[tuple[str, str], ...] = ()
    """Earlier turns: utterance and response."""


class Dataset(Record, frozen=True, kw_only=True):
    """Public labels of responses under one criterion."""

    name: str
    """On the command line and in cards: `begin-wow`."""
    title: str
    criterion: str = "groundedness"
    grades: tuple[int, ...] = (0, 1)
    """The scale, worst to best."""
    positive: tuple[int, ...] = (1,)
    """The grades that count as positive where a judge's scale is another one."""
    unit: str
    """What intervals are over, in the singular: `source document`."""
    licence: str
    source: str
    """How to get it: a repository and the files of it."""
    files: tuple[str, ...]
    """Patterns of the files below the folder of the data; the dataset is there if each matches."""
    rung: Rung | None = None
    runs: bool = False
    """Whether an item's id is its unit, the run that it is of and a number, with `/` between them."""
    published: str = ""
    """Figures of others on such labels, with their source."""
    fill: "Fill"
    stored: Callable[[Path], Mapping[str, Mapping[str, float]]] | None = None
    """Name of a judge to item to the label or score that was released with the dataset, where there are any.

    A label is as it was released, even off the scale; a score is higher for a better response.
    """
    size: int = 0
    """Labeled responses of the whole release, as its authors give it; a folder may have a part of it."""

    def read(self, folder: Path) -> "DatasetReading":
        """What a folder comes to: responses in the order of the files, and rows without a label or a text."""
        reading = DatasetReading()
        self.fill(folder, reading)
        reading.check()
        return reading


class DatasetReading:
    """What has been read so far."""

    def __init__(self) -> None:
        self.responses: dict[str, LabeledResponse] = {}
        self.skipped: Counter[str] = Counter()
        self.problems = Problems()
        self._units: dict[str, str] = {}

    def unit(self, shared: str, item_id: str) -> str:
        """A name for the text that items share, since a whole document is none: the id of its first item."""
        return self._units.setdefault(shared, item_id)

    def add(self, file: Path, where: str, response: LabeledResponse) -> None:
        """Add a response, or count it as skipped if a text of it is empty; an id that is there already is a problem."""
        texts = (response.utterance, *response.passages, *(text for pair in response.context for text in pair))
        if printable_id(response.item_id) != response.item_id:
            self.problems.add("unusable_id", where, f"id {shown(response.item_id)}: unprintable or too long", file=file)
        elif not all(map(storable, (response.response or "", *texts))):
            self.problems.add(
                "wrong_text", where, f"{response.item_id}: a text with NUL or a lone surrogate", file=file
            )
        elif response.response is not None and not has_content(response.response):
            self.skipped["empty response"] += 1
        elif response.passages and not any(map(has_content, response.passages)):
            self.skipped["empty evidence"] += 1
        elif response.item_id in self.responses:
            self.problems.add(
                "repeated_item", where, f"{response.item_id} stands in the files more than once", file=file
            )
        else:
            self.responses[response.item_id] = response

    def grade(self, file: Path, where: str, grades: Mapping[str, int], label: str) -> int | None:
        """The grade of a label; None where there is none, which is counted, or where it is none of the scale."""
        if not label.strip():
            self.skipped["no label"] += 1
            return None
        if label not in grades:
            self.problems.add(
                "wrong_label", where, f"label {shown(label)}: expected {' or '.join(map(repr, grades))}", file=file
            )
            return None
        return grades[label]

    def lines(self, file: Path, row_type: type[_Row]) -> Iterator[tuple[str, _Row]]:
        """The sound lines of a JSON Lines file, each with its place; the others are problems."""
        for number, row in decode_lines(read_content(file), row_type, str(file), "wrong_type", self.problems):
            yield f"line {number}", row

    def entries(self, file: Path, at: str, row_type: type[_Row]) -> Iterator[tuple[str, _Row]]:
        """The sound entries of a JSON list, each with its JSON path; the others are problems.

        `at` is the field of the file's object that holds the list; "" if the file is the list.
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
        value, problem = decode(read_content(file).removeprefix(BOM), str(file))
        if problem:
            self.problems.append(problem)
            return None
        if at:
            value = value.get(at) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            expected = "a list" if kind is list else "an object"
            self.problems.add(
                "wrong_type", f"$.{at}" if at else "$", f"expected {expected}, found {shown(value)}", file=file
            )
            return None
        return value

    def _converted(self, file: Path, where: str, entry: Any, row_type: type[_Row]) -> _Row | None:
        try:
            return msgspec.convert(entry, row_type)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            self.problems.add("wrong_type", where + path.rstrip("`"), message, file=file)
        except UnicodeEncodeError:
            self.problems.add("wrong_text", where, "the name of a field has a lone surrogate", file=file)
        return None

    def check(self) -> None:
        """Refuse the files if they have a problem, or if no response is left."""
        if self.problems:
            file = self.problems[0].file
            raise InputError(f"{file}: not usable: {count(len(self.problems), 'problem')}", self.problems)
        if not self.responses:
            reasons = ", ".join(f"{number} with {reason}" for reason, number in sorted(self.skipped.items()))
            raise InputError(f"no usable response in the dataset: {reasons or 'its files have no rows'}")


Fill = Callable[[Path, DatasetReading], None]
"""Adds to a reading what the files below a folder hold."""


DEPTH = 4
"""The most folders between the given folder and a file."""
MOST_ENTRIES = 200_000
"""The most files and folders that are looked at; more is no folder of datasets."""


def is_there(folder: Path, patterns: Sequence[str]) -> bool:
    """Whether each pattern, such as those of a dataset, has a file below the folder."""
    paths = _below(folder)
    return all(any(_matching(paths, pattern)) for pattern in patterns)


def find_file(folder: Path, pattern: str) -> Path:
    """The file of a pattern; of equal copies the first in natural order.

    Of a pattern with several ends of paths between `|`, the first that has a file is taken.
    """
    files = find_files(folder, pattern)
    if len(files) > 1:
        raise InputError(f"{files[0]} and {files[1]}: expected one file {pattern}")
    return files[0]


def find_files(folder: Path, pattern: str) -> tuple[Path, ...]:
    """The files of a pattern in natural order of their names, each name once."""
    named = groups_of((path.name, path) for path in _matching(_below(folder), pattern))
    if not named:
        raise InputError(f"{folder}: no file {pattern.replace('|', ' or ')} at most {DEPTH} folders below")
    files = [distinct(named[name]) for name in sorted(named, key=natural_key)]
    for first, *others in files:
        if others:
            raise InputError(f"{first} and {others[0]}: two files of one name that differ; keep one of them")
    return tuple(first for first, *_ in files)


def _matching(paths: tuple[Path, ...], pattern: str) -> list[Path]:
    """The files of the first alternative that has any."""
    for alternative in pattern.split("|"):
        if matches := [path for path in paths if path.match(alternative)]:
            return matches
    return []


def _below(folder: Path) -> tuple[Path, ...]:
    """Every file at most DEPTH folders below the folder, in natural order of the paths."""
    paths = files_below(folder, DEPTH, MOST_ENTRIES)
    return tuple(sorted(paths, key=lambda path: natural_key(path.relative_to(folder).as_posix())))
