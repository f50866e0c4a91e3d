"""Rubric questions of iKAT 2025: a table with `id` and `rubrik`, where `1-1-r2` is a question of topic 1-1."""

import csv
import io
import re
from collections.abc import Iterator

from judge.extra.nuggets.forms.problems import BankProblems, usable_topic_id
from judge.extra.nuggets.records import Nugget
from judge.io.safe import shown

_ID = re.compile(r"(\S+)-r[0-9]{1,6}")
_HEADER = ["id", "rubrik"]


def looks(content: bytes) -> bool:
    """Whether the first line is the header of the table."""
    return content.partition(b"\n")[0].replace(b'"', b"").strip().lower() == ",".join(_HEADER).encode()


def read(content: bytes, name: str, problems: BankProblems) -> list[Nugget]:
    """The questions of a file; each is a nugget of its topic, without importance."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.add("wrong_encoding", f"line {line}", f"not UTF-8: {error.reason}")
        return []
    nuggets: list[Nugget] = []
    for line, row in _rows(text, problems):
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


def _rows(text: str, problems: BankProblems) -> Iterator[tuple[int, list[str]]]:
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
