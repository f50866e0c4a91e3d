"""The workers: how each agrees with the others, and signs of spam."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.aggregators import TOO_FAST
from judge.crowd.labels import CrowdLabels, distinct
from judge.crowd.reliability import statistic_of
from judge.io.ids import natural_key
from judge.stats.consensus import entropy, without_one

FEWEST_LABELS = 10
"""Fewest labels of a worker for a flag."""
FEWEST_COMPARED = 20
"""Fewest items shared with others for the flag `no agreement`."""
CONSTANT = 0.95
"""Share of one and the same label, or of items labeled alike under all criteria, from which a worker is flagged."""


class WorkerRow(msgspec.Struct, frozen=True):
    """One worker under one criterion; undefined numbers are None."""

    worker: str
    criterion: str
    labels: int
    topics: int
    removed_topics: int
    compared: int
    """Items that others labeled too."""
    same: float | None
    """Share of these items on which the label equals the others' consensus."""
    deviation: float | None
    """Mean distance from it, in scale values."""
    kappa: float | None
    wkappa: float | None
    commonest: int | None
    """The label given most; of several the lowest."""
    commonest_share: float | None
    entropy: float | None
    """Of the labels given, in bits."""
    longest_run: int
    """Labels alike one after the other, in the order of the tables."""
    alike: float | None
    """Share of the items labeled under several criteria that got one and the same label under all; of all criteria."""
    median_seconds: float | None
    too_fast: float | None
    """Share of the timed labels that took less than the least time."""
    flags: tuple[str, ...]


def worker_table(
    labels: Mapping[str, CrowdLabels],
    *,
    removed: Iterable[tuple[str, str]] = (),
    too_fast: float = TOO_FAST,
) -> tuple[WorkerRow, ...]:
    """A row for each worker and criterion, workers in natural order.

    Args:
        labels: By criterion, known items left out. Workers removed from a topic may still be in: the table is about
            what they did. Who was removed and labeled nothing but known items has rows without labels.
        removed: Topic and worker of each removal.
        too_fast: Seconds under which a label is too fast.
    """
    times = dict[str, int]()
    for _, worker in removed:
        times[worker] = times.get(worker, 0) + 1
    alike = _alike(labels)
    rows = [row for crowd in labels.values() for row in _worker_rows(crowd, times, alike, too_fast)]
    silent = times.keys() - {row.worker for row in rows}
    rows += [_without_labels(worker, criterion, times[worker]) for worker in silent for criterion in labels]
    order = {criterion: place for place, criterion in enumerate(labels)}
    return tuple(sorted(rows, key=lambda row: (natural_key(row.worker), order[row.criterion])))


def _without_labels(worker: str, criterion: str, removed_topics: int) -> WorkerRow:
    return WorkerRow(
        worker=worker,
        criterion=criterion,
        labels=0,
        topics=0,
        removed_topics=removed_topics,
        compared=0,
        same=None,
        deviation=None,
        kappa=None,
        wkappa=None,
        commonest=None,
        commonest_share=None,
        entropy=None,
        longest_run=0,
        alike=None,
        median_seconds=None,
        too_fast=None,
        flags=("removed",),
    )


def _worker_rows(
    labels: CrowdLabels, removed: Mapping[str, int], alike: Mapping[str, tuple[float, int]], too_fast: float
) -> list[WorkerRow]:
    W, k = len(labels.workers), len(labels.grades)
    given = np.bincount(labels.worker.astype(np.int64) * k + labels.code, minlength=W * k).reshape(W, k)
    n, bits = given.sum(axis=1), entropy(given)
    C = _against_others(labels)
    statistics = {name: statistic_of(name, C, labels.grades) for name in ("percent", "mae", "kappa", "wkappa")}
    compared = C.sum(axis=(1, 2))
    runs = longest_runs(labels)
    medians, fast = _times(labels, too_fast)
    pairs = distinct(labels.worker.astype(np.int64) * len(labels.topics) + labels.topic[labels.item])
    topics = np.bincount(pairs // max(len(labels.topics), 1), minlength=W)
    rows = []
    for w in np.flatnonzero(n).tolist():
        name = labels.workers[w]
        share, items_alike = alike.get(name, (0.0, 0))
        row = WorkerRow(
            worker=name,
            criterion=labels.criterion,
            labels=int(n[w]),
            topics=int(topics[w]),
            removed_topics=removed.get(name, 0),
            compared=int(compared[w]),
            same=statistics["percent"][w],
            deviation=statistics["mae"][w],
            kappa=statistics["kappa"][w],
            wkappa=statistics["wkappa"][w],
            commonest=labels.grades[int(given[w].argmax())],
            commonest_share=float(given[w].max() / n[w]),
            entropy=float(bits[w]),
            longest_run=int(runs[w]),
            alike=share if items_alike else None,
            median_seconds=medians[w],
            too_fast=fast[w],
            flags=(),
        )
        rows.append(msgspec.structs.replace(row, flags=_flags(row, items_alike)))
    return rows


def _flags(row: WorkerRow, items_alike: int) -> tuple[str, ...]:
    """The flags of a worker."""
    enough = row.labels >= FEWEST_LABELS
    signs = {
        "constant": enough and row.commonest_share is not None and row.commonest_share >= CONSTANT,
        "alike": items_alike >= FEWEST_LABELS and row.alike is not None and row.alike >= CONSTANT,
        "no agreement": row.compared >= FEWEST_COMPARED and row.kappa is not None and row.kappa <= 0,
        "fast": enough and row.too_fast is not None and row.too_fast > 0.5,
        "removed": row.removed_topics > 0,
    }
    return tuple(name for name, present in signs.items() if present)


def _against_others(labels: CrowdLabels) -> NDArray[np.int64]:
    """For each worker the table (W x k x k) of the consensus of the others against the worker's labels."""
    W, k = len(labels.workers), len(labels.grades)
    rest = without_one(labels.counts, labels.grades)[labels.item, labels.code]
    has = rest >= 0
    cell = (labels.worker[has].astype(np.int64) * k + rest[has]) * k + labels.code[has]
    return np.bincount(cell, minlength=W * k * k).reshape(W, k, k)


def longest_runs(labels: CrowdLabels) -> NDArray[np.int64]:
    """For each worker (W,) the most labels alike one after the other, in the order of the tables."""
    order = np.argsort(labels.worker, kind="stable")
    worker, code = labels.worker[order], labels.code[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (worker[1:] != worker[:-1]) | (code[1:] != code[:-1])
    at = np.flatnonzero(starts)
    longest = np.zeros(len(labels.workers), dtype=np.int64)
    np.maximum.at(longest, worker[at], np.diff(np.append(at, len(order))))
    return longest


def _times(labels: CrowdLabels, too_fast: float) -> tuple[list[float | None], list[float | None]]:
    """Median seconds and share of too fast labels of each worker."""
    W = len(labels.workers)
    if labels.seconds is None:
        return [None] * W, [None] * W
    timed = ~np.isnan(labels.seconds)
    worker, seconds = labels.worker[timed], labels.seconds[timed].astype(np.float64)
    order = np.lexsort((seconds, worker))
    n = np.bincount(worker, minlength=W)
    ends = np.cumsum(n)
    ranked = seconds[order]
    has = n > 0
    low, high = ((ends - n + (n - 1) // 2)[has], (ends - n + n // 2)[has])
    fast = np.bincount(worker, weights=seconds < too_fast, minlength=W)
    medians = iter(((ranked[low] + ranked[high]) / 2).tolist())
    return (
        [next(medians) if n[w] else None for w in range(W)],
        [float(fast[w] / n[w]) if n[w] else None for w in range(W)],
    )


def _alike(labels: Mapping[str, CrowdLabels]) -> dict[str, tuple[float, int]]:
    """For each worker, of the items labeled under several criteria: the share with one place in all scales, and n."""
    if len(labels) < 2:
        return {}
    workers = list(dict.fromkeys(name for crowd in labels.values() for name in crowd.workers))
    items = list(dict.fromkeys(item for crowd in labels.values() for item in crowd.items))
    worker = {name: i for i, name in enumerate(workers)}
    item = {name: i for i, name in enumerate(items)}
    keys, codes = [], []
    for crowd in labels.values():
        of_worker = np.array([worker[name] for name in crowd.workers], dtype=np.int64)
        of_item = np.array([item[name] for name in crowd.items], dtype=np.int64)
        keys.append(of_worker[crowd.worker] * len(items) + of_item[crowd.item])
        codes.append(crowd.code)
    order = np.argsort(key := np.concatenate(keys), kind="stable")
    key, code = key[order], np.concatenate(codes)[order]
    if not len(key):
        return {}
    at = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    several = np.diff(np.append(at, len(key))) > 1
    same = np.maximum.reduceat(code, at) == np.minimum.reduceat(code, at)
    of = key[at] // len(items)
    n = np.bincount(of[several], minlength=len(workers))
    n_same = np.bincount(of[several & same], minlength=len(workers))
    return {name: (float(n_same[w] / n[w]), int(n[w])) for name, w in worker.items() if n[w]}
