"""Models of workers that label items whose true grades nobody knows, fitted by expectation-maximization (EM).

Each model is a law of a worker's labels given the true grade: W matrices θ (k x k), where θ_jl is the probability that
the worker says l where j is true. The models differ in the matrices that they allow. All work with logarithms, start
from the shares of each item's labels and use no random numbers. The order of the labels cannot change any digit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
_BLOCK = 2**16
"""Labels that are handled at a time, unless W x k is larger."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The fit of a model to the labels."""

    p: Floats
    """Probability of each grade for each item (N x k); the class prior where an item has no label."""
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
    item: Mapping[str, Floats] = field(default_factory=dict)
    """Parameters of the items (N,)."""

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

    `smoothing`: pseudo-labels in each cell of a matrix; 0 is the paper's maximum likelihood.

    A. P. Dawid & A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28(1), 20-28.
    """

    def m_step(expected: Floats, _: Parameters) -> Law:
        theta = _shares(expected + smoothing)
        log_theta = _log(theta)
        return Law(log_theta, {"confusion": theta}, smoothing * float(log_theta.sum()))

    return em(votes, m_step, tolerance=tolerance, max_iterations=max_iterations)


def one_coin(
    votes: Votes, *, smoothing: float = 0.5, tolerance: float = TOLERANCE, max_iterations: int = MAX_ITERATIONS
) -> Posterior:
    """Every worker is right with a probability of their own, and otherwise names all other grades equally often.

    It suits workers with few labels: each has a single parameter, where Dawid and Skene's model has k (k - 1).
    `smoothing`: pseudo-labels that are right, and as many that are wrong.
    """
    k = votes.k
    diagonal = np.eye(k, dtype=np.bool_)

    def m_step(expected: Floats, _: Parameters) -> Law:
        right = np.einsum("wjj->w", expected) + smoothing
        # Summed, because rounding could make a subtraction negative.
        wrong = np.where(diagonal, 0.0, expected).sum(axis=(1, 2)) + smoothing
        share = _shares(np.stack([right, wrong], axis=1))
        log_right, log_wrong = _log(share).T
        log_theta = np.where(diagonal, log_right[:, None, None], log_wrong[:, None, None] - np.log(k - 1))
        return Law(log_theta, {"accuracy": share[:, 0]}, smoothing * float(log_right.sum() + log_wrong.sum()))

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
    W, k = votes.W, votes.k
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
    p, parameters, trace = votes.shares(), dict[str, Floats](), list[float]()
    while True:
        grades = prior if prior is not None else _shares((p if whole else p[:, labeled]).sum(axis=1))
        law = m_step(votes.expected(p), parameters)
        parameters = law.parameters
        p = votes.log_likelihood(law.log_theta)
        p += _log(grades)[:, None]
        p, log_likelihood = normalized(p)
        trace.append(log_likelihood + law.log_density)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tolerance * votes.N
        if converged or len(trace) >= max_iterations:
            return Posterior(p.T, grades, parameters, log_likelihood, tuple(trace), converged)


def normalized(log_p: Floats) -> tuple[Floats, float]:
    """Posteriors from log-joints (k x N), which are overwritten, and the log-likelihood of all labels."""
    evidence = log_sum(log_p, axis=0)
    log_p -= evidence
    np.exp(log_p, out=log_p)
    return log_p, float(evidence.sum())


def log_sum(x: Floats, axis: int) -> Floats:
    """The logarithm of Σ exp x along an axis, which is kept with length 1."""
    top = x.max(axis=axis, keepdims=True)
    return np.asarray(top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True)))


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
