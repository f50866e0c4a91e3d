"""A picture of two rankings: a line for each name from its place in the first to its place in the second."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from judge.io.draw.canvas import GRAY, INK, ORANGE, VERMILION, blank, drawn, legend, rendered, styled, title

_NAME, _HEADING = 40, 80
_COLORS = (GRAY, ORANGE, VERMILION)


class RankLine(NamedTuple):
    """A name in two rankings."""

    name: str
    left: tuple[int, str]
    """Its rank, 1 for the best, and its value in words."""
    right: tuple[int, str]
    emphasis: int
    """Which of the meanings of the picture holds, from 0."""


def slope_plot(
    lines: Sequence[RankLine], sides: Sequence[str], meanings: Sequence[str], heading: str
) -> tuple[bytes, bytes]:
    """Names by rank on both sides, as (SVG, PNG); names of one rank stand below each other in the order given.

    Args:
        lines: The names.
        sides: What the left ranking and the right one are by.
        meanings: What a gray, an orange and a red line mean, in this order.
        heading: The title of the picture.
    """
    with styled():
        figure, axes = blank(len(lines))
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlim(0, 1)
        places = [_places([line.left[0] for line in lines]), _places([line.right[0] for line in lines])]
        for line, first, second in zip(lines, *places, strict=True):
            color = _COLORS[line.emphasis]
            axes.plot(
                (0, 1), (first, second), "o-", color=color, markersize=4, linewidth=1 + 0.4 * line.emphasis,
                zorder=2 + line.emphasis, clip_on=False,
            )  # fmt: skip
            name = drawn(line.name, _NAME)
            _write(axes, 0, first, f"{name}   {line.left[1]}   {line.left[0]}")
            _write(axes, 1, second, f"{line.right[0]}   {line.right[1]}   {name}")
        for end, text in enumerate(sides):
            _write(axes, end, -1, drawn(text, _NAME), color=GRAY)
        used = sorted({line.emphasis for line in lines})
        legend(figure, axes, [("o", _COLORS[kind], _COLORS[kind], meanings[kind]) for kind in used])
        title(axes, drawn(heading, _HEADING))
        return rendered(figure)


def _places(ranks: Sequence[int]) -> list[int]:
    """The row of each name, so that no two share one."""
    order = sorted(range(len(ranks)), key=lambda place: (ranks[place], place))
    rows = [0] * len(ranks)
    for row, place in enumerate(order):
        rows[place] = row
    return rows


def _write(axes: Any, end: int, row: float, text: str, *, color: str = INK) -> None:
    axes.annotate(
        text, (end, row), (8 if end else -8, 0), textcoords="offset points", ha="left" if end else "right", va="center",
        size=8, color=color, annotation_clip=False, parse_math=False,
    )  # fmt: skip
