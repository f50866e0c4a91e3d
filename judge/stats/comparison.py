"""Paired comparison of judges on the same items, and what the best of several is worth, which was chosen for its value.

The topic is the unit that is exchanged: under the null hypothesis the two judges' labels of it could be exchanged, so a
sample of the null is C_a* = Σ_t (1-s_t) C_a,t + s_t C_b,t with a fair coin s_t, and C_b* the other way around. All
pairs have the same s, which keeps the dependence between pairs. After each exchange the difference is divided by its
own standard error (`_studentized`). Where two judges use the grades unequally often, exchanges move the difference more
than topics do; without the division, the test would lose power by it. p = (1 + #) / (B + 1) for B sampled s, and # /
2^T when all are enumerated. An exchange that leaves the statistic undefined counts as the most extreme.

Max-T steps down: the most extreme pair is compared with the largest of all pairs, the next with the largest of the
others, and so on. Holm's adjustment needs no dependence, but can reach α among m pairs only if B + 1 >= m / α. The best
are found by elimination: while the largest difference among the judges left is significant against the largest of the
same pairs under exchange, the judge that falls the farthest behind another one leaves. With fewer than FEWEST_COMPARED
topics there is neither.
J. P. Romano & M. Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis testing, JASA 100(469),
94-108; P. R. Hansen, A. Lunde & J. M. Nason (2011), The model confidence set, Econometrica 79(2), 453-497;
M. D. Smucker, J. Allan & B. Carterette (2007), A comparison of statistical significance tests for information retrieval
evaluation, CIKM.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, Formula, Statistic, point
from judge.stats.means import effective_topics, t_interval, t_quantile
from judge.stats.resampling import (
    FEWEST_RESAMPLED,
    pooled,
    resampled,
    share_beyond,
    spread,
    topic_draws,
    topic_signs,
    undefined_too_often,
)
from judge.stats.tables import Floats, Undefined

REPLICATES = 2000
"""Resamples of topics behind the standard error of a difference."""
FEWEST_COMPARED = 8
"""Fewest topics for p-values that are adjusted for all pairs, and for elimination.

In simulations of judges that err alike, any of 10 to 45 pairs is falsely told apart in 1 to 4 % of worlds from 8 topics
on; where half of the judges err much more in some topics than in others, in 10 to 12 %.
"""
TOO_FEW = f"fewer than {FEWEST_COMPARED} topics: p is not adjusted for all pairs"
ROUNDING = 1e-6
"""Studentized statistics this close, relative to their size, are the same number."""
STEP = 2.0**-20
"""How much of a pair is added to a cell, to see how the statistic changes."""
_BLOCK, _FEWEST_COLUMNS = 400_000, 64
"""Multiplications in one product of matrices: few enough to stay in the cache and in one thread, which is far quicker
than two; and the fewest exchanges at a time."""
NO_ERROR = 1e-7
"""Standard errors below this are those of differences that no topic changes, but for rounding."""


class JudgeDifference(msgspec.Struct, frozen=True):
    """One statistic of judge `a` minus that of judge `b`; no p-value where it is undefined."""

    a: str
    b: str
    difference: Estimate
    """a minus b."""
    p: float | None
    """The p-value of this pair alone."""
    p_max_t: float | None
    """Adjusted for all pairs by the largest studentized difference, step by step; None with too few topics."""
    p_holm: float | None
    """Adjusted for all pairs after Holm; None with too few topics."""
    exact: bool
    """Whether all exchanges were enumerated, not sampled."""


class Compared(msgspec.Struct, frozen=True):
    """Every pair of judges, and which judges may be the best."""

    pairs: tuple[JudgeDifference, ...]
    best: frozenset[str]
    """The candidates that elimination leaves, and those without any comparison."""


def compare(
    pairs: Mapping[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    candidates: Collection[str] | None = None,
    permutations: int = 10_000,
    level: float = 0.95,
) -> Compared:
    """Test every pair of judges by exchanging their labels in whole topics.

    The interval of a difference is ± t_{G*-1} standard errors from resampled topics.

    Args:
        pairs: The tables C of a and b (T x k x k each), counts or weights, over the items that both judged, by the
            names of a and b; all pairs have the same topics in the same order.
        name: Key of STATISTICS.
        grades: The scale's k grades, ascending.
        rng: The source of randomness.
        candidates: The judges among which the best are found; all if None.
        permutations: B, and the most exchanges to enumerate.
        level: Confidence level.
    """
    names = list(pairs)
    tables = [(np.asarray(A, np.float64), np.asarray(B, np.float64)) for A, B in pairs.values()]
    judged = np.any([A.any(axis=(1, 2)) | B.any(axis=(1, 2)) for A, B in tables], axis=0)
    signs, exact = topic_signs(int(judged.sum()), permutations, rng)
    resampled = _resampler(STATISTICS[name], grades, rng)
    differences = [
        _difference(pair, A, B, name, grades, resampled, level) for pair, (A, B) in zip(names, tables, strict=True)
    ]
    known = [place for place, difference in enumerate(differences) if difference.value is not None]
    observed, null = _exchanged(
        [(A[judged], B[judged]) for A, B in map(tables.__getitem__, known)], signs, name, grades
    )
    few = int(judged.sum()) < FEWEST_COMPARED
    p_values = dict(zip(known, _p_values(observed, null, exact, few=few), strict=True))
    compared: list[JudgeDifference] = []
    for place, ((a, b), difference) in enumerate(zip(names, differences, strict=True)):
        p, p_max_t, p_holm = p_values.get(place, (None, None, None))
        if few and place in p_values and not difference.reason:
            difference = replace(difference, reason=TOO_FEW)
        compared.append(
            JudgeDifference(a=a, b=b, difference=difference, p=p, p_max_t=p_max_t, p_holm=p_holm, exact=exact)
        )
    among = {judge for pair in names for judge in pair} if candidates is None else set(candidates)
    if few:
        return Compared(tuple(compared), frozenset(among))
    signed = observed * [_direction(*tables[place], STATISTICS[name], grades) for place in known]
    best = _not_eliminated([names[place] for place in known], signed, null, exact, among, 1 - level)
    return Compared(tuple(compared), best)


def _p_values(
    observed: Floats, null: NDArray[np.float32], exact: bool, *, few: bool
) -> Iterator[tuple[float | None, float | None, float | None]]:
    """The p of each pair alone, by max-T and after Holm; the last two are None with too few topics."""
    beyond = (null >= observed[:, None]).sum(axis=1)
    raw = share_beyond(beyond, null.shape[1], exact)
    stepped = np.maximum(_step_down(observed, null, exact), raw)
    adjusted = holm(raw)
    for alone, *of_all in zip(raw, stepped, adjusted, strict=True):
        max_t, after_holm = (None if few else float(p) for p in of_all)
        yield float(alone), max_t, after_holm


def _direction(A: Floats, B: Floats, statistic: Statistic, grades: Sequence[int]) -> float:
    """1 where the first judge is better, -1 where the second is."""
    a, b = statistic.worth(statistic(np.array([A.sum(axis=0), B.sum(axis=0)]), grades))
    return float(np.sign(a - b))


def _exchanged(
    tables: Sequence[tuple[Floats, Floats]], signs: NDArray[np.int8], name: str, grades: Sequence[int]
) -> tuple[Floats, NDArray[np.float32]]:
    """The studentized difference of each pair without its sign (m,), and under each of the B exchanges (m x B)."""
    observed = np.empty(len(tables))
    null = np.empty((len(tables), len(signs)), dtype=np.float32)
    statistic = STATISTICS[name]
    terms = statistic.terms(grades) if statistic.terms is not None else np.eye(len(grades) ** 2)
    columns = max(_FEWEST_COLUMNS, _BLOCK // (max(signs.shape[1], 1) * terms.shape[1]))
    for i, pair in enumerate(tables):
        a, b = (tables_of_one.reshape(-1, len(terms)) @ terms for tables_of_one in pair)
        (here,) = _studentized(a, b, np.ones((len(a), 1)), statistic, grades)
        # Numbers that tie with the observed one but for rounding count as no less than it.
        observed[i] = abs(here) * (1 - ROUNDING)
        for start in range(0, len(signs), columns):
            some = slice(start, start + columns)
            by_topic = np.ascontiguousarray(signs[some].T, dtype=np.float64)
            null[i, some] = np.abs(_studentized(a, b, by_topic, statistic, grades))
    return observed, null


def _step_down(observed: Floats, null: NDArray[np.float32], exact: bool) -> Floats:
    """Step-down p of P observed statistics against the B samples of their null (P x B)."""
    p = np.empty(len(observed))
    largest = np.zeros(null.shape[1], dtype=np.float32)
    order = np.argsort(observed, kind="stable")
    for i in order:
        np.maximum(largest, null[i], out=largest)
        p[i] = share_beyond((largest >= observed[i]).sum(), len(largest), exact)
    # A pair is no more significant than one that is more extreme.
    p[order[::-1]] = np.maximum.accumulate(p[order[::-1]])
    return p


def _not_eliminated(
    pairs: Sequence[tuple[str, str]],
    signed: Floats,
    null: NDArray[np.float32],
    exact: bool,
    among: Collection[str],
    alpha: float,
) -> frozenset[str]:
    """The judges of `among` that may be the best, at the level alpha in each step.

    `signed` has the studentized difference of each pair (P,), above 0 where a is better, `null` its size under exchange
    (P x B).
    """
    left = set(among)
    while True:
        inside = np.array([a in left and b in left for a, b in pairs], dtype=bool)
        if not inside.any():
            return frozenset(left)
        largest = np.abs(signed[inside]).max()
        # An extreme observation may be infinite, as may a sample.
        if share_beyond((null[inside].max(axis=0) >= largest).sum(), null.shape[1], exact) > alpha:
            return frozenset(left)
        worst = int(np.where(inside, np.abs(signed), -1.0).argmax())
        left.remove(pairs[worst][int(signed[worst] > 0)])


def sign_flip(differences: Floats, rng: np.random.Generator, *, permutations: int = 10_000) -> float:
    """Two-sided p of the mean of differences (T,) whose signs are arbitrary under the null; exact if 2^T <= B.

    R. A. Fisher (1935), The design of experiments, section 21.

    Differences 1, 2 and 3 have the sum 6; of 8 ways to set the signs only all plus and all minus reach it:

    >>> 2 / 2**3, sign_flip(np.array([1.0, 2.0, 3.0]), np.random.default_rng(1))
    (0.25, 0.25)
    """
    d = np.asarray(differences, dtype=np.float64)
    signs, exact = topic_signs(len(d), permutations, rng)
    beyond = np.abs(signs @ d) >= abs(d.sum()) - ROUNDING * np.abs(d).sum()
    return float(share_beyond(beyond.sum(), len(signs), exact))


def holm(p: Sequence[float] | Floats) -> Floats:
    """Holm's adjusted p-values (m,): the running maximum of (m-j+1) p_(j), at most 1.

    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6(2), 65-70.

    >>> [3 * 0.01, 2 * 0.03, max(2 * 0.03, 1 * 0.04)], holm([0.01, 0.03, 0.04]).tolist()
    ([0.03, 0.06, 0.06], [0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _studentized(a: Floats, b: Floats, signs: Floats, statistic: Statistic, grades: Sequence[int]) -> Floats:
    """The difference of the statistic after each exchange of topics (B,), over its standard error; ∞ where undefined.

    a and b are the terms of each topic (T x f), signs T x B. The error is that of the delta method: √Σ_t ψ_t² with
    ψ_t = Σ g_a a_t* - Σ g_b b_t*, where g are the slopes of the statistic at the exchanged sums Σ_t a_t* and Σ_t b_t*.
    A statistic of shares does not change with the size of its table, so Σ_t ψ_t is 0. No difference at all is 0,
    whatever its error.
    """
    plus = a + b
    minus = a - b
    # Counts are whole numbers and weights on a grid, so sums of cells and of margins are exact.
    both = plus.sum(axis=0)[:, None]
    moved = minus.T @ signs
    (of_a, slope_a), (of_b, slope_b) = (
        _with_slopes(sums / 2, statistic, grades) for sums in (both + moved, both - moved)
    )
    # 2ψ_t = (g_a - g_b)(a_t + b_t) ± (g_a + g_b)(a_t - b_t), with a minus where t is exchanged.
    psi = minus @ (slope_a + slope_b)
    psi *= signs
    psi += plus @ (slope_a - slope_b)
    difference = of_a - of_b
    error = np.sqrt(np.einsum("tb,tb->b", psi, psi)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(difference) < 1e-12, 0.0, difference / np.where(error < NO_ERROR, 0.0, error))
    return np.where(np.isnan(t), np.inf, t)


def _with_slopes(terms: Floats, statistic: Statistic, grades: Sequence[int]) -> tuple[Floats, Floats]:
    """The statistic at each column of terms (f x B), and how it rises with each term (f x B)."""
    if statistic.slopes is not None:
        return statistic.slopes(terms, grades)
    # The tables as they are, then with a little more in each cell, so that one call gives the statistic of all.
    cells, B = terms.shape
    tables = terms.T + STEP * np.eye(cells + 1, cells, k=-1)[:, None]
    value, *more = statistic(tables.reshape(-1, len(grades), len(grades)), grades).reshape(cells + 1, B)
    return value, (np.array(more) - value) / STEP


def _resampler(statistic: Formula, grades: Sequence[int], rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """From C (T x k x k) to a statistic on its resampled topics; tables share draws, and equal ones the values."""
    draws = cache(lambda T: topic_draws(T, REPLICATES, rng))
    values: dict[bytes, Floats] = {}

    def resampled(C: Floats) -> Floats:
        key = C.tobytes()
        if key not in values:
            values[key] = statistic(pooled(draws(len(C)), C), grades)
        return values[key]

    return resampled


def _difference(
    names: tuple[str, str],
    A: Floats,
    B: Floats,
    name: str,
    grades: Sequence[int],
    resampled: Callable[[Floats], Floats],
    level: float,
) -> Estimate:
    """The statistic of A minus that of B."""
    judged = A.any(axis=(1, 2)) | B.any(axis=(1, 2))
    A = A[judged]
    B = B[judged]
    T = len(A)
    n = round(A.sum())
    statistic = STATISTICS[name]
    value = float((statistic(A.sum(axis=0)[None], grades) - statistic(B.sum(axis=0)[None], grades))[0])
    if np.isnan(value):
        return Estimate(value=None, low=None, high=None, n=n, topics=T, reason=_why(names, A, B, name, grades))
    if T < FEWEST_RESAMPLED:
        return Estimate(value=value, low=None, high=None, n=n, topics=T, reason=f"fewer than {FEWEST_RESAMPLED} topics")
    of_a = resampled(A)
    of_b = resampled(B)
    without = statistic(A.sum(axis=0) - A, grades) - statistic(B.sum(axis=0) - B, grades)
    undefined = undefined_too_often(of_a - of_b, "topics", without)
    if undefined:
        return Estimate(value=value, low=None, high=None, n=n, topics=T, reason=undefined)
    sizes = np.maximum(A.sum(axis=(1, 2)), B.sum(axis=(1, 2)))
    return t_interval(
        Estimate(value=value, low=None, high=None, n=n, topics=T), spread(of_a - of_b, T), sizes, level=level
    )


def _why(names: tuple[str, str], A: Floats, B: Floats, name: str, grades: Sequence[int]) -> str:
    """Which of the two judges has no value, and why."""
    for judge, X in zip(names, (A, B), strict=True):
        value = point(name, X.sum(axis=0), grades)
        if isinstance(value, Undefined):
            return f"{judge}: {value.reason}"
    return f"{name} is undefined"


DRAWS = 20_000
"""Draws of the largest t statistic; its quantile is then known to about 1 %."""
_MOST_NUMBERS = 2**24
"""The most random numbers that are held at once."""


def nested_folds(
    tables: NDArray[Any],
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    choose_by: NDArray[Any] | None = None,
    folds: int = 5,
    repeats: int = 20,
) -> float | Undefined:
    """Choose on all folds but one, score on the left-out topics of all folds together.

    The value is the mean over repeated random divisions of the topics; the first of equally good candidates is chosen,
    by the tables `choose_by` where they are given. Tables are C by candidate and topic (m x T x k x k).
    S. Varma & R. Simon (2006), Bias in error estimation when using cross-validation for model selection, BMC
    Bioinformatics 7, 91.
    """
    judged, by = _judged(tables, choose_by)
    _, T, k, _ = judged.shape
    if T < 2:
        return Undefined("fewer than 2 topics")
    folds = min(folds, T)
    # Shuffled topics are dealt out in turn, so the sizes of folds differ by a topic at most.
    fold = rng.permuted(np.tile(np.arange(T) % folds, (repeats, 1)), axis=1)
    left_out = (fold[:, None, :] == np.arange(folds)[:, None]).astype(np.float64).reshape(-1, T)
    chosen, defined = _choose(np.array([pooled(1 - left_out, C) for C in by]), name, grades)
    scored = np.array([pooled(left_out, C) for C in judged])[chosen, np.arange(repeats * folds)]
    values = STATISTICS[name](scored.reshape(repeats, folds, k, k).sum(axis=1), grades)
    values = values[defined.reshape(repeats, folds).all(axis=1) & ~np.isnan(values)]
    return float(values.mean()) if len(values) else Undefined(f"{name} is undefined on folds of the topics")


def after_choice(
    tables: NDArray[Any],
    chosen: int,
    name: str,
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
) -> Estimate:
    """The statistic of the chosen candidate, whose value is the greatest, with an interval that allows for the choice.

    The lower end reaches down until the lower ends of all candidates hold at once (`simultaneous_quantile`). The upper
    end is that of `resampled`: if the greatest value is too low, so is the value of the truly best candidate, which no
    luck has chosen. The value is too good on average; the interval is not. The tables are those of
    `nested_folds`.
    """
    resamples, draws = rng.spawn(2)
    below = simultaneous_quantile(tables, chosen, name, grades, draws, level)
    return resampled(name, tables[chosen], grades, resamples, replicates=replicates, level=level, below=below).estimate


def simultaneous_quantile(
    tables: NDArray[Any], chosen: int, name: str, grades: Sequence[int], rng: np.random.Generator, level: float = 0.95
) -> float:
    """How many standard errors below their values the lower ends of m candidates lie that hold at once.

    It is the quantile of the largest of m t statistics. Their numerators depend on each other as the candidates'
    jackknifed values do; a candidate that is undefined without one of the topics counts as independent of the others.
    Their denominators are independent, with the degrees of freedom of the chosen candidate: each candidate's error is
    estimated by itself, and the choice favors a candidate whose error is estimated too small. Half of the error that
    the level allows for one end is kept in reserve: that far out, a coefficient on Fisher's z passes t two to three
    times as often as it should (simulated, 10 and 25 topics).
    T. Hothorn, F. Bretz & P. Westfall (2008), Simultaneous inference in general parametric models, Biometrical Journal
    50(3), 346-363.
    """
    judged, _ = _judged(tables, None)
    m, T, k, _ = judged.shape
    sizes = judged[chosen].sum(axis=(1, 2))
    df = effective_topics(sizes[sizes > 0]) - 1
    if df <= 0:
        return math.inf
    left = judged.sum(axis=1, keepdims=True) - judged
    values = STATISTICS[name](left.reshape(m * T, k, k), grades).reshape(m, T)
    centered = values - values.mean(axis=1, keepdims=True)
    size = np.sqrt((centered**2).sum(axis=1, keepdims=True))
    # A candidate that no topic changes cannot be lucky.
    units = np.divide(centered, size, out=np.zeros_like(centered), where=size > 1e-12)
    known = ~np.isnan(values).any(axis=1)
    z = np.empty((DRAWS, m))
    # Of 50,000 topics, all at once would take 8 GB.
    rows = max(1, _MOST_NUMBERS // T)
    for start in range(0, DRAWS, rows):
        some = slice(start, start + rows)
        z[some, known] = rng.standard_normal((len(z[some]), T)) @ units[known].T
    z[:, ~known] = rng.standard_normal((DRAWS, int((~known).sum())))
    t = (z / np.sqrt(rng.chisquare(df, z.shape) / df)).max(axis=1)
    return max(float(np.quantile(t, (3 + level) / 4)), t_quantile(level, df))


def _judged(tables: NDArray[Any], by: NDArray[Any] | None) -> tuple[Floats, Floats]:
    """Both tables, without the topics that have no item in either."""
    by = tables if by is None else by
    used = tables.any(axis=(0, 2, 3)) | by.any(axis=(0, 2, 3))
    return np.asarray(tables[:, used], dtype=np.float64), np.asarray(by[:, used], dtype=np.float64)


def _choose(sums: Floats, name: str, grades: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The best candidate on each of B samples (m x B x k x k), and whether any candidate has a value there."""
    m, B, k, _ = sums.shape
    statistic = STATISTICS[name]
    worth = statistic.worth(statistic(sums.reshape(m * B, k, k), grades).reshape(m, B))
    defined: NDArray[np.bool_] = ~np.isnan(worth)
    return np.where(defined, worth, -np.inf).argmax(axis=0), np.any(defined, axis=0)
