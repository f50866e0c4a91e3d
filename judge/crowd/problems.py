"""Lists of problems, limited for each code and file: nobody reads a list of a million wrong labels. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import Self

from judge.records import Problem, Severity

EXAMPLES = 3
"""Problems up to which each speaks for itself; beyond, the likely cause is named."""
MOST_LISTED = 100
"""Problems of one code and file that are listed; the others are counted."""


class LabelProblems(list[Problem]):
    """The first MOST_LISTED problems of each code and file; `rest` says how many more there were."""

    def __init__(self) -> None:
        super().__init__()
        self._times: Counter[tuple[str, Severity, str]] = Counter()
        self.causes: list[str] = []
        """What may have gone wrong, in words; a code of `CAUSES` has one anyway."""

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
            Problem(code, severity, file, None, "", f"{n - MOST_LISTED:,} more of these, not listed", n - MOST_LISTED)
            for (code, severity, file), n in self._times.items()
            if n > MOST_LISTED
        ]

    def likely(self) -> str:
        """The likely causes of the errors in words, empty if nothing is likely."""
        codes = dict.fromkeys(code for code, severity, _ in self._times if severity == "error")
        causes = [*self.causes, *(CAUSES[code] for code in codes if code in CAUSES)]
        return f"; likely cause: {'; '.join(dict.fromkeys(causes))}" if causes else ""


CAUSES: dict[str, str] = {
    "wrong_task": "the cells of tasks name turn and response in another way: say how, --task PATTERN",
    "unknown_item": "--bank is of another pool than the labels",
    "different_labels": "one export stands in two tables, or one id names two responses of a turn",
    "wrong_columns": "a cell holds the delimiter without quotation marks around it",
}
"""Code to the likely cause of many such problems."""
