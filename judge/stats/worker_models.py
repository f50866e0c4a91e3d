"""Models of workers that label items whose true grades nobody knows, fitted by expectation-maximization (EM).

Each model is a law of a worker's labels given the true grade: W matrices θ (k x k), where θ_jl is the probability that
the worker says l where j is true. The models differ in the matrices that they allow. All work with logarithms, start
from the shares of each item's labels and use no random numbers. The order of the labels cannot change any digit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import comb, fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats

Parameters = dict[str, Floats]
"""The workers' parameters by name, each (W,), (W x k) or (W x k x k)."""

TINY = float(np.finfo(np.float64).tiny)
"""The least positive number of full precision, in place of 0 where a logarithm is taken."""
TOLERANCE = 1e-7
"""Gain in log-likelihood per item under which a fit has converged."""
MAX_ITERATIONS = 500
"""Most iterations of a fit."""
PRIORS: dict[str, str] = {
    "flat": "all grades equally likely before any label",
    "estimated": "the grades' shares estimated",
}
"""The probabilities of the grades before any label, by name, in words."""
RIGHT_TO_WRONG = 3
"""Of a worker without labels Dawid and Skene's model expects so many right labels for each wrong one.

Equal pseudo-labels in all cells would expect a worker of whom little is known to guess. Then few labels decide whom to
believe, and a fit of 60 items with two labels each is worse than the majority (`bench/simulations/crowds.py`).
"""
_BLOCK = 2**16
"""Labels that are handled at a time, unless W x k is larger."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The fit of a model to the labels."""

    p: Floats
    """Probability of each grade for each item (N x k); the class prior where an item has no label.

    An item with one label has that of its label alone, as if all grades were equally likely before: no other label of
    the item could speak against the class prior, which would make a rare grade all but impossible.
    """
    prior: Floats
    """Probability of each grade before any label (k,)."""
    worker: Mapping[str, Floats]
    """Parameters of the workers, (W,), (W x k) or (W x k x k)."""
    log_likelihood: float
    """Log-likelihood of the labels under the parameters that gave `p`."""
    trace: tuple[float, ...]
    """The objective after each iteration: the log-likelihood plus the log-density of the smoothing."""
    converged: bool
    """Whether the last gain was below the tolerance."""

    @property
    def iterations(self) -> int:
        """How many M and E steps were taken."""
        return len(self.trace)


class Votes:
    """L labels in the form that EM needs: sorted, with the sums over labels of its two steps.

    A worker may label an item several times; each label is evidence of its own.
    """

    def __init__(
        self,
        worker: NDArray[np.integer[Any]],
        item: NDArray[np.integer[Any]],
        label: NDArray[np.integer[Any]],
        shape: tuple[int, int, int],
    ) -> None:
        """Sort L labels: workers from 0 to W - 1, items to N - 1, labels to k - 1; `shape` is W, N and k."""
        self.W, self.N, self.k = shape
        # Sorted by item, so that the sums over items run through memory in order; then by worker and label.
        cells = self.W * self.k
        key = np.multiply(item, cells, dtype=np.int64)
        key += np.multiply(worker, self.k, dtype=np.int64)
        key += label
        key.sort()
        self.item = np.empty(len(key), dtype=np.int32)
        np.floor_divide(key, cells, out=self.item, casting="same_kind")
        self.cell = np.empty(len(key), dtype=np.int32)
        np.remainder(key, cells, out=self.cell, casting="same_kind")
        """(L,), worker and label as one number: worker * k + label."""
        self.n = np.bincount(self.item, minlength=self.N)
        """(N,), labels per item."""
        ends = np.append(0, self.n.cumsum())
        block = max(_BLOCK, self.W * self.k)
        cuts = [*range(0, self.N, max(1, block * self.N // max(len(self), 1))), self.N]
        self.blocks = [(slice(low, high), slice(int(ends[low]), int(ends[high]))) for low, high in pairwise(cuts)]
        """Slices of items and of their labels, small enough for the processor's cache."""

    def __len__(self) -> int:
        return len(self.item)

    def shares(self) -> Floats:
        """The share of each grade among each item's labels (k x N); all equal for an item without labels."""
        share = np.empty((self.k, self.N))
        for items, labels in self.blocks:
            size = items.stop - items.start
            item, cell = self._places(items, labels)
            place = item * self.k + cell % self.k
            share[:, items] = np.bincount(place, minlength=size * self.k).reshape(size, self.k).T
        return np.divide(share, self.n, out=np.full_like(share, 1 / self.k), where=self.n > 0)

    def _places(self, items: slice, labels: slice) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Item within the block and cell of each label of a block, in the type that numpy indexes fastest."""
        return self.item[labels].astype(np.intp) - items.start, self.cell[labels].astype(np.intp)

    def log_likelihood(self, log_theta: Floats) -> Floats:
        """Σ ln θ (W x true x label) over the labels of each item, for each true grade (k x N)."""
        table = np.ascontiguousarray(log_theta.transpose(1, 0, 2)).reshape(self.k, -1)
        total = np.empty((self.k, self.N))
        for items, labels in self.blocks:
            item, cell = self._places(items, labels)
            for j in range(self.k):
                total[j, items] = np.bincount(item, weights=table[j][cell], minlength=items.stop - items.start)
        return total

    def expected(self, p: Floats) -> Floats:
        """How often each worker is expected to have said l where j is true (W x true x label), from p (k x N)."""
        sums = np.zeros((self.k, self.W * self.k))
        for items, labels in self.blocks:
            item, cell = self._places(items, labels)
            for j in range(self.k):
                sums[j] += np.bincount(cell, weights=p[j, items][item], minlength=self.W * self.k)
        return sums.reshape(self.k, self.W, self.k).transpose(1, 0, 2)


class Law(NamedTuple):
    """The workers' law of labels after an M step."""

    log_theta: Floats
    """ln P(label | true grade), W x true x label."""
    parameters: Parameters
    log_density: float
    """Log-density of the smoothing at these parameters, up to a constant."""


MStep = Callable[[Floats, Parameters], Law]
"""From expected counts (W x true x label) and the parameters behind them (empty at first) to the law that fits best."""


def dawid_skene(
    votes: Votes, *, smoothing: float = 0.5, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> Posterior:
    """Every worker has a confusion matrix of their own; the prior of the grades is estimated.

    `smoothing`: pseudo-labels in each wrong cell of a matrix, and RIGHT_TO_WRONG times as many as in all wrong cells of
    a row in its right one; 0 is the paper's maximum likelihood.

    A. P. Dawid & A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28(1), 20-28.
    """
    k = votes.k
    pseudo = smoothing * np.where(np.eye(k, dtype=np.bool_), RIGHT_TO_WRONG * (k - 1), 1)

    def m_step(expected: Floats, _: Parameters) -> Law:
        theta = _shares(expected + pseudo)
        log_theta = _log(theta)
        return Law(log_theta, {"confusion": theta}, float((pseudo * log_theta).sum()))

    return em(votes, m_step, tolerance=tolerance, max_iterations=max_iterations)


def mace(
    votes: Votes,
    *,
    prior: str = "flat",
    smoothing: float = 0.5,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Posterior:
    """Every worker spams with a probability of their own: spam comes from habit, any other label is the true grade.

    In the paper all grades are equally likely before any label. Where most items have one grade, that prior takes
    workers who agree on it for spammers with the same habit. The paper's random restarts are left out.
    `smoothing`: pseudo-labels given by spamming, as many given in earnest, and as many spammed of each grade.

    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani & E. Hovy (2013), Learning whom to trust with MACE, NAACL, 1120-1130. A
    ValueError if `prior` names no prior.
    """
    if prior not in PRIORS:
        raise ValueError(f"{prior}: expected one of {', '.join(PRIORS)}")
    W = votes.W
    k = votes.k
    start = {"spamming": np.full(W, 0.5), "habit": np.full((W, k), 1 / k)}

    def m_step(expected: Floats, previous: Parameters) -> Law:
        spamming, habit = (previous or start).values()
        spam = spamming[:, None] * habit
        hit = np.einsum("wll->wl", expected)
        # Labels that are spam and equal the true grade by luck.
        lucky = hit * spam / np.maximum(spam + 1 - spamming[:, None], TINY)
        spammed = np.where(np.eye(k, dtype=np.bool_), 0.0, expected).sum(axis=1) + lucky
        earnest = np.maximum(hit - lucky, 0.0).sum(axis=1)
        both = _shares(np.stack([spammed.sum(axis=1), earnest], axis=1) + smoothing)
        habit = _shares(spammed + smoothing)
        theta = both[:, :1, None] * habit[:, None, :] + both[:, 1:, None] * np.eye(k)
        density = smoothing * float(_log(both).sum() + _log(habit).sum())
        return Law(_log(theta), {"spamming": both[:, 0], "habit": habit}, density)

    fixed = np.full(k, 1 / k) if prior == "flat" else None
    return em(votes, m_step, tolerance=tolerance, max_iterations=max_iterations, prior=fixed)


def em(votes: Votes, m_step: MStep, *, tolerance: float, max_iterations: int, prior: Floats | None = None) -> Posterior:
    """Alternate M and E steps until the objective gains less than `tolerance` per item.

    The probabilities of the grades are `prior` (k,), or estimated.
    """
    labeled = votes.n > 0
    whole = bool(labeled.all())
    p = votes.shares()
    parameters = dict[str, Floats]()
    trace = list[float]()
    while True:
        grades = prior if prior is not None else _shares((p if whole else p[:, labeled]).sum(axis=1))
        law = m_step(votes.expected(p), parameters)
        parameters = law.parameters
        p = votes.log_likelihood(law.log_theta)
        p += _log(grades)[:, None]
        top = p.max(axis=0, keepdims=True)
        evidence = top + np.log(np.exp(p - top).sum(axis=0, keepdims=True))
        p -= evidence
        np.exp(p, out=p)
        log_likelihood = float(evidence.sum())
        trace.append(log_likelihood + law.log_density)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tolerance * votes.N
        if converged or len(trace) >= max_iterations:
            single = votes.n == 1
            likelihood = np.exp(votes.log_likelihood(law.log_theta)[:, single])
            p[:, single] = _shares(likelihood.T).T
            return Posterior(
                p=p.T,
                prior=grades,
                worker=parameters,
                log_likelihood=log_likelihood,
                trace=tuple(trace),
                converged=converged,
            )


def _shares(counts: Floats) -> Floats:
    """Counts over their sum along the last axis; all equal where the sum is 0."""
    total = counts.sum(axis=-1, keepdims=True)
    share: Floats = np.divide(counts, total, out=np.full_like(counts, 1 / counts.shape[-1]), where=total > 0)
    return share


def _log(p: Floats) -> Floats:
    """The logarithm, finite also for 0, where it is too low for any other term to outweigh."""
    return np.asarray(np.log(np.maximum(p, TINY)))


def removal_probability(error: float, known: int, max_fails: int = 0) -> float:
    """The probability that a worker fails more known items than allowed, and so is removed.

    Errors are independent: P(X > f) for X binomial with n known items and the worker's error rate.

    >>> round(removal_probability(0.1, 3), 5), round(removal_probability(0.1, 5, max_fails=1), 5)
    (0.271, 0.08146)
    """
    return fsum(comb(known, k) * error**k * (1 - error) ** (known - k) for k in range(max_fails + 1, known + 1))
