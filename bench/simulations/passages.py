"""Measures of rankings by a judge's grades of all pooled passages, corrected by people's grades of a part.

Runs rank the passages of each turn by relevance and noise of their own; the first DEPTH of each are pooled. The judge
gives people's grade with the probability κ, else a grade as frequent as it is among people, so that κ is Cohen's, plain
and weighted. With shifts, the judge is moreover lenient or strict on some topics by up to one grade, and raises what
PREFERRED of the runs list.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.simulations.figures import Codes, Finding, Floats, finding
from judge.stats.correction import Corrected, correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.means import t_quantile
from judge.stats.separation import separated

RUNS = 24
PREFERRED = 4
DEPTH = 10
TURNS = 4
"""Turns of a topic."""
PASSAGES = 60
"""Passages of a turn that runs can list."""
CUTS = (0.9, 1.5, 2.1)
K = 5
MEASURES = ("P@5", "nDCG@5", "AP", "RR")
_WORLD = 7
"""The seed of the runs, whose true measures are computed once."""
_MANY = 4000
"""Topics by which the true measures are computed."""
DISCOUNTS = 1 / np.log2(np.arange(2, PASSAGES + 2))
RATES = (0.15, 0.3, 0.3, 0.3)
"""The share of the pooled passages of each grade of the judge that people grade, where these are drawn singly."""
KAPPAS = (0.3, 0.5, 0.7)
TOPICS = (25, 50)


@dataclass(frozen=True)
class World:
    """Runs on turns: what they list, and the grades of what is pooled."""

    topics: Codes
    """(N,)"""
    listed: Codes
    """The first DEPTH passages (N, R, DEPTH)."""
    pooled: NDArray[np.bool_]
    """(N, PASSAGES)."""
    people: Codes
    """Grades (N, PASSAGES)."""
    judge: Codes


def qualities() -> Floats:
    """How much relevance counts in the ranking of each run (R,)."""
    return np.random.default_rng(_WORLD).permutation(np.linspace(0.3, 1.4, RUNS))


def world(rng: np.random.Generator, T: int, kappa: float, *, shifts: bool, equal: bool = False) -> World:
    """A sample of T topics; all runs may be equally good."""
    N = T * TURNS
    topics = np.repeat(np.arange(T), TURNS)
    moods = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 0.4, N)
    z = moods[:, None] + rng.normal(0, 1, (N, PASSAGES))
    people = np.digitize(z, CUTS)
    quality = np.full(RUNS, 0.8) if equal else qualities()
    seen = quality[:, None] * z[:, None, :] + rng.normal(0, 1, (N, RUNS, PASSAGES))
    listed = np.argsort(-seen, axis=2)[:, :, :DEPTH]
    pooled = np.zeros((N, PASSAGES), dtype=bool)
    np.put_along_axis(pooled, listed.reshape(N, -1), True, axis=1)
    judge = np.where(rng.random(people.shape) < kappa, people, rng.permutation(people.ravel()).reshape(people.shape))
    if shifts:
        mood = rng.choice([-1, 0, 1], T, p=[0.2, 0.6, 0.2])[topics]
        judge = judge + mood[:, None] * (rng.random(people.shape) < 0.5)
        by_preferred = np.zeros_like(pooled)
        np.put_along_axis(by_preferred, listed[:, :PREFERRED].reshape(N, -1), True, axis=1)
        judge = judge + (by_preferred & (rng.random(people.shape) < 0.3))
        judge = np.clip(judge, 0, len(CUTS))
    return World(topics=topics, listed=listed, pooled=pooled, people=people, judge=judge)


def measured(here: World, grades: Codes) -> dict[str, Floats]:
    """Measure to the value of each run on each turn (R, N); relevant is a grade above 0."""
    N = len(grades)
    gains = np.take_along_axis(grades, here.listed.reshape(N, -1), axis=1).reshape(here.listed.shape).astype(np.float64)
    relevant = gains > 0
    best = -np.sort(-np.where(here.pooled, grades, 0), axis=1)
    ideal = best[:, :K] @ DISCOUNTS[:K]
    number = np.maximum((best > 0).sum(axis=1), 1)
    ranks = np.arange(1, DEPTH + 1)
    precision = np.cumsum(relevant, axis=2) / ranks
    first = np.where(relevant.any(axis=2), 1 / (1 + relevant.argmax(axis=2)), 0.0)
    values = {
        "P@5": relevant[:, :, :K].mean(axis=2),
        "nDCG@5": gains[:, :, :K] @ DISCOUNTS[:K] / np.where(ideal > 0, ideal, 1.0)[:, None],
        "AP": (precision * relevant).sum(axis=2) / number[:, None],
        "RR": first,
    }
    return {name: of.T for name, of in values.items()}


@cache
def truth() -> dict[str, Floats]:
    """Measure to the mean of each run by people (R,) over very many topics."""
    rng = np.random.default_rng(_WORLD)
    parts = []
    for _ in range(_MANY // 200):
        here = world(rng, 200, 1.0, shifts=False)
        parts.append({name: of.mean(axis=1) for name, of in measured(here, here.people).items()})
    return {name: np.mean([part[name] for part in parts], axis=0) for name in MEASURES}


Pair = tuple[tuple[Corrected, ...], tuple[Corrected, ...]]
"""Runs corrected by people's grades, and by people's grades alone."""


def pair(
    judge: Floats, people: Floats, known: NDArray[np.bool_], pi: Floats, topics: Codes, codes: Codes, target: Target
) -> Pair:
    """Runs (R, N), where people's values are known (R, N), drawn with these probabilities (R, N)."""
    both = []
    for values in (judge, np.zeros_like(judge)):
        samples = []
        for f, y, gold, probability, drawn in zip(values, people, known, pi, codes, strict=True):
            samples.append(RunGrades(f, np.where(gold, y, np.nan), probability, topics, drawn))
        both.append(correct(samples, target=target, bounds=(0, 1)))
    return both[0], both[1]


def by_turns(rng: np.random.Generator, here: World, share: float) -> dict[str, Pair]:
    """Each measure corrected by people's grades of all passages of a share of the topics, and by these alone."""
    T = int(here.topics.max()) + 1
    chosen = rng.choice(T, round(share * T), replace=False)
    shape = RUNS, len(here.topics)
    known = np.broadcast_to(np.isin(here.topics, chosen), shape)
    pi = np.full(shape, len(chosen) / T)
    codes = np.broadcast_to(np.arange(shape[1]), shape)
    judge = measured(here, here.judge)
    people = measured(here, here.people)
    return {name: pair(judge[name], people[name], known, pi, here.topics, codes, "topics") for name in MEASURES}


def drawn_singly(rng: np.random.Generator, here: World, rates: Sequence[float]) -> tuple[NDArray[np.bool_], Floats]:
    """Passages (N, PASSAGES) drawn by the judge's grade, and with which probability each was to be."""
    drawn = np.zeros(here.pooled.shape, dtype=bool)
    pi = np.ones(here.pooled.shape)
    for grade, rate in enumerate(rates):
        of_grade = np.flatnonzero(here.pooled & (here.judge == grade))
        size = min(len(of_grade), max(2, round(rate * len(of_grade))))
        drawn.flat[rng.choice(of_grade, size, replace=False)] = True
        pi.flat[of_grade] = size / max(len(of_grade), 1)
    return drawn, pi


def by_passages(rng: np.random.Generator, here: World, rates: Sequence[float], target: Target) -> Pair:
    """P@K corrected by people's grades of single passages, and by these alone."""
    drawn, pi = drawn_singly(rng, here, rates)
    places = here.listed[:, :, :K] + PASSAGES * np.arange(len(here.topics))[:, None, None]
    places = places.transpose(1, 0, 2).reshape(RUNS, -1)
    judge = (here.judge > 0).ravel()[places] * 1.0
    people = (here.people > 0).ravel()[places] * 1.0
    topics = np.repeat(here.topics, K)
    return pair(judge, people, drawn.ravel()[places], pi.ravel()[places], topics, places, target)


FILLED = 100
"""How often what people would say is drawn anew."""


def ndcg_by_passages(rng: np.random.Generator, here: World, rates: Sequence[float]) -> Floats:
    """nDCG@K of each turn (N, R) by people's grades of single passages: filled in, and corrected to the first order.

    What people would say of a passage is drawn from what they said where the judge gave the same grade. To the mean
    over such fillings is added, for each passage that they did grade, by how much that grade moves it, over its
    probability. That has no bias if passages count each by itself; but the best order of a turn depends on several.
    """
    drawn, pi = drawn_singly(rng, here, rates)
    grades = range(len(CUTS) + 1)
    said = np.array([[(drawn & (here.judge == j) & (here.people == y)).sum() for y in grades] for j in grades]) + 1e-9
    ends = np.cumsum(said / said.sum(axis=1, keepdims=True), axis=1)
    values = np.zeros((len(here.topics), RUNS))
    for turn, pooled in enumerate(here.pooled):
        passages = np.flatnonzero(pooled)
        gains = np.zeros((PASSAGES, RUNS))
        np.put_along_axis(gains, here.listed[turn, :, :K].T, DISCOUNTS[:K, None], axis=0)
        chances = rng.random((FILLED, len(passages), 1))
        filled = (chances > ends[here.judge[turn, passages]]).sum(axis=2)
        expected = _ndcg(filled, gains[passages])
        values[turn] = expected
        for column in np.flatnonzero(drawn[turn, passages]):
            known = filled.copy()
            known[:, column] = here.people[turn, passages[column]]
            values[turn] += (_ndcg(known, gains[passages]) - expected) / pi[turn, passages[column]]
    return values


def _ndcg(grades: Codes, gains: Floats) -> Floats:
    """The mean nDCG@K of each run (R,) over grades of a turn's passages (FILLED, n); gains (n, R) by place."""
    ideal = -np.sort(-grades, axis=1)[:, :K] @ DISCOUNTS[:K]
    mean: Floats = (grades @ gains / np.where(ideal > 0, ideal, 1.0)[:, None]).mean(axis=0)
    return mean


def hits(runs: Iterable[Corrected], true: Floats) -> float:
    """The share of runs whose interval holds the truth (R,)."""
    held = [(run.low or 0.0) <= value <= (run.high or 0.0) for run, value in zip(runs, true, strict=True)]
    return float(np.mean(held))


def width(runs: Iterable[Corrected]) -> float:
    return float(np.mean([(run.high or 0.0) - (run.low or 0.0) for run in runs]))


def plain_hits(values: Floats, T: int, true: Floats) -> float:
    """The share of runs whose plain interval over topics, of values (N, R), holds the truth (R,)."""
    by_topic = values.reshape(T, TURNS, RUNS).mean(axis=1)
    half = t_quantile(0.95, T - 1) * by_topic.std(axis=0, ddof=1) / math.sqrt(T)
    return float(np.mean(np.abs(by_topic.mean(axis=0) - true) <= half))


def turns(
    replicates: int,
    rng: np.random.Generator,
    topics: Sequence[int] = TOPICS,
    kappas: Sequence[float] = KAPPAS,
    shares: Sequence[float] = (1 / 2, 1 / 3),
    shifts: Sequence[bool] = (False, True),
) -> list[Finding]:
    """People graded whole topics, and the truth is that of all topics.

    RR is skewed in good runs, so its intervals cover a little less.
    """
    findings = []
    for T, share, kappa, shifted in product(topics, shares, kappas, shifts):
        covered: dict[str, list[float]] = {name: [] for name in MEASURES}
        narrower: dict[str, list[float]] = {name: [] for name in MEASURES}
        uncorrected: dict[str, list[float]] = {name: [] for name in MEASURES}
        for _ in range(replicates):
            here = world(rng, T, kappa, shifts=shifted)
            for name, (runs, alone) in by_turns(rng, here, share).items():
                covered[name].append(hits(runs, truth()[name]))
                narrower[name].append(width(runs) / width(alone))
            for name, values in measured(here, here.judge).items():
                uncorrected[name].append(plain_hits(values.T, T, truth()[name]))
        what = f"{T} topics, {share:.0%} by people, κ {kappa}{', shifted' if shifted else ''}"
        for name in MEASURES:
            low = 0.91 if name == "RR" else 0.92
            findings.append(finding("PT", f"{what}, {name}: coverage", covered[name], low, 0.97))
            findings.append(finding("PT", f"{what}, {name}: width ratio", narrower[name], high=1.03))
            findings.append(finding("PT", f"{what}, {name}: held by the judge alone", uncorrected[name]))
    return findings


def singles(
    replicates: int,
    rng: np.random.Generator,
    topics: Sequence[int] = TOPICS,
    kappas: Sequence[float] = KAPPAS,
    shifts: Sequence[bool] = (False, True),
    rates: Sequence[float] = RATES,
) -> list[Finding]:
    """People graded single passages, drawn by the judge's grade; the truth is of all topics, or of these."""
    findings = []
    for T, kappa, shifted in product(topics, kappas, shifts):
        covered: dict[Target, list[float]] = {"topics": [], "pool": []}
        narrower: dict[Target, list[float]] = {"topics": [], "pool": []}
        for _ in range(replicates):
            here = world(rng, T, kappa, shifts=shifted)
            true = {"topics": truth()["P@5"], "pool": measured(here, here.people)["P@5"].mean(axis=1)}
            for target in covered:
                runs, alone = by_passages(rng, here, rates, target)
                covered[target].append(hits(runs, true[target]))
                narrower[target].append(width(runs) / width(alone))
        what = f"{T} topics, κ {kappa}{', shifted' if shifted else ''}, P@5"
        for target in covered:
            findings.append(finding("PP", f"{what}, {target}: coverage", covered[target], 0.92, 0.97))
            findings.append(finding("PP", f"{what}, {target}: width ratio", narrower[target], high=1.03))
    return findings


def filled_in(
    replicates: int, rng: np.random.Generator, topics: Sequence[int] = TOPICS, kappas: Sequence[float] = KAPPAS
) -> list[Finding]:
    """Why nDCG is not corrected by single passages: no band, because nothing is promised."""
    findings = []
    for T, kappa, shifted in product(topics, kappas, (False, True)):
        covered, bias = [], []
        for _ in range(replicates):
            here = world(rng, T, kappa, shifts=shifted)
            values = ndcg_by_passages(rng, here, RATES)
            covered.append(plain_hits(values, T, truth()["nDCG@5"]))
            bias.append(float((values.mean(axis=0) - measured(here, here.people)["nDCG@5"].mean(axis=1)).mean()))
        what = f"{T} topics, κ {kappa}{', shifted' if shifted else ''}, nDCG@5"
        findings.append(finding("PN", f"{what} by single passages: coverage", covered))
        findings.append(finding("PN", f"{what} by single passages: bias", bias))
    return findings


def equal_runs(
    replicates: int, rng: np.random.Generator, settings: Sequence[tuple[int, float]] = ((25, 1 / 2), (50, 1 / 3))
) -> list[Finding]:
    """How often some of 24 equally good runs are told apart by people's grades of whole topics."""
    findings = []
    for T, share in settings:
        apart: dict[str, list[bool]] = {name: [] for name in MEASURES}
        for _ in range(replicates):
            here = world(rng, T, 0.5, shifts=True, equal=True)
            for name, (runs, _alone) in by_turns(rng, here, share).items():
                apart[name].append(bool(separated(runs).any()))
        for name in MEASURES:
            what = f"{RUNS} equal runs, {T} topics, {share:.0%} by people, {name}: some pair apart"
            findings.append(finding("PE", what, apart[name], high=0.08))
    return findings
