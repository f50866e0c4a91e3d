"""One table of labels with the number of each row: CSV, TSV, JSON, JSON Lines or Parquet, gzipped or not.

This module only checks that it is a table; `tables` reads the meaning of its cells.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from judge.crowd.annotations import annotation_rows
from judge.crowd.frames import LabelSheet, cell_text, typed_sheet
from judge.errors import InputError
from judge.io.line_stream import decode_lines
from judge.io.safe import shown
from judge.io.stored import most_values, read_stored, unpack
from judge.io.tabular import is_parquet, read_frame, read_table, read_text, too_many_cells
from judge.records import Problem

_DELIMITERS = ",\t;"


def read_sheet(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """Read the table in a file; None, and a problem, if the file is not a table.

    Cells may stand in quotation marks in CSV and TSV. Files without any are read whole, others record by record.
    """
    try:
        content = unpack(read_stored(path), str(path))
    except InputError as error:
        problems.append(Problem("unreadable_file", "error", str(path), None, "", str(error)))
        return None
    if is_parquet(content):
        return _parquet(str(path), content, problems)
    beginning = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if beginning == b"{":
        return _json_lines(str(path), content, problems)
    if beginning == b"[":
        return _json_list(str(path), content, problems)
    text = read_text(path, problems)
    if text is None:
        return None
    head = text.lstrip("\n").partition("\n")[0]
    if problem := too_many_cells(str(path), text.count("\n"), max(map(head.count, _DELIMITERS)) + 1):
        problems.append(problem)
        return None
    return _plain(path, text) or _quoted(path, problems)


def _plain(path: Path, text: str) -> LabelSheet | None:
    """A text table in which every line is a row; None if a cell is quoted or the table has problems."""
    import polars as pl

    text = text.removesuffix("\n")
    lines = text.count("\n") + 1
    if (
        '"' in text
        or "\n\n" in text
        or "\r\n\r" in text
        or text.count("\r") != text.count("\r\n") + text.endswith("\r")
    ):
        return None
    head = text.partition("\n")[0].rstrip("\r")
    delimiter = "\t" if _is_tsv(path) else max(_DELIMITERS, key=head.count)
    names = [name.strip() for name in head.split(delimiter)]
    # Polars would silently fill rows that are too short.
    if "" in names or len(set(names)) < len(names) or text.count(delimiter) != lines * (len(names) - 1):
        return None
    try:
        frame = pl.read_csv(
            text.encode(), separator=delimiter, quote_char=None, infer_schema=False, has_header=False, skip_rows=1
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.width != len(names):
        return None
    frame.columns = names
    numbers = np.arange(2, frame.height + 2)
    if any(frame[name].null_count() for name in names):
        # Spreadsheets export rows without any text.
        filled = frame.select(pl.any_horizontal(pl.all().str.strip_chars() != "").fill_null(False)).to_series()
        frame, numbers = frame.filter(filled), numbers[filled.to_numpy()]
    return LabelSheet(str(path), frame, numbers, "line") if frame.height else None


def _is_tsv(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))


def _quoted(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """A text table read record by record; every problem of its lines is reported."""
    import polars as pl

    before = len(problems)
    header, rows = read_table(path, problems)
    if not rows or len(problems) > before:
        return None
    columns = {name: [row.cells[name] for row in rows] for name in header if name}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(str(path), frame, np.array([row.line for row in rows]), "line")


def _json_lines(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    """One object a line."""
    before = len(problems)
    rows: list[tuple[int, dict[str, Any]]] = []
    names: set[str] = set()
    for number, row in decode_lines(content, dict[str, Any], file, "not_json"):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        names.update(row)
        if problem := too_many_cells(file, len(rows) + 1, len(names), most_values()):
            problems.append(problem)
            break
        rows.append((number, row))
    return _objects(file, rows, "line") if len(problems) == before else None


def _json_list(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    """One list of objects, counted from 1; tasks of Label Studio become a row for each annotation."""
    if sum(map(content.count, (b",", b"[", b"{"))) > most_values():
        message = f"more than {most_values():,} JSON values; --max-file-size allows more"
        problems.append(Problem("too_many_values", "error", file, None, "", message))
        return None
    try:
        values = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message, _, path = str(error).partition(" - at `")
        problems.append(Problem("not_json", "error", file, None, path.rstrip("`") or "$", message))
        return None
    rows = annotation_rows(values, file, problems)
    if not rows:
        problems.append(Problem("empty_file", "error", file, None, "", "the list holds no label"))
        return None
    if problem := too_many_cells(file, len(rows), len({name for _, row in rows for name in row}), most_values()):
        problems.append(problem)
        return None
    return _objects(file, rows, "entry")


def _objects(file: str, rows: Sequence[tuple[int, Mapping[str, Any]]], unit: str) -> LabelSheet:
    """Objects as rows; numbers are read as the texts that JSON writes them as."""
    import polars as pl

    columns: dict[str, list[str]] = {}
    numbers: list[int] = []
    cell_problems: dict[str, dict[int, Problem]] = {}
    for number, row in rows:
        for name, value in row.items():
            if isinstance(value, dict | list):
                message = f"{shown(value)}: expected a text or a number"
                problem = Problem("wrong_type", "error", file, None, f"{unit} {number}: $.{name[:60]}", message)
                cell_problems.setdefault(name, {})[number] = problem
            cells = columns.setdefault(name, [])
            # Rows that lack the field have empty cells.
            cells += [""] * (len(numbers) - len(cells))
            cells.append(cell_text(value))
        numbers.append(number)
    for cells in columns.values():
        cells += [""] * (len(numbers) - len(cells))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(file, frame, np.array(numbers, dtype=np.int64), unit, cell_problems)


def _parquet(file: str, content: bytes, problems: list[Problem]) -> LabelSheet | None:
    frame = read_frame(file, content, problems)
    return None if frame is None else typed_sheet(file, frame, problems)
