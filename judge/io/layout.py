"""A table as lines of a limited width. Pure.

Columns without anything to say go, texts are folded between words, and columns that do not fit are left out, the last
ones first; a line below names them. Only a word wider than a third of the lines is broken, at a seam such as a hyphen.
"""

from collections.abc import Collection, Sequence

from judge.io.text import columns_of, fold, pad

NOTHING = frozenset(("", "-"))
"""Cells without anything to say."""
_GAP = 2
_FOLDED = 16
"""The fewest columns to which a text is folded."""


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    words: Collection[int] = (0,),
    keys: int | None = None,
    below: Sequence[str] = (),
    color: bool = False,
    whole: str = "",
) -> list[str]:
    """The table in lines of at most `columns` columns: words to the left, numbers to the right.

    `words`: the places of the columns that hold words. `keys`: how many columns at the beginning name a row, so that
    none of them is left out (default: as many columns of words as tell all rows apart); one more column stays.
    `below`: a text for under each row, or an empty one. `color`: whether the header is bold. `whole`: what has the
    columns that are left out, such as a file.
    """
    named = keys or _naming(rows, words)
    texts = [*zip(header, *rows, strict=True)]
    widths = [max(map(columns_of, column)) for column in texts]
    longest: list[int] = []
    for column in texts:
        longest.append(max(columns_of(word) for cell in column for word in cell.split(" ")))
    least = [
        min(width, max(columns // 3, _FOLDED), max(_FOLDED, longest[place])) if place in words else width
        for place, width in enumerate(widths)
    ]
    filled: set[int] = set()
    for row in rows:
        filled.update(place for place, cell in enumerate(row) if cell not in NOTHING)
    kept = [place for place in range(len(header)) if not place or not rows or place in filled]
    lead = sum(place < named for place in kept)
    left_out: list[int] = []
    while _taken(kept, least) > columns and len(kept) > lead + 1:
        left_out.insert(0, kept.pop())
    wide = _widened(kept, least, widths, columns, words)
    shape = [(place in words, wide[place]) for place in kept]
    indent = " " * (min(widths[0], columns // 4) + _GAP if lead > 1 else 2 * _GAP)
    names = _drawn([header[place] for place in kept], shape, high=False)
    lines = [f"\x1b[1m{line}\x1b[0m" for line in names] if color else names
    for row, remark in zip(rows, below or [""] * len(rows), strict=True):
        lines += _drawn([row[place] for place in kept], shape)
        if remark:
            lines += [indent + part for part in fold(remark, columns - len(indent))]
    if left_out:
        names = [header[place] for place in left_out]
        lines += fold(f"left out: {', '.join(names)} (wider terminal{f' or {whole}' if whole else ''})", columns)
    return lines


def _naming(rows: Sequence[Sequence[str]], words: Collection[int]) -> int:
    leading = next((place for place in range(len(rows[0]) if rows else 0) if place not in words), 1)
    for n in range(1, leading + 1):
        if len({tuple(row[:n]) for row in rows}) == len(rows):
            return n
    return max(leading, 1)


def _taken(block: Sequence[int], least: Sequence[int]) -> int:
    return sum(least[place] + _GAP for place in block) - _GAP


def _widened(
    block: Sequence[int], least: Sequence[int], widths: Sequence[int], columns: int, words: Collection[int]
) -> dict[int, int]:
    """The width of each column: at least that of its longest word, or as much as there is where these do not fit."""
    spare = columns - _taken(block, least)
    if spare < 0:
        return _narrowed({place: least[place] for place in block}, -spare, words)
    wide: dict[int, int] = {}
    for place in block:
        wide[place] = min(widths[place], least[place] + spare)
        spare -= wide[place] - least[place]
    return wide


def _narrowed(wide: dict[int, int], over: int, words: Collection[int]) -> dict[int, int]:
    """The widths less `over` columns, taken from the last of the widest columns of words, then from numbers."""
    for _ in range(over):
        # A wide character takes two columns.
        able = [place for place, width in wide.items() if width > 2]
        if able:
            wide[max(able, key=lambda place: (place in words, wide[place], place))] -= 1
    return wide


def _drawn(cells: Sequence[str], shape: Sequence[tuple[bool, int]], *, high: bool = True) -> list[str]:
    """The lines of a row; `shape`: whether each column holds words, and its width. Short cells stand high or low."""
    parts = [
        [cell] if columns_of(cell) <= width else fold(cell, width, "")
        for cell, (_, width) in zip(cells, shape, strict=True)
    ]
    height = max(map(len, parts))
    lines = []
    for place in range(height):
        line = []
        for part, (words, width) in zip(parts, shape, strict=True):
            at = place if high else place - height + len(part)
            text = part[at] if 0 <= at < len(part) else ""
            line.append(pad(text, width) if words else " " * (width - columns_of(text)) + text)
        lines.append((" " * _GAP).join(line).rstrip())
    return lines
