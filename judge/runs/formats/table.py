"""Tables of questions and answers as runs: a system is a run, a question a turn, and a row a response.

The columns are found by their usual names. A table is its own topics, and its passages are the evidence.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.io.ids import groups_of, natural_key
from judge.io.rows import RowTable, read_rows
from judge.io.tabular import delimiter_of, is_parquet, table_records
from judge.io.text import count, did_you_mean, digest, examples, shown
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.document import HEAD, Document, read_head
from judge.runs.fields import usable_turn_id
from judge.runs.formats.cast_regin import is_bank, is_pool
from judge.runs.formats.messages import are_of_messages
from judge.runs.formats.shape import Format, ReadRun, ResponsePlace, Rules, TurnPlace
from judge.runs.formats.table_columns import (
    ROLES,
    Role,
    are_answers,
    asks_and_answers,
    columns_of,
    has_role,
    histories_of,
    holds_conversation,
    rows_inside,
)
from judge.runs.formats.table_rows import AnswerRow, answer_rows, ids_are_of_rows, why_without_ids
from judge.runs.records import Exchange, Provenance, Response, Run, RunTurn, Topic, Turn

SUFFIXES = (".csv", ".tsv", ".tab", ".parquet")
FORMAT = "table"

_MARKS = frozenset({"turns", "metadata", "references", "responses", "user_utterance", "run_name"})
"""Members that runs of tracks have, and rows of tables seldom."""
_ANYONES = frozenset({"metadata"})
"""Those of them that many other objects have."""
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


class TableSource(msgspec.Struct, frozen=True):
    """A table, and what each of its rows came to."""

    table: RowTable
    columns: Mapping[Role, str]
    keys: tuple[tuple[str, str], ...]
    """For each row, its run and its turn."""
    without_ids: str = ""
    """Why the ids of the table are not used, in words; "" where they are, or it has none."""
    histories: tuple[str, ...] = ()
    """Columns of messages that no judge sees."""

    @property
    def said(self) -> str:
        """What was taken for what, in a sentence."""
        taken = ", ".join(f"{role} from {shown(self.columns[role])}" for role in ROLES if role in self.columns)
        runs = list(dict.fromkeys(run_id for run_id, _ in self.keys))
        unused = [name for name in self.table.columns if name not in self.columns.values()]
        beside = f"; not used: {examples(map(shown, unused))}" if unused else ""
        named = f"{count(len(runs), 'run')} ({examples(map(shown, runs))})"
        if self.histories:
            beside += f"; no judge sees the messages in {examples(map(shown, self.histories))}"
        ids = f"; {self.without_ids}, so the texts of questions tell them apart" if self.without_ids else ""
        return f"{self.table.file}: a table of {count(len(self.keys), 'row')}, {named}: {taken}{beside}{ids}"


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
        return are_answers(_header(path, head), named)
    names = _keys(head)
    if not _MARKS & names and are_answers(names, named):
        return True
    if are_of_messages(names) and holds_conversation(_first_row(path, head)):
        return True
    if _MARKS & names and not has_role(names, "question", named) and not are_answers(names, named):
        return False
    if not _MARKS & names and len(head) < HEAD:
        return False
    row = _first_row(path, head)
    if _MARKS & row.keys() <= _ANYONES and rows_inside(row) is not None:
        # Its reader says where the rows are.
        return True
    if _MARKS & row.keys():
        return asks_and_answers(row, named)
    return are_answers(row, named)


def has_table_name(path: Path) -> bool:
    """Whether the name of a file ends as those of tables do, packed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in SUFFIXES


def is_table(path: Path, named: Mapping[str, str] | None = None) -> bool:
    """Whether a file that the user gives is to be read as a table: by its columns, or by the ending of its name."""
    try:
        head = read_head(path)
    except OSError:
        return False
    is_json = head.lstrip()[:1] in (b"{", b"[")
    by_name = has_table_name(path) and bool(head) and not is_json and not is_pool(head) and not is_bank(head)
    return by_name or looks_like_table(path, head, named)


def column_names(path: Path) -> set[str]:
    """The names of a table's columns, of JSON those of its first objects; none of Parquet.

    Raises:
        OSError: The file cannot be read.
    """
    head = read_head(path)
    if is_parquet(head):
        return set()
    if head.lstrip()[:1] not in (b"{", b"["):
        return set(_header(path, head))
    is_whole_row = head.lstrip().startswith(b"{") and (b"\n" in head or len(head) < HEAD)
    return _keys(head) if is_whole_row else _keys(head) | _first_row(path, head).keys()


def _header(path: Path, head: bytes) -> list[str]:
    """The names in the header of a head."""
    text = head.decode("utf-8-sig", "replace").lstrip()
    _, names = next(table_records(text, delimiter_of(path, text), longest=len(text)), (0, ""))
    return [] if isinstance(names, str) else list(names)


def _keys(head: bytes) -> set[str]:
    """The names of members in the head of a JSON file."""
    names: set[str] = set()
    for key in _KEY.findall(head):
        with suppress(ValueError):
            # JSON in ASCII writes other letters as escapes.
            names.add(msgspec.json.decode(b'"%s"' % key, type=str))
    return names


def _first_row(path: Path, head: bytes) -> dict[str, Any]:
    """The first object of a JSON file; empty where it has none."""
    line, end, _ = head.partition(b"\n")
    with suppress(ValueError, RecursionError):
        if end or len(head) < HEAD:
            return msgspec.json.decode(line, type=dict[str, Any])
    table = read_rows(path, [])
    return {} if table is None else table.rows[0].cells


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
        found = columns_of(table, named, problems)
        if found is not None:
            tables.append((found.table, found.of))
    refuse(problems, "tables of answers that cannot be read as runs")
    of_rows = ids_are_of_rows(tables)
    without_ids = [why_without_ids(table, columns, of_rows) for table, columns in tables]
    for (_, columns), reason in zip(tables, without_ids, strict=True):
        if reason:
            del columns["id"]
    answers = _Answers(problems)
    sources = [
        answers.take(table, columns, reason) for (table, columns), reason in zip(tables, without_ids, strict=True)
    ]
    refuse(problems, "tables of answers that cannot be read as runs")
    return Tables(tuple(sources), answers.runs(), answers.topics(), any("contexts" in columns for _, columns in tables))


class _Question(msgspec.Struct):
    """A turn while tables are read."""

    turn_id: str
    topic_id: str
    number: int
    text: str | None
    place: str
    references: tuple[str, ...] = ()
    answer: str | None = None
    """The answer of the first system, where the table numbers the turns of conversations."""

    def as_exchange(self, systems: int) -> Exchange:
        """What later turns of the conversation show of this one.

        That is the reference answer or, where there is one system only, its own; of several each had another
        conversation.
        """
        said = self.references[0] if self.references else ""
        if not said and systems == 1:
            said = self.answer or ""
        return Exchange(str(self.text), said)


class _TurnNames:
    """The topic and the number of each row's turn."""

    def __init__(self) -> None:
        self._topic_of: dict[str, str] = {}
        """Text of a question without an id to its topic."""
        self._turns_in: Counter[str] = Counter()
        self._number_of: dict[tuple[str, str, int], int] = {}
        self._asked: Counter[tuple[str, str, str, str]] = Counter()

    def name(self, row: AnswerRow) -> tuple[str, int]:
        """The topic and the number of a row's turn; rows of several systems with one question have one turn."""
        if row.number is not None:
            return row.topic or row.label, row.number
        if row.topic or not row.label:
            return self._next_of_topic(row)
        # Of a table without questions, ids may be those of turns.
        topic_id, _, number = row.label.rpartition("_")
        if row.question is None and usable_turn_id(row.label) and number.isdecimal():
            return topic_id, int(number)
        return row.label, 1

    def _next_of_topic(self, row: AnswerRow) -> tuple[str, int]:
        """A question's turn in its topic; the same question again, by the same system, is another one."""
        text = str(row.question)
        asked = (row.run_id, row.topic, row.label, text)
        self._asked[asked] += 1
        topic_id = row.topic or self._topic_of.setdefault(text, f"q{len(self._topic_of) + 1}")
        turn = (row.topic, row.label or text, self._asked[asked])
        if turn not in self._number_of:
            self._turns_in[topic_id] += 1
            self._number_of[turn] = self._turns_in[topic_id]
        return topic_id, self._number_of[turn]


class _TableRun(msgspec.Struct):
    """The answers of one system."""

    run_id: str
    table: RowTable
    turns: list[RunTurn] = msgspec.field(default_factory=list)
    places: list[TurnPlace] = msgspec.field(default_factory=list)

    def add(self, row: AnswerRow, turn_id: str) -> None:
        """Add the answer of a row."""
        listed = tuple(Provenance(f"p-{digest(text)[:12]}", None, True, text) for text in row.contexts)
        self.turns.append(RunTurn(turn_id, (Response(1, row.answer, listed),)))
        self.places.append(TurnPlace(row.place, (ResponsePlace(row.place),)))

    def read(self, *, alone: bool) -> ReadRun:
        """The run; `alone`: whether its table has no other."""
        run = Run(
            run_id=self.run_id,
            run_type=None,
            team=None,
            format=FORMAT,
            file=self.table.file if alone else f"{self.table.file} ({self.run_id})",
            digest=self.table.digest,
            eval_response=True,
            turns=tuple(self.turns),
        )
        return ReadRun(run, (), tuple(self.places))


class _Answers:
    """The questions of tables, and the answers of each system."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._names = _TurnNames()
        self._questions: dict[str, _Question] = {}
        self._conversations: set[str] = set()
        """Topics whose turns the table numbers."""
        self._runs: dict[str, _TableRun] = {}

    def take(self, table: RowTable, columns: Mapping[Role, str], without_ids: str) -> TableSource:
        """Add the rows of a table; what is wrong with them is added to the problems."""
        places: dict[tuple[str, str], str] = {}
        for row in answer_rows(table, columns, self._problems):
            question = self._question_of(row, table)
            key = (row.run_id, question.turn_id)
            if question.text != row.question:
                asks = f"asks {shown(row.question)} here, {shown(question.text)} at {question.place}"
                self._wrong(table, row.place, f"{question.turn_id} {asks}")
            elif key in places:
                about = f"the id {shown(row.label)}" if row.label else f"the turn {question.turn_id}"
                several = (
                    "" if "system" in columns else "; if several systems answered, --column system=COLUMN tells them"
                )
                self._wrong(table, row.place, f"{about} of {shown(row.run_id)} was already at {places[key]}{several}")
            else:
                places[key] = row.place
                question.references = tuple(dict.fromkeys((*question.references, *row.references)))
                if row.number is not None and question.answer is None:
                    question.answer = row.answer
                self._runs.setdefault(row.run_id, _TableRun(row.run_id, table)).add(row, question.turn_id)
        for run_id in dict.fromkeys(run_id for run_id, _ in places):
            other = self._runs[run_id].table
            if other is not table:
                message = f"the run {shown(run_id)} is also in {other.file}: name the systems in a column"
                self._wrong(table, "the runs", message)
        histories = tuple(histories_of(table, columns))
        return TableSource(table.without_rows(), columns, tuple(places), without_ids, histories)

    def _question_of(self, row: AnswerRow, table: RowTable) -> _Question:
        topic_id, number = self._names.name(row)
        if row.number is not None:
            self._conversations.add(topic_id)
        turn_id = f"{topic_id}_{number}"
        question = self._questions.get(turn_id)
        if question is None:
            question = _Question(
                turn_id=turn_id,
                topic_id=topic_id,
                number=number,
                text=row.question,
                place=f"{table.file}, {row.place}",
            )
            self._questions[turn_id] = question
        return question

    def _wrong(self, table: RowTable, place: str, message: str) -> None:
        self._problems.append(problem("wrong_table", table.file, place, message))

    def runs(self) -> tuple[ReadRun, ...]:
        """A run for each system."""
        in_file = Counter(run.table.file for run in self._runs.values())
        return tuple(run.read(alone=in_file[run.table.file] == 1) for run in self._runs.values())

    def topics(self) -> tuple[Topic, ...] | None:
        """The questions as topics; None without questions."""
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
                    references=question.references,
                )
                turns.append(turn)
                if topic_id in self._conversations:
                    context = (*context, question.as_exchange(len(self._runs)))
            topics.append(Topic(topic_id, None, (), tuple(turns)))
        return tuple(topics)


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
