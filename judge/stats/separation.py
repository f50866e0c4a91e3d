"""Which runs can be told apart: all pairs of corrected means together, as rank intervals and as letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from judge.stats.correction import Corrected
from judge.stats.tables import Floats

ROUNDING = 1e-9
"""Standardized differences this close are the same number."""


@dataclass(frozen=True)
class Place:
    """A run's rank, the ranks that it may have, and the letters that it shares with runs it cannot be told from."""

    rank: int
    """From 1; equal means share a rank."""
    low: int
    """The best rank that the run may have."""
    high: int
    """The worst rank that the run may have."""
    letters: str


def places(
    corrected: Sequence[Corrected],
    rng: np.random.Generator,
    *,
    higher_is_better: bool,
    draws: int = 10_000,
    alpha: float = 0.05,
) -> tuple[Place | None, ...]:
    """The place of every run; None for a run without a corrected mean.

    low is 1 + the number of significantly better runs, high the number of runs minus that of significantly worse ones.
    All rank intervals hold at once with a probability of at least 1 - alpha: M. Mogstad, J. P. Romano, A. M. Shaikh &
    D. Wilhelm (2024), Inference for ranks, Review of Economic Studies 91(1), 476-518.

    Args:
        corrected: The corrected mean of each run (R,).
        rng: The source of randomness.
        higher_is_better: Polarity of the scale.
        draws: B, the number of draws of multipliers.
        alpha: Largest chance of any false separation.
    """
    ranked = [i for i, run in enumerate(corrected) if run.value is not None]
    runs = [corrected[i] for i in ranked]
    score = np.array([run.value for run in runs], dtype=np.float64) * (1 if higher_is_better else -1)
    apart = separated(runs, rng, draws=draws, alpha=alpha)
    better = score[:, None] < score[None, :] - ROUNDING
    rank = 1 + better.sum(axis=1)
    low = 1 + (better & apart).sum(axis=1)
    high = len(runs) - (better.T & apart).sum(axis=1)
    letters = compact_letters(apart, np.lexsort((np.arange(len(runs)), rank)))
    result: list[Place | None] = [None] * len(corrected)
    for k, i in enumerate(ranked):
        result[i] = Place(int(rank[k]), int(low[k]), int(high[k]), letters[k])
    return tuple(result)


def separated(
    corrected: Sequence[Corrected], rng: np.random.Generator, *, draws: int = 10_000, alpha: float = 0.05
) -> NDArray[np.bool_]:
    """Which pairs of runs differ, (R x R), by the largest of all studentized differences (max-T).

    The error of a difference is Σ_u g_u (ψ_ru - ψ_su) over turns or topics u, with Rademacher multipliers g, the same
    for all pairs. What runs share in a turn cancels, as it does where the turns of gold are drawn for all runs at once.
    A run without influence values of its own gets an independent normal error. Each draw is divided by its own standard
    error, as the observed difference is, which makes the tails those of Student's t.
    V. Chernozhukov, D. Chetverikov & K. Kato (2013), Gaussian approximations and multiplier bootstrap for maxima of
    sums of high-dimensional random vectors, Annals of Statistics 41(6), 2786-2819.

    A run without a standard error cannot be told from any other; two exact means are apart if they differ.

    In simulations of ten equal runs (target `topics`, gold for 25 of 75 responses, level .05) some pair was told apart
    in 3 % of the worlds with 25 topics, 17 of them with gold, and in 6 % of those with 8 topics.

    Args:
        corrected: The corrected mean of each run (R,), none of them None.
        rng: The source of randomness.
        draws: B, the number of draws of multipliers.
        alpha: Largest chance of any false separation.
    """
    R = len(corrected)
    known = np.array([run.se is not None for run in corrected], dtype=bool)
    value = np.array([run.value for run in corrected], dtype=np.float64)
    errors = _errors(corrected, draws, rng)
    observed, largest = np.zeros((R, R)), np.zeros(draws)
    for r in np.flatnonzero(known).tolist():
        others = np.flatnonzero(known & (np.arange(R) > r))
        difference = np.abs(value[r] - value[others])
        se = np.sqrt(errors.variance(r, others) + errors.own[r] ** 2 + errors.own[others] ** 2)
        exact = se < ROUNDING
        observed[r, others[exact]] = np.where(difference[exact] > ROUNDING, np.inf, 0.0)
        observed[r, others[~exact]] = difference[~exact] / se[~exact]
        if len(others := others[~exact]):
            np.maximum(largest, errors.studentized(r, others).max(axis=1), out=largest)
    largest.sort()
    p = (1 + draws - np.searchsorted(largest, observed - ROUNDING)) / (draws + 1)
    apart: NDArray[np.bool_] = (observed > 0) & (p <= alpha)
    return apart | apart.T


@dataclass(frozen=True, eq=False)
class _Errors:
    """Draws of the errors of R runs; a run has either influence values or a standard error of its own."""

    Psi: Floats
    """Influence values (R x U)."""
    own: Floats
    """Standard errors (R,)."""
    N: Floats
    """Degrees of freedom plus 1 (R,)."""
    overlap: Floats
    """Turns or topics in common, over the geometric mean of the numbers that each run has (R x R)."""
    shared: Floats
    """Σ_u g_u ψ_ru (B x R)."""
    lone: Floats
    """Normal errors (B x R)."""
    lone_variance: Floats
    """Squared standard errors by which these are divided (B x R)."""

    def variance(self, r: int, others: NDArray[np.intp]) -> Floats:
        """Σ_u (ψ_ru - ψ_su)² for each other run s."""
        squares: Floats = ((self.Psi[r] - self.Psi[others]) ** 2).sum(axis=1)
        return squares

    def studentized(self, r: int, others: NDArray[np.intp]) -> Floats:
        """Absolute errors of differences from run r over their standard errors (B x S).

        A draw moves each run's center, so the squares about it lose err²/N; they are scaled to an average of V.
        """
        a, b = self.shared[:, [r]], self.shared[:, others]
        loss = _loss(a * a, b * b, a * b, self.N[r], self.N[others], self.overlap[r, others])
        V = self.variance(r, others)
        Va, Vb, C = self.Psi[r] @ self.Psi[r], (self.Psi[others] ** 2).sum(axis=1), self.Psi[others] @ self.Psi[r]
        expected = _loss(Va, Vb, C, self.N[r], self.N[others], self.overlap[r, others])
        left = np.where(V - expected > ROUNDING * V, V / np.maximum(V - expected, ROUNDING * V + 1e-300), 0.0)
        squares = (V - loss) * left + self.lone_variance[:, [r]] + self.lone_variance[:, others]
        error = np.abs(a - b + self.lone[:, [r]] - self.lone[:, others])
        t: Floats = np.where(squares > ROUNDING**2, error / np.sqrt(np.maximum(squares, ROUNDING**2)), np.inf)
        return t


def _loss(aa: Floats, bb: Floats, ab: Floats, N: float, M: Floats, overlap: Floats) -> Floats:
    return aa / N + bb / M - 2 * overlap * ab / np.sqrt(N * M)


def _errors(corrected: Sequence[Corrected], draws: int, rng: np.random.Generator) -> _Errors:
    R = len(corrected)
    units = max((len(run.influence) for run in corrected if run.influence is not None), default=0)
    Psi = np.array([np.zeros(units) if run.influence is None else run.influence for run in corrected]).reshape(R, units)
    own = np.array([run.se if run.se and run.influence is None else 0.0 for run in corrected])
    df = np.array([max(run.df, 1) for run in corrected], dtype=np.float64)
    touched = (np.abs(Psi) > 0).astype(np.float64)
    sizes = np.maximum(touched.sum(axis=1), 1)
    return _Errors(
        Psi=Psi,
        own=own,
        N=df + 1,
        overlap=touched @ touched.T / np.sqrt(np.outer(sizes, sizes)),
        shared=rng.choice([-1.0, 1.0], size=(draws, units)) @ Psi.T,
        lone=rng.standard_normal((draws, R)) * own,
        lone_variance=rng.chisquare(df, size=(draws, R)) / df * own**2,
    )


def compact_letters(apart: NDArray[np.bool_], order: Sequence[int] | NDArray[np.intp]) -> tuple[str, ...]:
    """Letters for runs, so that two runs share a letter if and only if they are not apart.

    H.-P. Piepho (2004), An algorithm for a letter-based representation of all-pairwise comparisons, Journal of
    Computational and Graphical Statistics 13(2), 456-466.

    Args:
        apart: Which pairs of runs differ (R x R).
        order: The runs, best first (R,); letters are given in this order.
    """
    R = len(apart)
    columns = [frozenset(range(R))]
    for i, j in zip(*np.nonzero(np.triu(apart)), strict=True):
        split = {part for column in columns for part in _parts(column, int(i), int(j))}
        columns = [part for part in split if not any(part < larger for larger in split)]
    place = {int(run): k for k, run in enumerate(order)}
    columns.sort(key=lambda column: sorted(place[run] for run in column))
    names = [ascii_letters[k] if k < len(ascii_letters) else f"({k})" for k in range(len(columns))]
    return tuple(
        "".join(name for name, column in zip(names, columns, strict=True) if run in column) for run in range(R)
    )


def _parts(column: frozenset[int], i: int, j: int) -> tuple[frozenset[int], ...]:
    return (column - {i}, column - {j}) if i in column and j in column else (column,)
