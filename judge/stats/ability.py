"""GLAD: workers of different ability on items of different difficulty."""

import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats
from judge.stats.worker_models import MAX_ITERATIONS, TOLERANCE, Posterior, Votes, normalized

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

    Args:
        votes: The labels.
        tolerance: Gain in log-likelihood plus log-prior per item under which the fit has converged.
        max_iterations: Most iterations.
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
