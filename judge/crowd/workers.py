"""The workers: how each agrees with the others, and signs of spam."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import TOO_FAST, CrowdLabels
from judge.io.ids import natural_key
from judge.records import Record
from judge.stats.agreement import STATISTICS
from judge.stats.consensus import against_others, entropy

FEWEST_LABELS = 10
"""Fewest labels of a worker for a flag."""
FEWEST_COMPARED = 20
"""Fewest items shared with others for the flag `no agreement`."""
CONSTANT = 0.95
"""Share of one and the same label, or of items labeled alike under all criteria, from which a worker is flagged."""


class WorkerRow(Record, frozen=True, kw_only=True):
    """One worker under one criterion, with the columns of `workers.tsv`; undefined numbers are None."""

    worker: str
    criterion: str
    labels: int = 0
    topics: int = 0
    removed_topics: int = 0
    compared: int = 0
    """Items that others labeled too."""
    same: float | None = None
    """Share of these items on which the label is the grade of most others; where grades tie, in equal parts."""
    deviation: float | None = None
    """Mean distance from it, in scale values."""
    kappa: float | None = None
    wkappa: float | None = None
    commonest: int | None = None
    """The label given most; of several the lowest."""
    commonest_share: float | None = None
    entropy: float | None = None
    """Of the labels given, in bits."""
    longest_run: int = 0
    """Labels alike one after the other, in the order of the tables."""
    alike: float | None = None
    """Share of the items labeled under several criteria that got one and the same label under all; of all criteria."""
    median_seconds: float | None = None
    too_fast: float | None = None
    """Share of the timed labels that took less than the least time."""
    flags: tuple[str, ...] = ()


def statistic_of(name: str, C: NDArray[Any], grades: Sequence[int]) -> list[float | None]:
    """The named statistic of each table (B x k x k); None where it is undefined."""
    return [None if np.isnan(value) else float(value) for value in STATISTICS[name](C, grades)]


def worker_table(
    labels: Mapping[str, CrowdLabels], removed: Iterable[tuple[str, str]] = (), too_fast: float = TOO_FAST
) -> tuple[WorkerRow, ...]:
    """A row for each worker and criterion, workers in natural order.

    Workers removed from a topic may still be among the labels: the table is about what they did. Who was removed
    (topic and worker) and labeled nothing but known items has rows without labels.
    """
    times = Counter(worker for _, worker in removed)
    alike = _alike(labels)
    rows: list[WorkerRow] = []
    for crowd in labels.values():
        rows += _worker_rows(crowd, times, alike, too_fast)
    for worker in times.keys() - {row.worker for row in rows}:
        for criterion in labels:
            rows.append(WorkerRow(worker=worker, criterion=criterion, removed_topics=times[worker], flags=("removed",)))
    order = {criterion: place for place, criterion in enumerate(labels)}
    return tuple(sorted(rows, key=lambda row: (natural_key(row.worker), order[row.criterion])))


def _worker_rows(
    labels: CrowdLabels, removed: Counter[str], alike: Mapping[str, tuple[float, int]], too_fast: float
) -> Iterator[WorkerRow]:
    import polars as pl

    W = len(labels.workers)
    k = len(labels.grades)
    counts = np.bincount(labels.worker.astype(np.int64) * k + labels.code, minlength=W * k).reshape(W, k)
    bits = entropy(counts)
    C = against_others(labels.worker, labels.item, labels.code, labels.counts, W)
    statistics = {name: statistic_of(name, C, labels.grades) for name in ("percent", "mae", "kappa", "wkappa")}
    compared = np.rint(C.sum(axis=(1, 2)))
    seconds = np.full(len(labels.code), np.nan) if labels.seconds is None else labels.seconds.astype(np.float64)
    columns = {"worker": labels.worker, "topic": labels.topic[labels.item], "code": labels.code}
    of_worker = pl.DataFrame({**columns, "seconds": pl.Series(seconds).fill_nan(None)}).group_by("worker")
    habits = of_worker.agg(
        topics=pl.col("topic").n_unique(),
        longest_run=pl.col("code").rle().struct.field("len").max(),
        median_seconds=pl.col("seconds").median(),
        too_fast=(pl.col("seconds") < too_fast).mean(),
    )
    for habit in habits.sort("worker").iter_rows(named=True):
        w = habit["worker"]
        name = labels.workers[w]
        n = int(counts[w].sum())
        share, items_alike = alike.get(name, (None, 0))
        row = WorkerRow(
            worker=name,
            criterion=labels.criterion,
            labels=n,
            removed_topics=removed[name],
            compared=int(compared[w]),
            same=statistics["percent"][w],
            deviation=statistics["mae"][w],
            kappa=statistics["kappa"][w],
            wkappa=statistics["wkappa"][w],
            commonest=labels.grades[int(counts[w].argmax())],
            commonest_share=float(counts[w].max() / n),
            entropy=float(bits[w]),
            alike=share,
            topics=habit["topics"],
            longest_run=habit["longest_run"],
            median_seconds=habit["median_seconds"],
            too_fast=habit["too_fast"],
        )
        yield msgspec.structs.replace(row, flags=_flags(row, items_alike))


def _flags(row: WorkerRow, items_alike: int) -> tuple[str, ...]:
    enough = row.labels >= FEWEST_LABELS
    signs = {
        "constant": enough and row.commonest_share is not None and row.commonest_share >= CONSTANT,
        "alike": items_alike >= FEWEST_LABELS and row.alike is not None and row.alike >= CONSTANT,
        "no agreement": row.compared >= FEWEST_COMPARED and row.kappa is not None and row.kappa <= 0,
        "fast": enough and row.too_fast is not None and row.too_fast > 0.5,
        "removed": row.removed_topics > 0,
    }
    return tuple(name for name, present in signs.items() if present)


def _alike(labels: Mapping[str, CrowdLabels]) -> dict[str, tuple[float, int]]:
    """For each worker, of the items labeled under several criteria: the share with one place in all scales, and n."""
    import polars as pl

    frames = []
    for crowd in labels.values():
        pairs = pl.DataFrame(crowd.items, {"turn": pl.String, "item": pl.String}, orient="row")[crowd.item]
        workers = pl.Series(crowd.workers, dtype=pl.String).gather(crowd.worker)
        frames.append(pairs.with_columns(worker=workers, code=pl.Series(crowd.code)))
    items = pl.concat(frames).group_by("worker", "turn", "item")
    several = items.agg(n=pl.len(), same=pl.col("code").n_unique() == 1).filter(pl.col("n") > 1)
    shares = several.group_by("worker").agg(share=pl.col("same").mean(), n=pl.len())
    return {worker: (share, n) for worker, share, n in shares.iter_rows()}
