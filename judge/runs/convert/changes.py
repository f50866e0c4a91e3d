"""The log of a conversion: a row for each value that is dropped or changed, or one row for a whole kind."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from judge.io.cells import count
from judge.io.safe import escape_cell, shown

HEADER = ("file", "turn_id", "rank", "what", "from", "to")


class Change(msgspec.Struct, frozen=True):
    """One value that the target drops or writes in another form."""

    file: str
    """Name of the source file."""
    turn_id: str | None
    """None for a change of the whole run."""
    rank: int | None
    what: str
    before: str
    after: str
    dropped: bool
    """Whether information is lost; False if it is only written in another form."""


class Changes:
    """The changes of one run in the order of its turns; `turn_id` and `rank` are those of the response in work.

    Changes of a whole kind are counted, and make one row for the run.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.turn_id: str | None = None
        self.rank: int | None = None
        self._rows: list[Change] = []
        self._sums: Counter[tuple[str, str, str, bool]] = Counter()

    @property
    def rows(self) -> tuple[Change, ...]:
        """All changes; those of the whole run come last."""
        sums = (
            Change(self.file, None, None, what, count(number, noun), after, dropped)
            for (what, noun, after, dropped), number in self._sums.items()
        )
        return (*self._rows, *sums)

    def dropped(self, what: str, before: str, after: str = "") -> None:
        """Log a value that the target cannot hold."""
        self._add(what, before, after, dropped=True)

    def altered(self, what: str, before: str, after: str) -> None:
        """Log a value that the target writes in another form."""
        self._add(what, before, after, dropped=False)

    def dropped_all(self, what: str, number: int, noun: str, after: str = "") -> None:
        """Count values of a kind that the target cannot hold."""
        self._sum(what, number, noun, after, dropped=True)

    def altered_all(self, what: str, number: int, noun: str, after: str) -> None:
        """Count values of a kind that the target writes in another form."""
        self._sum(what, number, noun, after, dropped=False)

    def _sum(self, what: str, number: int, noun: str, after: str, *, dropped: bool) -> None:
        if number:
            self._sums[what, noun, after, dropped] += number

    def _add(self, what: str, before: str, after: str, *, dropped: bool) -> None:
        self._rows.append(Change(self.file, self.turn_id, self.rank, what, before, after, dropped))


def listed(texts: Iterable[str]) -> str:
    """Texts from a run in one cell, each shortened and escaped."""
    return ", ".join(shown(text) for text in texts)


def tally(changes: Iterable[Change]) -> tuple[tuple[str, bool, int], ...]:
    """(what changed, whether it was lost, how often), in alphabetical order."""
    counts = Counter((change.what, change.dropped) for change in changes)
    return tuple((what, dropped, count) for (what, dropped), count in sorted(counts.items()))


def conversion_tsv(changes: Iterable[Change]) -> bytes:
    """The log as TSV under HEADER; a change of the whole run has the turn `*`."""
    lines = ["\t".join(HEADER)]
    for change in changes:
        rank = "" if change.rank is None else str(change.rank)
        cells = (change.file, change.turn_id or "*", rank, change.what, change.before, change.after)
        lines.append("\t".join(map(escape_cell, cells)))
    return ("\n".join(lines) + "\n").encode()
