"""Pictures as SVG and PNG: intervals, curves and rankings, the same bytes for the same records.

Colors are those of Okabe and Ito, which color-blind readers can tell apart. Letters are drawn as paths, so that an SVG
looks the same everywhere; a character that DejaVu Sans lacks is shown as its Python escape.
"""

import io
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.io.installed import need_extra
from judge.io.text import interval, printable, shorten
from judge.records import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
GRAY = "#767676"
PALE = "#E4E4E4"
INK = "#222222"
PALE_BLUE = "#B8D8EA"
_LINE = 0.25
"""Inches between two rows."""
_WIDTH = 4.6
"""Inches of an x axis."""
_NAME, _HEADING = 44, 80
"""The most columns of a name and of a heading."""
_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 9, "text.color": INK, "text.usetex": False, "axes.edgecolor": GRAY,
    "axes.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.unicode_minus": True, "xtick.color": INK, "ytick.color": INK, "svg.fonttype": "path", "svg.hashsalt": "judge",
}  # fmt: skip


def blank(rows: int) -> "tuple[Figure, Axes]":
    """A figure and axes for so many rows, the first at the top; the figure grows when text is put beside them."""
    from matplotlib.figure import Figure

    height = _LINE * max(rows, 1)
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_ylim(max(rows, 1) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=PALE, linewidth=0.7)
    return figure, axes


def _write(axes: "Axes", text: str, at: tuple[float, float], points: tuple[float, float], **settings: Any) -> None:
    """Write text so many points away from a place."""
    axes.annotate(text, at, points, textcoords="offset points", annotation_clip=False, parse_math=False, **settings)


def left(axes: "Axes", place: int, text: str) -> None:
    """Write text that ends at the axes, in the row `place`."""
    _write(axes, text, (0, place), (-8, 0), xycoords=("axes fraction", "data"), ha="right", va="center")


def right(axes: "Axes", place: int, text: str, inches: float, *, color: str = INK) -> None:
    """Write text in the row `place`, in a column that starts so many inches to the right of the axes."""
    of = ("axes fraction", "data")
    _write(axes, text, (1, place), (8 + 72 * inches, 0), xycoords=of, va="center", color=color, size=8)


def name_axis(axes: "Axes", label: str) -> None:
    """Label the x axis, and leave room at its ends."""
    axes.set_xlabel(label, parse_math=False)
    axes.margins(x=0.04)


def title(axes: "Axes", text: str) -> None:
    """Write the title of the picture above the legend."""
    _write(axes, text, (0, 1), (0, 38), xycoords="axes fraction", size=10.5)


def legend(figure: "Figure", axes: "Axes", keys: Sequence[tuple[str, str, str, str]]) -> None:
    """Draw the legend above the axes; each key is marker, color, filling and meaning."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    axes.legend(
        handles=[
            Line2D([], [], marker=marker, color=color, markerfacecolor=face, linestyle="none", label=label)
            for marker, color, face, label in keys
        ],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        # Axes coordinates, a little higher.
        bbox_transform=axes.transAxes + ScaledTranslation(0, 16 / 72, figure.dpi_scale_trans),
        borderaxespad=0,
        ncols=len(keys),
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.4,
    )


def drawn(text: str, columns: int) -> str:
    """A name as the picture shows it, at most so many columns wide."""
    glyphs = _glyphs()
    return shorten(
        "".join(c if ord(c) in glyphs else c.encode("unicode_escape").decode() for c in printable(text)), columns
    )


@cache
def _glyphs() -> frozenset[int]:
    """The characters that DejaVu Sans has."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def styled() -> Any:
    """A context with our settings, not the user's, for every picture; a UsageError without matplotlib."""
    need_extra("pictures", "a picture")
    from matplotlib import style

    return style.context(["default", _STYLE])


def rendered(figure: "Figure") -> tuple[bytes, bytes]:
    """The figure as SVG and PNG without date or version, cut to what is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    svg = io.BytesIO()
    png = io.BytesIO()
    FigureCanvasAgg(figure)
    # Measured here, because `bbox_inches="tight"` draws the whole figure once more for each file.
    cut = figure.get_tightbbox().padded(0.15)
    FigureCanvasSVG(figure).print_figure(svg, format="svg", bbox_inches=cut, metadata={"Date": None, "Creator": None})
    FigureCanvasAgg(figure).print_figure(png, format="png", bbox_inches=cut, metadata={"Software": None}, dpi=144)
    return svg.getvalue(), png.getvalue()


def interval_plot(
    rows: Sequence[tuple[str, Estimate]],
    axis: str,
    heading: str,
    unit: str,
    *,
    marks: Sequence[float | None] = (),
    names: tuple[str, str] = ("", ""),
    margin: float | None = None,
) -> tuple[bytes, bytes]:
    """A row for each name, in the order given, as (SVG, PNG); a name without a value has a row too.

    `unit`: what `n` of an estimate counts, in the plural: `turns`. `marks`: another value for each row, drawn beside
    its own; None draws none. `margin`: a band from minus to plus this number is drawn behind the rows, with a line
    at 0.
    """
    with styled():
        figure, axes = blank(len(rows))
        if margin is not None:
            axes.axvspan(-margin, margin, color=PALE_BLUE, alpha=0.5, linewidth=0)
            axes.axvline(0, color=GRAY, linewidth=0.8, zorder=0.5)
        for place, (name, estimate) in enumerate(rows):
            if estimate.value is not None:
                if estimate.low is not None and estimate.high is not None:
                    axes.hlines(place, estimate.low, estimate.high, color=BLUE, linewidth=1.6)
                axes.plot(estimate.value, place, "o", color=BLUE, markersize=5.5, zorder=3)
            left(axes, place, drawn(name, _NAME))
            right(axes, place, interval(estimate), 0)
            right(axes, place, str(estimate.n), 1.75)
        for place, mark in enumerate(marks):
            if mark is not None:
                axes.plot(mark, place, "D", color=VERMILION, markerfacecolor="none", markersize=7, zorder=4)
        if marks:
            legend(figure, axes, [("o", BLUE, BLUE, names[0]), ("D", VERMILION, "none", names[1])])
        right(axes, -1, "value [95 %]", 0, color=GRAY)
        right(axes, -1, unit, 1.75, color=GRAY)
        name_axis(axes, axis)
        title(axes, drawn(heading, 90))
        return rendered(figure)


_CURVES = tuple(zip((BLUE, VERMILION, GREEN, ORANGE, GRAY), "osD^v", strict=True))
"""Color and marker of each line."""


def curve_plot(
    lines: Sequence[tuple[str, Sequence[tuple[int, Estimate]]]], x: str, y: str, heading: str
) -> tuple[bytes, bytes]:
    """A line for each name, with a bar for each interval, as (SVG, PNG); a point without a value leaves a gap.

    `lines`: names, and the points of each by rising x; up to five lines can be told apart.
    """
    with styled():
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(6.4, 3.4))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.grid(axis="y", color=PALE, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(True)
        for place, (name, points) in enumerate(lines):
            # Bars of several lines at one x would hide each other.
            shift = 0.12 * (place - (len(lines) - 1) / 2)
            color, marker = _CURVES[place % len(_CURVES)]
            for at, estimate in points:
                if estimate.low is not None and estimate.high is not None:
                    axes.vlines(at + shift, estimate.low, estimate.high, color=color, linewidth=1.2, alpha=0.6)
            values = [float("nan") if estimate.value is None else estimate.value for _, estimate in points]
            axes.plot(
                [at + shift for at, _ in points], values, marker, linestyle="-", color=color, markersize=4.5,
                label=drawn(name, _NAME),
            )  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(x, parse_math=False)
        axes.set_ylabel(y, parse_math=False)
        axes.set_title(
            drawn(heading, _HEADING), loc="left", size=10.5, pad=26 if len(lines) > 1 else 10, parse_math=False
        )
        if len(lines) > 1:
            legend = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2)
            for text in legend.get_texts():
                text.set_parse_math(False)
        return rendered(figure)


_EMPHASES = (GRAY, ORANGE, VERMILION)


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

    `meanings`: what a gray, an orange and a red line mean, in this order.
    """
    with styled():
        figure, axes = blank(len(lines))
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlim(0, 1)
        places = [_places([line.left[0] for line in lines]), _places([line.right[0] for line in lines])]
        for line, first, second in zip(lines, *places, strict=True):
            color = _EMPHASES[line.emphasis]
            axes.plot(
                (0, 1), (first, second), "o-", color=color, markersize=4, linewidth=1 + 0.4 * line.emphasis,
                zorder=2 + line.emphasis, clip_on=False,
            )  # fmt: skip
            name = drawn(line.name, 40)
            _beside(axes, 0, first, f"{name}   {line.left[1]}   {line.left[0]}")
            _beside(axes, 1, second, f"{line.right[0]}   {line.right[1]}   {name}")
        for end, text in enumerate(sides):
            _beside(axes, end, -1, drawn(text, 40), color=GRAY)
        used = sorted({line.emphasis for line in lines})
        legend(figure, axes, [("o", _EMPHASES[kind], _EMPHASES[kind], meanings[kind]) for kind in used])
        title(axes, drawn(heading, _HEADING))
        return rendered(figure)


def _places(ranks: Sequence[int]) -> list[int]:
    """The row of each name, so that no two share one."""
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    return sorted(range(len(ranks)), key=order.__getitem__)


def _beside(axes: "Axes", end: int, row: float, text: str, *, color: str = INK) -> None:
    points, side = ((8, 0), "left") if end else ((-8, 0), "right")
    _write(axes, text, (end, row), points, ha=side, va="center", size=8, color=color)
