"""The workers and how far they agree: a table of workers with signs of spam, reliability, and κ of pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels
from judge.crowd.rows import distinct
from judge.ids import natural_key
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, Floats, Undefined, alpha_of_coincidences, krippendorff_alpha
from judge.stats.consensus import entropy, without_one
from judge.stats.reliability import alpha_interval, coincidences
from judge.stats.resampling import fisher_interval, topic_draws

TOO_FAST = 2.0
"""Seconds under which a label counts as too fast unless said otherwise."""
FEWEST_LABELS = 10
"""Fewest labels that a worker is called anything by, and fewest items that two workers must share."""
FEWEST_COMPARED = 20
"""Fewest items shared with others by which a worker is said not to agree with them."""
CONSTANT = 0.95
"""Share of one and the same label, or of items labeled alike under all criteria, from which a worker is flagged."""
MOST_PAIRS = 5_000_000
"""Pairs of labels that pairwise κ is computed from; of larger crowds a random sample of items is taken."""
MOST_RESAMPLED = 20_000
"""Items of a criterion up to which each topic's alpha has an interval."""
_REPLICATES = 1000
_Integer = TypeVar("_Integer", bound=np.integer[Any])


class WorkerRow(msgspec.Struct, frozen=True):
    """One worker under one criterion; what is undefined is None."""

    worker: str
    criterion: str
    labels: int
    topics: int
    removed_topics: int
    compared: int
    """Items that others labeled too."""
    same: float | None
    """Share of them with the label that the others' consensus is."""
    deviation: float | None
    """Mean distance from it, in scale values."""
    kappa: float | None
    wkappa: float | None
    commonest: int
    """The label given most; of several the lowest."""
    commonest_share: float
    entropy: float
    """Of the labels given, in bits."""
    longest_run: int
    """Labels alike one after the other, in the order of the tables."""
    alike: float | None
    """Share of the items labeled under several criteria that got one and the same label under all; of all criteria."""
    median_seconds: float | None
    too_fast: float | None
    """Share of the timed labels that took less than the least time."""
    flags: tuple[str, ...]


class ReliabilityRow(msgspec.Struct, frozen=True):
    """Krippendorff's ordinal alpha of a criterion, overall or in one topic."""

    criterion: str
    topic: str | None
    """None for all topics; the interval is then over topics, else over items."""
    alpha: Estimate
    workers: int
    labels: int
    of: Literal["kept", "all"] = "kept"
    """Labels that the filter kept, or all but those of known items."""


class PairRow(msgspec.Struct, frozen=True):
    """Two workers on the items that both labeled."""

    criterion: str
    a: str
    b: str
    n: int
    same: float
    kappa: float | None
    wkappa: float | None


@dataclass(frozen=True)
class Pairs:
    """Pairwise agreement under one criterion."""

    rows: tuple[PairRow, ...]
    sampled: float
    """Share of the items that the rows are of; 1 where nothing was sampled."""


def worker_table(
    labels: Mapping[str, CrowdLabels],
    *,
    removed: Iterable[tuple[str, str]] = (),
    too_fast: float = TOO_FAST,
) -> tuple[WorkerRow, ...]:
    """A row for each worker and criterion, workers in natural order.

    Args:
        labels: By criterion, known items left out. Workers removed from a topic may still be in: the table is about
            what they did.
        removed: Topic and worker of each removal.
        too_fast: Seconds under which a label is too fast.
    """
    times = dict[str, int]()
    for _, worker in removed:
        times[worker] = times.get(worker, 0) + 1
    alike = _alike(labels)
    rows = [row for one in labels.values() for row in _worker_rows(one, times, alike, too_fast)]
    order = {criterion: place for place, criterion in enumerate(labels)}
    return tuple(sorted(rows, key=lambda row: (natural_key(row.worker), order[row.criterion])))


def _worker_rows(
    labels: CrowdLabels, removed: Mapping[str, int], alike: Mapping[str, tuple[float, int]], too_fast: float
) -> list[WorkerRow]:
    W, k = len(labels.workers), len(labels.grades)
    given = np.bincount(labels.worker.astype(np.int64) * k + labels.code, minlength=W * k).reshape(W, k)
    n, bits = given.sum(axis=1), entropy(given)
    C = _against_others(labels)
    statistics = {name: _statistic(name, C, labels.grades) for name in ("percent", "mae", "kappa", "wkappa")}
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
    """What is odd about a worker, from as many labels as FEWEST_LABELS."""
    enough = row.labels >= FEWEST_LABELS
    signs = {
        "constant": enough and row.commonest_share >= CONSTANT,
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


def _statistic(name: str, C: NDArray[np.int64], grades: Sequence[int]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in STATISTICS[name](C, grades)]


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
    workers = list(dict.fromkeys(name for one in labels.values() for name in one.workers))
    items = list(dict.fromkeys(item for one in labels.values() for item in one.items))
    worker = {name: i for i, name in enumerate(workers)}
    item = {name: i for i, name in enumerate(items)}
    keys, codes = [], []
    for one in labels.values():
        of_worker = np.array([worker[name] for name in one.workers], dtype=np.int64)
        of_item = np.array([item[name] for name in one.items], dtype=np.int64)
        keys.append(of_worker[one.worker] * len(items) + of_item[one.item])
        codes.append(one.code)
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


def reliability(
    labels: CrowdLabels, rng: np.random.Generator, *, of: Literal["kept", "all"] = "kept"
) -> ReliabilityRow:
    """Alpha of the criterion with its interval over topics.

    Args:
        labels: Known items left out.
        rng: The source of randomness.
        of: Whether the labels are those that the filter kept, or all.
    """
    alpha = alpha_interval(_slots(labels), labels.topic, labels.grades, "ordinal", rng, _REPLICATES)
    return ReliabilityRow(
        labels.criterion, None, alpha, int(np.bincount(labels.worker).astype(bool).sum()), len(labels.item), of
    )


def topic_reliability(labels: CrowdLabels, rng: np.random.Generator) -> tuple[ReliabilityRow, ...]:
    """Alpha of each topic with an interval over its items.

    Args:
        labels: Known items left out.
        rng: The source of randomness.
    """
    T, W = len(labels.topics), max(len(labels.workers), 1)
    counts, of_label = labels.counts, labels.topic[labels.item]
    n = np.bincount(of_label, minlength=T)
    workers = np.bincount(distinct(of_label.astype(np.int64) * W + labels.worker) // W, minlength=T)
    ends = np.cumsum(np.bincount(labels.topic, minlength=T))
    items = np.split(np.argsort(labels.topic, kind="stable"), ends[:-1])
    resampled = len(labels.items) <= MOST_RESAMPLED
    return tuple(
        ReliabilityRow(
            labels.criterion,
            topic,
            _topic_alpha(counts[items[t]], labels.grades, rng, resampled),
            int(workers[t]),
            int(n[t]),
        )
        for t, topic in enumerate(labels.topics)
    )


def _topic_alpha(
    counts: NDArray[np.int64], grades: Sequence[int], rng: np.random.Generator, resampled: bool
) -> Estimate:
    """Alpha of one topic's items; its interval takes them for a sample of items, which says nothing of other topics."""
    n = int((counts.sum(axis=1) >= 2).sum())
    value = krippendorff_alpha(counts, grades, "ordinal")
    if isinstance(value, Undefined):
        return Estimate(None, None, None, n, 1, value.reason)
    if not resampled:
        return Estimate(value, None, None, n, 1, f"no interval: more than {MOST_RESAMPLED:,} items in all")
    pairs = coincidences(counts, np.arange(len(counts)), len(counts))
    pairs = pairs[pairs.any(axis=(1, 2))]
    drawn = topic_draws(n, _REPLICATES, rng).astype(np.float64) @ pairs.reshape(n, -1)
    alphas: Floats = alpha_of_coincidences("ordinal", drawn.reshape(-1, *pairs.shape[1:]), grades)
    return fisher_interval(value, alphas, n, 1, n, "items")


def _slots(labels: CrowdLabels) -> NDArray[np.int8]:
    """Codes (R x N) with each item's labels in its first places, -1 below: alpha does not ask who gave a label."""
    return _placed(labels, labels.code, np.int8(-1))


def _placed(labels: CrowdLabels, values: NDArray[_Integer], nothing: _Integer) -> NDArray[_Integer]:
    """A value of each label (L,) by item (R x N), an item's labels in its first places and `nothing` below."""
    order = np.argsort(labels.item, kind="stable")
    item = labels.item[order]
    n = np.bincount(item, minlength=len(labels.items))
    place = np.arange(len(item)) - np.repeat(np.cumsum(n) - n, n)
    slots = np.full((int(n.max(initial=0)), len(labels.items)), nothing, dtype=values.dtype)
    slots[place, item] = values[order]
    return slots


def pairwise(labels: CrowdLabels, rng: np.random.Generator, *, fewest: int = FEWEST_LABELS) -> Pairs:
    """κ of every two workers who share at least `fewest` items; of large crowds from a random sample of items.

    Args:
        labels: Known items left out.
        rng: Draws the sample, where one is needed.
        fewest: Fewest common items.
    """
    n = labels.counts.sum(axis=1)
    total = int((n * (n - 1) // 2).sum())
    share = min(1.0, MOST_PAIRS / total) if total else 1.0
    if share < 1:
        drawn = rng.random(len(labels.items)) < share
        labels = labels.kept(drawn[labels.item])
    W, k = len(labels.workers), len(labels.grades)
    workers = _placed(labels, labels.worker, np.int32(-1)).astype(np.int64)
    codes = _slots(labels)
    pairs, cells = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for i in range(len(workers)):
        for j in range(i + 1, len(workers)):
            both = workers[j] >= 0
            a, b, x, y = (one[both] for one in (workers[i], workers[j], codes[i], codes[j]))
            swap = a > b
            pairs.append(np.where(swap, b * W + a, a * W + b))
            cells.append(np.where(swap, y.astype(np.int64) * k + x, x.astype(np.int64) * k + y))
    found, place, common = np.unique(np.concatenate(pairs), return_inverse=True, return_counts=True)
    enough = common >= fewest
    new = np.cumsum(enough) - 1
    keep = enough[place]
    P = int(enough.sum())
    flat = new[place[keep]] * (k * k) + np.concatenate(cells)[keep]
    C = np.bincount(flat, minlength=P * k * k).reshape(P, k, k)
    columns = [_statistic(name, C, labels.grades) for name in ("percent", "kappa", "wkappa")]
    rows = [
        PairRow(labels.criterion, labels.workers[pair // W], labels.workers[pair % W], int(m), same or 0.0, *kappas)
        for pair, m, same, *kappas in zip(found[enough].tolist(), common[enough], *columns, strict=True)
    ]
    return Pairs(tuple(rows), share)
