"""What each row of a table of answers says."""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from judge.io.rows import LONGEST_LITERAL, FrameRow, RowTable
from judge.io.text import shown
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.fields import usable_turn_id
from judge.runs.formats.table_columns import TEXT_OF, Role, question_and_answer

_LIST = re.compile(r"""\[\s*(?:["'\]]|\{\s*["'])""")
_NAMES: tuple[Role, ...] = ("id", "system", "topic")
_ADJACENT = re.compile(r"""['"]\s+['"]""")


def ids_are_of_rows(tables: Sequence[tuple[RowTable, Mapping[Role, str]]]) -> bool:
    """Whether the systems of tables share questions and no id, as where each row has an id of its own."""
    if len(tables) == 1 and "system" not in tables[0][1]:
        return False
    first_with_id: dict[str, str] = {}
    """Id to the first system that has it."""
    first_asked: dict[tuple[str, str], str] = {}
    """Topic and question to the first system that has it."""
    share_questions = False
    for table, columns in tables:
        for row in table.rows:
            cells = {role: plain_text(row.cells.get(columns[role])) for role in _NAMES if role in columns}
            question, _ = question_and_answer(row.cells, columns)
            run_id = cells.get("system", table.file)
            label = cells.get("id", "")
            if label and first_with_id.setdefault(label, run_id) != run_id:
                return False
            asked = (cells.get("topic", ""), plain_text(question))
            if asked[1] and first_asked.setdefault(asked, run_id) != run_id:
                share_questions = True
    return share_questions


def why_without_ids(table: RowTable, columns: Mapping[Role, str], of_rows: bool) -> str:
    """Why the ids of a table cannot tell its questions apart, in words; "" where they can, or nothing else could.

    `of_rows`: whether each row has an id of its own.
    """
    if "id" not in columns or "question" not in columns:
        return ""
    column = shown(columns["id"])
    if not all(usable_turn_id(f"{plain_text(row.cells.get(columns['id']))}_1") for row in table.rows):
        return f"not all of {column} are letters and digits without spaces"
    if of_rows and "turn" not in columns:
        return f"no two systems share an id in {column}, though they share questions"
    return ""


class AnswerRow(NamedTuple):
    """What a row of a table says."""

    place: str
    """Where it is in its file, in words."""
    run_id: str
    label: str
    """The question's id; "" where the table has none that can be part of a turn's id."""
    question: str | None
    """None in a table without questions."""
    topic: str
    """"" in a table without topics."""
    number: int | None
    """The number of the turn in its topic; None in a table without."""
    answer: str
    contexts: list[str]
    references: list[str]


def answer_rows(table: RowTable, columns: Mapping[Role, str], problems: list[Problem]) -> Iterator[AnswerRow]:
    """The rows of a table; of one that cannot be used, all that is wrong is added to the problems instead."""
    stem = table.stem
    ids = [plain_text(row.cells.get(columns["id"])) for row in table.rows] if "id" in columns else []
    by_id = bool(ids) and all(usable_turn_id(f"{label}_1") for label in ids)
    for index, row in enumerate(table.rows):
        wrong: list[str] = []
        read = _read_row(columns, row, ids[index] if by_id else "", stem, wrong)
        for message in wrong:
            problems.append(problem("wrong_table", table.file, row.place, message))
        if not wrong:
            yield read


def _read_row(columns: Mapping[Role, str], row: FrameRow, label: str, stem: str, wrong: list[str]) -> AnswerRow:
    """What a row says; what is wrong with it is added to `wrong`. `stem` names the system where no column does."""
    cells = {role: row.cells.get(column) for role, column in columns.items()}
    if "question" in cells:
        cells["question"], cells["answer"] = question_and_answer(row.cells, columns)
    run_id = sys.intern(plain_text(cells["system"])) if "system" in cells else stem
    if not run_id:
        wrong.append(f"no name of a system in the column {shown(columns['system'])}")
    question = plain_text(cells["question"]) if "question" in cells else None
    if isinstance(cells.get("question"), list | dict):
        wrong.append(f"column {shown(columns['question'])}: expected a text, found {_described(cells['question'])}")
    elif question == "":
        wrong.append(f"no question in the column {shown(columns['question'])}")
    if question is None and not label:
        wrong.append(f"no usable id in the column {shown(columns['id'])}: letters and digits, no spaces")
    topic = plain_text(cells.get("topic"))
    if "topic" in cells and not usable_turn_id(f"{topic}_1"):
        found = shown(topic) if topic else shown(cells["topic"])
        wrong.append(f"topic {found}: expected letters and digits without spaces")
    number = None
    if "turn" in cells:
        number = _whole_number(cells["turn"])
        if number is None:
            wrong.append(f"turn {shown(cells['turn'])}: expected a whole number, 0 or more")
        if not topic and not label:
            wrong.append("a turn without a conversation: name its column (--column topic=COLUMN)")
    listed: dict[Role, list[str]] = {"contexts": [], "reference": []}
    for role in listed:
        texts = texts_of(cells.get(role))
        if texts is None:
            cell = cells[role]
            found = shown(cell)
            if isinstance(cell, list):
                # Texts, and objects with a text, are no fault.
                other = next(entry for entry in cell if texts_of([entry]) is None)
                found = f"a list with {_described(other)}"
            wrong.append(f"column {shown(columns[role])}: expected a text, or a list of texts as JSON; found {found}")
        else:
            listed[role] = texts
    answer = cells["answer"]
    if isinstance(answer, list | dict):
        wrong.append(f"column {shown(columns['answer'])}: expected a text, found {_described(answer)}")
    return AnswerRow(
        place=row.place,
        run_id=run_id,
        label=label,
        question=question,
        topic=topic,
        number=number,
        answer="" if answer is None else str(answer),
        contexts=listed["contexts"],
        references=listed["reference"],
    )


def _described(value: Any) -> str:
    """A value for a message; of an object, the names of its members."""
    return (
        f"an object of {', '.join(map(shown, list(value)[:8]))}" if value and isinstance(value, dict) else shown(value)
    )


def plain_text(cell: Any) -> str:
    """A cell as a name or a question; "" of none."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None or isinstance(cell, list | dict) else str(cell).strip()


def _whole_number(cell: Any) -> int | None:
    text = plain_text(cell)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


def texts_of(cell: Any) -> list[str] | None:
    r"""The texts in a cell: one, a list, or a list as JSON, Python or numpy writes it; None if they cannot be read.

    >>> texts_of('["a", "b"]'), texts_of("['a']"), texts_of("[1] says a"), texts_of(None), texts_of('["a"')
    (['a', 'b'], ['a'], ['[1] says a'], [], None)
    >>> texts_of("['a' 'b']")
    ['a', 'b']
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
            value = next((value[name] for name in TEXT_OF if name in value), value)
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
    if len(text) <= LONGEST_LITERAL:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(_with_commas(text) if _ADJACENT.search(text) else text)
    return None


def _with_commas(text: str) -> str:
    """A list with a comma between texts that only white space parts, as arrays of numpy are written."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    parts: list[str] = []
    before = tokenize.ENDMARKER
    with suppress(tokenize.TokenError):
        for token in tokens:
            if token.type in (tokenize.NL, tokenize.NEWLINE):
                continue
            if token.type == tokenize.STRING and before == tokenize.STRING:
                parts.append(",")
            parts.append(token.string)
            before = token.type
    return " ".join(parts)
