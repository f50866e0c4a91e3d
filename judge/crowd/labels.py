"""Workers' labels of one criterion, as arrays, so that millions fit in memory; and ways to one grade for each item.

A way is a row of AGGREGATORS, with its rule in words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.io.ids import natural_key, topic_of
from judge.records import Record
from judge.stats import consensus
from judge.stats.consensus import SHARES, TIES
from judge.stats.tables import Floats
from judge.stats.worker_models import MAX_ITERATIONS, PRIORS, RIGHT_TO_WRONG, Posterior, Votes, dawid_skene, mace

if TYPE_CHECKING:
    import polars as pl


class Item(NamedTuple):
    """A labeled item: a response or a clarifying question of a turn."""

    turn_id: str
    item_id: str


@dataclass(frozen=True, eq=False)
class CrowdLabels:
    """L labels that W workers gave N items under one criterion; one worker labels an item once.

    Only known items may have several labels by one worker; they are removed before grades are made.
    """

    criterion: str
    grades: tuple[int, ...]
    """The scale, ascending; codes are indices into it."""
    workers: tuple[str, ...]
    """In natural order."""
    items: tuple[Item, ...]
    """In natural order of turn and item; of judgments, in the order of their file."""
    worker: NDArray[np.int32]
    """(L,), index into `workers`."""
    item: NDArray[np.int32]
    """(L,), index into `items`."""
    code: NDArray[np.int8]
    """(L,), index of the label in `grades`."""
    seconds: NDArray[np.float32] | None = None
    """(L,), time taken; nan where unknown."""

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics of the items, in natural order."""
        return tuple(sorted({topic_of(item.turn_id) for item in self.items}, key=natural_key))

    @cached_property
    def topic(self) -> NDArray[np.int32]:
        """(N,), each item's index into `topics`."""
        index = {topic: i for i, topic in enumerate(self.topics)}
        return np.array([index[topic_of(item.turn_id)] for item in self.items], dtype=np.int32)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often each item got each grade (N x k)."""
        k = len(self.grades)
        flat = np.bincount(self.item.astype(np.int64) * k + self.code, minlength=len(self.items) * k)
        return flat.reshape(len(self.items), k)

    def kept(self, mask: NDArray[np.bool_]) -> "CrowdLabels":
        """The labels selected by the mask (L,); workers and items stay, so that indices stay valid."""
        seconds = None if self.seconds is None else self.seconds[mask]
        return replace(self, worker=self.worker[mask], item=self.item[mask], code=self.code[mask], seconds=seconds)


def factorize(series: "pl.Series") -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column in natural order, and each row's index among them."""
    import polars as pl

    texts = series.fill_null("")
    names = sorted(texts.unique().to_list(), key=natural_key)
    return names, texts.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)


def distinct(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """The distinct values, ascending; `numpy.unique` hashes, which takes a minute on products of indices."""
    ordered = np.sort(values)
    first = np.append(np.ones(len(ordered[:1]), dtype=np.bool_), ordered[1:] != ordered[:-1])
    return np.asarray(ordered[first])


TOO_FAST = 2.0
"""Seconds under which a label counts as too fast unless said otherwise."""


class CrowdSettings(Record, frozen=True):
    """How a crowd is graded; each aggregator reads the options that concern it."""

    aggregator: str = "majority"
    """A key of AGGREGATORS."""
    majority: str = "plurality"
    """A key of SHARES."""
    tie: str = "mean-half-up"
    """A key of TIES."""
    smoothing: float = 0.5
    """Pseudo-labels of each worker, in weights and in models."""
    prior: str = "estimated"
    """A key of PRIORS: the grades' probabilities before any label, in `mace`."""
    max_iterations: int = MAX_ITERATIONS
    """Of a model that does not converge before."""
    max_fails: int = 0
    max_deviation: int = 0
    min_labels: int = 3
    too_fast: float = TOO_FAST


@dataclass(frozen=True, eq=False)
class CrowdGrades:
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

    @cached_property
    def unlike(self) -> int:
        """How many grades are none of those that most labels name."""
        labeled = np.flatnonzero(self.n > 0)
        most = consensus.modes(self.counts[labeled])
        return int(np.count_nonzero(~most[np.arange(len(labeled)), self.code[labeled]]))

    @cached_property
    def shares(self) -> Floats:
        """The probability of each grade (N x k): the model's, else the share of the item's labels."""
        return self.counts / np.maximum(self.n, 1)[:, None] if self.fit is None else self.fit.p


class Aggregator(Record, frozen=True, kw_only=True):
    """A row of AGGREGATORS: a way to one grade for each item, and the properties that other stages ask for."""

    aggregate: Callable[[CrowdLabels, CrowdSettings], CrowdGrades]
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
    """It can aggregate a jury; MACE has more parameters than a few judges' labels can determine."""


def _majority(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    code = consensus.majority(labels.counts, labels.grades, share=settings.majority, tie=settings.tie)
    return graded(labels, code, f"{SHARES[settings.majority]}; without one {TIES[settings.tie].words}")


def _weighted_majority(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    counts = labels.counts
    how = {"share": settings.majority, "tie": settings.tie}
    tables = consensus.against_others(labels.worker, labels.item, labels.code, counts, len(labels.workers))
    weights = consensus.log_odds(tables, smoothing=settings.smoothing)
    votes = consensus.weighted_votes(labels.worker, labels.item, labels.code, weights["weight"], counts.shape)
    mute = ~votes.any(axis=1)
    votes[mute] = counts[mute]
    rule = (
        f"{SHARES[settings.majority]}, each label weighing max(0, ln a/(1-a) + ln(k-1)), a = its worker's agreement "
        f"with the majority of the others' labels, tied grades in equal parts, {settings.smoothing:g} pseudo-labels on "
        f"either side; all alike where all weigh 0; without one {TIES[settings.tie].words}"
    )
    return graded(labels, consensus.majority(counts, labels.grades, **how, votes=votes), rule, weights)


def _mean(labels: CrowdLabels, _: CrowdSettings) -> CrowdGrades:
    return graded(labels, consensus.mean_grade(labels.counts, labels.grades), TIES["mean-half-up"].words)


def _median(labels: CrowdLabels, _: CrowdSettings) -> CrowdGrades:
    return graded(labels, consensus.median_grade(labels.counts, labels.grades), TIES["median"].words)


def _votes(labels: CrowdLabels) -> Votes:
    shape = (len(labels.workers), len(labels.items), len(labels.grades))
    return Votes(labels.worker, labels.item, labels.code, shape)


def _dawid_skene(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    fit = dawid_skene(_votes(labels), smoothing=settings.smoothing, max_iterations=settings.max_iterations)
    words = (
        "Dawid and Skene's model, a confusion matrix for each worker that is right in "
        f"{RIGHT_TO_WRONG} of {RIGHT_TO_WRONG + 1} labels before any is known"
    )
    return _most_probable(labels, fit, words, settings)


def _mace(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    fit = mace(
        _votes(labels),
        prior=settings.prior,
        smoothing=settings.smoothing,
        max_iterations=settings.max_iterations,
    )
    words = f"MACE, a probability of spamming and habits for each worker, {PRIORS[settings.prior]}"
    return _most_probable(labels, fit, words, settings)


def _most_probable(labels: CrowdLabels, fit: Posterior, model: str, settings: CrowdSettings) -> CrowdGrades:
    """The most probable grades under a model of workers, which is named in words.

    An item with one label keeps it: the label is all that was seen of the item, and the model would overturn it only by
    what it assumes of the worker and of the grades.
    """
    end = "converged" if fit.converged else "NOT converged"
    rule = (
        f"the most probable grade of {model}, {settings.smoothing:g} pseudo-labels ({end} after "
        f"{fit.iterations} iterations); of equally probable ones the nearest to the mean of all labels, the higher "
        "of two as near; an item with one label keeps it"
    )
    code = consensus.majority(labels.counts, labels.grades, tie="nearest-mode", votes=fit.p)
    single = labels.counts.sum(axis=1) == 1
    code[single] = labels.counts[single].argmax(axis=1)
    return graded(labels, code, rule, fit.worker, fit)


def graded(
    labels: CrowdLabels,
    code: NDArray[np.int8],
    rule: str,
    worker: Mapping[str, Floats] = {},
    fit: Posterior | None = None,
) -> CrowdGrades:
    """The grades that a rule gave (indices in the scale), with statistics of the labels."""
    counts = labels.counts
    n = counts.sum(axis=1)
    tied = consensus.modes(counts).sum(axis=1) > 1
    means = consensus.means(counts, labels.grades)
    unvoted = np.take_along_axis(counts, np.maximum(code, 0)[:, None].astype(np.intp), axis=1)[:, 0] == 0
    return CrowdGrades(
        code=code,
        counts=counts,
        n=n,
        tied=tied & (n > 0),
        mean=means,
        entropy=consensus.entropy(counts),
        unvoted=unvoted & (n > 0),
        rule=rule,
        worker=worker,
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
    "mace": Aggregator(aggregate=_mace, smoothed=True, priors=True, weighs=True),
}
"""By name. A new row is a new choice of `judge crowd`, and of `judge run --jury` if `jury` is true."""
