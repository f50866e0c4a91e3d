"""Every statistic of one judge on one split, with its intervals."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.calibrate.findings import AgreementRow, Split
from judge.calibrate.panel import Column, Panel
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, point, primary_statistic
from judge.stats.expected import EXPECTED, Expected, Forecasts, ProbabilityStatistic
from judge.stats.reliability import alpha_interval
from judge.stats.resampling import all_resampled, jackknife_interval, resampled
from judge.stats.tables import bowker, defined, stuart_maxwell

UNWEIGHTED = "of the items as they were drawn: not weighted by inclusion probability"


def agreement_row(
    panel: Panel, column: Column, split: Split, between: Estimate | None, seed: int, replicates: int
) -> AgreementRow:
    """One judge on the items of a split that both it and the reference graded; intervals are over topics.

    Where inclusion probabilities p differ, every item has the weight 1 / p, so that the statistics are estimates for
    all responses that the gold was drawn from. Counts, the confusion matrix and the tests on it are unweighted, as are
    the statistics of EXPECTED and `test_retest`. `between` is the `ceiling` of these items.
    """
    mask = panel.within(split)
    both = mask & (column.codes >= 0)
    tables = panel.tables(column.codes, mask)
    C = panel.counts(column.codes, mask)
    # The same draws for every judge and statistic, so that only the data tell them apart.
    rng = np.random.default_rng(seed)
    intervals_of = all_resampled(STATISTICS, tables, panel.grades, rng, replicates=replicates)
    statistics = {name: intervals.estimate for name, intervals in intervals_of.items()}
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
        item={name: intervals.item for name, intervals in intervals_of.items()},
        design_effect={name: intervals.design_effect for name, intervals in intervals_of.items()},
        worst_case={
            name: defined(point(name, worst, panel.grades))
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

    `n` counts items and not pairs. None where no two assessors graded the same item.
    """
    codes, others = panel.against_others()
    if len(codes) == 2:
        # The second table would be the mirror of the first and add nothing.
        codes, others = codes[:1], others[:1]
    both = mask & (codes >= 0) & (others >= 0)
    if not both.any():
        return None
    tables = panel.tables_against(np.where(both, others, -1), codes)
    rng, name = np.random.default_rng(seed), primary_statistic(len(panel.grades))
    estimate = resampled(name, tables, panel.grades, rng, replicates=replicates).estimate
    return replace(estimate, n=int(both.any(axis=0).sum()))


def _of_expected(panel: Panel, column: Column, both: NDArray[np.bool_]) -> dict[str, Estimate]:
    """The statistics of EXPECTED, unweighted; undefined unless every graded item has an expected grade."""
    n, T = int(both.sum()), len(set(panel.topic[both].tolist()))
    known = int((both & ~np.isnan(column.expected)).sum())
    if known < n or not n:
        reason = (
            f"label probabilities for only {known} of {n} grades" if known else "the judge gives no label probabilities"
        )
        return dict.fromkeys(EXPECTED, Estimate(None, None, None, n, T, reason))
    expected, human, topics = column.expected[both], panel.human[both], np.array(panel.topics)[panel.topic[both]]
    items = Expected(
        expected=expected,
        # A scale on which lower is better has its positive grades at the low end.
        better=expected if panel.higher_is_better else -expected,
        grade=np.array(panel.grades, dtype=np.float64)[human],
        positive=np.isin(human, sorted(panel.positive)),
    )
    return unweighted(EXPECTED, items, topics, panel)


def unweighted(
    rows: Mapping[str, ProbabilityStatistic], items: Expected | Forecasts, topics: NDArray[Any], panel: Panel
) -> dict[str, Estimate]:
    """Statistics of the items as they were drawn, with intervals over their topics (N,), and said to be unweighted."""
    return {name: _unweighted(row, items, topics, panel) for name, row in rows.items()}


def _unweighted(row: ProbabilityStatistic, items: Expected | Forecasts, topics: NDArray[Any], panel: Panel) -> Estimate:
    found = jackknife_interval(lambda kept: row.formula(items.within(kept)), topics, bounds=row.bounds)
    if row.by_chance and found.low is not None and (found.value or 0.0) < 2 * row.by_chance(items):
        found = replace(found, low=None, high=None, reason="below twice what a perfect judge gets by chance")
    reasons = found.reason, UNWEIGHTED if panel.weighted else None
    return replace(found, reason="; ".join(filter(None, reasons)) or None)


def _test_retest(panel: Panel, column: Column, mask: NDArray[np.bool_], seed: int) -> Estimate | None:
    if len(column.samples) < 2:
        return None
    labels = np.where(mask, column.samples, -1)
    return alpha_interval(labels, panel.topic, panel.grades, "ordinal", np.random.default_rng(seed))


def _without_grade(column: Column, mask: NDArray[np.bool_]) -> dict[str, int]:
    counts = Counter(reason for reason, inside in zip(column.reasons, mask, strict=True) if inside and reason)
    return dict(sorted(counts.items()))
