"""Few topics, topics of unequal size, and grades of which one is common: intervals, comparisons and choices."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from bench.simulations.figures import CUTS, GRADES, TOP, Codes, Finding, finding, holds
from bench.simulations.judges import NOISE, Judged, judged, true_wkappa, wkappas
from judge.calibrate.recheck import mean_change
from judge.records import Estimate
from judge.stats.agreement import point
from judge.stats.comparison import after_choice, compare
from judge.stats.discrimination import Forecasts, calibration_error, calibration_error_by_chance
from judge.stats.means import mean_interval
from judge.stats.resampling import jackknife_interval, resampled
from judge.stats.tables import Undefined, topic_tables

MANY = 40_000
"""Topics behind a true value."""


@dataclass(frozen=True)
class Setting:
    """How grades and topics are made."""

    what: str
    cuts: tuple[float, float, float] = CUTS
    unequal: bool = False
    turns: int = 8

    def sizes(self, rng: np.random.Generator, T: int) -> Codes:
        """Items of each topic; the unequal ones are log-normal, and few topics have most of them."""
        if not self.unequal:
            return np.full(T, self.turns)
        return np.maximum(1, np.round(self.turns * rng.lognormal(-0.32, 0.8, T))).astype(np.int64)

    def items(self, rng: np.random.Generator, T: int) -> Judged:
        """Human grades and those of a judge that is moody by topic."""
        topics = np.repeat(np.arange(T), self.sizes(rng, T))
        z = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 0.9, len(topics))
        noise = NOISE * np.exp(rng.normal(0, 0.3, T))[topics] * rng.normal(size=len(topics))
        seen = z + rng.normal(0, 0.3, T)[topics] + noise
        return Judged(np.digitize(z, self.cuts), np.digitize(seen, self.cuts)[None], topics, seen[None])


SETTINGS = (
    Setting("even"),
    Setting("unequal sizes", unequal=True),
    Setting("85 % one grade", cuts=TOP),
    Setting("85 % one grade, unequal sizes", cuts=TOP, unequal=True),
    Setting("85 % one grade, 3 a topic", cuts=TOP, turns=3),
)
TOPICS = (5, 8, 12, 25)


def _figures(id: str, what: str, T: int, estimates: Sequence[Estimate], truth: float) -> list[Finding]:
    """Coverage where an interval is printed, and how often one is.

    The t quantiles of few degrees of freedom make intervals too wide, so there is no upper bound below 25 topics.
    """
    printed = [estimate for estimate in estimates if estimate.low is not None]
    held = [holds(estimate, truth) for estimate in printed]
    figures = [finding(id, f"{what}, T={T}: interval printed", [estimate.low is not None for estimate in estimates])]
    if len(held) < len(estimates) / 10:
        return figures
    return [finding(id, f"{what}, T={T}: coverage", held, 0.92, 0.98 if T >= 25 else None), *figures]


def means(
    replicates: int,
    rng: np.random.Generator,
    settings: Sequence[Setting] = SETTINGS,
    topics: Sequence[int] = (3, *TOPICS),
) -> list[Finding]:
    figures = []
    for setting in settings:
        truth = float(setting.items(np.random.default_rng(1), MANY).human.mean())
        for T in topics:
            estimates = []
            for _ in range(replicates):
                here = setting.items(rng, T)
                values = here.human.astype(float).tolist()
                estimates.append(mean_interval(values, list(map(str, here.topics)), bounds=(0, 3)))
            figures += _figures("S1", f"mean, {setting.what}", T, estimates, truth)
    return figures


def coefficients(
    replicates: int,
    rng: np.random.Generator,
    settings: Sequence[Setting] = SETTINGS,
    topics: Sequence[int] = TOPICS,
    names: Sequence[str] = ("wkappa", "alpha_ordinal", "ac2"),
) -> list[Finding]:
    figures = []
    for setting, name in itertools.product(settings, names):
        of_many = setting.items(np.random.default_rng(1), MANY).tables()[0].sum(axis=0)
        truth = point(name, of_many, GRADES)
        if isinstance(truth, Undefined):
            raise ValueError(truth.reason)
        for T in topics:
            tables = (setting.items(rng, T).tables()[0] for _ in range(replicates))
            estimates = [resampled(name, C, GRADES, rng, replicates=400).estimate for C in tables]
            figures += _figures("S2", f"{name}, {setting.what}", T, estimates, truth)
    return figures


def families(
    replicates: int,
    rng: np.random.Generator,
    sizes: Sequence[int] = (5, 10),
    topics: Sequence[int] = (7, 8, 12, 25),
    kinds: Sequence[str] = ("alike", "of unequal noise"),
) -> list[Finding]:
    """Judges that are equally good: is any pair told apart, is anybody eliminated?

    Those of unequal noise have the same weighted kappa over very many topics, half of them by erring evenly, half by
    erring much on a few topics.
    """
    figures = []
    for what, m, T in itertools.product(kinds, sizes, topics):
        apart, lost = [], []
        for _ in range(replicates):
            if what == "alike":
                tables = judged(rng, [NOISE] * m, T=T).tables()
            else:
                half = m // 2
                noise = [NOISE] * half + [UNEVEN_NOISE] * (m - half)
                tables = judged(rng, noise, T=T, heterogeneity=np.repeat([0.1, 1.0], [half, m - half])).tables()
            pairs = {(str(i), str(j)): (tables[i], tables[j]) for i, j in itertools.combinations(range(m), 2)}
            found = compare(pairs, "wkappa", GRADES, rng, permutations=499)
            apart.append(any(pair.p_max_t is not None and pair.p_max_t <= 0.05 for pair in found.pairs))
            lost.append(len(found.best) < m)
        high = 0.07 if what == "alike" else None
        figures += [
            finding("S3", f"{m} judges {what}, T={T}: any pair told apart", apart, high=high),
            finding("S3", f"{m} judges {what}, T={T}: anybody eliminated", lost, high=high),
        ]
    return figures


def one_sided(
    replicates: int,
    rng: np.random.Generator,
    designs: Sequence[tuple[int, int]] = ((3, 5), (8, 1), (8, 5), (25, 1), (25, 4), (25, 12)),
) -> list[Finding]:
    """Grades of which some rise by 1 and none falls, by .1 on average: is a change within .1 concluded at 5 %?"""
    figures = []
    for T, turns in designs:
        topics, steady = np.repeat(np.arange(T), turns), []
        for _ in range(replicates):
            rose = (rng.random((T, turns)) < rng.beta(0.4, 3.6, (T, 1))).astype(np.int64)
            change = mean_change(rose.ravel().tolist(), list(map(str, topics)), 1.0, level=0.9)
            steady.append(change.high is not None and change.high < 0.1)
        figures.append(finding("S5", f"one-sided change at the margin, {T} x {turns}: STEADY", steady, high=0.07))
    return figures


def calibration_errors(
    replicates: int, rng: np.random.Generator, gaps: Sequence[float] = (0.0, 0.05, 0.08, 0.13, 0.17)
) -> list[Finding]:
    """A judge of two grades that is right less often than it says, on unlike topics of 8 responses."""
    figures = []
    for T, gap in itertools.product((10, 25), gaps):
        truth, held = calibration_error(_said(rng, gap, MANY // 8)[0]), []
        for _ in range(replicates):
            items, topics = _said(rng, gap, T)
            estimate = jackknife_interval(
                lambda kept, of=items: calibration_error(of.within(kept)), topics, bounds=(0, 1)
            )
            low = max((estimate.low or 0.0) - calibration_error_by_chance(items), 0.0)
            held.append(holds(replace(estimate, low=low), truth))
        figures.append(finding("S6", f"ECE {truth:.3f}, T={T}: coverage", held, 0.93))
    return figures


def _said(rng: np.random.Generator, gap: float, T: int) -> tuple[Forecasts, Codes]:
    topics = np.repeat(np.arange(T), 8)
    confidence = 0.5 + 0.5 / (1 + np.exp(-rng.normal(0.3, 1.2, 8 * T)))
    odds = (confidence - gap) / (1 - confidence + gap) * np.exp(rng.normal(0, 0.3, T)[topics])
    wrong = (rng.random(8 * T) >= odds / (1 + odds)).astype(np.int64)
    return Forecasts(np.stack([confidence, 1 - confidence], axis=1), np.zeros(8 * T, dtype=np.int64), wrong), topics


def rare_errors(
    replicates: int,
    rng: np.random.Generator,
    designs: Sequence[tuple[int, int]] = ((20, 5), (30, 10)),
    shares: Sequence[float] = (0.02, 0.05, 0.1, 0.15),
) -> list[Finding]:
    """Judges that err seldom, then to the far end: does the lower end where no error shows lie above the truth?

    Errors are of single items, vary between topics (a third of their variance is between topics), or take whole topics.
    """
    figures = []
    for (T, turns), kind, share in itertools.product(designs, ("items", "varying", "topics"), shares):
        topics, beyond = np.repeat(np.arange(T), turns), []
        # Of grades 0 to 3, each as frequent, an error is 3, 2, 2 or 3 off.
        expected = np.diag([1 - share] * 4)
        expected[[0, 1, 2, 3], [3, 3, 0, 0]] += share
        truth = point("wkappa", expected * 1_000_000, GRADES)
        for _ in range(replicates):
            human = rng.integers(0, 4, T * turns)
            of_topic = {
                "items": np.full(T, share),
                "varying": rng.beta(2 * share, 2 * (1 - share), T),
                "topics": (rng.random(T) < share).astype(np.float64),
            }[kind]
            wrong = rng.random(T * turns) < of_topic[topics]
            if wrong.any():
                beyond.append(False)
                continue
            tables = topic_tables(human, human, topics, 4, T)
            low = resampled("wkappa", tables, GRADES, rng, replicates=400).estimate.low
            beyond.append(low is not None and not isinstance(truth, Undefined) and low > truth)
        high = None if kind == "topics" else 0.02
        what = f"errors of {kind}, {share:.0%}, {T} x {turns}: no error, and the truth below the interval"
        figures.append(finding("S7", what, beyond, high=high))
    return figures


UNEVEN_NOISE = 0.468
"""The noise at which a judge whose noise differs much by topic has the weighted kappa of an even one with NOISE."""


def choices(
    replicates: int, rng: np.random.Generator, settings: Sequence[tuple[int, int]] = ((10, 25), (30, 25), (10, 10))
) -> list[Finding]:
    """The best of K equal prompts, each exactly at the threshold that it is asked to pass."""
    truth = true_wkappa()
    figures = []
    for K, T in settings:
        estimates, trusted = [], []
        for _ in range(replicates):
            tables = judged(rng, [NOISE] * K, T=T, turns=8).tables()
            chosen = int(wkappas(tables).argmax())
            estimate = after_choice(tables, chosen, "wkappa", GRADES, rng, replicates=400)
            if estimate.low is not None:
                estimates.append(estimate)
                trusted.append(estimate.low >= truth)
        what = f"best of {K}, T={T} n={8 * T}"
        figures += [
            finding("S4", f"{what}: coverage", [holds(estimate, truth) for estimate in estimates], 0.94, 0.995),
            finding("S4", f"{what}: TRUSTED at the threshold", trusted, high=0.055),
        ]
    return figures
