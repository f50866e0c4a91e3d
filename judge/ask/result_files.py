"""Judgments and failures read back from their files, which may be larger than the memory."""

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import ResultLines, StoredResults
from judge.errors import InputError
from judge.files.jsonl import BOM, decode_rows
from judge.files.limits import numbered
from judge.files.line_stream import LineStream
from judge.records import Problem
from judge.text.cells import count

_Result = TypeVar("_Result", Judgment, Failure)
_LARGEST = 10**9
"""The largest grade of a scale is smaller, and so is the mean of any grades."""


def read_judgments(stored: bytes, name: str) -> tuple[Judgment, ...]:
    """The judgments in the bytes of a `judgments.jsonl`.

    Raises:
        InputError: Some lines are no judgments; every such line is listed.
    """
    return tuple(each_result(numbered(stored.removeprefix(BOM), name), Judgment, name))


def read_failures(stored: bytes, name: str) -> tuple[Failure, ...]:
    """The failures in the bytes of a `failures.jsonl`.

    Raises:
        InputError: Some lines are no failures; every such line is listed.
    """
    return tuple(each_result(numbered(stored.removeprefix(BOM), name), Failure, name))


def read_results(judgments: Path, failures: Path) -> StoredResults:
    """The judgments of one file, and the failures of another, which may be missing; each is read whenever it is used.

    Raises:
        InputError: A file cannot be read, or has problems; every bad line is listed.
    """
    parts = [_checked(judgments, Judgment)]
    if failures.exists():
        parts.append(_checked(failures, Failure))
    return StoredResults(parts)


def stored_judgments(path: Path) -> StoredResults:
    """The judgments of a file, gzipped or not; each is read whenever it is used.

    Raises:
        InputError: The file cannot be read, or some lines are no judgments; every such line is listed.
    """
    return StoredResults([_checked(path, Judgment, packed=True)])


def _checked(path: Path, kind: type[_Result], *, packed: bool = False) -> tuple[ResultLines, "array[int]"]:
    """The lines of a file, all of which hold a result, and where each line begins."""
    lines = LineStream(path, packed=packed)
    results = ResultLines(lines.file, str(path), kind, foreign=True)
    return results, array("q", (lines.start for _ in each_result(lines, kind, str(path))))


def each_result(lines: Iterable[tuple[int, bytes]], kind: type[_Result], name: str) -> Iterator[_Result]:
    """The results on lines, one at a time.

    Args:
        lines: The number of each line, and the line.
        kind: Whether judgments or failures are expected.
        name: The file, as messages name it.

    Raises:
        InputError: Some lines hold none, which is told after the last line; every such line is listed.
    """
    code = "not_a_judgment" if kind is Judgment else "not_a_failure"
    problems: list[Problem] = []
    for number, row in decode_rows(lines, kind, name, code):
        if isinstance(row, Problem):
            problems.append(row)
        elif isinstance(row, Judgment) and row.expected is not None and abs(row.expected) > _LARGEST:
            message = f"{row.expected:g} is no mean of grades: expected {-_LARGEST:,} to {_LARGEST:,}"
            problems.append(Problem(code, "error", name, None, f"line {number}: $.expected", message))
        else:
            yield row
    if problems:
        raise InputError(f"{name}: {count(len(problems), 'line')} with problems ({code})", problems)
