"""Values with their intervals as SVG in the colors of the page, drawn line by line over one axis. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

from judge.report.parts import Mark, Plot
from judge.text.cells import interval, number

WIDTH, HEIGHT, _MARGIN = 180, 22, 8
_TICKS = 5
"""Most ticks of an axis."""


def axis(plot: Plot) -> Markup:
    """The numbers of the axis, for the head of the column; a screen reader has them in the table."""
    texts = [
        Markup('<text x="{}" y="11" text-anchor="{}">{}</text>').format(_place(plot, tick), _anchor(plot, tick), shown)
        for tick, shown in _ticks(plot)
    ]
    return _svg(14, "axis", Markup().join(texts))


def line(plot: Plot, marks: Sequence[Mark]) -> Markup:
    """The marks of one line of the table; the numbers stand beside it, so it is drawn for the eye alone."""
    middle = HEIGHT / 2
    parts = [
        Markup('<line class="tick" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(_place(plot, tick), HEIGHT)
        for tick, _ in _ticks(plot)
    ]
    for mark in marks:
        estimate = mark.estimate
        if estimate.low is not None and estimate.high is not None:
            parts.append(
                Markup('<line class="bar{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                    " hollow" if mark.hollow else "",
                    _place(plot, estimate.low),
                    _place(plot, estimate.high),
                    middle,
                    middle,
                )
            )
    for mark in marks:
        if mark.estimate.value is not None:
            place = _place(plot, mark.estimate.value)
            shape = Markup('<circle class="{}" cx="{}" cy="{}" r="4.5"><title>{}</title></circle>')
            parts.append(
                shape.format("dot hollow" if mark.hollow else "dot", place, middle, interval(mark.estimate, 2))
            )
    return _svg(HEIGHT, "line", Markup().join(parts))


def _svg(height: int, kind: str, inner: Markup) -> Markup:
    start = Markup(
        '<svg class="plot {}" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true" focusable="false">'
    )
    return start.format(kind, WIDTH, height, WIDTH, height) + inner + Markup("</svg>")


def _place(plot: Plot, value: float) -> str:
    """The place of a value on the axis, in pixels; what lies beyond an end is drawn at the end."""
    share = (value - plot.low) / (plot.high - plot.low) if plot.high > plot.low else 0.5
    return f"{_MARGIN + min(max(share, 0.0), 1.0) * (WIDTH - 2 * _MARGIN):.1f}"


def _anchor(plot: Plot, tick: float) -> str:
    return "start" if tick == plot.low else "end" if tick == plot.high else "middle"


def _ticks(plot: Plot) -> list[tuple[float, str]]:
    """Where the axis has a line, and the number there: each whole number, or five equal steps."""
    span = plot.high - plot.low
    if span <= 0:
        return [(plot.low, number(plot.low, 1))]
    if plot.low == int(plot.low) and plot.high == int(plot.high) and span >= 2:
        step = -(-int(span) // (_TICKS - 1))
        whole = range(int(plot.low), int(plot.high) + 1, step)
        return [(float(tick), str(tick)) for tick in whole]
    steps = [plot.low + span * n / (_TICKS - 1) for n in range(_TICKS)]
    return [(tick, number(tick, 2).removesuffix("0").removesuffix(".0")) for tick in steps]
