"""What forms of banks share: the list of problems, the checks of an id and of a text. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from judge.io.files import MAX_PROBLEMS
from judge.io.ids import topic_of
from judge.io.text import MAX_ID, has_content, shown, storable
from judge.records import Problem
from judge.runs.fields import usable_turn_id

_Line = TypeVar("_Line")


class BankProblems(list[Problem]):
    """The problems of one bank, in the order of reading; at most MAX_PROBLEMS and one that says so."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.unreferenced = 0
        """Answers that are left out, because no document bears them out."""
        self._places: dict[object, tuple[str, str]] = {}

    @property
    def full(self) -> bool:
        """Whether reading stops."""
        return len(self) > MAX_PROBLEMS

    def add(self, code: str, path: str, message: str) -> None:
        """Add a problem at a line or a JSON path."""
        if len(self) == MAX_PROBLEMS:
            code, message = "too_many_problems", f"{MAX_PROBLEMS:,} problems up to here; the rest was not read"
        if not self.full:
            self.append(Problem(code, "error", self.file, None, path, message))

    def sound(self, lines: Iterable[tuple[int, _Line | Problem]]) -> Iterator[tuple[int, _Line]]:
        """The lines that could be decoded, with their numbers; the problems of the others are added."""
        for number, line in lines:
            if self.full:
                return
            if isinstance(line, Problem):
                self.append(line)
            else:
                yield number, line

    def nugget_id(self, path: str, nugget_id: str) -> bool:
        """Whether an id is new and can be a column; a problem if not."""
        if not (0 < len(nugget_id) <= MAX_ID and nugget_id.isprintable() and not any(map(str.isspace, nugget_id))):
            self.add("bad_id", path, f"{shown(nugget_id)}: expected an id of 1 to {MAX_ID} characters without spaces")
            return False
        if first := self.earlier(nugget_id, path):
            self.add("duplicate_nugget", path, f"{shown(nugget_id)} is already at {first}")
        return first is None

    def earlier(self, key: object, place: str) -> str | None:
        """Where the same key stood before, in this file or another one of the bank; None for a new key."""
        file, first = self._places.setdefault(key, (self.file, place))
        if (file, first) == (self.file, place):
            return None
        return first if file == self.file else f"{file}: {first}"

    def decoded(self, path: str, raw: msgspec.Raw, row: type[_Line]) -> _Line | None:
        """A part of a line; None, and a problem at its own path, if it cannot be decoded."""
        try:
            return msgspec.json.decode(raw, type=row)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, below = str(error).partition(" - at `$")
            self.add("bad_nugget", f"{path}{below.rstrip('`')}", message)
        return None

    def text(self, path: str, value: Any) -> str | None:
        """The text of a nugget without outer white space; None, and a problem, if it cannot be shown."""
        if not isinstance(value, str):
            self.add("wrong_type", path, f"expected the text of a nugget, found {shown(value)}")
        elif not has_content(value):
            self.add("empty_text", path, f"expected the text of a nugget, found {shown(value)}")
        elif not storable(value):
            self.add("unusable_text", path, f"NUL or a lone surrogate in {shown(value)}")
        else:
            return value.strip()
        return None

    def check_scope(self, path: str, joint: str, turn_id: str | None, topic_id: str | None) -> None:
        """Add a problem if these cannot be the turn or the topic of a nugget."""
        if (found := scope_problem(turn_id, topic_id)) is not None:
            field, message = found
            self.add("bad_id" if field else "missing_field", f"{path}{joint}{field}" if field else path, message)

    def scope(self, path: str, value: Any) -> tuple[str, str | None] | None:
        """The topic, and the turn if the id is that of a turn; None, and a problem, if it is neither."""
        if isinstance(value, str) and usable_turn_id(value):
            return topic_of(value), value
        if isinstance(value, str) and usable_topic_id(value):
            return value, None
        self.add("bad_id", path, f"expected the id of a turn such as 9-1_3, or of a topic, found {shown(value)}")
        return None


def scope_problem(turn_id: str | None, topic_id: str | None) -> tuple[str, str] | None:
    """Why these cannot be the turn or the topic of a nugget: the field, empty if both lack, and a message."""
    if turn_id is not None and not usable_turn_id(turn_id):
        return "turn_id", f"expected a turn id such as 9-1_3, found {shown(turn_id)}"
    if topic_id is not None and not usable_topic_id(topic_id):
        return "topic_id", f"expected a topic id such as 9-1, found {shown(topic_id)}"
    if turn_id is not None and topic_id is not None and topic_of(turn_id) != topic_id:
        return "topic_id", f"{shown(topic_id)} is not the topic of {shown(turn_id)}"
    return None if turn_id or topic_id else ("", "needs `turn_id`, or `topic_id` for a nugget of the whole topic")


def usable_topic_id(text: str) -> bool:
    """Whether an id can be that of a topic: a column without `_`, which begins the number of a turn.

    >>> [usable_topic_id(text) for text in ("9-1", "132", "9-1_3", "9 1", "")]
    [True, True, False, False, False]
    """
    return usable_turn_id(f"{text}_1") and "_" not in text


def first_object(content: bytes) -> dict[str, Any]:
    """The JSON object on the first line; empty if there is none."""
    try:
        value = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
