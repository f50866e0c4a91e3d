"""Tables of labels as sheets of cells: CSV, TSV, JSON, JSON Lines or Parquet, gzipped or not, and data frames.

This module only checks that something is a table; `tables` reads the meaning of its cells.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.errors import UsageError
from judge.gold import UNABLE
from judge.gold.sources import stored_labels
from judge.io import tabular
from judge.io.files import BOM, decode_lines, most_values, sha256
from judge.io.text import count, examples, shown
from judge.records import Problem, Severity, file_problem

if TYPE_CHECKING:
    import polars as pl

_ANNOTATION = "annotation_id"
"""Label Studio's column of what one annotator submitted once."""
GROUND_TRUTH = "annotation_ground_truth"
"""Our column of the annotations that are marked as the ground truth of their task in Label Studio."""
TRUE = "true"
"""What stands in that column for them."""
COMMENT = "comment"
"""The column, or the control, of what a worker writes about a label."""
_OF_DESK = ("assessor", "turn_id", "response_id", "criterion", "comment")
"""What a sheet of a desk's labels holds beside them."""
_VALUES = ("choices", "rating", "number", "text", "taxonomy")
"""Fields of a result's value in Label Studio that hold a label."""
_JUDGMENTS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{\s*"(Response|Question)s"\s*:\s*\[')
"""How judgments in the shape of CAsT-ReGIn's begin."""
_SQLITE = b"SQLite format 3\0"
"""How the store of a desk begins."""


def text_of(column: str) -> "pl.Expr":
    """A column's cells without outer white space, empty where there is none."""
    import polars as pl

    return pl.col(column).cast(pl.String).fill_null("").str.strip_chars()


@dataclass(frozen=True, eq=False)
class LabelSheet:
    """A table of texts; columns of Parquet that hold integers stay integers. An empty cell is null or blank."""

    file: str
    frame: "pl.DataFrame"
    numbers: NDArray[np.int64]
    """The number of each row, as a message names it."""
    unit: str
    """`line` of a text file, `row` of a Parquet file or data frame, `entry` of a JSON list, `item` of judgments,
    `label` of a desk."""
    problems: dict[str, dict[int, Problem]] = field(default_factory=dict)
    """Column and row number (0 for all rows) to the problem that counts if the column is needed."""
    ordered: bool = False
    """Whether items stay in the order of the rows, where others go in natural order."""
    controls: tuple[str, ...] | None = None
    """The columns that hold answers, where Label Studio's JSON tells them from what was shown; else None."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """Column to its name in the header, where several columns have that name."""
    decimal_comma: bool = False
    """Whether numbers may have a comma for the point."""

    @property
    def columns(self) -> list[str]:
        """As in the frame."""
        return self.frame.columns

    def kept(self, mask: "pl.Series") -> "LabelSheet":
        """The sheet with the rows that the mask selects."""
        return replace(self, frame=self.frame.filter(mask), numbers=self.numbers[mask.to_numpy()])

    def texts(self, expression: "pl.Expr") -> "pl.Series":
        """The values of an expression over the columns."""
        return self.frame.select(expression).to_series()

    def problem(self, code: str, where: int | str, message: str, severity: Severity = "error") -> Problem:
        """A problem of the row with a number, or of another place."""
        place = f"{self.unit} {where}" if isinstance(where, int) else where
        return file_problem(code, self.file, message, place, severity=severity)

    def place(self, number: int, column: str | None, annotation: str | None) -> str:
        """Where a label is, in words."""
        row = f"{self.unit} {number}{f', annotation {annotation[:60]}' if annotation else ''}"
        return f"{row}: {column[:60]}" if column else row

    def problems_of(self, columns: Sequence[str]) -> list[Problem]:
        """The problems of the cells of these columns."""
        problems: list[Problem] = []
        for name in columns:
            problems.extend(self.problems.get(name, {}).values())
        return problems

    def shared_names(self, fields: Mapping[str, str]) -> list[Problem]:
        """A problem for each name that several columns have; `fields`: what the column of a name is needed for."""
        return [
            self.problem(
                "repeated_column",
                "line 1",
                f"the header has {shown(name)} more than once: say which one"
                + (f", as in --column {field}='{name}#1'" if field else " counts: call the others otherwise"),
            )
            for name, field in sorted(fields.items())
            if name in self.repeated.values()
        ]

    def rows(
        self, column: str | None, seconds: str | None, sharing: "pl.Expr | pl.Series | None" = None, **fields: "pl.Expr"
    ) -> "pl.DataFrame":
        """The rows of a column of labels: number, annotation, column, fields, seconds over labels that share them."""
        import polars as pl

        share = text_of(seconds) if seconds in self.columns and seconds else pl.lit(None, dtype=pl.String)
        if self.decimal_comma:
            share = share.str.replace(tabular.DECIMAL_COMMA, "$1.$2")
            fields["label"] = fields["label"].str.replace(tabular.DECIMAL_COMMA, "$1.$2")
        if sharing is not None:
            even = (share.cast(pl.Float64, strict=False) / sharing).cast(pl.String)
            # A cell that is no number stays text, so that the check of rows reports it.
            share = pl.coalesce(even, pl.when(share != "").then(share))
        place = pl.lit(column, dtype=pl.String)
        annotation = text_of(_ANNOTATION) if _ANNOTATION in self.columns else pl.lit(None, dtype=pl.String)
        own = pl.Series("number", self.numbers)
        return self.frame.select(own, annotation=annotation, column=place, seconds=share, **fields)


def without(sheet: LabelSheet, column: str | None, values: Sequence[str] | None, problems: list[Problem]) -> LabelSheet:
    """The sheet without the rows that have one of the values, in lower case, in a column; with a warning of how many.

    `values`: None for anything that is written there. A sheet without the column stays as it is.
    """
    problems += sheet.shared_names({column: ""} if column else {})
    if column is None or column not in sheet.columns:
        return sheet
    cell = text_of(column).str.to_lowercase()
    out = sheet.texts(cell != "" if values is None else cell.is_in(list(values)))
    if not out.any():
        return sheet
    cells = examples(map(shown, sheet.frame.filter(out)[column].cast(str).unique().sort()))
    numbers = sheet.numbers[out.to_numpy()]
    message = f"{count(len(numbers), 'row')} left out, {column} {cells}; this is the first"
    problems.append(sheet.problem("row_left_out", int(numbers[0]), message, "warning"))
    return sheet.kept(~out)


def cell_text(value: object) -> str:
    """A value as a cell; lists and objects, which are no cells, are empty."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def frame_digest(name: str, table: Any) -> str:
    """SHA-256 of a data frame's columns and cells, which are the same from polars and from pandas."""
    sheet = frame_sheet(name, table, [])
    return sha256(sheet.frame.write_csv().encode() if sheet else b"")


def frame_sheet(name: str, table: Any, problems: list[Problem]) -> LabelSheet | None:
    """A data frame of polars, pandas or any library that has `to_dict("list")`, under a name for messages.

    A UsageError if it is no data frame.
    """
    import polars as pl

    if isinstance(table, pl.DataFrame):
        return _typed_sheet(name, table, problems)
    if not callable(to_dict := getattr(table, "to_dict", None)):
        raise UsageError(f"{name}: {type(table).__name__} is neither a path nor a data frame")
    columns = {str(column): _series(list(map(_plain_cell, cells))) for column, cells in to_dict("list").items()}
    return _typed_sheet(name, pl.DataFrame(columns), problems)


def _plain_cell(cell: object) -> object:
    """A cell as polars knows it: no value, a boolean, a number, a list or object; anything else as text."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or isinstance(cell, str | bool | int | float | list | dict):
        return cell
    # pandas' NA and NaT are equal to nothing, not even to themselves.
    text = str(cell)
    return None if text in ("<NA>", "NaT", "nan") else text


def _series(cells: list[object]) -> "pl.Series":
    """Numbers stay numbers, and a list anywhere makes a column of lists; any other column is of texts."""
    import polars as pl

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and all(abs(cell) < 2**63 for cell in cells if type(cell) is int):
        return pl.Series(cells, dtype=pl.Float64 if float in kinds else pl.Int64)
    if kinds & {list, dict}:
        return pl.Series([[cell_text(cell)] for cell in cells])
    return pl.Series([None if cell is None or cell != cell else cell_text(cell) for cell in cells], dtype=pl.String)


def _typed_sheet(file: str, frame: "pl.DataFrame", problems: list[Problem]) -> LabelSheet | None:
    """Typed columns: integers stay, columns of whole floats become integers, other columns text; NaN is empty."""
    frame, neither = tabular.plain_frame(frame)
    sheet = LabelSheet(file, frame, np.arange(1, frame.height + 1), "row")
    for name in neither:
        sheet.problems[name] = {0: sheet.problem("wrong_type", f"column {shown(name)}", tabular.NEITHER)}
    if not frame.height:
        problems.append(sheet.problem("empty_file", "", "the table has no row"))
    return sheet if frame.height else None


def read_sheet(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """Read the table in a file; None, and a problem, if the file is not a table.

    Cells may stand in quotation marks in CSV and TSV. Files without any are read whole, others record by record.
    """
    import polars as pl

    if (content := tabular.content_of(path, problems)) is None:
        return None
    if tabular.is_parquet(content):
        frame = tabular.read_frame(str(path), content, problems)
        return None if frame is None else _typed_sheet(str(path), frame, problems)
    if content.startswith(_SQLITE):
        return _desk_sheet(path, problems)
    if judgments := _JUDGMENTS.match(content.removeprefix(BOM)):
        return _judgments_sheet(str(path), content, judgments[1].decode(), problems)
    if (beginning := content.removeprefix(BOM).lstrip()[:1]) in (b"{", b"["):
        return _json_sheet(str(path), content, beginning == b"[", problems)
    before = len(problems)
    if (text := tabular.read_text(path, problems)) is None:
        return None
    head = tabular.without_hint(text).lstrip("\n").partition("\n")[0]
    if problem := tabular.too_many_cells(str(path), text.count("\n"), head.count(tabular.delimiter_of(path, text)) + 1):
        problems.append(problem)
        return None
    if (plain := _plain_sheet(path, text)) is not None:
        return plain
    header, rows = tabular.read_table(path, problems, only_once=())
    if not rows or len(problems) > before:
        return None
    columns: dict[str, list[str]] = {}
    for name in header:
        if name:
            columns[name] = [row.cells[name] for row in rows]
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    lines = np.array([row.line for row in rows])
    _, names = next(tabular.table_records(text, tabular.delimiter_of(path, text)))
    repeated = {column: name for column, name in zip(header, names, strict=True) if column != name}
    comma = rows[0].decimal_comma
    return LabelSheet(str(path), frame, lines, "line", repeated=repeated, decimal_comma=comma)


def _plain_sheet(path: Path, text: str) -> LabelSheet | None:
    """A text table in which every line is a row; None if a cell is quoted or the table has problems."""
    import polars as pl

    text = text.removesuffix("\n")
    if (
        '"' in text
        or text != tabular.without_hint(text)
        or "\n\n" in text
        or "\r\n\r" in text
        or text.count("\r") != text.count("\r\n") + text.endswith("\r")
    ):
        return None
    delimiter = tabular.delimiter_of(path, text)
    names = [name.strip() for name in text.partition("\n")[0].split(delimiter)]
    # Polars would silently fill rows that are too short.
    cells = (text.count("\n") + 1) * (len(names) - 1)
    if "" in names or len(set(names)) < len(names) or text.count(delimiter) != cells:
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
        frame = frame.filter(filled)
        numbers = numbers[filled.to_numpy()]
    sheet = LabelSheet(str(path), frame, numbers, "line", decimal_comma=delimiter == ";")
    return sheet if frame.height else None


def _json_sheet(file: str, content: bytes, is_list: bool, problems: list[Problem]) -> LabelSheet | None:
    """Objects as rows, one a line, in one list, or one alone; numbers are read as the texts that JSON writes them as.

    Tasks of Label Studio become a row for each annotation.
    """
    import polars as pl

    whole = is_list or content.removeprefix(BOM).lstrip().partition(b"\n")[0].strip() == b"{"
    unit = "entry" if whole else "line"
    before = len(problems)
    if whole and _has_too_many_values(file, content, problems):
        return None
    if is_list:
        entries: Iterable[tuple[int, Mapping[str, Any]]] = _list_entries(file, content, problems)
    elif whole:
        entries = _one_entry(file, content, problems)
    else:
        entries = decode_lines(content, dict[str, Any], file, "not_json", problems)
    numbers: list[int] = []
    # Texts by column, because a million objects take twice the memory.
    columns: dict[str, list[str]] = {}
    wrong: list[tuple[str, int, object]] = []
    controls: dict[str, None] = {}
    for number, row in _annotation_rows(entries, file, unit, controls, problems):
        if problem := tabular.too_many_cells(file, len(numbers) + 1, len(columns.keys() | row.keys()), most_values()):
            problems.append(problem)
            break
        for name, cell in row.items():
            value = _alone(cell)
            texts = columns.setdefault(name, [])
            texts += [""] * (len(numbers) - len(texts))
            texts.append(cell_text(value))
            if isinstance(value, dict | list):
                wrong.append((name, number, value))
        numbers.append(number)
    if any(problem.severity == "error" for problem in problems[before:]):
        return None
    if whole and not numbers:
        problems.append(file_problem("empty_file", file, "the list holds no label"))
        return None
    for texts in columns.values():
        texts += [""] * (len(numbers) - len(texts))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    told = tuple(controls) if controls else None
    sheet = LabelSheet(file, frame, np.array(numbers, dtype=np.int64), unit, controls=told)
    for name, number, value in wrong:
        place = f"{unit} {number}: $.{name[:60]}"
        message = f"{shown(value)}: expected a text or a number"
        sheet.problems.setdefault(name, {})[number] = sheet.problem("wrong_type", place, message)
    return sheet


def _alone(value: Any) -> Any:
    """The value of a list that holds only one, as doccano writes a label; nothing of an empty list.

    >>> _alone(["0"]), _alone([]), _alone(["0", "1"])
    ('0', None, ['0', '1'])
    """
    if not isinstance(value, list) or len(value) > 1:
        return value
    return value[0] if value else None


def _has_too_many_values(file: str, content: bytes, problems: list[Problem]) -> bool:
    """Whether a JSON value that is decoded whole would need too much memory, which is a problem."""
    if sum(map(content.count, (b",", b"[", b"{"))) <= most_values():
        return False
    message = f"more than {most_values():,} JSON values; --max-file-size allows more"
    problems.append(file_problem("too_many_values", file, message))
    return True


def _judgments_sheet(file: str, content: bytes, word: str, problems: list[Problem]) -> LabelSheet | None:
    """Judgments in the shape of CAsT-ReGIn's: each grade as the label of one worker, in the order of the file.

    `word` is `Response` or `Question`. Grades are read by the names of their fields, whose order differs by item.
    """
    import polars as pl

    if _has_too_many_values(file, content, problems):
        return None
    try:
        turns = msgspec.json.decode(content.removeprefix(BOM), type=dict[str, dict[str, list[dict[str, Any]]]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(_not_json(file, error))
        return None
    ids = f"{word} ID"
    text = f"{word} Text"
    items = f"{word}s"
    numbers: list[int] = []
    rows: list[tuple[str, str, str, str]] = []
    number = 0
    for turn_id, turn in turns.items():
        if items not in turn:
            problems.append(file_problem("wrong_type", file, f"expected a list `{items}`", f"$[{shown(turn_id)}]"))
        for item in turn.get(items, ()):
            number += 1
            for name, grade in item.items():
                if name not in (ids, text):
                    criterion = name[:1].lower() + name[1:]
                    rows.append((turn_id, cell_text(item.get(ids)), criterion, cell_text(grade)))
                    numbers.append(number)
    if not rows:
        problems.append(file_problem("empty_file", file, "the judgments hold no grade"))
        return None
    columns = ("turn_id", "response_id", "criterion", "label")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    frame = frame.with_columns(worker=pl.lit("crowd"))
    return LabelSheet(file, frame, np.array(numbers, dtype=np.int64), "item", ordered=True)


def _desk_sheet(path: Path, problems: list[Problem]) -> LabelSheet | None:
    """The labels that assessors gave at a desk; "unable to judge" is a label as in any table."""
    import polars as pl

    if (stored := stored_labels(path, problems)) is None:
        return None
    # An adjudication is no vote: it follows from the others.
    labels = stored.labels
    if not labels:
        problems.append(file_problem("empty_file", path, "the store holds no label"))
        return None
    columns: dict[str, list[str]] = {}
    for name in _OF_DESK:
        columns[name] = [cell_text(label[name]) for label in labels]
    columns["label"] = [UNABLE if label["grade"] is None else cell_text(label["grade"]) for label in labels]
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return LabelSheet(str(path), frame, np.arange(1, len(labels) + 1), "label")


def _not_json(file: str, error: Exception) -> Problem:
    message, _, path = str(error).partition(" - at `")
    return file_problem("not_json", file, message, path.rstrip("`") or "$")


def _list_entries(file: str, content: bytes, problems: list[Problem]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a list, counted from 1."""
    try:
        values = msgspec.json.decode(content.removeprefix(BOM), type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(_not_json(file, error))
        return
    yield from enumerate(values, start=1)


def _one_entry(file: str, content: bytes, problems: list[Problem]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The object that a file holds in several lines."""
    try:
        value = msgspec.json.decode(content.removeprefix(BOM), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(_not_json(file, error))
        return
    yield 1, value


# Label Studio.


def _annotation_rows(
    entries: Iterable[tuple[int, Mapping[str, Any]]],
    file: str,
    unit: str,
    controls: dict[str, None],
    problems: list[Problem],
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each row with the number of its entry: of a task, one row for each annotation; else the entry itself.

    A task has the data that was shown and the annotations made; `completed_by` is the annotator's number, or an object
    with an email. JSON-MIN and CSV have a row for each annotation, with the task's data and a column for each control
    of the labeling interface. The names of controls, as far as tasks tell them, are added to `controls`. Several
    answers of one control in one annotation stay a list, which is no label. Annotations that were cancelled (skipped
    tasks) are left out, with a warning.
    """
    cancelled: list[int] = []
    for number, entry in entries:
        task = entry.get("task")
        if isinstance(task, dict) and isinstance(entry.get("result"), list):
            # In a storage, each annotation holds its task.
            entry = {**task, "annotations": [entry]}
        annotations = entry.get("annotations")
        if not (isinstance(annotations, list) and isinstance(entry.get("data"), dict)):
            minimal = "annotation_id" in entry
            yield number, {name: _plain_value(cell) if minimal else cell for name, cell in entry.items()}
            continue
        for annotation in annotations:
            if not isinstance(annotation, dict):
                continue
            if annotation.get("was_cancelled"):
                cancelled.append(number)
                continue
            who = annotation.get("completed_by")
            results = annotation.get("result")
            answers: dict[str, list[Any]] = {}
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict) and isinstance(name := result.get("from_name"), str):
                    answers.setdefault(name, []).append(result.get("value"))
            controls.update(dict.fromkeys(answers))
            yield (
                number,
                {
                    **entry["data"],
                    "annotator": who.get("email") or who.get("id") if isinstance(who, dict) else who,
                    "annotation_id": annotation.get("id"),
                    "lead_time": annotation.get("lead_time"),
                    GROUND_TRUTH: annotation.get("ground_truth") is True,
                    **{name: _plain_value(values) for name, values in answers.items()},
                },
            )
    if cancelled:
        message = f"{count(len(cancelled), 'cancelled annotation')} left out; this is the first"
        problems.append(file_problem("row_left_out", file, message, f"{unit} {cancelled[0]}", severity="warning"))


def _plain_value(value: Any) -> Any:
    """The label in a value of Label Studio, which CSV writes as JSON; any other value as it is.

    >>> _plain_value({"choices": ["Mostly grounded"]}), _plain_value([{"rating": 2}]), _plain_value([1, 2])
    ('Mostly grounded', 2, [1, 2])
    """
    while True:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (names := [name for name in _VALUES if name in value]):
            value = value[names[0]]
        else:
            return value


def plain_text(cell: str) -> str:
    """The label in a cell of Label Studio's CSV; any other text as it is.

    >>> plain_text('[{"rating": 2}]'), plain_text("Mostly grounded")
    ('2', 'Mostly grounded')
    """
    if cell[:1] not in ("[", "{"):
        return cell
    try:
        value = _plain_value(msgspec.json.decode(cell))
    except (msgspec.MsgspecError, RecursionError):
        return cell
    return str(value) if isinstance(value, str | int | float) else cell
