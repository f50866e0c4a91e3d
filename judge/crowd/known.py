"""Workers who contradict an item whose acceptable labels are known are left out of that whole topic.

The rule of CAsT-ReGIn, with room for tolerance. Known items themselves leave the labels: they never reach qrels,
gold or agreement.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.crowd.aggregators import Aggregated
from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.rows import distinct
from judge.errors import InputError
from judge.files import decode_lines, read_stored, unpack
from judge.gold.tabular import read_table
from judge.ids import natural_key, topic_of
from judge.records import Problem
from judge.text import MAX_ID, shown

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


class Removal(NamedTuple):
    """A label by which a worker was removed from a topic."""

    topic: str
    worker: str
    turn_id: str
    item_id: str
    criterion: str
    label: int
    acceptable: tuple[int, ...]


@dataclass(frozen=True)
class Audit:
    """What the filter did."""

    removals: tuple[Removal, ...]
    """Every contradiction of every worker removed, by topic, worker and item."""
    tolerated: int
    """Contradictions of workers who were kept."""
    checked: int
    """Pairs of worker and topic that met a known item, on which the filter could act."""
    unchecked: int
    """Pairs of worker and topic that met none."""
    known: int
    """Known items taken out."""
    unlabeled: tuple[Item, ...]
    """Known items that nobody labeled."""
    labels_removed: Mapping[str, Mapping[str, int]]
    """By criterion and topic, labels of other items that went with their workers."""

    @property
    def removed(self) -> tuple[tuple[str, str], ...]:
        """The pairs of topic and worker removed."""
        return tuple(dict.fromkeys((removal.topic, removal.worker) for removal in self.removals))


class FewLabels(NamedTuple):
    """An item with fewer labels than wanted; with none it has no grade."""

    turn_id: str
    item_id: str
    criterion: str
    n: int
    before: int
    """Labels without the filter."""


def read_known(path: Path, scales: Mapping[str, Sequence[int]]) -> tuple[KnownItem, ...]:
    """Known items from a table (`turn_id, response_id, criterion, acceptable`: `0,1`) or JSON Lines (`[0, 1]`).

    Args:
        path: The file. The criterion may be left out where there is but one.
        scales: Grades by criterion.

    Raises:
        InputError: Rows are faulty; every fault is listed.
    """
    content = unpack(read_stored(path), str(path))
    problems: list[Problem] = []
    rows = _json_rows if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else _table_rows
    items: dict[tuple[str, ...], KnownItem] = {}
    for line, values in rows(path, content, problems):
        known, fault = _known(values, scales)
        if known is not None and (key := known[:3]) in items:
            fault = f"item {shown(known.item_id)} is on an earlier line too"
        elif known is not None:
            items[key] = known
        if fault:
            problems.append(Problem("wrong_known_item", "error", str(path), None, f"line {line}", fault))
    if not items and not problems:
        problems.append(Problem("empty_file", "error", str(path), None, "", "expected one known item or more"))
    if problems:
        raise InputError(f"{path}: not usable as known items: {len(problems)} faults", problems)
    return tuple(sorted(items.values(), key=lambda one: (natural_key(one.turn_id), natural_key(one.item_id), one[2:])))


def _table_rows(path: Path, content: bytes, problems: list[Problem]) -> list[tuple[int, dict[str, Any]]]:
    rows = read_table(path, problems, needed=("turn_id", "acceptable"))[1]
    return [(row.line, dict(row.cells)) for row in rows]


def _json_rows(path: Path, content: bytes, problems: list[Problem]) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for number, row in decode_lines(content, dict[str, Any], str(path), "not_json"):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append((number, row))
    return rows


def _known(values: Mapping[str, Any], scales: Mapping[str, Sequence[int]]) -> tuple[KnownItem | None, str]:
    """The known item of a row, or what is wrong with it."""
    only = next(iter(scales)) if len(scales) == 1 else ""
    criterion = values.get("criterion") or only
    ids = values.get("turn_id"), next((values[name] for name in _ITEM_NAMES if values.get(name)), None)
    for name, value in zip(("turn_id", "response_id"), ids, strict=True):
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MAX_ID:
            return None, f"{name} {shown(value)}: expected an id"
    if not isinstance(criterion, str) or criterion not in scales:
        return None, f"criterion {shown(criterion)}: expected one of {', '.join(scales)}"
    acceptable = _acceptable(values.get("acceptable"))
    if not acceptable or not set(acceptable) <= set(scales[criterion]):
        scale = ", ".join(map(str, scales[criterion]))
        return None, f"acceptable {shown(values.get('acceptable'))}: expected one or more of {scale}"
    turn_id, item_id = (str(one).strip() for one in ids)
    return KnownItem(turn_id, item_id, criterion, acceptable), ""


def _acceptable(value: object) -> tuple[int, ...]:
    """The grades that a cell or a list names; none if it cannot be read."""
    if isinstance(value, str):
        value = [int(found) for found in _NUMBER.findall(value)] if _ACCEPTABLE.fullmatch(value.strip()) else []
    found = value if isinstance(value, list) else [value]
    grades = [grade for grade in found if type(grade) is int]
    return tuple(sorted(set(grades))) if len(grades) == len(found) else ()


def filter_workers(
    labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem], *, max_fails: int = 0, max_deviation: int = 0
) -> tuple[dict[str, CrowdLabels], Audit]:
    """The labels without known items and without the workers who contradict them, topic by topic, in all criteria.

    A label contradicts if it is more than `max_deviation` grades of the scale away from every acceptable one; a worker
    who does so more than `max_fails` times in a topic, over all criteria, loses all labels there. Items that lose all
    their labels stay, so that they can be named.

    Args:
        labels: By criterion.
        known: Known items.
        max_fails: Contradictions that a worker may have in a topic.
        max_deviation: Distance that is no contradiction, in scale values.
    """
    workers = sorted({name for one in labels.values() for name in one.workers}, key=natural_key)
    topics = sorted({name for one in labels.values() for name in one.topics}, key=natural_key)
    pairs = {name: _pairs(one, topics, workers) for name, one in labels.items()}
    met: list[NDArray[np.int64]] = []
    fails: list[tuple[int, Removal]] = []
    for criterion, one in labels.items():
        of_item = {Item(*item[:2]): item.acceptable for item in known if item.criterion == criterion}
        place = {item: i for i, item in enumerate(one.items)}
        fit = np.ones((len(one.items), len(one.grades)), dtype=np.bool_)
        checked = np.zeros(len(one.items), dtype=np.bool_)
        for item, acceptable in of_item.items():
            if item in place:
                checked[place[item]] = True
                fit[place[item]] = [min(abs(g - a) for a in acceptable) <= max_deviation for g in one.grades]
        met.append(pairs[criterion][checked[one.item]])
        for row in np.flatnonzero(~fit[one.item, one.code]).tolist():
            item = one.items[one.item[row]]
            worker, label = one.workers[one.worker[row]], one.grades[one.code[row]]
            removal = Removal(
                topic_of(item.turn_id), worker, item.turn_id, item.item_id, criterion, label, of_item[item]
            )
            fails.append((int(pairs[criterion][row]), removal))
    failed, times = np.unique([pair for pair, _ in fails], return_counts=True)
    gone = failed[times > max_fails].astype(np.int64)
    every = distinct(np.concatenate([distinct(one) for one in pairs.values()])) if pairs else gone
    checks = distinct(np.concatenate(met)) if met else gone
    gone_pairs = set(gone.tolist())
    removals = [removal for pair, removal in fails if pair in gone_pairs]
    known_items = {Item(*item[:2]) for item in known}
    kept, removed = {}, {}
    for criterion, one in labels.items():
        out = np.isin(pairs[criterion], gone)
        rest, still = _without(one, known_items, ~out)
        kept[criterion] = rest
        lost = np.bincount(one.topic[one.item[out & still]], minlength=len(one.topics))
        removed[criterion] = {topic: int(n) for topic, n in zip(one.topics, lost, strict=True) if n}
    met_items = {item for one in labels.values() for item in one.items}
    return kept, Audit(
        removals=tuple(sorted(removals, key=_removal_order)),
        tolerated=len(fails) - len(removals),
        checked=len(checks),
        unchecked=len(every) - len(checks),
        known=len(known_items & met_items),
        unlabeled=tuple(sorted(known_items - met_items, key=_item_order)),
        labels_removed=removed,
    )


def without_known(labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem]) -> dict[str, CrowdLabels]:
    """The labels without known items, of all workers: what the filter is compared with."""
    items = {Item(*item[:2]) for item in known}
    return {name: _without(one, items, np.ones(len(one.item), dtype=np.bool_))[0] for name, one in labels.items()}


def few_labels(kept: CrowdLabels, before: CrowdLabels, fewest: int) -> tuple[FewLabels, ...]:
    """The items with fewer labels than `fewest`, in natural order.

    Args:
        kept: Labels after the filter.
        before: The same items' labels without it.
        fewest: Labels that an item should have.
    """
    n, n_before = (one.counts.sum(axis=1) for one in (kept, before))
    return tuple(
        FewLabels(*kept.items[i], kept.criterion, int(n[i]), int(n_before[i]))
        for i in np.flatnonzero(n < fewest).tolist()
    )


def changed_grades(kept: Aggregated, before: Aggregated) -> int:
    """How many items have another grade after the filter than without it; losing the grade is a change."""
    return int(np.count_nonzero(kept.code != before.code))


def _pairs(labels: CrowdLabels, topics: Sequence[str], workers: Sequence[str]) -> NDArray[np.int64]:
    """A number for each label's topic and worker (L,), the same under every criterion."""
    topic, worker = ({name: i for i, name in enumerate(names)} for names in (topics, workers))
    of_topic = np.array([topic[name] for name in labels.topics], dtype=np.int64)
    of_worker = np.array([worker[name] for name in labels.workers], dtype=np.int64)
    return of_topic[labels.topic[labels.item]] * len(workers) + of_worker[labels.worker]


def _without(labels: CrowdLabels, known: set[Item], keep: NDArray[np.bool_]) -> tuple[CrowdLabels, NDArray[np.bool_]]:
    """The labels to keep of the items that are not known, and which labels (L,) are of such items."""
    stays = np.array([item not in known for item in labels.items], dtype=np.bool_)
    still = stays[labels.item]
    rest = labels.kept(keep & still)
    place = np.cumsum(stays, dtype=np.int32) - 1
    items = tuple(item for item, stay in zip(labels.items, stays, strict=True) if stay)
    return replace(rest, items=items, item=place[rest.item]), still


def _removal_order(removal: Removal) -> tuple[object, ...]:
    return natural_key(removal.topic), natural_key(removal.worker), *_item_order(removal[2:4]), removal.criterion


def _item_order(item: Sequence[str]) -> tuple[object, ...]:
    return natural_key(item[0]), natural_key(item[1])


def known_warnings(audit: Audit, file: str) -> tuple[Problem, ...]:
    """A warning for each known item that nobody labeled."""
    return tuple(
        Problem("unlabeled_known_item", "warning", file, turn_id, "", f"nobody labeled {item_id}")
        for turn_id, item_id in audit.unlabeled
    )
