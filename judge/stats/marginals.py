"""Do two raters use the grades equally often? Tests on the table C of their grades (k x k), by cells and by order."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats
from judge.stats.worker_models import MAX_ITERATIONS, TOLERANCE, Law, Parameters, Posterior, Votes, em, log_sum


class MarginalTest(msgspec.Struct, frozen=True):
    """A test of whether judge and assessors use the grades equally often."""

    name: Literal["bowker", "stuart_maxwell"]
    chi2: float | None
    """χ², None where the test is undefined, as are `df` and `p`."""
    df: int | None
    """Degrees of freedom."""
    p: float | None
    reason: str | None = None
    """Why the test is undefined."""


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
        return MarginalTest("bowker", None, None, None, reason)
    upper = np.triu_indices(len(C), 1)
    above, below = C[upper].astype(np.float64), C.T[upper].astype(np.float64)
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
        return MarginalTest("stuart_maxwell", None, None, None, reason)
    rows, columns = C.sum(axis=1), C.sum(axis=0)
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


BIASES = np.arange(-10, 11) / 5
"""Biases of the grid, in steps of the scale: (highest - lowest grade) / (k - 1)."""
SPREADS = np.geomspace(0.125, 8, 17)
"""Spreads of the grid, in steps of the scale: from 1 label in 1,500 a step off to all grades nearly equally likely."""
_ROWS = 4096
"""Workers that the M step handles at a time."""


def ordinal(
    votes: Votes,
    grades: Sequence[int],
    *,
    smoothing: float = 0.5,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Posterior:
    """A label is the true grade plus noise with the worker's own bias b and spread s, on the scale.

    P(l | j) ∝ exp(-|v_l - c_j| / s) over the grades v; the prior of the grades is estimated. An attentive worker has
    c_j = v_j + b. An inattentive worker has the middle of the scale plus b for every c_j: the worker prefers a grade
    whatever the item is, or none where s is large. Without such workers in the model, a few who always say the same can
    turn the scale over. The M step is exact: it takes the best point of attention x BIASES x SPREADS for each worker.

    Args:
        votes: The labels.
        grades: The values v of the scale, ascending.
        smoothing: Pseudo-labels per true grade of an attentive worker without bias and with a spread of one step.
        tolerance: Gain in log-likelihood per item under which the fit has converged.
        max_iterations: Most iterations.
    """
    log_law, points = _laws(np.asarray(grades, dtype=np.float64))
    pseudo = smoothing * np.exp(log_law[0])
    flat = log_law.reshape(len(log_law), -1)

    def m_step(expected: Floats, _: Parameters) -> Law:
        seen = (expected + pseudo).reshape(votes.W, -1)
        blocks = np.split(seen, range(_ROWS, votes.W, _ROWS))
        best = np.concatenate([np.einsum("wc,gc->wg", rows, flat).argmax(axis=1) for rows in blocks])
        parameters = {name: values[best] for name, values in points.items()}
        log_theta = log_law[best]
        return Law(log_theta, parameters, float((pseudo * log_theta).sum()))

    return em(votes, m_step, tolerance=tolerance, max_iterations=max_iterations)


def _laws(values: Floats) -> tuple[Floats, Parameters]:
    """The logarithm of P(label | true grade) at each point of the grid (points x true x label), and the points.

    The first of equally good points is taken, so they are sorted: attention, small bias, spread near one step.
    """
    middle, step = (values[0] + values[-1]) / 2, (values[-1] - values[0]) / (len(values) - 1)
    spread, bias, attention = (axis.ravel() for axis in np.meshgrid(SPREADS, BIASES, [1.0, 0.0]))
    order = np.lexsort((spread, bias, np.abs(np.log(spread)), np.abs(bias), -attention))
    spread, bias, attention = spread[order] * step, bias[order] * step, attention[order]
    center = middle + np.outer(attention, values - middle) + bias[:, None]
    log_law = -np.abs(values - center[:, :, None]) / spread[:, None, None]
    log_law -= log_sum(log_law, axis=2)
    return log_law, {"bias": bias, "spread": spread, "attention": attention}
