"""The forms of nugget banks, told apart by content: a row of FORMS each, with what reads and writes it.

nuggetizer: a query a line; its `qid` is the id of a turn or of a topic, and a nugget gets the id `qid/place`.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.

judge: our own, a nugget a line.

cone-rag: an object from turn to nuggets `[1]`, `[2]` with the grade of their passage.
Z. Abbasiantaeb et al. (2025), Conversational Gold, arXiv:2503.09902.

rubrics: the questions of iKAT 2025, a table with `id` and `rubrik`, where `1-1-r2` is a question of topic 1-1.

A folder of `judge nuggets create` is read as its bank with the edits that lie beside it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError, UsageError
from judge.extra.nuggets.edits import NuggetEdit, edited, parse_edits
from judge.extra.nuggets.problems import BankProblems, first_object, usable_topic_id
from judge.extra.nuggets.records import Importance, Nugget, NuggetBank
from judge.io.cells import count
from judge.io.ids import topic_of
from judge.io.line_stream import decode_lines, jsonl_bytes
from judge.io.paths import StrPath, file_in
from judge.io.safe import did_you_mean, shown
from judge.io.stored import read_stored, unpack
from judge.runs.fields import member, usable_turn_id

BANK, EDITS = "nuggets.jsonl", "edits.jsonl"
"""A bank in its folder, and people's edits of it."""


class BankForm(NamedTuple):
    """One form of bank."""

    about: str
    looks: Callable[[bytes], bool]
    """Whether content, without outer white space, looks like this form."""
    read: Callable[[bytes, str, BankProblems], list[Nugget]]
    """From content and the file's name to nuggets; problems are added."""
    write: Callable[[Sequence[Nugget]], bytes] | None
    """None where banks are only read."""


def read_bank(path: StrPath, form: str | None = None, edits: StrPath | None = None) -> NuggetBank:
    """Read a bank of nuggets, gzipped or not, with people's edits applied: a file, or a folder with bank and edits.

    `form` is a key of FORMS, None to see it from the content; `edits` are in place of those in the folder.
    """
    bank, made = read_made_bank(path, form), edits_file(path) if edits is None else Path(edits)
    if made is None:
        return bank
    return msgspec.structs.replace(bank, nuggets=edited(bank.nuggets, read_edits(made), str(made)))


def read_made_bank(path: StrPath, form: str | None = None) -> NuggetBank:
    """Read a bank as it was made, without people's edits; the arguments are those of `read_bank`."""
    file = file_in(path, BANK)
    return parse_bank(unpack(read_stored(file), str(file)), str(file), form)


def read_edits(path: StrPath) -> tuple[NuggetEdit, ...]:
    """Read a file of edits, gzipped or not."""
    return parse_edits(unpack(read_stored(Path(path)), str(path)), str(path))


def edits_file(path: StrPath) -> Path | None:
    """The edits beside the bank in a folder; None for a file, and for a folder without edits."""
    edits = Path(path) / EDITS
    return edits if Path(path).is_dir() and edits.exists() else None


def parse_bank(content: bytes, name: str, form: str | None = None) -> NuggetBank:
    """Read the nuggets in the bytes of a bank, not gzipped; `form` as for `read_bank`, `name` is for messages."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if form is None:
        form = next((key for key, row in FORMS.items() if row.looks(content.strip())), None)
        if form is None:
            expected = "; or ".join(row.about for row in FORMS.values())
            raise InputError(f"{name}: not a bank of nuggets: expected {expected}")
    problems = BankProblems(name)
    nuggets = _form(form).read(content, name, problems)
    if not nuggets and not problems:
        problems.add("empty_file", "", "expected one nugget or more")
    if problems:
        raise InputError(f"{name}: not usable as a bank: {count(len(problems), 'problem')}", problems)
    return NuggetBank(form, tuple(nuggets))


def bank_bytes(nuggets: Sequence[Nugget], form: str) -> bytes:
    """The bytes of a bank in a form."""
    write = _form(form).write
    if write is None:
        raise UsageError(f"{form}: only read, not written: expected {' or '.join(WRITTEN)}")
    return write(nuggets)


def _form(name: str) -> BankForm:
    if name not in FORMS:
        raise UsageError(f"no form of bank called {name!r}{did_you_mean(name, FORMS)} (there are {', '.join(FORMS)})")
    return FORMS[name]


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


def _read_own(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
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


def _write_own(nuggets: Sequence[Nugget]) -> bytes:
    """A line for each nugget; fields that say nothing are left out."""
    rows = ({field: getattr(nugget, field) for field in _Line.__struct_fields__} for nugget in nuggets)
    return jsonl_bytes({field: value for field, value in row.items() if value not in (None, ())} for row in rows)


class _Listed(msgspec.Struct, frozen=True):
    """One nugget of a query; what an assignment adds is not read."""

    text: str
    importance: Importance | None = None


class _Query(msgspec.Struct, frozen=True):
    qid: str
    nuggets: list[_Listed]


def _read_nuggetizers(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
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


def _write_nuggetizers(nuggets: Sequence[Nugget]) -> bytes:
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


_NUMBER = re.compile(r"\[([1-9][0-9]{0,8})\]")
_GRADE = re.compile(r"-?[0-9]{1,3}")


class _Repeated(list[tuple[str, Any]]):
    """An object as pairs, because a key may stand in it twice."""


def _is_cone_rags(content: bytes) -> bool:
    """Whether it is an object over several lines, or one whose values are objects."""
    if not content.startswith(b"{"):
        return False
    first = first_object(content)
    return all(isinstance(value, dict) for value in first.values())


def _read_cone_rags(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The nuggets of a file; the number of a nugget and its turn make its id."""
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_Repeated)
    except UnicodeDecodeError as error:
        problems.add("wrong_encoding", "", f"byte {error.start + 1} is not UTF-8: {error.reason}")
        return []
    except json.JSONDecodeError as error:
        problems.add("not_json", f"line {error.lineno}", f"not JSON: {error.msg}")
        return []
    except (ValueError, RecursionError) as error:
        problems.add("not_json", "", f"not JSON: {str(error)[:200]}")
        return []
    nuggets: list[Nugget] = []
    for turn_id, listed in _members(document, "$", problems):
        path = member("$", turn_id)
        if not usable_turn_id(turn_id):
            problems.add("bad_id", path, "expected a turn id such as 0_2")
            continue
        for number, entry in _members(listed, path, problems):
            at = member(path, number)
            numbered = _NUMBER.fullmatch(number)
            if numbered is None:
                problems.add("bad_id", at, "expected the number of a nugget, such as [1]")
                continue
            fields = dict(_members(entry, at, problems))
            if not isinstance(entry, _Repeated):
                continue
            text = problems.text(f"{at}.text", fields.get("text"))
            grade = fields.get("relevance")
            if grade is not None and not _GRADE.fullmatch(str(grade)):
                problems.add("wrong_type", f"{at}.relevance", f"expected the grade of a passage, found {shown(grade)}")
            elif text is not None:
                relevance = None if grade is None else int(grade)
                nugget_id, topic_id = f"{turn_id}/{numbered[1]}", topic_of(turn_id)
                nuggets.append(Nugget(nugget_id, topic_id, text, turn_id, relevance=relevance))
    return nuggets


def _members(value: Any, path: str, problems: BankProblems) -> list[tuple[str, Any]]:
    """The members of an object; none, and a problem, if it is no object. A repeated key is a problem too."""
    if not isinstance(value, _Repeated):
        found = f"a list with {len(value)} entries" if isinstance(value, list) else shown(value)
        problems.add("wrong_type", path, f"expected an object, found {found}")
        return []
    first: dict[str, Any] = {}
    for key, entry in value:
        if key in first:
            problems.add("repeated_key", member(path, key), "the key stands twice in its object")
        first.setdefault(key, entry)
    return list(first.items())


def _write_cone_rags(nuggets: Sequence[Nugget]) -> bytes:
    """The object, with the nuggets of each turn numbered from 1; what CONE-RAG has no place for is left out."""
    without = [nugget.nugget_id for nugget in nuggets if nugget.turn_id is None]
    if without:
        raise InputError(
            f"CONE-RAG's form is of turns: {', '.join(map(shown, without[:5]))}"
            f"{f' and {len(without) - 5} more' if len(without) > 5 else ''} are of whole topics"
        )
    turns: dict[str, dict[str, dict[str, str]]] = {}
    for nugget in nuggets:
        listed = turns.setdefault(nugget.scope, {})
        listed[f"[{len(listed) + 1}]"] = {
            "text": nugget.text,
            **({} if nugget.relevance is None else {"relevance": str(nugget.relevance)}),
        }
    return json.dumps(turns, indent=4, ensure_ascii=False).encode() + b"\n"


_ID = re.compile(r"(\S+)-r[0-9]{1,6}")
_HEADER = ["id", "rubrik"]


def _read_rubrics(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The questions of a file; each is a nugget of its topic, without importance."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.add("wrong_encoding", f"line {line}", f"not UTF-8: {error.reason}")
        return []
    nuggets: list[Nugget] = []
    for line, row in _rubric_rows(text, problems):
        if len(row) != len(_HEADER):
            problems.add("wrong_columns", f"line {line}", f"{len(row)} cells: expected an id and a question")
            continue
        nugget_id, question = (cell.strip() for cell in row)
        path, named = f"line {line}: id", _ID.fullmatch(nugget_id)
        if named is None or not usable_topic_id(named[1]):
            problems.add("bad_id", path, f"expected the id of a rubric such as 1-1-r2, found {shown(nugget_id)}")
            continue
        usable = problems.nugget_id(path, nugget_id)
        asked = problems.text(f"line {line}: rubrik", question)
        if usable and asked is not None:
            nuggets.append(Nugget(nugget_id, named[1], asked))
    return nuggets


def _rubric_rows(text: str, problems: BankProblems) -> Iterator[tuple[int, list[str]]]:
    """The first line of each row below the header, and its cells."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = True
    while not problems.full:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add("not_a_table", f"line {line}", f"cannot be read as a table from here on: {error}")
            return
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            yield line, row
        elif [cell.strip().lower() for cell in row] != _HEADER:
            problems.add("missing_column", f"line {line}", f"expected the header {','.join(_HEADER)}")
            return
        header = False


FORMS: dict[str, BankForm] = {
    "nuggetizer": BankForm(
        "nuggetizer's JSON Lines with `qid` and `nuggets`",
        lambda content: isinstance(first_object(content).get("nuggets"), list),
        _read_nuggetizers,
        _write_nuggetizers,
    ),
    "judge": BankForm(
        "JSON Lines with `nugget_id` and `text`",
        lambda content: not first_object(content).keys().isdisjoint(("nugget_id", "text")),
        _read_own,
        _write_own,
    ),
    "cone-rag": BankForm(
        "CONE-RAG's JSON object from turn to nuggets `[1]`, `[2]`", _is_cone_rags, _read_cone_rags, _write_cone_rags
    ),
    "rubrics": BankForm(
        "a table of rubric questions with `id` and `rubrik`",
        lambda content: content.partition(b"\n")[0].replace(b'"', b"").strip().lower() == ",".join(_HEADER).encode(),
        _read_rubrics,
        None,
    ),
}
"""Name to form, in the order in which content is looked at."""
WRITTEN = tuple(name for name, form in FORMS.items() if form.write is not None)
"""The forms that banks are written in."""
