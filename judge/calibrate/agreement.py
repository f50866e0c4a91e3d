"""Every statistic of one judge on one split, with its intervals, and what moves the judge away from the assessors."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import structs
from msgspec.structs import replace
from numpy.typing import NDArray

import judge.calibrate.findings as findings
from judge.calibrate.findings import Split
from judge.calibrate.panel import JudgeColumn, Panel
from judge.io.ids import natural_key
from judge.records import Estimate
from judge.stats.agreement import STATISTICS, point, primary_statistic
from judge.stats.alternative import alternative_annotator
from judge.stats.discrimination import (
    EXPECTED,
    PROBABILITY,
    Expected,
    Forecasts,
    ProbabilityStatistic,
    brier_of_shares,
    midranks,
)
from judge.stats.means import mean_interval, slope_interval, welch
from judge.stats.ranking import split_half, system_agreement
from judge.stats.raters import compare_raters
from judge.stats.reliability import alpha_interval
from judge.stats.resampling import jackknife_interval, resampled
from judge.stats.tables import Undefined, defined

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


MAP_WEIGHT = 5.0
"""How many items the line through all items counts as, in each cell of the calibration map."""
FEWEST_RUNS = 3
"""Fewest runs whose ranking is compared."""
_NUMBER = re.compile(r"\d+")


def slopes(panel: Panel, columns: Iterable[JudgeColumn], split: Split) -> tuple[findings.Slope, ...]:
    """Judge minus assessor, in grades, against the response's length in words (log2) and the place of its turn.

    Of a pair it is how many times longer the first response is, over both orders, which share the turn's place.
    """
    words = np.array([-1.0 if item.words is None else max(item.words, 1) / item.second_words for item in panel.items])
    depth = np.array([-1 if item.seconds else _depth(item.turn_id) for item in panel.items])
    orders = (1, -1) if panel.of_pairs else (1,)
    measured: tuple[tuple[Literal["log2_words", "turn_depth"], NDArray[Any], NDArray[np.bool_]], ...] = (
        ("log2_words", np.log2(np.where(words > 0, words, 1)), words > 0),
        ("turn_depth", depth, depth >= 0),
    )
    within = panel.within(split)
    rows = []
    for column in columns:
        both = within & (column.codes >= 0)
        gap = _gap(panel, column)
        for what, x, has in measured:
            measured_items = both & has
            if measured_items.any():
                xs = np.outer(orders, x[measured_items]).ravel()
                ys = np.outer(orders, gap[measured_items]).ravel()
                slope = slope_interval(xs, ys, np.tile(panel.topic[measured_items], len(orders)))
                slope = replace(slope, n=slope.n // len(orders))
                rows.append(
                    findings.Slope(judge=column.name, criterion=panel.criterion, split=split, what=what, slope=slope)
                )
    return tuple(rows)


def families(
    panel: Panel, column: JudgeColumn, split: Split, family_of: Mapping[str, str]
) -> tuple[findings.FamilyContrast, ...]:
    """Judge minus assessor by the family of models behind a run; a judge's own family is where favor would show.

    Runs are the units. Each has the mean of judge minus assessor over its items; Welch's interval is between the
    family's runs and all others. Runs without a family are among the others.
    """
    gap = _gap(panel, column)
    both = panel.within(split) & (column.codes >= 0)
    means: dict[str, float] = {}
    for run_id, side in _by_run(panel).items():
        if (side[both] != 0).any():
            means[run_id] = float((side * gap)[both & (side != 0)].mean())
    rows = []
    for family in sorted({family_of[run_id] for run_id in means if run_id in family_of}):
        own = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) == family])
        others = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) != family])
        rows.append(
            findings.FamilyContrast(
                judge=column.name,
                criterion=panel.criterion,
                split=split,
                family=family,
                is_self=family == family_of.get(column.judge),
                runs=len(own),
                mean=float(own.mean()),
                contrast=welch(own, others),
            )
        )
    return tuple(rows)


def calibration_map(panel: Panel, column: JudgeColumn, split: Split) -> tuple[findings.CalibrationMapRow, ...]:
    """The mean grade of the assessors where the judge gives each grade, drawn to the line through all items.

    It applies to single responses; the mean of a run needs gold of that run (`judge.results.corrected`).
    """
    both = panel.within(split) & (column.codes >= 0)
    if not both.any():
        return ()
    g = np.array(panel.grades, dtype=np.float64)
    human = panel.mean[both]
    judge = g[column.codes[both]]
    centered = judge - judge.mean()
    spread = float(centered @ centered)
    slope = float(centered @ human) / spread if spread else 0.0
    line = np.clip(human.mean() + slope * (g - judge.mean()), g[0], g[-1])
    rows = []
    for i, grade in enumerate(panel.grades):
        cell = human[judge == g[i]]
        shrunken = (float(cell.sum()) + MAP_WEIGHT * float(line[i])) / (len(cell) + MAP_WEIGHT)
        mean = float(cell.mean()) if len(cell) else None
        rows.append(
            findings.CalibrationMapRow(
                judge=column.judge,
                prompt=column.prompt,
                criterion=panel.criterion,
                split=split,
                grade=grade,
                n=len(cell),
                mean=mean,
                shrunken=shrunken,
                weight=MAP_WEIGHT,
            )
        )
    return tuple(rows)


def probabilities(panel: Panel, column: JudgeColumn, split: Split) -> findings.ProbabilityRow | None:
    """The label probabilities as forecasts of the assessors' grades; None unless every graded item has them."""
    both = panel.within(split) & (column.codes >= 0) & ~panel.tied
    p = column.probabilities[both]
    if not len(p) or np.isnan(p).any():
        return None
    items = Forecasts(p, column.codes[both], panel.human[both])
    topics = panel.topic[both]
    return findings.ProbabilityRow(
        judge=column.judge,
        prompt=column.prompt,
        criterion=panel.criterion,
        split=split,
        statistics=unweighted(PROBABILITY, items, topics, panel),
        brier_of_shares=float(brier_of_shares(items)),
    )


def systems(
    panel: Panel, column: JudgeColumn, split: Split, seed: int, replicates: int
) -> findings.SystemAgreement | None:
    """The runs in the judge's order against the assessors' order; None with fewer than FEWEST_RUNS graded runs."""
    both = panel.within(split) & (column.codes >= 0)
    sides = {run_id: side * both for run_id, side in _by_run(panel).items() if (side * both).any()}
    if len(sides) < FEWEST_RUNS:
        return None
    g = np.array(panel.grades, dtype=np.float64)
    counts = _sums(panel, sides, *np.ones((2, len(panel.items))))
    ends = g[0] + g[-1]
    human = _sums(panel, sides, panel.mean, ends - panel.mean)
    judge = _sums(panel, sides, g[column.codes], ends - g[column.codes])
    statistics = system_agreement(
        human,
        counts,
        judge,
        counts,
        np.random.default_rng(seed),
        higher_is_better=panel.higher_is_better,
        replicates=replicates,
    )
    halves = split_half(
        human, counts, judge, counts, np.random.default_rng(seed), higher_is_better=panel.higher_is_better
    )
    return findings.SystemAgreement(
        judge=column.judge,
        prompt=column.prompt,
        criterion=panel.criterion,
        split=split,
        runs=len(sides),
        statistics=statistics,
        halves=halves,
    )


PREFERENCE = {
    "accuracy": "the share of the same preference, where judge and assessors prefer one response",
    "near": "accuracy in the third of these pairs whose runs the assessors prefer about as often as each other",
    "middle": "accuracy in the next third; pairs of equal gaps are in one third",
    "far": "accuracy in the third of the largest gaps",
    "decisive": "the share of the judge's verdicts that prefer one response",
    "decisive_human": "the share of the assessors' verdicts that prefer one response",
    "flipped": "the share of pairs whose verdict changed with the order",
    "first_human": "the share of the assessors' preferences that are for the response shown first",
    "first_place": "the logarithm of the odds between equal runs that the judge prefers the response shown first",
}
"""The statistics of a judge of pairs; `first_place` is of all pairs that it compared, the others of those with gold."""


def preference(panel: Panel, column: JudgeColumn, split: Split) -> findings.PreferenceRow | None:
    """How a judge of pairs prefers one response, beside the assessors; None of anything but pairs."""
    if not any(item.seconds for item in panel.items):
        return None
    mask = panel.within(split)
    topics = np.array(panel.topics)[panel.topic]
    places = np.arange(len(panel.grades))
    sign = 1 if panel.higher_is_better else -1
    ahead = np.sign(2 * places - len(places) + 1) * sign
    # Assessors who tie on both sides of the middle alike prefer none.
    human = np.sign((2 * (panel.shares @ places) - len(places) + 1).round(9)).astype(np.int64) * sign
    judge = ahead[column.codes]
    graded = mask & (column.codes >= 0)
    flipped = mask & np.array([reason == "flipped" for reason in column.reasons])
    both = np.flatnonzero(graded & (human != 0) & (judge != 0))
    gaps = _gaps(panel, human, mask)[both]
    # Equal gaps share a rank, so that they are in one third.
    third = np.floor(3 * (midranks(gaps) - 0.5) / max(len(both), 1))

    def share(which: NDArray[np.bool_], among: NDArray[Any]) -> Estimate:
        return mean_interval(which[among].tolist(), topics[among].tolist(), bounds=(0, 1), what="such verdicts")

    statistics = {
        "accuracy": share(judge == human, both),
        "near": share(judge == human, both[third == 0]),
        "middle": share(judge == human, both[third == 1]),
        "far": share(judge == human, both[third == 2]),
        "decisive": share(judge != 0, graded),
        "decisive_human": share(human != 0, mask),
        "flipped": share(flipped, graded | flipped),
        "first_human": share(human > 0, mask & (human != 0)),
    }
    if column.origin and column.origin.first_place:
        statistics["first_place"] = column.origin.first_place
    return findings.PreferenceRow(
        judge=column.judge, prompt=column.prompt, criterion=panel.criterion, split=split, statistics=statistics
    )


def _gaps(panel: Panel, human: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the runs of each pair are apart (N,), by how often assessors prefer them (N,) in the pairs of a mask."""
    won: dict[str, list[float]] = defaultdict(list)
    for item, preferred, inside in zip(panel.items, human.tolist(), mask.tolist(), strict=True):
        if inside:
            for run_id in item.runs:
                won[run_id].append(preferred)
            for run_id in item.seconds:
                won[run_id].append(-preferred)
    mean = {run_id: float(np.mean(outcomes)) for run_id, outcomes in won.items()}

    def strength(runs: Sequence[str]) -> float:
        return float(np.mean([mean.get(run_id, 0.0) for run_id in runs]))

    gaps = np.array([abs(strength(item.runs) - strength(item.seconds)) for item in panel.items])
    return np.asarray(gaps.round(12), dtype=np.float64)


def alternative(panel: Panel, column: JudgeColumn, split: Split, epsilon: float) -> findings.AlternativeRow | None:
    """The alternative annotator test: by accuracy on two grades, else by RMSE; None with fewer than two assessors."""
    if len(panel.assessors) < 2:
        return None
    mask = panel.within(split)
    score: Literal["accuracy", "rmse"] = "rmse" if len(panel.grades) > 2 else "accuracy"
    assessors = {name: np.where(mask, codes, -1) for name, codes in panel.assessors.items()}
    judge = np.where(mask, column.codes, -1)
    test = alternative_annotator(assessors, judge, epsilon=epsilon, score=score, grades=panel.grades)
    row = findings.AlternativeRow(
        judge=column.judge,
        prompt=column.prompt,
        criterion=panel.criterion,
        split=split,
        epsilon=epsilon,
        omega=None,
        rho=None,
        p_values={},
        rejected={},
        n={},
    )
    if isinstance(test, Undefined):
        return replace(row, reason=test.reason)
    return replace(row, omega=test.omega, rho=test.rho, p_values=test.p_values, rejected=test.rejected, n=test.n)


def _gap(panel: Panel, column: JudgeColumn) -> NDArray[np.float64]:
    """Judge minus the assessors' mean in grades (N,); without meaning where the judge gave no grade."""
    g = np.array(panel.grades, dtype=np.float64)
    return np.asarray(g[column.codes] - panel.mean, dtype=np.float64)


def _by_run(panel: Panel) -> dict[str, NDArray[np.int8]]:
    """The items of each run (N,), runs in natural order: 1, -1 where it gave the second response of a pair, else 0."""
    run_ids = sorted({run_id for item in panel.items for run_id in item.runs + item.seconds}, key=natural_key)
    by_run = {}
    for run_id in run_ids:
        sides = [(run_id in item.runs) - (run_id in item.seconds) for item in panel.items]
        by_run[run_id] = np.array(sides, dtype=np.int8)
    return by_run


def _sums(
    panel: Panel, sides: Mapping[str, NDArray[Any]], values: NDArray[np.float64], seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums of values by run and topic (R x T), `seconds` being those of a pair for the run shown second."""
    T = len(panel.topics)
    by_run = []
    for side in sides.values():
        weights = np.where(side > 0, values, np.where(side < 0, seconds, 0))
        by_run.append(np.bincount(panel.topic, weights=weights, minlength=T))
    return np.array(by_run)


def _depth(turn_id: str) -> int:
    """The first number of the turn's own part of its id: 3 for `9-1_3` and for `132_3-2`; -1 if there is none."""
    match = _NUMBER.search(turn_id.rpartition("_")[2])
    return int(match[0][:9]) if match and "_" in turn_id else -1
