"""Two more models of workers: GLAD, of ability and difficulty, and an ordinal one, of bias and spread on the scale."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats
from judge.stats.worker_models import (
    MAX_ITERATIONS,
    TOLERANCE,
    Law,
    Parameters,
    Posterior,
    Votes,
    em,
    log_sum,
    normalized,
)

PRIOR = 1.0
"""Mean of the normal priors of α and ln β, whose standard deviation is 1; the fit starts there too."""
LONGEST_STEP = 1.0
"""Longest Newton step of α or ln β."""
HALVINGS = 8
"""Most halvings of a step before it is given up."""


def glad(votes: Votes, *, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS) -> Posterior:
    """A worker of ability α labels an item of difficulty 1/β right with probability 1 / (1 + e^-αβ).

    A wrong label names every other grade with the same probability. A worker with α < 0 is wrong more often than not;
    β > 0. All grades are equally likely before any label. The M step is a Newton step for the abilities and another for
    the difficulties. A step is halved for each worker or item that it would not help, so the objective never falls.

    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma & J. Movellan (2009), Whose vote should count more: optimal integration
    of labels from labelers of unknown expertise, NIPS 22, 2035-2043.
    """
    W, N, k = votes.W, votes.N, votes.k
    worker, label = np.divmod(votes.cell, k)
    cell = votes.item.astype(np.int64) * k + label
    # The log-odds of a label's grade against each other grade are αβ + ln (k - 1).
    for_it, against = np.log(k - 1), -np.log(k)
    p, trace = votes.shares(), list[float]()
    ability, ease = np.full(W, PRIOR), np.full(N, PRIOR)
    while True:
        right = p.T.reshape(-1)[cell]
        ability = _climb(ability, worker, np.exp(ease)[votes.item], right, log=False)
        ease = _climb(ease, votes.item, ability[worker], right, log=True)
        x = ability[worker] * np.exp(ease)[votes.item]
        evidence = np.bincount(cell, weights=x + for_it, minlength=N * k).reshape(N, k).T + against
        evidence -= np.bincount(votes.item, weights=np.logaddexp(0, x) + for_it, minlength=N)
        p, log_likelihood = normalized(evidence)
        density = -0.5 * float(((ability - PRIOR) ** 2).sum() + ((ease - PRIOR) ** 2).sum())
        trace.append(log_likelihood + density)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tolerance * N
        if converged or len(trace) >= max_iterations:
            return Posterior(
                p=p.T,
                prior=np.full(k, 1 / k),
                worker={"ability": ability},
                log_likelihood=log_likelihood,
                trace=tuple(trace),
                converged=converged,
                item={"difficulty": np.exp(-ease)},
            )


def _climb(start: Floats, place: NDArray[np.int32], other: Floats, right: Floats, *, log: bool) -> Floats:
    """One Newton step up Σ right · x - ln (1 + e^x) - (t - PRIOR)² / 2 for each t separately.

    x is other · t, or other · e^t if `log`; the sum is over the labels of t's `place`. The curvature is the expected
    one, so the step always points up.
    """

    def x(t: Floats) -> Floats:
        return np.asarray(other * (np.exp(t) if log else t)[place])

    def value(t: Floats) -> Floats:
        odds = x(t)
        gain = np.bincount(place, weights=right * odds - np.logaddexp(0, odds), minlength=len(t))
        return np.asarray(gain - 0.5 * (t - PRIOR) ** 2)

    odds = x(start)
    chance = np.exp(-np.logaddexp(0, -odds))
    slope = odds if log else other
    gradient = np.bincount(place, weights=(right - chance) * slope, minlength=len(start)) - (start - PRIOR)
    curvature = np.bincount(place, weights=chance * (1 - chance) * slope**2, minlength=len(start)) + 1
    step = np.clip(gradient / curvature, -LONGEST_STEP, LONGEST_STEP)
    before = value(start)
    # Near the top rounding swallows a gain; that is no reason to halve.
    before -= 1e-12 * (1 + np.abs(before))
    for _ in range(HALVINGS):
        worse = value(start + step) < before
        if not worse.any():
            return start + step
        step[worse] /= 2
    step[value(start + step) < before] = 0
    return start + step


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
    `smoothing`: pseudo-labels per true grade of an attentive worker without bias and with a spread of one step.
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
