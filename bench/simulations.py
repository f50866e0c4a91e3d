"""Intervals and tests of `judge.stats` in simulated worlds with a known truth: do they keep their promises?

    python bench/simulations.py [--only A2,A3] [--replicates N] [--seed S]

Prints the figure of each simulation, its Monte Carlo standard error and the band that it must stay in ("-" where the
figure only shows what another method would do), and exits with 1 if a figure is out of its band. Bands hold for the
default number of replicates; with fewer, a figure near an edge can leave its band by chance.
"""

import argparse
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.stats.comparison import Comparison, compare
from judge.stats.correction import correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.means import mean_interval, t_quantile
from judge.stats.ranking import kendall_tau_b
from judge.stats.resampling import resampled, spread, topic_draws
from judge.stats.selection import nested_folds, out_of_bag
from judge.stats.tables import Undefined, topic_tables

GRADES = (0, 1, 2, 3)
CUTS = (-0.7, 0.2, 1.0)
SIZES = (10, 20, 40, 80)
LLMJUDGE = Path(__file__).resolve().parents[2] / "shared" / "data" / "llmjudge"

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """A figure that a simulation obtained, with the band that it must stay in."""

    id: str
    setting: str
    obtained: float
    error: float
    """Monte Carlo standard error: the replicates' standard deviation over √replicates; for a rate, the binomial."""
    low: float | None
    high: float | None

    def within(self, errors: float = 0.0) -> bool:
        """Whether the figure is in its band, or at most so many standard errors out of it."""
        slack = errors * self.error
        return (self.low is None or self.obtained >= self.low - slack) and (
            self.high is None or self.obtained <= self.high + slack
        )


def finding(
    id: str, setting: str, replicates: Sequence[float] | Floats, low: float | None = None, high: float | None = None
) -> Finding:
    values = np.asarray(replicates, dtype=np.float64)
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Finding(id, setting, float(values.mean()), error, low, high)


# --- Runs that a judge and, in part, people graded ---------------------------------------------------------------


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
    truth = ndtr((run - np.array(CUTS)) / spread_of_z).sum(axis=1)
    return World(np.digitize(z, CUTS) * 1.0, np.digitize(seen, CUTS) * 1.0, topics, partial_to, truth)


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
        finding("A8", "by family, 2 a run: coverage", family),
        finding("A8", "by family: P(a preferred run is top) less truth", excess),
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


# --- Judges of the same items ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    human: Codes
    """(N,)."""
    judges: Codes
    """(m x N)."""
    topics: Codes
    """(N,)."""

    def tables(self) -> NDArray[np.int64]:
        """C by judge and topic (m x T x k x k)."""
        T = int(self.topics.max()) + 1
        return np.array([topic_tables(self.human, judge, self.topics, len(GRADES), T) for judge in self.judges])

    def item_tables(self) -> NDArray[np.int64]:
        """The same with every item as its own topic."""
        return Judged(self.human, self.judges, np.arange(len(self.topics))).tables()


def judged(
    rng: np.random.Generator,
    noise: Sequence[float] | Floats,
    *,
    T: int = 25,
    turns: int = 7,
    heterogeneity: float = 0.5,
    shared: float = 0.5,
) -> Judged:
    """Judges with the given noise; its size differs by topic and judge, and the judges share a part of it."""
    sd, topics = np.asarray(noise, dtype=np.float64), np.repeat(np.arange(T), turns)
    N = len(topics)
    z = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 0.8, N)
    scale = (sd[:, None] * np.exp(heterogeneity * rng.normal(size=(len(sd), T))))[:, topics]
    own = rng.normal(size=(len(sd), N))
    seen = z + scale * (math.sqrt(shared) * rng.normal(size=N) + math.sqrt(1 - shared) * own)
    return Judged(np.digitize(z, CUTS), np.digitize(seen, CUTS), topics)


NOISE = 0.7


def wkappas(tables: NDArray[np.int64]) -> Floats:
    """Weighted kappa of every judge (m,)."""
    return STATISTICS["wkappa"](tables.sum(axis=1), GRADES)


@cache
def true_wkappa(heterogeneity: float = 0.5, T: int = 20_000) -> float:
    """Weighted kappa of a judge over very many topics."""
    rng = np.random.default_rng(1)
    return float(wkappas(judged(rng, [NOISE], T=T, heterogeneity=heterogeneity).tables())[0])


def versus(tables: NDArray[np.int64], rng: np.random.Generator, permutations: int = 999) -> tuple[Comparison, ...]:
    """The first judge with each other one."""
    pairs = {("0", str(j)): (tables[0], tables[j]) for j in range(1, len(tables))}
    return compare(pairs, "wkappa", GRADES, rng, permutations=permutations).pairs


def rejects(p: float | None) -> bool:
    return p is not None and p <= 0.05


def excludes_zero(pair: Comparison) -> bool:
    return pair.difference.low is not None and not holds(pair.difference, 0.0)


def unpaired(tables: NDArray[np.int64], rng: np.random.Generator) -> bool:
    """Whether a z test rejects that treats the two judges, with topic-bootstrap errors, as if on different items."""
    T = tables.shape[1]
    errors = []
    for of in tables:
        C = (topic_draws(T, 1000, rng) @ of.reshape(T, -1)).reshape(-1, 1, *of.shape[1:])
        errors.append(spread(wkappas(C)))
    d = np.subtract(*wkappas(tables))
    return bool(abs(d) > t_quantile(0.95, math.inf) * math.hypot(*errors))


def b1(replicates: int, rng: np.random.Generator) -> list[Finding]:
    return _false_positives("B1", replicates, rng, 25, 7)


def b2(replicates: int, rng: np.random.Generator) -> list[Finding]:
    return _false_positives("B2", replicates, rng, 25, 3) + _false_positives("B2", replicates, rng, 12, 6)


def _false_positives(id: str, replicates: int, rng: np.random.Generator, T: int, turns: int) -> list[Finding]:
    hits: dict[str, list[bool]] = {}
    for _ in range(replicates):
        here = judged(rng, [NOISE, NOISE], T=T, turns=turns)
        tables = here.tables()
        by_topic, by_item = (versus(of, rng)[0] for of in (tables, here.item_tables()))
        for how, rejected in {
            "topics exchanged": rejects(by_topic.p),
            "interval over topics": excludes_zero(by_topic),
            "items exchanged": rejects(by_item.p),
            "interval over items": excludes_zero(by_item),
            "unpaired": unpaired(tables, rng),
        }.items():
            hits.setdefault(how, []).append(rejected)
    bands = {"topics exchanged": (None, 0.07)}
    return [
        finding(id, f"{how}, T={T} n={T * turns}: false positives", hit, *bands.get(how, (None, None)))
        for how, hit in hits.items()
    ]


def b3(replicates: int, rng: np.random.Generator) -> list[Finding]:
    paired, alone, d = [], [], []
    for _ in range(replicates):
        tables = judged(rng, [0.55, 0.85]).tables()
        paired.append(rejects(versus(tables, rng)[0].p))
        alone.append(unpaired(tables, rng))
        d.append(np.subtract(*wkappas(tables)))
    return [
        finding("B3", "difference of weighted kappas", d),
        finding("B3", "power, topics exchanged", paired),
        finding("B3", "power, unpaired", alone),
        finding("B3", "power gained by pairing", np.subtract(paired, alone, dtype=np.float64), low=1e-9),
    ]


def c1(
    replicates: int, rng: np.random.Generator, settings: Sequence[tuple[int, int]] = ((10, 7), (10, 3), (30, 7))
) -> list[Finding]:
    """Is any of K equal prompts better or worse than the baseline?"""
    findings = []
    for K, turns in settings:
        hits: dict[str, list[bool]] = {"unadjusted": [], "Holm": [], "max-T": []}
        for _ in range(replicates):
            compared = versus(judged(rng, [NOISE] * (K + 1), turns=turns).tables(), rng)
            hits["unadjusted"].append(any(rejects(pair.p) for pair in compared))
            hits["Holm"].append(any(rejects(pair.p_holm) for pair in compared))
            hits["max-T"].append(any(rejects(pair.p_max_t) for pair in compared))
        findings += [
            finding("C1", f"{how}, {K} prompts n={25 * turns}: any false positive", hit, high=high)
            for (how, hit), high in zip(hits.items(), (None, 0.07, 0.07), strict=True)
        ]
    return findings


def c2(
    replicates: int, rng: np.random.Generator, settings: Sequence[tuple[int, int]] = ((10, 3), (30, 3), (10, 7))
) -> list[Finding]:
    """The best of K equal prompts, by its own interval, by that of held-out topics, and by what is resampled."""
    truth = true_wkappa()
    findings = []
    for K, turns in settings:
        optimism, naive, split_bias, split, nested, bagged = ([] for _ in range(6))
        for _ in range(replicates):
            tables = judged(rng, [NOISE] * K, turns=turns).tables()
            values = wkappas(tables)
            optimism.append(values.max() - truth)
            naive.append(
                holds(resampled("wkappa", tables[values.argmax()], GRADES, rng, replicates=1000).estimate, truth)
            )
            dev = rng.permutation(25) < 12
            chosen = tables[wkappas(tables[:, dev]).argmax()][~dev]
            split.append(holds(resampled("wkappa", chosen, GRADES, rng, replicates=1000).estimate, truth))
            split_bias.append(wkappas(chosen[None])[0] - truth)
            inside = nested_folds(tables, "wkappa", GRADES, rng)
            if not isinstance(inside, Undefined):
                nested.append(inside - truth)
            bagged.append(holds(out_of_bag(tables, "wkappa", GRADES, rng, replicates=500), truth))
        what = f"{K} prompts n={25 * turns}"
        findings += [
            finding("C2", f"best on all gold, {what}: optimism", optimism),
            finding("C2", f"best on all gold, {what}: coverage", naive, high=0.90),
            finding("C2", f"held-out topics, {what}: coverage", split, 0.90, 0.97),
            finding("C2", f"held-out topics, {what}: bias", split_bias),
            finding("C2", f"nested folds, {what}: bias", nested),
            finding("C2", f"out of bag, {what}: coverage", bagged),
        ]
    return findings


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high


def kappa_coverage(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = (50, 100, 200)) -> list[Finding]:
    """Items that are independent of each other, each its own topic; then topics of seven, which differ."""
    findings = []
    for n in sizes:
        hits = _intervals_of_wkappa(replicates, rng, n, 1, heterogeneity=0.0)
        findings.append(finding("D", f"independent items, n={n}: coverage", hits["topics"], 0.93, 0.97))
    hits = _intervals_of_wkappa(replicates, rng, 25, 7, heterogeneity=0.5)
    return findings + [finding("D", f"{how} as units, T=25 n=175: coverage", held) for how, held in hits.items()]


def _intervals_of_wkappa(
    replicates: int, rng: np.random.Generator, T: int, turns: int, *, heterogeneity: float
) -> dict[str, list[bool]]:
    truth = true_wkappa(heterogeneity)
    hits: dict[str, list[bool]] = {"topics": [], "items": []}
    for _ in range(replicates):
        tables = judged(rng, [NOISE], T=T, turns=turns, heterogeneity=heterogeneity).tables()[0]
        both = resampled("wkappa", tables, GRADES, rng, replicates=1000)
        hits["topics"].append(holds(both.estimate, truth))
        hits["items"].append(holds(both.item, truth))
    return hits


# --- Binary grades, and how gold was drawn -----------------------------------------------------------------------


def binary(rng: np.random.Generator, N: int = 2000) -> tuple[Floats, Floats]:
    """Human and judge grades (N,): 40 % are 1, and the judge is right about 80 % of either grade."""
    y = rng.random(N) < 0.4
    return y * 1.0, np.where(rng.random(N) < 0.8, y, ~y) * 1.0


def stratified(rng: np.random.Generator, of: Floats, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """A random sample (N,) with sizes[v] of the items whose grade is v."""
    gold = np.zeros(len(of), dtype=bool)
    for value, size in enumerate(sizes):
        gold[rng.choice(np.flatnonzero(of == value), size, replace=False)] = True
    return gold


def one_mean(y: Floats, f: Floats, gold: NDArray[np.bool_], pi: Floats, *, by_label: bool = False) -> Floats:
    """Value, low and high (3,) of `correct` for a single run."""
    items = np.arange(len(y))
    strata = f.astype(np.int64) if by_label else None
    run = RunGrades(f, np.where(gold, y, np.nan), pi, items, items, strata)
    (mean,) = correct([run], target="pool", bounds=(0, 1 if y.max() == 1 else GRADES[-1]))
    return np.array([mean.value, mean.low, mean.high], dtype=np.float64)


def by_label(f: Floats, gold: NDArray[np.bool_]) -> Floats:
    """Share of the items (N,) with the judge's grade that are in the gold."""
    shares = np.bincount(f.astype(int), weights=gold) / np.bincount(f.astype(int))
    return np.asarray(shares[f.astype(int)])


def refuses(y: Floats, f: Floats, gold: NDArray[np.bool_]) -> bool:
    """Whether gold without inclusion probabilities is refused."""
    try:
        one_mean(y, f, gold, np.full(len(y), np.nan))
    except ValueError:
        return True
    return False


def f1(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    hits: dict[str, list[bool]] = {"raw": [], "gold only": [], "corrected": [], "post-stratified": []}
    widths: dict[str, list[float]] = {how: [] for how in hits}
    for _ in range(replicates):
        y, f = binary(rng)
        gold, everywhere = drawn(rng, y.shape, n), np.full(len(y), n / len(y))
        half = t_quantile(0.95, len(f) - 1) * f.std(ddof=1) / math.sqrt(len(f))
        for how, of in {
            "raw": f.mean() + half * np.array([0, -1, 1]),
            "gold only": one_mean(y, np.zeros_like(f), gold, everywhere),
            "corrected": one_mean(y, f, gold, everywhere),
            "post-stratified": one_mean(y, f, gold, by_label(f, gold), by_label=True),
        }.items():
            hits[how].append(bool(covers(of, y.mean())))
            widths[how].append(of[2] - of[1])
    bands = {"corrected": (0.93, 0.97), "post-stratified": (0.93, 0.97)}
    return [
        *(finding("F1", f"random gold, {how}: coverage", hits[how], *bands.get(how, (None, None))) for how in hits),
        *(finding("F1", f"random gold, {how}: width", widths[how]) for how in hits),
    ]


def f2(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    """Four fifths of the gold are from where the judge said 0.

    With a binary judge a tuned weight makes the correction a regression on all that the sample depends on, so it loses
    little without inclusion weights. With a weight of 1 it loses everything.
    """
    weighted, unweighted, difference, refused = [], [], [], []
    for _ in range(replicates):
        y, f = binary(rng)
        gold = stratified(rng, f, (4 * n // 5, n // 5))
        e = (y - f)[gold]
        half = t_quantile(0.95, n - 1) * e.std(ddof=1) / math.sqrt(n)
        difference.append(abs(f.mean() + e.mean() - y.mean()) <= half)
        weighted.append(covers(one_mean(y, f, gold, by_label(f, gold), by_label=True), y.mean()))
        unweighted.append(covers(one_mean(y, f, gold, np.full(len(y), n / len(y))), y.mean()))
        refused.append(refuses(y, f, gold))
    return [
        finding("F2", "oversampled where the judge says 0, weighted: coverage", weighted, low=0.92),
        finding("F2", "the same unweighted: coverage", unweighted),
        finding("F2", "the same unweighted, weight of the judge 1: coverage", difference),
        finding("F2", "the same without inclusion probabilities: refused", refused, low=1.0),
    ]


def f3(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    """Gold at hand, four fifths of it good responses; no weights by the judge's grade can correct that."""
    naive, stratified_after, refused = [], [], []
    for _ in range(replicates):
        y, f = binary(rng)
        gold = stratified(rng, y, (n // 5, 4 * n // 5))
        naive.append(covers(one_mean(y, f, gold, np.full(len(y), n / len(y))), y.mean()))
        stratified_after.append(covers(one_mean(y, f, gold, by_label(f, gold), by_label=True), y.mean()))
        refused.append(refuses(y, f, gold))
    return [
        finding("F3", "gold at hand, taken for random: coverage", naive),
        finding("F3", "gold at hand, post-stratified: coverage", stratified_after),
        finding("F3", "gold at hand, without inclusion probabilities: refused", refused, low=1.0),
    ]


# --- The judges of LLMJudge --------------------------------------------------------------------------------------


def llmjudge(folder: Path = LLMJUDGE) -> tuple[Floats, dict[str, Floats]]:
    """NIST's grades (N,) and those of every judge (N,) that keeps to the scale."""
    gold = _grades(folder / "llmjudge_test.qrel")
    judges = {path.stem: _grades(path) for path in sorted((folder / "judges").glob("*.txt"))}
    return np.array(list(gold.values()), dtype=np.float64), {
        name: np.array([grades[item] for item in gold], dtype=np.float64)
        for name, grades in judges.items()
        if set(grades.values()) <= set(GRADES)
    }


def _grades(path: Path) -> dict[tuple[str, str], int]:
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {(topic, passage): int(grade) for topic, _, passage, grade in rows}


def real(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = (100, 200)) -> list[Finding]:
    human, judges = llmjudge()
    truth = human.mean()
    held = [bool(covers(raw_intervals(f[None], np.arange(len(f)))[:, 0], truth)) for f in judges.values()]
    findings = [finding("L", f"raw, {len(judges)} judges of LLMJudge: coverage", held)]
    for n in sizes:
        hits, ratios = np.zeros((replicates, len(judges))), []
        for b in range(replicates):
            gold, everywhere = drawn(rng, human.shape, n), np.full(len(human), n / len(human))
            alone = np.ptp(one_mean(human, np.zeros_like(human), gold, everywhere)[1:])
            of = np.array([one_mean(human, f, gold, everywhere) for f in judges.values()]).T
            hits[b] = covers(of, truth)
            ratios.append(((of[2] - of[1]) / alone).mean())
        findings += [
            finding("L", f"corrected, n={n}: mean coverage", hits.mean(axis=1), 0.93, 0.97),
            finding("L", f"corrected, n={n}: least coverage", hits[:, hits.mean(axis=0).argmin()]),
            finding("L", f"corrected, n={n}: width over gold only's", ratios),
        ]
    return findings


Simulation = Callable[[int, np.random.Generator], list[Finding]]

SIMULATIONS: dict[str, tuple[Simulation, int]] = {
    "A1": (a1, 50),
    "A2": (a2, 300),
    "A3": (a3, 300),
    "A4": (a4, 300),
    "A5": (a5, 200),
    "A6": (a6, 400),
    "A7": (a7, 1000),
    "A8": (a8, 500),
    "A9": (a9, 2000),
    "B1": (b1, 1000),
    "B2": (b2, 1000),
    "B3": (b3, 600),
    "C1": (c1, 600),
    "C2": (c2, 2000),
    "D": (kappa_coverage, 1500),
    "F1": (f1, 3000),
    "F2": (f2, 3000),
    "F3": (f3, 1000),
    "L": (real, 300),
}
"""The simulations by id, with the number of replicates that the bands are meant for."""


def simulate(id: str, replicates: int | None = None, seed: int = 0) -> list[Finding]:
    """Run a simulation; its random numbers do not depend on which others run."""
    run, by_default = SIMULATIONS[id]
    return run(replicates or by_default, np.random.default_rng([seed, zlib.crc32(id.encode())]))


def shown(figure: Finding) -> str:
    if figure.low is None and figure.high is None:
        band, ok = "-", "-"
    else:
        ends = ["" if end is None else f"{end:.3g}" for end in (figure.low, figure.high)]
        band, ok = f"[{ends[0]}, {ends[1]}]", "ok" if figure.within() else "BROKEN"
    return f"{figure.id:3} {figure.setting:66} {figure.obtained:7.3f} ±{figure.error:.3f}  {band:16} {ok}"


def results(ids: Sequence[str], replicates: int | None, seed: int) -> Iterator[list[Finding]]:
    with ProcessPoolExecutor(2) as processes:
        yield from processes.map(partial(simulate, replicates=replicates, seed=seed), ids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="ids, separated by commas")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    ids = args.only.split(",") if args.only else list(SIMULATIONS)
    unknown = [id for id in ids if id not in SIMULATIONS]
    if unknown:
        parser.error(f"no simulation {', '.join(unknown)}; there are {', '.join(SIMULATIONS)}")
    if args.replicates is not None and args.replicates < 2:
        parser.error("--replicates must be at least 2")
    if "L" in ids and not LLMJUDGE.is_dir():
        print("L   skipped: the LLMJudge data are not beside the repository (shared/data/llmjudge)")
        ids.remove("L")
    broken = 0
    for findings in results(ids, args.replicates, args.seed):
        for figure in findings:
            print(shown(figure), flush=True)
            broken += not figure.within()
    if broken:
        print(f"{broken} out of band")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
