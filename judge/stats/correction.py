"""Means over a run's responses, corrected with gold grades of some of them.

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

from judge.stats import gold_sample as sampling
from judge.stats.gold_sample import influence
from judge.stats.means import FEWEST_TOPICS, ONE_TOPIC, most_unseen, t_quantile
from judge.stats.tables import Floats

Method = Literal["ppi++", "ppi++ pooled", "gold only", "family", "census", "raw"]
FEWEST = 3
"""Fewest gold grades that correct a run by themselves."""
FEWEST_OWN = 8
"""Fewest drawn gold grades (π < 1) for a variance of a run's own; below, λ is 1 and runs share a variance."""
ROUNDING = 1e-12
"""Variances below this are zero."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """A corrected mean with its interval."""

    method: Method
    n: int
    """Gold grades that people gave."""
    value: float | None = None
    """θ; None where there is too little gold."""
    low: float | None = None
    """Lower end of the interval; None where there is none, as are `high` and `se`."""
    high: float | None = None
    se: float | None = None
    df: float = 0
    """Degrees of freedom of the standard error."""
    weight: float | None = None
    """λ."""
    effective_n: float | None = None
    """n V(gold only) / V."""
    bias: float | None = None
    """Weighted mean of judge minus gold."""
    degenerate: bool = False
    """The gold, or gold minus judge, shows no variation, so the interval is Clopper and Pearson's."""
    influence: Floats | None = None
    """By code of turn (`pool`) or topic (`topics`); the squares add up to the run's own variance for pairs of runs.

    None without a variance of its own."""
    own_df: float = 0
    """Degrees of freedom of that variance."""
    scale: float = 0.0
    """The variance if a gold grade's part in θ had the variance 1."""
    reason: str | None = None
    drawn: int = 0
    """Gold grades with π < 1; another draw could have chosen others in their place."""
    topics: float = 0.0
    """How many topics of equal size the mean rests on (`means.effective_topics`)."""


@dataclass(frozen=True, eq=False)
class _Setting:
    target: sampling.Target
    bounds: tuple[float, float]
    level: float
    units: int
    shared: tuple[tuple[float, float], ...] = ()
    """`shared_variance` at λ = 0 and at λ = 1."""
    weight: float = 0.0
    """λ of the runs with a variance of their own."""
    common: bool = False
    """Whether several runs have a part in λ."""


def correct(
    runs: Sequence[sampling.RunGrades],
    *,
    target: sampling.Target,
    bounds: tuple[float, float],
    fallback: Literal["family"] | None = None,
    level: float = 0.95,
) -> tuple[Corrected, ...]:
    """Correct the mean of every run by its own gold.

    `pool`: V = m/(m-1-H) Σ_S q_i (u_i - ū)² over the m gold grades that were drawn, in H strata, with e = y - λf,
    u_i = w_i (e_i - Σ w e), q = 1-π, and ū the mean of u by q within a stratum. Gold chosen for certain has no part in
    it (J. Hájek, 1964, Annals of Mathematical Statistics 35(4), 1491-1523). V is (1 - n/N) s²/n with n-2 degrees of
    freedom where all π = n/N. The variances of several runs are moderated toward a common one (`moderated`), which adds
    degrees of freedom, in all at most (G-1) (tr C)² / tr C² with drawn gold in G turns: those of a mean variance of
    runs whose errors have the covariances C (F. E. Satterthwaite, 1946, Biometrics Bulletin 2(6), 110-114). If every
    response has gold, the mean is exact.
    `topics`: V = G/(G-1) Σ_t ψ_t² with ψ_t the sum over a topic of λ(f_i - f̄)/N + w_i (e_i - ē), where G topics have
    gold, and min(G, G*) - 1 degrees (`means.effective_topics`).

    λ is the same for all runs with FEWEST_OWN or more drawn gold grades, since that of one run is a rough estimate. In
    simulations of 24 runs with 10 gold grades each, λ in common and moderated variances cover .95 instead of .93, with
    intervals narrower by 7 %. Runs with fewer than FEWEST_OWN drawn gold grades share one variance. Runs with fewer
    than FEWEST gold grades are not corrected or, with `fallback`, corrected by the gold of their family. A run has no
    interval if all its gold was chosen for certain and does not cover it.

    Args:
        runs: The runs, with the codes of topics and turns in common.
        target: What the means are about.
        bounds: Least and greatest grade of the scale.
        fallback: `family` corrects a run with fewer than FEWEST gold grades by its family; None leaves it as it is.
        level: Confidence level.

    Raises:
        ValueError: π is not in (0, 1], or all gold has π = 1 and some run has responses without gold.
    """
    samples = [sampling.gold_sample(run) for run in runs]
    if any(sample.n and not sample.census for sample in samples) and not any(sample.m for sample in samples):
        raise ValueError("gold chosen with certainty does not cover the runs")
    units = 1 + max((int(sampling.unit_codes(run, target).max()) for run in runs if len(run.judged)), default=-1)
    setting = _Setting(target, bounds, level, units)
    tuning = [(of.y, of.f, of.w) for of in samples if not of.census and of.m >= FEWEST_OWN]
    setting = replace(
        setting,
        shared=tuple(sampling.shared_variance(samples, weight, target, units) for weight in (0.0, 1.0)),
        weight=tuned_weight(tuning),
        common=len(tuning) > 1,
    )
    corrections = [
        _of_family(sample, samples, setting)
        if fallback == "family" and sample.labels < FEWEST and not sample.census
        else _of_run(sample, setting)
        for sample in samples
    ]
    if target == "pool":
        corrections = _moderated(corrections, samples, level)
    return tuple(
        replace(_within(corrected, sample, setting), topics=sample.counted_topics(target))
        for corrected, sample in zip(corrections, samples, strict=True)
    )


def tuned_weight(golds: Sequence[tuple[Floats, Floats, Floats]]) -> float:
    """λ = Σ n cov(y, f) / Σ n var(f) over runs, within [0, 1]; 0 where the judge would widen the intervals.

    Gold alone is better if |ρ| < 1/√(n-2): P. Mani et al. (2025), No free lunch: non-asymptotic analysis of
    prediction-powered inference, arXiv:2505.20178. Of k runs, n-2 is Σ n - k - 1. Of each run `golds` has gold
    grades y (n,), the judge's grades f of the same responses (n,), and weights w (n,) that add up to 1.
    """
    vy = vf = cov = 0.0
    left = -1
    for y, f, w in golds:
        dy = y - w @ y
        df = f - w @ f
        vy += len(y) * float(w @ dy**2)
        vf += len(y) * float(w @ df**2)
        cov += len(y) * float(w @ (dy * df))
        left += len(y) - 1
    if min(vy, vf) < ROUNDING or cov * cov * left < vy * vf:
        return 0.0
    return min(max(cov / vf, 0.0), 1.0)


def _moderated(
    corrections: Sequence[Corrected], samples: Sequence[sampling.GoldSample], level: float
) -> list[Corrected]:
    """The same with intervals from moderated variances, where a run has a variance of its own."""
    places = [
        place
        for place, run in enumerate(corrections)
        if run.influence is not None and run.se and run.own_df > 0 and not run.degenerate
    ]
    moderated = list(corrections)
    if not places:
        return moderated
    runs = [corrections[place] for place in places]
    df = np.array([run.df for run in runs])
    scale = np.array([run.scale for run in runs])
    variances = np.array([(run.se or 0.0) ** 2 for run in runs]) / scale
    drawn = (samples[place] for place in places)
    turns = np.unique(np.concatenate([sample.run.turns[sample.chosen[sample.drawn]] for sample in drawn]))
    prior = sampling.fit_prior(variances, df)
    parts = np.array([run.influence for run in runs]) / np.sqrt(scale)[:, None]
    C = parts @ parts.T
    most = (len(turns) - 1) * float(np.trace(C) ** 2 / (C**2).sum())
    for place, run, V, d in zip(places, runs, scale * prior.moderate(variances, df), df, strict=True):
        moderated[place] = _spread(run, math.sqrt(V), max(d, min(d + prior.df, most)), level)
    return moderated


def _of_run(sample: sampling.GoldSample, setting: _Setting) -> Corrected:
    """The run corrected by its own gold, if there is enough."""
    m = sample.m
    y = sample.y
    f = sample.f
    corrected = Corrected("raw", sample.labels, drawn=m, bias=float(sample.w @ (f - y)) if sample.n else None)
    if sample.census:
        value = sample.run.mean(y)
        if setting.target == "topics":
            return _by_own_variance(replace(corrected, method="census", value=value), sample, 0.0, setting)
        exact = np.zeros(setting.units)
        return replace(corrected, method="census", value=value, low=value, high=value, se=0.0, influence=exact)
    if sample.labels < FEWEST:
        return replace(corrected, reason=f"fewer than {FEWEST} gold grades")
    constant = np.ptp(sample.run.judged) == 0 and np.ptp(y) == 0
    # Gold that does not vary says nothing of the variance; see `_degenerate`.
    weight = (0.0 if constant else 1.0) if m < FEWEST_OWN else setting.weight if np.ptp(y) else 0.0
    method: Method = "ppi++" if weight else "gold only"
    corrected = replace(corrected, method=method, value=sample.value(weight), weight=weight)
    if not m:
        return replace(
            corrected, reason="its gold was all chosen for certain, which says nothing of the other responses"
        )
    if sample.lacks_topics(setting.target):
        return replace(corrected, reason=f"fewer than {FEWEST_TOPICS} topics")
    if constant:
        return _degenerate(corrected, sample, setting)
    if m < FEWEST_OWN:
        return _by_shared_variance(replace(corrected, method="ppi++ pooled"), sample, setting)
    return _by_own_variance(corrected, sample, weight, setting)


def _by_own_variance(corrected: Corrected, sample: sampling.GoldSample, weight: float, setting: _Setting) -> Corrected:
    if setting.target == "topics" and sample.T_gold < FEWEST_TOPICS:
        return replace(corrected, reason=f"gold in fewer than {FEWEST_TOPICS} topics")
    if setting.target == "topics" and sample.counted_topics("topics") < 2:
        return replace(corrected, reason=ONE_TOPIC)
    parts, df = influence(sample, weight, setting.target, setting.units, tuned=not setting.common)
    V = float(parts @ parts)
    left = 1 - sample.pi if setting.target == "pool" else np.ones(sample.n)
    scale = float(left @ sample.w**2)
    corrected = replace(corrected, influence=parts, own_df=df, scale=scale)
    # A common λ costs a run next to nothing, and pairs are told apart as if it cost nothing; but intervals without that
    # degree of freedom would cover .95 at best.
    less = df - (setting.common and setting.target == "pool")
    corrected = _spread(corrected, math.sqrt(V * df / less), less, setting.level)
    e = sample.y - weight * sample.f
    if V < ROUNDING or np.ptp(e[sample.sampled(setting.target)]) < ROUNDING:
        return _without_variation(corrected, sample, setting)
    if corrected.method == "census":
        return corrected
    alone, _ = influence(sample, 0.0, setting.target, setting.units, tuned=not setting.common)
    return replace(corrected, effective_n=sample.n * float(alone @ alone) / V)


def _by_shared_variance(corrected: Corrected, sample: sampling.GoldSample, setting: _Setting) -> Corrected:
    (V_gold, _), (V, df) = setting.shared
    if df < 1:
        too_few = "too few gold grades were drawn, in this run and all others, for an interval"
        return replace(corrected, reason=ONE_TOPIC if df else too_few)
    if V < ROUNDING:
        return _degenerate(corrected, sample, setting)
    left = 1 - sample.pi if setting.target == "pool" else np.ones(sample.n)
    se = math.sqrt(V * float(left @ sample.w**2))
    return _spread(replace(corrected, effective_n=sample.n * V_gold / V), se, df, setting.level)


def _without_variation(corrected: Corrected, sample: sampling.GoldSample, setting: _Setting) -> Corrected:
    """The narrower interval of two, where the gold of a run, or gold minus judge, does not vary by itself.

    One is by the variance that all runs share, as where there is less gold: more of it that is equal makes no run less
    sure. The other is that of `_degenerate`.
    """
    alone = _degenerate(corrected, sample, setting)
    V, df = setting.shared[1 if corrected.weight else 0]
    if corrected.method == "census" or df < 1 or V < ROUNDING:
        return alone
    left = 1 - sample.pi if setting.target == "pool" else np.ones(sample.n)
    shared = replace(corrected, method="ppi++ pooled", influence=None, low=None, high=None)
    shared = _spread(shared, math.sqrt(V * float(left @ sample.w**2)), df, setting.level)
    return shared if (shared.se or 0.0) * t_quantile(setting.level, df) < _reach(alone) else alone


def _reach(corrected: Corrected) -> float:
    """How far the interval reaches beyond the value to its longer side."""
    value = corrected.value or 0.0
    low = corrected.low or 0.0
    high = corrected.high or 0.0
    return max(value - low, high - value)


def _degenerate(corrected: Corrected, sample: sampling.GoldSample, setting: _Setting) -> Corrected:
    """The interval where n gold grades, or n differences of gold and judge, are all equal: Clopper and Pearson's.

    With the level's confidence at least a share p of all equals them; the others may be at an end of the scale.
    Responses of one topic are alike, so for `topics` n counts topics, of unequal size as fewer. Gold chosen for certain
    is no sample.
    """
    n: float = len(np.unique(sample.run.turns[sample.chosen[sample.drawn]]))
    if setting.target == "topics":
        n = sample.counted_topics("topics")
    p = 1 - most_unseen(n, (1 + setting.level) / 2)
    value = corrected.value or 0.0
    low, high = (p * value + (1 - p) * end for end in setting.bounds)
    if corrected.low is not None and corrected.high is not None:
        low = min(low, corrected.low)
        high = max(high, corrected.high)
    se = max(value - low, high - value) / t_quantile(setting.level, math.inf)
    return replace(corrected, low=low, high=high, se=se, df=n, degenerate=True, influence=None)


def _of_family(sample: sampling.GoldSample, samples: Sequence[sampling.GoldSample], setting: _Setting) -> Corrected:
    """The judge's mean plus the mean of gold minus judge in the family, over the m runs of it that have gold.

    V = U/(U-1) Σ_u (Σ_{i∈u} e_i - ē)² / n_F² + τ²(1 + 1/m), where u is a turn or topic with gold, because runs share
    the difficulty of a turn. τ² is the variance between the family's runs, by moments. For `topics` the variance of the
    judge's mean is added, and topics of unequal size count as fewer.
    """
    run = sample.run
    too_little = f"fewer than {FEWEST} gold grades, and too few in its family"
    bias = float(sample.w @ (sample.f - sample.y)) if sample.n else None
    corrected = Corrected("raw", sample.labels, drawn=sample.m, bias=bias)
    kin = [member for member in samples if member.n and member.run.family == run.family]
    sizes = np.array([member.n for member in kin], dtype=np.float64)
    m = len(kin)
    n_F = int(sizes.sum())
    if run.family is None or not len(run.judged) or m < 2 or n_F == m or sample.lacks_topics(setting.target):
        return replace(corrected, reason=too_little)
    e = [member.y - member.f for member in kin]
    means = np.array([member.w @ errors for member, errors in zip(kin, e, strict=True)])
    center = float(sizes @ means) / n_F
    within = sum(float(((errors - errors.mean()) ** 2).sum()) for errors in e) / (n_F - m)
    tau2 = max(0.0, float(means.var(ddof=1)) - within * float((1 / sizes).mean()))
    units = np.concatenate([sampling.unit_codes(member.run, setting.target)[member.chosen] for member in kin])
    _, codes = np.unique(units, return_inverse=True)
    by_unit = np.bincount(codes, weights=np.concatenate(e) - center)
    U = len(by_unit)
    if U < FEWEST:
        return replace(corrected, reason=too_little)
    left = (min(U, sample.effective_topics) if setting.target == "topics" else U) - 1
    if left < 1:
        return replace(corrected, reason=ONE_TOPIC)
    V = U / (U - 1) * float(by_unit @ by_unit) / n_F**2 + tau2 * (1 + 1 / m)
    if V < ROUNDING:
        return replace(corrected, reason="gold minus judge is the same all through its family")
    if setting.target == "topics":
        shares = 1 / len(run.judged) if run.shares is None else run.shares
        by_topic = np.bincount(run.topics, weights=(run.judged - run.mean(run.judged)) * shares)
        V += sample.T / (sample.T - 1) * float(by_topic @ by_topic)
    corrected = replace(corrected, method="family", value=run.mean(run.judged) + center, weight=1.0)
    return _spread(corrected, math.sqrt(V), min(left, m - 1) if tau2 else left, setting.level)


def _spread(corrected: Corrected, se: float, df: float, level: float) -> Corrected:
    half = t_quantile(level, df) * se
    value = corrected.value or 0.0
    return replace(corrected, low=value - half, high=value + half, se=se, df=df)


def _within(corrected: Corrected, sample: sampling.GoldSample, setting: _Setting) -> Corrected:
    """The same mean, with value and ends clipped to the scale; `_degenerate` where all of the interval is beyond it."""
    low, high = map(float, setting.bounds)
    ends = {name: getattr(corrected, name) for name in ("value", "low", "high")}
    clipped = {name: min(max(end, low), high) for name, end in ends.items() if end is not None}
    # An exact mean at an end of the scale is a point as well, and is one.
    beyond = ends["value"] is not None and clipped["value"] != ends["value"]
    within = replace(corrected, **clipped)
    return _degenerate(within, sample, setting) if beyond and within.low == within.high is not None else within
