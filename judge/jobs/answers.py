"""Results beside the rows of the tables of answers that they are about: `results.csv`."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from judge.ask.records import Failure, Judgment
from judge.io.folder import Pieces
from judge.io.ids import nested
from judge.io.text import disarmed
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.formats.table import TableSource

RESULTS = "results.csv"
FILE = "file"
OWN = ("run", "turn_id")
"""The columns beside those of the table; `judge_` stands before one whose name the table has too."""
_BLOCK = 1_000
"""Rows that are written at once."""


def results_csv(
    sources: Sequence[TableSource],
    results: Sequence[Judgment | Failure],
    pool: Pool,
    criteria: Sequence[Criterion],
) -> Pieces:
    """The rows of the tables in their order, each with its run, its turn and what each criterion gave it.

    That is grade, rationale and reason. A row without a grade has the reason why, which may be that of its exclusion;
    one that a trial leaves out has none. Of several tables, a first column names the file. No cell is a formula for a
    spreadsheet, and none has a NUL, at which some programs stop reading: U+FFFD stands for it.
    """
    response_of = nested(
        (entry.run_id, response.turn_id, response.response_id) for response in pool.responses for entry in response.runs
    )
    # Places, because a million rationales would fill the memory.
    places = nested((result.criterion, result.response_id, place) for place, result in enumerate(results))
    excluded = {(one.run_id, one.turn_id): one.reason for one in pool.exclusions}
    names = [criterion.name for criterion in criteria]
    found = {name: places.get(name, {}) for name in names}
    return Pieces(lambda: _written(_rows(sources, response_of, excluded, results, found)))


def _brief(result: Judgment | Failure) -> tuple[str, str, str]:
    """The grade, the rationale, and the reason why there is no grade."""
    if isinstance(result, Failure):
        return "", "", result.reason
    rationale = result.rationale or ""
    return ("", rationale, "unable") if result.unable else (str(result.grade), rationale, "")


def _rows(
    sources: Sequence[TableSource],
    response_of: dict[str, dict[str, str]],
    excluded: dict[tuple[str, str], str],
    results: Sequence[Judgment | Failure],
    found: dict[str, dict[str, int]],
) -> Iterator[list[str]]:
    columns = list(dict.fromkeys(column for source in sources for column in source.table.columns))
    own = [*OWN, *(f"{name}_{part}" for name in found for part in ("grade", "rationale", "reason"))]
    header = [*columns, *(f"judge_{name}" if name in columns else name for name in own)]
    several = len(sources) > 1
    yield [FILE, *header] if several else header
    for source in sources:
        for row, (run_id, turn_id) in zip(source.table.again(), source.keys, strict=True):
            cells = [_text(row.cells.get(column)) for column in columns]
            cells += [run_id, turn_id]
            response_id = response_of.get(run_id, {}).get(turn_id, "")
            without = ("", "", excluded.get((run_id, turn_id), ""))
            for places in found.values():
                place = places.get(response_id)
                cells += without if place is None else _brief(results[place])
            yield [source.table.file, *cells] if several else cells


def _text(cell: Any) -> str:
    """A cell as text; a list as JSON."""
    if cell is None:
        return ""
    if isinstance(cell, list | dict):
        return msgspec.json.encode(cell, enc_hook=str).decode()
    return str(cell)


def _written(rows: Iterator[list[str]]) -> Iterator[bytes]:
    # Spreadsheets take a file without the mark for one in the encoding of their own country.
    yield b"\xef\xbb\xbf"
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    for number, row in enumerate(rows, 1):
        writer.writerow([disarmed(cell).replace("\0", "\ufffd") for cell in row])
        if number % _BLOCK == 0:
            yield _emptied(text)
    yield _emptied(text)


def _emptied(text: io.StringIO) -> bytes:
    written = text.getvalue().encode("utf-8", "replace")
    text.seek(0)
    text.truncate()
    return written
