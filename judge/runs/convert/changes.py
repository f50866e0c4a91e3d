"""What a converted run could not keep, in a row each or a row for all of a kind; never silently."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from judge.text.cells import count
from judge.text.safe import escape, shown

HEADER = ("file", "turn_id", "rank", "what", "from", "to")


class Change(msgspec.Struct, frozen=True):
    """One thing that the target says otherwise than the source, or not at all."""

    file: str
    """Name of the source file."""
    turn_id: str | None
    """None where it is the whole run's."""
    rank: int | None
    what: str
    before: str
    after: str
    dropped: bool
    """Whether information is lost, and not only put another way."""


class Changes:
    """The changes of one run in the order of its turns; `turn_id` and `rank` say what is being converted.

    What the target says otherwise of a whole kind of thing is counted, and is one row for the run.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.turn_id: str | None = None
        self.rank: int | None = None
        self._rows: list[Change] = []
        self._sums: Counter[tuple[str, str, str, bool]] = Counter()

    @property
    def rows(self) -> tuple[Change, ...]:
        """All changes, last those of the whole run."""
        sums = (
            Change(self.file, None, None, what, count(number, noun), after, dropped)
            for (what, noun, after, dropped), number in self._sums.items()
        )
        return (*self._rows, *sums)

    def dropped(self, what: str, before: str, after: str = "") -> None:
        """Note something that the target has no room for."""
        self._add(what, before, after, dropped=True)

    def altered(self, what: str, before: str, after: str) -> None:
        """Note something that the target says in another way."""
        self._add(what, before, after, dropped=False)

    def dropped_all(self, what: str, number: int, noun: str, after: str = "") -> None:
        """Count things of a kind that the target has no room for."""
        self._sum(what, number, noun, after, dropped=True)

    def altered_all(self, what: str, number: int, noun: str, after: str) -> None:
        """Count things of a kind that the target says in another way."""
        self._sum(what, number, noun, after, dropped=False)

    def _sum(self, what: str, number: int, noun: str, after: str, *, dropped: bool) -> None:
        if number:
            self._sums[what, noun, after, dropped] += number

    def _add(self, what: str, before: str, after: str, *, dropped: bool) -> None:
        self._rows.append(Change(self.file, self.turn_id, self.rank, what, before, after, dropped))


def listed(texts: Iterable[str]) -> str:
    """Texts of strangers in one cell, each shown shortened."""
    return ", ".join(shown(text) for text in texts)


def tally(changes: Iterable[Change]) -> tuple[tuple[str, bool, int], ...]:
    """What changed, whether something was lost, and how often; in the order of the alphabet."""
    counts = Counter((change.what, change.dropped) for change in changes)
    return tuple((what, dropped, count) for (what, dropped), count in sorted(counts.items()))


def conversion_tsv(changes: Iterable[Change]) -> bytes:
    """The log as tab-separated lines under a header; whole runs have `*` for the turn, rank 0 does not occur."""
    lines = ["\t".join(HEADER)]
    for change in changes:
        rank = "" if change.rank is None else str(change.rank)
        cells = (change.file, change.turn_id or "*", rank, change.what, change.before, change.after)
        lines.append("\t".join(map(escape, cells)))
    return ("\n".join(lines) + "\n").encode()
