"""The report as one page of HTML: nothing is loaded from anywhere, and every text of a stranger stays text."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup

from judge.draw.page import look, policy, render_page
from judge.files.bundle import __version__
from judge.records import Estimate
from judge.report.browser import Browser
from judge.report.charts import axis, line
from judge.report.parts import Content, ReportTable
from judge.text.cells import number
from judge.text.table import Cell

_PAGES = Path(__file__).parent / "pages"
_SHORT = 28
"""Characters of the longest name that is never broken."""
SHADES = 8
"""Depths of shading that the style sheet knows."""


class Shown(msgspec.Struct, frozen=True):
    """A cell as the template writes it."""

    text: str
    classes: str = ""
    detail: str = ""
    """What stands smaller behind the text, such as an interval."""
    drawn: Markup = Markup()


class ShownTable(msgspec.Struct, frozen=True):
    """A table as the template writes it."""

    caption: str
    reading: str
    head: tuple[Shown, ...]
    rows: tuple[tuple[Shown, ...], ...]
    named: int
    """The column that names the lines."""


def report_page(content: Content, browser: Browser) -> bytes:
    """The page.

    Args:
        content: What the report says.
        browser: The judgments, to be filtered and read; empty where there are none to show.
    """
    style = look() + (_PAGES / "report.css").read_text(encoding="utf-8") + browser.style
    page = render_page(
        _PAGES,
        "report.html.j2",
        content=content,
        browser=browser,
        style=Markup(style),  # noqa: S704 - our own style sheets
        script=Markup(browser.script),  # noqa: S704 - our own script
        policy=policy([browser.script] if browser.script else [], [style], further=bool(browser.files)),
        kind=lambda part: type(part).__name__,
        table=shown_table,
        version=__version__,
    )
    return page.encode()


def shown_table(sheet: ReportTable) -> ShownTable:
    """The cells of a table, with its picture behind the first column of estimates, else as the last column."""
    grid, words = sheet.grid, sheet.grid.words()
    head = [Shown(name, "" if place in words else "number") for place, name in enumerate(grid.columns)]
    rows: list[list[Shown]] = []
    for number_of_line, (cells, texts) in enumerate(zip(grid, grid.cells(), strict=True)):
        shares: Sequence[float | None] = sheet.shares[number_of_line] if sheet.shares else ()
        rows.append(
            [
                _cell(cell, text, place in words, shares[place] if shares else None, grid.places)
                for place, (cell, text) in enumerate(zip(cells, texts, strict=True))
            ]
        )
    if sheet.plot is not None:
        place = min(grid.estimates(), default=len(head) - 1) + 1
        head.insert(place, Shown(sheet.plot.name, "drawn", drawn=axis(sheet.plot)))
        for row, marks in zip(rows, sheet.plot.lines, strict=True):
            row.insert(place, Shown("", "drawn", drawn=line(sheet.plot, marks)))
    # A rank comes first where there is one, and it names nobody.
    named = grid.columns.index("run") if "run" in grid.columns else 0
    return ShownTable(grid.title, sheet.reading, tuple(head), tuple(map(tuple, rows)), named)


def _cell(cell: Cell, text: str, is_word: bool, share: float | None, places: int) -> Shown:
    shade = "" if share is None else f" shade-{round(share * SHADES)}"
    if isinstance(cell, Estimate):
        value, _, ends = text.partition(" ")
        return Shown(value, f"number{shade}", ends)
    if isinstance(cell, float) and not is_word:
        return Shown(number(cell, places), f"number{shade}")
    if is_word:
        return Shown("" if cell is None else text, "word" if len(text) > _SHORT else "short")
    return Shown("" if cell is None else text, f"number{shade}")
