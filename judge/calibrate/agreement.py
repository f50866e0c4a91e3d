"""Every statistic of one judge on one split, with its intervals."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs
from msgspec.structs import replace
from numpy.typing import NDArray

import judge.calibrate.findings as findings
from judge.calibrate.findings import Split
from judge.calibrate.panel import JudgeColumn, Panel
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, point, primary_statistic
from judge.stats.discrimination import EXPECTED, Expected, Forecasts, ProbabilityStatistic
from judge.stats.raters import compare_raters
from judge.stats.reliability import alpha_interval
from judge.stats.resampling import jackknife_interval, resampled
from judge.stats.tables import defined

UNWEIGHTED = "of the items as they were drawn: not weighted by inclusion probability"


def agreement_row(
    panel: Panel, column: JudgeColumn, split: Split, between: Estimate | None, seed: int, replicates: int
) -> findings.AgreementRow:
    """One judge on the items of a split that both it and the reference graded; intervals are over topics.

    Where inclusion probabilities p differ, every item has the weight 1 / p, so that the statistics are estimates for
    all responses that the gold was drawn from. Counts, the confusion matrix and the tests on it are unweighted, as are
    the statistics of EXPECTED and `test_retest`. `between` is the `ceiling` of these items.
    """
    mask = panel.within(split)
    both = mask & (column.codes >= 0)
    # The same draws for every judge and statistic, so that only the data tell them apart.
    compared = compare_raters(
        STATISTICS,
        a=np.where(mask, panel.shares.argmax(axis=1), -1),
        b=np.where(mask, column.codes, -1),
        units=panel.topic,
        grades=panel.grades,
        seed=seed,
        tables=panel.tables(column.codes, mask),
        apart=panel.tied,
        replicates=replicates,
    )
    worst = panel.tables(panel.farthest(column.codes), mask).sum(axis=0)
    expected = _of_expected(panel, column, both & ~panel.tied)
    return findings.AgreementRow(
        **structs.asdict(replace(compared, statistics=compared.statistics | expected)),
        judge=column.judge,
        prompt=column.prompt,
        criterion=panel.criterion,
        split=split,
        reference=panel.reference,
        baseline=column.baseline,
        without_grade=_without_grade(column, mask),
        worst_case={
            name: defined(point(name, worst, panel.grades))
            for name, statistic in STATISTICS.items()
            if statistic.worst_case
        },
        ceiling=between,
        test_retest=_test_retest(panel, column, mask, seed),
        primary=primary_statistic(len(panel.grades)),
        binary=panel.binary,
        tied=int((mask & panel.tied).sum()),
    )


def ceiling(panel: Panel, mask: NDArray[np.bool_], seed: int, replicates: int) -> Estimate | None:
    """The primary statistic between assessors: each against the consensus of the others, all pairs in one table.

    `n` counts items and not pairs. None where no two assessors graded the same item.
    """
    codes, others = panel.against_others()
    if len(codes) == 2:
        # The second table would be the mirror of the first and add nothing.
        codes = codes[:1]
        others = others[:1]
    both = mask & (codes >= 0) & others.any(axis=2)
    if not both.any():
        return None
    tables = panel.tables_against(others * both[:, :, None], codes)
    rng = np.random.default_rng(seed)
    name = primary_statistic(len(panel.grades))
    estimate = resampled(name, tables, panel.grades, rng, replicates=replicates).estimate
    return replace(estimate, n=int(both.any(axis=0).sum()))


def _of_expected(panel: Panel, column: JudgeColumn, both: NDArray[np.bool_]) -> dict[str, Estimate]:
    """The statistics of EXPECTED, unweighted; undefined unless every graded item has an expected grade."""
    n = int(both.sum())
    T = len(set(panel.topic[both].tolist()))
    with_expected = int((both & ~np.isnan(column.expected)).sum())
    if with_expected < n or not n:
        reason = "the judge gives no label probabilities"
        if with_expected:
            reason = f"label probabilities for only {with_expected} of {n} grades"
        return dict.fromkeys(EXPECTED, Estimate(value=None, low=None, high=None, n=n, topics=T, reason=reason))
    expected = column.expected[both]
    human = panel.human[both]
    topics = np.array(panel.topics)[panel.topic[both]]
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
    estimate = jackknife_interval(lambda kept: row.formula(items.within(kept)), topics, bounds=row.bounds)
    if row.by_chance and estimate.low is not None:
        estimate = replace(estimate, low=max(estimate.low - row.by_chance(items), row.bounds[0]))
    reasons = (estimate.reason, UNWEIGHTED if panel.weighted else None)
    return replace(estimate, reason="; ".join(filter(None, reasons)) or None)


def _test_retest(panel: Panel, column: JudgeColumn, mask: NDArray[np.bool_], seed: int) -> Estimate | None:
    if len(column.samples) < 2:
        return None
    labels = np.where(mask, column.samples, -1)
    return alpha_interval(labels, panel.topic, panel.grades, "ordinal", np.random.default_rng(seed))


def _without_grade(column: JudgeColumn, mask: NDArray[np.bool_]) -> dict[str, int]:
    counts = Counter(reason for reason, inside in zip(column.reasons, mask, strict=True) if inside and reason)
    return dict(sorted(counts.items()))
