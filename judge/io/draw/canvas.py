"""How every picture is drawn: colors, text beside the axes, bytes that depend only on the records.

Colors are those of Okabe and Ito, which color-blind readers can tell apart. Letters are drawn as paths, so that an SVG
looks the same everywhere; a character that DejaVu Sans lacks is shown as its Python escape.
"""

import io
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from judge.io.cells import shorten
from judge.io.extras import need_extra
from judge.io.safe import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
GRAY, PALE, INK, PALE_BLUE = "#767676", "#E4E4E4", "#222222", "#B8D8EA"
_LINE = 0.25
"""Inches between two rows."""
_WIDTH = 4.6
"""Inches of an x axis."""
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "text.usetex": False,
    "axes.edgecolor": GRAY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.unicode_minus": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "judge",
}


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


def left(axes: "Axes", place: int, text: str) -> None:
    """Write text that ends at the axes, in the row `place`."""
    axes.annotate(
        text,
        (0, place),
        (-8, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="center",
        annotation_clip=False,
        parse_math=False,
    )


def right(axes: "Axes", place: int, text: str, inches: float, *, color: str = INK) -> None:
    """Write text in the row `place`, in a column that starts so many inches to the right of the axes."""
    axes.annotate(
        text,
        (1, place),
        (8 + 72 * inches, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        color=color,
        size=8,
        annotation_clip=False,
        parse_math=False,
    )


def name_axis(axes: "Axes", label: str) -> None:
    """Label the x axis, and leave room at its ends."""
    axes.set_xlabel(label, parse_math=False)
    axes.margins(x=0.04)


def title(axes: "Axes", text: str) -> None:
    """Write the title of the picture above the legend."""
    axes.annotate(
        text,
        (0, 1),
        (0, 38),
        xycoords="axes fraction",
        textcoords="offset points",
        size=10.5,
        annotation_clip=False,
        parse_math=False,
    )


def legend(figure: "Figure", axes: "Axes", keys: Sequence[tuple[str, str, str, str]]) -> None:
    """Draw the legend above the axes; each key is marker, color, filling and meaning."""
    from matplotlib.lines import Line2D

    axes.legend(
        handles=[
            Line2D([], [], marker=marker, color=color, markerfacecolor=face, linestyle="none", label=label)
            for marker, color, face, label in keys
        ],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=_lifted(figure, axes),
        borderaxespad=0,
        ncols=len(keys),
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.4,
    )


def _lifted(figure: "Figure", axes: "Axes") -> Any:
    """Axes coordinates, a little higher."""
    from matplotlib.transforms import ScaledTranslation

    return axes.transAxes + ScaledTranslation(0, 16 / 72, figure.dpi_scale_trans)


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
    """A context with the settings above, regardless of the user's matplotlibrc; every picture begins with it.

    Raises:
        UsageError: matplotlib is not installed.
    """
    need_extra("pictures", "a picture")
    from matplotlib import style

    return style.context(["default", _STYLE])


def rendered(figure: "Figure") -> tuple[bytes, bytes]:
    """The figure as SVG and PNG without date or version, cut to what is drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    svg, png = io.BytesIO(), io.BytesIO()
    FigureCanvasAgg(figure)
    # Measured here, because `bbox_inches="tight"` draws the whole figure once more for each file.
    cut = figure.get_tightbbox().padded(0.15)
    FigureCanvasSVG(figure).print_figure(svg, format="svg", bbox_inches=cut, metadata={"Date": None, "Creator": None})
    FigureCanvasAgg(figure).print_figure(png, format="png", bbox_inches=cut, metadata={"Software": None}, dpi=144)
    return svg.getvalue(), png.getvalue()
