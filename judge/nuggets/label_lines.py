"""Lines of labels, as matches and claims are stored, and lines of missing ones: every problem with its line."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.stored import read_stored, unpack
from judge.records import Problem
from judge.text.cells import count


class LabelLine(Protocol):
    """A line with labels of a response."""

    @property
    def turn_id(self) -> str:
        """The turn of the response."""


_Line = TypeVar("_Line", bound=LabelLine)
_Missing = TypeVar("_Missing")


def label_lines(
    content: bytes,
    name: str,
    kind: type[_Line],
    problem_of: Callable[[_Line, int], str | None],
    *,
    code: str,
    what: str,
    expected: str,
) -> tuple[_Line, ...]:
    """The lines of a file of labels.

    Args:
        content: The bytes, not gzipped.
        name: The file's name, for messages.
        kind: What a line is.
        problem_of: From a line and its number to what is wrong with it; called in order.
        code: Of the problems of lines.
        what: What the labels are called.
        expected: What an empty file should hold.

    Raises:
        InputError: There is no line, or lines have problems; every problem is listed.
    """
    rows: list[_Line] = []
    problems: list[Problem] = []
    for number, line in decode_lines(content, kind, name, code):
        if isinstance(line, Problem):
            problems.append(line)
            continue
        message = problem_of(line, number)
        if message is not None:
            problems.append(Problem(code, "error", name, line.turn_id, f"line {number}: $", message))
        rows.append(line)
    if not rows and not problems:
        problems.append(Problem("empty_file", "error", name, None, "", f"expected {expected}"))
    if problems:
        raise InputError(f"{name}: not usable as {what}: {count(len(problems), 'problem')}", problems)
    return tuple(rows)


def missing_lines(path: Path, kind: type[_Missing], *, code: str, what: str) -> tuple[_Missing, ...]:
    """The lines of a file of missing labels; none if there is no such file.

    Args:
        path: The file.
        kind: What a line is.
        code: Of the problems of lines.
        what: What the labels are called.

    Raises:
        InputError: Lines are damaged; each of them is listed.
    """
    if not path.exists():
        return ()
    rows: list[_Missing] = []
    problems: list[Problem] = []
    for _, row in decode_lines(unpack(read_stored(path), str(path)), kind, str(path), code):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append(row)
    if problems:
        raise InputError(f"{path}: not usable as missing {what}", problems)
    return tuple(rows)
