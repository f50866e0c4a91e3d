"""Known items: their files, and the filter that leaves workers who contradict one out of the whole topic.

This is the rule of CAsT-ReGIn, with optional tolerance. Known items are then removed from the labels, so they never
reach qrels, gold or agreement.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels, Item, distinct
from judge.crowd.layout import LabelProblems
from judge.errors import InputError
from judge.io.files import BOM, decode_lines, read_content
from judge.io.ids import natural_key, natural_order, topic_of
from judge.io.tabular import read_table
from judge.io.text import MAX_ID, count, shown
from judge.records import Problem, file_problem
from judge.stats.worker_models import removal_probability

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

    @property
    def item(self) -> Item:
        """The item, under whatever criterion."""
        return Item(self.turn_id, self.item_id)


class KnownFile:
    """A file of known items, read before the criteria and scales of the tables are known.

    It is a table (`turn_id, response_id, criterion, acceptable`: `0,1`) or JSON Lines (`[0, 1]`); the criterion may be
    left out if the tables have only one. An InputError if the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        self.problems: list[Problem] = []
        """Lines that cannot be read."""
        self.rows: list[tuple[str, Mapping[str, Any]]] = []
        """Place and values."""
        content = read_content(path)
        if content.removeprefix(BOM).lstrip()[:1] != b"{":
            table = read_table(path, self.problems, needed=("turn_id", "acceptable"))[1]
            self.rows += [(row.place, row.cells) for row in table]
        else:
            lines = decode_lines(content, dict[str, Any], self.file, "not_json", self.problems)
            self.rows += [(f"line {number}", values) for number, values in lines]

    @property
    def items(self) -> frozenset[Item]:
        """The items that the rows name."""
        items: set[Item] = set()
        for _, values in self.rows:
            turn_id, item_id = _ids(values)
            if isinstance(turn_id, str) and isinstance(item_id, str):
                items.add(Item(turn_id.strip(), item_id.strip()))
        return frozenset(items)

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that rows name, each once."""
        named = (values.get("criterion") for _, values in self.rows)
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))

    def known(
        self, scales: Mapping[str, Sequence[int]], warnings: list[Problem] | None = None, *, only: str | None = None
    ) -> tuple[KnownItem, ...]:
        """The known items under criteria that the tables have, in natural order.

        A row of another criterion has no effect, with a warning. A row that names none is of the criterion `only`, by
        default of that of the tables, if they have only one. An InputError if rows have problems; every problem is
        listed.
        """
        problems = LabelProblems()
        problems += self.problems
        items: dict[tuple[Item, str], KnownItem] = {}
        only = only or (next(iter(scales)) if len(scales) == 1 else None)
        for where, values in self.rows:
            criterion = values.get("criterion") or only
            if isinstance(criterion, str) and criterion not in scales:
                message = f"criterion {shown(criterion)} is in no table that was read: expected {', '.join(scales)}"
                if warnings is not None:
                    warnings.append(file_problem("unknown_criterion", self.file, message, where, severity="warning"))
                continue
            item, problem = _known_item(values, criterion, scales)
            if item is not None and items.setdefault((item.item, item.criterion), item) is not item:
                problem = f"item {shown(item.item_id)} is on an earlier line too"
            if problem:
                problems.append(file_problem("wrong_known_item", self.file, problem, where))
        if n := problems.total("error"):
            message = f"{self.file}: not usable as known items: {count(n, 'problem')}"
            raise InputError(message, [*problems, *problems.rest()])
        if not items:
            raise InputError(f"{self.file}: no known item is about {', '.join(scales)}")
        return tuple(sorted(items.values(), key=lambda item: (*natural_order(item.item), item.criterion)))


def _ids(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The values given as ids of turn and item, of any type."""
    return values.get("turn_id"), next((values[name] for name in _ITEM_NAMES if values.get(name)), None)


def _known_item(
    values: Mapping[str, Any], criterion: object, scales: Mapping[str, Sequence[int]]
) -> tuple[KnownItem | None, str]:
    """The known item of a row, or what is wrong with it."""
    turn_id, item_id = _ids(values)
    for name, value in (("turn_id", turn_id), ("response_id", item_id)):
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MAX_ID:
            return None, f"{name} {shown(value)}: expected an id"
    if not isinstance(criterion, str) or criterion not in scales:
        return None, f"criterion {shown(criterion)}: expected one of {', '.join(scales)}"
    acceptable = _acceptable(values.get("acceptable"))
    if not acceptable or not set(acceptable) <= set(scales[criterion]):
        scale = ", ".join(map(str, scales[criterion]))
        return None, f"acceptable {shown(values.get('acceptable'))}: expected one or more of {scale}"
    item = KnownItem(turn_id=turn_id.strip(), item_id=item_id.strip(), criterion=criterion, acceptable=acceptable)
    return item, ""


def _acceptable(value: object) -> tuple[int, ...]:
    """The grades that a cell or a list names; empty if it cannot be read."""
    if isinstance(value, str):
        value = [int(number) for number in _NUMBER.findall(value)] if _ACCEPTABLE.fullmatch(value.strip()) else []
    candidates = value if isinstance(value, list) else [value]
    grades = [grade for grade in candidates if type(grade) is int]
    return tuple(sorted(set(grades))) if len(grades) == len(candidates) else ()


class Removal(NamedTuple):
    """A label that contradicts a known item and removed its worker from a topic."""

    worker: str
    label: int
    known: KnownItem

    @property
    def topic(self) -> str:
        """The topic that the worker is removed from."""
        return topic_of(self.known.turn_id)


@dataclass(frozen=True)
class Audit:
    """What the filter of workers removed and kept."""

    removals: tuple[Removal, ...]
    """Every contradiction of every removed worker, sorted by topic, worker and item."""
    tolerated: int
    """Contradictions of workers who were kept."""
    checked: int
    """Pairs of worker and topic with a label of a known item; the filter could act on these."""
    unchecked: int
    """Pairs of worker and topic without a label of a known item."""
    met: Mapping[int, int]
    """Labels of known items that a worker gave in a topic to the pairs of worker and topic with so many."""
    known: int
    """Known items that were removed from the labels."""
    unlabeled: tuple[Item, ...]
    """Known items that nobody labeled."""
    labels_removed: Mapping[str, Mapping[str, int]]
    """Criterion and topic to the number of labels of other items that were removed with their workers."""

    @property
    def error(self) -> float:
        """The share of all labels of known items that contradict them."""
        return (len(self.removals) + self.tolerated) / max(sum(n * pairs for n, pairs in self.met.items()), 1)

    def expected(self, error: float, max_fails: int) -> float:
        """How many pairs of worker and topic the filter removes if every worker errs independently at one rate."""
        return sum(pairs * removal_probability(error, n, max_fails) for n, pairs in self.met.items())

    @property
    def removed(self) -> tuple[tuple[str, str], ...]:
        """The pairs of topic and worker removed."""
        return tuple(dict.fromkeys((removal.topic, removal.worker) for removal in self.removals))


FewLabels = tuple[str, str, str, int, int]
"""Turn, item and criterion with fewer labels than wanted, how many it has, and how many without the filter."""


def filter_workers(
    labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem], *, max_fails: int = 0, max_deviation: int = 0
) -> tuple[dict[str, CrowdLabels], Audit]:
    """Remove the known items, and from each topic the workers who contradict its known items, in all criteria.

    A label contradicts a known item if it differs from every acceptable label by more than `max_deviation`. A worker
    with more than `max_fails` contradictions in a topic, over all criteria, loses all labels there. Items that lose all
    their labels stay, so that reports can name them.
    """
    workers = sorted(set().union(*(crowd.workers for crowd in labels.values())), key=natural_key)
    topics = sorted(set().union(*(crowd.topics for crowd in labels.values())), key=natural_key)
    pairs = {name: _pairs(crowd, topics, workers) for name, crowd in labels.items()}
    met: list[NDArray[np.int64]] = []
    fails: list[tuple[int, Removal]] = []
    for criterion, crowd in labels.items():
        known_here = {one.item: one for one in known if one.criterion == criterion}
        checked, wrong = _contradictions(crowd, known_here, max_deviation)
        met.append(pairs[criterion][checked])
        for row in wrong:
            removal = Removal(
                worker=crowd.workers[crowd.worker[row]],
                label=crowd.grades[crowd.code[row]],
                known=known_here[crowd.items[crowd.item[row]]],
            )
            fails.append((int(pairs[criterion][row]), removal))
    failed, times = np.unique([pair for pair, _ in fails], return_counts=True)
    gone = failed[times > max_fails].astype(np.int64)
    every = distinct(np.concatenate([distinct(numbers) for numbers in pairs.values()])) if pairs else gone
    checks, met_times = np.unique(np.concatenate(met) if met else gone, return_counts=True)
    sizes, pairs_of_size = np.unique(met_times, return_counts=True)
    gone_pairs = set(gone.tolist())
    removals = [removal for pair, removal in fails if pair in gone_pairs]
    known_items = {one.item for one in known}
    kept = {}
    removed = {}
    for criterion, crowd in labels.items():
        out = np.isin(pairs[criterion], gone)
        rest, still = _without(crowd, known_items, ~out)
        kept[criterion] = rest
        lost = np.bincount(crowd.topic[crowd.item[out & still]], minlength=len(crowd.topics))
        removed[criterion] = {topic: int(n) for topic, n in zip(crowd.topics, lost, strict=True) if n}
    met_items = set[Item]().union(*(crowd.items for crowd in labels.values()))
    return kept, Audit(
        removals=tuple(sorted(removals, key=_order_of)),
        tolerated=len(fails) - len(removals),
        checked=len(checks),
        unchecked=len(every) - len(checks),
        met=dict(zip(sizes.tolist(), pairs_of_size.tolist(), strict=True)),
        known=len(known_items & met_items),
        unlabeled=tuple(sorted(known_items - met_items, key=natural_order)),
        labels_removed=removed,
    )


def _order_of(removal: Removal) -> tuple[object, ...]:
    known = removal.known
    return *natural_order((removal.topic, removal.worker, known.turn_id, known.item_id)), known.criterion


def _contradictions(
    labels: CrowdLabels, known: Mapping[Item, KnownItem], max_deviation: int
) -> tuple[NDArray[np.bool_], list[int]]:
    """A mask (L,) of the labels of known items, and the numbers of those labels that contradict them."""
    fit = np.ones((len(labels.items), len(labels.grades)), dtype=np.bool_)
    for index, item in enumerate(labels.items):
        if item in known:
            acceptable = np.array(known[item].acceptable)
            distances = np.abs(np.array(labels.grades)[:, None] - acceptable)
            fit[index] = distances.min(axis=1) <= max_deviation
    checked = np.array([item in known for item in labels.items], dtype=np.bool_)
    return checked[labels.item], np.flatnonzero(~fit[labels.item, labels.code]).tolist()


def without_known(labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem]) -> dict[str, CrowdLabels]:
    """The labels of all workers without known items; the filtered labels are compared with these."""
    items = {one.item for one in known}
    return {name: _without(crowd, items, np.ones(len(crowd.item), dtype=np.bool_))[0] for name, crowd in labels.items()}


def few_labels(kept: CrowdLabels, before: CrowdLabels, fewest: int) -> tuple[FewLabels, ...]:
    """The items with fewer labels than `fewest`, in natural order; the labels after the filter and without it."""
    n, n_before = (crowd.counts.sum(axis=1) for crowd in (kept, before))
    return tuple(
        (*kept.items[i], kept.criterion, int(n[i]), int(n_before[i])) for i in np.flatnonzero(n < fewest).tolist()
    )


def _pairs(labels: CrowdLabels, topics: Sequence[str], workers: Sequence[str]) -> NDArray[np.int64]:
    """(L,), for each label a number of its topic and worker, the same under every criterion."""
    topic_index = {name: index for index, name in enumerate(topics)}
    worker_index = {name: index for index, name in enumerate(workers)}
    topic_numbers = np.array([topic_index[name] for name in labels.topics], dtype=np.int64)
    worker_numbers = np.array([worker_index[name] for name in labels.workers], dtype=np.int64)
    return topic_numbers[labels.topic[labels.item]] * len(workers) + worker_numbers[labels.worker]


def _without(labels: CrowdLabels, known: set[Item], keep: NDArray[np.bool_]) -> tuple[CrowdLabels, NDArray[np.bool_]]:
    """The kept labels of items that are not known, and a mask (L,) of the labels of such items."""
    stays = np.array([item not in known for item in labels.items], dtype=np.bool_)
    still = stays[labels.item]
    rest = labels.kept(keep & still)
    place = np.cumsum(stays, dtype=np.int32) - 1
    items = tuple(item for item, stay in zip(labels.items, stays, strict=True) if stay)
    return replace(rest, items=items, item=place[rest.item]), still
