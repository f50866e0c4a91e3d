"""Means over a run's responses, as a judge gives them and as gold grades of some of them correct them.

With judge grades f of all N responses of a run, gold grades y of a sample S of them and normalized weights
w_i ∝ 1/π_i (Hájek's) the corrected mean is θ = λ f̄ + Σ_S w_i (y_i - λ f_i): prediction-powered inference with a tuned
weight λ, in the terms of survey sampling a difference estimator.
A. N. Angelopoulos, J. C. Duchi & T. Zrnic (2023), PPI++: Efficient prediction-powered inference, arXiv:2311.01453;
C.-E. Särndal, B. Swensson & J. Wretman (1992), Model assisted survey sampling, Springer, sections 5.7 and 6.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.stats.means import FEWEST_TOPICS, clopper_pearson, t_quantile
from judge.stats.tables import Floats

Target = Literal["pool", "topics"]
"""What the mean is of: these responses, or what the run would do on topics like these."""
Method = Literal["ppi++", "ppi++ pooled", "gold only", "family", "census", "raw"]
FEWEST = 3
"""Fewest gold grades that correct a run by themselves."""
FEWEST_OWN = 8
"""Fewest gold grades drawn (π < 1) that tell a run's own λ and variance; below, λ is 1 and the variance that of all
runs."""
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class RunGrades:
    """The responses of one run that the judge graded."""

    judged: Floats
    """f (N,)."""
    gold: Floats
    """y (N,), nan where there is none."""
    inclusion: Floats
    """π (N,), the probability with which a response was chosen for gold; read where there is gold."""
    topics: NDArray[np.int64]
    """Topic codes (N,), the same in all runs."""
    turns: NDArray[np.int64]
    """Turn codes (N,), the same in all runs; no run has a turn twice."""
    strata: NDArray[np.int64] | None = None
    """Codes (N,) of the groups that gold was drawn from one by one."""
    family: str | None = None


@dataclass(frozen=True, eq=False)
class Corrected:
    """A corrected mean; `value` is None where there is too little gold, `low` and `high` where there is no interval."""

    method: Method
    n: int
    """Gold grades."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    df: int = 0
    weight: float | None = None
    """λ."""
    effective_n: float | None = None
    """n V(gold only) / V."""
    bias: float | None = None
    """Weighted mean of judge minus gold."""
    degenerate: bool = False
    """The gold, or gold minus judge, shows no variation, so the interval is Clopper and Pearson's."""
    influence: Floats | None = None
    """By turn (`pool`) or topic (`topics`) code; its squares add up to se². None where the variance is not the run's
    own."""
    reason: str | None = None
    drawn: int = 0
    """Gold grades with π < 1, the only ones instead of which there could be others."""


@dataclass(frozen=True, eq=False)
class _Sample:
    """The gold of one run with its weights."""

    run: RunGrades
    chosen: NDArray[np.intp]
    f: Floats
    y: Floats
    pi: Floats
    w: Floats
    T: int
    """Topics of all responses."""

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def drawn(self) -> NDArray[np.bool_]:
        return self.pi < 1

    @property
    def m(self) -> int:
        return int(self.drawn.sum())

    @property
    def T_gold(self) -> int:
        """Topics with gold."""
        return len(np.unique(self.run.topics[self.chosen]))

    @property
    def census(self) -> bool:
        return 0 < self.n == len(self.run.judged) and bool((self.pi == 1).all())

    def value(self, weight: float) -> float:
        return float(weight * self.run.judged.mean() + self.w @ (self.y - weight * self.f))


@dataclass(frozen=True, eq=False)
class _Setting:
    target: Target
    bounds: tuple[float, float]
    level: float
    units: int
    """Number of codes of turns or topics."""
    shared: tuple[tuple[float, int], ...] = ()
    """`_shared_variance` at λ = 0 and at λ = 1."""

    def lacks_topics(self, sample: _Sample) -> bool:
        return self.target == "topics" and sample.T < FEWEST_TOPICS


def correct(
    runs: Sequence[RunGrades],
    *,
    target: Target,
    bounds: tuple[float, float],
    fallback: Literal["family"] | None = None,
    level: float = 0.95,
) -> tuple[Corrected, ...]:
    """Correct the mean of every run by its own gold.

    `pool`: V = m/(m-1-H) Σ_S q_i (u_i - ū)² over the m gold grades that were drawn, in H strata, with e = y - λf,
    u_i = w_i (e_i - Σ w e), q = 1-π, and ū the mean of u by q within a stratum. Gold chosen for certain has no part in
    it (J. Hájek, 1964, Annals of Mathematical Statistics 35(4), 1491-1523). V is (1 - n/N) s²/n with n-2 degrees of
    freedom where all π = n/N. With every response in the gold the mean is exact.
    `topics`: V = G/(G-1) Σ_t ψ_t² with ψ_t the sum over a topic of λ(f_i - f̄)/N + w_i (e_i - ē), and G-1 degrees,
    where G topics have gold.

    Runs with fewer than FEWEST_OWN gold grades drawn share one variance; those with fewer than FEWEST gold grades are
    not corrected, or by `fallback` from the gold of their family. A run all of whose gold was certain, but does not
    cover it, has no interval.

    Args:
        runs: The runs, with the codes of topics and turns in common.
        target: What the means are of.
        bounds: Least and greatest grade of the scale.
        fallback: What to do about a run with fewer than FEWEST gold grades.
        level: Confidence level.

    Raises:
        ValueError: π is not in (0, 1], or is 1 for all gold there is and some run has responses without gold.
    """
    samples = [_sample(run) for run in runs]
    if any(one.n and not one.census for one in samples) and not any(one.m for one in samples):
        raise ValueError("gold chosen with certainty does not cover the runs")
    units = 1 + max((int(_units(run, target).max()) for run in runs if len(run.judged)), default=-1)
    setting = _Setting(target, bounds, level, units)
    setting = replace(setting, shared=tuple(_shared_variance(samples, setting, weight) for weight in (0.0, 1.0)))
    return tuple(
        _within(
            _of_family(sample, samples, setting)
            if fallback == "family" and sample.n < FEWEST and not sample.census
            else _of_run(sample, setting),
            bounds,
        )
        for sample in samples
    )


def tuned_weight(y: Floats, f: Floats, w: Floats) -> float:
    """λ = cov(y, f) / var(f) within [0, 1], and 0 where the judge would rather widen the interval than narrow it.

    Gold alone is better if |ρ| < 1/√(n-2): P. Mani et al. (2025), No free lunch: non-asymptotic analysis of
    prediction-powered inference, arXiv:2505.20178.

    Args:
        y: Gold grades (n,).
        f: The judge's of the same responses (n,).
        w: Weights (n,) that add up to 1.
    """
    dy, df = y - w @ y, f - w @ f
    vy, vf, cov = float(w @ dy**2), float(w @ df**2), float(w @ (dy * df))
    if min(vy, vf) < ROUNDING or cov * cov * (len(y) - 2) < vy * vf:
        return 0.0
    return min(max(cov / vf, 0.0), 1.0)


def _sample(run: RunGrades) -> _Sample:
    chosen = np.flatnonzero(~np.isnan(run.gold))
    pi = run.inclusion[chosen]
    if not ((pi > 0) & (pi <= 1)).all():
        raise ValueError("an inclusion probability is not above 0 and at most 1")
    w = (1 / pi) / (1 / pi).sum()
    return _Sample(run, chosen, run.judged[chosen], run.gold[chosen], pi, w, len(np.unique(run.topics)))


def _units(run: RunGrades, target: Target) -> NDArray[np.int64]:
    return run.turns if target == "pool" else run.topics


def _of_run(sample: _Sample, setting: _Setting) -> Corrected:
    """The run corrected by its own gold, if there is enough."""
    n, m, y, f = sample.n, sample.m, sample.y, sample.f
    found = Corrected("raw", n, drawn=m, bias=float(sample.w @ (f - y)) if n else None)
    if sample.census:
        value = float(y.mean())
        if setting.target == "topics":
            return _by_own_variance(replace(found, method="census", value=value), sample, 0.0, setting)
        exact = np.zeros(setting.units)
        return replace(found, method="census", value=value, low=value, high=value, se=0.0, influence=exact)
    if n < FEWEST:
        return replace(found, reason=f"fewer than {FEWEST} gold grades")
    constant = np.ptp(sample.run.judged) == 0 and np.ptp(y) == 0
    weight = 0.0 if constant else 1.0 if m < FEWEST_OWN else tuned_weight(y, f, sample.w)
    found = replace(found, method="ppi++" if weight else "gold only", value=sample.value(weight), weight=weight)
    if not m:
        return replace(found, reason="its gold was all chosen for certain, which says nothing of the other responses")
    if setting.lacks_topics(sample):
        return replace(found, reason=f"fewer than {FEWEST_TOPICS} topics")
    if constant:
        return _degenerate(found, sample, setting)
    if m < FEWEST_OWN:
        return _by_shared_variance(replace(found, method="ppi++ pooled"), sample, setting)
    return _by_own_variance(found, sample, weight, setting)


def _by_own_variance(found: Corrected, sample: _Sample, weight: float, setting: _Setting) -> Corrected:
    if setting.target == "topics" and sample.T_gold < FEWEST_TOPICS:
        return replace(found, reason=f"gold in fewer than {FEWEST_TOPICS} topics")
    influence, df = _influence(sample, weight, setting)
    V = float(influence @ influence)
    found = _spread(replace(found, influence=influence), math.sqrt(V), df, setting.level)
    e = sample.y - weight * sample.f
    if V < ROUNDING or np.ptp(e[_sampled(sample, setting)]) < ROUNDING:
        return _degenerate(found, sample, setting)
    if found.method == "census":
        return found
    alone, _ = _influence(sample, 0.0, setting)
    return replace(found, effective_n=sample.n * float(alone @ alone) / V)


def _influence(sample: _Sample, weight: float, setting: _Setting) -> tuple[Floats, int]:
    """What each turn or topic adds to the error of θ, by code; the squares add up to V. Then V's degrees of freedom."""
    run, m, w = sample.run, sample.m, sample.w
    e = sample.y - weight * sample.f
    u = w * (e - w @ e)
    parts = np.zeros(len(run.judged))
    if setting.target == "pool":
        strata, H = _strata(sample)
        df = m - 1 - H
        drawn = sample.drawn
        parts[sample.chosen[drawn]] = math.sqrt(m / df) * _deviations(u[drawn], 1 - sample.pi[drawn], strata)
    else:
        G = sample.T_gold
        df = G - 1
        parts += weight * (run.judged - run.judged.mean()) / len(run.judged)
        parts[sample.chosen] += u
        parts *= math.sqrt(G / df)
    by_unit = np.zeros(setting.units)
    np.add.at(by_unit, _units(run, setting.target), parts)
    return by_unit, df


def _deviations(u: Floats, q: Floats, strata: NDArray[np.intp]) -> Floats:
    """√q (u - ū), with ū the mean of u by q in each stratum."""
    means = np.bincount(strata, weights=q * u) / np.bincount(strata, weights=q)
    result: Floats = np.sqrt(q) * (u - means[strata])
    return result


def _sampled(sample: _Sample, setting: _Setting) -> NDArray[np.bool_]:
    """The gold grades that are a sample of something: for `topics` all of them, as topics are drawn."""
    return sample.drawn if setting.target == "pool" else np.ones(sample.n, dtype=bool)


def _strata(sample: _Sample) -> tuple[NDArray[np.intp], int]:
    """Stratum codes (m,) of the gold that was drawn, and how many there are; one where some have a single grade."""
    one = np.zeros(sample.m, dtype=np.intp), 1
    if sample.run.strata is None:
        return one
    of = sample.run.strata[sample.chosen[sample.drawn]]
    _, codes, counts = np.unique(of, return_inverse=True, return_counts=True)
    # Every stratum's center costs a degree of freedom; without any left there is no variance.
    return (codes, len(counts)) if counts.min() > 1 and sample.m > len(counts) + 1 else one


def _shared_variance(samples: Sequence[_Sample], setting: _Setting, weight: float) -> tuple[float, int]:
    """The variance of one gold grade's part in θ, over all runs, with its degrees of freedom; these are 0 without any.

    A run's V is a sum over its gold of that variance times q w² (`topics`: w²), which is solved for it. The degrees are
    Σ(m_r - 1), and for `topics` at most the number of topics with gold less 1.
    """
    total, degrees, seen = 0.0, 0, set[int]()
    for sample in samples:
        if sample.m < 2 or setting.lacks_topics(sample):
            continue
        if setting.target == "pool":
            drawn = sample.drawn
            w, q, e = sample.w[drawn], 1 - sample.pi[drawn], sample.y - weight * sample.f
            u = w * (e[drawn] - sample.w @ e)
            squares = _deviations(u, q, np.zeros(sample.m, dtype=np.intp))
            total += sample.m * float(squares @ squares) / float(q @ w**2)
        elif sample.T_gold > 1:
            influence, _ = _influence(sample, weight, setting)
            total += (sample.m - 1) * float(influence @ influence) / float(sample.w @ sample.w)
            seen.update(sample.run.topics[sample.chosen].tolist())
        else:
            continue
        degrees += sample.m - 1
    if not degrees:
        return 0.0, 0
    return total / degrees, min(degrees, len(seen) - 1) if setting.target == "topics" else degrees


def _by_shared_variance(found: Corrected, sample: _Sample, setting: _Setting) -> Corrected:
    (V_gold, _), (V, df) = setting.shared
    if not df:
        return replace(found, reason="too few gold grades were drawn, in this run and all others, for an interval")
    if V < ROUNDING:
        return _degenerate(found, sample, setting)
    left = 1 - sample.pi if setting.target == "pool" else np.ones(sample.n)
    se = math.sqrt(V * float(left @ sample.w**2))
    return _spread(replace(found, effective_n=sample.n * V_gold / V), se, df, setting.level)


def _degenerate(found: Corrected, sample: _Sample, setting: _Setting) -> Corrected:
    """Of n equal grades a share p at least is sure to be so, by Clopper and Pearson; the others may be anything.

    Responses of one topic are alike, so for new topics n counts topics. Gold chosen with certainty is no sample.
    """
    n = len(np.unique(_units(sample.run, setting.target)[sample.chosen][_sampled(sample, setting)]))
    p, _ = clopper_pearson(n, n, setting.level)
    value = _value(found)
    low, high = (p * value + (1 - p) * end for end in setting.bounds)
    if found.low is not None and found.high is not None:
        low, high = min(low, found.low), max(high, found.high)
    se = max(value - low, high - value) / t_quantile(setting.level, math.inf)
    return replace(found, low=low, high=high, se=se, df=n, degenerate=True, influence=None)


def _of_family(sample: _Sample, samples: Sequence[_Sample], setting: _Setting) -> Corrected:
    """The judge's mean plus the mean of gold minus judge in the family, whose m runs differ by τ² of their own.

    V = U/(U-1) Σ_u (Σ_{i∈u} e_i - ē)² / n_F² + τ²(1 + 1/m) over the U turns or topics with gold, as runs share what is
    hard about a turn; τ² by moments, from the variance within runs. For `topics` the judge's mean has its own variance.
    """
    run, too_little = sample.run, f"fewer than {FEWEST} gold grades, and too few in its family"
    bias = float(sample.w @ (sample.f - sample.y)) if sample.n else None
    found = Corrected("raw", sample.n, drawn=sample.m, bias=bias)
    kin = [one for one in samples if one.n and one.run.family == run.family]
    sizes = np.array([one.n for one in kin], dtype=np.float64)
    m, n_F = len(kin), int(sizes.sum())
    if run.family is None or not len(run.judged) or m < 2 or n_F == m or setting.lacks_topics(sample):
        return replace(found, reason=too_little)
    e = [one.y - one.f for one in kin]
    means = np.array([one.w @ errors for one, errors in zip(kin, e, strict=True)])
    center = float(sizes @ means) / n_F
    within = sum(float(((errors - errors.mean()) ** 2).sum()) for errors in e) / (n_F - m)
    tau2 = max(0.0, float(means.var(ddof=1)) - within * float((1 / sizes).mean()))
    units = np.concatenate([_units(one.run, setting.target)[one.chosen] for one in kin])
    _, codes = np.unique(units, return_inverse=True)
    by_unit = np.bincount(codes, weights=np.concatenate(e) - center)
    U = len(by_unit)
    if U < FEWEST:
        return replace(found, reason=too_little)
    V = U / (U - 1) * float(by_unit @ by_unit) / n_F**2 + tau2 * (1 + 1 / m)
    if V < ROUNDING:
        return replace(found, reason="gold minus judge is the same all through its family")
    if setting.target == "topics":
        by_topic = np.bincount(run.topics, weights=(run.judged - run.judged.mean()) / len(run.judged))
        V += sample.T / (sample.T - 1) * float(by_topic @ by_topic)
    found = replace(found, method="family", value=float(run.judged.mean()) + center, weight=1.0)
    return _spread(found, math.sqrt(V), min(U - 1, m - 1) if tau2 else U - 1, setting.level)


def _spread(found: Corrected, se: float, df: int, level: float) -> Corrected:
    half = t_quantile(level, df) * se
    return replace(found, low=_value(found) - half, high=_value(found) + half, se=se, df=df)


def _value(found: Corrected) -> float:
    return math.nan if found.value is None else found.value


def _within(found: Corrected, bounds: tuple[float, float]) -> Corrected:
    """The same with value and ends on the scale."""
    low, high = map(float, bounds)
    ends = {name: getattr(found, name) for name in ("value", "low", "high")}
    return replace(found, **{name: min(max(end, low), high) for name, end in ends.items() if end is not None})
