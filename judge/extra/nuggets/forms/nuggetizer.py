"""nuggetizer's form: a query a line, with its nuggets and their importance. Pure.

The `qid` is the id of a turn or of a topic. A nugget has no id there: it gets `qid/place`.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Sequence

import msgspec

from judge.errors import InputError
from judge.extra.nuggets.forms.own import first_object
from judge.extra.nuggets.forms.problems import BankProblems
from judge.extra.nuggets.records import Importance, Nugget
from judge.io.line_stream import decode_lines, jsonl_bytes
from judge.io.safe import shown


class _Listed(msgspec.Struct, frozen=True):
    """One nugget of a query; what an assignment adds is not read."""

    text: str
    importance: Importance | None = None


class _Query(msgspec.Struct, frozen=True):
    """One line."""

    qid: str
    nuggets: list[_Listed]


def looks(content: bytes) -> bool:
    """Whether the first line is an object with a list of nuggets."""
    return isinstance(first_object(content).get("nuggets"), list)


def read(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The nuggets of a file."""
    nuggets: list[Nugget] = []
    lines: dict[str, int] = {}
    for number, line in problems.sound(decode_lines(content, _Query, name, "bad_nugget")):
        path = f"line {number}: $"
        scope = problems.scope(f"{path}.qid", line.qid)
        first = lines.setdefault(line.qid, number)
        if first != number:
            problems.add("duplicate_row", f"{path}.qid", f"{shown(line.qid)} is already on line {first}")
            continue
        for place, listed in enumerate(line.nuggets):
            text = problems.text(f"{path}.nuggets[{place}].text", listed.text)
            if scope is not None and text is not None:
                topic_id, turn_id = scope
                nugget_id = f"{line.qid}/{place + 1}"
                nuggets.append(Nugget(nugget_id, topic_id, text, turn_id, listed.importance))
    return nuggets


def write(nuggets: Sequence[Nugget]) -> bytes:
    """A line for each turn or topic, in the order of its first nugget; ids, sources and people are left out."""
    without = [nugget.nugget_id for nugget in nuggets if nugget.importance is None]
    if without:
        raise InputError(
            f"nuggetizer needs an importance: {', '.join(map(shown, without[:5]))}"
            f"{f' and {len(without) - 5} more' if len(without) > 5 else ''} have none (--vital-from gives it)"
        )
    queries: dict[str, list[Nugget]] = {}
    for nugget in nuggets:
        queries.setdefault(nugget.scope, []).append(nugget)
    return jsonl_bytes(
        {"query": qid, "qid": qid, "nuggets": [{"text": each.text, "importance": each.importance} for each in listed]}
        for qid, listed in queries.items()
    )
