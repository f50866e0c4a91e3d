"""A sheet as a table for a spreadsheet: a row for each response and criterion, with a cell to fill in."""

import csv
import io
from collections.abc import Iterable, Sequence

from judge.gold.grades import CANNOT, UNABLE
from judge.gold.sheets.items import GoldSheet, Share, SheetItem
from judge.io.safe import disarmed

COLUMNS = ("turn_id", "response_id", "criterion", "assessor", "grade", "comment", "about_user", "conversation")
"""Columns of the sheet, before the response and its passages."""
LARGEST_CELL = 32_767
"""The most characters that a spreadsheet shows in a cell."""


def sheet_csv(sheet: GoldSheet, share: Share) -> bytes:
    """The rows that one assessor fills in."""
    # A cell for each passage: a spreadsheet cuts a cell that holds them all.
    most = max(len(item.passages) for item in share.items) if share.items else 0
    rows = (
        (item.turn_id, item.response_id, criterion, share.assessor, "", "", *_texts(item, most))
        for item in share.items
        for criterion in item.criteria
    )
    return table_bytes((*COLUMNS, "response", *(f"passage_{n}" for n in range(1, most + 1))), rows)


def long_cells(sheet: GoldSheet) -> int:
    """How many texts are longer than a spreadsheet shows."""
    return sum(len(text) > LARGEST_CELL for item in sheet.items for text in _texts(item, len(item.passages)))


def levels_csv(sheet: GoldSheet) -> bytes:
    """What each grade means, below what to look at."""
    rows: list[tuple[str, str, str]] = []
    for rubric in sheet.rubrics:
        rows += [(rubric.criterion, "", paragraph) for paragraph in rubric.guidance]
        rows += [(rubric.criterion, str(grade), description) for grade, description in rubric.levels]
        rows.append((rubric.criterion, UNABLE, f"{CANNOT}."))
    return table_bytes(("criterion", "grade", "meaning"), rows)


def table_bytes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """A CSV file that spreadsheets read as UTF-8, in which no cell is a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([disarmed(cell) for cell in row] for row in rows)
    # Spreadsheets take a file without the mark for one in the encoding of their own country.
    return text.getvalue().encode("utf-8-sig")


def numbered(texts: Sequence[str]) -> str:
    """Passages under their numbers, as a judge sees them."""
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))


def said(item: SheetItem) -> str:
    """The conversation, a line for each utterance."""
    return "\n".join(f"{who}: {text}" for who, text in item.conversation)


def _texts(item: SheetItem, passages: int) -> tuple[str, ...]:
    """What is read, with as many cells for passages as the table has columns for them."""
    known = "\n".join(f"- {text}" for text in item.statements)
    return known, said(item), item.response, *item.passages, *[""] * (passages - len(item.passages))
