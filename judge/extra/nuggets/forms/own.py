"""Our own form: a nugget a line, with `nugget_id`, `turn_id` or `topic_id`, and `text`. Pure."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from judge.extra.nuggets.forms.problems import BankProblems, scope_problem
from judge.extra.nuggets.records import Importance, Nugget
from judge.io.ids import topic_of
from judge.io.line_stream import decode_lines, jsonl_bytes


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a line as JSON may hold them."""

    nugget_id: str
    text: str
    turn_id: str | None = None
    topic_id: str | None = None
    importance: Importance | None = None
    relevance: int | None = None
    passages: list[str] = []
    responses: list[str] = []
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
        path = f"line {number}: $"
        turn_id, topic_id = line.turn_id, line.topic_id
        before = len(problems)
        if (found := scope_problem(turn_id, topic_id)) is not None:
            field, message = found
            problems.add("bad_id" if field else "missing_field", f"{path}.{field}" if field else path, message)
        problems.nugget_id(f"{path}.nugget_id", line.nugget_id)
        text = problems.text(f"{path}.text", line.text)
        if text is not None and len(problems) == before:
            nuggets.append(
                Nugget(
                    nugget_id=line.nugget_id,
                    topic_id=topic_id or topic_of(turn_id or ""),
                    text=text,
                    turn_id=turn_id,
                    importance=line.importance,
                    relevance=line.relevance,
                    passages=tuple(line.passages),
                    responses=tuple(line.responses),
                    made_by=line.made_by,
                    edited_by=line.edited_by,
                )
            )
    return nuggets


def write(nuggets: Sequence[Nugget]) -> bytes:
    """A line for each nugget; fields that say nothing are left out."""
    rows = (
        {
            **{"nugget_id": nugget.nugget_id, "turn_id": nugget.turn_id, "topic_id": nugget.topic_id},
            **{"text": nugget.text, "importance": nugget.importance, "relevance": nugget.relevance},
            **{"passages": nugget.passages or None, "responses": nugget.responses or None},
            **{"made_by": nugget.made_by, "edited_by": nugget.edited_by},
        }
        for nugget in nuggets
    )
    return jsonl_bytes({field: value for field, value in row.items() if value is not None} for row in rows)
