"""The answers in an export of a task platform: which columns are one answer, and the label that each row has there.

A form may spread one answer over several columns. `Answer.grade.0` … `Answer.grade.3` are the buttons of one question,
of which the chosen one is true; `Answer.grade-0.on`, `Answer.grade-1.on` are the same built of single buttons;
`Answer.category.label` is the choice of a classifier; `Answer.taskAnswers` holds all of these as JSON.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from judge.crowd.frames import LabelSheet
from judge.records import Problem

if TYPE_CHECKING:
    import polars as pl

GENERAL = {
    *("", "answer", "category", "choice", "choices", "grade", "judgment", "label", "labels", "radio", "rating"),
    *("result", "score", "value"),
}
"""Names of an answer that are taken for the label where only one criterion is asked and no answer has its name."""
_SLOT = re.compile(r"(.+?)(?:_([0-9]{1,6}))?", re.DOTALL)
_NUMBERED = re.compile(r"(?:(.*)[-_.])?(-?[0-9]{1,9})", re.DOTALL)
_CLASSIFIER = ".label"
_MOST_ANSWERS = 1_000
"""The most different values in the answers of a table: each becomes a column."""


class FormAnswer(NamedTuple):
    """One answer: its name, the number of the item that it is about, its columns and its label."""

    name: str
    slot: str | None
    """The number behind the name, where a form shows several items: `relevance_2`."""
    columns: tuple[str, ...]
    label: "pl.Expr"
    """The label as text; of several chosen buttons all, so that it is no label."""


def answers_of(frame: "pl.DataFrame", columns: Sequence[str], prefix: str) -> list[FormAnswer]:
    """The answers in the columns whose names begin with the prefix, in the order of the table."""
    single: dict[str, str] = {}
    buttons: dict[str, dict[str, str]] = {}
    alone: dict[str, str] = {}
    for column in columns:
        name = column.removeprefix(prefix)
        if name.endswith(_CLASSIFIER):
            single[name.removesuffix(_CLASSIFIER)] = column
        elif "." not in name or not _is_boolean(frame[column]):
            single[name] = column
        else:
            stem, _, value = name.partition(".")
            if name.endswith(".on") or stem == value:
                stem = name.removesuffix(".on") if name.endswith(".on") else stem
                if numbered := _NUMBERED.fullmatch(stem):
                    buttons.setdefault(numbered[1] or "", {})[numbered[2]] = column
                else:
                    alone[stem] = column
            else:
                buttons.setdefault(stem, {})[value] = column
    if len(alone) > 1 and _one_each(frame, list(alone.values())):
        buttons.setdefault("", {}).update(alone)
        alone = {}
    found: list[tuple[str, tuple[str, ...], pl.Expr]]
    found = [(name, (column,), _text(column)) for name, column in single.items()]
    found += [(name, tuple(of.values()), _chosen(of)) for name, of in buttons.items()]
    # A box of its own: checked is 1.
    found += [(name, (column,), _true(column).cast(int).cast(str)) for name, column in alone.items()]
    answers = [FormAnswer(*slotted(name), columns_of, label) for name, columns_of, label in found]
    place = {column: i for i, column in enumerate(columns)}
    return sorted(answers, key=lambda answer: (int(answer.slot or 0), place[answer.columns[0]]))


def slotted(name: str) -> tuple[str, str | None]:
    """A name without the number behind it, and the number."""
    match = _SLOT.fullmatch(name)
    return (match[1], match[2]) if match else (name, None)


def _is_boolean(cells: "pl.Series") -> bool:
    texts = set(cells.cast(str).fill_null("").str.strip_chars().str.to_lowercase().unique()) - {""}
    return bool(texts) and texts <= {"true", "false"}


def _one_each(frame: "pl.DataFrame", columns: Sequence[str]) -> bool:
    """Whether each row chose exactly one of the columns."""
    import polars as pl

    return bool((frame.select(pl.sum_horizontal(_true(column).cast(int) for column in columns)).to_series() == 1).all())


def _chosen(buttons: Mapping[str, str]) -> "pl.Expr":
    import polars as pl

    chosen = [pl.when(_true(column)).then(pl.lit(value)) for value, column in buttons.items()]
    return pl.concat_str(chosen, separator=" and ", ignore_nulls=True)


def _true(column: str) -> "pl.Expr":
    return _text(column).str.to_lowercase() == "true"


def _text(column: str) -> "pl.Expr":
    import polars as pl

    return pl.col(column).cast(pl.String).fill_null("").str.strip_chars()


def unfolded(sheet: LabelSheet, column: str, prefix: str, problems: list[Problem]) -> LabelSheet:
    """The sheet with a column of JSON (`[{"grade": {"0": false, "1": true}}]`) as a column for each value in it."""
    import polars as pl

    cells = sheet.frame[column].cast(pl.String).fill_null("").to_list()
    names: set[str] = set()
    columns: dict[str, list[str]] = {}
    for row, (cell, number) in enumerate(zip(cells, sheet.numbers.tolist(), strict=True)):
        try:
            values = dict(_leaves(msgspec.json.decode(cell), prefix)) if cell.strip() else {}
        except (msgspec.MsgspecError, RecursionError) as error:
            where = f"{sheet.unit} {number}: {column[:60]}"
            problems.append(Problem("not_json", "error", sheet.file, None, where, str(error)))
            continue
        names |= values.keys()
        if len(names) > _MOST_ANSWERS:
            message = f"more than {_MOST_ANSWERS:,} answers up to here: expected those of one form"
            where = f"{sheet.unit} {number}: {column[:60]}"
            problems.append(Problem("not_json", "error", sheet.file, None, where, message))
            columns = {}
            break
        for name, text in values.items():
            columns.setdefault(name, [""] * len(cells))[row] = text
    kept = sheet.frame.drop(column, *(name for name in columns if name in sheet.frame.columns))
    frame = kept.with_columns(pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items())
    return LabelSheet(sheet.file, frame, sheet.numbers, sheet.unit, sheet.problems)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The path of each value, between periods, and the value as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}{key}" if name.endswith((".", ":")) else f"{name}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
