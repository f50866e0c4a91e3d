"""The front matter of a prompt file: TOML → its fields, or every problem with its line. Pure."""

import functools
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from judge.ask.blocks import BLOCKS
from judge.ask.subjects import DIALOGUE, NUGGET_CREATION, OF_DIALOGUES, OF_NUGGETS
from judge.files.limits import LARGEST_TOML
from judge.records import JudgedUnit

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LABEL = re.compile(r"-?[A-Za-z0-9](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?")
_NUMBER = re.compile(r"-?[0-9]+")
_TABLE = re.compile(r"\[(\[?)\s*([A-Za-z0-9_]+)\s*\]")
_KEY = re.compile(r"([A-Za-z0-9_-]+)\s*=")
_TOML_LINE = re.compile(r" ?\(at line ([0-9]+), column [0-9]+\)")
# Strict, so that `positive = ["2"]` is a problem and no guess; an unknown key is a typing mistake.
_STRICT = {"extra": "forbid", "strict": True}

ValuePath = tuple[str | int, ...]
"""Keys and list indices from the root of the TOML document to a value."""


class LineProblem(NamedTuple):
    """A problem of a prompt file, and the line where it stands."""

    line: int
    code: str
    message: str


class _Report(Protocol):
    def __call__(self, code: str, message: str, *path: str | int) -> None:
        """Add a problem of the value at `path`."""


@dataclass(frozen=True)
class LevelFields:
    """The keys of a `[[level]]` or of `[unable]`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    grade: int
    description: str
    label: str | None = None


@dataclass(frozen=True)
class SentenceFields:
    """The keys of a `[[sentence_level]]`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    label: str
    description: str


@dataclass(frozen=True)
class RollupFields:
    """The keys of `[rollup]`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    label: str
    cuts: list[tuple[float, int]]
    ignored: str | None = None


@dataclass(frozen=True)
class FrontMatter:
    """The front matter as written, once its keys and types are right."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    criterion: str
    version: int
    polarity: Literal["higher", "lower"]
    positive: list[int]
    inputs: list[str]
    answer: Literal["grade", "sentences", "nuggets"]
    level: list[LevelFields]
    unit: JudgedUnit = "response"
    unable: LevelFields | None = None
    sentence_level: list[SentenceFields] = field(default_factory=list)
    rollup: RollupFields | None = None


class KeyLines:
    """The line of each key of the front matter."""

    def __init__(self, front: Sequence[str]) -> None:
        self._at: dict[ValuePath, int] = {}
        table: ValuePath = ()
        counts: dict[str, int] = {}
        for number, line in enumerate(front, 2):
            stripped = line.strip()
            if header := _TABLE.match(stripped):
                table = (header[2],)
                if header[1]:
                    table = (header[2], counts.get(header[2], 0))
                    counts[header[2]] = counts.get(header[2], 0) + 1
                self._at.setdefault(table, number)
            elif key := _KEY.match(stripped):
                self._at.setdefault((*table, key[1]), number)

    def of(self, *path: str | int) -> int:
        """The line of a key, or of the nearest table around it, or of the opening fence."""
        return next((self._at[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._at), 1)


@functools.cache
def _adapter() -> "TypeAdapter[FrontMatter]":
    """The validator of the fields; it is kept because making it takes longer than checking a hundred files."""
    from pydantic import TypeAdapter

    return TypeAdapter(FrontMatter)


def read_front_matter(front: Sequence[str], problems: list[LineProblem]) -> FrontMatter | None:
    """The front matter, or None if its keys or types are wrong; these problems are added to `problems`.

    Args:
        front: The lines between the fences; the first is line 2 of the file.
        problems: The list that problems are added to.
    """
    from pydantic import ValidationError

    text = "\n".join(front)
    if len(text) > LARGEST_TOML:
        message = f"{len(text):,} characters of front matter: at most {LARGEST_TOML:,} are read"
        problems.append(LineProblem(1, "prompt_syntax", message))
        return None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        position = _TOML_LINE.search(str(error))
        message = _TOML_LINE.sub("", str(error))
        # TOML counts its lines from after the opening fence.
        problems.append(LineProblem(int(position[1]) + 1 if position else 1, "prompt_syntax", f"not TOML: {message}"))
        return None
    try:
        return _adapter().validate_json(json.dumps(data, default=str))
    except ValidationError as invalid:
        lines = KeyLines(front)
        for detail in invalid.errors():
            path = detail["loc"]
            key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
            match detail["type"]:
                case "missing":
                    message = f"`{key}` is missing"
                case "unexpected_keyword_argument":
                    message = f"`{key}` is not a key of a prompt file"
                case _:
                    message = f"`{key}`: {detail['msg'][:1].lower()}{detail['msg'][1:]}, found {detail['input']!r:.80}"
            problems.append(LineProblem(lines.of(*path), "prompt_field", message))
        return None


def label_of(fields: LevelFields) -> str:
    """The label that a judge writes for a level: the grade if the level has no label."""
    return str(fields.grade) if fields.label is None else fields.label


def check_front_matter(front: FrontMatter, lines: KeyLines, problems: list[LineProblem]) -> None:
    """Add to `problems` what the types of the fields alone do not rule out."""

    def note(code: str, message: str, *path: str | int) -> None:
        problems.append(LineProblem(lines.of(*path), code, message))

    if not _NAME.fullmatch(front.criterion):
        note("prompt_name", f"criterion {front.criterion!r} is not lower-case letters, digits and `_`", "criterion")
    if front.version < 1:
        note("prompt_field", f"version is {front.version}, expected 1 or more", "version")
    for index, name in enumerate(front.inputs):
        if name not in BLOCKS:
            note("prompt_input", f"unknown input {name!r}, expected some of {', '.join(BLOCKS)}", "inputs")
        elif name in front.inputs[:index]:
            note("prompt_input", f"input {name!r} is named twice", "inputs")
    _check_unit(front, note)
    _check_nuggets(front, note)
    _check_scale(front, note)
    if front.answer == "sentences":
        _check_sentences(front, note)
    else:
        for key in ("sentence_level", "rollup"):
            if getattr(front, key):
                note("prompt_rollup", f'`{key}` is only for answer = "sentences"', key)


def _check_nuggets(front: FrontMatter, note: _Report) -> None:
    """Check that a criterion about nuggets has its inputs and its kind of answer, and that no other has them."""
    for name in dict.fromkeys(name for row in OF_NUGGETS.values() for name in row.inputs):
        owners = [criterion for criterion, row in OF_NUGGETS.items() if name in row.inputs]
        if (name in front.inputs) != (front.criterion in owners):
            named = f"the criterion {owners[0]}" if len(owners) == 1 else f"the criteria {' and '.join(owners)}"
            note("prompt_input", f"`{name}` is the input of {named}, and of no other", "inputs")
    if (front.answer == "nuggets") != (front.criterion == NUGGET_CREATION):
        note("prompt_field", f'answer = "nuggets" is for the criterion {NUGGET_CREATION} alone', "answer")
    if front.answer == "nuggets" and (len(front.level) != 2 or front.unable is not None):
        note("prompt_level", "expected two levels: one for some nuggets, one for none", "level", 0)


def _check_unit(front: FrontMatter, note: _Report) -> None:
    """Check that what is judged is shown, and that nothing is shown that the unit does not have."""
    if front.unit == "response":
        if not {"response", "sentences", "source", "candidates"} & set(front.inputs):
            note("prompt_input", "neither `response` nor `sentences` is an input, so nothing is judged", "inputs")
        if DIALOGUE in front.inputs:
            note("prompt_input", f'`{DIALOGUE}` is only for unit = "dialogue"', "inputs")
        return
    if DIALOGUE not in front.inputs:
        note("prompt_input", f"`{DIALOGUE}` is not an input, so nothing is judged", "inputs")
    if others := [name for name in front.inputs if name in BLOCKS and name not in OF_DIALOGUES]:
        shown = " and ".join(f"`{name}`" for name in OF_DIALOGUES)
        note("prompt_input", f"a prompt about a dialogue shows {shown} alone, not {', '.join(others)}", "inputs")
    if front.answer == "sentences":
        note("prompt_field", "a dialogue gets one grade, and its sentences get no labels", "answer")


def _check_scale(front: FrontMatter, note: _Report) -> None:
    levels: list[tuple[LevelFields, ValuePath]] = [(level, ("level", index)) for index, level in enumerate(front.level)]
    if front.unable:
        levels.append((front.unable, ("unable",)))
    for index, (level, path) in enumerate(levels):
        if _NUMBER.fullmatch(label_of(level)) and label_of(level) != str(level.grade):
            message = f"label {label_of(level)!r} is a number other than its grade {level.grade}"
            note("prompt_level", message, *path, "label")
        if level.grade in [earlier.grade for earlier, _ in levels[:index]]:
            note("prompt_level", f"grade {level.grade} is given twice", *path, "grade")
    _check_texts([(label_of(level), level.description, path) for level, path in levels], note)
    grades, positive = {level.grade for level in front.level}, set(front.positive)
    if len(grades) < 2:
        note("prompt_level", "a scale needs at least two levels", "level", 0)
    if len(positive) < len(front.positive):
        note("prompt_positive", "a grade is named twice", "positive")
    if unknown := sorted(positive - grades):
        note("prompt_positive", f"{unknown} are not grades of the scale {sorted(grades)}", "positive")
        return
    rest = grades - positive
    if not positive or not rest:
        note("prompt_positive", "expected some of the grades, not none and not all", "positive")
    elif not (min(positive) > max(rest) if front.polarity == "higher" else max(positive) < min(rest)):
        message = f"{sorted(positive)} are not the best grades when {front.polarity} is better"
        note("prompt_positive", message, "positive")


def _check_texts(levels: Sequence[tuple[str, str, ValuePath]], note: _Report) -> None:
    """Check that labels can be read back and told apart, and that no description is empty."""
    for index, (label, description, path) in enumerate(levels):
        if not _LABEL.fullmatch(label):
            message = f"label {label!r} is not letters and digits, with spaces, `_` or `-` inside"
            note("prompt_level", message, *path, "label")
        if label.casefold() in [earlier.casefold() for earlier, _, _ in levels[:index]]:
            note("prompt_level", f"label {label!r} is given twice", *path, "label")
        if not description.strip():
            note("prompt_level", f"level {label!r} has no description", *path, "description")
        if "{{" in description:
            note("prompt_placeholder", "a description cannot hold a placeholder", *path, "description")


def _check_sentences(front: FrontMatter, note: _Report) -> None:
    if not {"sentences", "candidates"} & set(front.inputs):
        note("prompt_input", 'answer = "sentences" needs the input `sentences`', "inputs")
    levels: list[tuple[str, str, ValuePath]] = [
        (level.label, level.description, ("sentence_level", index)) for index, level in enumerate(front.sentence_level)
    ]
    _check_texts(levels, note)
    if len(levels) < 2:
        note("prompt_level", "at least two sentence levels are needed", "sentence_level", 0)
    rollup = front.rollup
    if rollup is None:
        note("prompt_rollup", 'answer = "sentences" needs a `[rollup]` from labels to a grade', "answer")
        return
    labels = [label for label, _, _ in levels]
    for key, label in (("label", rollup.label), ("ignored", rollup.ignored)):
        if label is not None and label not in labels:
            note("prompt_rollup", f"{label!r} is not a sentence label, expected one of {labels}", "rollup", key)
    if rollup.ignored == rollup.label:
        note("prompt_rollup", "the counted label cannot be the ignored one", "rollup", "ignored")
    if rollup.ignored is not None and front.unable is None:
        message = "with an ignored label an `[unable]` level must say what a response without other labels gets"
        note("prompt_rollup", message, "rollup", "ignored")
    shares = [share for share, _ in rollup.cuts]
    if not shares or shares[-1] != 0:
        note("prompt_rollup", "the last cut must be at share 0.0, so that every share has a grade", "rollup", "cuts")
    # In this form, a share of nan fails too.
    falling = all(high > low for high, low in pairwise(shares))
    if not (falling and all(0 <= share <= 1 for share in shares)):
        note("prompt_rollup", f"shares {shares} must lie within 0 and 1 and fall", "rollup", "cuts")
    grades = {level.grade for level in front.level}
    if unknown := [grade for _, grade in rollup.cuts if grade not in grades]:
        note("prompt_rollup", f"{unknown} are not grades of the scale {sorted(grades)}", "rollup", "cuts")
    worth = [grade if front.polarity == "higher" else -grade for _, grade in rollup.cuts]
    if worth != sorted(worth, reverse=True):
        message = (
            f"grades {[grade for _, grade in rollup.cuts]} get better as the share falls; {front.polarity} is better"
        )
        note("prompt_rollup", message, "rollup", "cuts")
