"""A picture of values with their intervals, a row for each name."""

from collections.abc import Sequence

from judge.io.cells import interval
from judge.io.draw.canvas import (
    BLUE,
    GRAY,
    PALE_BLUE,
    VERMILION,
    blank,
    drawn,
    left,
    legend,
    name_axis,
    rendered,
    right,
    styled,
    title,
)
from judge.records import Estimate

_NAME, _HEADING = 44, 90


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

    Args:
        rows: Names, and what is drawn of each.
        axis: What the values are.
        heading: The title of the picture.
        unit: What `n` of an estimate counts, in the plural: `turns`.
        marks: Another value for each row, drawn beside its own, such as a published one; None draws none.
        names: What the values and the marks are; used with marks.
        margin: A band from minus to plus this number is drawn behind the rows, with a line at 0.
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
        title(axes, drawn(heading, _HEADING))
        return rendered(figure)
