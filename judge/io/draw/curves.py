"""A picture of lines over a number such as the depth of a turn."""

from collections.abc import Sequence

from judge.io.draw.canvas import BLUE, GRAY, GREEN, ORANGE, PALE, VERMILION, drawn, rendered, styled
from judge.records import Estimate

_COLORS = (BLUE, VERMILION, GREEN, ORANGE, GRAY)
_MARKERS = "osD^v"
_WIDTH, _HEIGHT = 6.4, 3.4
_NAME, _HEADING = 44, 80


def curve_plot(
    lines: Sequence[tuple[str, Sequence[tuple[int, Estimate]]]], x: str, y: str, heading: str
) -> tuple[bytes, bytes]:
    """A line for each name, with a bar for each interval, as (SVG, PNG); a point without a value leaves a gap.

    Args:
        lines: Names, and the points of each by rising x; up to five lines can be told apart.
        x: What the numbers are.
        y: What the values are.
        heading: The title of the picture.
    """
    with styled():
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.grid(axis="y", color=PALE, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(True)
        for place, (name, points) in enumerate(lines):
            # Bars of several lines at one x would hide each other.
            shift = 0.12 * (place - (len(lines) - 1) / 2)
            color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
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
