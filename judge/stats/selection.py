"""What the best of several candidates is worth, though it was chosen for its value."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.means import effective_topics, t_quantile
from judge.stats.resampling import pooled, resampled
from judge.stats.tables import Floats, Undefined

DRAWS = 20_000
"""Draws of the largest t statistic; its quantile is then known to about 1 %."""


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

    The value is the mean over repeated random divisions of the topics; the first of equally good candidates is chosen,
    by the tables `choose_by` where they are given. Tables are C by candidate and topic (m x T x k x k).
    S. Varma & R. Simon (2006), Bias in error estimation when using cross-validation for model selection, BMC
    Bioinformatics 7, 91.
    """
    judged, by = _judged(tables, choose_by)
    _, T, k, _ = judged.shape
    if T < 2:
        return Undefined("fewer than 2 topics")
    folds = min(folds, T)
    # Shuffled topics are dealt out in turn, so the sizes of folds differ by a topic at most.
    fold = rng.permuted(np.tile(np.arange(T) % folds, (repeats, 1)), axis=1)
    left_out = (fold[:, None, :] == np.arange(folds)[:, None]).astype(np.float64).reshape(-1, T)
    chosen, defined = _choose(np.array([pooled(1 - left_out, C) for C in by]), name, grades)
    scored = np.array([pooled(left_out, C) for C in judged])[chosen, np.arange(repeats * folds)]
    values = STATISTICS[name](scored.reshape(repeats, folds, k, k).sum(axis=1), grades)
    values = values[defined.reshape(repeats, folds).all(axis=1) & ~np.isnan(values)]
    return float(values.mean()) if len(values) else Undefined(f"{name} is undefined on folds of the topics")


def after_choice(
    tables: NDArray[Any],
    chosen: int,
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """The statistic of the chosen candidate, whose value is the greatest, with an interval that allows for the choice.

    The lower end reaches down until the lower ends of all candidates hold at once (`simultaneous_quantile`). The upper
    end is that of `resampled`: if the greatest value is too low, so is the value of the truly best candidate, which no
    luck has chosen. The value is too good on average; the interval is not. The tables are those of
    `nested_folds`.
    """
    resamples, draws = rng.spawn(2)
    below = simultaneous_quantile(tables, chosen, name, grades, draws, level)
    return resampled(name, tables[chosen], grades, resamples, replicates=replicates, level=level, below=below).estimate


def simultaneous_quantile(
    tables: NDArray[Any],
    chosen: int,
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    level: float = 0.95,
) -> float:
    """How many standard errors below their values the lower ends of m candidates lie that hold at once.

    It is the quantile of the largest of m t statistics. Their numerators depend on each other as the candidates'
    jackknifed values do; a candidate that is undefined without one of the topics counts as independent of the others.
    Their denominators are independent, with the degrees of freedom of the chosen candidate: each candidate's error is
    estimated by itself, and the choice favors a candidate whose error is estimated too small. Half of the error that
    the level allows for one end is kept in reserve: that far out, a coefficient on Fisher's z passes t two to three
    times as often as it should (simulated, 10 and 25 topics).
    T. Hothorn, F. Bretz & P. Westfall (2008), Simultaneous inference in general parametric models, Biometrical Journal
    50(3), 346-363.
    """
    judged, _ = _judged(tables, None)
    m, T, k, _ = judged.shape
    sizes = judged[chosen].sum(axis=(1, 2))
    df = effective_topics(sizes[sizes > 0]) - 1
    if df <= 0:
        return math.inf
    left = judged.sum(axis=1, keepdims=True) - judged
    values = STATISTICS[name](left.reshape(m * T, k, k), grades).reshape(m, T)
    centered = values - values.mean(axis=1, keepdims=True)
    size = np.sqrt((centered**2).sum(axis=1, keepdims=True))
    # A candidate that no topic changes cannot be lucky.
    units = np.divide(centered, size, out=np.zeros_like(centered), where=size > 1e-12)
    known = ~np.isnan(values).any(axis=1)
    z = np.empty((DRAWS, m))
    z[:, known] = rng.standard_normal((DRAWS, T)) @ units[known].T
    z[:, ~known] = rng.standard_normal((DRAWS, int((~known).sum())))
    t = (z / np.sqrt(rng.chisquare(df, z.shape) / df)).max(axis=1)
    return max(float(np.quantile(t, (3 + level) / 4)), t_quantile(level, df))


def _judged(tables: NDArray[Any], by: NDArray[Any] | None) -> tuple[Floats, Floats]:
    """Both tables, without the topics that have no item in either."""
    by = tables if by is None else by
    used = tables.any(axis=(0, 2, 3)) | by.any(axis=(0, 2, 3))
    return np.asarray(tables[:, used], dtype=np.float64), np.asarray(by[:, used], dtype=np.float64)


def _choose(sums: Floats, name: str, grades: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The best candidate on each of B samples (m x B x k x k), and whether any candidate has a value there."""
    m, B, k, _ = sums.shape
    statistic = STATISTICS[name]
    worth = statistic.worth(statistic(sums.reshape(m * B, k, k), grades).reshape(m, B))
    defined: NDArray[np.bool_] = ~np.isnan(worth)
    return np.where(defined, worth, -np.inf).argmax(axis=0), np.any(defined, axis=0)
