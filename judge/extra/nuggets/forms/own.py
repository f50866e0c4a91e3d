"""Our own form: a nugget a line, with `nugget_id`, `turn_id` or `topic_id`, and `text`. Pure."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from judge.extra.nuggets.forms.problems import BankProblems
from judge.extra.nuggets.records import Importance, Nugget
from judge.io.ids import topic_of
from judge.io.line_stream import decode_lines, jsonl_bytes


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of a line, in the order of writing."""

    nugget_id: str
    turn_id: str | None = None
    topic_id: str | None = None
    text: str
    importance: Importance | None = None
    relevance: int | None = None
    passages: tuple[str, ...] = ()
    responses: tuple[str, ...] = ()
    made_by: str | None = None
    edited_by: str | None = None


def looks(content: bytes) -> bool:
    """Whether the first line is an object with an id and a text."""
    return {"nugget_id", "text"} & first_object(content).keys() != set()


def first_object(content: bytes) -> dict[str, Any]:
    """The JSON object on the first line; empty if there is none."""
    try:
        value = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The nuggets of a file."""
    nuggets: list[Nugget] = []
    for number, line in problems.sound(decode_lines(content, _Line, name, "bad_nugget")):
        path, before = f"line {number}: $", len(problems)
        turn_id, topic_id = line.turn_id, line.topic_id
        problems.check_scope(path, ".", turn_id, topic_id)
        problems.nugget_id(f"{path}.nugget_id", line.nugget_id)
        text = problems.text(f"{path}.text", line.text)
        if text is not None and len(problems) == before:
            given = msgspec.structs.asdict(line) | {"topic_id": topic_id or topic_of(turn_id or ""), "text": text}
            nuggets.append(Nugget(**given))
    return nuggets


def write(nuggets: Sequence[Nugget]) -> bytes:
    """A line for each nugget; fields that say nothing are left out."""
    rows = ({field: getattr(nugget, field) for field in _Line.__struct_fields__} for nugget in nuggets)
    return jsonl_bytes({field: value for field, value in row.items() if value not in (None, ())} for row in rows)
