"""What moves the judge away from the assessors, what a grade of the judge is worth, and how it ranks runs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judge.calibrate.agreement import unweighted
from judge.calibrate.findings import (
    AlternativeRow,
    CalibrationMapRow,
    ExpectedLine,
    FamilyContrast,
    ProbabilityRow,
    Slope,
    Split,
    SystemAgreement,
)
from judge.calibrate.panel import Column, Panel
from judge.io.ids import natural_key
from judge.judges.backends import judges_in
from judge.stats.alternative import alternative_annotator
from judge.stats.expected import PROBABILITY, Forecasts, brier_of_shares
from judge.stats.means import slope_interval, welch
from judge.stats.system_agreement import split_half, system_agreement
from judge.stats.tables import Undefined

MAP_WEIGHT = 5.0
"""How many items the line through all items counts as, in each cell of the calibration map."""
FEWEST_RUNS = 3
"""Fewest runs whose ranking is compared."""
_NUMBER = re.compile(r"\d+")


def slopes(panel: Panel, columns: Iterable[Column], split: Split) -> tuple[Slope, ...]:
    """Judge minus assessor, in grades, against the response's length in words (log2) and the place of its turn."""
    words = np.array([-1.0 if item.words is None else max(item.words, 1) for item in panel.items])
    depth = np.array([_depth(item.turn_id) for item in panel.items])
    measured: tuple[tuple[Literal["log2_words", "turn_depth"], NDArray[Any], NDArray[np.bool_]], ...] = (
        ("log2_words", np.log2(np.maximum(words, 1)), words > 0),
        ("turn_depth", depth, depth >= 0),
    )
    within, rows = panel.within(split), []
    for column in columns:
        both, gap = within & (column.codes >= 0), _gap(panel, column)
        for what, x, has in measured:
            if (known := both & has).any():
                slope = slope_interval(x[known], gap[known], panel.topic[known])
                rows.append(Slope(column.name, panel.criterion, split, what, slope))
    return tuple(rows)


def families(panel: Panel, column: Column, split: Split, family_of: Mapping[str, str]) -> tuple[FamilyContrast, ...]:
    """Judge minus assessor by the family of models behind a run; a judge's own family is where favor would show.

    Runs are the units. Each has the mean of judge minus assessor over its items; Welch's interval is between the
    family's runs and all others. Runs without a family are among the others.
    """
    gap = _gap(panel, column)
    both = panel.within(split) & (column.codes >= 0)
    means: dict[str, float] = {}
    for run_id, mask in _by_run(panel).items():
        if (mask & both).any():
            means[run_id] = float(gap[mask & both].mean())
    rows = []
    for family in sorted({family_of[run_id] for run_id in means if run_id in family_of}):
        own = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) == family])
        others = np.array([mean for run_id, mean in means.items() if family_of.get(run_id) != family])
        is_self = family in (family_of.get(column.judge), family_of.get(judges_in(column.judge)[-1]))
        about = column.name, panel.criterion, split, family, is_self
        rows.append(FamilyContrast(*about, len(own), float(own.mean()), welch(own, others)))
    return tuple(rows)


def calibration_map(panel: Panel, column: Column, split: Split) -> tuple[CalibrationMapRow, ...]:
    """The mean grade of the assessors where the judge gives each grade, drawn to the line through all items.

    It applies to single responses; the mean of a run needs gold of that run (`judge.results.corrected`).
    """
    both = panel.within(split) & (column.codes >= 0)
    if not both.any():
        return ()
    g = np.array(panel.grades, dtype=np.float64)
    human, judge = g[panel.human[both]], g[column.codes[both]]
    centered = judge - judge.mean()
    spread = float(centered @ centered)
    slope = float(centered @ human) / spread if spread else 0.0
    line = np.clip(human.mean() + slope * (g - judge.mean()), g[0], g[-1])
    rows = []
    for i, grade in enumerate(panel.grades):
        cell = human[judge == g[i]]
        shrunken = (float(cell.sum()) + MAP_WEIGHT * float(line[i])) / (len(cell) + MAP_WEIGHT)
        mean = float(cell.mean()) if len(cell) else None
        rows.append(CalibrationMapRow(*_key(panel, column, split), grade, len(cell), mean, shrunken, MAP_WEIGHT))
    return tuple(rows)


def expected_line(panel: Panel, column: Column, split: Split) -> ExpectedLine | None:
    """The line from expected grade to assessor's grade; None without label probabilities for every graded item."""
    both = panel.within(split) & (column.codes >= 0)
    x = column.expected[both]
    if panel.binary or not len(x) or np.isnan(x).any():
        return None
    g = np.array(panel.grades, dtype=np.float64)
    y, topics = g[panel.human[both]], panel.topic[both]
    slope = slope_interval(x, y, topics)
    if slope.value is None:
        return None
    predicted = [_predicted(x, y, topics == topic) for topic in np.unique(topics)]
    known = [errors for errors in predicted if errors is not None]
    intercept = float(y.mean() - slope.value * x.mean())
    error_grade, error_expected = (float(np.abs(guess - y).mean()) for guess in (g[column.codes[both]], x))
    error_line = float(np.concatenate(known).mean()) if len(known) == len(predicted) else None
    return ExpectedLine(*_key(panel, column, split), intercept, slope, error_grade, error_expected, error_line)


def _predicted(
    x: NDArray[np.float64], y: NDArray[np.float64], left_out: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """Errors of the line through the other items on those left out; None if there is no such line."""
    rest, centered = ~left_out, x[~left_out] - (x[~left_out].mean() if (~left_out).any() else 0.0)
    if not centered.any():
        return None
    slope = float(centered @ y[rest]) / float(centered @ centered)
    return np.asarray(np.abs(y[rest].mean() + slope * (x[left_out] - x[rest].mean()) - y[left_out]), dtype=np.float64)


def probabilities(panel: Panel, column: Column, split: Split) -> ProbabilityRow | None:
    """The label probabilities as forecasts of the assessors' grades; None unless every graded item has them."""
    both = panel.within(split) & (column.codes >= 0)
    p = column.probabilities[both]
    if not len(p) or np.isnan(p).any():
        return None
    items, topics = Forecasts(p, column.codes[both], panel.human[both]), panel.topic[both]
    statistics = unweighted(PROBABILITY, items, topics, panel)
    return ProbabilityRow(*_key(panel, column, split), statistics, float(brier_of_shares(items)))


def systems(panel: Panel, column: Column, split: Split, seed: int, replicates: int) -> SystemAgreement | None:
    """The runs in the judge's order against the assessors' order; None with fewer than FEWEST_RUNS graded runs."""
    both = panel.within(split) & (column.codes >= 0)
    masks = {run_id: mask & both for run_id, mask in _by_run(panel).items() if (mask & both).any()}
    if len(masks) < FEWEST_RUNS:
        return None
    g = np.array(panel.grades, dtype=np.float64)
    counts = _sums(panel, masks, np.ones(len(panel.items)))
    tables = _sums(panel, masks, g[panel.human]), counts, _sums(panel, masks, g[column.codes]), counts
    better = panel.higher_is_better
    statistics = system_agreement(*tables, np.random.default_rng(seed), higher_is_better=better, replicates=replicates)
    halves = split_half(*tables, np.random.default_rng(seed), higher_is_better=better)
    return SystemAgreement(*_key(panel, column, split), len(masks), statistics, halves)


def alternative(panel: Panel, column: Column, split: Split, epsilon: float) -> AlternativeRow | None:
    """The alternative annotator test: by accuracy on two grades, else by RMSE; None with fewer than two assessors."""
    if len(panel.assessors) < 2:
        return None
    mask = panel.within(split)
    score: Literal["accuracy", "rmse"] = "rmse" if len(panel.grades) > 2 else "accuracy"
    assessors = {name: np.where(mask, codes, -1) for name, codes in panel.assessors.items()}
    judge = np.where(mask, column.codes, -1)
    test = alternative_annotator(assessors, judge, epsilon=epsilon, score=score, grades=panel.grades)
    key = _key(panel, column, split)
    if isinstance(test, Undefined):
        return AlternativeRow(*key, epsilon, None, None, {}, {}, {}, test.reason)
    return AlternativeRow(*key, epsilon, test.omega, test.rho, test.p_values, test.rejected, test.n)


def _key(panel: Panel, column: Column, split: Split) -> tuple[str, str | None, str, Split]:
    """The fields of `JudgeRow`."""
    return column.judge, column.prompt, panel.criterion, split


def _gap(panel: Panel, column: Column) -> NDArray[np.float64]:
    """Judge minus reference in grades (N,); without meaning where the judge gave no grade."""
    g = np.array(panel.grades, dtype=np.float64)
    return np.asarray(g[column.codes] - g[panel.human], dtype=np.float64)


def _by_run(panel: Panel) -> dict[str, NDArray[np.bool_]]:
    """The items of each run, runs in natural order."""
    run_ids = sorted({run_id for item in panel.items for run_id in item.runs}, key=natural_key)
    return {run_id: np.array([run_id in item.runs for item in panel.items], dtype=bool) for run_id in run_ids}


def _sums(panel: Panel, masks: Mapping[str, NDArray[np.bool_]], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of values by run and topic (R x T)."""
    T = len(panel.topics)
    return np.array([np.bincount(panel.topic[mask], weights=values[mask], minlength=T) for mask in masks.values()])


def _depth(turn_id: str) -> int:
    """The first number of the turn's own part of its id: 3 for `9-1_3` and for `132_3-2`; -1 if there is none."""
    match = _NUMBER.search(turn_id.rpartition("_")[2])
    return int(match[0][:9]) if match and "_" in turn_id else -1
