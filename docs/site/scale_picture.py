"""The picture and the table of `docs/scale.md` about one machine, from what `bench/millions.py` printed.

    python -m bench.millions --judgments 10000 100000 1000000 > bench/results/millions.tsv
    python -m docs.site.scale_picture

Writes `docs/pictures/millions.svg` and the table of the document; a test fails where either is another one. The picture
is SVG by hand, so that one file serves light and dark pages and its bytes depend on no library.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from docs.site.pages import DOCS, PROJECT

MEASURED = PROJECT / "bench" / "results" / "millions.tsv"
PICTURE = DOCS / "pictures" / "millions.svg"
DOCUMENT = DOCS / "scale.md"

HEADER = ["judgments", "step", "wall_s", "cpu_s", "peak_mib", "exit"]
STEPS = ("run", "leaderboard", "journal verify", "journal stats", "journal export", "report")
"""The steps of the picture, which come first in the table."""
LISTED = (
    *("evaluate responses", "evaluate qrels", "leaderboard --gold", "calibrate", "drift", "gold plan", "crowd"),
    *("convert", "release", "journal reparse", "journal salvage", "journal merge"),
    *("requests", "completions import", "run --model replay"),
)
"""The steps of the table alone."""
LISTED_FROM = (100.0, 400.0)
"""CPU seconds and MiB; a step that took less of both is in neither picture nor table."""
_DONE = ("0", "1")
"""Exit codes of a step that did all of its work; 1 says that it found something."""
_ORDER = (*STEPS, *LISTED)
MARKERS = (
    "M0-4A4 4 0 1 1 0 4A4 4 0 1 1 0-4Z", "M-4-4H4V4H-4Z", "M0-5L5 4H-5Z", "M0-5.5L5.5 0L0 5.5L-5.5 0Z", "M0 5L5-4H-5Z",
    "M-4.5-1.5H-1.5V-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5Z",
)  # fmt: skip
"""A shape for each step, around its point."""
LIGHT = ("#0072b2", "#b8500b", "#00805c", "#a34f86", "#8a6a00", "#555e68")
DARK = ("#74bdf2", "#ff9c70", "#3fd0a5", "#e8a0cf", "#e6c14c", "#a5afba")


class Row(NamedTuple):
    """What a step took at one number of judgments."""

    judgments: int
    step: str
    wall: float
    cpu: float
    peak: float
    """MiB."""


class Axis(NamedTuple):
    """A logarithmic axis: the numbers at its ends, and where these are drawn."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def decades(self) -> list[int]:
        """The powers of ten on the axis, from 1 on."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        return [10**power for power in range(max(first, 0), last + 1)]


def read_rows(text: str) -> list[Row]:
    """The rows that `bench/millions.py` printed.

    Raises:
        ValueError: There is no row, the columns are others, a step is unknown or failed, or a number is not above zero.
    """
    head, *lines = text.splitlines() or [""]
    if text and head.split("\t") != HEADER:
        raise ValueError(f"line 1: found the columns {head!r}, expected {' '.join(HEADER)}")
    if not lines:
        raise ValueError("no row of measurements, so there is nothing to draw")
    rows = []
    for place, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(HEADER):
            raise ValueError(f"line {place}: found {len(cells)} columns, expected {len(HEADER)}")
        judgments, step, wall, cpu, peak, code = cells
        if step not in _ORDER or code not in _DONE:
            raise ValueError(
                f"line {place}: found {step!r} with exit {code}, expected one of {_ORDER} with exit 0 or 1"
            )
        row = Row(int(judgments), step, float(wall), float(cpu), float(peak))
        if min(row.judgments, row.wall, row.cpu, row.peak) <= 0:
            raise ValueError(f"line {place}: a logarithmic axis takes numbers above zero alone")
        rows.append(row)
    return sorted(rows, key=lambda row: (_ORDER.index(row.step), row.judgments))


def table(rows: Sequence[Row]) -> str:
    """The largest measurement of each large step as a Markdown table."""
    lines = ["| step | judgments | CPU seconds | peak memory |", "|---|--:|--:|--:|"]
    lines += [
        f"| `judge {row.step}` | {row.judgments:,} | {row.cpu:,.1f} | {row.peak:,.0f} MiB |"
        for row in {row.step: row for row in rows}.values()
        if row.cpu >= LISTED_FROM[0] or row.peak >= LISTED_FROM[1]
    ]
    return "\n".join(lines)


def style() -> str:
    """Colors of light and of dark pages."""

    def colors(card: str, ink: str, soft: str, grid: str, steps: Sequence[str]) -> str:
        lines = [f".card{{fill:{card}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}.grid{{stroke:{grid}}}"]
        lines += [f".slope{{stroke:{soft}}}"]
        lines += [f".s{place}{{stroke:{color};fill:{color}}}" for place, color in enumerate(steps)]
        return "".join(lines)

    return (
        f"{colors('#ffffff', '#1b1f24', '#555e68', '#e3e6ea', LIGHT)}\n"
        f"@media (prefers-color-scheme:dark){{{colors('#14171b', '#e6e9ed', '#a5afba', '#2b3138', DARK)}}}\n"
        'text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans","DejaVu Sans",sans-serif}'
        ".title{font-size:16px;font-weight:600}polyline{fill:none}"
    )


def panel(rows: Sequence[Row], value: Callable[[Row], float], left: float, title: str) -> list[str]:
    """One half of the picture: a line for each step, and one of slope 1 from the first point of the first step."""
    low, high = min(map(value, rows)), max(map(value, rows))
    bottom, top = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
    x = Axis(min(row.judgments for row in rows) / 1.5, max(row.judgments for row in rows) * 1.5, left + 52, left + 420)
    y = Axis(bottom, top if top > bottom else 10 * bottom, 400, 110)
    lines = [f'<text class="ink title" x="{left}" y="44">{title}</text>']
    for tick in y.decades():
        lines.append(f'<line class="grid" x1="{x.begin}" x2="{x.end}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}"/>')
        lines.append(f'<text class="soft" x="{x.begin - 8}" y="{y.at(tick) + 4:.1f}" text-anchor="end">{tick:,}</text>')
    for tick in x.decades():
        lines.append(f'<line class="grid" x1="{x.at(tick):.1f}" x2="{x.at(tick):.1f}" y1="{y.begin}" y2="{y.end}"/>')
        lines.append(f'<text class="soft" x="{x.at(tick):.1f}" y="{y.begin + 20}" text-anchor="middle">{tick:,}</text>')
    first = rows[0]
    factor = min(x.high / first.judgments, y.high / value(first))
    lines.append(
        f'<line class="slope" x1="{x.at(first.judgments):.1f}" y1="{y.at(value(first)):.1f}"'
        f' x2="{x.at(first.judgments * factor):.1f}" y2="{y.at(value(first) * factor):.1f}"/>'
    )
    for place, step in enumerate(STEPS):
        points = [(x.at(row.judgments), y.at(value(row))) for row in rows if row.step == step]
        if points:
            joined = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
            lines.append(f'<polyline class="s{place}" style="fill:none" points="{joined}" stroke-width="2"/>')
            lines += [
                f'<path class="s{place}" transform="translate({across:.1f} {up:.1f})" d="{MARKERS[place]}"/>'
                for across, up in points
            ]
    middle = (x.begin + x.end) / 2
    lines.append(f'<text class="soft" x="{middle}" y="{y.begin + 42}" text-anchor="middle">judgments</text>')
    return lines


def legend(rows: Sequence[Row]) -> list[str]:
    """The names of the steps, each beside its shape, in one line."""
    lines, left = [], 40.0
    there = {row.step for row in rows}
    for place, step in enumerate(STEPS):
        if step in there:
            lines.append(f'<path class="s{place}" transform="translate({left + 5:.0f} 74)" d="{MARKERS[place]}"/>')
            lines.append(f'<text class="ink" x="{left + 16:.0f}" y="78">{step}</text>')
            left += 44 + 7 * len(step)
    return lines


def picture(rows: Sequence[Row]) -> str:
    """The picture as SVG, of those rows whose steps it shows."""
    rows = [row for row in rows if row.step in STEPS]
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 480" role="img" aria-labelledby="title about">',
        '<title id="title">Seconds and peak memory by the number of judgments</title>',
        '<desc id="about">Two panels with logarithmic axes: the seconds and the peak memory of each step, over the'
        f" number of judgments from {min(row.judgments for row in rows):,} to {max(row.judgments for row in rows):,}."
        " A thin line shows what would grow as the judgments do.</desc>",
        f"<style>{style()}</style>",
        '<rect class="card" x="0.5" y="0.5" width="939" height="479" rx="10"/>',
        *panel(rows, lambda row: row.cpu, 40, "CPU seconds"),
        *panel(rows, lambda row: row.peak, 490, "Peak memory in MiB"),
        *legend(rows),
        '<text class="soft" x="470" y="468" text-anchor="middle">thin line: what would grow as the judgments do, from'
        f" the first point of judge {rows[0].step}</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


_BEGIN, _END = "<!-- millions: written by docs/site/scale_picture.py -->\n\n", "\n\n<!-- end of millions -->"


def with_table(text: str, rows: Sequence[Row]) -> str:
    """The document with the table of these rows."""
    parts = re.split(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", text, flags=re.DOTALL)
    if len(parts) != 2:
        raise ValueError(f"the document has {len(parts) - 1} places marked for the table, expected 1")
    return (_BEGIN + table(rows) + _END).join(parts)


if __name__ == "__main__":
    measured = read_rows(MEASURED.read_text(encoding="utf-8"))
    PICTURE.write_text(picture(measured), encoding="utf-8")
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8"), measured), encoding="utf-8")
