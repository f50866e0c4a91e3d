"""The value of the best of several candidates on topics that it was not chosen on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.resampling import FEWEST_RESAMPLED, no_interval, topic_draws, undefined_too_often
from judge.stats.tables import Floats, Undefined


def nested_folds(
    tables: NDArray[Any],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    choose_by: NDArray[Any] | None = None,
    folds: int = 5,
    repeats: int = 20,
) -> float | Undefined:
    """Choose on all folds but one, score on the left-out topics of all folds together.

    The value is the mean over repeated random divisions of the topics; the first of equally good candidates is chosen.
    S. Varma & R. Simon (2006), Bias in error estimation when using cross-validation for model selection, BMC
    Bioinformatics 7, 91.

    Args:
        tables: C by candidate and topic (m x T x k x k), counts or weights; choices are scored on them.
        name: Key of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        choose_by: Tables of the same shape by which candidates are chosen; `tables` if None.
        folds: Number of folds; no more than there are topics.
        repeats: Number of divisions.
    """
    judged, by = _judged(tables, choose_by)
    _, T, k, _ = judged.shape
    if T < 2:
        return Undefined("fewer than 2 topics")
    folds = min(folds, T)
    # Shuffled topics are dealt out in turn, so the sizes of folds differ by a topic at most.
    fold = rng.permuted(np.tile(np.arange(T) % folds, (repeats, 1)), axis=1)
    left_out = (fold[:, None, :] == np.arange(folds)[:, None]).astype(np.float64)
    chosen, defined = _choose(_pool(by, 1 - left_out.reshape(-1, T)), name, grades)
    scored = _pool(judged, left_out.reshape(-1, T))[chosen, np.arange(repeats * folds)]
    values = STATISTICS[name](scored.reshape(repeats, folds, k, k).sum(axis=1), grades)
    values = values[defined.reshape(repeats, folds).all(axis=1) & ~np.isnan(values)]
    return float(values.mean()) if len(values) else Undefined(f"{name} is undefined on folds of the topics")


def out_of_bag(
    tables: NDArray[Any],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    choose_by: NDArray[Any] | None = None,
    replicates: int = 1000,
    level: float = 0.95,
) -> Estimate:
    """Choose on resampled topics, score on the topics that were not drawn: mean and percentile interval.

    About 37 % of the topics score each choice, so the interval is conservative: wider than its level asks for. There
    is no interval where the scores do not vary, nor where the chosen candidate's statistic is undefined on a larger
    share of resamples than `resampling.MOST_UNDEFINED`. `n` is that of the candidate with the most items.
    I. Tsamardinos, E. Greasidou & G. Borboudakis (2018), Bootstrapping the out-of-sample predictions for efficient and
    accurate cross-validation, Machine Learning 107, 1895-1922.

    Args:
        tables: C by candidate and topic (m x T x k x k), counts or weights; choices are scored on them.
        name: Key of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        choose_by: Tables of the same shape by which candidates are chosen; `tables` if None.
        replicates: Number of resamples.
        level: Confidence level.
    """
    judged, by = _judged(tables, choose_by)
    T, n = judged.shape[1], round(judged.sum(axis=(1, 2, 3)).max(initial=0))
    if T < FEWEST_RESAMPLED:
        return Estimate(None, None, None, n, T, f"fewer than {FEWEST_RESAMPLED} topics")
    draws = topic_draws(T, replicates, rng).astype(np.float64)
    # A resample of all topics leaves none to score on; that does not make the statistic undefined.
    draws = draws[(draws == 0).any(axis=1)]
    chosen, defined = _choose(_pool(by, draws), name, grades)
    inside, outside = (
        np.where(defined, STATISTICS[name](_pool(judged, W)[chosen, np.arange(len(draws))], grades), np.nan)
        for W in (draws, (draws == 0).astype(np.float64))
    )
    values = outside[~np.isnan(outside)]
    if 2 * len(values) < len(draws):
        return Estimate(None, None, None, n, T, f"{name} is undefined on most resamples of the topics")
    value, sd = float(values.mean()), float(values.std())
    # A mean of 1 is not perfect agreement, so it does not forbid an interval.
    mean = STATISTICS[name].family == "mean"
    reason = no_interval(0.0 if mean else value, sd, T, "topics", undefined_too_often(inside, "topics"))
    if reason:
        return Estimate(value, None, None, n, T, reason)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), n, T)


def _judged(tables: NDArray[Any], by: NDArray[Any] | None) -> tuple[Floats, Floats]:
    """Both tables, without the topics that have no item in either."""
    by = tables if by is None else by
    used = tables.any(axis=(0, 2, 3)) | by.any(axis=(0, 2, 3))
    return np.asarray(tables[:, used], dtype=np.float64), np.asarray(by[:, used], dtype=np.float64)


def _pool(tables: Floats, W: Floats) -> Floats:
    """Σ_t w_t C_t of every candidate under every row of weights (m x B x k x k)."""
    m, T, k, _ = tables.shape
    return (W @ tables.reshape(m, T, k * k)).reshape(m, len(W), k, k)


def _choose(pooled: Floats, name: str, grades: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The best candidate on each of B samples (m x B x k x k), and whether any candidate has a value there."""
    m, B, k, _ = pooled.shape
    statistic = STATISTICS[name]
    worth = statistic.worth(statistic(pooled.reshape(m * B, k, k), grades).reshape(m, B))
    defined: NDArray[np.bool_] = ~np.isnan(worth)
    return np.where(defined, worth, -np.inf).argmax(axis=0), np.any(defined, axis=0)
