"""The report as one page of HTML: nothing is loaded from anywhere, and every text of a stranger stays text."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from judge.io.cells import interval, number
from judge.io.installed import __version__
from judge.io.page import look, policy, render_page
from judge.io.paths import StrPath
from judge.io.table import Cell, Mark, Plot, Strong, Table
from judge.jobs.judged import JudgedFolder
from judge.records import Estimate
from judge.report.gather import gather
from judge.report.listing import listing
from judge.report.parts import Content

INLINE = 10 << 20
"""The most bytes of packed tables inside the page; more of them lie in files beside it."""
BESIDE = "report-data"
"""The folder of these files."""
_PAGES = Path(__file__).parent / "pages"


class Browser(NamedTuple):
    """The parts of a page that show judgments; `page` puts them into the report."""

    markup: Markup
    """The section's content, with inert blocks of data."""
    style: str
    script: str
    files: Mapping[str, bytes]
    """Files beside the page, by name; none unless the judgments are too many for one page.

    The script adds them to the page as scripts, so the page's policy has to let it.
    """


def browse(
    folders: Mapping[str, JudgedFolder | Path],
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    inline: int = INLINE,
) -> Browser:
    """The judgments of folders by name, as `gather` takes them, or a sample of very many.

    `inline`: the most bytes of packed tables inside the page.

    Raises:
        InputError: A file is damaged.
        UsageError: There is no such prompt.
    """
    gathered = gather(folders, gold, criterion, prompts)
    listed = listing(gathered)
    # By the name that the script asks for it.
    chunks = {f"{name}-{n}": chunk for name, table in listed.tables.items() for n, chunk in enumerate(table.chunks)}
    files: dict[str, bytes] = {}
    if sum(map(len, chunks.values())) > inline:
        # Scripts, since a page that was opened from a disk may load nothing else.
        files = {
            f"{BESIDE}/{name}.js": f'document.currentScript.packed="{chunk}";\n'.encode()
            for name, chunk in chunks.items()
        }
    blocks = {"columns": listed.columns} | ({} if files else chunks)
    return Browser(
        markup=Markup(render_page(_PAGES, "browser.html.j2", blocks=blocks, beside=BESIDE if files else "")),  # noqa: S704 - of a template that escapes
        style=(_PAGES / "browser.css").read_text(encoding="utf-8"),
        script=(_PAGES / "browser.js").read_text(encoding="utf-8"),
        files=files,
    )


_SHORT, _NAME = 28, 60
"""Characters of the longest words, and of the longest name, that are never broken."""
_NUMERAL = re.compile(r"[-+$]?[\d,.]+( ?%| of [\d,.]+| to \d+| s| min| h)?|nothing")
"""What is aligned as a number, though it is a text."""
SHADES = 8
"""Depths of shading that the style sheet knows."""


class Shown(msgspec.Struct, frozen=True):
    """A cell as the template writes it."""

    text: str
    classes: str = ""
    detail: str = ""
    """What stands smaller behind the text, such as an interval."""
    drawn: Markup = Markup()


def report_page(content: Content, browser: Browser) -> bytes:
    """The page."""
    style = look() + (_PAGES / "report.css").read_text(encoding="utf-8") + browser.style
    boards = (_PAGES / "report.js").read_text(encoding="utf-8") if _sortable(content) else ""
    scripts = [text for text in (boards, browser.script) if text]
    page = render_page(
        _PAGES,
        "report.html.j2",
        content=content,
        browser=browser,
        style=Markup(style),  # noqa: S704 - our own style sheets
        scripts=[Markup(text) for text in scripts],  # noqa: S704 - our own scripts
        policy=policy(scripts, [style], further=bool(browser.files)),
        kind=lambda part: type(part).__name__,
        shown=shown_cells,
        pictured=pictured,
        axis=axis,
        line=line,
        interval=interval,
        version=__version__,
    )
    return page.encode()


def _sortable(content: Content) -> bool:
    return any(isinstance(part, Table) and "run" in part.columns for each in content.sections for part in each.parts)


def shown_cells(table: Table[Any]) -> tuple[list[Shown], list[list[Shown]], int]:
    """Head and lines of a table, and the column that names the lines.

    Its picture stands behind the first column of estimates, else as the last column, unless it stands above.
    """
    # A rank comes first where there is one, and it names nobody.
    named = table.columns.index("run") if "run" in table.columns else 0
    texts = [*zip(*table.cells(), strict=True)]
    words = (
        {
            place
            for place in table.words()
            if place == named
            or not all(cell == "-" or _NUMERAL.fullmatch(cell) for cell in texts[place : place + 1][0])
        }
        if texts
        else table.words()
    )
    head = [Shown(name, "" if place in words else "number") for place, name in enumerate(table.columns)]
    shares = table.shares or ((None,) * len(head),) * len(table)
    rows = [
        [_cell(*cell, place in words) for place, cell in enumerate(zip(cells, texts, shades, strict=True))]
        for cells, texts, shades in zip(table, table.cells(), shares, strict=True)
    ]
    if table.plot is not None and not table.plot.above:
        place = min(table.estimates(), default=len(head) - 1) + 1
        head.insert(place, Shown(table.plot.name, "drawn", drawn=axis(table.plot)))
        for row, marks in zip(rows, table.plot.lines, strict=True):
            row.insert(place, Shown("", "drawn", drawn=line(table.plot, marks)))
    return head, rows, named


def pictured(table: Table[Any]) -> list[tuple[Plot, str]]:
    """What is drawn above a table: first close to its values, then over the whole scale; once where both are alike."""
    plot = table.plot
    if plot is None or not plot.above:
        return []
    ends = [
        value
        for marks in plot.lines
        for mark in marks
        for value in (mark.estimate.value, mark.estimate.low, mark.estimate.high)
        if value is not None
    ]
    whole = [(plot, "whole")]
    if not ends or max(ends) - min(ends) > 0.6 * (plot.high - plot.low):
        return whole
    step = _step(max(ends) - min(ends))
    low, high = math.floor(min(ends) / step - 0.1) * step, math.ceil(max(ends) / step + 0.1) * step
    return [(msgspec.structs.replace(plot, low=max(low, plot.low), high=min(high, plot.high)), "close"), *whole]


def _cell(cell: Cell, text: str, share: float | None, is_word: bool) -> Shown:
    shade = "" if share is None else f" shade-{round(share * SHADES)}"
    if isinstance(cell, Estimate):
        value, _, ends = text.partition(" ")
        return Shown(value, f"number{shade}", ends)
    if is_word:
        chosen = " chosen" if isinstance(cell, Strong) else ""
        most = _SHORT if " " in text else _NAME
        return Shown("" if cell is None else text, ("word" if len(text) > most else "short") + chosen)
    text = f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else text
    return Shown("" if cell is None else text, f"number{shade}")


HEIGHT = 22
_TICKS = 5
"""Most ticks of an axis."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0)
"""Distances of ticks that are easy to read."""


def axis(plot: Plot) -> Markup:
    """The numbers of the axis, for the head of the column; a screen reader has them in the table."""
    anchors = {plot.high: "end", plot.low: "start"}
    texts = [
        Markup('<text x="{}" y="11" text-anchor="{}">{}</text>').format(
            _place(plot, tick), anchors.get(tick, "middle"), shown
        )
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
    start = Markup('<svg class="plot {}" width="100%" height="{}" aria-hidden="true" focusable="false">')
    return start.format(kind, height) + inner + Markup("</svg>")


def _place(plot: Plot, value: float) -> str:
    """The place of a value on the axis, as a share of its width; what lies beyond an end is drawn at the end."""
    share = (value - plot.low) / (plot.high - plot.low) if plot.high > plot.low else 0.5
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def _ticks(plot: Plot) -> list[tuple[float, str]]:
    """Where the axis has a line, and the number there: whole numbers, or steps that are easy to read."""
    span = plot.high - plot.low
    if span <= 0:
        return [(plot.low, number(plot.low, 1))]
    if plot.low == int(plot.low) and plot.high == int(plot.high) and span >= 2:
        step = -(-int(span) // (_TICKS - 1))
        whole = range(int(plot.low), int(plot.high) + 1, step)
        return [(float(tick), str(tick)) for tick in whole]
    distance = _step(span)
    steps = [
        n * distance for n in range(math.ceil(plot.low / distance - 0.01), math.floor(plot.high / distance + 0.01) + 1)
    ]
    return [(tick, number(tick, 2).removesuffix("0").removesuffix(".0")) for tick in steps]


def _step(span: float) -> float:
    """The smallest readable distance of which a span has no more than an axis has ticks."""
    return next((step for step in _STEPS if span / step <= _TICKS - 0.9), span)
