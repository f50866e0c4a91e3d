"""The forms of nugget banks, told apart by content: a row of FORMS each, with what reads and writes it.

nuggetizer: a query a line; its `qid` is the id of a turn or of a topic, and a nugget gets the id `qid/place`. Rubrics
of TREC RAG 2026 have weighted criteria in place of the nuggets.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
M. Sharma et al. (2025), ResearchRubrics, arXiv:2511.07685.

argue: the questions of a topic with their answers, in RAGTIME and AutoJudge; an answer gets the id
`topic/question.answer`. Where answers have references, one without any is left out.
W. Walden et al. (2025), Auto-ARGUE, arXiv:2509.26184.

judge: our own, a nugget a line.

cone-rag: an object from turn to nuggets `[1]`, `[2]` with the grade of their passage.
Z. Abbasiantaeb et al. (2025), Conversational Gold, arXiv:2503.09902.

rubrics: the questions of iKAT 2025, a table with `id` and `rubrik`, where `1-1-r2` is a question of topic 1-1.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.extra import nuggets as records
from judge.io.files import StrPath, file_in, jsonl_bytes, read_content
from judge.io.ids import groups_of, topic_of
from judge.io.tabular import table_records
from judge.io.text import count, did_you_mean, shown
from judge.runs.fields import member, usable_turn_id

BANK = "nuggets.jsonl"
"""A bank in its folder."""
CREATED = "bank.json"
"""What a bank that a judge made was made of."""


class BankForm(NamedTuple):
    """One form of bank."""

    about: str
    looks: Callable[[bytes], bool]
    """Whether content, without outer white space, looks like this form."""
    read: Callable[[bytes, str, records.BankProblems], list[records.Nugget]]
    """From content and the file's name to nuggets; problems are added."""
    write: Callable[[Sequence[records.Nugget]], bytes] | None
    """None where banks are only read."""


def read_bank(path: StrPath, form: str | None = None) -> records.NuggetBank:
    """Read a bank of nuggets, gzipped or not: a file, or a folder with the bank.

    `form` is a key of FORMS, None to see it from the content.
    """
    problems = records.BankProblems(str(path))
    return _whole(
        [_parsed(read_content(file), str(file), form, problems) for file in bank_files(path)],
        problems,
        str(path),
    )


def bank_files(path: StrPath) -> tuple[Path, ...]:
    """The files of a bank: itself or, of a folder, its bank or all JSON files, since ARGUE has one for each topic."""
    folder = Path(path)
    made = not folder.is_dir() or any((folder / name).exists() for name in (BANK, CREATED))
    return (() if made else tuple(sorted(folder.glob("*.json*")))) or (file_in(path, BANK),)


def parse_bank(content: bytes, name: str, form: str | None = None) -> records.NuggetBank:
    """Read the nuggets in the bytes of a bank, not gzipped; `form` as for `read_bank`, `name` is for messages."""
    problems = records.BankProblems(name)
    return _whole([_parsed(content, name, form, problems)], problems, name)


def _parsed(content: bytes, name: str, form: str | None, problems: records.BankProblems) -> records.NuggetBank:
    """The nuggets of one file; its problems are added."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if form is None:
        form = next((key for key, row in FORMS.items() if row.looks(content.strip())), None)
        if form is None:
            expected = "; or ".join(row.about for row in FORMS.values())
            raise InputError(f"{name}: not a bank of nuggets: expected {expected}")
    problems.file = name
    before = len(problems)
    nuggets = _form(form).read(content, name, problems)
    if not nuggets and len(problems) == before:
        problems.add("empty_file", "", "expected one nugget or more")
    return records.NuggetBank(form, tuple(nuggets))


def _whole(banks: Sequence[records.NuggetBank], problems: records.BankProblems, name: str) -> records.NuggetBank:
    refuse(problems, f"{name}: not usable as a bank: {count(len(problems), 'problem')}")
    nuggets = chain.from_iterable(bank.nuggets for bank in banks)
    return records.NuggetBank(banks[0].form, tuple(nuggets), problems.unreferenced)


def bank_bytes(nuggets: Sequence[records.Nugget], form: str) -> bytes:
    """The bytes of a bank in a form."""
    write = _form(form).write
    if write is None:
        raise UsageError(f"{form}: only read, not written: expected {' or '.join(WRITTEN)}")
    if form != "judge":
        message = f"{form} has no place for weights and answers: {{}} have them"
        _refuse(nuggets, message, lambda nugget: nugget.weight is not None or nugget.question is not None)
    return write(nuggets)


def _refuse(nuggets: Sequence[records.Nugget], message: str, strange: Callable[[records.Nugget], bool]) -> None:
    """An InputError that names the first nuggets that a form cannot hold."""
    ids = [shown(nugget.nugget_id) for nugget in nuggets if strange(nugget)]
    if ids:
        raise InputError(message.format(f"{', '.join(ids[:5])}{f' and {len(ids) - 5} more' if len(ids) > 5 else ''}"))


def _form(name: str) -> BankForm:
    if name not in FORMS:
        raise UsageError(f"no form of bank called {name!r}{did_you_mean(name, FORMS)} (there are {', '.join(FORMS)})")
    return FORMS[name]


Weight = Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]


class _Line(records.Nugget, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A line of our own form, which need not name the topic of its turn."""

    topic_id: str | None = None  # type: ignore[assignment]
    weight: Weight | None = None


_ORDER = dict.fromkeys(("nugget_id", "turn_id", "topic_id", "text", *records.Nugget.__struct_fields__))
"""The fields of a line, as they are written."""


def _read_own(content: bytes, name: str, problems: records.BankProblems) -> list[records.Nugget]:
    nuggets: list[records.Nugget] = []
    rules: dict[tuple[str | None, str], tuple[records.AnswerRule | None, float | None]] = {}
    for number, line in problems.lines(content, _Line, "bad_nugget"):
        path = f"line {number}: $"
        before = len(problems)
        turn_id = line.turn_id
        topic_id = line.topic_id
        problems.check_scope(path, turn_id, topic_id)
        problems.nugget_id(f"{path}.nugget_id", line.nugget_id)
        text = problems.text(f"{path}.text", line.text)
        for field, said in (("question", line.question), ("aspect", line.aspect)):
            if said is not None:
                problems.text(f"{path}.{field}", said)
        if (line.question is None) != (line.aggregator is None):
            problems.add("missing_field", path, "expected both `question` and `aggregator`, or neither")
        rule = line.aggregator, line.weight
        if line.question is not None and rules.setdefault((turn_id or topic_id, line.question), rule) != rule:
            problems.add("bad_nugget", path, "expected the aggregator and the weight of the question's other answers")
        if text is not None and len(problems) == before:
            given = msgspec.structs.asdict(line) | {"topic_id": topic_id or topic_of(turn_id or ""), "text": text}
            nuggets.append(records.Nugget(**given))
    return nuggets


def _write_own(nuggets: Sequence[records.Nugget]) -> bytes:
    """A line for each nugget; fields that say nothing are left out."""
    rows: list[dict[str, Any]] = []
    for nugget in nuggets:
        values = [(field, getattr(nugget, field)) for field in _ORDER]
        rows.append({field: value for field, value in values if value not in (None, ())})
    return jsonl_bytes(rows)


class _Listed(msgspec.Struct, frozen=True):
    """One nugget or criterion of a query; what an assignment adds is not read."""

    text: Any = None
    criterion: Any = None
    importance: records.Importance | None = None
    weight: Weight | None = None
    mapped_sub_narrative: str | None = None
    axis: str | None = None


class _Query(msgspec.Struct, frozen=True):
    qid: str
    nuggets: list[msgspec.Raw] | None = None
    rubrics: list[msgspec.Raw] | None = None
    criteria: list[msgspec.Raw] | None = None
    run_id: str | None = None
    """The run whose answer the list is assigned to: a file of assignments has the list of a query again for each."""


_LISTS = ("nuggets", "rubrics", "criteria")


def _assigned_texts(line: _Query) -> list[str]:
    """The texts that a line of assignments lists, as they stand there, in any order."""
    entries = [msgspec.json.decode(raw) for raw in line.nuggets or line.criteria or ()]
    return sorted(str(entry.get("text")) if isinstance(entry, dict) else "" for entry in entries)


def _read_nuggetizers(content: bytes, name: str, problems: records.BankProblems) -> list[records.Nugget]:
    nuggets: list[records.Nugget] = []
    assigned: dict[str, list[str]] = {}
    for number, line in problems.lines(content, _Query, "bad_nugget"):
        path = f"line {number}: $"
        scope = problems.scope(f"{path}.qid", line.qid)
        listed_texts = _assigned_texts(line) if line.run_id is not None else None
        if first := problems.earlier(("qid", line.qid), f"line {number}"):
            message = None
            if listed_texts is None or line.qid not in assigned:
                message = f"{shown(line.qid)} is already on {first}"
            elif assigned[line.qid] != listed_texts:
                message = f"{shown(line.qid)} has other nuggets than on {first}"
            if message is not None:
                problems.add("duplicate_row", f"{path}.qid", message)
            continue
        if listed_texts is not None:
            assigned[line.qid] = listed_texts
        held = next((each for each in _LISTS if getattr(line, each) is not None), None)
        if held is None:
            problems.add("missing_field", path, f"expected {' or '.join(_LISTS)}")
        for place, raw in enumerate(getattr(line, held or "", ())):
            at = f"{path}.{held}[{place}]"
            listed = problems.decoded(at, raw, _Listed)
            if listed is None:
                continue
            field = "criterion" if held == "rubrics" else "text"
            text = problems.text(f"{at}.{field}", getattr(listed, field))
            of = "mapped_sub_narrative" if listed.mapped_sub_narrative else "axis"
            aspect = problems.text(f"{at}.{of}", told) if (told := getattr(listed, of)) else None
            if scope is not None and text is not None:
                topic_id, turn_id = scope
                found = records.Nugget(
                    nugget_id=f"{line.qid}/{place + 1}",
                    topic_id=topic_id,
                    text=text,
                    turn_id=turn_id,
                    importance=listed.importance,
                    weight=listed.weight,
                )
                nuggets.append(msgspec.structs.replace(found, aspect=aspect))
    return nuggets


def _write_nuggetizers(nuggets: Sequence[records.Nugget]) -> bytes:
    """A line for each turn or topic, in the order of its first nugget; ids, sources and people are left out."""
    message = "nuggetizer needs an importance: {} have none (--vital-from gives it)"
    _refuse(nuggets, message, lambda nugget: nugget.importance is None)
    lines: list[dict[str, Any]] = []
    for qid, group in groups_of((nugget.scope, nugget) for nugget in nuggets).items():
        members: list[dict[str, Any]] = []
        for nugget in group:
            entry = {"text": nugget.text, "importance": nugget.importance}
            if nugget.aspect:
                entry["mapped_sub_narrative"] = nugget.aspect
            members.append(entry)
        lines.append({"query": qid, "qid": qid, "nuggets": members})
    return jsonl_bytes(lines)


_Held = dict[str, msgspec.Raw] | list[msgspec.Raw] | None


class _Asked(msgspec.Struct, frozen=True):
    """A question, one of its answers, or a claim."""

    question: Any = None
    answer: Any = None
    claim: Any = None
    answers: _Held = None
    references: list[str | dict[str, Any]] | None = None
    aggregator_type: Any = None
    importance: Weight | str | None = None
    sub_nuggets: _Held = None


class _ArgueBank(msgspec.Struct, frozen=True):
    nugget_bank: _Held
    claim_bank: _Held = None
    query_id: str | None = None
    metadata: dict[str, Any] | None = None


def _read_argues(content: bytes, name: str, problems: records.BankProblems) -> list[records.Nugget]:
    nuggets: list[records.Nugget] = []
    # One object may be written over several lines; no string holds a line break.
    content = content if records.first_object(content) else content.replace(b"\n", b" ")
    for number, line in problems.lines(content, _ArgueBank, "bad_nugget"):
        path = f"line {number}: $"
        before = len(problems)
        key = "query_id"
        value = line.query_id
        if value is None:
            key = "metadata.topic_id"
            value = (line.metadata or {}).get("topic_id")
        scope = problems.scope(f"{path}.{key}", value)
        if first := problems.earlier(("topic", value), f"line {number}"):
            problems.add("duplicate_row", f"{path}.{key}", f"{shown(value)} is already on {first}")
        asked = [*_held(f"{path}.nugget_bank", line.nugget_bank), *_held(f"{path}.claim_bank", line.claim_bank)]
        made: list[records.Nugget] = []
        for place, (at, raw) in enumerate(asked, 1):
            made.extend(_asked(at, raw, place, problems))
        if scope is not None and len(problems) == before:
            referenced = [nugget for nugget in made if nugget.passages] or made
            problems.unreferenced += len(made) - len(referenced)
            topic_id, turn_id = scope
            for nugget in referenced:
                nugget_id = f"{value}/{nugget.nugget_id}"
                nuggets.append(msgspec.structs.replace(nugget, nugget_id=nugget_id, topic_id=topic_id, turn_id=turn_id))
    return nuggets


def _held(path: str, held: _Held) -> list[tuple[str, msgspec.Raw]]:
    """What an object or a list holds, with the path of each."""
    if isinstance(held, dict):
        return [(member(path, key), raw) for key, raw in held.items()]
    return [(f"{path}[{place}]", raw) for place, raw in enumerate(held or ())]


def _asked(path: str, raw: msgspec.Raw, place: int, problems: records.BankProblems) -> Iterator[records.Nugget]:
    """The answers of a question or, without any, the question or claim itself; ids are their places, without topic."""
    asked = problems.decoded(path, raw, _Asked)
    if asked is None:
        return
    field = "question" if asked.claim is None else "claim"
    text = problems.text(f"{path}.{field}", getattr(asked, field)) or ""
    weight = None if isinstance(asked.importance, str) else asked.importance
    importance = next((each for each in get_args(records.Importance) if each == str(asked.importance).lower()), None)
    if isinstance(asked.importance, str) and importance is None:
        expected = f"expected vital, okay or a number, found {shown(asked.importance)}"
        problems.add("bad_nugget", f"{path}.importance", expected)
    if (first := problems.earlier((problems.file, path.partition(":")[0], text), path)) and text:
        problems.add("duplicate_nugget", path, f"{shown(text)} is already at {first}")
    if asked.aggregator_type not in (None, "AND", "OR", "Default"):
        expected = f"expected AND or OR, found {shown(asked.aggregator_type)}"
        problems.add("bad_nugget", f"{path}.aggregator_type", expected)
    if asked.sub_nuggets:
        problems.add("bad_nugget", f"{path}.sub_nuggets", "nuggets inside a nugget are not read: list them beside it")
    documents = _documents(path, asked, problems)
    found = records.Nugget(str(place), "", text, importance=importance, weight=weight, passages=documents)
    for number, (at, one) in enumerate(_held(f"{path}.answers", asked.answers), 1):
        if (answer := problems.decoded(at, one, _Asked)) is not None:
            yield msgspec.structs.replace(
                found,
                nugget_id=f"{place}.{number}",
                text=f"{text} {problems.text(f'{at}.answer', answer.answer)}",
                question=text,
                aggregator="AND" if asked.aggregator_type == "AND" else "OR",
                passages=_documents(at, answer, problems),
            )
    if not asked.answers:
        yield found


def _documents(path: str, asked: _Asked, problems: records.BankProblems) -> tuple[str, ...]:
    """The ids of the documents that bear out an answer or a claim."""
    ids = [each if isinstance(each, str) else each.get("doc_id") for each in asked.references or ()]
    for place, each in enumerate(ids):
        if not isinstance(each, str):
            message = f"expected the id of a document, or an object with `doc_id`, found {shown(each)}"
            problems.add("bad_nugget", f"{path}.references[{place}]", message)
    return tuple(map(str, ids))


_NUMBER = re.compile(r"\[([1-9][0-9]{0,8})\]")
_GRADE = re.compile(r"-?[0-9]{1,3}")


def _is_cone_rags(content: bytes) -> bool:
    """Whether it is an object over several lines, or one whose values are objects."""
    if not content.startswith(b"{"):
        return False
    return all(isinstance(value, dict) for value in records.first_object(content).values())


def _read_cone_rags(content: bytes, name: str, problems: records.BankProblems) -> list[records.Nugget]:
    """The nuggets of a file; the number of a nugget and its turn make its id."""
    try:
        # An object as a tuple of pairs, because a key may stand in it twice.
        document = json.loads(content.decode("utf-8"), object_pairs_hook=tuple)
    except UnicodeDecodeError as error:
        problems.add("wrong_encoding", "", f"byte {error.start + 1} is not UTF-8: {error.reason}")
        return []
    except json.JSONDecodeError as error:
        problems.add("not_json", f"line {error.lineno}", f"not JSON: {error.msg}")
        return []
    except (ValueError, RecursionError) as error:
        problems.add("not_json", "", f"not JSON: {str(error)[:200]}")
        return []
    nuggets: list[records.Nugget] = []
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
            if not isinstance(entry, tuple):
                continue
            text = problems.text(f"{at}.text", fields.get("text"))
            grade = fields.get("relevance")
            if grade is not None and not _GRADE.fullmatch(str(grade)):
                problems.add("wrong_type", f"{at}.relevance", f"expected the grade of a passage, found {shown(grade)}")
            elif text is not None:
                relevance = None if grade is None else int(grade)
                nugget_id = f"{turn_id}/{numbered[1]}"
                topic_id = topic_of(turn_id)
                nuggets.append(records.Nugget(nugget_id, topic_id, text, turn_id, relevance=relevance))
    return nuggets


def _members(value: Any, path: str, problems: records.BankProblems) -> list[tuple[str, Any]]:
    """The members of an object; none, and a problem, if it is no object. A repeated key is a problem too."""
    if not isinstance(value, tuple):
        found = f"a list with {len(value)} entries" if isinstance(value, list) else shown(value)
        problems.add("wrong_type", path, f"expected an object, found {found}")
        return []
    first: dict[str, Any] = {}
    for key, entry in value:
        if key in first:
            problems.add("repeated_key", member(path, key), "the key stands twice in its object")
        first.setdefault(key, entry)
    return list(first.items())


def _write_cone_rags(nuggets: Sequence[records.Nugget]) -> bytes:
    """The object, with the nuggets of each turn numbered from 1; what CONE-RAG has no place for is left out."""
    _refuse(nuggets, "CONE-RAG's form is of turns: {} are of whole topics", lambda nugget: nugget.turn_id is None)
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


def _read_rubrics(content: bytes, name: str, problems: records.BankProblems) -> list[records.Nugget]:
    """The questions of a file; each is a nugget of its topic, without importance."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.add("wrong_encoding", f"line {line}", f"not UTF-8: {error.reason}")
        return []
    nuggets: list[records.Nugget] = []
    for place, (line, row) in enumerate(table_records(text, ",")):
        if isinstance(row, str):
            problems.add("not_a_table", f"line {line}", row)
        elif not place and [cell.lower() for cell in row] != _HEADER:
            problems.add("missing_column", f"line {line}", f"expected the header {','.join(_HEADER)}")
            break
        elif len(row) != len(_HEADER):
            problems.add("wrong_columns", f"line {line}", f"{len(row)} cells: expected an id and a question")
        elif place and not ((named := _ID.fullmatch(row[0])) and records.usable_topic_id(named[1])):
            message = f"expected the id of a rubric such as 1-1-r2, found {shown(row[0])}"
            problems.add("bad_id", f"line {line}: id", message)
        elif place and named:
            usable = problems.nugget_id(f"line {line}: id", row[0])
            asked = problems.text(f"line {line}: rubrik", row[1])
            if usable and asked is not None:
                nuggets.append(records.Nugget(row[0], named[1], asked))
    return nuggets


FORMS: dict[str, BankForm] = {
    "nuggetizer": BankForm("nuggetizer's JSON Lines with `qid` and `nuggets`, or rubrics with `qid` and `rubrics`",
        lambda content: any(isinstance(records.first_object(content).get(name), list) for name in _LISTS),
        _read_nuggetizers, _write_nuggetizers),
    "judge": BankForm("JSON Lines with `nugget_id` and `text`",
        lambda content: not records.first_object(content).keys().isdisjoint(("nugget_id", "text")),
        _read_own, _write_own),
    "argue": BankForm("banks of RAGTIME and AutoJudge with `nugget_bank`",
        lambda content: b'"nugget_bank"' in content, _read_argues, None),
    "cone-rag": BankForm("CONE-RAG's JSON object from turn to nuggets `[1]`, `[2]`",
        _is_cone_rags, _read_cone_rags, _write_cone_rags),
    "rubrics": BankForm("a table of rubric questions with `id` and `rubrik`",
        lambda content: content.partition(b"\n")[0].replace(b'"', b"").strip().lower() == ",".join(_HEADER).encode(),
        _read_rubrics, None),
}  # fmt: skip
"""Name to form, in the order in which content is looked at."""
WRITTEN = tuple(name for name, form in FORMS.items() if form.write is not None)
"""The forms that banks are written in."""
