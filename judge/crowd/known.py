"""Leaves workers who contradict a known item out of the whole topic; the acceptable labels of known items are given.

This is the rule of CAsT-ReGIn, with optional tolerance. Known items are then removed from the labels, so they never
reach qrels, gold or agreement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.crowd.aggregators import Aggregated
from judge.crowd.known_file import KnownItem
from judge.crowd.labels import CrowdLabels, Item, distinct
from judge.io.ids import natural_key, topic_of
from judge.records import Problem
from judge.stats.worker_models import removal_probability


class Removal(NamedTuple):
    """A label that contradicts a known item and removed its worker from a topic."""

    topic: str
    worker: str
    turn_id: str
    item_id: str
    criterion: str
    label: int
    acceptable: tuple[int, ...]


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


class FewLabels(NamedTuple):
    """An item with fewer labels than wanted; with none it has no grade."""

    turn_id: str
    item_id: str
    criterion: str
    n: int
    before: int
    """Labels without the filter."""


def filter_workers(
    labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem], *, max_fails: int = 0, max_deviation: int = 0
) -> tuple[dict[str, CrowdLabels], Audit]:
    """Remove the known items, and from each topic the workers who contradict its known items, in all criteria.

    A label contradicts a known item if it differs from every acceptable label by more than `max_deviation`. A worker
    with more than `max_fails` contradictions in a topic, over all criteria, loses all labels there. Items that lose all
    their labels stay, so that reports can name them.

    Args:
        labels: By criterion.
        known: Known items.
        max_fails: Contradictions that a worker may have in a topic.
        max_deviation: Largest difference that is no contradiction, in scale values.

    Returns:
        Criterion to the kept labels, and what was removed.
    """
    workers = sorted({name for crowd in labels.values() for name in crowd.workers}, key=natural_key)
    topics = sorted({name for crowd in labels.values() for name in crowd.topics}, key=natural_key)
    pairs = {name: _pairs(crowd, topics, workers) for name, crowd in labels.items()}
    met: list[NDArray[np.int64]] = []
    fails: list[tuple[int, Removal]] = []
    for criterion, crowd in labels.items():
        of_item = {Item(*item[:2]): item.acceptable for item in known if item.criterion == criterion}
        checked, wrong = _contradictions(crowd, of_item, max_deviation)
        met.append(pairs[criterion][checked])
        for row in wrong:
            item = crowd.items[crowd.item[row]]
            worker, label = crowd.workers[crowd.worker[row]], crowd.grades[crowd.code[row]]
            removal = Removal(
                topic_of(item.turn_id), worker, item.turn_id, item.item_id, criterion, label, of_item[item]
            )
            fails.append((int(pairs[criterion][row]), removal))
    failed, times = np.unique([pair for pair, _ in fails], return_counts=True)
    gone = failed[times > max_fails].astype(np.int64)
    every = distinct(np.concatenate([distinct(numbers) for numbers in pairs.values()])) if pairs else gone
    checks, met_times = np.unique(np.concatenate(met) if met else gone, return_counts=True)
    sizes, pairs_of_size = np.unique(met_times, return_counts=True)
    gone_pairs = set(gone.tolist())
    removals = [removal for pair, removal in fails if pair in gone_pairs]
    known_items = {Item(*item[:2]) for item in known}
    kept, removed = {}, {}
    for criterion, crowd in labels.items():
        out = np.isin(pairs[criterion], gone)
        rest, still = _without(crowd, known_items, ~out)
        kept[criterion] = rest
        lost = np.bincount(crowd.topic[crowd.item[out & still]], minlength=len(crowd.topics))
        removed[criterion] = {topic: int(n) for topic, n in zip(crowd.topics, lost, strict=True) if n}
    met_items = {item for crowd in labels.values() for item in crowd.items}
    return kept, Audit(
        removals=tuple(sorted(removals, key=_removal_order)),
        tolerated=len(fails) - len(removals),
        checked=len(checks),
        unchecked=len(every) - len(checks),
        met=dict(zip(sizes.tolist(), pairs_of_size.tolist(), strict=True)),
        known=len(known_items & met_items),
        unlabeled=tuple(sorted(known_items - met_items, key=_item_order)),
        labels_removed=removed,
    )


def _contradictions(
    labels: CrowdLabels, acceptable: Mapping[Item, Sequence[int]], max_deviation: int
) -> tuple[NDArray[np.bool_], list[int]]:
    """A mask (L,) of the labels of known items, and the numbers of those labels that contradict them."""
    fit = np.ones((len(labels.items), len(labels.grades)), dtype=np.bool_)
    for place, item in enumerate(labels.items):
        if item in acceptable:
            fit[place] = [min(abs(g - a) for a in acceptable[item]) <= max_deviation for g in labels.grades]
    checked = np.array([item in acceptable for item in labels.items], dtype=np.bool_)
    return checked[labels.item], np.flatnonzero(~fit[labels.item, labels.code]).tolist()


def without_known(labels: Mapping[str, CrowdLabels], known: Sequence[KnownItem]) -> dict[str, CrowdLabels]:
    """The labels of all workers without known items; the filtered labels are compared with these."""
    items = {Item(*item[:2]) for item in known}
    return {name: _without(crowd, items, np.ones(len(crowd.item), dtype=np.bool_))[0] for name, crowd in labels.items()}


def few_labels(kept: CrowdLabels, before: CrowdLabels, fewest: int) -> tuple[FewLabels, ...]:
    """The items with fewer labels than `fewest`, in natural order.

    Args:
        kept: Labels after the filter.
        before: Labels of the same items without the filter.
        fewest: Labels that an item should have.
    """
    n, n_before = (crowd.counts.sum(axis=1) for crowd in (kept, before))
    return tuple(
        FewLabels(*kept.items[i], kept.criterion, int(n[i]), int(n_before[i]))
        for i in np.flatnonzero(n < fewest).tolist()
    )


def changed_grades(kept: Aggregated, before: Aggregated) -> int:
    """How many items have another grade after the filter than without it; losing the grade is a change."""
    return int(np.count_nonzero(kept.code != before.code))


def _pairs(labels: CrowdLabels, topics: Sequence[str], workers: Sequence[str]) -> NDArray[np.int64]:
    """(L,), for each label a number of its topic and worker, the same under every criterion."""
    topic, worker = ({name: i for i, name in enumerate(names)} for names in (topics, workers))
    of_topic = np.array([topic[name] for name in labels.topics], dtype=np.int64)
    of_worker = np.array([worker[name] for name in labels.workers], dtype=np.int64)
    return of_topic[labels.topic[labels.item]] * len(workers) + of_worker[labels.worker]


def _without(labels: CrowdLabels, known: set[Item], keep: NDArray[np.bool_]) -> tuple[CrowdLabels, NDArray[np.bool_]]:
    """The kept labels of items that are not known, and a mask (L,) of the labels of such items."""
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
