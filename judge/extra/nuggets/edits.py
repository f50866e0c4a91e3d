"""People's edits of a bank, and the sheet that they are made in; kept apart from the bank. Pure.

An edit names the text that it was made of by its digest. If the bank has another text now, the edit is refused, because
nobody knows whether it still holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast, get_args

import msgspec

from judge.errors import refuse
from judge.extra.nuggets import BankProblems, Importance, Nugget, scope_problem
from judge.gold.sheets import readable
from judge.gold.sheets.kinds import table_bytes
from judge.io.files import MAX_PROBLEMS
from judge.io.ids import topic_of
from judge.io.tabular import TableRow
from judge.io.text import count, digest, disarmed, has_content, shown, storable
from judge.records import Problem, Record, file_problem

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
    """The edits in the bytes of a file called `name` in messages, in its order; a file may hold none."""
    edits: list[NuggetEdit] = []
    problems = BankProblems(name)
    for number, line in problems.lines(content, NuggetEdit, "bad_edit"):
        before = len(problems)
        for path, message in _problems(line):
            problems.add("bad_edit", f"line {number}: {path}", message)
        if first := problems.earlier(line.nugget_id, f"line {number}"):
            message = f"{first} edits {shown(line.nugget_id)} already: expected one edit of a nugget"
            problems.add("bad_edit", f"line {number}: $.nugget_id", message)
        if len(problems) == before:
            edits.append(line)
    refuse(problems, f"{name}: not usable as edits: {count(len(problems), 'problem')}")
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
    """The nuggets with the edits applied: additions come after the other nuggets of their turn or topic."""
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
            problems.append(file_problem("bad_edit", name, message, f"nugget {shown(edit.nugget_id)}"))
    refuse(problems, f"{name}: not edits of this bank: {count(len(problems), 'edit')} with problems")
    changes = {edit.nugget_id: edit for edit in edits if edit.action != "add"}
    scopes: dict[str, list[Nugget]] = {}
    for nugget in nuggets:
        change, kept = changes.get(nugget.nugget_id), scopes.setdefault(nugget.scope, [])
        if change is None:
            kept.append(nugget)
        elif change.action == "change":
            text = nugget.text if change.text is None else change.text.strip()
            new = {"text": text, "importance": change.importance or nugget.importance, "edited_by": change.edited_by}
            kept.append(msgspec.structs.replace(nugget, **new))
    for edit in edits:
        if edit.action == "add":
            topic_id, text = edit.topic_id or topic_of(edit.turn_id or ""), (edit.text or "").strip()
            added = Nugget(edit.nugget_id, topic_id, text, edit.turn_id, edit.importance, made_by=edit.edited_by)
            scopes.setdefault(added.scope, []).append(msgspec.structs.replace(added, edited_by=edit.edited_by))
    return tuple(nugget for kept in scopes.values() for nugget in kept)


COLUMNS = (
    *("nugget_id", "turn_id", "topic_id", "importance", "text", "delete", "said", "passages", "responses"),
    *("made_by", "edited_by", "shown_sha256"),
)
NEEDED = ("nugget_id", "turn_id", "topic_id", "importance", "text", "delete", "shown_sha256")
"""The columns that are read back."""
_DELETED = {"": False, "no": False, "0": False, "false": False, "x": True, "yes": True, "1": True, "true": True}


def bank_sheet(made: Sequence[Nugget], edits: Sequence[NuggetEdit], said: Mapping[str, str], name: str) -> bytes:
    """The rows of a bank with its edits: deleted nuggets have a mark, and additions stand at the end.

    `said` has a turn and what the user said there.
    """
    now = {nugget.nugget_id: nugget for nugget in edited(made, edits, name)}
    added = [now[edit.nugget_id] for edit in edits if edit.action == "add"]
    return table_bytes(
        COLUMNS,
        (
            (
                *(nugget.nugget_id, nugget.turn_id or "", nugget.topic_id, nugget.importance or ""),
                *(readable(nugget.text), "" if nugget.nugget_id in now else "x"),
                readable(said.get(nugget.turn_id or "", "")),
                *(" ".join(nugget.passages), " ".join(nugget.responses), nugget.made_by or "", nugget.edited_by or ""),
                _Wish(nugget.text, nugget.importance, nugget.nugget_id not in now).shown(nugget.nugget_id),
            )
            for nugget in (*(now.get(each.nugget_id, each) for each in made), *added)
        ),
    )


class _Wish(NamedTuple):
    """What a row says of a nugget."""

    text: str
    importance: Importance | None
    deleted: bool

    def shown(self, nugget_id: str) -> str:
        """SHA-256 of all of it, by which a row tells what it showed before people changed it."""
        return digest("\n".join((nugget_id, self.text, self.importance or "", "x" if self.deleted else "")))


def sheet_edits(
    rows: Sequence[TableRow], made: Sequence[Nugget], earlier: Sequence[NuggetEdit], edited_by: str, name: str
) -> tuple[NuggetEdit, ...]:
    """The edits that turn a bank into what a sheet says of it.

    A nugget that the sheet does not list, or lists as it showed it, stays as it is, with the edit that it has. A
    changed row of a nugget that somebody has edited since the sheet was made is refused.
    """
    problems = BankProblems(name)
    by_id = {nugget.nugget_id: nugget for nugget in made}
    edits = {edit.nugget_id: edit for edit in earlier}
    now = {nugget.nugget_id: nugget for nugget in edited(made, earlier, name)}
    ids = {disarmed(nugget_id): nugget_id for nugget_id in (*by_id, *now)}
    for row in rows:
        if problems.full:
            break
        given, added = row.cells["nugget_id"], None
        if not given and (added := _addition(row, edited_by, problems)) is None:
            continue
        nugget_id = ids.get(given) if added is None else added.nugget_id
        if nugget_id is None:
            message = f"the bank has no nugget {shown(given)}; leave the id of a new one empty"
            problems.add("bad_edit", f"{row.place}: nugget_id", message)
            continue
        if first := problems.earlier(nugget_id, f"{row.unit} {row.line}"):
            what = f"{shown(nugget_id)} is already" if added is None else "this new nugget is already"
            problems.add("bad_edit", f"{row.place}: nugget_id", f"{what} on {first}")
        elif added is not None and nugget_id not in edits:
            edits[nugget_id] = added
        else:
            nugget = now.get(nugget_id) or by_id[nugget_id]
            current = _Wish(nugget.text, nugget.importance, nugget_id not in now)
            wish = _wish(row, nugget_id, current, problems)
            if wish != current:
                edit = _edit(by_id.get(nugget_id), edits.pop(nugget_id, None), wish, edited_by)
                edits |= {} if edit is None else {nugget_id: edit}
    refuse(problems, f"{name}: not usable as a sheet of nuggets: {count(len(problems), 'problem')}")
    order = {nugget_id: place for place, nugget_id in enumerate(by_id)}
    return tuple(sorted(edits.values(), key=lambda edit: order.get(edit.nugget_id, len(order))))


def _wish(row: TableRow, nugget_id: str, current: _Wish, problems: BankProblems) -> _Wish:
    """What a row says of a nugget; the state of the nugget if it says nothing new, or cannot be read."""
    before = len(problems)
    deleted = _DELETED.get(row.cells["delete"].casefold())
    if deleted is None:
        problems.add("bad_edit", f"{row.place}: delete", f"expected x or nothing, found {shown(row.cells['delete'])}")
    importance = _importance(row, problems)
    if importance is None and current.importance is not None:
        problems.add("bad_edit", f"{row.place}: importance", "expected vital or okay, found nothing")
    text: str | None = current.text
    if row.cells["text"] != disarmed(readable(current.text)).strip():
        text = problems.text(f"{row.place}: text", _armed(row.cells["text"]))
    if len(problems) > before or text is None:
        return current
    wish = _Wish(text, importance, bool(deleted))
    if wish.shown(nugget_id) == row.cells["shown_sha256"]:
        return current
    if wish != current and row.cells["shown_sha256"] != current.shown(nugget_id):
        message = "the nugget has changed since the sheet was made: make the sheet anew"
        problems.add("bad_edit", f"{row.place}: shown_sha256", message)
        return current
    return wish


def _importance(row: TableRow, problems: BankProblems) -> Importance | None:
    said = row.cells["importance"].casefold()
    if said in get_args(Importance):
        return cast("Importance", said)
    if said:
        problems.add("bad_edit", f"{row.place}: importance", f"expected vital or okay, found {shown(said)}")
    return None


def _armed(cell: str) -> str:
    """The text of a cell, without the sign that keeps a spreadsheet from running it."""
    return cell[1:] if cell.startswith("\\") and disarmed(cell[1:]) == cell else cell


def _edit(base: Nugget | None, before: NuggetEdit | None, wish: _Wish, edited_by: str) -> NuggetEdit | None:
    """The edit of a nugget that was made, or that `before` added; None if it is to be as it was made."""
    if base is None:
        gone = before is None or wish.deleted
        new = {"edited_by": edited_by, "text": wish.text, "importance": wish.importance}
        return None if gone else msgspec.structs.replace(before, **new)  # type: ignore[type-var]
    if wish.deleted:
        return NuggetEdit(base.nugget_id, "delete", edited_by, digest(base.text))
    text = None if wish.text == base.text else wish.text
    importance = None if wish.importance == base.importance else wish.importance
    if text is None and importance is None:
        return None
    return NuggetEdit(base.nugget_id, "change", edited_by, digest(base.text), text, importance)


def _addition(row: TableRow, edited_by: str, problems: BankProblems) -> NuggetEdit | None:
    """The nugget that a row without an id adds; None, and a problem, if it cannot be one."""
    before = len(problems)
    turn_id, topic_id = row.cells["turn_id"] or None, row.cells["topic_id"] or None
    problems.check_scope(row.place, ": ", turn_id, topic_id)
    text = problems.text(f"{row.place}: text", _armed(row.cells["text"]))
    importance = _importance(row, problems)
    if text is None or len(problems) > before:
        return None
    # By its text, so that the same row, read again, is the same nugget.
    nugget_id = f"{turn_id or topic_id}/{digest(text)[:8]}"
    return NuggetEdit(nugget_id, "add", edited_by, None, text, importance, turn_id, topic_id)
