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

Target = Literal["pool", "topics"]
"""What the mean is of: these responses, or what the run would do on topics like these."""
Method = Literal["ppi++", "ppi++ pooled", "gold only", "family", "census", "raw"]
FEWEST = 3
"""Fewest gold grades that correct a run by themselves."""
FEWEST_OWN = 8
"""Fewest gold grades that tell a run's own λ and variance; below, λ is 1 and the variance that of all runs."""
ROUNDING = 1e-12

Floats = NDArray[np.float64]


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
    """The gold shows no variation, so the interval is Clopper and Pearson's."""
    influence: Floats | None = None
    """By turn (`pool`) or topic (`topics`) code; its squares add up to se². None where the variance is not the run's
    own."""
    reason: str | None = None


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

    `pool`: V = n/(n-1-H) Σ_S (1-π_i) w_i² (e_i - ē)² with e = y - λf and H strata, each centered by itself; it is
    (1 - n/N) s²/n with n-2 degrees of freedom where all π = n/N. With every response in the gold the mean is exact.
    `topics`: V = T/(T-1) Σ_t ψ_t² with ψ_t the sum over a topic of λ(f_i - f̄)/N + w_i (e_i - ē), and T-1 degrees.

    Runs with fewer than FEWEST_OWN gold grades share one variance; those with fewer than FEWEST are not corrected,
    or by `fallback` from the gold of their family.

    Args:
        runs: The runs, with the codes of topics and turns in common.
        target: What the means are of.
        bounds: Least and greatest grade of the scale.
        fallback: What to do about a run with fewer than FEWEST gold grades.
        level: Confidence level.

    Raises:
        ValueError: π is not in (0, 1], or is 1 for all gold of a run that has responses without gold.
    """
    samples = [_sample(run) for run in runs]
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
    if 0 < len(chosen) < len(run.judged) and (pi == 1).all():
        raise ValueError("gold chosen with certainty does not cover the run")
    w = (1 / pi) / (1 / pi).sum()
    return _Sample(run, chosen, run.judged[chosen], run.gold[chosen], pi, w, len(np.unique(run.topics)))


def _units(run: RunGrades, target: Target) -> NDArray[np.int64]:
    return run.turns if target == "pool" else run.topics


def _of_run(sample: _Sample, setting: _Setting) -> Corrected:
    """The run corrected by its own gold, if there is enough."""
    n, y, f = sample.n, sample.y, sample.f
    bias = float(sample.w @ (f - y)) if n else None
    if sample.census:
        value = float(y.mean())
        if setting.target == "topics":
            return _by_own_variance(Corrected("census", n, value, bias=bias), sample, 0.0, setting)
        return Corrected("census", n, value, value, value, 0.0, bias=bias, influence=np.zeros(setting.units))
    if n < FEWEST:
        return Corrected("raw", n, bias=bias, reason=f"fewer than {FEWEST} gold grades")
    constant = np.ptp(sample.run.judged) == 0 and np.ptp(y) == 0
    if n < FEWEST_OWN and not constant:
        found = Corrected("ppi++ pooled", n, sample.value(1.0), weight=1.0, bias=bias)
        return _by_shared_variance(found, sample, setting)
    weight = tuned_weight(y, f, sample.w)
    found = Corrected("ppi++" if weight else "gold only", n, sample.value(weight), weight=weight, bias=bias)
    return _by_own_variance(found, sample, weight, setting)


def _by_own_variance(found: Corrected, sample: _Sample, weight: float, setting: _Setting) -> Corrected:
    if setting.lacks_topics(sample):
        return replace(found, reason=f"fewer than {FEWEST_TOPICS} topics")
    influence, df = _influence(sample, weight, setting)
    V = float(influence @ influence)
    found = _spread(replace(found, influence=influence), math.sqrt(V), df, setting.level)
    if V < ROUNDING or np.ptp(sample.y - weight * sample.f) < ROUNDING:
        return _degenerate(found, sample, setting)
    if found.method == "census":
        return found
    alone, _ = _influence(sample, 0.0, setting)
    return replace(found, effective_n=sample.n * float(alone @ alone) / V)


def _influence(sample: _Sample, weight: float, setting: _Setting) -> tuple[Floats, int]:
    """What each turn or topic adds to the error of θ, by code; the squares add up to V. Then V's degrees of freedom."""
    run, n, w, T = sample.run, sample.n, sample.w, sample.T
    e = sample.y - weight * sample.f
    parts = np.zeros(len(run.judged))
    if setting.target == "pool":
        strata, H = _strata(sample)
        means = np.bincount(strata, weights=w * e) / np.bincount(strata, weights=w)
        parts[sample.chosen] = np.sqrt(n / (n - 1 - H) * (1 - sample.pi)) * w * (e - means[strata])
        df = n - 1 - H
    else:
        parts += weight * (run.judged - run.judged.mean()) / len(run.judged)
        parts[sample.chosen] += w * (e - w @ e)
        parts *= math.sqrt(T / (T - 1))
        df = T - 1
    by_unit = np.zeros(setting.units)
    np.add.at(by_unit, _units(run, setting.target), parts)
    return by_unit, df


def _strata(sample: _Sample) -> tuple[NDArray[np.intp], int]:
    """Stratum codes (n,) of the gold and how many there are; one where some have a single grade."""
    one = np.zeros(sample.n, dtype=np.intp), 1
    if sample.run.strata is None:
        return one
    _, codes, counts = np.unique(sample.run.strata[sample.chosen], return_inverse=True, return_counts=True)
    # Every stratum's center costs a degree of freedom; without any left there is no variance.
    return (codes, len(counts)) if counts.min() > 1 and sample.n > len(counts) + 1 else one


def _shared_variance(samples: Sequence[_Sample], setting: _Setting, weight: float) -> tuple[float, int]:
    """The variance of one gold grade's part in θ, over all runs, with its Σ(n_r - 1) degrees of freedom.

    For `pool` that of e; for `topics` the mean of n_r V_r, which has what the topics add to it.
    """
    total, degrees = 0.0, 0
    for sample in samples:
        if sample.n < 2 or setting.lacks_topics(sample):
            continue
        if setting.target == "pool":
            e = sample.y - weight * sample.f
            total += sample.n * float(sample.w @ ((e - sample.w @ e) ** 2))
        else:
            influence, _ = _influence(sample, weight, setting)
            total += (sample.n - 1) * sample.n * float(influence @ influence)
        degrees += sample.n - 1
    return (total / degrees, degrees) if degrees else (0.0, 0)


def _by_shared_variance(found: Corrected, sample: _Sample, setting: _Setting) -> Corrected:
    if setting.lacks_topics(sample):
        return replace(found, reason=f"fewer than {FEWEST_TOPICS} topics")
    (V_gold, _), (V, df) = setting.shared
    if V < ROUNDING:
        return _degenerate(found, sample, setting)
    left = 1 - sample.pi if setting.target == "pool" else np.ones(sample.n)
    se = math.sqrt(V * float(left @ sample.w**2))
    df = min(df, sample.T - 1) if setting.target == "topics" else df
    return _spread(replace(found, effective_n=sample.n * V_gold / V), se, df, setting.level)


def _degenerate(found: Corrected, sample: _Sample, setting: _Setting) -> Corrected:
    """Of n equal grades a share p at least is sure to be so, by Clopper and Pearson; the others may be anything.

    Responses of one topic are alike, so for new topics n counts topics. Gold chosen with certainty is no sample.
    """
    drawn = sample.pi < 1 if setting.target == "pool" else np.ones(sample.n, dtype=bool)
    n = len(np.unique(_units(sample.run, setting.target)[sample.chosen][drawn]))
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
    found = Corrected("raw", sample.n, bias=float(sample.w @ (sample.f - sample.y)) if sample.n else None)
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
