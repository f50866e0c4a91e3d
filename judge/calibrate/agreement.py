"""Every statistic of one judge on one split, with its intervals."""

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import AgreementRow, Split
from judge.calibrate.panel import Column, GradeCodes, Panel
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, point, primary_statistic
from judge.stats.expected import EXPECTED, Expected, ExpectedFormula
from judge.stats.marginals import bowker, stuart_maxwell
from judge.stats.means import consensus
from judge.stats.reliability import alpha_interval
from judge.stats.resampling import jackknife_interval, resampled
from judge.stats.tables import Undefined, topic_tables

UNWEIGHTED = "of the items as they were drawn: not weighted by inclusion probability"


def agreement_row(
    panel: Panel, column: Column, split: Split, between: Estimate | None, seed: int, replicates: int
) -> AgreementRow:
    """One judge on the items of a split that both it and the reference graded; intervals are over topics.

    Where inclusion probabilities p differ, every item has the weight 1 / p, so that the statistics are estimates for
    all responses that the gold was drawn from. Counts, the confusion matrix and the tests on it are unweighted, as are
    the statistics of EXPECTED and `test_retest`.

    Args:
        panel: Gold and labels.
        column: The judge.
        split: Which items.
        between: The `ceiling` of these items; None without one.
        seed: Seed of the resampling.
        replicates: How many resamples.
    """
    mask = panel.within(split)
    both = mask & (column.codes >= 0)
    tables = panel.tables(column.codes, mask)
    C = panel.counts(column.codes, mask)
    both_intervals = {
        # The same draws for every judge and statistic, so that only the data tell them apart.
        name: resampled(name, tables, panel.grades, np.random.default_rng(seed), replicates=replicates)
        for name in STATISTICS
    }
    statistics = {name: intervals.estimate for name, intervals in both_intervals.items()}
    statistics |= _of_expected(panel, column, both)
    worst = panel.tables(panel.farthest(column.codes), mask).sum(axis=0)
    gold = int(mask.sum())
    return AgreementRow(
        judge=column.judge,
        prompt=column.prompt,
        criterion=panel.criterion,
        split=split,
        reference=panel.reference,
        baseline=column.baseline,
        gold=gold,
        n=int(both.sum()),
        topics=len(set(panel.topic[both].tolist())),
        coverage=int(both.sum()) / gold if gold else 0.0,
        without_grade=_without_grade(column, mask),
        statistics=statistics,
        item={name: intervals.item for name, intervals in both_intervals.items()},
        design_effect={name: intervals.design_effect for name, intervals in both_intervals.items()},
        worst_case={
            name: _number(point(name, worst, panel.grades))
            for name, statistic in STATISTICS.items()
            if statistic.worst_case
        },
        confusion=tuple(tuple(row) for row in C.tolist()),
        grades=panel.grades,
        marginals=(bowker(C), stuart_maxwell(C)),
        ceiling=between,
        test_retest=_test_retest(panel, column, mask, seed),
        primary=primary_statistic(len(panel.grades)),
        binary=panel.binary,
    )


def ceiling(panel: Panel, mask: NDArray[np.bool_], seed: int, replicates: int) -> Estimate | None:
    """The primary statistic between assessors: each against the consensus of the others, all pairs in one table.

    Args:
        panel: Gold and labels.
        mask: The items to look at (N,).
        seed: Seed of the resampling.
        replicates: How many resamples.

    Returns:
        The estimate, whose `n` counts items and not pairs; None where no two assessors graded the same item.
    """
    pairs = _each_against_others(panel)
    if not pairs:
        return None
    codes, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
    both = np.tile(mask, len(pairs)) & (codes >= 0) & (others >= 0)
    if not both.any():
        return None
    topic, weights = np.tile(panel.topic, len(pairs)), np.tile(panel.weights, len(pairs))
    k, T = len(panel.grades), len(panel.topics)
    tables = topic_tables(np.where(both, others, -1), codes, topic, k, T, weights)
    rng = np.random.default_rng(seed)
    estimate = resampled(primary_statistic(k), tables, panel.grades, rng, replicates=replicates).estimate
    return msgspec.structs.replace(estimate, n=int(both.reshape(len(pairs), -1).any(axis=0).sum()))


def _each_against_others(panel: Panel) -> list[tuple[GradeCodes, GradeCodes]]:
    """Each assessor's codes, and those of the consensus of the others."""
    assessors = list(panel.assessors.values())
    if len(assessors) == 2:
        # The second table would be the mirror of the first and add nothing.
        return [(assessors[0], assessors[1])]
    if len(assessors) < 2:
        return []
    return [
        (codes, _consensus(np.array(assessors[:i] + assessors[i + 1 :]), panel.grades))
        for i, codes in enumerate(assessors)
    ]


def _consensus(codes: GradeCodes, grades: tuple[int, ...]) -> GradeCodes:
    """The consensus of the assessors in the rows (A x N) for every item; -1 where nobody graded."""
    place = {grade: i for i, grade in enumerate(grades)}
    return np.array(
        [
            place[consensus([grades[code] for code in column if code >= 0])] if (column >= 0).any() else -1
            for column in codes.T
        ],
        dtype=np.int64,
    )


def _of_expected(panel: Panel, column: Column, both: NDArray[np.bool_]) -> dict[str, Estimate]:
    """The statistics of EXPECTED, unweighted; undefined unless every graded item has an expected grade."""
    n, T = int(both.sum()), len(set(panel.topic[both].tolist()))
    known = int((both & ~np.isnan(column.expected)).sum())
    if known < n or not n:
        reason = (
            f"label probabilities for only {known} of {n} grades" if known else "the judge gives no label probabilities"
        )
        missing = Estimate(None, None, None, n, T, reason)
        return dict.fromkeys(EXPECTED, missing)
    expected, human, topics = column.expected[both], panel.human[both], np.array(panel.topics)[panel.topic[both]]
    items = Expected(
        expected=expected,
        # A scale on which lower is better has its positive grades at the low end.
        better=expected if panel.higher_is_better else -expected,
        grade=np.array(panel.grades, dtype=np.float64)[human],
        positive=np.isin(human, sorted(panel.positive)),
    )
    estimates = {}
    for name, statistic in EXPECTED.items():

        def of_kept(kept: NDArray[np.bool_], formula: ExpectedFormula = statistic.formula) -> float | Undefined:
            return formula(items.within(kept))

        estimates[name] = jackknife_interval(of_kept, topics, bounds=statistic.bounds)
    if not panel.weighted:
        return estimates
    return {
        name: msgspec.structs.replace(
            estimate, reason=f"{estimate.reason}; {UNWEIGHTED}" if estimate.reason else UNWEIGHTED
        )
        for name, estimate in estimates.items()
    }


def _test_retest(panel: Panel, column: Column, mask: NDArray[np.bool_], seed: int) -> Estimate | None:
    """Ordinal alpha between the samples of the judge; None with a single sample."""
    if len(column.samples) < 2:
        return None
    labels = np.where(mask, column.samples, -1)
    return alpha_interval(labels, panel.topic, panel.grades, "ordinal", np.random.default_rng(seed))


def _without_grade(column: Column, mask: NDArray[np.bool_]) -> dict[str, int]:
    counts = Counter(reason for reason, inside in zip(column.reasons, mask, strict=True) if inside and reason)
    return dict(sorted(counts.items()))


def _number(value: float | Undefined) -> float | None:
    return None if isinstance(value, Undefined) else value
