"""Lists of problems, limited for each code and file: nobody reads a list of a million wrong labels."""

from collections import Counter
from collections.abc import Iterable
from typing import Self

from judge.records import Problem, Severity

MOST_LISTED = 100
"""Problems of one code and file that are listed; the others are counted."""


class LabelProblems(list[Problem]):
    """The first MOST_LISTED problems of each code and file; `rest` says how many more there were."""

    def __init__(self) -> None:
        super().__init__()
        self._times: Counter[tuple[str, Severity, str]] = Counter()

    def append(self, problem: Problem) -> None:
        """Take a problem: list it, or count it."""
        if self.listing(problem.code, problem.severity, problem.file):
            super().append(problem)

    def __iadd__(self, problems: Iterable[Problem]) -> Self:  # type: ignore[override, misc]
        """Take several."""
        for problem in problems:
            self.append(problem)
        return self

    def listing(self, code: str, severity: Severity, file: str) -> bool:
        """Count a problem and say whether to list it; its message is worth making only then."""
        self._times[code, severity, file] += 1
        return self._times[code, severity, file] <= MOST_LISTED

    def note(self, problem: Problem) -> None:
        """List a problem that `listing` has counted."""
        super().append(problem)

    def total(self, severity: Severity) -> int:
        """How many there were, listed or not."""
        return sum(n for (_, of, _), n in self._times.items() if of == severity)

    def rest(self) -> list[Problem]:
        """A problem for each code and file that has unlisted problems, with their number."""
        return [
            Problem(code, severity, file, None, "", f"{n - MOST_LISTED:,} more of these, not listed")
            for (code, severity, file), n in self._times.items()
            if n > MOST_LISTED
        ]
