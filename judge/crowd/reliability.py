"""A crowd's agreement: alpha of each criterion and topic, and κ of every two workers."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels, distinct
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, alpha_of_coincidences
from judge.stats.reliability import alpha_of_counts, coincidences, units_off_commonest
from judge.stats.resampling import fisher_interval, topic_draws
from judge.stats.tables import Floats, Undefined

FEWEST_COMMON = 10
"""Fewest items that two workers must share."""
MOST_PAIRS = 5_000_000
"""Pairs of labels that pairwise κ is computed from; of larger crowds a random sample of workers is taken."""
MOST_RESAMPLED = 20_000
"""Items of a criterion up to which each topic's alpha has an interval."""
MOST_CELLS = 1_000_000
"""Units times k² up to which there are intervals of scales with many grades: a slider's tables are large."""
_REPLICATES = 1000


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


def reliability(
    labels: CrowdLabels, rng: np.random.Generator, *, of: Literal["kept", "all"] = "kept"
) -> ReliabilityRow:
    """Alpha of the criterion with its interval over topics; of labels that the filter kept, or of all."""
    workers = int(np.bincount(labels.worker).astype(bool).sum())
    return ReliabilityRow(labels.criterion, None, _over_topics(labels, rng), workers, len(labels.item), of)


def _over_topics(labels: CrowdLabels, rng: np.random.Generator) -> Estimate:
    T, k = len(labels.topics), len(labels.grades)
    if T * k**2 <= MOST_CELLS:
        return alpha_of_counts(labels.counts, labels.topic, labels.grades, "ordinal", rng, _REPLICATES)
    pairable = labels.counts.sum(axis=1) >= 2
    n, topics = int(pairable.sum()), len(np.unique(labels.topic[pairable]))
    value = _alpha(labels.counts, labels.grades)
    if isinstance(value, Undefined):
        return Estimate(None, None, None, n, topics, value.reason)
    return Estimate(value, None, None, n, topics, f"no interval: {T:,} topics of {k} grades are too many to resample")


def _alpha(counts: NDArray[np.int64], grades: Sequence[int]) -> float | Undefined:
    """Ordinal alpha; without arrays of units by grades by grades, for which sliders have too many grades."""
    m = counts.sum(axis=1)
    v, share = counts[m >= 2].astype(np.float64), 1.0 / (m[m >= 2] - 1)
    pairs = (v.T * share) @ v - np.diag(share @ v)
    value = float(alpha_of_coincidences("ordinal", pairs[None], grades)[0])
    if np.isnan(value):
        return Undefined("all raters gave one and the same grade throughout" if len(v) else "no unit has two grades")
    return value


def topic_reliability(labels: CrowdLabels, rng: np.random.Generator) -> tuple[ReliabilityRow, ...]:
    """Alpha of each topic with an interval over its items."""
    counts, of_label = labels.counts, labels.topic[labels.item]
    N, k = counts.shape
    unsampled = f"no interval: more than {MOST_RESAMPLED:,} items in all" if N > MOST_RESAMPLED else None
    if unsampled is None and N * k**2 > MOST_CELLS:
        unsampled = f"no interval: {N:,} items of {k} grades are too many to resample"
    rows = []
    for t, topic in enumerate(labels.topics):
        alpha = _topic_alpha(counts[labels.topic == t], labels.grades, rng, unsampled)
        workers = labels.worker[of_label == t]
        rows.append(ReliabilityRow(labels.criterion, topic, alpha, len(distinct(workers)), len(workers)))
    return tuple(rows)


def _topic_alpha(
    counts: NDArray[np.int64], grades: Sequence[int], rng: np.random.Generator, unsampled: str | None
) -> Estimate:
    """Alpha of one topic's items; its interval takes them for a sample of items, which says nothing of other topics.

    `counts`: how often each item got each grade (N x k); `unsampled`: why there is no interval, if so.
    """
    n = int((counts.sum(axis=1) >= 2).sum())
    value = _alpha(counts, grades)
    if isinstance(value, Undefined):
        return Estimate(None, None, None, n, 1, value.reason)
    if unsampled is not None:
        return Estimate(value, None, None, n, 1, unsampled)
    pairs = coincidences(counts, np.arange(len(counts)), len(counts))
    pairs = pairs[pairs.any(axis=(1, 2))]
    drawn = topic_draws(n, _REPLICATES, rng).astype(np.float64) @ pairs.reshape(n, -1)
    alphas: Floats = alpha_of_coincidences("ordinal", drawn.reshape(-1, *pairs.shape[1:]), grades)
    found, others = Estimate(value, None, None, n, 1), units_off_commonest(counts)
    return fisher_interval(found, alphas, np.ones(n), "items", others=others)


def pairwise(
    labels: CrowdLabels, rng: np.random.Generator, *, fewest: int = FEWEST_COMMON
) -> tuple[tuple[PairRow, ...], float]:
    """κ of every two workers who share at least `fewest` items; and of large crowds, the share of workers sampled.

    Workers are drawn, not items: of every two that are drawn all common items count, so a survey in which everybody
    labels the same few items is not left without any.
    """
    import polars as pl

    labels, share = _some_workers(labels, rng)
    k = len(labels.grades)
    one = pl.LazyFrame({"item": labels.item, "worker": labels.worker, "code": labels.code})
    pairs = one.join(one, on="item", suffix="_b").filter(pl.col("worker") < pl.col("worker_b"))
    cells = pairs.group_by("worker", "worker_b").agg("code", "code_b").filter(pl.col("code").list.len() >= fewest)
    rows: list[PairRow] = []
    for part in cells.sort("worker", "worker_b").collect().iter_slices(max(1, MOST_CELLS // k**2)):
        n = part["code"].list.len().to_numpy()
        codes, codes_b = (part[name].explode().to_numpy().astype(np.int64) for name in ("code", "code_b"))
        cell = (np.repeat(np.arange(len(n)), n) * k + codes) * k + codes_b
        C = np.bincount(cell, minlength=len(n) * k**2).reshape(len(n), k, k)
        same, kappa, wkappa = (statistic_of(name, C, labels.grades) for name in ("percent", "kappa", "wkappa"))
        rows += (
            PairRow(labels.criterion, labels.workers[a], labels.workers[b], m, same[i] or 0.0, kappa[i], wkappa[i])
            for i, (a, b, m) in enumerate(zip(part["worker"], part["worker_b"], n.tolist(), strict=True))
        )
    return tuple(rows), share


def _some_workers(labels: CrowdLabels, rng: np.random.Generator) -> tuple[CrowdLabels, float]:
    """The labels of as many workers, drawn at random, as give MOST_PAIRS pairs or fewer; and the share of them drawn.

    Two workers at least: they give no more pairs than there are items.
    """
    if _n_pairs(labels.item) <= MOST_PAIRS:
        return labels, 1.0
    active = np.flatnonzero(np.bincount(labels.worker, minlength=len(labels.workers)))
    rank = np.zeros(len(labels.workers), dtype=np.int64)
    rank[active] = rng.permutation(len(active))
    drawn, more = rank[labels.worker], range(3, len(active))
    n = 2 + bisect_right(more, MOST_PAIRS, key=lambda few: _n_pairs(labels.item[drawn < few]))
    return labels.kept(drawn < n), n / len(active)


def _n_pairs(item: NDArray[np.int32]) -> int:
    n = np.bincount(item)
    return int((n * (n - 1) // 2).sum())


def statistic_of(name: str, C: NDArray[np.int64], grades: Sequence[int]) -> list[float | None]:
    """The named statistic of each table (B x k x k); None where it is undefined."""
    return [None if np.isnan(value) else float(value) for value in STATISTICS[name](C, grades)]
