"""Every statistic of one judge on one split, with its intervals."""

from collections import Counter

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import AgreementRow, Split
from judge.calibrate.panel import Codes, Column, Panel
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, Undefined, auc, point, spearman, topic_tables
from judge.stats.marginals import bowker, stuart_maxwell
from judge.stats.means import consensus
from judge.stats.reliability import alpha_interval
from judge.stats.resampling import jackknife_interval, resampled

WORST_CASE = ("percent", "kappa", "wkappa", "alpha_ordinal")
"""Statistics that are also computed with every missing grade at the one farthest from the reference."""
UNWEIGHTED = "of the items as they were drawn: not weighted by inclusion probability"


def primary_statistic(panel: Panel) -> str:
    """What verdicts and comparisons go by: quadratic weighted kappa, or kappa where there are two grades."""
    return "wkappa" if len(panel.grades) > 2 else "kappa"


def agreement_row(
    panel: Panel, column: Column, split: Split, between: Estimate | None, seed: int, replicates: int
) -> AgreementRow:
    """One judge on the items of a split that both it and the reference graded; intervals are over topics.

    Where inclusion probabilities differ, statistics are those of what the gold was drawn from: every item has the
    weight 1 / p. Counts, the confusion matrix, the tests on it, `rank_correlation`, `auc` and `test_retest` are of the
    items as they are.

    Args:
        panel: Gold and labels.
        column: The judge.
        split: Which items.
        between: The `ceiling` of these items.
        seed: Of the resampling.
        replicates: How many resamples.
    """
    mask = panel.within(split)
    both = mask & (column.codes >= 0)
    tables = panel.tables(column.codes, mask)
    C = panel.counts(column.codes, mask)
    found = {
        # The same draws for every judge and statistic, so that only the data tell them apart.
        name: resampled(name, tables, panel.grades, np.random.default_rng(seed), replicates=replicates)
        for name in STATISTICS
    }
    statistics = {name: one.estimate for name, one in found.items()}
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
        item={name: one.item for name, one in found.items()},
        design_effect={name: one.design_effect for name, one in found.items()},
        worst_case={name: _number(point(name, worst, panel.grades)) for name in WORST_CASE},
        confusion=tuple(tuple(row) for row in C.tolist()),
        grades=panel.grades,
        marginals=(bowker(C), stuart_maxwell(C)),
        ceiling=between,
        test_retest=_test_retest(panel, column, mask, seed),
        primary=primary_statistic(panel),
        binary=panel.binary,
    )


def ceiling(panel: Panel, mask: NDArray[np.bool_], seed: int, replicates: int) -> Estimate | None:
    """The primary statistic between assessors: each against the consensus of the others, all pairs in one table.

    `n` counts the items, each of which may be in several pairs.
    """
    pairs = _each_against_others(panel)
    if not pairs:
        return None
    codes, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
    both = np.tile(mask, len(pairs)) & (codes >= 0) & (others >= 0)
    # Nobody graded what somebody else graded too.
    if not both.any():
        return None
    topic, weights = np.tile(panel.topic, len(pairs)), np.tile(panel.weights, len(pairs))
    k, T = len(panel.grades), len(panel.topics)
    tables = topic_tables(np.where(both, others, -1), codes, topic, k, T, weights)
    rng = np.random.default_rng(seed)
    estimate = resampled(primary_statistic(panel), tables, panel.grades, rng, replicates=replicates).estimate
    return msgspec.structs.replace(estimate, n=int(both.reshape(len(pairs), -1).any(axis=0).sum()))


def _each_against_others(panel: Panel) -> list[tuple[Codes, Codes]]:
    """Each assessor's codes, and those of the consensus of the others."""
    assessors = list(panel.assessors.values())
    if len(assessors) == 2:
        # One table says all: the other is its mirror.
        return [(assessors[0], assessors[1])]
    if len(assessors) < 2:
        return []
    return [
        (codes, _consensus(np.array(assessors[:i] + assessors[i + 1 :]), panel.grades))
        for i, codes in enumerate(assessors)
    ]


def _consensus(codes: Codes, grades: tuple[int, ...]) -> Codes:
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
    """Rank correlation and AUC of the expected grade, where there is one for every graded item; both unweighted."""
    n, T = int(both.sum()), len(set(panel.topic[both].tolist()))
    known = int((both & ~np.isnan(column.expected)).sum())
    if known < n or not n:
        reason = (
            f"label probabilities for only {known} of {n} grades" if known else "the judge gives no label probabilities"
        )
        missing = Estimate(None, None, None, n, T, reason)
        return {"rank_correlation": missing, "auc": missing}
    expected, human, topics = column.expected[both], panel.human[both], np.array(panel.topics)[panel.topic[both]]
    grade = np.array(panel.grades, dtype=np.float64)[human]
    positive = np.isin(human, sorted(panel.positive))
    # A scale on which lower is better has its positive grades at the low end.
    score = expected if panel.higher_is_better else -expected
    found = {
        "rank_correlation": jackknife_interval(lambda kept: spearman(expected[kept], grade[kept]), topics),
        "auc": jackknife_interval(lambda kept: auc(score[kept], positive[kept]), topics, bounds=(0, 1)),
    }
    if not panel.weighted:
        return found
    return {
        name: msgspec.structs.replace(one, reason=f"{one.reason}; {UNWEIGHTED}" if one.reason else UNWEIGHTED)
        for name, one in found.items()
    }


def _test_retest(panel: Panel, column: Column, mask: NDArray[np.bool_], seed: int) -> Estimate | None:
    if len(column.samples) < 2:
        return None
    labels = np.where(mask, column.samples, -1)
    return alpha_interval(labels, panel.topic, panel.grades, "ordinal", np.random.default_rng(seed))


def _without_grade(column: Column, mask: NDArray[np.bool_]) -> dict[str, int]:
    counts = Counter(reason for reason, inside in zip(column.reasons, mask, strict=True) if inside and reason)
    return dict(sorted(counts.items()))


def _number(value: float | Undefined) -> float | None:
    return None if isinstance(value, Undefined) else value
