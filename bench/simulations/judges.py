"""Judges of the same items: intervals of kappa, comparisons and choices."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from bench.simulations.figures import CUTS, GRADES, Codes, Finding, Floats, finding, holds
from judge.stats.agreement import STATISTICS
from judge.stats.comparison import JudgeDifference, after_choice, compare, nested_folds
from judge.stats.means import t_quantile
from judge.stats.noninferiority import carry_word, independent_difference, spread_of, topics_to_carry
from judge.stats.resampling import Resampled, resampled, spread, topic_draws
from judge.stats.tables import Undefined, topic_tables


@dataclass(frozen=True)
class Judged:
    human: Codes
    """(N,)."""
    judges: Codes
    """(m x N)."""
    topics: Codes
    """(N,)."""
    seen: Floats
    """(m x N), what each judge takes its grades from, on the line that CUTS part."""

    def tables(self) -> NDArray[np.int64]:
        """C by judge and topic (m x T x k x k)."""
        T = int(self.topics.max()) + 1
        return np.array([topic_tables(self.human, judge, self.topics, len(GRADES), T) for judge in self.judges])

    def item_tables(self) -> NDArray[np.int64]:
        """The same with every item as its own topic."""
        return replace(self, topics=np.arange(len(self.topics))).tables()


def judged(
    rng: np.random.Generator,
    noise: Sequence[float] | Floats,
    *,
    T: int = 25,
    turns: int = 7,
    heterogeneity: float | Floats = 0.5,
    shared: float = 0.5,
) -> Judged:
    """Judges with the given noise; its size differs by topic and judge, and the judges share a part of it.

    Heterogeneity is that of all judges, or of each (m,).
    """
    sd, topics = np.asarray(noise, dtype=np.float64), np.repeat(np.arange(T), turns)
    N = len(topics)
    z = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 0.8, N)
    scale = (sd[:, None] * np.exp(np.reshape(heterogeneity, (-1, 1)) * rng.normal(size=(len(sd), T))))[:, topics]
    own = rng.normal(size=(len(sd), N))
    seen = z + scale * (math.sqrt(shared) * rng.normal(size=N) + math.sqrt(1 - shared) * own)
    return Judged(np.digitize(z, CUTS), np.digitize(seen, CUTS), topics, seen)


NOISE = 0.7


def wkappas(tables: NDArray[np.int64]) -> Floats:
    """Weighted kappa of every judge (m,)."""
    return STATISTICS["wkappa"](tables.sum(axis=1), GRADES)


@cache
def true_wkappa(heterogeneity: float = 0.5, T: int = 20_000) -> float:
    """Weighted kappa of a judge over very many topics."""
    rng = np.random.default_rng(1)
    return float(wkappas(judged(rng, [NOISE], T=T, heterogeneity=heterogeneity).tables())[0])


def versus(tables: NDArray[np.int64], rng: np.random.Generator, permutations: int = 999) -> tuple[JudgeDifference, ...]:
    """The first judge with each other one."""
    pairs = {("0", str(j)): (tables[0], tables[j]) for j in range(1, len(tables))}
    return compare(pairs, "wkappa", GRADES, rng, permutations=permutations).pairs


def rejects(p: float | None) -> bool:
    return p is not None and p <= 0.05


def excludes_zero(pair: JudgeDifference) -> bool:
    return pair.difference.low is not None and not holds(pair.difference, 0.0)


def unpaired(tables: NDArray[np.int64], rng: np.random.Generator) -> bool:
    """Whether a z test rejects that treats the two judges, with topic-bootstrap errors, as if on different items."""
    T = tables.shape[1]
    errors = []
    for of in tables:
        C = (topic_draws(T, 1000, rng) @ of.reshape(T, -1)).reshape(-1, 1, *of.shape[1:])
        errors.append(spread(wkappas(C), T))
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
        optimism, naive, split_bias, split, nested, allowing = ([] for _ in range(6))
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
            after = after_choice(tables, int(values.argmax()), "wkappa", GRADES, rng, replicates=500)
            allowing.append(holds(after, truth))
        what = f"{K} prompts n={25 * turns}"
        findings += [
            finding("C2", f"best on all gold, {what}: optimism", optimism),
            finding("C2", f"best on all gold, {what}: coverage", naive, high=0.90),
            finding("C2", f"held-out topics, {what}: coverage", split, 0.90, 0.97),
            finding("C2", f"held-out topics, {what}: bias", split_bias),
            finding("C2", f"nested folds, {what}: bias", nested),
            finding("C2", f"best on all gold, allowing for the choice, {what}: coverage", allowing, 0.93, 0.995),
        ]
    return findings


def yb(
    replicates: int,
    rng: np.random.Generator,
    settings: Sequence[tuple[int, int, int]] = ((20, 20, 5), (25, 25, 7), (50, 50, 5), (100, 40, 4)),
) -> list[Finding]:
    """A certificate's second year where agreement is worse by exactly the margin of .1: old and new topics, labels."""
    worse = noise_of(true_wkappa_of(SHARP) - 0.1)
    findings = []
    for old_topics, new_topics, labels in settings:
        carries: list[bool] = []
        for _ in range(replicates):
            old = _resampled_judge(rng, SHARP, old_topics, labels).estimate
            new = _resampled_judge(rng, worse, new_topics, labels).estimate
            carries.append(carry_word(independent_difference(new, old), 0.1) == "CARRIES")
        what = f"worse by the margin, T={old_topics} and {new_topics}, {labels} a topic: CARRIES"
        findings.append(finding("YB", what, carries, high=0.05))
    return findings


def yp(replicates: int, rng: np.random.Generator, topics: Sequence[int] = (150, 250)) -> list[Finding]:
    """The same where nothing changed, on as many topics as `judge plan --certificate` says."""
    findings = []
    for old_topics in topics:
        carries: list[bool] = []
        for _ in range(replicates):
            certified = _resampled_judge(rng, SHARP, old_topics, 5)
            old = certified.estimate
            spread_of_old = spread_of(old, certified.design_effect)
            assert not isinstance(spread_of_old, Undefined)
            planned = topics_to_carry(old, spread_of_old, 0.1, 5, at_least=20)
            if isinstance(planned, Undefined):
                continue
            new = _resampled_judge(rng, SHARP, planned, 5).estimate
            carries.append(carry_word(independent_difference(new, old), 0.1) == "CARRIES")
        findings.append(finding("YP", f"no change, T={old_topics} and as planned: CARRIES", carries, 0.74, 0.86))
    return findings


SHARP = 0.5
"""Noise of a judge whose weighted kappa is .76."""


def true_wkappa_of(noise: float, T: int = 6000) -> float:
    """Weighted kappa of a judge with this noise over very many topics."""
    return float(wkappas(judged(np.random.default_rng(1), [noise], T=T, turns=5).tables())[0])


@cache
def noise_of(wkappa: float) -> float:
    """The noise of a judge with this weighted kappa."""
    return float(brentq(lambda noise: true_wkappa_of(noise) - wkappa, SHARP, 1.5, xtol=1e-3))


def _resampled_judge(rng: np.random.Generator, noise: float, topics: int, labels: int) -> Resampled:
    tables = judged(rng, [noise], T=topics, turns=labels).tables()[0]
    return resampled("wkappa", tables, GRADES, rng, replicates=400)


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
