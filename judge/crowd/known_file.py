"""Files of known items: items whose acceptable labels are known in advance."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judge.crowd.labels import Item
from judge.crowd.problems import LabelProblems
from judge.errors import InputError
from judge.io.ids import natural_key
from judge.io.line_stream import decode_lines
from judge.io.safe import MAX_ID, shown
from judge.io.stored import read_stored, unpack
from judge.io.tabular import read_table
from judge.records import Problem

_ACCEPTABLE = re.compile(r"[+-]?[0-9]{1,9}([ ]*[,|/ ][ ]*[+-]?[0-9]{1,9})*", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_ITEM_NAMES = ("item_id", "response_id", "question_id")


class KnownItem(NamedTuple):
    """An item and the labels that a careful worker may give it under a criterion."""

    turn_id: str
    item_id: str
    criterion: str
    acceptable: tuple[int, ...]
    """Ascending."""


@dataclass(frozen=True)
class KnownFile:
    """A file of known items, read before the criteria and scales of the tables are known."""

    file: str
    rows: tuple[tuple[str, Mapping[str, Any]], ...]
    """Place and values."""
    problems: tuple[Problem, ...]
    """Lines that cannot be read."""

    @property
    def items(self) -> frozenset[Item]:
        """The items that the rows name."""
        ids = (_ids(values) for _, values in self.rows)
        return frozenset(Item(*map(str.strip, pair)) for pair in ids if all(isinstance(part, str) for part in pair))

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that rows name, each once."""
        named = (values.get("criterion") for _, values in self.rows)
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))

    def known(
        self, scales: Mapping[str, Sequence[int]], warnings: list[Problem] | None = None, *, only: str | None = None
    ) -> tuple[KnownItem, ...]:
        """The known items under criteria that the tables have, in natural order.

        Args:
            scales: Grades of every criterion of the tables.
            warnings: Gets a warning for each row of another criterion, which has no effect.
            only: The criterion of rows that name none; by default that of the tables, if they have only one.

        Raises:
            InputError: Rows have problems; every problem is listed.
        """
        problems = LabelProblems()
        problems += self.problems
        items: dict[tuple[str, ...], KnownItem] = {}
        only = only or (next(iter(scales)) if len(scales) == 1 else None)
        for where, values in self.rows:
            criterion = values.get("criterion") or only
            if isinstance(criterion, str) and criterion not in scales:
                message = f"criterion {shown(criterion)} is in no table that was read: expected {', '.join(scales)}"
                idle = Problem("unknown_criterion", "warning", self.file, None, where, message)
                if warnings is not None:
                    warnings.append(idle)
                continue
            known, problem = _known(values, criterion, scales)
            if known is not None and (key := known[:3]) in items:
                problem = f"item {shown(known.item_id)} is on an earlier line too"
            elif known is not None:
                items[key] = known
            if problem:
                problems.append(Problem("wrong_known_item", "error", self.file, None, where, problem))
        if not self.rows and not problems:
            problems.append(Problem("empty_file", "error", self.file, None, "", "expected one known item or more"))
        if problems:
            n = problems.total("error")
            said = f"{n:,} {'problem' if n == 1 else 'problems'}"
            raise InputError(f"{self.file}: not usable as known items: {said}", [*problems, *problems.rest()])
        if not items:
            raise InputError(f"{self.file}: no known item is about {', '.join(scales)}")
        return tuple(
            sorted(items.values(), key=lambda item: (natural_key(item.turn_id), natural_key(item.item_id), item[2:]))
        )


def read_known(path: Path) -> KnownFile:
    """Known items from a table (`turn_id, response_id, criterion, acceptable`: `0,1`) or JSON Lines (`[0, 1]`).

    The criterion may be left out if the tables have only one.

    Args:
        path: The file.

    Raises:
        InputError: The file cannot be read.
    """
    content = unpack(read_stored(path), str(path))
    problems: list[Problem] = []
    rows = _json_rows if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else _table_rows
    return KnownFile(str(path), tuple(rows(path, content, problems)), tuple(problems))


def _table_rows(path: Path, content: bytes, problems: list[Problem]) -> list[tuple[str, dict[str, Any]]]:
    rows = read_table(path, problems, needed=("turn_id", "acceptable"))[1]
    return [(row.place, dict(row.cells)) for row in rows]


def _json_rows(path: Path, content: bytes, problems: list[Problem]) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for number, row in decode_lines(content, dict[str, Any], str(path), "not_json"):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append((f"line {number}", row))
    return rows


def _ids(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The values given as ids of turn and item, of any type."""
    return values.get("turn_id"), next((values[name] for name in _ITEM_NAMES if values.get(name)), None)


def _known(
    values: Mapping[str, Any], criterion: object, scales: Mapping[str, Sequence[int]]
) -> tuple[KnownItem | None, str]:
    """The known item of a row, or what is wrong with it."""
    ids = _ids(values)
    for name, value in zip(("turn_id", "response_id"), ids, strict=True):
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MAX_ID:
            return None, f"{name} {shown(value)}: expected an id"
    if not isinstance(criterion, str) or criterion not in scales:
        return None, f"criterion {shown(criterion)}: expected one of {', '.join(scales)}"
    acceptable = _acceptable(values.get("acceptable"))
    if not acceptable or not set(acceptable) <= set(scales[criterion]):
        scale = ", ".join(map(str, scales[criterion]))
        return None, f"acceptable {shown(values.get('acceptable'))}: expected one or more of {scale}"
    turn_id, item_id = (str(part).strip() for part in ids)
    return KnownItem(turn_id, item_id, criterion, acceptable), ""


def _acceptable(value: object) -> tuple[int, ...]:
    """The grades that a cell or a list names; empty if it cannot be read."""
    if isinstance(value, str):
        value = [int(number) for number in _NUMBER.findall(value)] if _ACCEPTABLE.fullmatch(value.strip()) else []
    candidates = value if isinstance(value, list) else [value]
    grades = [grade for grade in candidates if type(grade) is int]
    return tuple(sorted(set(grades))) if len(grades) == len(candidates) else ()
