"""How tables of labels are read: columns, criteria, scales, words that stand for grades; and their problems. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from judge.crowd.labels import Item
from judge.crowd.sheets import LabelSheet
from judge.errors import UsageError
from judge.gold import Words
from judge.gold.draft import OF_PAIR
from judge.io.text import shown
from judge.records import Problem, Record, Severity

if TYPE_CHECKING:
    import polars as pl


Scales = Mapping[str, Sequence[int]] | Sequence[int]
"""Criterion to grades, or the grades of every criterion of the tables."""

TASK = r"(?P<turn_id>.+)/(?P<response_id>[^/]+)"
"""The default pattern of Crowd-Kit's tasks: `turn_id/response_id`."""
SURVEY = r"(?P<turn_id>[^/.:]+)[/.:](?P<response_id>[^/.:]+)(?:[/.:](?P<criterion>[^/.:]+))?"
"""The default pattern of a survey's columns: turn, response and criterion between slashes, periods or colons."""
LABEL_OF = "label:"
"""What stands before the criterion in the field of a column that holds the labels of one criterion."""
ITEM_GROUPS = ("response_id", "question_id", "item_id")
"""The groups of a pattern that may name the item."""
FIELDS: dict[str, tuple[str, ...]] = {
    "worker": ("worker", "worker_id", "assessor"),
    "turn_id": ("turn_id",),
    "response_id": ("response_id", "item_id", "question_id", "item"),
    "second_id": ("second_id",),
    "task": ("task",),
    "criterion": ("criterion",),
    "label": ("label", "grade"),
    "seconds": ("seconds",),
}
"""Field of a table to the names that it may have, in a header and in `--column`; the first one in a header is used."""


class LabelColumn(NamedTuple):
    """What the name of a column of labels says of all of them; None where it does not say."""

    turn_id: str | None = None
    response_id: str | None = None
    criterion: str | None = None
    worker: str | None = None


Wide = str | Mapping[str, LabelColumn]
"""A regular expression over column names with groups turn_id, response_id and criterion, or a question by column."""


class Layout(Record, frozen=True):
    """How to read the tables."""

    columns: Mapping[str, str]
    """Field to column: a key of FIELDS, or `label:` and a criterion where each criterion has a column."""
    scales: Scales
    criteria: Sequence[str] = ()
    """The wanted criteria; all, if empty. A single one applies to tables that name none."""
    wide: Wide | None = None
    task: str = TASK
    """A regular expression with groups turn_id and response_id."""
    workers: Sequence[str] = ()
    """Columns, or patterns of their names, that hold the labels of one worker each."""
    turns: Mapping[str, str] | None = None
    """Item id to turn id, for tables without turns."""
    other_orders: Mapping[str, str] = {}
    """Id of a pair in a pool to that of the same pair in the other order."""
    beside: Collection[str] = ()
    """More criteria to read, if tables have them and they have a scale."""
    repeatable: Collection[Item] = ()
    """Items that a worker may label more than once."""
    words: Callable[[str, Sequence[int]], Words] = lambda criterion, grades: {}
    """Criterion and scale to the texts that stand for its grades."""
    missing: Collection[str] = ()
    """Values that stand for no label, beside those that always do, as `value_key` writes them."""
    kind: str | None = None
    """What the tables are, a key of KINDS; None to see it from their columns."""
    last: bool = False
    """Whether a worker's last label of an item under a criterion takes the place of earlier ones."""

    @property
    def wanted(self) -> tuple[str, ...] | None:
        """The criteria that the tables must have; None if any will do."""
        named = tuple(self.scales) if isinstance(self.scales, Mapping) else None
        return tuple(self.criteria) or named

    @property
    def known(self) -> tuple[str, ...] | None:
        """The criteria to read; None for all criteria of the tables."""
        extra = (name for name in self.beside if self.grades(name) is not None)
        return self.wanted and tuple(dict.fromkeys((*self.wanted, *extra)))

    @property
    def only(self) -> str | None:
        """The wanted criterion, if there is exactly one."""
        return self.wanted[0] if self.wanted and len(self.wanted) == 1 else None

    def grades(self, criterion: str) -> tuple[int, ...] | None:
        """The scale of a criterion, ascending; None if the criterion is unknown."""
        scale = self.scales.get(criterion) if isinstance(self.scales, Mapping) else self.scales
        return tuple(sorted(set(scale))) if scale is not None else None


LAST_COUNTS = "--repeated last lets the last one count"
EXAMPLES = 3
"""Problems up to which each speaks for itself; beyond, the likely cause is named."""
MOST_LISTED = 100
"""Problems of one code and file that are listed; the others are counted."""
CAUSES: dict[str, str] = {
    "wrong_task": "the cells of tasks name turn and response in another way: say how, --task PATTERN",
    "unknown_item": "--pool is another pool than that of the labels",
    "different_labels": "one export stands in two tables, or one id names two responses of a turn",
    "wrong_columns": "a cell holds the delimiter without quotation marks around it",
}
"""Code to the likely cause of many such problems."""


class LabelProblems(list[Problem]):
    """The first MOST_LISTED problems of each code and file; `rest` says how many more there were."""

    def __init__(self) -> None:
        super().__init__()
        self._times: Counter[tuple[str, Severity, str]] = Counter()
        self.causes: list[str] = []
        """What may have gone wrong, in words; a code of `CAUSES` has one anyway."""

    def append(self, problem: Problem) -> None:
        """Take a problem: list it, or count it."""
        kind = problem.code, problem.severity, problem.file
        self._times[kind] += 1
        if self._times[kind] <= MOST_LISTED:
            super().append(problem)

    def __iadd__(self, problems: Iterable[Problem]) -> Self:  # type: ignore[override, misc]
        """Take several."""
        for problem in problems:
            self.append(problem)
        return self

    def total(self, severity: Severity) -> int:
        """How many there were, listed or not."""
        return sum(n for (_, counted, _), n in self._times.items() if counted == severity)

    def rest(self) -> list[Problem]:
        """A problem for each code and file that has unlisted problems, with their number."""
        return [
            Problem(
                code=code,
                severity=severity,
                file=file,
                turn_id=None,
                path="",
                message=f"{n - MOST_LISTED:,} more of these, not listed",
                count=n - MOST_LISTED,
            )
            for (code, severity, file), n in self._times.items()
            if n > MOST_LISTED
        ]

    def likely(self) -> str:
        """The likely causes of the errors in words, empty if nothing is likely."""
        codes = dict.fromkeys(code for code, severity, _ in self._times if severity == "error")
        causes = [*self.causes, *(CAUSES[code] for code in codes if code in CAUSES)]
        return f"; likely cause: {'; '.join(dict.fromkeys(causes))}" if causes else ""


def pattern_of(text: str, option: str, groups: str) -> re.Pattern[str]:
    """A regular expression with groups for turn and item; a UsageError if it is none or lacks a group."""
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{option} {shown(text)} is no regular expression: {error}") from error
    if not set(ITEM_GROUPS) & pattern.groupindex.keys() or "turn_id" not in pattern.groupindex:
        raise UsageError(f"{option} {shown(text)}: expected groups {groups}")
    return pattern


def with_turns(frame: "pl.DataFrame", sheet: LabelSheet, layout: Layout, problems: LabelProblems) -> "pl.DataFrame":
    """The frame with turn and response in columns of their own; a task or response without a turn is a problem.

    A pair of responses is one, with both ids as its id.
    """
    import polars as pl

    if "second_id" in frame.columns:
        pair = pl.when(pl.col("second_id") != "").then(pl.concat_str("response_id", pl.lit(OF_PAIR), "second_id"))
        frame = frame.with_columns(response_id=pair.fill_null(""))
    turns = layout.turns or {}
    if "task" in frame.columns:
        pattern = pattern_of(layout.task, "--task", "(?P<turn_id>…) and (?P<response_id>…)")
        item = next(name for name in ITEM_GROUPS if name in pattern.groupindex)
        column = "task"
        code = "wrong_task"
        why = "does not fit the pattern of tasks"
        matches = {cell: pattern.fullmatch(cell) for cell in frame[column].unique()}
        parts = {cell: (match["turn_id"] or "", match[item] or "") for cell, match in matches.items() if match}
        # A task may be the bare id of a response, whose turn the pool knows.
        parts |= {cell: (turns[cell], cell) for cell, match in matches.items() if match is None and cell in turns}
    elif "turn_id" not in frame.columns and layout.turns is not None:
        column = "response_id"
        code = "unknown_item"
        why = "is not in the pool"
        parts = {cell: (turns[cell], cell) for cell in frame[column].unique() if cell in turns}
    else:
        return frame
    placed = frame[column].is_in([*parts])
    for number, cell in frame.filter(~placed).select("number", column).iter_rows():
        if cell:
            problems.append(sheet.problem(code, number, f"{column} {shown(cell)} {why}"))
        else:
            problems.append(sheet.problem("empty_cell", number, f"{column} is empty"))
    frame = frame.filter(placed)
    items = [parts[cell] for cell in frame[column]]
    return frame.drop(column).with_columns(
        pl.Series("turn_id", [turn_id for turn_id, _ in items], dtype=pl.String),
        pl.Series("response_id", [item_id for _, item_id in items], dtype=pl.String),
    )


class LabelTable(Record, frozen=True):
    """A row of KINDS: tables of labels in one layout."""

    wrote: Callable[[LabelSheet], bool]
    """Whether a table is such a one, by its columns."""
    rows: Callable[[LabelSheet, Layout, LabelProblems], "Iterable[pl.DataFrame]"]
    """Its labels, a row each, in frames with worker, item, criterion, label, seconds and place."""
