"""The report as one page of HTML: nothing is loaded from anywhere, and every text of a stranger stays text."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape

from judge.io.files import StrPath
from judge.io.installed import __version__
from judge.io.page import level, look, policy, render_page
from judge.io.table import Cell, Column, Plot, Table
from judge.io.text import interval, number
from judge.jobs.judged import JudgedFolder
from judge.records import Estimate
from judge.report import Content, Section
from judge.report.gather import gather
from judge.report.listing import json_block, listing

_PAGES = Path(__file__).parent / "pages"


class Browser(NamedTuple):
    """The parts of a page that show judgments; `page` puts them into the report."""

    markup: Markup
    """The section's content, with the data in an inert block."""
    style: str
    script: str


def browse(
    folders: Mapping[str, JudgedFolder | Path],
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    columns: Sequence[str] = (),
) -> Browser:
    """The judgments of folders by name, as `gather` takes them, or a sample of very many.

    An InputError if a file is damaged. A UsageError if there is no such prompt.
    """
    data = Markup(json_block(listing(gather(folders, gold, criterion, prompts, columns=columns))))  # noqa: S704 - begins no tag
    return Browser(
        markup=Markup(render_page(_PAGES, "browser.html.j2", data=data)),  # noqa: S704 - of a template that escapes
        style=(_PAGES / "browser.css").read_text(encoding="utf-8"),
        script=(_PAGES / "browser.js").read_text(encoding="utf-8"),
    )


_LINKS = {
    "corrected": "Corrected",
    "verdict": "The judge",
    "judgment-counts": "Counts",
    "cost": "Cost",
    "by-depth": "By depth",
    "submissions": "Submissions",
    "failures": "Missing",
    "recheck": "Asked again",
    "made": "Making",
}
"""Sections with a long title to what they are called in the list of all sections."""
_SHORT, _NAME = 28, 60
"""Characters of the longest words, and of the longest name, that are never broken."""
_NUMERAL = re.compile(
    r"\$?(?P<value>[-+]?\d[\d,]*(?:\.\d+)?)(?: ?%| of [\d,]+| to \d+|/\d+| (?P<unit>s|min|h))?|nothing|-", re.ASCII
)
"""What is aligned and sorted as a number, though it is a text."""
_SECONDS = {"min": 60, "h": 3600}
SHADES = 8
"""Depths of shading that the style sheet knows."""


class Shown(msgspec.Struct, frozen=True):
    """A cell as the template writes it."""

    text: str
    classes: str = ""
    detail: str = ""
    """What stands smaller behind the text, such as an interval."""
    grades: Mapping[int, int] = {}
    """What is drawn in place of a text; below a heading, the grades of the column."""
    value: float | None = None
    """What the line is sorted by."""
    about: str = ""
    """What the cells below a heading say."""


def report_page(content: Content, browser: Browser) -> bytes:
    """The page."""
    style = look() + (_PAGES / "report.css").read_text(encoding="utf-8") + browser.style
    scripts = [text for text in ((_PAGES / "report.js").read_text(encoding="utf-8"), browser.script) if text]
    page = render_page(
        _PAGES,
        "report.html.j2",
        content=content,
        links=section_links(content.sections),
        browser=browser,
        style=Markup(style),  # noqa: S704 - our own style sheets
        scripts=[Markup(text) for text in scripts],  # noqa: S704 - our own scripts
        policy=policy(scripts, [style]),
        kind=lambda part: type(part).__name__,
        shown=shown_cells,
        pictured=pictured,
        sortable=lambda table: not {"run", "judge"}.isdisjoint(table.names),
        ticks=ticks,
        place=place,
        level=level,
        breakable=lambda text: Markup("_<wbr>").join(text.split("_")),
        coded=coded,
        interval=interval,
        version=__version__,
    )
    return page.encode()


def coded(text: str) -> Markup:
    """A note, in which a command in backticks shows as code, as it does in Markdown."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def section_links(sections: Sequence[Section]) -> dict[str, str]:
    """What each section is called in the list of all, by its name: without its criterion where there is one."""
    links = {section.name: _LINKS.get(section.name, section.title) for section in sections}
    for kind, word in (("leaderboard-", "Leaderboard"), ("sentences-", "Sentences"), ("agreement-", "Agreement")):
        names = [name for name in links if name.startswith(kind)]
        for name in names:
            _, colon, criterion = links[name].partition(": ")
            if colon:
                links[name] = word if len(names) == 1 else f"{word}: {criterion}"
    return links


def shown_cells(table: Table[Any]) -> tuple[list[Shown], list[list[Shown]], int]:
    """Head and lines of a table, and the column that names the lines."""
    # A rank comes first where there is one, and it names nobody.
    named = table.names.index("run") if "run" in table.names else 0
    texts = [*table.cells()]
    words = {
        place for place in table.words() if place == named or not all(_NUMERAL.fullmatch(row[place]) for row in texts)
    }
    head = [_head(column, [row[place] for row in table], place in words) for place, column in enumerate(table.columns)]
    shares = table.shares or ((None,) * len(head),) * len(table)
    rows: list[list[Shown]] = []
    for index, (line, line_texts, shades) in enumerate(zip(table, texts, shares, strict=True)):
        row = []
        for place, (cell, text, share) in enumerate(zip(line, line_texts, shades, strict=True)):
            stands_out = index == table.chosen and place == named
            row.append(_cell(cell, text, share, is_word=place in words, stands_out=stands_out))
        rows.append(row)
    return head, rows, named


def pictured(table: Table[Any]) -> list[tuple[Plot, str]]:
    """What is drawn above a table: first close to its values, then over the whole scale; once where both are alike."""
    plot = table.plot
    if plot is None:
        return []
    ends = [
        value
        for marks in plot.lines
        for estimate, _ in marks
        for value in (estimate.value, estimate.low, estimate.high)
        if value is not None
    ]
    whole = [(plot, "whole")]
    if not ends or max(ends) - min(ends) > 0.6 * (plot.high - plot.low):
        return whole
    step = _step(max(ends) - min(ends))
    low = math.floor(min(ends) / step - 0.1) * step
    high = math.ceil(max(ends) / step + 0.1) * step
    return [(msgspec.structs.replace(plot, low=max(low, plot.low), high=min(high, plot.high)), "close"), *whole]


def _head(column: Column, cells: Sequence[Cell], is_word: bool) -> Shown:
    """A heading; a column of bars has the color of each grade under it."""
    grades: dict[int, int] = {}
    for cell in cells:
        if isinstance(cell, Mapping):
            grades |= cell
    if grades:
        return Shown(column.name, "drawn", grades=grades, about=column.about)
    text, _, interval = column.name.partition(" [")
    return Shown(text, "" if is_word else "number", f"[{interval}" if interval else "", about=column.about)


def _cell(cell: Cell, text: str, share: float | None, *, is_word: bool, stands_out: bool) -> Shown:
    shade = "" if share is None else f" shade-{round(share * SHADES)}"
    if isinstance(cell, Mapping):
        return Shown(text, "drawn", grades=cell)
    if is_word:
        chosen = " chosen" if stands_out else ""
        most = _SHORT if " " in text else _NAME
        return Shown("" if cell is None else text, ("word" if len(text) > most else "short") + chosen)
    value = _value(cell, text)
    ends = ""
    if isinstance(cell, Estimate):
        text, _, ends = text.partition(" ")
    elif isinstance(cell, int) and not isinstance(cell, bool):
        text = f"{cell:,}"
    return Shown("" if cell is None else text, f"number{shade}", ends, value=value)


def _value(cell: Cell, text: str) -> float | None:
    """The number behind a cell, of a duration in seconds; None where there is none."""
    if isinstance(cell, Estimate):
        return cell.value
    if not isinstance(cell, str):
        return None if cell is None or isinstance(cell, Mapping) else float(cell)
    found = _NUMERAL.fullmatch(text)
    if found is None or found["value"] is None:
        return 0.0 if text == "nothing" else None
    return float(found["value"].replace(",", "")) * _SECONDS.get(found["unit"], 1)


_TICKS = 5
"""Most ticks of an axis."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0)
"""Distances of ticks that are easy to read."""


def place(plot: Plot, value: float) -> str:
    """The place of a value on the axis, as a share of its width; what lies beyond an end is drawn at the end."""
    share = (value - plot.low) / (plot.high - plot.low) if plot.high > plot.low else 0.5
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def ticks(plot: Plot) -> list[tuple[float, str]]:
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
