"""Which runs can be told apart: all pairs of corrected means together, as rank intervals and as letters."""

import math
from collections.abc import Sequence
from functools import cache
from string import ascii_letters

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judge.stats.correction import Corrected
from judge.stats.gold_sample import fit_prior
from judge.stats.tables import Floats

ROUNDING = 1e-9
"""Differences this small are 0."""
FEWEST_TOPICS_APART = 8
"""Fewest topics of equal size on which runs are told apart; those of unequal size count as fewer (`effective_topics`).

In simulations of 5 to 24 equal runs, some pair is told apart in at most 7 % of worlds from 8 topics on, but in 17 to
42 % on 22 topics of which one has 40 % of the turns, which count as 5.5. With 3 topics, two equal runs can look apart
on all of them by chance alone.
"""
_TABLED = (*range(1, 21), 24, 30, 40, 60, 120, 240)
"""Degrees of freedom of quantiles, as in printed tables; those between count as the next fewer."""


class Place(Struct, frozen=True):
    """A run's rank; where topics suffice, also the ranks that it may have and its letters."""

    rank: int
    """From 1; equal means share a rank."""
    low: int | None
    """The best rank that the run may have; None with too few topics, as is `high`."""
    high: int | None
    """The worst rank that the run may have."""
    letters: str
    """Shared with the runs that it cannot be told from; empty with too few topics."""


def places(
    corrected: Sequence[Corrected],
    *,
    higher_is_better: bool,
    alpha: float = 0.05,
    beyond: NDArray[np.bool_] | None = None,
    also: Sequence[Corrected] | None = None,
) -> tuple[Place | None, ...]:
    """The place of every run; None for a run without a corrected mean.

    A run whose topics count as fewer than FEWEST_TOPICS_APART is told from no other; if those of all do, there are no
    letters and no rank intervals. `beyond`: pairs of runs (R x R) that differ by what `separated` does not see. `also`:
    other values of the same runs, by which two must be apart as well, the same way round; ranks are by `corrected`.

    low is 1 + the number of significantly better runs, high the number of runs minus that of significantly worse ones.
    A run without a corrected mean may stand anywhere, so it is among the runs of every other one's high.
    All rank intervals hold at once with a probability of at least 1 - alpha: M. Mogstad, J. P. Romano, A. M. Shaikh &
    D. Wilhelm (2024), Inference for ranks, Review of Economic Studies 91(1), 476-518.
    """
    ranked = [i for i, run in enumerate(corrected) if run.value is not None]
    runs = [corrected[i] for i in ranked]
    score = np.array([run.value for run in runs], dtype=np.float64) * (1 if higher_is_better else -1)
    enough = np.array([run.topics >= FEWEST_TOPICS_APART - ROUNDING for run in runs], dtype=bool)
    apart = separated(runs, alpha=alpha)
    if also is not None:
        others = [also[i] for i in ranked]
        values = np.array([run.value for run in others], dtype=np.float64) * (1 if higher_is_better else -1)
        same_way = np.subtract.outer(score, score) * np.subtract.outer(values, values) > 0
        apart &= separated(others, alpha=alpha) & same_way
    if beyond is not None:
        apart |= beyond[np.ix_(ranked, ranked)]
    apart &= np.outer(enough, enough)
    better = score[:, None] < score[None, :] - ROUNDING
    rank = 1 + better.sum(axis=1)
    low = 1 + (better & apart).sum(axis=1)
    high = len(corrected) - (better.T & apart).sum(axis=1)
    letters = compact_letters(apart, np.lexsort((np.arange(len(runs)), rank)))
    result: list[Place | None] = [None] * len(corrected)
    for k, i in enumerate(ranked):
        result[i] = (
            Place(int(rank[k]), int(low[k]), int(high[k]), letters[k])
            if enough.any()
            else Place(int(rank[k]), None, None, "")
        )
    return tuple(result)


def shared_ranks(scores: Sequence[float | None], *, higher_is_better: bool = True) -> list[int | None]:
    """The rank of each score, where equal ones share a rank; None for None.

    >>> shared_ranks([2.0, None, 3.0, 2.0 + 1e-12])
    [2, None, 1, 2]
    """
    signed = [None if score is None else score if higher_is_better else -score for score in scores]
    known = [score for score in signed if score is not None]
    ranks: list[int | None] = []
    for score in signed:
        ranks.append(None if score is None else 1 + sum(other > score + ROUNDING for other in known))
    return ranks


def separated(corrected: Sequence[Corrected], *, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Which pairs of R runs with a mean differ (R x R), by Tukey's studentized range of R runs.

    The variance of a difference is V = Σ_u (ψ_ru - ψ_su)² over turns or topics u, so what runs share in a turn cancels.
    Of few turns V is a rough estimate, and among many pairs some V is much too small; so all V, in units of the runs'
    `scale`, are moderated toward a common one (`moderated`), with at most (R - 1) times a run's degrees of freedom. A
    pair is apart if |difference| > q(R, df) / √2 √V: J. W. Tukey (1953), The problem of multiple comparisons.

    In simulations of 5, 10 and 24 equal runs on 8 to 25 topics, some pair was told apart in 2 to 7 % of the worlds; if
    the runs' noise differs by a factor of three, in up to 10 %.

    A run without influence values counts with its standard error, independent of all others. A run without a standard
    error cannot be told from any other; two exact means are apart if they differ.
    """
    R = len(corrected)
    apart = np.zeros((R, R), dtype=bool)
    known = [r for r, run in enumerate(corrected) if run.se is not None]
    runs = [corrected[r] for r in known]
    if len(runs) < 2:
        return apart
    i, j = np.triu_indices(len(runs), 1)
    value = np.array([run.value for run in runs], dtype=np.float64)
    V, df = _variances(runs, i, j)
    difference = np.abs(value[i] - value[j])
    exact = V < ROUNDING**2
    beyond = difference > ROUNDING
    # A quantile takes a quarter of a second, so few are computed.
    tabled = np.array(_TABLED)[np.maximum(np.searchsorted(_TABLED, df, side="right") - 1, 0)]
    for row in np.unique(tabled[~exact]):
        here = ~exact & (tabled == row)
        beyond[here] = difference[here] > range_quantile(len(runs), float(row), alpha) * np.sqrt(V[here])
    a = np.array(known)[i[beyond]]
    b = np.array(known)[j[beyond]]
    apart[a, b] = apart[b, a] = True
    return apart


@cache
def range_quantile(R: int, df: float, alpha: float = 0.05) -> float:
    """The upper quantile of Tukey's studentized range of R means, over √2: the bound of a standardized difference.

    Two means have Student's t. The quantile of three at 12 degrees of freedom is 3.773 in published tables:

    >>> from judge.stats.means import t_quantile
    >>> f"{range_quantile(2, 10):.6f}", f"{t_quantile(0.95, 10):.6f}", f"{range_quantile(3, 12) * 2**0.5:.3f}"
    ('2.228139', '2.228139', '3.773')
    """
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, R, df)) / math.sqrt(2)


def _variances(runs: Sequence[Corrected], i: NDArray[np.intp], j: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The variance of the difference of runs i and j, and its degrees of freedom (P, P)."""
    units = max((len(run.influence) for run in runs if run.influence is not None), default=0)
    Psi = np.array([np.zeros(units) if run.influence is None else run.influence for run in runs]).reshape(
        len(runs), units
    )
    touched = (Psi != 0).astype(np.float64)
    sizes = np.maximum(touched.sum(axis=1), 1)
    shared = (touched @ touched.T / np.sqrt(np.outer(sizes, sizes)))[i, j]
    d = np.array([run.own_df for run in runs], dtype=np.float64)
    scale = np.array([run.scale for run in runs])
    products = Psi @ Psi.T
    V = np.maximum(products[i, i] + products[j, j] - 2 * products[i, j], 0.0)
    # Of the same turns a difference has one run's degrees of freedom, of other turns those of both.
    df = (1 - shared) * (d[i] + d[j]) + shared * np.minimum(d[i], d[j])
    lone = np.array([run.influence is None for run in runs])
    lone = lone[i] | lone[j]
    some = ~lone & (V > ROUNDING**2)
    unit = (scale[i] + scale[j])[some]
    own = df[some]
    prior = fit_prior(V[some] / unit, own)
    V[some] = unit * prior.moderate(V[some] / unit, own)
    df[some] = np.maximum(own, np.minimum(own + prior.df, d.sum() - d.max()))
    se = np.array([run.se or 0.0 for run in runs])
    least = np.array([run.df if run.se else math.inf for run in runs], dtype=np.float64)
    V[lone], df[lone] = (se[i] ** 2 + se[j] ** 2)[lone], np.minimum(least[i], least[j])[lone]
    return V, df


def compact_letters(apart: NDArray[np.bool_], order: Sequence[int] | NDArray[np.intp]) -> tuple[str, ...]:
    """Letters for runs, so that two share a letter if and only if they are not apart (R x R); the best run first.

    H.-P. Piepho (2004), An algorithm for a letter-based representation of all-pairwise comparisons, Journal of
    Computational and Graphical Statistics 13(2), 456-466.
    """
    R = len(apart)
    columns = [frozenset(range(R))]
    for i, j in zip(*np.nonzero(np.triu(apart)), strict=True):
        split: set[frozenset[int]] = set()
        for column in columns:
            split.update(_parts(column, int(i), int(j)))
        columns = []
        for part in split:
            if not any(part < larger for larger in split):
                columns.append(part)
    place = {int(run): k for k, run in enumerate(order)}
    columns.sort(key=lambda column: sorted(place[run] for run in column))
    names = [ascii_letters[k] if k < len(ascii_letters) else f"({k})" for k in range(len(columns))]
    letters: list[str] = []
    for run in range(R):
        letters.append("".join(name for name, column in zip(names, columns, strict=True) if run in column))
    return tuple(letters)


def _parts(column: frozenset[int], i: int, j: int) -> tuple[frozenset[int], ...]:
    return (column - {i}, column - {j}) if i in column and j in column else (column,)
