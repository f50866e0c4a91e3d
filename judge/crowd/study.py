"""Makes a crowd's grades from labels, with statistics of workers and items, and its agreement (α, κ). Pure."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.crowd.known import Audit, FewLabels, KnownItem, few_labels, filter_workers, without_known
from judge.crowd.labels import AGGREGATORS, CrowdGrades, CrowdLabels, CrowdSettings, distinct
from judge.crowd.overlap import check_connected, thin_overlap
from judge.crowd.workers import WorkerRow, statistic_of, worker_table
from judge.io.steps import Step, Steps, quiet, stepped
from judge.records import Estimate, Problem, Record, file_problem
from judge.stats.agreement import alpha_of_coincidences
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
    return ReliabilityRow(
        criterion=labels.criterion,
        topic=None,
        alpha=_over_topics(labels, rng),
        workers=workers,
        labels=len(labels.item),
        of=of,
    )


def _over_topics(labels: CrowdLabels, rng: np.random.Generator) -> Estimate:
    T = len(labels.topics)
    k = len(labels.grades)
    if T * k**2 <= MOST_CELLS:
        return alpha_of_counts(labels.counts, labels.topic, labels.grades, "ordinal", rng, _REPLICATES)
    pairable = labels.counts.sum(axis=1) >= 2
    n = int(pairable.sum())
    topics = len(np.unique(labels.topic[pairable]))
    value = _alpha(labels.counts, labels.grades)
    if isinstance(value, Undefined):
        return Estimate(value=None, low=None, high=None, n=n, topics=topics, reason=value.reason)
    return Estimate(
        value=value,
        low=None,
        high=None,
        n=n,
        topics=topics,
        reason=f"no interval: {T:,} topics of {k} grades are too many to resample",
    )


def _alpha(counts: NDArray[np.int64], grades: Sequence[int]) -> float | Undefined:
    """Ordinal alpha; without arrays of units by grades by grades, for which sliders have too many grades."""
    m = counts.sum(axis=1)
    v = counts[m >= 2].astype(np.float64)
    share = 1.0 / (m[m >= 2] - 1)
    pairs = (v.T * share) @ v - np.diag(share @ v)
    value = float(alpha_of_coincidences("ordinal", pairs[None], grades)[0])
    if np.isnan(value):
        return Undefined("all raters gave one and the same grade throughout" if len(v) else "no unit has two grades")
    return value


def topic_reliability(labels: CrowdLabels, rng: np.random.Generator) -> tuple[ReliabilityRow, ...]:
    """Alpha of each topic with an interval over its items."""
    counts = labels.counts
    topic_of_label = labels.topic[labels.item]
    N, k = counts.shape
    unsampled = f"no interval: more than {MOST_RESAMPLED:,} items in all" if N > MOST_RESAMPLED else None
    if unsampled is None and N * k**2 > MOST_CELLS:
        unsampled = f"no interval: {N:,} items of {k} grades are too many to resample"
    rows = []
    for t, topic in enumerate(labels.topics):
        alpha = _topic_alpha(counts[labels.topic == t], labels.grades, rng, unsampled)
        workers = labels.worker[topic_of_label == t]
        rows.append(
            ReliabilityRow(
                criterion=labels.criterion,
                topic=topic,
                alpha=alpha,
                workers=len(distinct(workers)),
                labels=len(workers),
            )
        )
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
        return Estimate(value=None, low=None, high=None, n=n, topics=1, reason=value.reason)
    if unsampled is not None:
        return Estimate(value=value, low=None, high=None, n=n, topics=1, reason=unsampled)
    pairs = coincidences(counts, np.arange(len(counts)), len(counts))
    pairs = pairs[pairs.any(axis=(1, 2))]
    drawn = topic_draws(n, _REPLICATES, rng).astype(np.float64) @ pairs.reshape(n, -1)
    alphas: Floats = alpha_of_coincidences("ordinal", drawn.reshape(-1, *pairs.shape[1:]), grades)
    alpha = Estimate(value=value, low=None, high=None, n=n, topics=1)
    others = units_off_commonest(counts)
    return fisher_interval(alpha, alphas, np.ones(n), "items", others=others)


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
            PairRow(
                criterion=labels.criterion,
                a=labels.workers[a],
                b=labels.workers[b],
                n=m,
                same=same[i] or 0.0,
                kappa=kappa[i],
                wkappa=wkappa[i],
            )
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
    drawn = rank[labels.worker]
    more = range(3, len(active))
    n = 2 + bisect_right(more, MOST_PAIRS, key=lambda few: _n_pairs(labels.item[drawn < few]))
    return labels.kept(drawn < n), n / len(active)


def _n_pairs(item: NDArray[np.int32]) -> int:
    n = np.bincount(item)
    return int((n * (n - 1) // 2).sum())


FAR = 0.1
"""Share of grades unlike the majority's above which an aggregator that weighs workers is warned about.

For MACE, in simulated crowds of 5 labels an item it was .05 or less where MACE was right, and .22 to .36 where its
flat prior misled it (85 % of the items of one grade). It is as high where more than a third of the workers spam one
grade.
"""
SEED = 4
"""The seed of resamples and samples: the same labels give the same bytes."""


class Study(Record, frozen=True):
    """A crowd's grades and the statistics about them; mappings are by criterion."""

    settings: CrowdSettings
    labels: Mapping[str, CrowdLabels]
    """The labels that the grades are made from."""
    grades: Mapping[str, CrowdGrades]
    audit: Audit | None
    """None without known items."""
    changed: Mapping[str, int]
    """How many grades the filter changed or removed."""
    unlike: Mapping[str, int]
    """How many grades are none of those that most labels name; only where workers are estimated."""
    few: Mapping[str, tuple[FewLabels, ...]]
    workers: tuple[WorkerRow, ...]
    """The rows of `workers.tsv` for all workers, removed ones included."""
    reliability: tuple[ReliabilityRow, ...]
    """A row for each criterion, one for the labels before the filter if there was one, then the topics."""
    pairs: Mapping[str, tuple[tuple[PairRow, ...], float]]
    """The pairs of workers, and the share of the workers that were sampled; 1 for all."""


def study(
    labels: Mapping[str, CrowdLabels],
    known: Sequence[KnownItem],
    settings: CrowdSettings,
    *,
    wanted: Collection[str] | None = None,
    steps: Steps = quiet,
) -> Study:
    """Filter the workers, aggregate their labels, and compute the statistics.

    The labels include known items. Criteria that are not `wanted` are not graded: they only serve the known items. A
    UsageError if the workers are to be weighed and too many of them share no item with others.
    """
    aggregate = AGGREGATORS[settings.aggregator].aggregate
    before = without_known(labels, known)
    kept = before
    audit = None
    if known:
        kept, audit = filter_workers(labels, known, max_fails=settings.max_fails, max_deviation=settings.max_deviation)
    if wanted is not None:
        before = {name: crowd for name, crowd in before.items() if name in wanted}
        kept = {name: crowd for name, crowd in kept.items() if name in wanted}
        audit = audit and replace(audit, labels_removed={name: audit.labels_removed[name] for name in kept})
    if AGGREGATORS[settings.aggregator].weighs:
        for crowd in kept.values():
            check_connected(crowd, settings.aggregator)
    grades = {name: aggregate(crowd, settings) for name, crowd in stepped("grading items", kept.items(), steps)}
    changed = {}
    if audit is not None:
        unfiltered = {name: aggregate(crowd, settings).code for name, crowd in before.items()}
        changed = {name: int(np.count_nonzero(grades[name].code != unfiltered[name])) for name in kept}
    rng = np.random.default_rng(SEED)
    rows: list[ReliabilityRow] = []
    for name, crowd in stepped("resampling reliability", kept.items(), steps):
        rows.append(reliability(crowd, rng))
        if audit is not None:
            rows.append(reliability(before[name], rng, of="all"))
        rows += topic_reliability(crowd, rng)
    steps(Step("comparing workers"))
    return Study(
        settings=settings,
        labels=kept,
        grades=grades,
        audit=audit,
        changed=changed,
        unlike={name: of_criterion.unlike for name, of_criterion in grades.items() if of_criterion.worker},
        few={name: few_labels(crowd, before[name], settings.min_labels) for name, crowd in kept.items()},
        workers=worker_table(before, audit.removed if audit else (), settings.too_fast),
        reliability=tuple(rows),
        pairs={name: pairwise(crowd, rng) for name, crowd in kept.items()},
    )


def cautions(graded: Study) -> tuple[Problem, ...]:
    """Warnings by criterion where workers are weighed: of too little to go by, and of grades unlike the majority's."""
    aggregator = graded.settings.aggregator
    if not AGGREGATORS[aggregator].weighs:
        return ()
    warnings: list[Problem] = []
    for name, labels in graded.labels.items():
        if few := thin_overlap(labels):
            rest = f"so little tells {aggregator} which workers to believe, and a majority may be as good"
            message = f"{'; '.join(few)}: {rest}"
            warnings.append(file_problem("thin_overlap", name, message, severity="warning"))
    for name, n in graded.unlike.items():
        share = n / max(int((graded.grades[name].n > 0).sum()), 1)
        if share > FAR:
            message = (
                f"{share:.0%} of the grades of {aggregator} are none that most labels name (more than {FAR:.0%}): "
                f"{_why_far(graded.settings)}"
            )
            warnings.append(file_problem("far_from_majority", name, message, severity="warning"))
    return tuple(warnings)


def _why_far(settings: CrowdSettings) -> str:
    if not AGGREGATORS[settings.aggregator].priors:
        return "many workers spam, or too few labels are compared (compare with --aggregator majority)"
    if settings.prior == "flat":
        return (
            "all grades count as equally likely before any label, which misleads where most items have one grade "
            "(compare with --prior estimated), or many workers spam"
        )
    return "many workers spam, or spam of one grade passes for the commonest grade (compare with --prior flat)"
