"""A sheet as a table for a spreadsheet: a row for each response and criterion, with a cell to fill in. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

from judge.gold.sheets.items import GoldSheet, Share, SheetItem
from judge.gold.words import CANNOT, UNABLE
from judge.text.safe import disarmed

COLUMNS = ("turn_id", "response_id", "criterion", "assessor", "grade", "comment", "about the user", "conversation")
"""Columns of the sheet, before the response and its passages."""


def sheet_csv(sheet: GoldSheet, share: Share) -> bytes:
    """The rows that one assessor fills in."""
    header = (*COLUMNS, "response", *(("passages",) if sheet.shows_passages else ()))
    rows = (
        (item.turn_id, item.response_id, criterion, share.assessor, "", "", *texts[: len(header) - 6])
        for item in share.items
        for texts in [_texts(item)]
        for criterion in item.criteria
    )
    return table_bytes(header, rows)


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


def _texts(item: SheetItem) -> tuple[str, str, str, str]:
    return "\n".join(f"- {text}" for text in item.statements), said(item), item.response, numbered(item.passages)
