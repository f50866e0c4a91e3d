"""Makes a crowd's grades from labels, with statistics of workers, items and agreement. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judge.crowd.aggregators import AGGREGATORS, CrowdGrades, CrowdSettings
from judge.crowd.known import Audit, FewLabels, KnownItem, few_labels, filter_workers, without_known
from judge.crowd.labels import CrowdLabels
from judge.crowd.reliability import PairRow, ReliabilityRow, pairwise, reliability, topic_reliability
from judge.io.steps import Step, Steps, quiet, stepped
from judge.plugins import added
from judge.records import Problem, Record
from judge.stats.consensus import modes

FAR = 0.1
"""Share of grades unlike the majority's above which a model is warned about whose prior can be chosen.

In simulated crowds of 5 labels an item it was .05 or less where MACE was right, and .22 to .36 where its flat prior
misled it (85 % of the items of one grade). It is as high where more than a third of the workers spam one grade.
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
    workers: tuple[Any, ...]
    """The rows of `workers.tsv` for all workers, removed ones included; none without the annex that makes them."""
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

    The labels include known items. Criteria that are not `wanted` are not graded: they only serve the known items.
    """
    aggregate = AGGREGATORS[settings.aggregator].aggregate
    before = without_known(labels, known)
    kept, audit = before, None
    if known:
        kept, audit = filter_workers(labels, known, max_fails=settings.max_fails, max_deviation=settings.max_deviation)
    if wanted is not None:
        before, kept = ({name: crowd for name, crowd in crowds.items() if name in wanted} for crowds in (before, kept))
        audit = audit and replace(audit, labels_removed={name: audit.labels_removed[name] for name in kept})
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
    report = worker_report()
    return Study(
        settings=settings,
        labels=kept,
        grades=grades,
        audit=audit,
        changed=changed,
        unlike={name: _unlike(of_criterion) for name, of_criterion in grades.items() if of_criterion.worker},
        few={name: few_labels(crowd, before[name], settings.min_labels) for name, crowd in kept.items()},
        workers=report.worker_table(before, audit.removed if audit else (), settings.too_fast) if report else (),
        reliability=tuple(rows),
        pairs={name: pairwise(crowd, rng) for name, crowd in kept.items()},
    )


def worker_report() -> Any:
    """The module that reports on each worker; None where its annex is not installed."""
    return added("workers", ()).get("report")


def _unlike(grades: CrowdGrades) -> int:
    labeled = np.flatnonzero(grades.n > 0)
    return int(np.count_nonzero(~modes(grades.counts[labeled])[np.arange(len(labeled)), grades.code[labeled]]))


def cautions(graded: Study) -> tuple[Problem, ...]:
    """A warning for each criterion whose grades are far from the majority's, where the prior may be the reason."""
    settings = graded.settings
    if not AGGREGATORS[settings.aggregator].priors:
        return ()
    shares = {name: n / max(int((graded.grades[name].n > 0).sum()), 1) for name, n in graded.unlike.items()}
    why = (
        "all grades count as equally likely before any label, which misleads where most items have one grade "
        "(compare with --prior estimated), or many workers spam"
        if settings.prior == "flat"
        else "many workers spam, or spam of one grade passes for the commonest grade (compare with --prior flat)"
    )
    far = f"of the grades of {settings.aggregator} are none that most labels name (more than {FAR:.0%})"
    return tuple(
        Problem("far_from_majority", "warning", name, None, "", f"{share:.0%} {far}: {why}")
        for name, share in shares.items()
        if share > FAR
    )
