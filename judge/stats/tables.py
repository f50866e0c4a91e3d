"""Tables of two raters' grades on a declared scale: a single one, one for each topic, or a batch of resampled ones.

C is the table of counts: human grades in rows, judge grades in columns, both over all grades of the scale in
ascending order. A grade that nobody gave has its row too, so distances stay as declared. *Codes* are places in that
order, -1 where there is no grade. Where items stand for unequal numbers of responses, C holds sums of weights instead.
A table of integers holds counts, a table of floats holds weights. Two tests on C ask whether the raters use the grades
equally often.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

GRID = 2.0**-28
"""Weights are multiples of this, so that sums and differences of tables are as exact as those of counts."""

Weights = Literal["none", "linear", "quadratic"]
"""How disagreement grows with distance; `none` takes all disagreements alike."""
ScaleType = Literal["nominal", "ordinal", "interval"]
"""How grades are taken: as names, an order or numbers."""
Floats = NDArray[np.float64]


class Undefined(msgspec.Struct, frozen=True):
    """A statistic that these data do not define, and why."""

    reason: str


def defined(value: float | Undefined) -> float | None:
    """The value of a statistic; None where it is undefined."""
    return None if isinstance(value, Undefined) else value


def confusion(pairs: Iterable[tuple[int, int]], grades: Sequence[int]) -> NDArray[np.int64]:
    """C (k x k) from (human, judge) pairs over the scale's k grades.

    >>> confusion([(0, 0), (0, 2), (2, 2)], (0, 1, 2)).tolist()
    [[1, 0, 1], [0, 0, 0], [0, 0, 1]]

    A ValueError if a grade is not on the scale.
    """
    index = {grade: i for i, grade in enumerate(sorted(grades))}
    C = np.zeros((len(index), len(index)), dtype=np.int64)
    for human, judge in pairs:
        if human not in index or judge not in index:
            raise ValueError(f"grades {human} and {judge}: the scale has {', '.join(map(str, index))}")
        C[index[human], index[judge]] += 1
    return C


def topic_tables(
    human: NDArray[np.integer[Any]],
    judge: NDArray[np.integer[Any]],
    topics: NDArray[np.integer[Any]],
    k: int,
    T: int,
    weights: Floats | None = None,
    shares: Floats | None = None,
) -> NDArray[Any]:
    """C of every topic (T x k x k) from the codes of N items; items that lack either grade are left out.

    C holds counts as integers; with weights that differ, sums of weights as floats, scaled to a mean of 1. Topics are
    numbered from 0, and an item's weight says how many responses it stands for, up to a factor. `shares`: how much of
    its item each pair of codes is, where one item has several; those of an item add up to 1.
    """
    both = (human >= 0) & (judge >= 0)
    cell = (topics[both].astype(np.int64) * k + human[both]) * k + judge[both]
    if weights is not None and both.any():
        part = np.ones(int(both.sum())) if shares is None else shares[both]
        mean = (weights[both] * part).sum() / part.sum()
        w = np.round(weights[both] * part / mean / GRID) * GRID
        if w.min() < w.max() or w.min() < 1:
            return np.bincount(cell, weights=w, minlength=T * k * k).reshape(T, k, k)
    return np.bincount(cell, minlength=T * k * k).reshape(T, k, k).astype(np.int64, copy=False)


def is_weighted(tables: NDArray[Any]) -> bool:
    """Whether tables hold sums of weights, not counts."""
    return not np.issubdtype(tables.dtype, np.integer)


def agreement_weights(grades: Sequence[int], kind: Weights) -> Floats:
    """W (k x k): 1 - (d/R)^p with d between scale values and R the scale's range; the identity for `none`.

    J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220.
    """
    g = np.array(sorted(grades), dtype=np.float64)
    if kind == "none":
        return np.eye(len(g))
    d: Floats = np.abs(g[:, None] - g) / (g[-1] - g[0])
    return 1.0 - d if kind == "linear" else 1.0 - d**2


def sums(C: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """B tables as rows (B x k²), and their row and column sums (B x k)."""
    k = C.shape[-1]
    flat = np.asarray(C, dtype=np.float64).reshape(-1, k * k)
    of_rows, of_columns = margins(k)
    return flat, flat @ of_rows, flat @ of_columns


@cache
def margins(k: int) -> tuple[Floats, Floats]:
    """Matrices (k² x k) for products, because summing short axes is many times slower."""
    return np.repeat(np.eye(k), k, axis=0), np.tile(np.eye(k), (k, 1))


def row_sums(X: Floats) -> Floats:
    """The sum of each row (B,) of a matrix of few columns: the same additions as numpy's, column by column."""
    if X.shape[1] >= 8:
        # From here on numpy adds in another order.
        return np.asarray(X.sum(axis=1))
    total = X[:, 0].copy()
    for column in X.T[1:]:
        total += column
    return total


def ratio(over: Floats, under: Floats) -> Floats:
    """The quotient; nan where `under` is 0, without a tolerance because sums of counts are exact."""
    quotient = np.full(over.shape, np.nan)
    np.divide(over, under, out=quotient, where=under > 0)
    return quotient


class MarginalTest(msgspec.Struct, frozen=True):
    """A test of whether judge and assessors use the grades equally often."""

    name: Literal["bowker", "stuart_maxwell"]
    chi2: float | None
    """χ², None where the test is undefined, as are `df` and `p`."""
    df: int | None
    p: float | None
    reason: str | None = None


def bowker(C: NDArray[np.int64]) -> MarginalTest:
    """Test symmetry: χ² = Σ_{i<j} (C_ij - C_ji)² / (C_ij + C_ji), one df for each pair of cells that are not both 0.

    With two grades it is McNemar's test.
    A. H. Bowker (1948), A test for symmetry in contingency tables, JASA 43(244), 572-574.

    Of two grades the second is given for the first 9 times, the first for the second once:

    >>> (9 - 1) ** 2 / (9 + 1), bowker(np.array([[30, 9], [1, 20]])).chi2
    (6.4, 6.4)
    """
    reason = _no_test(C)
    if reason:
        return MarginalTest(name="bowker", chi2=None, df=None, p=None, reason=reason)
    upper = np.triu_indices(len(C), 1)
    above = C[upper].astype(np.float64)
    below = C.T[upper].astype(np.float64)
    used = above + below > 0
    chi2 = float(((above - below)[used] ** 2 / (above + below)[used]).sum())
    return _test("bowker", chi2, int(used.sum()))


def stuart_maxwell(C: NDArray[np.int64]) -> MarginalTest:
    """Test marginal homogeneity: χ² = dᵀ S⁺ d with d = r - c, S_ii = r_i + c_i - 2 C_ii and S_ij = -(C_ij + C_ji).

    S is the Laplacian of the graph of disagreements. Its rank gives the degrees of freedom: k - 1, or fewer where some
    grades are never confused with others.
    A. Stuart (1955), A test for homogeneity of the marginal distributions in a two-way classification, Biometrika
    42(3-4), 412-416.

    With two grades d is (8, -8) and S has 10 on the diagonal, so the test is Bowker's:

    >>> test = stuart_maxwell(np.array([[30, 9], [1, 20]]))
    >>> f"{8 * 8 / 10:.6f}", f"{test.chi2:.6f}", test.df
    ('6.400000', '6.400000', 1)
    """
    reason = _no_test(C)
    if reason:
        return MarginalTest(name="stuart_maxwell", chi2=None, df=None, p=None, reason=reason)
    rows = C.sum(axis=1)
    columns = C.sum(axis=0)
    values, vectors = np.linalg.eigh((np.diag(rows + columns) - C - C.T).astype(np.float64))
    used = values > 1e-12 * values[-1]
    along = (rows - columns) @ vectors[:, used]
    return _test("stuart_maxwell", float((along**2 / values[used]).sum()), int(used.sum()))


def _no_test(C: NDArray[np.int64]) -> str | None:
    if not C.sum():
        return "no pairs"
    return "no disagreements" if np.trace(C) == C.sum() else None


def _test(name: Literal["bowker", "stuart_maxwell"], chi2: float, df: int) -> MarginalTest:
    from scipy.special import chdtrc

    # The tail of a great chi2 is too small for a float, but it is not 0.
    return MarginalTest(name, chi2, df, max(float(chdtrc(df, chi2)), float(np.finfo(np.float64).tiny)))
