"""A table as lines of a limited width, for a terminal. Pure.

Where a table is wider: columns without anything to say go, names lose their middle, keys that many rows share become
headings, long texts move below their row, and what is left over follows in a second block under the same names.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from judge.io.cells import columns_of, fitting, fold, pad, shorten


def shortened(names: Iterable[str], columns: int) -> dict[str, str]:
    """Each name in at most `columns` columns, different names differently; a longer one loses its middle.

    Names that share both ends keep the part in which they differ. Names that nothing of this width tells apart are
    numbered in their order.

    >>> list(shortened(["group_with_a_name_run_3", "group_with_a_name_run_4"], 15).values())
    ['group_w…e_run_3', 'group_w…e_run_4']
    >>> list(shortened(["group_first_of_two_runs", "group_other_of_two_runs"], 12).values())
    ['gro…first_o…', 'gro…other_o…']
    """
    made: dict[str, str] = {}
    taken: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        taken.setdefault(shorten(name, columns), []).append(name)
    for short, alike in taken.items():
        cut = [short] if len(alike) == 1 else _where_different(alike, columns)
        made |= dict(zip(alike, cut, strict=True))
    if len(set(made.values())) < len(made):
        ends = [f"…{place}" for place in range(1, len(made) + 1)]
        made = {
            name: name if made[name] == name else f"{fitting(name, columns - columns_of(end))}{end}"
            for name, end in zip(made, ends, strict=True)
        }
    return made


def _where_different(names: list[str], columns: int) -> list[str]:
    """The start of each name, and what follows the part that all of them share."""
    same = next(place for place, signs in enumerate(zip(*names, strict=False)) if len(set(signs)) > 1)
    cut = []
    for name in names:
        head = fitting(name[:same], columns // 4)
        cut.append(f"{head}…{_to(name[same:], columns - columns_of(head) - 1)}")
    return cut


def _to(text: str, columns: int) -> str:
    return text if columns_of(text) <= columns else f"{fitting(text, columns - 1)}…"


NOTHING = frozenset(("", "-"))
"""Cells without anything to say."""
_GAP = 2
"""Spaces between two columns, and before a row under a heading."""
_BELOW = 4
"""Spaces before a text below a row."""
_SHORT = 16
"""The least columns that a long name is cut to; on a narrow terminal, a fifth of it."""
_TEXT = 40
"""The most columns of prose that stays in its row, where the table is too wide."""


class TableLine(NamedTuple):
    """A line of a table, and whether it names columns or a group of rows."""

    text: str
    heading: bool = False


class _Column(NamedTuple):
    """A column: its name and cells, whether these are words, may be cut, are prose, and need the column before."""

    name: str
    cells: tuple[str, ...]
    words: bool
    cut: bool
    prose: bool
    joined: bool

    def width(self, most: int) -> int:
        """The width where names have at most `most` columns."""
        widest = max(map(columns_of, self.cells), default=0)
        return max(min(widest, most) if self.cut else widest, min(columns_of(self.name), most))


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    words: Collection[int] = (0,),
    keys: int | None = None,
    joined: Collection[int] = (),
    below: Sequence[str] = (),
) -> list[TableLine]:
    """The table in lines of at most `columns` columns: words to the left, numbers to the right.

    `words`: the places of the columns that hold words. `keys`: how many columns at the beginning name a row, so that
    each block has them (default: as many columns of words as tell all rows apart). In all but the last of them, an
    empty cell is that of the row above. `joined`: the places of the columns that mean nothing without the one before
    them. `below`: a line for under each row, or an empty one.
    """
    named = keys or _naming(rows, words)
    every = [
        _column(place, name, [row[place] for row in rows], place in words, place < named, place in joined)
        for place, name in enumerate(header)
    ]
    kept = [
        place for place, column in enumerate(every) if not place or not rows or not NOTHING.issuperset(column.cells)
    ]
    lead = [every[place] for place in kept if place < named]
    rest = [every[place] for place in kept if place >= named]
    return list(_Arranged(lead, rest, list(below) or [""] * len(rows), columns).lines())


def _naming(rows: Sequence[Sequence[str]], words: Collection[int]) -> int:
    leading = next((place for place in range(len(rows[0]) if rows else 0) if place not in words), 1)
    for n in range(1, leading + 1):
        if len({tuple(row[:n]) for row in rows}) == len(rows):
            return n
    return max(leading, 1)


def _column(place: int, name: str, cells: Sequence[str], words: bool, key: bool, joined: bool) -> _Column:
    prose = words and not key and any(sign in cell for cell in cells for sign in (" ", ",", "://"))
    return _Column(name, tuple(cells), words, cut=not place or (words and not prose), prose=prose, joined=joined)


class _Arranged:
    """The columns of a table, arranged for a width."""

    def __init__(self, lead: list[_Column], rest: list[_Column], below: list[str], columns: int) -> None:
        self._headings: list[_Column] = []
        self._lead, self._rest, self._columns = lead, rest, columns
        self._below = [[line] if line else [] for line in below]
        self._under = 0
        self._least = min(_SHORT, columns // 5)
        self._most = max(map(columns_of, (text for column in (*lead, *rest) for text in (column.name, *column.cells))))
        while not self._fits(self._least, 1) and self._raise_heading():
            pass
        if not self._fits(self._least, 1):
            self._move_below()
        blocks = len(self._blocks(self._least))
        while self._most > self._least and not self._fits(self._most, blocks):
            self._most -= 1

    def lines(self) -> Iterator[TableLine]:
        for number, block in enumerate(self._blocks(self._most)):
            if number:
                yield TableLine("")
            yield from self._block([*self._lead, *block], with_below=not number)

    def _taken(self, columns: Sequence[_Column], most: int) -> int:
        inner = sum(column.width(most) + _GAP for column in columns) - _GAP
        return inner + (_GAP if self._headings else 0)

    def _fits(self, most: int, blocks: int) -> bool:
        made = self._blocks(most)
        return len(made) <= blocks and all(self._taken([*self._lead, *block], most) <= self._columns for block in made)

    def _blocks(self, most: int) -> list[list[_Column]]:
        """The other columns, in as many groups as fit beside the leading ones."""
        groups: list[list[_Column]] = []
        for column in self._rest:
            if column.joined and groups:
                groups[-1].append(column)
            else:
                groups.append([column])
        blocks: list[list[_Column]] = [[]]
        for group in groups:
            if blocks[-1] and self._taken([*self._lead, *blocks[-1], *group], most) > self._columns:
                blocks.append([])
            blocks[-1] += group
        return blocks

    def _raise_heading(self) -> bool:
        """Make a heading of the first key, if another key is left and the rows of one heading stand together."""
        first = self._lead[0]
        if len(self._lead) < 2:
            return False
        filled = _filled(first.cells)
        values = list(zip(*(column.cells for column in self._headings), filled, strict=True))
        groups = [value for value, _ in groupby(values)]
        if len(groups) > len(set(groups)) or 2 * len(groups) > len(values):
            return False
        self._headings.append(first._replace(cells=tuple(filled)))
        self._lead[0:2] = [self._lead[1]._replace(cut=True)]
        return True

    def _move_below(self) -> None:
        """Move long texts below their rows, and whatever is too wide to stand beside the leading columns."""
        room = self._columns - self._taken(self._lead, self._least) - _GAP
        for column in list(self._rest):
            width = column.width(self._least)
            if width > room or (column.prose and width > _TEXT):
                self._rest.remove(column)
                for place, cell in enumerate(column.cells):
                    if cell not in NOTHING:
                        self._below[place].append(f"{column.name}: {cell}" if column.name else cell)

    def _block(self, block: list[_Column], *, with_below: bool) -> Iterator[TableLine]:
        widths = [column.width(self._most) for column in block]
        short_names = shortened([column.name for column in block], self._most)
        names = [
            column.name if columns_of(column.name) <= width else short_names[column.name]
            for column, width in zip(block, widths, strict=True)
        ]
        before = " " * (_GAP if self._headings else 0)
        yield TableLine(before + _row(names, block, widths), heading=True)
        shown = [
            shortened(column.cells, width) if column.cut else {} for column, width in zip(block, widths, strict=True)
        ]
        indent = " " * (widths[0] + _GAP if len(self._lead) > 1 else _BELOW)
        last: tuple[str, ...] | None = None
        for place in range(len(block[0].cells)):
            group = tuple(column.cells[place] for column in self._headings)
            if group != last:
                last = group
                for text in fold(", ".join(part for part in group if part), self._columns) if group else ():
                    yield TableLine(text, heading=True)
            full = [column.cells[place] for column in block]
            cells = [short.get(cell, cell) for cell, short in zip(full, shown, strict=True)]
            yield TableLine(before + _row(cells, block, widths))
            for text in self._below[place] if with_below else ():
                for part in fold(text, self._columns - len(indent)):
                    yield TableLine(indent + part)


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells, each empty one as the one above."""
    filled: list[str] = []
    for cell in cells:
        filled.append(cell or (filled[-1] if filled else cell))
    return filled


def _row(cells: Sequence[str], columns: Sequence[_Column], widths: Sequence[int]) -> str:
    return "  ".join(
        pad(cell, width) if column.words else " " * (width - columns_of(cell)) + cell
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ).rstrip()
