"""Cut points of expected grades, fitted to gold, with what is left of their gain on other topics. Pure.

A judge with label probabilities has an expected grade, and cuts say from where on it is the next level. What fits the
gold best was fitted to its noise too. So three kinds of cuts with more and more freedom are compared by
cross-validation over topics, and the comparison is repeated inside the folds of another one: S. Varma & R. Simon
(2006), Bias in error estimation when using cross-validation for model selection, BMC Bioinformatics 7, 91.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from judge.calibrate.panel import JudgeColumn, Panel
from judge.io.text import count, digest
from judge.records import Record
from judge.stats.agreement import STATISTICS, primary_statistic
from judge.stats.raters import GradeCodes

CutKind = Literal["middle", "shifted", "free"]
"""middle: halfway between two grades. shifted: the same, all moved alike. free: each cut where it fits best."""
FOLDS = 5
FEWEST_TOPICS = 3
"""Fewest topics for folds in folds."""
MOST_PLACES = 50
"""Most places between expected grades that are tried for a cut, evenly spaced by rank."""
_BETTER = 1e-9
"""A smaller gain is one of rounding."""
_DECIMALS = 4


class CutItems(NamedTuple):
    """Graded items with the judge's expected grades."""

    expected: NDArray[np.float64]
    human: GradeCodes
    """The codes of people's grades."""
    weights: NDArray[np.float64]
    topic: NDArray[np.int64]

    def within(self, mask: NDArray[np.bool_]) -> "CutItems":
        """Some of the items."""
        return CutItems(
            expected=self.expected[mask],
            human=self.human[mask],
            weights=self.weights[mask],
            topic=self.topic[mask],
        )


class Scoring(NamedTuple):
    """What cuts are scored by."""

    grades: tuple[int, ...]
    """Ascending."""
    statistic: str

    @property
    def middle(self) -> tuple[float, ...]:
        """The cuts halfway between two grades."""
        return tuple((low + high) / 2 for low, high in zip(self.grades, self.grades[1:], strict=False))

    def value(self, items: CutItems, codes: GradeCodes) -> float:
        """Agreement of codes with people; nan where it is undefined."""
        k = len(self.grades)
        C = np.bincount(items.human * k + codes, weights=items.weights, minlength=k * k).reshape(1, k, k)
        return float(STATISTICS[self.statistic](C, self.grades)[0])

    def of_cuts(self, items: CutItems, cuts: Sequence[float]) -> float:
        """Agreement of cut grades with people; minus infinity where it is undefined."""
        return self.of_each(items, [cuts])[0]

    def of_each(self, items: CutItems, several: Sequence[Sequence[float]]) -> list[float]:
        """The same of each of several cuts."""
        order = np.argsort(items.expected, kind="stable")
        people = np.eye(len(self.grades))[items.human[order]] * items.weights[order, None]
        # The weight of each grade of people among the items below a place in this order.
        below = np.concatenate([np.zeros((1, len(self.grades))), people.cumsum(axis=0)])
        reached = np.searchsorted(items.expected[order], np.array(several, dtype=np.float64))
        ends = np.pad(reached, ((0, 0), (1, 1)), constant_values=((0, 0), (0, len(order))))
        C = np.diff(below[ends], axis=1).transpose(0, 2, 1)
        values = STATISTICS[self.statistic](C, self.grades)
        return [float(value) for value in np.where(np.isnan(values), -np.inf, values)]


class FittedCuts(Record, frozen=True):
    """Cuts, and what they gain."""

    kind: CutKind
    cuts: tuple[float, ...]
    statistic: str
    n: int
    topics: int
    without: int
    """Graded items for which the judge gave no probabilities, which are not among the n."""
    judged: float | None
    """Agreement of the grades that the judge gave."""
    fitted: float | None
    """That of the cut grades on the items that the cuts are fitted to."""
    validated: dict[CutKind, float | None]
    """That of each kind of cuts on the topics that they were not fitted to."""
    nested: float | None
    """The same with the choice of the kind repeated inside the folds."""

    @property
    def gain(self) -> float | None:
        """How much the cuts gain on other topics."""
        return None if self.nested is None or self.judged is None else self.nested - self.judged

    @property
    def optimism(self) -> float | None:
        """How much of the agreement on the fitted items is not found on other topics."""
        return None if self.nested is None or self.fitted is None else self.fitted - self.nested

    @property
    def gains(self) -> bool:
        """Whether the cuts are better than the judge's own grades on other topics."""
        return self.gain is not None and self.gain > _BETTER


def codes_by(expected: NDArray[np.float64], cuts: Sequence[float]) -> GradeCodes:
    """The code of each expected grade: the number of cuts that it reaches.

    >>> codes_by(np.array([0.39, 0.4, 2.6]), (0.4, 1.2, 2.5)).tolist()
    [0, 1, 3]
    """
    return np.searchsorted(np.array(cuts), expected, side="right").astype(np.int64)


class CrossFitted(NamedTuple):
    """Cuts, and the grades that items get by cuts of other topics."""

    cuts: tuple[float, ...]
    """Fitted to all items."""
    codes: GradeCodes
    """(N,), each by cuts whose kind and places were found on other topics; -1 where the judge gave no probabilities."""


def fit_cuts(panel: Panel, column: JudgeColumn, seed: int) -> FittedCuts:
    """Fit cuts to the items of a panel that people graded and a judge gave probabilities for.

    The panel has three topics or more.
    """
    graded = (panel.human >= 0) & (column.codes >= 0)
    usable = fittable(panel, column)
    items = _cut_items(panel, column, usable)
    scoring = _scoring(panel)
    folds = folds_of(panel.topics, seed)
    values = validated(items, scoring, folds)
    kind = best_kind(values)
    cuts = fitted(items, scoring, kind)
    return FittedCuts(
        kind=kind,
        cuts=cuts,
        statistic=scoring.statistic,
        n=len(items.expected),
        topics=len(set(items.topic.tolist())),
        without=int((graded & ~usable).sum()),
        judged=_known(scoring.value(items, column.codes[usable])),
        fitted=_known(scoring.of_cuts(items, cuts)),
        validated={name: _known(value) for name, value in values.items()},
        nested=_known(nested(items, scoring, folds)),
    )


def cross_fitted(panel: Panel, column: JudgeColumn, seed: int, within: NDArray[np.bool_]) -> CrossFitted:
    """The cuts that `fit_cuts` finds on the items of a mask, and the grades of these by cuts of other topics."""
    items = _cut_items(panel, column, fittable(panel, column) & within)
    scoring = _scoring(panel)
    folds = folds_of(panel.topics, seed)
    cuts = fitted(items, scoring, best_kind(validated(items, scoring, folds)))
    graded = within & (column.codes >= 0) & ~np.isnan(column.expected)
    # Topics in no fold have no grade by people, or tied ones alone, so that no cut was fitted to them.
    codes = np.where(graded, codes_by(column.expected, cuts), -1)
    for topics, elsewhere in _fitted_elsewhere(items, scoring, folds):
        left_out = graded & np.isin(panel.topic, topics)
        codes[left_out] = codes_by(column.expected[left_out], elsewhere)
    return CrossFitted(cuts, codes)


def fittable(panel: Panel, column: JudgeColumn) -> NDArray[np.bool_]:
    """The items of a panel that cuts can be fitted to (N,): people agree on a grade, the judge gave probabilities."""
    return np.asarray((panel.human >= 0) & (column.codes >= 0) & ~np.isnan(column.expected))


def why_no_cuts(panel: Panel, column: JudgeColumn, within: NDArray[np.bool_]) -> str:
    """Why no cuts can be fitted to the items of a mask; empty if some can."""
    if panel.of_pairs:
        return "a pair is graded in both orders, and cuts would move them apart"
    usable = fittable(panel, column) & within
    if not usable.any():
        return "the judge gave no label probabilities (--logprobs asks for them)"
    topics = len(set(panel.topic[usable].tolist()))
    if topics >= FEWEST_TOPICS:
        return ""
    found = count(topics, "dev topic")
    return f"{found}, and {FEWEST_TOPICS} are the least to fit cuts on some and measure them on others"


def _cut_items(panel: Panel, column: JudgeColumn, mask: NDArray[np.bool_]) -> CutItems:
    return CutItems(
        expected=column.expected[mask],
        human=panel.human[mask],
        weights=panel.weights[mask],
        topic=panel.topic[mask],
    )


def _scoring(panel: Panel) -> Scoring:
    return Scoring(panel.grades, primary_statistic(len(panel.grades)))


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def folds_of(topics: Sequence[str], seed: int) -> NDArray[np.int64]:
    """The rank of each topic in a random order, in which topics are dealt out to folds."""
    order = sorted(range(len(topics)), key=lambda place: digest(f"{seed}\n{topics[place]}"))
    ranks = np.empty(len(topics), dtype=np.int64)
    ranks[order] = np.arange(len(topics))
    return ranks


def _folds(items: CutItems, ranks: NDArray[np.int64]) -> Iterator[list[int]]:
    """The topics of each fold: in the order of their ranks they are dealt out in turn."""
    topics = sorted(set(items.topic.tolist()), key=lambda topic: int(ranks[topic]))
    folds = min(FOLDS, len(topics))
    for number in range(folds):
        yield topics[number::folds]


def validated(items: CutItems, scoring: Scoring, ranks: NDArray[np.int64]) -> dict[CutKind, float]:
    """The agreement of each kind of cuts on all folds together, each with cuts fitted to the others."""
    values: dict[CutKind, float] = {}
    for kind in get_args(CutKind):
        codes = np.zeros(len(items.expected), dtype=np.int64)
        for topics in _folds(items, ranks):
            out = np.isin(items.topic, topics)
            codes[out] = codes_by(items.expected[out], fitted(items.within(~out), scoring, kind))
        values[kind] = scoring.value(items, codes)
    return values


def best_kind(values: dict[CutKind, float]) -> CutKind:
    """The kind with the highest agreement; of equals the one with less freedom.

    >>> best_kind({"middle": 0.5, "shifted": 0.6, "free": 0.6})
    'shifted'
    """
    best: CutKind = "middle"
    for kind, value in values.items():
        if value > values[best] + _BETTER or (np.isnan(values[best]) and not np.isnan(value)):
            best = kind
    return best


def nested(items: CutItems, scoring: Scoring, ranks: NDArray[np.int64]) -> float:
    """The agreement on all folds together, where kind and cuts of each are chosen on the others alone."""
    codes = np.zeros(len(items.expected), dtype=np.int64)
    for topics, cuts in _fitted_elsewhere(items, scoring, ranks):
        out = np.isin(items.topic, topics)
        codes[out] = codes_by(items.expected[out], cuts)
    return scoring.value(items, codes)


def _fitted_elsewhere(
    items: CutItems, scoring: Scoring, ranks: NDArray[np.int64]
) -> Iterator[tuple[list[int], tuple[float, ...]]]:
    """The topics of each fold, and cuts whose kind and places are found on the others alone."""
    for topics in _folds(items, ranks):
        rest = items.within(~np.isin(items.topic, topics))
        kind = best_kind(validated(rest, scoring, ranks))
        yield topics, fitted(rest, scoring, kind)


def fitted(items: CutItems, scoring: Scoring, kind: CutKind) -> tuple[float, ...]:
    """The cuts of a kind that agree best with people on the items; of equals the nearest to where the search began."""
    if kind == "middle":
        return scoring.middle
    places = _places(items.expected)
    shifted = _shifted(items, scoring, places)
    return shifted if kind == "shifted" else _free(items, scoring, places, shifted)


def _places(expected: NDArray[np.float64]) -> list[float]:
    """Where a cut may be: halfway between two expected grades that follow each other."""
    values = np.unique(expected)
    places = np.unique(np.round((values[1:] + values[:-1]) / 2, _DECIMALS))
    if len(places) > MOST_PLACES:
        places = places[np.unique(np.linspace(0, len(places) - 1, MOST_PLACES).round().astype(int))]
    return [float(place) for place in places]


def _shifted(items: CutItems, scoring: Scoring, places: Sequence[float]) -> tuple[float, ...]:
    """The middle cuts moved together, so that one of them comes to a place and none leaves the scale."""
    low, high = scoring.grades[0], scoring.grades[-1]
    shifts = {round(place - cut, _DECIMALS) for place in places for cut in scoring.middle}
    tried = [scoring.middle]
    for shift in sorted(shifts, key=lambda shift: (abs(shift), shift)):
        cuts = tuple(round(cut + shift, _DECIMALS) for cut in scoring.middle)
        if low < cuts[0] and cuts[-1] < high:
            tried.append(cuts)
    return _first_best(items, scoring, tried)


def _free(items: CutItems, scoring: Scoring, places: Sequence[float], start: tuple[float, ...]) -> tuple[float, ...]:
    """The cuts after moving one at a time to its best place between its neighbors, until none gains."""
    best = start
    moved = True
    while moved:
        before = best
        for i in range(len(best)):
            below = best[i - 1] if i else -np.inf
            above = best[i + 1] if i + 1 < len(best) else np.inf
            own = best[i]
            tried = [best]
            for place in sorted(places, key=lambda place: (abs(place - own), place)):
                if below < place < above:
                    tried.append((*best[:i], place, *best[i + 1 :]))
            best = _first_best(items, scoring, tried)
        moved = best != before
    return best


def _first_best(items: CutItems, scoring: Scoring, tried: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The cuts that agree best with people, of equals the first."""
    values = scoring.of_each(items, tried)
    best = 0
    for number, value in enumerate(values):
        if value > values[best] + _BETTER:
            best = number
    return tried[best]
