"""The columns of a table of answers, found by their usual names, also inside of objects."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from judge.io.rows import RowTable, object_in
from judge.io.text import count, shown
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.formats.messages import ASSISTANT, answer_in, described, exchange_in, messages_in, question_in

Role = Literal["question", "answer", "contexts", "reference", "id", "system", "topic", "turn"]
"""What a column is for."""
ROLES: tuple[Role, ...] = get_args(Role)
USUAL: Mapping[Role, tuple[str, ...]] = {
    "question": ("question", "query", "user_input", "input", "inputs", "prompt", "request"),
    "answer": ("answer", "response", "output", "outputs", "actual_output", "generated_answer"),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieval_context", "documents", "passages"),
    "reference": (
        "reference",
        "ground_truth",
        "expected_output",
        "expected_answer",
        "expected_response",
        "golden_answer",
    ),
    "id": ("id", "question_id", "query_id", "qid"),
    "system": ("system", "model", "run", "run_id"),
    "topic": ("topic", "topic_id", "conversation", "conversation_id"),
    "turn": ("turn", "turn_number"),
}
"""The names by which a column is found, in small letters with `_` between words."""
TEXT_OF = ("text", "content", "page_content", "contents", "document.content")
"""Members of an object that holds a passage."""

_SIGNS = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INSIDE: tuple[Role, ...] = ("question", "answer", "contexts", "reference")
"""Roles that are found inside of objects; an id or a model there may be that of anything."""
_SAID: tuple[Role, ...] = ("question", "answer")
_WRAPPERS = frozenset({"value", "text", "content", "messages"})
"""Names that say nothing of a role, so that `output.value` is `output`."""
_EXPECTED = frozenset({*USUAL["reference"], "reference_output", "reference_outputs", "expected", "expectations"})
"""Objects whose answers are references."""
_ASIDE = frozenset({"metadata", "meta", "additional_metadata", "extra", "config", "feedback", "scores"})
"""Objects whose members are about a row."""
_CONVERSATIONS = frozenset({"messages", "conversation", "conversations", "turns", "dialogue", "user_input"})
"""Columns that may hold a question and its answer as messages."""
_LAST = frozenset({"inputs", "outputs", "expected_response"})
"""Usual names that count where no column has another."""
_EMPTY: tuple[Any, ...] = (None, "", [])
_LEVELS = 2
"""How deep objects are looked into."""
_MOST_MEMBERS = 100
"""Objects with more are no part of a row, but a table of their own."""


def plain_name(name: str) -> str:
    """A name in small letters with `_` between words.

    >>> plain_name("Actual output"), plain_name("actualOutput"), plain_name("RUN-ID")
    ('actual_output', 'actual_output', 'run_id')
    """
    return _SIGNS.sub("_", _HUMP.sub("_", name).lower()).strip("_")


def role_of(name: str) -> Role | None:
    """The role of a column by its usual name; of a member in an object by its last part.

    >>> role_of("Answer"), role_of("outputs.answer"), role_of("attributes.input.value"), role_of("reference.answer")
    ('answer', 'answer', 'question', 'reference')
    >>> role_of("metadata.answer"), role_of("outputs.id")
    (None, None)
    """
    whole = next((role for role in ROLES if plain_name(name) in USUAL[role]), None)
    if "." not in name or whole not in (None, "system"):
        return whole
    parts = [plain_name(part) for part in name.split(".")]
    while len(parts) > 1 and parts[-1] in _WRAPPERS:
        parts.pop()
    *outer, last = parts
    role = next((role for role in _INSIDE if last in USUAL[role]), None)
    if not _ASIDE.isdisjoint(outer):
        return None
    if role == "answer" and not _EXPECTED.isdisjoint(outer):
        return "reference"
    return role


def are_answers(names: Iterable[str], named: Mapping[str, str] | None) -> bool:
    """Whether some column is an answer, and some the question or its id.

    `named`: the columns that the user names, by role.
    """
    names = set(names)
    return has_role(names, "answer", named) and (has_role(names, "question", named) or has_role(names, "id", named))


def has_role(names: Collection[str], role: Role, named: Mapping[str, str] | None) -> bool:
    """Whether some column has a role; `named`: the columns that the user names, by role."""
    if named and role in named:
        return any(named[role] == name or named[role].startswith(f"{name}.") for name in names)
    return any(role_of(name) == role for name in names)


def with_members(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row, and the members of its objects."""
    cells = dict(row)
    for _ in range(_LEVELS):
        for name in [name for name, cell in cells.items() if isinstance(cell, dict)]:
            for member, cell in cells.pop(name).items():
                cells[f"{name}.{member}"] = cell
    return cells


def asks_and_answers(row: Mapping[str, Any], named: Mapping[str, str] | None) -> bool:
    """Whether a row has a text as answer, and a plain question or id; runs of tracks have a list of sentences."""
    cells = with_members(row)
    plain = {name for name, cell in cells.items() if isinstance(cell, str | int)}
    texts = {name for name in plain if isinstance(cells[name], str)}
    return are_answers(plain, named) and has_role(texts, "answer", named)


def rows_inside(row: Mapping[str, Any]) -> str | None:
    """The member of an object that has rows with questions and answers; None without one."""
    lists = {name: cell for name, cell in with_members(row).items() if isinstance(cell, list) and cell}
    for name, cell in lists.items():
        if isinstance(cell[0], dict) and asks_and_answers(cell[0], None):
            return name
    return None


def _rows_said(row: Mapping[str, Any]) -> str:
    name = rows_inside(row)
    return "" if name is None else f"; if {shown(name)} has the rows, write them themselves, in a list or one a line"


def holds_conversation(row: Mapping[str, Any]) -> bool:
    """Whether a row has a question and its answer as messages."""
    cells = with_members(row)
    return any(_may_converse(name) and messages_in(cell) is not None for name, cell in cells.items())


def _may_converse(name: str) -> bool:
    return plain_name(name.rpartition(".")[2]) in _CONVERSATIONS


class FoundColumns(NamedTuple):
    """A table, and its columns by their roles."""

    table: RowTable
    """With the members of objects as columns where one of them has a role."""
    of: dict[Role, str]


def columns_of(table: RowTable, named: Mapping[str, str], problems: list[Problem]) -> FoundColumns | None:
    """The column of each role; None, and a problem, where columns are absent or fit twice."""
    members = _members(table)
    found = f"found {', '.join(map(shown, _names(table, members)[:20]))}"
    table = _unfolded(table, members, named)
    columns: dict[Role, str] = {}
    wrong: list[str] = []
    for role in ROLES:
        if role in named:
            if named[role] in table.columns:
                columns[role] = named[role]
            else:
                wrong.append(f"no column {shown(named[role])} for {role}; {found}")
            continue
        fitting = _fitting(table, role, named.values(), members)
        if len(fitting) > 1:
            several = " and ".join(map(shown, fitting))
            wrong.append(f"{several} may each be the {role}; name one: --column {role}={fitting[0]}")
        elif fitting:
            columns[role] = fitting[0]
    if not wrong:
        _take_conversation(table, named, columns)
    inside = "" if len(table.rows) > 1 else _rows_said(table.rows[0].cells)
    if not wrong and "answer" not in columns:
        usual = ", ".join(USUAL["answer"])
        wrong.append(f"no column of answers ({usual}); {found}{inside}; name it: --column answer=COLUMN")
    if not wrong and not columns.keys() & {"question", "id"}:
        usual = ", ".join(USUAL["question"])
        wrong.append(f"no column of questions ({usual}); {found}{inside}; name it: --column question=COLUMN")
    if not wrong:
        wrong += _conversations(table, columns)
    for message in wrong:
        problems.append(problem("wrong_table", table.file, "the columns", message))
    return None if wrong else FoundColumns(table, columns)


def _members(table: RowTable) -> dict[str, list[str]]:
    """The columns of objects, and those in them, each with the names of its members as columns."""
    members: dict[str, list[str]] = {}
    cells_of = {name: [row.cells.get(name) for row in table.rows] for name in table.columns}
    for _ in range(_LEVELS):
        inner: dict[str, list[Any]] = {}
        for name, cells in cells_of.items():
            objects = _objects(cells)
            keys = dict.fromkeys(str(key) for value in objects for key in value)
            own = [f"{name}.{key}" for key in keys]
            if not own or len(own) > _MOST_MEMBERS or not {*table.columns}.isdisjoint(own):
                continue
            members[name] = own
            inner |= {f"{name}.{key}": [value.get(key) for value in objects] for key in keys}
        cells_of = inner
    return members


def _objects(cells: Sequence[Any]) -> list[dict[str, Any]]:
    """The objects in the cells of a column; none if another value stands beside them."""
    objects: list[dict[str, Any]] = []
    for cell in cells:
        if cell is None or cell == "":
            continue
        value = object_in(cell)
        if value is None:
            return []
        objects.append(value)
    return objects


def _names(table: RowTable, members: Mapping[str, list[str]]) -> list[str]:
    """The names of columns, of objects those of their members."""
    names = list(table.columns)
    for outer, own in members.items():
        place = names.index(outer)
        names[place : place + 1] = own
    return names


def _unfolded(table: RowTable, members: Mapping[str, list[str]], named: Mapping[str, str]) -> RowTable:
    """The table with the members of those objects as columns in which a role is found or named."""
    plain = [role for role in _INSIDE if _fitting(table, role, named.values(), members)]
    sought = [role for role in _INSIDE if role not in named and role not in plain]
    names = [name for own in members.values() for name in own]
    wanted = [name for name in names if name in named.values() or role_of(name) in sought]
    for outer in members:
        inner = f"{outer}."
        if outer not in named.values() and any(name.startswith(inner) for name in wanted):
            table = table.unfold(outer)
    return table


def _fitting(table: RowTable, role: Role, others: Collection[str], members: Mapping[str, list[str]]) -> list[str]:
    """The columns with a usual name of a role, of those in objects the outermost; empty ones only if all are.

    Columns of objects are none, but for passages with a text and for answers that are JSON themselves.
    """
    names = [name for name in table.columns if role_of(name) == role and name not in others]
    if role in _SAID:
        names = [name for name in names if not any(isinstance(row.cells.get(name), dict) for row in table.rows)]
    names = [name for name in names if name not in members or _is_whole(role, name, members)]
    names = [name for name in names if plain_name(name) not in _LAST] or names
    depth = min((name.count(".") for name in names), default=0)
    names = [name for name in names if name.count(".") == depth]
    if role == "question":
        # Chains give their input back with their output.
        names = [name for name in names if role_of(name.partition(".")[0]) != "answer"] or names
    if len(names) > 1:
        filled = [name for name in names if any(row.cells.get(name) not in _EMPTY for row in table.rows)]
        names = filled or names
    return names


def _is_whole(role: Role, name: str, members: Mapping[str, list[str]]) -> bool:
    """Whether a column of objects has a role itself, and not one of its members."""
    own = members[name]
    if role in ("contexts", "reference"):
        return any(f"{name}.{text}" in own for text in TEXT_OF)
    if role == "answer":
        names = [*own, *(inner for member in own for inner in members.get(member, ()))]
        return plain_name(name) != "outputs" and all(role_of(inner) != role for inner in names)
    return role not in _INSIDE


def _take_conversation(table: RowTable, named: Mapping[str, str], columns: dict[Role, str]) -> None:
    """Take question and answer from a column of messages where no column has the answers."""
    if "answer" in columns or "question" in named:
        return
    for name in table.columns:
        if _may_converse(name) and _holds_messages(table, name):
            columns["question"] = name
            columns["answer"] = name
            if columns.get("topic") == name:
                del columns["topic"]
            return


def _holds_messages(table: RowTable, name: str) -> bool:
    first = next((cell for row in table.rows if (cell := row.cells.get(name)) not in _EMPTY), None)
    return messages_in(first) is not None


def histories_of(table: RowTable, columns: Mapping[Role, str]) -> list[str]:
    """The columns without a role that have an assistant's messages, which no judge sees."""
    names: list[str] = []
    for name in table.columns:
        if name in columns.values():
            continue
        cells = (messages_in(row.cells.get(name)) or () for row in table.rows)
        if any(message.speaker == ASSISTANT for messages in cells for message in messages):
            names.append(name)
    return names


def question_and_answer(cells: Mapping[str, Any], columns: Mapping[Role, str]) -> tuple[Any, Any]:
    """The cells of question and answer of a row; of messages, their texts, or None where they are no single exchange.

    `cells`: those of the row.
    """
    question = cells.get(columns["question"]) if "question" in columns else None
    answer = cells.get(columns["answer"])
    if columns.get("question") == columns["answer"]:
        messages = messages_in(answer)
        return (question, answer) if messages is None else exchange_in(messages) or (None, None)
    asked = messages_in(question)
    answered = messages_in(answer)
    return (
        question if asked is None else question_in(asked),
        answer if answered is None else answer_in(answered),
    )


def _conversations(table: RowTable, columns: Mapping[Role, str]) -> list[str]:
    """What is wrong with messages that are more than a question and its answer: a message for each column."""
    first: dict[str, str] = {}
    """Column to its first messages and their place, in words."""
    rows: Counter[str] = Counter()
    for row in table.rows:
        read = question_and_answer(row.cells, columns)
        if None not in read:
            continue
        unread = {columns[role] for role, text in zip(_SAID, read, strict=True) if role in columns and text is None}
        for name in sorted(unread):
            messages = messages_in(row.cells.get(name))
            if messages is not None:
                rows[name] += 1
                first.setdefault(name, f"{described(messages)} at {row.place}")
    return [
        f"column {shown(name)}: {count(rows[name], 'row')} whose messages are not one question and one answer, such as "
        f"{messages}; "
        "write a row for each answer, with columns `conversation` and `turn` so that the judge sees what came before"
        for name, messages in first.items()
    ]
