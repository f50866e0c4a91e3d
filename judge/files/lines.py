"""Text files of one entry a line: turns, runs, teams, families."""

from collections.abc import Iterator
from pathlib import Path

from judge.errors import InputError
from judge.files.limits import numbered
from judge.files.stored import read_stored, unpack
from judge.records import Problem


def text_of(path: Path) -> str:
    """The text of a UTF-8 file, gzipped or not, without its byte order mark.

    Raises:
        InputError: The file cannot be read or is not UTF-8.
    """
    try:
        return unpack(read_stored(path), str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of every line that is not blank.

    Raises:
        InputError: The file cannot be read or is not UTF-8.
    """
    for number, line in numbered(text_of(path), str(path)):
        if stripped := line.strip(" \t\r"):
            yield number, stripped


def line_problem(code: str, path: Path, number: int, message: str) -> Problem:
    """An error at a line of a text file."""
    return Problem(code, "error", str(path), None, f"line {number}", message)
