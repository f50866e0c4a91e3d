"""A model of workers on an ordered scale: the true grade plus noise."""

from collections.abc import Sequence

import numpy as np

from judge.stats.tables import Floats
from judge.stats.worker_models import MAX_ITERATIONS, TOLERANCE, Law, Parameters, Posterior, Votes, em, log_sum

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
