"""What a converted run could not keep: one row each, never silently."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from judge.text import escape, shown

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
    """The changes of one run in the order of its turns; `turn_id` and `rank` say what is being converted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.turn_id: str | None = None
        self.rank: int | None = None
        self.rows: list[Change] = []

    def dropped(self, what: str, before: str, after: str = "") -> None:
        """Note something that the target has no room for."""
        self._add(what, before, after, dropped=True)

    def altered(self, what: str, before: str, after: str) -> None:
        """Note something that the target says in another way."""
        self._add(what, before, after, dropped=False)

    def _add(self, what: str, before: str, after: str, *, dropped: bool) -> None:
        self.rows.append(Change(self.file, self.turn_id, self.rank, what, before, after, dropped))


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "passage"), counted(12, "passage")
    ('1 passage', '12 passages')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
