"""The front matter of a prompt file: TOML → its fields, or every fault with its line. Pure."""

import functools
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from judge.ask.prompt import BLOCKS

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LABEL = re.compile(r"-?[A-Za-z0-9](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?")
_NUMBER = re.compile(r"-?[0-9]+")
_TABLE = re.compile(r"\[(\[?)\s*([A-Za-z0-9_]+)\s*\]")
_KEY = re.compile(r"([A-Za-z0-9_-]+)\s*=")
_TOML_LINE = re.compile(r" ?\(at line ([0-9]+), column [0-9]+\)")
# Strict, so that `positive = ["2"]` is a fault rather than a guess; an unknown key is a typing mistake.
_STRICT = {"extra": "forbid", "strict": True}

Where = tuple[str | int, ...]
"""Keys and list places from the root to a value."""


class Fault(NamedTuple):
    """What is wrong, and on which line of the file."""

    line: int
    code: str
    message: str


class _Report(Protocol):
    def __call__(self, code: str, message: str, *where: str | int) -> None:
        """Note a fault of the value at `where`."""


@dataclass(frozen=True)
class LevelFields:
    """`[[level]]` or `[unable]`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    grade: int
    description: str
    label: str | None = None


@dataclass(frozen=True)
class SentenceFields:
    """`[[sentence_level]]`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    label: str
    description: str


@dataclass(frozen=True)
class RollupFields:
    """`[rollup]`."""

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
    answer: Literal["grade", "sentences"]
    level: list[LevelFields]
    unable: LevelFields | None = None
    sentence_level: list[SentenceFields] = field(default_factory=list)
    rollup: RollupFields | None = None


class KeyLines:
    """Where each key of the front matter stands in the file."""

    def __init__(self, front: Sequence[str]) -> None:
        self._at: dict[Where, int] = {}
        table: Where = ()
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

    def of(self, *where: str | int) -> int:
        """The line of a key, or of the nearest table around it, or of the opening fence."""
        return next((self._at[where[:n]] for n in range(len(where), 0, -1) if where[:n] in self._at), 1)


@functools.cache
def _adapter() -> "TypeAdapter[FrontMatter]":
    """What checks the fields; making it takes longer than checking a hundred files."""
    from pydantic import TypeAdapter

    return TypeAdapter(FrontMatter)


def read_front_matter(front: Sequence[str], faults: list[Fault]) -> FrontMatter | None:
    """The front matter, if its keys and types are right; otherwise its faults are added.

    Args:
        front: The lines between the fences; the first is line 2 of the file.
        faults: Takes what is wrong.
    """
    from pydantic import ValidationError

    try:
        data = tomllib.loads("\n".join(front))
    except (ValueError, RecursionError) as error:
        place = _TOML_LINE.search(str(error))
        message = _TOML_LINE.sub("", str(error))
        # TOML counts its lines from after the opening fence.
        faults.append(Fault(int(place[1]) + 1 if place else 1, "prompt_syntax", f"not TOML: {message}"))
        return None
    try:
        return _adapter().validate_json(json.dumps(data, default=str))
    except ValidationError as invalid:
        lines = KeyLines(front)
        for each in invalid.errors():
            where = each["loc"]
            key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
            match each["type"]:
                case "missing":
                    message = f"`{key}` is missing"
                case "unexpected_keyword_argument":
                    message = f"`{key}` is not a key of a prompt file"
                case _:
                    message = f"`{key}`: {each['msg'][:1].lower()}{each['msg'][1:]}, found {each['input']!r:.80}"
            faults.append(Fault(lines.of(*where), "prompt_field", message))
        return None


def label_of(fields: LevelFields) -> str:
    """The word a judge writes for a level: the grade itself if none is given."""
    return str(fields.grade) if fields.label is None else fields.label


def check_front_matter(front: FrontMatter, lines: KeyLines, faults: list[Fault]) -> None:
    """Add what the types alone do not forbid to `faults`."""

    def fault(code: str, message: str, *where: str | int) -> None:
        faults.append(Fault(lines.of(*where), code, message))

    if not _NAME.fullmatch(front.criterion):
        fault("prompt_name", f"criterion {front.criterion!r} is not lower-case letters, digits and `_`", "criterion")
    if front.version < 1:
        fault("prompt_field", f"version is {front.version}, expected 1 or more", "version")
    for place, name in enumerate(front.inputs):
        if name not in BLOCKS:
            fault("prompt_input", f"unknown input {name!r}, expected some of {', '.join(BLOCKS)}", "inputs")
        elif name in front.inputs[:place]:
            fault("prompt_input", f"input {name!r} is named twice", "inputs")
    if not {"response", "sentences"} & set(front.inputs):
        fault("prompt_input", "neither `response` nor `sentences` is an input, so nothing is judged", "inputs")
    _check_scale(front, fault)
    if front.answer == "sentences":
        _check_sentences(front, fault)
    else:
        for key in ("sentence_level", "rollup"):
            if getattr(front, key):
                fault("prompt_rollup", f'`{key}` is only for answer = "sentences"', key)


def _check_scale(front: FrontMatter, fault: _Report) -> None:
    listed: list[tuple[LevelFields, Where]] = [(each, ("level", at)) for at, each in enumerate(front.level)]
    if front.unable:
        listed.append((front.unable, ("unable",)))
    for place, (each, where) in enumerate(listed):
        if _NUMBER.fullmatch(label_of(each)) and label_of(each) != str(each.grade):
            message = f"label {label_of(each)!r} is a number other than its grade {each.grade}"
            fault("prompt_level", message, *where, "label")
        if each.grade in [other.grade for other, _ in listed[:place]]:
            fault("prompt_level", f"grade {each.grade} is given twice", *where, "grade")
    _check_texts([(label_of(each), each.description, where) for each, where in listed], fault)
    grades, positive = {each.grade for each in front.level}, set(front.positive)
    if len(grades) < 2:
        fault("prompt_level", "a scale needs at least two levels", "level", 0)
    if len(positive) < len(front.positive):
        fault("prompt_positive", "a grade is named twice", "positive")
    if unknown := sorted(positive - grades):
        fault("prompt_positive", f"{unknown} are not grades of the scale {sorted(grades)}", "positive")
        return
    rest = grades - positive
    if not positive or not rest:
        fault("prompt_positive", "expected some of the grades, not none and not all", "positive")
    elif not (min(positive) > max(rest) if front.polarity == "higher" else max(positive) < min(rest)):
        message = f"{sorted(positive)} are not the best grades when {front.polarity} is better"
        fault("prompt_positive", message, "positive")


def _check_texts(listed: Sequence[tuple[str, str, Where]], fault: _Report) -> None:
    """Labels that can be read back and told apart, descriptions that say something."""
    for place, (label, description, where) in enumerate(listed):
        if not _LABEL.fullmatch(label):
            message = f"label {label!r} is not letters and digits, with spaces, `_` or `-` inside"
            fault("prompt_level", message, *where, "label")
        if label.casefold() in [other.casefold() for other, _, _ in listed[:place]]:
            fault("prompt_level", f"label {label!r} is given twice", *where, "label")
        if not description.strip():
            fault("prompt_level", f"level {label!r} has no description", *where, "description")
        if "{{" in description:
            fault("prompt_placeholder", "a description cannot hold a placeholder", *where, "description")


def _check_sentences(front: FrontMatter, fault: _Report) -> None:
    if "sentences" not in front.inputs:
        fault("prompt_input", 'answer = "sentences" needs the input `sentences`', "inputs")
    listed: list[tuple[str, str, Where]] = [
        (each.label, each.description, ("sentence_level", at)) for at, each in enumerate(front.sentence_level)
    ]
    _check_texts(listed, fault)
    if len(listed) < 2:
        fault("prompt_level", "at least two sentence levels are needed", "sentence_level", 0)
    rollup = front.rollup
    if rollup is None:
        fault("prompt_rollup", 'answer = "sentences" needs a `[rollup]` from labels to a grade', "answer")
        return
    labels = [label for label, _, _ in listed]
    for key, label in (("label", rollup.label), ("ignored", rollup.ignored)):
        if label is not None and label not in labels:
            fault("prompt_rollup", f"{label!r} is not a sentence label, expected one of {labels}", "rollup", key)
    if rollup.ignored == rollup.label:
        fault("prompt_rollup", "the counted label cannot be the ignored one", "rollup", "ignored")
    if rollup.ignored is not None and front.unable is None:
        message = "with an ignored label an `[unable]` level must say what a response without other labels gets"
        fault("prompt_rollup", message, "rollup", "ignored")
    shares = [share for share, _ in rollup.cuts]
    if not shares or shares[-1] != 0:
        fault("prompt_rollup", "the last cut must be at share 0.0, so that every share has a grade", "rollup", "cuts")
    # Written so that a share that is not a number fails as well.
    falling = all(high > low for high, low in pairwise(shares))
    if not (falling and all(0 <= share <= 1 for share in shares)):
        fault("prompt_rollup", f"shares {shares} must lie within 0 and 1 and fall", "rollup", "cuts")
    grades = {each.grade for each in front.level}
    if unknown := [grade for _, grade in rollup.cuts if grade not in grades]:
        fault("prompt_rollup", f"{unknown} are not grades of the scale {sorted(grades)}", "rollup", "cuts")
    worth = [grade if front.polarity == "higher" else -grade for _, grade in rollup.cuts]
    if worth != sorted(worth, reverse=True):
        message = (
            f"grades {[grade for _, grade in rollup.cuts]} get better as the share falls; {front.polarity} is better"
        )
        fault("prompt_rollup", message, "rollup", "cuts")
