"""Ways from workers' labels to one grade for each item, each with its rule in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels
from judge.stats import consensus, worker_models
from judge.stats.ability import glad
from judge.stats.consensus import SHARES, TIES
from judge.stats.marginals import ordinal
from judge.stats.tables import Floats
from judge.stats.worker_models import MAX_ITERATIONS, PRIORS, TOLERANCE, Posterior, Votes


@dataclass(frozen=True)
class AggregatorOptions:
    """The options of aggregators; each aggregator reads those that concern it."""

    majority: str = "plurality"
    """A key of SHARES."""
    tie: str = "mean-half-up"
    """A key of TIES."""
    smoothing: float = 0.5
    """Pseudo-labels of each worker, in weights and in every model but glad, whose abilities have a prior."""
    prior: str = "flat"
    """A key of PRIORS: the grades' probabilities before any label, in `mace`."""
    tolerance: float = TOLERANCE
    """A model has converged when the log-likelihood per item gains less than this."""
    max_iterations: int = MAX_ITERATIONS


@dataclass(frozen=True, eq=False)
class Aggregated:
    """The grades of N items, the rule that gave them, and statistics of the labels."""

    code: NDArray[np.int8]
    """(N,), index of the grade in the scale; -1 where the item has no label."""
    counts: NDArray[np.int64]
    """How often each item got each grade (N x k)."""
    n: NDArray[np.int64]
    """(N,), labels per item."""
    tied: NDArray[np.bool_]
    """(N,), whether several grades share the most labels, whatever grade the rule gives."""
    mean: Floats
    """(N,), of the labels; nan where there is none."""
    entropy: Floats
    """(N,), of the labels in bits; nan where there is none."""
    unvoted: NDArray[np.bool_]
    """(N,), whether no label names the grade."""
    rule: str
    """The rule in words, to go with every output."""
    worker: Mapping[str, Floats] = field(default_factory=dict)
    """Parameters of the workers by name, the first axis as in `CrowdLabels.workers`."""
    fit: Posterior | None = None
    """The fitted model, if a model gave the grades."""

    @property
    def posterior(self) -> Floats | None:
        """Probability of each grade for each item (N x k), if a model gave the grades."""
        return None if self.fit is None else self.fit.p


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    """A row of AGGREGATORS: a way to one grade for each item, and the properties that other stages ask for."""

    aggregate: Callable[[CrowdLabels, AggregatorOptions], Aggregated]
    votes: bool = False
    """It has a majority and breaks ties (`majority`, `tie`)."""
    smoothed: bool = False
    """It gives each worker pseudo-labels (`smoothing`)."""
    least_smoothing: float = 0.0
    """The smallest `smoothing` that it takes."""
    priors: bool = False
    """Its probabilities of the grades before any label can be chosen (`prior`)."""
    weighs: bool = False
    """It estimates from the labels which workers are better; this needs three workers."""
    jury: bool = False
    """It can aggregate a jury; the other models have more parameters than a few judges' labels can determine."""

    def __call__(self, labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
        """The grades of all items."""
        return self.aggregate(labels, options)


def _majority(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    code = consensus.majority(labels.counts, labels.grades, share=options.majority, tie=options.tie)
    return _aggregated(labels, code, f"{SHARES[options.majority]}; without one {TIES[options.tie].words}")


def _weighted_majority(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    counts, how = labels.counts, {"share": options.majority, "tie": options.tie}
    rest = consensus.without_one(counts, labels.grades, **how)
    weights = consensus.log_odds(
        labels.worker, labels.item, labels.code, rest, len(labels.workers), smoothing=options.smoothing
    )
    votes = consensus.weighted_votes(labels.worker, labels.item, labels.code, weights.weight, counts.shape)
    mute = ~votes.any(axis=1)
    votes[mute] = counts[mute]
    rule = (
        f"{SHARES[options.majority]}, each label weighing max(0, ln a/(1-a) + ln(k-1)), a = its worker's agreement "
        f"with the majority of the others' labels, {options.smoothing:g} pseudo-labels on either side; all "
        f"alike where all weigh 0; without one {TIES[options.tie].words}"
    )
    return _aggregated(labels, consensus.majority(counts, labels.grades, **how, votes=votes), rule, weights._asdict())


def _mean(labels: CrowdLabels, _: AggregatorOptions) -> Aggregated:
    return _aggregated(labels, consensus.mean_grade(labels.counts, labels.grades), TIES["mean-half-up"].words)


def _median(labels: CrowdLabels, _: AggregatorOptions) -> Aggregated:
    return _aggregated(labels, consensus.median_grade(labels.counts, labels.grades), TIES["median"].words)


def _dawid_skene(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    fit = worker_models.dawid_skene(_votes(labels), **_fitting(options))
    return _modeled(labels, fit, "Dawid and Skene's model, a confusion matrix for each worker", options.smoothing)


def _one_coin(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    fit = worker_models.one_coin(_votes(labels), **_fitting(options))
    return _modeled(labels, fit, "the one-coin model, an accuracy for each worker", options.smoothing)


def _mace(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    fit = worker_models.mace(_votes(labels), prior=options.prior, **_fitting(options))
    words = f"MACE, a probability of spamming and habits for each worker, {PRIORS[options.prior]}"
    return _modeled(labels, fit, words, options.smoothing)


def _glad(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    fit = glad(_votes(labels), tolerance=options.tolerance, max_iterations=options.max_iterations)
    return _modeled(labels, fit, "GLAD, an ability for each worker and a difficulty for each item")


def _ordinal(labels: CrowdLabels, options: AggregatorOptions) -> Aggregated:
    fit = ordinal(_votes(labels), labels.grades, **_fitting(options))
    return _modeled(labels, fit, "the ordinal model, a bias, a spread and attention for each worker", options.smoothing)


def _votes(labels: CrowdLabels) -> Votes:
    shape = len(labels.workers), len(labels.items), len(labels.grades)
    return Votes(labels.worker, labels.item, labels.code, shape)


class _Fitting(TypedDict):
    smoothing: float
    tolerance: float
    max_iterations: int


def _fitting(options: AggregatorOptions) -> _Fitting:
    return {
        "smoothing": options.smoothing,
        "tolerance": options.tolerance,
        "max_iterations": options.max_iterations,
    }


def _modeled(labels: CrowdLabels, fit: Posterior, words: str, smoothing: float | None = None) -> Aggregated:
    code = consensus.majority(labels.counts, labels.grades, tie="nearest-mode", votes=fit.p)
    smoothed = "" if smoothing is None else f", {smoothing:g} pseudo-labels"
    end = "converged" if fit.converged else "NOT converged"
    rule = (
        f"the most probable grade of {words}{smoothed} ({end} after {fit.iterations} iterations); of equally probable "
        "ones the nearest to the mean of all labels, the higher of two as near"
    )
    return _aggregated(labels, code, rule, fit.worker, fit)


def _aggregated(
    labels: CrowdLabels,
    code: NDArray[np.int8],
    rule: str,
    worker: Mapping[str, Floats] | None = None,
    fit: Posterior | None = None,
) -> Aggregated:
    counts = labels.counts
    n = counts.sum(axis=1)
    given = np.take_along_axis(counts, np.maximum(code, 0)[:, None].astype(np.intp), axis=1)[:, 0]
    return Aggregated(
        code=code,
        counts=counts,
        n=n,
        tied=(consensus.modes(counts).sum(axis=1) > 1) & (n > 0),
        mean=consensus.means(counts, labels.grades),
        entropy=consensus.entropy(counts),
        unvoted=(given == 0) & (n > 0),
        rule=rule,
        worker=worker or {},
        fit=fit,
    )


AGGREGATORS: dict[str, Aggregator] = {
    "majority": Aggregator(aggregate=_majority, votes=True, jury=True),
    # A worker who always agrees would have an infinite weight without any pseudo-label.
    "weighted-majority": Aggregator(
        aggregate=_weighted_majority, votes=True, smoothed=True, least_smoothing=1e-6, weighs=True, jury=True
    ),
    "mean": Aggregator(aggregate=_mean, jury=True),
    "median": Aggregator(aggregate=_median, jury=True),
    "dawid-skene": Aggregator(aggregate=_dawid_skene, smoothed=True, weighs=True, jury=True),
    "one-coin": Aggregator(aggregate=_one_coin, smoothed=True, weighs=True, jury=True),
    "mace": Aggregator(aggregate=_mace, smoothed=True, priors=True, weighs=True),
    "glad": Aggregator(aggregate=_glad, weighs=True),
    "ordinal": Aggregator(aggregate=_ordinal, smoothed=True, weighs=True),
}
"""Name to aggregator. A new row is a new choice of `judge crowd`, and of `judge run --jury` if `jury` is true."""

VOTING = tuple(name for name, row in AGGREGATORS.items() if row.votes)
SMOOTHED = tuple(name for name, row in AGGREGATORS.items() if row.smoothed)
PRIOR = tuple(name for name, row in AGGREGATORS.items() if row.priors)
JURIES = tuple(name for name, row in AGGREGATORS.items() if row.jury)
