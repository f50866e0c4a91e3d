"""Variance components of grades, and what more topics, turns and labels would do for means of runs. Pure.

A grade is the sum of a mean and independent effects: of its run, topic, run × topic, turn (within its topic; all runs
answer it), run × turn, and, where a response has labels by several assessors, of the assessor and of the label.
R. L. Brennan (2001), Generalizability theory, Springer; for retrieval D. Bodoff & P. Li (2007), Test theory for
assessing IR test collections, SIGIR, and J. Urbano, M. Marrero & D. Martín (2013), On the measurement of test
collection reliability, SIGIR.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.means import t_quantile
from judge.stats.run_differences import FEWEST_TOPICS_COMPARED
from judge.stats.tables import Undefined

Source = Literal["run", "topic", "run x topic", "dialogue", "turn", "run x turn", "assessor", "label", "item"]
"""What makes grades differ. The last of a design holds all that the design does not tell apart."""
POWER = 0.8
"""Probability with which a true difference is to be found significant at 5 %, two-sided."""
MOST_TOPICS = 1_000_000
"""Where the search for a number of topics ends."""
_PARTS = 25
"""Most jackknife parts of the topics."""

_Ints = NDArray[np.int64]


class VarianceComponent(msgspec.Struct, frozen=True):
    """The variance of one kind of effect."""

    source: Source
    variance: float
    """0 where the estimate is negative."""
    estimate: float
    """The unbiased estimate, which may be negative."""


class GradeTable(NamedTuple):
    """N grades, each with what it is a grade of; names may be anything that can be hashed."""

    values: Sequence[float]
    runs: Sequence[str]
    topics: Sequence[str]
    turns: Sequence[str]
    """Names of turns differ between topics."""
    assessors: Sequence[str] | None = None
    """Who gave each grade; None if every response has one grade."""


class GradeVariance(msgspec.Struct, frozen=True):
    """The components of a table of grades, and the sizes that they come from."""

    components: tuple[VarianceComponent, ...]
    runs: int
    topics: int
    turns: int
    grades: int
    spread: float
    """Topics over the number of topics of equal length that are worth as much, T Σn² / (Σn)²; at least 1."""

    def variance(self, source: Source) -> float:
        """The variance of a source; 0 where the design does not have it."""
        return next((row.variance for row in self.components if row.source == source), 0.0)

    @property
    def turns_per_topic(self) -> float:
        """The mean number of turns of a topic."""
        return self.turns / self.topics

    def has(self, source: Source) -> bool:
        """Whether the design tells the source apart."""
        return any(row.source == source for row in self.components)


class Design(NamedTuple):
    """What is planned, beside the number of topics."""

    turns: float
    """Turns of a topic, on average."""
    spread: float = 1.0
    """As in `GradeVariance`."""
    labels: int = 1
    """Labels of a response, by assessors drawn anew for each; 1 where labels are not told apart."""


class Reliability(msgspec.Struct, frozen=True):
    """How far differences of observed means are differences of runs."""

    relative: float | Undefined
    """Eρ²: for the order of the runs."""
    absolute: float | Undefined
    """Φ: for the means themselves."""


def variance_components(
    values: Sequence[float], factors: Mapping[Source, Sequence[Any]], rest: Source
) -> tuple[VarianceComponent, ...] | Undefined:
    """The variances of random effects, from unbalanced data too; `rest` names what differs from grade to grade.

    Sums of squares T_α = Σ_a n_a ȳ_a² over the levels a of each factor are set equal to their expectations,
    N μ² + Σ_β σ²_β Σ_a Σ_b n_ab² / n_a. The estimates are unbiased, and those of the analysis of variance where data
    are balanced. C. R. Henderson (1953), Estimation of variance and covariance components, Biometrics 9(2), 226-252
    (method I); Brennan (2001), chapter 7, analogous-ANOVA.

    Two topics and one grade of two runs in each: mean squares 8, 2 and 0 by hand.

    >>> table = {"run": "abab", "topic": "1122"}
    >>> [row.estimate for row in variance_components([0, 2, 1, 3], table, "run x topic")]
    [2.0, 0.5, 0.0]
    """
    N = len(values)
    if N < 2:
        return Undefined("fewer than 2 grades")
    y = np.asarray(values, dtype=np.float64)
    y = y - y.mean()
    if not y.any():
        return Undefined("all grades are the same")
    codes = [_codes(levels) for levels in factors.values()]
    names = [*factors, rest]
    for name, code in zip(factors, codes, strict=True):
        if code.max() == 0:
            return Undefined(f"only one {name}")
    K = len(names)
    expected = np.zeros((K, K))
    observed = np.zeros(K)
    for place, code in enumerate(codes):
        sizes = np.bincount(code)
        observed[place] = (np.bincount(code, weights=y) ** 2 / sizes).sum()
        expected[place, -1] = len(sizes)
        for other, levels in enumerate(codes):
            cells, counts = np.unique(code * (levels.max() + 1) + levels, return_counts=True)
            expected[place, other] = (counts**2 / sizes[cells // (levels.max() + 1)]).sum()
    observed[-1], expected[-1] = y @ y, N
    # The row of the mean is taken from all others; with y centered its sum of squares is 0.
    expected -= np.array([*((np.bincount(code) ** 2).sum() / N for code in codes), 1.0])
    if np.linalg.matrix_rank(expected / N, tol=1e-9) < K:
        return Undefined(f"the grades are too few to tell {', '.join(names[:-1])} and {rest} apart")
    estimates = np.linalg.solve(expected, observed)
    # What rounding leaves of a variance of 0 is no variance.
    estimates[np.abs(estimates) < 1e-12 * max(float(y @ y), 1.0)] = 0.0
    return tuple(
        VarianceComponent(name, max(estimate, 0.0), estimate)
        for name, estimate in zip(names, estimates.tolist(), strict=True)
    )


def _codes(levels: Sequence[Any]) -> _Ints:
    places: dict[Any, int] = {}
    return np.array([places.setdefault(level, len(places)) for level in levels], dtype=np.int64)


def grade_variance(table: GradeTable) -> GradeVariance | Undefined:
    """The components of run × (turn within topic) and, where responses have several labels, of assessor and label.

    With one turn a topic, turns are topics, and what is left is `run x topic`. Where assessors cannot be told apart
    from the rest, they are part of `label`.
    """
    runs = table.runs
    topics = table.topics
    turns = table.turns
    factors: dict[Source, Sequence[Any]] = {"run": runs, "topic": topics}
    rest: Source = "run x topic"
    of_topic = dict(zip(turns, topics, strict=True))
    lengths = np.unique(np.array(list(of_topic.values()), dtype=object).astype(str), return_counts=True)[1]
    if len(of_topic) > len(set(topics)):
        factors |= {"run x topic": list(zip(runs, topics, strict=True)), "turn": turns}
        rest = "run x turn"
    responses = list(zip(runs, turns, strict=True))
    several = table.assessors is not None and len(set(responses)) < len(responses)
    found: tuple[VarianceComponent, ...] | Undefined = Undefined("")
    if several and table.assessors is not None:
        factors[rest] = responses
        rest = "label"
        found = variance_components(table.values, {**factors, "assessor": table.assessors}, rest)
    if isinstance(found, Undefined):
        found = variance_components(table.values, factors, rest)
    if isinstance(found, Undefined):
        return found
    T = len(lengths)
    N = int(lengths.sum())
    return GradeVariance(
        components=found,
        runs=len(set(runs)),
        topics=T,
        turns=N,
        grades=len(table.values),
        spread=float(T * (lengths**2).sum() / N**2),
    )


def difference_variance(of: GradeVariance, design: Design) -> float:
    """T times the variance of the difference of two runs over T topics: twice the relative error variance."""
    return 2 * _relative(of, design)


def mean_variance(of: GradeVariance, design: Design) -> float:
    """T times the variance of a run's mean over T topics: the absolute error variance."""
    return _relative(of, design) + of.variance("topic") * design.spread + of.variance("turn") / design.turns


def _relative(of: GradeVariance, design: Design) -> float:
    labels = (of.variance("assessor") + of.variance("label")) / design.labels
    return of.variance("run x topic") * design.spread + (of.variance("run x turn") + labels) / design.turns


def reliability(of: GradeVariance, design: Design, topics: int) -> Reliability:
    """Eρ² = σ²_run / (σ²_run + σ²_δ) and Φ with σ²_Δ for σ²_δ (Brennan 2001, section 4.1.1)."""
    run = of.variance("run")
    relative, absolute = (run + error / topics for error in (_relative(of, design), mean_variance(of, design)))
    same = Undefined("all grades are the same")
    return Reliability(run / relative if relative else same, run / absolute if absolute else same)


def half_width_factor(topics: int) -> float:
    """Half the width of a 95 % interval over `topics` topics, in standard errors."""
    return t_quantile(0.95, topics - 1)


def power_factor(topics: int) -> float:
    """The true difference, in standard errors, that a paired t-test over `topics` topics finds with POWER.

    The shift of the noncentral t at which 80 % exceed the critical value. A difference that is significant with the
    wrong sign is not found. J. Cohen (1988), Statistical power analysis for the behavioral sciences.
    """
    from scipy.optimize import brentq
    from scipy.special import nctdtr

    df = topics - 1
    critical = half_width_factor(topics)

    def lacking(shift: float) -> float:
        return float(nctdtr(df, shift, critical)) - (1 - POWER)

    return float(brentq(lacking, 0.0, 2 * critical))


def topics_needed(variance: float, size: float, factor: Callable[[int], float]) -> int | Undefined:
    """The fewest topics over which `half_width_factor` or `power_factor` standard errors are no more than `size`.

    `variance` is T times the variance of what is estimated, as `difference_variance`.
    """
    if not variance > 0:
        return Undefined("the grades show no error that topics could reduce")
    low = 1
    high = 2
    while factor(high) * math.sqrt(variance / high) > size:
        if high >= MOST_TOPICS:
            return Undefined(f"more than {MOST_TOPICS} topics")
        low = high
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if factor(middle) * math.sqrt(variance / middle) <= size else (middle, high)
    return high


def without_parts(table: GradeTable) -> tuple[GradeVariance | Undefined, ...]:
    """The components without each topic in turn or, of more than 25 topics, without each of 25 parts of them."""
    topics = _codes(table.topics)
    parts = topics % _PARTS
    variances = []
    for part in range(min(int(topics.max()) + 1, _PARTS)):
        rows = np.flatnonzero(parts != part).tolist()
        rest = GradeTable(
            values=[table.values[row] for row in rows],
            runs=[table.runs[row] for row in rows],
            topics=[table.topics[row] for row in rows],
            turns=[table.turns[row] for row in rows],
            assessors=None if table.assessors is None else [table.assessors[row] for row in rows],
        )
        variances.append(grade_variance(rest))
    return tuple(variances)


def planned_topics(
    of: GradeVariance,
    without: Sequence[GradeVariance | Undefined],
    size: float,
    factor: Callable[[int], float],
    design: Design,
    *,
    level: float = 0.95,
) -> Estimate:
    """The topics needed for a difference of two runs, with an interval from the pilot's own topics.

    The interval is that of the logarithm of the variance of a difference: a jackknife over topics with Student's t
    (B. Efron & R. J. Tibshirani 1993, An introduction to the bootstrap, chapter 11). There is none, and no number,
    below FEWEST_TOPICS_COMPARED topics. `without` has the components without each part of the topics (`without_parts`);
    `size` and `factor` are as for `topics_needed`.
    """
    n = of.grades
    T = of.topics
    if T < FEWEST_TOPICS_COMPARED:
        return Estimate(
            value=None, low=None, high=None, n=n, topics=T, reason=f"fewer than {FEWEST_TOPICS_COMPARED} topics"
        )
    variance = difference_variance(of, design)
    value = topics_needed(variance, size, factor)
    if isinstance(value, Undefined):
        return Estimate(value=None, low=None, high=None, n=n, topics=T, reason=value.reason)
    left = [0.0 if isinstance(part, Undefined) else difference_variance(part, design) for part in without]
    if min(left) <= 0:
        return Estimate(
            value=float(value),
            low=None,
            high=None,
            n=n,
            topics=T,
            reason="without some topics the grades show no error: no interval",
        )
    G = len(left)
    half = t_quantile(level, G - 1) * math.sqrt((G - 1) * float(np.log(left).var()))
    low, high = (topics_needed(variance * math.exp(sign * half), size, factor) for sign in (-1, 1))
    if isinstance(low, Undefined) or isinstance(high, Undefined):
        return Estimate(
            value=float(value),
            low=None,
            high=None,
            n=n,
            topics=T,
            reason=f"the interval ends beyond {MOST_TOPICS} topics",
        )
    return Estimate(value=float(value), low=float(low), high=float(high), n=n, topics=T)
