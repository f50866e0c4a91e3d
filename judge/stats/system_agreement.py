"""Agreement of the rankings of runs by a judge and by assessors, and how far the choice of topics moves it."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from judge.records import Estimate
from judge.stats.ranking import SYSTEM, Batched, RankStatistic, batched_tau_b, defined_values
from judge.stats.resampling import FEWEST_RESAMPLED, topic_draws, undefined_too_often
from judge.stats.tables import Floats

_LEVEL = 0.95
SPLITS = 500
"""Random halves of the topics behind `split_half`."""
MOST_CELLS = 4_000_000
"""Most cells of a B x R x R array; resamples are taken in lots of this size."""


class Halves(msgspec.Struct, frozen=True):
    """Mean tau-b of two rankings of the runs, each made on its own half of the topics; None has a `reason`."""

    human: float | None
    """The assessors' on both halves: a ranking's agreement with itself on other topics, a ceiling of the next."""
    judge: float | None
    """The judge's on one half, the assessors' on the other."""
    reason: str | None = None


def split_half(
    human_sums: Floats,
    human_counts: Floats,
    judge_sums: Floats,
    judge_counts: Floats,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
) -> Halves:
    """How well half of the topics ranks the runs as the other half does, by assessors and by the judge.

    Where runs are close, the assessors' own ranking changes with the topics, and only a judge with less noise than
    theirs agrees with it any better. Arguments are those of `system_agreement`. Halves are random; ones on which a run
    has no item, or a side ranks all runs the same, are left out.
    E. M. Voorhees & C. Buckley (2002), The effect of topic set size on retrieval experiment error, SIGIR, 316-323.
    """
    sums, counts = _ranked(human_sums, human_counts, judge_sums, judge_counts, higher_is_better)
    T, R = sums[0].shape
    if R < 2 or T < FEWEST_RESAMPLED:
        return Halves(None, None, "fewer than 2 runs" if R < 2 else f"fewer than {FEWEST_RESAMPLED} topics")
    first = (rng.permuted(np.tile(np.arange(T), (SPLITS, 1)), axis=1) < T // 2).astype(np.float64)
    (judge, human), (_, other) = (_run_means(W, sums, counts) for W in (first, 1 - first))
    own, across = (_in_lots(batched_tau_b, X, other) for X in (human, judge))
    known = ~(np.isnan(own) | np.isnan(across))
    if 2 * known.sum() < SPLITS:
        return Halves(None, None, "most halves of the topics lack a run, or rank all runs the same")
    return Halves(float(own[known].mean()), float(across[known].mean()))


def system_agreement(
    human_sums: Floats,
    human_counts: Floats,
    judge_sums: Floats,
    judge_counts: Floats,
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
    replicates: int = 2000,
    statistics: Mapping[str, RankStatistic] | None = None,
) -> dict[str, Estimate]:
    """The judge's ranking of R runs against the assessors', with 95 % percentile intervals over resampled topics.

    These statistics are bounded and take few values, so neither a normal nor a t interval fits them; a percentile
    interval stays within bounds, and is too narrow where topics are few. It describes how these two rankings would
    agree on other topics, noise of both included. Where runs are close, both are noisy, so it lies below the agreement
    of the true rankings and may not hold it; `split_half` says how noisy the assessors' ranking is. Resamples in which
    a run has no item or a side is constant are left out. `n` counts the runs that have an item on both sides; other
    runs are not ranked.

    Args:
        human_sums: Sum of the assessors' grades by run and topic (R x T), over the items that both sides graded.
        human_counts: The number of these grades (R x T).
        judge_sums: Sum of the judge's grades (R x T).
        judge_counts: The number of these grades (R x T).
        rng: The source of randomness.
        higher_is_better: Polarity of the scale.
        replicates: Number of resamples.
        statistics: What is computed; SYSTEM if None.

    Returns:
        An estimate of every statistic that R runs allow, by name.
    """
    sums, counts = _ranked(human_sums, human_counts, judge_sums, judge_counts, higher_is_better)
    T, R = sums[0].shape
    formulas = {name: row.formula for name, row in (statistics or SYSTEM).items() if row.fewest <= R}
    if R < 2:
        return dict.fromkeys(formulas, Estimate(None, None, None, R, T, "fewer than 2 runs"))
    judge, human = _run_means(np.ones((1, T)), sums, counts)
    points = {name: float(defined_values(f, judge, human)[0]) for name, f in formulas.items()}
    if T < FEWEST_RESAMPLED:
        reason = f"fewer than {FEWEST_RESAMPLED} topics"
        return {name: _estimate(value, None, R, T, reason) for name, value in points.items()}
    judge, human = _run_means(topic_draws(T, replicates, rng).astype(np.float64), sums, counts)
    resampled = {name: _in_lots(f, judge, human) for name, f in formulas.items()}
    return {name: _estimate(value, resampled[name], R, T) for name, value in points.items()}


def _ranked(
    human_sums: Floats, human_counts: Floats, judge_sums: Floats, judge_counts: Floats, higher_is_better: bool
) -> tuple[list[Floats], list[Floats]]:
    """Sums, turned so that the greatest is the best, and counts of judge and assessors (T x R each).

    Only runs that have an item on both sides are ranked, and only their topics are used.
    """
    sign = 1.0 if higher_is_better else -1.0
    ranked = (human_counts.sum(axis=1) > 0) & (judge_counts.sum(axis=1) > 0)
    used = (human_counts[ranked].sum(axis=0) > 0) | (judge_counts[ranked].sum(axis=0) > 0)
    return (
        [sign * X[ranked][:, used].T for X in (judge_sums, human_sums)],
        [X[ranked][:, used].T for X in (judge_counts, human_counts)],
    )


def _run_means(W: Floats, sums: Sequence[Floats], counts: Sequence[Floats]) -> list[Floats]:
    """Means of every run (B x R) under topic weights (B x T), on each side; nan where a run has no item."""
    totals = [W @ X for X in counts]
    return [np.where(N > 0, W @ X / np.maximum(N, 1), np.nan) for X, N in zip(sums, totals, strict=True)]


def _in_lots(statistic: Batched, X: Floats, Y: Floats) -> Floats:
    """`defined_values` (B,), so many of them at a time that the memory holds their B x R x R array."""
    B, R = X.shape
    lots = np.array_split(np.arange(B), -(-B * R * R // MOST_CELLS))
    return np.concatenate([defined_values(statistic, X[lot], Y[lot]) for lot in lots])


def _estimate(value: float, resampled: Floats | None, R: int, T: int, reason: str = "") -> Estimate:
    if np.isnan(value):
        return Estimate(None, None, None, R, T, "one side ranks all runs the same")
    if resampled is None:
        return Estimate(value, None, None, R, T, reason)
    undefined = undefined_too_often(resampled, "topics")
    if undefined:
        return Estimate(value, None, None, R, T, undefined)
    defined = resampled[~np.isnan(resampled)]
    low, high = np.quantile(defined, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(value, float(low), float(high), R, T)
