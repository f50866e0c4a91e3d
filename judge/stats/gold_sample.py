"""The gold grades of one run as a sample of its responses: weights, influence values and variances.

Variances of many runs are moderated toward a common one, for runs with few observations each. With s_g² of d_g degrees
of freedom, s_g² ~ s0² F(d_g, d0) describes variances that differ from run to run, and (d0 s0² + d_g s_g²) / (d0 + d_g)
is the moderated variance, with d0 + d_g degrees of freedom.
G. K. Smyth (2004), Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments, Statistical Applications in Genetics and Molecular Biology 3(1), article 3.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.stats.means import FEWEST_TOPICS, effective_topics
from judge.stats.tables import Floats

Target = Literal["pool", "topics"]
"""What the mean is about: these responses, or what the run would do on topics like these."""


@dataclass(frozen=True, eq=False)
class RunGrades:
    """The responses of one run that the judge graded."""

    judged: Floats
    """f (N,)."""
    gold: Floats
    """y (N,), nan where there is no gold."""
    inclusion: Floats
    """π (N,), the probability with which a response was chosen for gold; only read where there is gold."""
    topics: NDArray[np.int64]
    """Topic codes (N,), the same in all runs."""
    turns: NDArray[np.int64]
    """Codes (N,) of what was drawn for gold, turns or single responses, the same in all runs; no run has one twice."""
    strata: NDArray[np.int64] | None = None
    """Codes (N,) of the groups that gold was drawn from separately; None if there is one group."""
    family: str | None = None
    shares: Floats | None = None
    """How much of the mean (N,) each is, 1 in all; None if all count alike."""
    labeled: NDArray[np.bool_] | None = None
    """Which (N,) have gold that a person gave; None if all gold is. Other gold is known without anybody's label."""

    def mean(self, values: Floats) -> float:
        """The mean of what each response has (N,)."""
        return float(values.mean() if self.shares is None else self.shares @ values)


@dataclass(frozen=True, eq=False)
class GoldSample:
    """The gold of one run with its weights."""

    run: RunGrades
    chosen: NDArray[np.intp]
    """Places of the gold grades among the responses (n,)."""
    f: Floats
    """The judge's grades of these responses (n,)."""
    y: Floats
    """Their gold grades (n,)."""
    pi: Floats
    """Their inclusion probabilities (n,)."""
    w: Floats
    """1/π (n,), times a share where there are `shares`, normalized to the sum 1."""
    T: int
    """Topics of all responses."""

    @property
    def n(self) -> int:
        """Gold grades."""
        return len(self.y)

    @property
    def labels(self) -> int:
        """Gold grades that people gave."""
        return self.n if self.run.labeled is None else int(self.run.labeled.sum())

    @property
    def drawn(self) -> NDArray[np.bool_]:
        """Which gold grades were drawn, that is not chosen for certain (n,)."""
        return self.pi < 1

    @property
    def m(self) -> int:
        """Gold grades that were drawn."""
        return int(self.drawn.sum())

    @property
    def T_gold(self) -> int:
        """Topics with gold."""
        return len(np.unique(self.run.topics[self.chosen]))

    @property
    def effective_topics(self) -> float:
        """How many topics of equal size the responses are of (`means.effective_topics`)."""
        sizes = np.bincount(self.run.topics, weights=self.run.shares)
        return effective_topics(sizes) if sizes.any() else 0.0

    def counted_topics(self, target: Target) -> float:
        """How many topics of equal size the mean rests on; for `topics` no more than have gold."""
        return self.effective_topics if target == "pool" else min(self.effective_topics, self.T_gold)

    @property
    def census(self) -> bool:
        """Whether every response has gold for certain."""
        return 0 < self.n == len(self.run.judged) and bool((self.pi == 1).all())

    def value(self, weight: float) -> float:
        """θ at a weight λ of the judge."""
        return weight * self.run.mean(self.run.judged) + float(self.w @ (self.y - weight * self.f))

    def lacks_topics(self, target: Target) -> bool:
        """Whether there are too few topics for an interval of the target."""
        return target == "topics" and self.T < FEWEST_TOPICS

    def sampled(self, target: Target) -> NDArray[np.bool_]:
        """The gold grades that are a sample (n,): for `topics` all of them, because topics are drawn."""
        return self.drawn if target == "pool" else np.ones(self.n, dtype=bool)


def gold_sample(run: RunGrades) -> GoldSample:
    """The gold of a run with its weights. A ValueError if an inclusion probability is not in (0, 1]."""
    chosen = np.flatnonzero(~np.isnan(run.gold))
    pi = run.inclusion[chosen]
    if not ((pi > 0) & (pi <= 1)).all():
        raise ValueError("an inclusion probability is not above 0 and at most 1")
    w = 1 / pi if run.shares is None else run.shares[chosen] / pi
    w = w / w.sum()
    return GoldSample(
        run=run, chosen=chosen, f=run.judged[chosen], y=run.gold[chosen], pi=pi, w=w, T=len(np.unique(run.topics))
    )


def unit_codes(run: RunGrades, target: Target) -> NDArray[np.int64]:
    """The codes (N,) of the units that are sampled: turns for `pool`, topics for `topics`."""
    return run.turns if target == "pool" else run.topics


def influence(
    sample: GoldSample, weight: float, target: Target, units: int, *, tuned: bool = True
) -> tuple[Floats, float]:
    """The part of each turn or topic in the error of θ (U,), and the degrees of freedom of its variance V.

    The squares of the parts add up to V. A λ that is the run's alone (`tuned`) costs a degree of freedom of `pool`.
    """
    run = sample.run
    m = sample.m
    w = sample.w
    e = sample.y - weight * sample.f
    u = w * (e - w @ e)
    parts = np.zeros(len(run.judged))
    df: float
    if target == "pool":
        strata, H = _strata(sample)
        df = m - H - tuned
        drawn = sample.drawn
        parts[sample.chosen[drawn]] = math.sqrt(m / df) * _deviations(u[drawn], 1 - sample.pi[drawn], strata)
    else:
        G = sample.T_gold
        df = sample.counted_topics(target) - 1
        shares = 1 / len(run.judged) if run.shares is None else run.shares
        parts += weight * (run.judged - run.mean(run.judged)) * shares
        parts[sample.chosen] += u
        parts *= math.sqrt(G / (G - 1))
    by_unit = np.zeros(units)
    np.add.at(by_unit, unit_codes(run, target), parts)
    return by_unit, df


def _deviations(u: Floats, q: Floats, strata: NDArray[np.intp]) -> Floats:
    """√q (u - ū), with ū the mean of u by q in each stratum."""
    means = np.bincount(strata, weights=q * u) / np.bincount(strata, weights=q)
    result: Floats = np.sqrt(q) * (u - means[strata])
    return result


def _strata(sample: GoldSample) -> tuple[NDArray[np.intp], int]:
    """Stratum codes (m,) of the drawn gold and the number of strata; a single stratum where some have one grade."""
    single = np.zeros(sample.m, dtype=np.intp), 1
    if sample.run.strata is None:
        return single
    drawn_from = sample.run.strata[sample.chosen[sample.drawn]]
    _, codes, counts = np.unique(drawn_from, return_inverse=True, return_counts=True)
    # Every stratum's center costs a degree of freedom; without any left there is no variance.
    return (codes, len(counts)) if counts.min() > 1 and sample.m > len(counts) + 1 else single


SKEWED = 0.25
"""Gold is skewed where at most this share of it differs from the most common grade."""


def shared_variance(samples: Sequence[GoldSample], weight: float, target: Target, units: int) -> tuple[float, float]:
    """The variance of one gold grade's part in θ over all runs, with its degrees of freedom.

    A run's V is the sum of that variance times q w² (`topics`: w²) over its gold; the equation is solved for the
    variance. There are Σ(m_r - 1) degrees, for `topics` at most one less than the topics of all runs count
    (`counted_topics`), and 0 if too little gold was drawn. Where at most SKEWED of the gold differs from the most
    common grade, the variance rests on these rare grades, and there is at most one degree more than rare grades. In
    simulations with 85 to 95 % equal grades, 3 or 5 a run, intervals cover .945 to .98 by that, and .905 to .94
    without it.
    """
    total = 0.0
    degrees = 0
    seen = set[int]()
    of_grade = Counter[float]()
    sizes = Counter[int]()
    for sample in samples:
        if sample.m < 2 or sample.lacks_topics(target):
            continue
        if target == "pool":
            drawn = sample.drawn
            w = sample.w[drawn]
            q = 1 - sample.pi[drawn]
            e = sample.y - weight * sample.f
            u = w * (e[drawn] - sample.w @ e)
            squares = _deviations(u, q, np.zeros(sample.m, dtype=np.intp))
            total += sample.m * float(squares @ squares) / float(q @ w**2)
        elif sample.T_gold > 1:
            parts, _ = influence(sample, weight, target, units)
            total += (sample.m - 1) * float(parts @ parts) / float(sample.w @ sample.w)
            seen.update(sample.run.topics[sample.chosen].tolist())
            sizes.update(sample.run.topics.tolist())
        else:
            continue
        degrees += sample.m - 1
        of_grade.update(sample.y[sample.sampled(target)].tolist())
    if not degrees:
        return 0.0, 0
    rare = of_grade.total() - max(of_grade.values())
    df = min(degrees, 1 + rare) if rare <= SKEWED * of_grade.total() else degrees
    if target == "topics":
        return total / degrees, min(df, len(seen) - 1, effective_topics([*sizes.values()]) - 1)
    return total / degrees, df


FEWEST_VARIANCES = 3
"""Fewest variances that show how much they differ."""


class Prior(NamedTuple):
    """What the variances have in common."""

    df: float
    """d0: 0 if nothing is shared, infinite if the variances differ no more than by chance."""
    variance: float
    """s0²."""

    def moderate(self, variances: Floats, df: Floats) -> Floats:
        """The moderated variances (G,).

        >>> Prior(4.0, 1.0).moderate(np.array([2.5]), np.array([8.0])).tolist(), (4 * 1.0 + 8 * 2.5) / (4 + 8)
        ([2.0], 2.0)
        """
        if math.isinf(self.df):
            return np.full(len(variances), self.variance)
        moderated: Floats = (self.df * self.variance + df * variances) / (self.df + df)
        return moderated


def fit_prior(variances: Floats, df: Floats) -> Prior:
    """d0 and s0² from the mean and the spread of log s² (G,), with d (G,), all above 0 (Smyth 2004, section 6.2).

    Where log s² spreads no more than by chance, d0 is infinite and s0² the mean of s² by degrees of freedom. Fewer than
    FEWEST_VARIANCES share nothing.
    """
    from scipy.special import digamma, polygamma

    if len(variances) < FEWEST_VARIANCES:
        return Prior(0.0, 0.0)
    e = np.log(variances) - digamma(df / 2) + np.log(df / 2)
    excess = float(e.var(ddof=1) - polygamma(1, df / 2).mean())
    if excess <= 0:
        return Prior(math.inf, float(df @ variances / df.sum()))
    d0 = 2 * inverse_trigamma(excess)
    return Prior(d0, math.exp(float(e.mean() + digamma(d0 / 2)) - math.log(d0 / 2)))


def inverse_trigamma(y: float) -> float:
    """The x > 0 with ψ'(x) = y, by the Newton iteration of Smyth (2004), appendix.

    >>> f"{inverse_trigamma(math.pi**2 / 6):.9f}"
    '1.000000000'
    """
    from scipy.special import polygamma

    # Beyond these y the iteration would lose its digits, and ψ'(x) is 1/√x or 1/x.
    if y > 1e7:
        return 1 / math.sqrt(y)
    if y < 1e-6:
        return 1 / y
    x = 0.5 + 1 / y
    step = -math.inf
    while -step / x > 1e-8:
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / y) / float(polygamma(2, x))
        x += step
    return x
