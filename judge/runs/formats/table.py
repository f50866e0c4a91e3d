"""Tables of questions and answers as runs: a system is a run, a question a turn, and a row a response.

The columns are found by their usual names. A table is its own topics, and its passages are the evidence.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.io.ids import groups_of, natural_key
from judge.io.rows import FrameRow, RowTable, read_rows
from judge.io.tabular import delimiter_of, is_parquet
from judge.io.text import count, did_you_mean, digest, examples, shown
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.document import HEAD, Document, read_head
from judge.runs.fields import usable_turn_id
from judge.runs.formats.cast_regin import is_bank, is_pool
from judge.runs.formats.shape import Format, ReadRun, ResponsePlace, Rules, TurnPlace
from judge.runs.records import Exchange, Provenance, Response, Run, RunTurn, Topic, Turn

Role = Literal["question", "answer", "contexts", "reference", "id", "system", "topic", "turn"]
"""What a column is for."""
ROLES: tuple[Role, ...] = get_args(Role)
USUAL: Mapping[Role, tuple[str, ...]] = {
    "question": ("question", "query", "user_input", "input", "prompt", "request"),
    "answer": ("answer", "response", "output", "actual_output", "generated_answer"),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieval_context", "documents", "passages"),
    "reference": ("reference", "ground_truth", "expected_output", "expected_answer", "golden_answer"),
    "id": ("id", "question_id", "query_id", "qid"),
    "system": ("system", "model", "run", "run_id"),
    "topic": ("topic", "topic_id", "conversation", "conversation_id"),
    "turn": ("turn", "turn_number"),
}
"""The names by which a column is found, in small letters with `_` between words."""
SUFFIXES = (".csv", ".tsv", ".tab", ".parquet")
FORMAT = "table"

_MARKS = frozenset({"turns", "metadata", "references", "responses", "user_utterance", "run_name"})
"""Members that runs of tracks have, and rows of tables have not."""
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
_SIGNS = re.compile(r"[^a-z0-9]+")
_LIST = re.compile(r"""\[\s*["'\]]""")
_TEXT_OF = ("text", "content", "page_content", "contents")
"""Members of an object that holds a passage."""
_LITERAL = 1 << 20
"""Characters of the longest list in Python's form that is read."""


class TableSource(msgspec.Struct, frozen=True):
    """A table, and what each of its rows came to."""

    table: RowTable
    columns: Mapping[Role, str]
    keys: tuple[tuple[str, str], ...]
    """For each row, its run and its turn."""

    @property
    def said(self) -> str:
        """What was taken for what, in a sentence."""
        taken = ", ".join(f"{role} from {shown(self.columns[role])}" for role in ROLES if role in self.columns)
        runs = list(dict.fromkeys(run_id for run_id, _ in self.keys))
        unused = [name for name in self.table.columns if name not in self.columns.values()]
        beside = f"; not used: {examples(map(shown, unused))}" if unused else ""
        named = f"{count(len(runs), 'run')} ({examples(map(shown, runs))})"
        return f"{self.table.file}: a table of {count(len(self.keys), 'row')}, {named}: {taken}{beside}"


class Tables(msgspec.Struct, frozen=True):
    """The runs and the topics of tables."""

    sources: tuple[TableSource, ...]
    runs: tuple[ReadRun, ...]
    topics: tuple[Topic, ...] | None
    """None if no table has questions."""
    evidence: bool
    """Whether a table has passages."""

    def without_runs(self) -> "Tables":
        """What is left of the tables once their runs are pooled."""
        return msgspec.structs.replace(self, runs=(), topics=None)

    @property
    def reference(self) -> str | None:
        """The column of reference answers; None if no table has one."""
        return next((source.columns["reference"] for source in self.sources if "reference" in source.columns), None)


def looks_like_table(path: Path, head: bytes, named: Mapping[str, str] | None = None) -> bool:
    """Whether a file with this head is a table of questions and answers, by the names of its columns.

    `named`: the columns that the user names, by role.
    """
    if is_parquet(head):
        return True
    if is_pool(head) or is_bank(head):
        return False
    if head.lstrip()[:1] not in (b"{", b"["):
        return _fits(_header(path, head), named)
    names = _keys(head)
    if _MARKS & names:
        return False
    return _fits(names, named) or (len(head) == HEAD and _fits(_first_keys(path), named))


def is_table(path: Path, named: Mapping[str, str] | None = None) -> bool:
    """Whether a file that the user gives is to be read as a table: by its columns, or by the ending of its name."""
    try:
        head = read_head(path)
    except OSError:
        return False
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    is_json = head.lstrip()[:1] in (b"{", b"[")
    by_name = suffix in SUFFIXES and bool(head) and not is_json and not is_pool(head) and not is_bank(head)
    return by_name or looks_like_table(path, head, named)


def _fits(names: Iterable[str], named: Mapping[str, str] | None) -> bool:
    """Whether some column is an answer, and some the question or its id."""
    names = set(names)
    given = named or {}
    usual = {_plain_name(name) for name in names}

    def has(role: Role) -> bool:
        return given[role] in names if role in given else not usual.isdisjoint(USUAL[role])

    return has("answer") and (has("question") or has("id"))


def _header(path: Path, head: bytes) -> list[str]:
    """The names in the first line of a head."""
    line = head.lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    delimiter = delimiter_of(path, line)
    return [name.strip().strip('"').strip() for name in line.split(delimiter)]


def _keys(head: bytes) -> set[str]:
    """The names of members in the head of a JSON file."""
    return {key.decode("utf-8", "replace") for key in _KEY.findall(head)}


def _first_keys(path: Path) -> set[str]:
    """The names of the first object's members, where the head has not all of them."""
    problems: list[Problem] = []
    table = read_rows(path, problems)
    return set() if table is None or _MARKS & set(table.columns) else set(table.rows[0].cells)


def _plain_name(name: str) -> str:
    return _SIGNS.sub("_", name.lower()).strip("_")


def read_tables(paths: Sequence[Path | RowTable], named: Mapping[str, str] | None = None) -> Tables:
    """The runs in tables, which share their questions: one system in several tables is an error.

    Args:
        paths: Files and tables in memory.
        named: The columns that the user names, by role.

    Raises:
        UsageError: `named` has no such role.
        InputError: A table cannot be read, or its columns or rows are no questions and answers.
    """
    named = named or {}
    for role in named:
        if role not in ROLES:
            raise UsageError(f"--column {role}: no such role{did_you_mean(role, ROLES)}; one of {', '.join(ROLES)}")
    problems: list[Problem] = []
    tables: list[tuple[RowTable, dict[Role, str]]] = []
    for path in paths:
        table = path if isinstance(path, RowTable) else read_rows(path, problems)
        if table is None:
            continue
        columns = _columns_of(table, named, problems)
        if columns is not None:
            tables.append((table, columns))
    refuse(problems, "tables of answers that cannot be read as runs")
    read = _Questions(problems)
    sources = [read.take(table, columns) for table, columns in tables]
    refuse(problems, "tables of answers that cannot be read as runs")
    return Tables(tuple(sources), read.runs(), read.topics(), any("contexts" in columns for _, columns in tables))


def _columns_of(table: RowTable, named: Mapping[str, str], problems: list[Problem]) -> dict[Role, str] | None:
    """The column of each role; None, and a problem, where columns are absent or fit twice."""
    columns: dict[Role, str] = {}
    wrong: list[str] = []
    found = f"found {', '.join(map(shown, table.columns[:20]))}"
    for role in ROLES:
        if role in named:
            if named[role] in table.columns:
                columns[role] = named[role]
            else:
                wrong.append(f"no column {shown(named[role])} for {role}; {found}")
            continue
        fitting = [name for name in table.columns if _plain_name(name) in USUAL[role] and name not in named.values()]
        if len(fitting) > 1:
            several = " and ".join(map(shown, fitting))
            wrong.append(f"{several} may each be the {role}; name one: --column {role}={fitting[0]}")
        elif fitting:
            columns[role] = fitting[0]
    if not wrong and "answer" not in columns:
        usual = ", ".join(USUAL["answer"])
        wrong.append(f"no column of answers ({usual}); {found}; name it: --column answer=COLUMN")
    if not wrong and not columns.keys() & {"question", "id"}:
        usual = ", ".join(USUAL["question"])
        wrong.append(f"no column of questions ({usual}); {found}; name it: --column question=COLUMN")
    for message in wrong:
        problems.append(problem("wrong_table", table.file, "the columns", message))
    return None if wrong else columns


class _Question(msgspec.Struct):
    """A turn while tables are read."""

    topic_id: str
    number: int
    text: str | None
    references: dict[str, None]
    answers: dict[str, str]
    """The answer of each system."""
    place: str

    @property
    def turn_id(self) -> str:
        return f"{self.topic_id}_{self.number}"


class _Questions:
    """The questions of tables, by what tells them apart, and the answers of each run."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._questions: dict[str, _Question] = {}
        self._numbers: dict[str, str] = {}
        """Text of a question without an id to its topic."""
        self._in_topic: Counter[str] = Counter()
        self._turn_of: dict[tuple[str, str, int], int] = {}
        self._conversations: set[str] = set()
        self._runs: dict[str, list[tuple[RunTurn, TurnPlace]]] = {}
        self._files: dict[str, RowTable] = {}
        self._alone: dict[str, bool] = {}

    def take(self, table: RowTable, columns: Mapping[Role, str]) -> TableSource:
        """Add the rows of a table; what is wrong with them is added to the problems."""
        ids = [_label(row.cells.get(columns["id"])) for row in table.rows] if "id" in columns else []
        by_id = bool(ids) and all(usable_turn_id(f"{label}_1") for label in ids)
        seen: Counter[tuple[str, ...]] = Counter()
        places: dict[tuple[str, str], str] = {}
        keys: list[tuple[str, str]] = []
        for number, row in enumerate(table.rows):
            run_id = _label(row.cells.get(columns["system"])) if "system" in columns else table.stem
            if not run_id:
                self._bad(table, row, f"no name of a system in the column {shown(columns['system'])}")
                continue
            label = ids[number] if by_id else ""
            question = self._question(table, columns, row, run_id, label, seen)
            if question is None:
                continue
            key = (run_id, question.turn_id)
            if key in places:
                about = f"the id {shown(label)}" if label else f"the turn {question.turn_id}"
                self._bad(table, row, f"{about} of {shown(run_id)} was already at {places[key]}")
                continue
            places[key] = row.place
            keys.append(key)
            self._add(table, columns, row, run_id, question)
        for run_id in dict.fromkeys(run_id for run_id, _ in keys):
            other = self._files.setdefault(run_id, table)
            if other is not table:
                message = f"the run {shown(run_id)} is also in {other.file}: name the systems in a column"
                self._problems.append(problem("wrong_table", table.file, "the runs", message))
        alone = len({run_id for run_id, _ in keys}) == 1
        self._alone.update({run_id: alone for run_id, _ in keys})
        return TableSource(table.without_rows(), columns, tuple(keys))

    def _bad(self, table: RowTable, row: FrameRow, message: str) -> None:
        self._problems.append(problem("wrong_table", table.file, row.place, message))

    def _question(
        self, table: RowTable, columns: Mapping[Role, str], row: FrameRow, run_id: str, label: str, seen: Counter[Any]
    ) -> _Question | None:
        """The question of a row; None, and a problem, if it has none."""
        text: str | None = None
        if "question" in columns:
            text = _label(row.cells.get(columns["question"]))
            if not text:
                self._bad(table, row, f"no question in the column {shown(columns['question'])}")
                return None
        elif not label:
            self._bad(table, row, f"no usable id in the column {shown(columns['id'])}: letters and digits, no spaces")
            return None
        topic = _label(row.cells.get(columns["topic"])) if "topic" in columns else ""
        if "topic" in columns and not usable_turn_id(f"{topic}_1"):
            self._bad(table, row, f"topic {shown(topic)}: expected letters and digits without spaces")
            return None
        if "turn" in columns:
            given = row.cells.get(columns["turn"])
            number = _whole(given)
            if number is None:
                self._bad(table, row, f"turn {shown(given)}: expected a whole number, 0 or more")
                return None
            topic_id = topic or label
            if not topic_id:
                self._bad(table, row, "a turn without a conversation: name its column (--column topic=COLUMN)")
                return None
            self._conversations.add(topic_id)
        elif label and not topic:
            # Of a table without questions, ids may be those of turns.
            head, _, last = label.rpartition("_")
            own = text is None and usable_turn_id(label) and last.isdecimal()
            topic_id = head if own else label
            number = int(last) if own else 1
        else:
            # The same question again, by the same system, is another turn of its topic.
            seen[run_id, topic, label, text] += 1
            which = (topic, label or str(text), seen[run_id, topic, label, text])
            topic_id = topic or self._numbers.setdefault(str(text), f"q{len(self._numbers) + 1}")
            if which not in self._turn_of:
                self._in_topic[topic_id] += 1
                self._turn_of[which] = self._in_topic[topic_id]
            number = self._turn_of[which]
        new = _Question(topic_id, number, text, {}, {}, f"{table.file}, {row.place}")
        question = self._questions.setdefault(new.turn_id, new)
        if question.text != text:
            self._bad(
                table, row, f"{question.turn_id} asks {shown(text)} here, {shown(question.text)} at {question.place}"
            )
            return None
        return question

    def _add(
        self, table: RowTable, columns: Mapping[Role, str], row: FrameRow, run_id: str, question: _Question
    ) -> None:
        """Add the answer of a row to its run."""
        found: dict[str, list[str]] = {}
        for role in ("contexts", "reference"):
            cell = row.cells.get(columns[role]) if role in columns else None
            texts = texts_of(cell)
            if texts is None:
                message = (
                    f"column {shown(columns[role])}: expected a text, or a list of texts as JSON; found {shown(cell)}"
                )
                self._bad(table, row, message)
            found[role] = texts or []
        answer = row.cells.get(columns["answer"])
        if answer is not None and not isinstance(answer, str):
            if isinstance(answer, list | dict):
                self._bad(table, row, f"column {shown(columns['answer'])}: expected a text, found {shown(answer)}")
                return
            answer = str(answer)
        question.references.update(dict.fromkeys(found["reference"]))
        question.answers[run_id] = answer or ""
        listed = tuple(Provenance(f"p-{digest(text)[:12]}", None, True, text) for text in found["contexts"])
        turn = RunTurn(question.turn_id, (Response(1, answer or "", listed),))
        place = TurnPlace(row.place, (ResponsePlace(row.place),))
        self._runs.setdefault(run_id, []).append((turn, place))

    def runs(self) -> tuple[ReadRun, ...]:
        """A run for each system."""
        made: list[ReadRun] = []
        for run_id, turns in self._runs.items():
            table = self._files[run_id]
            run = Run(
                run_id=run_id,
                run_type=None,
                team=None,
                format=FORMAT,
                file=table.file if self._alone[run_id] else f"{table.file} ({run_id})",
                digest=table.digest,
                eval_response=True,
                turns=tuple(turn for turn, _ in turns),
            )
            made.append(ReadRun(run, (), tuple(place for _, place in turns)))
        return tuple(made)

    def topics(self) -> tuple[Topic, ...] | None:
        """The questions as topics; None without questions.

        In a conversation, what the user said before is shown with the reference answer or, where there is one system
        only, with its own; of several systems each had another conversation.
        """
        if any(question.text is None for question in self._questions.values()):
            return None
        of_topics = groups_of((question.topic_id, question) for question in self._questions.values())
        topics: list[Topic] = []
        for topic_id in sorted(of_topics, key=natural_key):
            context: tuple[Exchange, ...] = ()
            turns: list[Turn] = []
            for question in sorted(of_topics[topic_id], key=lambda question: question.number):
                turn = Turn(
                    turn_id=question.turn_id,
                    topic_id=topic_id,
                    utterance=str(question.text),
                    resolved_utterance=None,
                    context=context,
                    ptkb=(),
                    references=tuple(question.references),
                )
                turns.append(turn)
                if topic_id in self._conversations:
                    context = (*context, Exchange(turn.utterance, self._said(question)))
            topics.append(Topic(topic_id, None, (), tuple(turns)))
        return tuple(topics)

    def _said(self, question: _Question) -> str:
        if question.references:
            return next(iter(question.references))
        return next(iter(question.answers.values()), "") if len(self._runs) == 1 else ""


def _label(cell: Any) -> str:
    """A cell as a name or a question; "" of none."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None or isinstance(cell, list | dict) else str(cell).strip()


def _whole(cell: Any) -> int | None:
    text = _label(cell)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


def texts_of(cell: Any) -> list[str] | None:
    r"""The texts in a cell: one, a list, or a list as JSON or Python writes it; None if they cannot be read.

    >>> texts_of('["a", "b"]'), texts_of("['a']"), texts_of("[1] says a"), texts_of(None), texts_of('["a"')
    (['a', 'b'], ['a'], ['[1] says a'], [], None)
    """
    if isinstance(cell, str):
        text = cell.strip()
        if not _LIST.match(text):
            return [text] if text else []
        values = _listed(text)
    elif isinstance(cell, dict):
        values = [cell]
    else:
        values = [] if cell is None else cell
    if not isinstance(values, list):
        return None
    texts: list[str] = []
    for value in values:
        if isinstance(value, dict):
            value = next((value[name] for name in _TEXT_OF if name in value), value)
        if value is None:
            continue
        if not isinstance(value, str):
            return None
        if value.strip():
            texts.append(value.strip())
    return texts


def _listed(text: str) -> Any:
    """The list that a text writes; None if it writes none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    if len(text) <= _LITERAL:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(text)
    return None


def _sniff(document: Document) -> bool:
    return is_table(document.path)


def _read(document: Document) -> ReadRun:
    """The one run of a table."""
    try:
        tables = read_tables([document.path])
    except InputError as error:
        found = (problem("wrong_table", wrong.file, wrong.path, wrong.message) for wrong in error.problems)
        return ReadRun(None, tuple(found))
    if len(tables.runs) > 1:
        names = examples(shown(read.run.run_id) for read in tables.runs if read.run is not None)
        message = f"a table of {len(tables.runs)} systems ({names}), expected one"
        return ReadRun(None, (problem("wrong_table", document.file, "", message),))
    return tables.runs[0]


TABLE = Format(
    "Tables of questions and answers: CSV, TSV, JSON, JSON Lines or Parquet; columns are found by their usual names.",
    Rules(
        run_id="the runs",
        form="table",
        passages="contexts",
        of_years=False,
        ranked=False,
        flags_used=True,
    ),
    _sniff,
    _read,
)
