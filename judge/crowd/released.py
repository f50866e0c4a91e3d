"""Labels by people as they were released: CAsT-ReGIn, and CONE-RAG's study of nuggets in responses.

CAsT-ReGIn has two parts of one build, responses and clarifying questions: judgments, banks, pools and qrels.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from judge.errors import InputError, refuse
from judge.io.files import MAX_PROBLEMS, line_problem, numbered_lines, read_stored, stopped
from judge.io.ids import column, groups_of
from judge.io.tabular import collected
from judge.io.text import MAX_ID, count, shown, storable
from judge.records import Problem, Record, file_problem
from judge.runs.document import decode, file_name

GRADES = range(4)
RELEVANT = 2
"""The least grade that counts as relevant in the published evaluation."""

Name = Literal["response", "question"]


class ResourceKind(Record, frozen=True):
    """The names and forms of one part of the resource; paths are in the part's folder."""

    name: Name
    folder: str
    list_field: str
    id_field: str
    text_field: str
    labels: tuple[str, ...]
    judgments: str
    bank: str
    pool: str
    all_turns: Mapping[str, str]
    """Criterion to the name of the qrels of all turns."""
    escaped: bool
    """Whether the bank writes characters beyond ASCII as escapes."""
    criterion_of_subsets: str | None
    filtered: str
    """Name of the qrels without the turns that have nothing relevant."""
    mi_subset: str
    """Name of the qrels of the turns that call for initiative."""

    @property
    def qrels(self) -> tuple[str, ...]:
        """Names of all qrels of the part."""
        subsets = (self.filtered, self.mi_subset) if self.criterion_of_subsets else ()
        return (*self.all_turns.values(), *subsets)


def _kind(name: Name, folder: str, labels: tuple[str, ...]) -> ResourceKind:
    word, questions = name.title(), name == "question"
    every = {label.lower(): f"{name}_{label.lower()}" for label in labels}
    every |= {"relevance": "question_relevance_all"} if questions else {}
    fields = f"{word}s", f"{word} ID", f"{word} Text"
    files = f"qrels/{name}_judgments.json", f"{name}_bank.json", f"{name}_pool_depth_1.pool"
    subsets = "relevance" if questions else None, f"{name}_relevance_filtered", f"{name}_relevance_mi_subset"
    return ResourceKind(name, folder, *fields, labels, *files, every, questions, *subsets)


KINDS = {
    "response": _kind("response", "response_evaluation", ("Relevance", "Naturalness", "Conciseness")),
    "question": _kind("question", "clarifying_question_evaluation", ("Relevance", "Novelty", "Diversity")),
}


def qrels_path(name: str) -> str:
    """Path of a qrels file in the part's folder."""
    return f"qrels/{name}.qrel"


class ReginRow(Record, frozen=True):
    """One judged item of a turn."""

    turn_id: str
    item_id: str
    text: str
    """As the judgments have it, which may differ from the bank's."""
    grades: Mapping[str, int]
    """Criterion to grade."""
    order: tuple[str, ...]
    """The record's label fields in the file's order."""


class Part:
    """One part of the resource as far as it could be read."""

    def __init__(self, kind: ResourceKind, folder: Path, unreadable: list[Problem]) -> None:
        """Read it; a file that cannot be read is among `unreadable`, and then the part is to be refused."""
        self.kind, self.folder = kind, folder
        self.released: dict[str, bytes] = {}
        """Path in the part's folder to content, of every file that is there."""
        self.problems: list[Problem] = []
        """Damage to the judgments or the bank; nothing may be made of a part that has any."""
        values: dict[str, Any] = {kind.judgments: {}, kind.bank: {}}
        for path in (kind.judgments, kind.bank, kind.pool, *map(qrels_path, kind.qrels)):
            if not (folder / path).exists():
                continue
            with collected(unreadable, "unreadable_file", self.file(path)):
                self.released[path] = read_stored(folder / path)
            if path.endswith(".json") and path in self.released:
                values[path], problem = decode(self.released[path], self.file(path))
                if problem:
                    unreadable.append(problem)
                else:
                    self.problems += repeated_keys(self.released[path], self.file(path))
        self.rows = tuple(_rows(kind, values[kind.judgments], self.file(kind.judgments), self.problems))
        """In the order of the judgments, which is that of the qrels."""
        self.bank = _bank(values[kind.bank], self.file(kind.bank), self.problems)

    def file(self, path: str) -> str:
        """A file of the part as a message names it."""
        return file_name(self.folder / path)

    @cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Turn and item of every row."""
        return tuple((row.turn_id, row.item_id) for row in self.rows)

    @cached_property
    def turns_of(self) -> Mapping[str, Sequence[str]]:
        """Item to the turns that it was judged in."""
        return groups_of((item_id, turn_id) for turn_id, item_id in self.keys)

    def graded(self, criterion: str) -> list[tuple[str, str, int]]:
        """Turn, item and grade of every row."""
        return [(row.turn_id, row.item_id, row.grades[criterion]) for row in self.rows]


def read_resource(folder: Path) -> tuple[Part, ...]:
    """The parts of the resource at a folder or at most two levels below it, responses first.

    An InputError if there is no part, one of them twice, or a file that cannot be read or is not JSON.
    """
    try:
        inside = [*folder.iterdir(), *folder.glob("*/*")]
    except OSError as error:
        raise InputError(f"{folder}: cannot be read as a folder: {error.strerror}") from error
    near = [folder, *sorted(path for path in inside if path.is_dir())]
    problems: list[Problem] = []
    parts: list[Part] = []
    for kind in KINDS.values():
        folders = [path for path in near if (path / kind.judgments).is_file()]
        if len(folders) > 1:
            raise InputError(f"{folder}: {kind.folder} is here more than once: {', '.join(map(file_name, folders))}")
        parts += [Part(kind, path, problems) for path in folders]
    refuse(problems, f"{folder}: unreadable files of CAsT-ReGIn")
    if not parts:
        wanted = " or ".join(f"{kind.folder}/{kind.judgments}" for kind in KINDS.values())
        raise InputError(f"{folder}: no CAsT-ReGIn here: expected {wanted}")
    return tuple(parts)


def repeated_keys(content: bytes, file: str) -> list[Problem]:
    """An object that has a key twice; a plain decoder keeps the last value in silence."""
    repeated: Counter[str] = Counter()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) < len(items):
            repeated.update(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        return value

    try:
        json.loads(content, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        return [file_problem("not_json", file, f"not usable as JSON: {error}", "$")]
    return [
        file_problem("repeated_key", file, f"the key {shown(key)} stands twice in an object", "$") for key in repeated
    ]


def _rows(kind: ResourceKind, value: Any, file: str, problems: list[Problem]) -> Iterable[ReginRow]:
    """The sound records; whatever is wrong with the others goes to the problems."""
    seen: set[tuple[str, str]] = set()

    def bad(code: str, path: str, message: str) -> None:
        problems.append(file_problem(code, file, message, path))

    if not isinstance(value, dict):
        bad("wrong_type", "$", f"expected an object of turns, found {shown(value)}")
        return
    if not value:
        bad("no_judgments", "$", "there is no turn")
    for turn_id, turn in value.items():
        place = f"$[{shown(turn_id)}]"
        items = turn.get(kind.list_field) if isinstance(turn, dict) else None
        if not usable_id(turn_id):
            bad("unusable_id", place, "the turn id cannot be a column of qrels")
        elif not isinstance(items, list) or not items:
            bad("wrong_type", place, f"expected an object with a list `{kind.list_field}` that is not empty")
        else:
            for number, item in enumerate(items):
                where = f"{place}.{kind.list_field}[{number}]"
                faults = list(_faults(kind, item))
                for code, path, message in faults:
                    bad(code, where + path, message)
                if faults:
                    continue
                if (item_id := item[kind.id_field], turn_id) in seen:
                    bad("repeated_item", where, f"{item_id} is already in this turn")
                    continue
                seen.add((item_id, turn_id))
                # Labels are read by name, never by position.
                grades = {label.lower(): item[label] for label in kind.labels}
                order = tuple(field for field in item if field in kind.labels)
                yield ReginRow(turn_id, item_id, item[kind.text_field], grades, order)


def _faults(kind: ResourceKind, item: Any) -> Iterator[tuple[str, str, str]]:
    """Code, place in the record and message of each problem of one record."""
    if not isinstance(item, dict):
        yield "wrong_type", "", f"expected an object, found {shown(item)}"
        return
    item_id, text = item.get(kind.id_field), item.get(kind.text_field)
    if not isinstance(item_id, str) or not usable_id(item_id):
        yield "unusable_id", f".{kind.id_field}", f"{shown(item_id)} cannot be a column of qrels"
    if not isinstance(text, str) or not storable(text):
        yield "wrong_text", f".{kind.text_field}", f"expected a text, found {shown(text)}"
    for label in kind.labels:
        grade = item.get(label)
        if type(grade) is not int or grade not in GRADES:
            yield "wrong_grade", f".{label}", f"expected an integer of 0 to 3, found {shown(grade)}"


def _bank(value: Any, file: str, problems: list[Problem]) -> dict[str, str]:
    if not isinstance(value, dict):
        message = f"expected an object from id to text, found {shown(value)}"
        problems.append(file_problem("wrong_type", file, message, "$"))
        return {}
    sound = {key: text for key, text in value.items() if usable_id(key) and isinstance(text, str) and storable(text)}
    for item_id, text in value.items():
        if item_id not in sound:
            message = f"expected an id and its text, found {shown(text)}"
            problems.append(file_problem("wrong_text", file, message, f"$[{shown(item_id)}]"))
    return sound


def usable_id(text: str) -> bool:
    """Whether an id can be a column as it is."""
    return len(text) <= MAX_ID and storable(text) and column(text) == text


def read_turns(path: Path) -> tuple[str, ...]:
    """The turn ids of a list, one a line; blank lines are passed over.

    An InputError if the file cannot be read, holds no turn, a line that is no id, or one twice; all are listed.
    """
    name = file_name(path)
    try:
        text = read_stored(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 at byte {error.start + 1}") from error
    turns: dict[str, int] = {}
    problems = []
    for number, line in enumerate(text.split("\n"), start=1):
        turn_id = line.strip(" \t\r")
        if not turn_id:
            continue
        if not usable_id(turn_id):
            problems.append(file_problem("unusable_id", name, f"{shown(turn_id)}: no id", f"line {number}"))
        elif turns.setdefault(turn_id, number) != number:
            message = f"{turn_id} is already on line {turns[turn_id]}"
            problems.append(Problem("repeated_turn", "error", name, turn_id, f"line {number}", message))
    if problems or not turns:
        raise InputError(f"{name}: not usable as a list of turns", problems)
    return tuple(turns)


# CONE-RAG.

STUDY_LINE = re.compile(r"([0-9]+)_([0-9]+_[0-9]+)_([0-9]+)_([^\t_]\S*)\t+([01])")
"""The task, the turn, the nugget and the run, then the label."""


NuggetMatch = tuple[str, str, int, str, bool]
"""A task, a turn, the number of a nugget, a run, and whether its response holds the nugget."""


def read_study(path: Path) -> tuple[NuggetMatch, ...]:
    """The labels in the order of the file.

    An InputError if the file cannot be read, a line is no label, or an id is given twice; every problem is listed.
    """
    matches: list[NuggetMatch] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if len(problems) == MAX_PROBLEMS:
            problems.append(stopped(str(path), number))
            break
        parts = STUDY_LINE.fullmatch(line)
        if parts is None:
            message = f"{shown(line)}: expected hit_topic_turn_nugget_run, a tab and 0 or 1"
            problems.append(line_problem("not_a_match", path, number, message))
            continue
        # The same pair in another task is another person's label of it.
        label_id = line.split("\t", 1)[0]
        first = lines.setdefault(label_id, number)
        if first != number:
            message = f"{shown(label_id)} is already on line {first}"
            problems.append(line_problem("duplicate_row", path, number, message))
        matches.append((parts[1], parts[2], int(parts[3]), parts[4], parts[5] == "1"))
    refuse(problems, f"{path}: not usable as matches: {count(len(problems), 'line')} with problems")
    return tuple(matches)
