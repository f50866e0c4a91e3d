"""A table as lines of a limited width, drawn by rich. Pure.

Columns without anything to say go, texts are folded between words, and columns that do not fit beside the keys follow
in a further block under the same keys. Only a word wider than half of the lines is broken, or one of a column that does
not fit beside the keys.
"""

from collections.abc import Collection, Iterable, Sequence

from judge.io.cells import columns_of, fold

NOTHING = frozenset(("", "-"))
"""Cells without anything to say."""
_GAP = 2
_REMARK = "\ue001"
"""What stands for a remark while a table is drawn; no printable text has it."""


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    words: Collection[int] = (0,),
    keys: int | None = None,
    below: Sequence[str] = (),
    color: bool = False,
) -> list[str]:
    """The table in lines of at most `columns` columns: words to the left, numbers to the right.

    `words`: the places of the columns that hold words. `keys`: how many columns at the beginning name a row, so that
    each block has them (default: as many columns of words as tell all rows apart). `below`: a text for under each row,
    or an empty one. `color`: whether the header is bold.
    """
    named = keys or _naming(rows, words)
    widths = [max(map(columns_of, (name, *(row[place] for row in rows)))) for place, name in enumerate(header)]
    least = [
        min(columns // 2, _longest_word([header[place], *(row[place] for row in rows)])) if place in words else width
        for place, width in enumerate(widths)
    ]
    kept = [place for place in range(len(header)) if not place or not rows or _says(rows, place)]
    lead = [place for place in kept if place < named]
    lines: list[str] = []
    for number, block in enumerate(_blocks(lead, [place for place in kept if place >= named], least, columns)):
        wide = _widened(block, least, widths, columns)
        shape = [(header[place], place in words, wide.get(place)) for place in block]
        remarks = [] if number else [remark for remark in below if remark]
        cells: list[list[str]] = []
        for row, remark in zip(rows, below or [""] * len(rows), strict=True):
            cells += [[row[place] for place in block], *([[_REMARK]] if remark and remarks else [])]
        indent = " " * (min(widths[0], columns // 4) + _GAP if len(lead) > 1 else 2 * _GAP)
        lines += [""] if number else []
        for line in _drawn(shape, cells, columns, color):
            is_row = line.strip() != _REMARK
            lines += [line] if is_row else [indent + part for part in fold(remarks.pop(0), columns - len(indent))]
    return lines


def _naming(rows: Sequence[Sequence[str]], words: Collection[int]) -> int:
    leading = next((place for place in range(len(rows[0]) if rows else 0) if place not in words), 1)
    for n in range(1, leading + 1):
        if len({tuple(row[:n]) for row in rows}) == len(rows):
            return n
    return max(leading, 1)


def _says(rows: Sequence[Sequence[str]], place: int) -> bool:
    return not all(row[place] in NOTHING for row in rows)


def _blocks(lead: list[int], rest: list[int], least: Sequence[int], columns: int) -> list[list[int]]:
    blocks = [[*lead]]
    for place in rest:
        if len(blocks[-1]) > len(lead) and _taken([*blocks[-1], place], least) > columns:
            blocks.append([*lead])
        blocks[-1].append(place)
    return blocks


def _taken(block: Sequence[int], least: Sequence[int]) -> int:
    return sum(least[place] + _GAP for place in block) - _GAP


def _longest_word(texts: Iterable[str]) -> int:
    return max(columns_of(word) for text in texts for word in text.split(" "))


def _widened(block: Sequence[int], least: Sequence[int], widths: Sequence[int], columns: int) -> dict[int, int]:
    """The width of each column: at least that of its longest word; empty where these do not fit."""
    spare = columns - _taken(block, least)
    wide: dict[int, int] = {}
    for place in block if spare >= 0 else ():
        wide[place] = min(widths[place], least[place] + spare)
        spare -= wide[place] - least[place]
    return wide


def _drawn(
    shape: Sequence[tuple[str, bool, int | None]], cells: Sequence[Sequence[str]], columns: int, color: bool
) -> list[str]:
    """`shape`: the name of each column, whether it holds words, and its width, if that is settled."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for name, words, width in shape:
        table.add_column(Text(name), justify="left" if words else "right", overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    # Both sizes and every kind of output are said, so that nothing of the environment decides.
    kind = {"force_terminal": color, "color_system": "standard" if color else None, "force_jupyter": False}
    console = Console(width=columns, height=25, legacy_windows=False, **kind)  # type: ignore[arg-type]
    with console.capture() as drawn:
        console.print(table)
    return [line.rstrip() for line in drawn.get().splitlines()]
