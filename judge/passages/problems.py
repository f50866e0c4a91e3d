"""Problems of a collection's files, gathered up to a limit."""

from pathlib import Path
from typing import Final

from judge.errors import InputError
from judge.records import Problem

MAX_PROBLEMS: Final = 10
"""Problems after which reading stops: a wrong file may have a hundred million lines."""


class CollectionProblems:
    """Problems of one code; the last that is gathered, or `settle`, ends the reading."""

    def __init__(self, code: str, refusal: str) -> None:
        self._code = code
        self._refusal = refusal
        self._problems: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self._problems)

    def add(self, file: Path, number: int | None, message: str) -> None:
        """Add a problem of line `number`, or of the whole file if that is None.

        Raises:
            InputError: There are `MAX_PROBLEMS` problems.
        """
        where = "$" if number is None else f"line {number}: $"
        self._problems.append(Problem(self._code, "error", str(file), None, where, message))
        if len(self._problems) >= MAX_PROBLEMS:
            raise self.error()

    def settle(self) -> None:
        """End the reading if there is any problem.

        Raises:
            InputError: There is a problem.
        """
        if self._problems:
            raise self.error()

    def error(self) -> InputError:
        """The error with all problems so far."""
        return InputError(self._refusal, self._problems)
