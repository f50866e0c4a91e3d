"""Runs that a judge and, in part, people graded: do corrected means keep their promises?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.simulations.figures import CUTS, GRADES, TOP, Codes, Finding, Floats, finding
from judge.stats.correction import correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.means import mean_interval, t_quantile
from judge.stats.ranking import kendall_tau_b
from judge.stats.tables import Undefined

SIZES = (10, 20, 40, 80)


@dataclass(frozen=True)
class World:
    """Every run's response to every turn."""

    human: Floats
    """Grades (R x N)."""
    judge: Floats
    """Grades (R x N)."""
    topics: Codes
    """(N,)."""
    preferred: NDArray[np.bool_]
    """Runs (R,) that the judge is partial to."""
    truth: Floats
    """Expected human grade of each run over all topics that there could be (R,)."""


def world(
    rng: np.random.Generator,
    *,
    runs: int = 24,
    preferred: int = 4,
    T: int = 25,
    turns: int = 7,
    topic_sd: float = 0.4,
    judge_topic_sd: float = 0.3,
    cuts: Sequence[float] | Floats = CUTS,
) -> World:
    """Quality is normal about its run, topic and turn; the judge is lenient, partial, noisy and moody by topic."""
    from scipy.special import ndtr

    N = T * turns
    topics = np.repeat(np.arange(T), turns)
    partial_to = np.arange(runs) < preferred
    run = rng.normal(0, 0.4, (runs, 1))
    z = run + rng.normal(0, topic_sd, T)[topics] + rng.normal(0, 0.4, N) + rng.normal(0, 0.7, (runs, N))
    seen = z + 0.45 + 0.7 * partial_to[:, None] + rng.normal(0, judge_topic_sd, T)[topics] + rng.normal(0, 0.7, z.shape)
    spread_of_z = math.sqrt(topic_sd**2 + 0.4**2 + 0.7**2)
    truth = ndtr((run - np.array(cuts)) / spread_of_z).sum(axis=1)
    return World(np.digitize(z, cuts) * 1.0, np.digitize(seen, cuts) * 1.0, topics, partial_to, truth)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], size: int) -> NDArray[np.bool_]:
    """A random sample of `size` along the last axis, everywhere else anew."""
    return rng.random(shape).argsort(axis=-1).argsort(axis=-1) < size


def intervals(
    here: World,
    gold: NDArray[np.bool_],
    *,
    judge: Floats | None = None,
    target: Target = "pool",
    topics: Codes | None = None,
    fallback: Literal["family"] | None = None,
) -> Floats:
    """Value, low and high (3 x R) of `correct` from gold (R x N) of equal size by run, drawn at random."""
    pi = np.full(gold.shape[1], gold[0].mean())
    turns = np.arange(gold.shape[1])
    graded = [
        RunGrades(f, np.where(g, y, np.nan), pi, here.topics if topics is None else topics, turns, None, family)
        for f, y, g, family in zip(
            here.judge if judge is None else judge,
            here.human,
            gold,
            np.where(here.preferred, "judge's", "others"),
            strict=True,
        )
    ]
    done = correct(graded, target=target, bounds=(GRADES[0], GRADES[-1]), fallback=fallback)
    return np.array([(run.value, run.low, run.high) for run in done], dtype=np.float64).T


def raw_intervals(grades: Floats, topics: Codes) -> Floats:
    """Value, low and high (3 x R) of plain means (R x N)."""
    done = [mean_interval(row.tolist(), [str(t) for t in topics]) for row in grades]
    return np.array([(run.value, run.low, run.high) for run in done], dtype=np.float64).T


def covers(of: Floats, truth: Floats) -> NDArray[np.bool_]:
    return (of[1] <= truth) & (truth <= of[2])


def ppi_formula(here: World, gold: NDArray[np.bool_]) -> Floats:
    """The result of `ppi_py` (3 x R), which assumes an infinite population and a normal quantile."""
    n, N = int(gold[0].sum()), gold.shape[1]
    y, f = here.human[gold].reshape(-1, n), here.judge[gold].reshape(-1, n)
    rest = here.judge[~gold].reshape(-1, N - n)
    cov = ((y - y.mean(1, keepdims=True)) * (f - f.mean(1, keepdims=True))).mean(1)
    weight = np.clip(cov / ((1 + n / (N - n)) * here.judge.var(axis=1)), 0, 1)
    e = y - weight[:, None] * f
    value = weight * rest.mean(axis=1) + e.mean(axis=1)
    half = t_quantile(0.95, math.inf) * np.sqrt(e.var(axis=1) / n + weight**2 * rest.var(axis=1) / (N - n))
    return np.array([value, value - half, value + half])


def pooled_rectifier(here: World, gold: NDArray[np.bool_]) -> Floats:
    """One correction for all runs (3 x R): the judge's mean less its mean error on the gold of all."""
    e = (here.judge - here.human)[gold]
    value = here.judge.mean(axis=1) - e.mean()
    half = t_quantile(0.95, len(e) - 1) * e.std(ddof=1) / math.sqrt(len(e))
    return np.array([value, value - half, value + half])


def a1(replicates: int, rng: np.random.Generator) -> list[Finding]:
    everywhere, bias, partial_to = [], [], []
    for _ in range(replicates):
        here = world(rng)
        truth = here.human.mean(axis=1)
        of = raw_intervals(here.judge, np.arange(here.judge.shape[1]))
        hit = covers(of, truth)
        everywhere.append(hit.mean())
        partial_to.append(hit[here.preferred].mean())
        bias.append((of[0] - truth).mean())
    return [
        finding("A1", "raw mean, items as units: coverage", everywhere, high=0.05),
        finding("A1", "the same, preferred runs", partial_to, high=0.05),
        finding("A1", "raw mean: bias", bias),
    ]


def a2(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = SIZES) -> list[Finding]:
    """A judge that says nothing leaves the gold alone."""
    hits: dict[int, list[float]] = {g: [] for g in sizes}
    for _ in range(replicates):
        here = world(rng)
        for g in sizes:
            of = intervals(here, drawn(rng, here.human.shape, g), judge=np.zeros_like(here.judge))
            hits[g].append(covers(of, here.human.mean(axis=1)).mean())
    return [finding("A2", f"gold only, {g} a run: coverage", hits[g], 0.93, 0.97) for g in sizes]


def a3(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = SIZES) -> list[Finding]:
    hits: dict[int, list[float]] = {g: [] for g in sizes}
    narrower: dict[int, list[float]] = {g: [] for g in sizes}
    for _ in range(replicates):
        here = world(rng)
        for g in sizes:
            gold = drawn(rng, here.human.shape, g)
            of, alone = intervals(here, gold), intervals(here, gold, judge=np.zeros_like(here.judge))
            hits[g].append(covers(of, here.human.mean(axis=1)).mean())
            narrower[g].append((of[2] - of[1]).mean() / (alone[2] - alone[1]).mean())
    return [
        figure
        for g in sizes
        for figure in (
            finding("A3", f"corrected, {g} a run: coverage", hits[g], 0.92, 0.97),
            finding("A3", f"corrected, {g} a run: width over gold only's", narrower[g], high=1.0),
        )
    ]


def a4(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = SIZES) -> list[Finding]:
    hits: dict[int, list[float]] = {g: [] for g in sizes}
    for _ in range(replicates):
        here = world(rng)
        for g in sizes:
            of = ppi_formula(here, drawn(rng, here.human.shape, g))
            hits[g].append(covers(of, here.human.mean(axis=1)).mean())
    return [finding("A4", f"ppi_py's formula, {g} a run: coverage", hits[g]) for g in sizes]


def a5(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = SIZES) -> list[Finding]:
    hits: dict[int, list[float]] = {g: [] for g in sizes}
    partial_to: dict[int, list[float]] = {g: [] for g in sizes}
    moved = []
    for _ in range(replicates):
        here = world(rng)
        for g in sizes:
            of = pooled_rectifier(here, drawn(rng, here.human.shape, g))
            hit = covers(of, here.human.mean(axis=1))
            hits[g].append(hit.mean())
            partial_to[g].append(hit[here.preferred].mean())
            moved.append(abs(tau(of[0], here) - tau(here.judge.mean(axis=1), here)))
    return [
        finding("A5", "one correction for all: change of tau", moved, 0.0, 1e-12),
        *(finding("A5", f"one correction for all, {g} a run: coverage", hits[g]) for g in sizes),
        *(finding("A5", f"the same, {g} a run, preferred runs", partial_to[g]) for g in sizes),
    ]


def tau(values: Floats, here: World) -> float:
    """Kendall's tau with the true order; means are rounded so that equal ones tie."""
    value = kendall_tau_b(values.round(9), here.human.mean(axis=1).round(9))
    if isinstance(value, Undefined):
        raise ValueError(value.reason)
    return value


def a6(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = (20, 40)) -> list[Finding]:
    raw = []
    alone: dict[int, list[float]] = {g: [] for g in sizes}
    gain: dict[int, list[float]] = {g: [] for g in sizes}
    for _ in range(replicates):
        here = world(rng)
        raw.append(tau(here.judge.mean(axis=1), here))
        for g in sizes:
            gold = drawn(rng, here.human.shape, g)
            alone[g].append(tau(intervals(here, gold, judge=np.zeros_like(here.judge))[0], here))
            gain[g].append(tau(intervals(here, gold)[0], here) - raw[-1])
    return [
        finding("A6", "raw: tau with the truth", raw),
        *(finding("A6", f"gold only, {g} a run: tau with the truth", alone[g]) for g in sizes),
        *(finding("A6", f"corrected, {g} a run: tau gained over raw", gain[g], low=0.03) for g in sizes),
    ]


def a7(replicates: int, rng: np.random.Generator, g: int = 20) -> list[Finding]:
    raw, true, excess = [], [], []
    for _ in range(replicates):
        here = world(rng)
        raw.append(bool(here.preferred[here.judge.mean(axis=1).argmax()]))
        true.append(bool(here.preferred[here.human.mean(axis=1).argmax()]))
        best = intervals(here, drawn(rng, here.human.shape, g))[0].argmax()
        excess.append(float(here.preferred[best]) - true[-1])
    return [
        finding("A7", "P(a preferred run is top), raw", raw, low=0.7),
        finding("A7", "P(a preferred run is top), truth", true),
        finding("A7", f"the same corrected, {g} a run, less truth", excess, -0.08, 0.08),
    ]


def a8(replicates: int, rng: np.random.Generator) -> list[Finding]:
    pooled, family, excess = [], [], []
    for _ in range(replicates):
        here = world(rng)
        truth = here.human.mean(axis=1)
        pooled.append(covers(intervals(here, drawn(rng, here.human.shape, 3)), truth).mean())
        of = intervals(here, drawn(rng, here.human.shape, 2), fallback="family")
        family.append(covers(of, truth).mean())
        excess.append(float(here.preferred[of[0].argmax()]) - float(here.preferred[truth.argmax()]))
    return [
        finding("A8", "corrected, 3 a run, common variance: coverage", pooled, 0.92, 0.97),
        finding("A8", "by family, 2 a run: coverage", family, 0.92, 0.99),
        finding("A8", "by family: P(a preferred run is top) less truth", excess, -0.1, 0.1),
    ]


def a9(replicates: int, rng: np.random.Generator, numbers: Sequence[int] = (25, 13)) -> list[Finding]:
    """Two of seven turns of every topic have gold, and the truth is that of all topics."""
    findings = []
    for T in numbers:
        hits: dict[str, list[bool]] = {}
        for _ in range(replicates):
            here = world(rng, runs=1, preferred=0, T=T, judge_topic_sd=0.5, topic_sd=0.6)
            alone = np.arange(len(here.topics))
            gold = drawn(rng, (T, 7), 2).reshape(1, -1)
            for how, of in {
                "raw, items": raw_intervals(here.judge, alone),
                "raw, topics": raw_intervals(here.judge, here.topics),
                "corrected, items": intervals(here, gold, target="topics", topics=alone),
                "corrected, topics": intervals(here, gold, target="topics"),
                "all gold, items": raw_intervals(here.human, alone),
                "all gold, topics": raw_intervals(here.human, here.topics),
            }.items():
                hits.setdefault(how, []).append(bool(covers(of, here.truth)[0]))
        bands = {"corrected, items": (None, 0.90), "corrected, topics": (0.92, 0.97), "all gold, topics": (0.92, 0.97)}
        findings += [
            finding("A9", f"{how} as units, T={T}: coverage", hit, *bands.get(how, (None, None)))
            for how, hit in hits.items()
        ]
    return findings


LOWER = {85: 0.0, 90: 0.25, 95: 0.61}
"""How much lower than `TOP` the cuts are that give the top grade to so many percent of the responses."""


def a10(
    replicates: int,
    rng: np.random.Generator,
    sizes: Sequence[int] = (3, 5, 10, 20),
    topics: Sequence[int] = (8, 25, 50),
    shares: Sequence[int] = tuple(LOWER),
) -> list[Finding]:
    """Most responses of 10 runs have the top grade. Where few grades are rare, the intervals are wide."""
    findings = []
    for share, T, g in product(shares, topics, sizes):
        hits = []
        for _ in range(replicates):
            here = world(rng, runs=10, preferred=3, T=T, cuts=np.array(TOP) - LOWER[share])
            of, truth = intervals(here, drawn(rng, here.human.shape, g)), here.human.mean(axis=1)
            # A mean of equal grades is rounded.
            hits.append(covers(of + np.array([[0], [-1e-9], [1e-9]]), truth).mean())
        findings.append(finding("A10", f"{share} % one grade, {T} topics, {g} a run: coverage", hits, 0.93))
    return findings
