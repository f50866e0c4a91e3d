"""People's edits of a bank: a change of text or importance, a deletion, an addition; kept apart from the bank. Pure.

An edit names the text that it was made of by its digest. If the bank has another text now, the edit is refused, because
nobody knows whether it still holds.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from judge.errors import InputError
from judge.extra.nuggets.forms.problems import BankProblems, scope_problem
from judge.extra.nuggets.records import Importance, Nugget
from judge.io.cells import count
from judge.io.ids import topic_of
from judge.io.line_stream import decode_lines, jsonl_bytes
from judge.io.safe import digest, has_content, shown, storable
from judge.io.stored import MAX_PROBLEMS
from judge.records import Problem, Record

EditAction = Literal["change", "delete", "add"]


class NuggetEdit(Record, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a person did to a nugget; docs/reference/files.toml explains the fields."""

    nugget_id: str
    action: EditAction
    edited_by: str
    nugget_sha256: str | None = None
    """SHA-256 of the text that the bank had; None of an addition."""
    text: str | None = None
    importance: Importance | None = None
    turn_id: str | None = None
    topic_id: str | None = None


def parse_edits(content: bytes, name: str) -> tuple[NuggetEdit, ...]:
    """The edits in the bytes of a file called `name` in messages, in its order; a file may hold none.

    Raises:
        InputError: Lines have problems; every problem is listed.
    """
    edits: list[NuggetEdit] = []
    problems = BankProblems(name)
    lines: dict[str, int] = {}
    for number, line in problems.sound(decode_lines(content, NuggetEdit, name, "bad_edit")):
        before = len(problems)
        for path, message in _problems(line):
            problems.add("bad_edit", f"line {number}: {path}", message)
        first = lines.setdefault(line.nugget_id, number)
        if first != number:
            message = f"line {first} edits {shown(line.nugget_id)} already: expected one edit of a nugget"
            problems.add("bad_edit", f"line {number}: $.nugget_id", message)
        if len(problems) == before:
            edits.append(line)
    if problems:
        raise InputError(f"{name}: not usable as edits: {count(len(problems), 'problem')}", problems)
    return tuple(edits)


def _problems(edit: NuggetEdit) -> Iterable[tuple[str, str]]:
    """What is wrong with an edit, whatever the bank: paths and messages."""
    if not has_content(edit.edited_by) or not storable(edit.edited_by):
        yield "$.edited_by", f"expected who made the edit, found {shown(edit.edited_by)}"
    if edit.text is not None and not (has_content(edit.text) and storable(edit.text)):
        yield "$.text", f"expected the text of a nugget, found {shown(edit.text)}"
    scope = edit.turn_id is not None or edit.topic_id is not None
    if edit.action == "add":
        if edit.text is None:
            yield "$.text", "an addition needs a text"
        if edit.nugget_sha256 is not None:
            yield "$.nugget_sha256", "an addition is of no earlier text"
        if (found := scope_problem(edit.turn_id, edit.topic_id)) is not None:
            yield f"$.{found[0]}".rstrip("."), found[1]
        if BankProblems("").nugget_id("", edit.nugget_id) is False:
            yield "$.nugget_id", f"{shown(edit.nugget_id)}: expected an id without spaces"
        return
    if edit.nugget_sha256 is None:
        yield "$.nugget_sha256", "expected the digest of the text that was edited"
    if scope:
        yield "$", "only an addition says its turn or topic"
    if edit.action == "change" and edit.text is None and edit.importance is None:
        yield "$", "a change needs `text` or `importance`"
    if edit.action == "delete" and (edit.text is not None or edit.importance is not None):
        yield "$", "a deletion has neither `text` nor `importance`"


def edited(nuggets: Sequence[Nugget], edits: Sequence[NuggetEdit], name: str) -> tuple[Nugget, ...]:
    """The nuggets with the edits applied: additions come after the other nuggets of their turn or topic.

    Raises:
        InputError: An edit is of a nugget that is not in the bank, or has changed since, or adds one that is there;
            every one is listed.
    """
    by_id = {nugget.nugget_id: nugget for nugget in nuggets}
    problems: list[Problem] = []
    for edit in edits:
        nugget = by_id.get(edit.nugget_id)
        message = None
        if edit.action == "add":
            message = None if nugget is None else "the bank has a nugget of this id already"
        elif nugget is None:
            message = "the bank has no such nugget"
        elif edit.nugget_sha256 != digest(nugget.text):
            message = "the text of the nugget has changed since it was edited: look at it again"
        if message is not None and len(problems) < MAX_PROBLEMS:
            problems.append(Problem("bad_edit", "error", name, None, f"nugget {shown(edit.nugget_id)}", message))
    if problems:
        raise InputError(f"{name}: not edits of this bank: {count(len(problems), 'edit')} with problems", problems)
    changes = {edit.nugget_id: edit for edit in edits if edit.action != "add"}
    scopes: dict[str, list[Nugget]] = {}
    for nugget in nuggets:
        change = changes.get(nugget.nugget_id)
        kept = scopes.setdefault(nugget.scope, [])
        if change is None or change.action == "change":
            kept.append(nugget if change is None else _changed(nugget, change))
    for edit in edits:
        if edit.action == "add":
            added = _added(edit)
            scopes.setdefault(added.scope, []).append(added)
    return tuple(nugget for kept in scopes.values() for nugget in kept)


def _changed(nugget: Nugget, edit: NuggetEdit) -> Nugget:
    return msgspec.structs.replace(
        nugget,
        text=nugget.text if edit.text is None else edit.text.strip(),
        importance=edit.importance or nugget.importance,
        edited_by=edit.edited_by,
    )


def _added(edit: NuggetEdit) -> Nugget:
    return Nugget(
        nugget_id=edit.nugget_id,
        topic_id=edit.topic_id or topic_of(edit.turn_id or ""),
        text=(edit.text or "").strip(),
        turn_id=edit.turn_id,
        importance=edit.importance,
        made_by=edit.edited_by,
        edited_by=edit.edited_by,
    )


def edits_jsonl(edits: Iterable[NuggetEdit]) -> bytes:
    """The bytes of a file of edits; fields that say nothing are left out."""
    return jsonl_bytes(edits)
