"""What is wrong with a collection's files, gathered up to a limit."""

from pathlib import Path
from typing import Final

from judge.errors import InputError
from judge.records import Problem

MAX_PROBLEMS: Final = 10
"""Reading stops here: a wrong file may have a hundred million lines."""


class CollectionProblems:
    """Problems of one code; the last that is taken, or `settle`, ends the reading."""

    def __init__(self, code: str, refusal: str) -> None:
        self._code = code
        self._refusal = refusal
        self._found: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, file: Path, number: int | None, message: str) -> None:
        """Note what is wrong with a line, None for the whole file.

        Raises:
            InputError: These are enough.
        """
        where = "$" if number is None else f"line {number}: $"
        self._found.append(Problem(self._code, "error", str(file), None, where, message))
        if len(self._found) >= MAX_PROBLEMS:
            raise self.error()

    def settle(self) -> None:
        """Go on if nothing is wrong.

        Raises:
            InputError: Something is.
        """
        if self._found:
            raise self.error()

    def error(self) -> InputError:
        """What all problems so far amount to."""
        return InputError(self._refusal, self._found)
