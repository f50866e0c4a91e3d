import re
from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from judge.io.draw import RankLine, curve_plot, interval_plot, slope_plot
from judge.records import Estimate

pytestmark = pytest.mark.usefixtures("pictures")
WHOLE = Estimate(0.5, 0.4, 0.6, 10, 5)
BARE = Estimate(0.3, None, None, 1, 1, "fewer than 3 topics")
ABSENT = Estimate(None, None, None, 0, 0, "no values")
HOSTILE = "$\\frac{1}{0}$ <script>\u202e一"
RANKS = [
    RankLine(HOSTILE + "x" * 300, (1, "0.900"), (2, "0.400"), 2),
    RankLine("b", (2, "0.500"), (1, "0.800"), 1),
    RankLine("c", (2, "0.500"), (2, "0.400"), 0),
]


def test_an_interval_is_a_line_of_its_length() -> None:
    svg, _ = interval_plot([("a", Estimate(0.5, 0.25, 0.75, 4, 3)), ("b", Estimate(0.5, 0.0, 1.0, 4, 3))], "", "", "n")
    (short, long) = (
        float(ends[1]) - float(ends[0])
        for ends in re.findall(rb'd="M ([0-9.]+) [0-9.]+ \nL ([0-9.]+) [0-9.]+ \n" [^>]*stroke: #0072b2', svg)
    )
    assert long == pytest.approx(2 * short)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plot",
    [
        lambda: interval_plot([("a", WHOLE), (HOSTILE, BARE), ("c", ABSENT)], "nDCG@5", HOSTILE, "turns"),
        lambda: interval_plot([], "nDCG@5", "no runs", "turns"),
        lambda: curve_plot([(HOSTILE, [(1, WHOLE), (2, ABSENT)]), ("b", [(1, BARE)])], "depth", "nDCG@5", HOSTILE),
        lambda: curve_plot([("only", [(1, WHOLE)])], "depth", "nDCG@5", "by depth"),
        lambda: curve_plot([], "depth", "nDCG@5", "nothing"),
        lambda: slope_plot(RANKS, ("A: a.qrel", HOSTILE + "x" * 300), ("same", "swapped", "significant"), HOSTILE),
        lambda: slope_plot([], ("A", "B"), ("same", "swapped", "significant"), "none"),
    ],
)  # fmt: skip
def test_a_picture_is_the_same_bytes_each_time(plot: Callable[[], tuple[bytes, bytes]]) -> None:
    svg, png = plot()
    assert svg.startswith(b"<?xml") and png.startswith(b"\x89PNG")
    assert b"<script>" not in svg
    assert plot() == (svg, png)


def test_a_picture_is_drawn_once_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    drawings = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: (drawings.append(1), draw(self, renderer)))
    interval_plot([("a", WHOLE)], "nDCG@5", "by run", "turns")
    assert len(drawings) == 2
