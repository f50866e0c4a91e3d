"""What a shared journal's completions took, and whether they are what was recorded."""

import contextlib
from collections.abc import Iterator

from judge.models.journal_check import JournalReport
from judge.models.journal_rows import COLUMNS, contradiction
from judge.models.shared.reader import SharedReader, checked_row
from judge.models.spending import JournalSpending, spending_of

_SPENT = tuple(COLUMNS.index(name) for name in ("judge", "completion", "form", "recorded"))


def shared_spending(url: str) -> tuple[JournalSpending, ...]:
    """What each judge's completions in a shared journal took, in natural order of the judges' names.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: It holds no journal, or a damaged one.
        OperationalError: It cannot be reached.
    """
    with contextlib.closing(SharedReader(url)) as journal:

        def spent() -> Iterator[tuple[str, str, str, str]]:
            for row in journal.rows():
                checked_row(journal.name, row)
                yield row[_SPENT[0]], row[_SPENT[1]], row[_SPENT[2]], row[_SPENT[3]]

        return spending_of(spent())


def verify_shared(url: str) -> JournalReport:
    """Check every completion of a shared journal; nothing is changed. Errors are those of `shared_spending`."""
    sound = unsealed = 0
    problems: list[tuple[str, str]] = []
    with contextlib.closing(SharedReader(url)) as journal:
        for row in journal.rows():
            if why := contradiction(row):
                problems.append((str(row[0]), why))
            else:
                sound += 1
                unsealed += row[-1] is None
    return JournalReport(sound, unsealed, tuple(problems))
