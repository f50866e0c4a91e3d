"""Intervals of agreement statistics over topics, and over items as if topics did not matter.

Everything is drawn from tables of counts, so only the cost of making the tables grows with the items.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.agreement import STATISTICS, PairMean, Statistic, point
from judge.stats.means import FEWEST_TOPICS, ONE_TOPIC, effective_topics, most_unseen, t_interval
from judge.stats.tables import Floats, Undefined, is_weighted

FEWEST_RESAMPLED = 5
"""Fewest topics to resample; a mean needs fewer, but few topics give few different resamples."""
MOST_UNDEFINED = 0.05
"""Largest share of undefined resamples under an interval.

Above it the defined ones are a biased sample: if only one topic has any disagreement, each of them has that topic, and
they hardly differ.
"""
FEWEST_OTHERS = 5
"""Fewest items off the commonest grade for an interval of kappa, alpha or tau.

All that these coefficients know comes from such items. In simulations with 0 to 4 of them, 95 % intervals hold the
truth in as few as 78 % of worlds.
"""
PERFECT = "perfect agreement"
EQUAL = "all pairs equal"
MOST_LEFT_OUT = 1000
"""Most topics that a jackknife leaves out one at a time; of 100,000, that takes an hour and a half."""
_BLOCK = 200_000
"""Multiplications in one product of matrices."""
UNEQUAL = "items have unequal weights, or two orders each"
"""Why tables of weights have no interval over items: they do not hold the weight of each item."""


class Resampled(msgspec.Struct, frozen=True):
    """A statistic with its interval over topics, beside the one that ignores them."""

    estimate: Estimate
    """With the interval over topics."""
    item: Estimate
    """With the interval over items."""
    design_effect: float | None
    """Squared ratio of the two standard errors; None where either interval is undefined."""


def topic_draws(T: int, replicates: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """How often each of T topics is in each of B resamples of T topics with replacement (B x T)."""
    shares = np.full(T, 1 / T)
    draws = np.empty((replicates, T), np.int32)
    # Some at a time, which are the same ones: numpy's wide integers of 100,000 topics would take 1.6 GB.
    rows = max(1, _BLOCK // T)
    for start in range(0, replicates, rows):
        some = draws[start : start + rows]
        some[:] = rng.multinomial(T, shares, size=len(some))
    return draws


def topic_signs(T: int, most: int, rng: np.random.Generator) -> tuple[NDArray[np.int8], bool]:
    """Signs (B x T), and whether they are all 2^T rows: they are if `most` allows as many, else they are random."""
    if most >= 2**T:
        return (1 - 2 * (np.arange(2**T)[:, None] >> np.arange(T) & 1)).astype(np.int8), True
    signs = np.empty((most, T), dtype=np.int8)
    start = 0
    for block in random_signs(T, most, rng):
        signs[start : start + len(block)] = block
        start += len(block)
    return signs, False


def random_signs(T: int, most: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The random rows of `topic_signs`, some at a time, since all of thousands of topics would fill the memory."""
    rows = max(1, _BLOCK // T)
    for start in range(0, most, rows):
        yield 1 - 2 * rng.integers(0, 2, size=(min(rows, most - start), T))


def share_beyond(beyond: Any, B: int, exact: bool) -> Any:
    """The p-value (or more) if so many of B samples are as extreme as the observation; of all, it is one if `exact`."""
    return beyond / B if exact else (1 + beyond) / (B + 1)


def pooled(W: NDArray[Any], tables: NDArray[Any]) -> Floats:
    """Σ_t w_t C_t of tables (T x k x k) under each row of weights (B x k x k).

    The sums are made in blocks that a library of matrices leaves in one thread, which is many times quicker than two.
    """
    T, k, _ = tables.shape
    flat = np.asarray(tables, np.float64).reshape(T, k * k)
    rows = max(1, _BLOCK // (T * k * k))
    sums = np.empty((len(W), k * k))
    for start in range(0, len(W), rows):
        np.matmul(np.asarray(W[start : start + rows], np.float64), flat, out=sums[start : start + rows])
    return sums.reshape(-1, k, k)


def item_draws(C: NDArray[np.int64], replicates: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Resamples of the items behind C, topics ignored (B x k x k): multinomial draws over its k² cells."""
    n = int(C.sum())
    return rng.multinomial(n, C.reshape(-1) / n, size=replicates).reshape(replicates, *C.shape)


def resampled(
    name: str, tables: NDArray[Any], grades: Sequence[int], rng: np.random.Generator, **options: Any
) -> Resampled:
    """One statistic of `all_resampled`."""
    return all_resampled([name], tables, grades, rng, **options)[name]


def all_resampled(
    names: Iterable[str],
    tables: NDArray[Any],
    grades: Sequence[int],
    rng: np.random.Generator,
    *,
    replicates: int = 2000,
    level: float = 0.95,
    below: float | None = None,
) -> dict[str, Resampled]:
    """Statistics with their intervals over topics and over items, from the same draws.

    A statistic's row says which kind: cluster-robust t intervals for means over pairs, or intervals on Fisher's z with
    the standard error of the bootstrap or the jackknife (`fisher_interval`). Whole topics are drawn with replacement,
    or left out. Tables of weights have no interval over items. Where no pair errs nothing varies, and the interval is
    that of `_without_error`.

    The order of topics should not depend on the input's. The interval over topics reaches `below` standard errors below
    the value; as many as above if None.
    """
    judged = tables[tables.any(axis=(1, 2))]

    @cache
    def weights() -> NDArray[np.int32]:
        return topic_draws(len(judged), replicates, rng)

    @cache
    def drawn() -> tuple[Floats, NDArray[np.int64] | None]:
        topics = pooled(weights(), judged)
        C = judged.sum(axis=0)
        return topics, None if is_weighted(C) else item_draws(C, replicates, rng)

    results = {}
    for name in names:
        found = _resampled(name, judged, grades, drawn, level, below)
        if found.estimate.reason in (PERFECT, EQUAL):
            estimate = _without_error(name, found.estimate, judged, grades, weights(), level, below)
            found = msgspec.structs.replace(found, estimate=estimate)
        if found.item.reason in (PERFECT, EQUAL):
            item = _exact(name, found.item, judged.sum(axis=0), grades, most_unseen(found.item.n, level))
            found = msgspec.structs.replace(found, item=item)
        results[name] = found
    return results


def _without_error(
    name: str,
    bare: Estimate,
    judged: NDArray[Any],
    grades: Sequence[int],
    weights: NDArray[np.int32],
    level: float,
    below: float | None,
) -> Estimate:
    """The interval over topics where no pair errs, so that nothing varies between topics.

    At most a share q of all topics has an error (`most_unseen`), and in these every grade of the judge may be at an end
    of the scale. That is exact whatever the errors of a topic have in common, and wide where topics are few. It is cut
    where one error at an end of the scale would put the ends: no error is never worth less than one.
    """
    count = effective_topics(judged.sum(axis=(1, 2)))
    if count < 2:
        return msgspec.structs.replace(bare, reason=ONE_TOPIC)
    confidence = level
    if below is not None:
        from scipy.special import stdtr

        confidence = 1 - 2 * float(stdtr(count - 1, -below))
    exact = _exact(name, bare, judged.sum(axis=0), grades, most_unseen(count, confidence))
    if exact.low is None or exact.high is None or bare.value is None:
        return exact

    def with_error(tables: NDArray[Any]) -> Estimate:
        return _resampled(name, tables, grades, lambda: (pooled(weights, tables), None), level, below).estimate

    known = [estimate for tables in _with_one_error(judged) if (estimate := with_error(tables)).low is not None]
    if not known:
        return exact
    low = max(exact.low, min(estimate.low for estimate in known if estimate.low is not None))
    high = min(exact.high, max(estimate.high for estimate in known if estimate.high is not None))
    return msgspec.structs.replace(exact, low=min(low, bare.value), high=max(high, bare.value))


def _with_one_error(judged: NDArray[Any]) -> list[NDArray[Any]]:
    """The tables with one grade of the judge at an end of the scale, for each pair of grades that was given.

    It is an item of the topic that has most of these pairs.
    """
    found = []
    for human, judge in np.argwhere(judged.any(axis=0)):
        topic = judged[:, human, judge].argmax()
        for end in {0, judged.shape[1] - 1} - {int(judge)}:
            tables = judged.copy()
            moved = min(tables[topic, human, judge], 1)
            tables[topic, human, judge] -= moved
            tables[topic, human, end] += moved
            found.append(tables)
    return found


def _exact(name: str, bare: Estimate, C: NDArray[Any], grades: Sequence[int], share: float) -> Estimate:
    """The least and greatest value if a share of the judge's grades is at an end of the scale, or farthest off."""
    given = C.sum(axis=1)
    value = bare.value
    farthest = [0 if grade - grades[0] > grades[-1] - grade else len(grades) - 1 for grade in grades]
    values = [] if value is None else [value]
    for ends in (farthest, [0] * len(grades), [len(grades) - 1] * len(grades)):
        astray = np.zeros(C.shape)
        astray[np.arange(len(grades)), ends] = given
        if not isinstance(mixed := point(name, (1 - share) * C + share * astray, grades), Undefined):
            values.append(mixed)
    # What no grade of the judge could change, such as `within_one` of two grades, has no interval.
    if min(values, default=0.0) == max(values, default=0.0):
        return bare
    return msgspec.structs.replace(bare, low=min(values), high=max(values), reason=None)


def _resampled(
    name: str,
    judged: NDArray[Any],
    grades: Sequence[int],
    drawn: Callable[[], tuple[Floats, NDArray[np.int64] | None]],
    level: float,
    below: float | None,
) -> Resampled:
    """One statistic by what varies between topics, from the tables of those that have items."""
    C = judged.sum(axis=0)
    n = round(C.sum())
    T = len(judged)
    value = point(name, C, grades)
    if isinstance(value, Undefined):
        undefined = Estimate(value=None, low=None, high=None, n=n, topics=T, reason=value.reason)
        return Resampled(undefined, undefined, None)
    statistic = STATISTICS[name]
    sizes = judged.sum(axis=(1, 2))
    if isinstance(statistic.formula, PairMean):
        return _of_mean(value, statistic.formula.scores(grades), judged, level, below)
    if statistic.interval == "jackknife":
        return _jackknifed(statistic, value, judged, grades, level, below)
    of_topics, of_items = drawn()
    topics = statistic(of_topics, grades)
    given = C.sum(axis=1)
    others = round(float(given.sum() - given.max()))
    without = statistic(C - judged, grades)
    bare = Estimate(value=value, low=None, high=None, n=n, topics=T)
    estimate = fisher_interval(bare, topics, sizes, "topics", level, without=without, others=others, below=below)
    if of_items is None:
        return Resampled(estimate, Estimate(value=value, low=None, high=None, n=n, topics=T, reason=UNEQUAL), None)
    items = statistic(of_items, grades)
    item = fisher_interval(bare, items, np.ones(n), "items", level, others=others)
    return _pair(estimate, item, spread(topics, T), spread(items, n))


def undefined_too_often(replicates: Floats, what: str, without: Floats | None = None) -> str | None:
    """Why too many replicates (B,) are nan to measure the spread; None if they are not.

    `without` has the statistic without each unit in turn (T,); the reason names `what` was resampled.
    """
    if without is not None and np.isnan(without).any():
        return f"undefined without one of the {what}"
    share = float(np.isnan(replicates).mean())
    return f"undefined on {share:.0%} of resampled {what}" if share > MOST_UNDEFINED else None


def spread(replicates: Floats, units: int) -> float:
    """The standard error of a statistic from its replicates (B,) of so many units; undefined ones are left out.

    Resamples of few units vary too little: their variance has the divisor T, so T / (T - 1) is made good.
    T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69(4), 371-386.
    """
    defined = replicates[~np.isnan(replicates)]
    return float(defined.std(ddof=1)) * (units / (units - 1)) ** 0.5 if len(defined) > 1 and units > 1 else 0.0


def fisher_interval(
    bare: Estimate,
    replicates: Floats,
    sizes: NDArray[Any],
    what: str,
    level: float = 0.95,
    *,
    without: Floats | None = None,
    others: int | None = None,
    below: float | None = None,
) -> Estimate:
    """tanh(atanh κ ± t SE / (1 - κ²)) of a coefficient κ with SE from its replicates.

    The standard error is carried to Fisher's z by its derivative, since κ of a replicate may be 1, where z is infinite;
    t has G* - 1 degrees of freedom (`means.effective_topics`). There is no interval where too many replicates are
    undefined, where fewer than FEWEST_OTHERS items are off the commonest grade, nor for κ = ±1.

    `bare` is κ without an interval; `replicates` are κ of resamples (B,), `without` κ without each unit in turn (T,),
    nan where undefined. `others` counts items off the commonest grade. The interval reaches `below` standard errors
    below κ, or as many as above.
    """
    reason = undefined_too_often(replicates, what, without)
    if reason is None and others is not None and others < FEWEST_OTHERS:
        reason = f"fewer than {FEWEST_OTHERS} items off the commonest grade"
    bare = msgspec.structs.replace(bare, reason=reason)
    return _on_z(bare, spread(replicates, len(sizes)), sizes, what, level, below)


def _on_z(bare: Estimate, se: float, sizes: NDArray[Any], what: str, level: float, below: float | None) -> Estimate:
    """The interval of a coefficient on Fisher's z, or the value with the reason why there is none."""
    value = bare.value or 0.0
    reason = bare.reason
    if len(sizes) < FEWEST_RESAMPLED:
        reason = f"fewer than {FEWEST_RESAMPLED} {what}"
    elif reason is None and 1 - value**2 < 1e-12:
        reason = PERFECT if value > 0 else "perfect disagreement"
    if reason:
        return msgspec.structs.replace(bare, reason=reason)
    return t_interval(bare, se, sizes, level=level, bounds=(-1, 1), below=below, what=what)


def jackknife_interval(
    statistic: Callable[[NDArray[np.bool_]], float | Undefined],
    topics: NDArray[Any],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """A statistic of the items in a mask (N,) with a t interval, its variance from leaving out one topic at a time.

    V = (T - 1)/T Σ_t (θ_(t) - θ̄)², and t has G* - 1 degrees of freedom (`means.effective_topics`).
    B. Efron & C. Stein (1981), The jackknife estimate of variance, Ann. Stat. 9(3), 586-596.
    More than MOST_LEFT_OUT topics are left out in as many groups, drawn by chance, which count as topics here.
    P. S. Kott (2001), The delete-a-group jackknife, J. Off. Stat. 17(4), 521-526.
    """
    labels, place, sizes = np.unique(topics, return_inverse=True, return_counts=True)
    n = len(place)
    T = len(labels)
    value = statistic(np.ones(n, dtype=bool))
    if isinstance(value, Undefined):
        return Estimate(value=None, low=None, high=None, n=n, topics=T, reason=value.reason)
    if T < FEWEST_RESAMPLED:
        return Estimate(value=value, low=None, high=None, n=n, topics=T, reason=f"fewer than {FEWEST_RESAMPLED} topics")
    grouped = T > MOST_LEFT_OUT
    if grouped:
        group_of = np.random.default_rng(0).permutation(T) % MOST_LEFT_OUT
        place = group_of[place]
        sizes = np.bincount(place)
    left: list[float] = []
    for t in range(len(sizes)):
        without = statistic(place != t)
        if isinstance(without, Undefined):
            lacking = "some topics" if grouped else f"topic {labels[t]}"
            return Estimate(
                value=value, low=None, high=None, n=n, topics=T, reason=f"without {lacking}: {without.reason}"
            )
        left.append(without)
    se = float(np.sqrt((len(sizes) - 1) * np.var(left)))
    return t_interval(Estimate(value=value, low=None, high=None, n=n, topics=T), se, sizes, level=level, bounds=bounds)


def _jackknifed(
    statistic: Statistic, value: float, judged: NDArray[Any], grades: Sequence[int], level: float, below: float | None
) -> Resampled:
    """Intervals on Fisher's z whose standard error comes from leaving out one topic, or one item, at a time."""
    C = judged.sum(axis=0)
    n = round(C.sum())
    T = len(judged)

    def error(left: NDArray[Any], weights: NDArray[Any]) -> float:
        # AC's formula gives 1 for a single grade throughout; an interval without such rests would be biased.
        values = np.nan_to_num(statistic(left, grades), nan=1.0)
        # T / (T - 1), as in `spread`, times the jackknife's (T - 1) / T.
        return float(np.sqrt((weights * (values - np.average(values, weights=weights)) ** 2).sum()))

    topic_se = error(C - judged, np.ones(T))
    bare = Estimate(value=value, low=None, high=None, n=n, topics=T)
    estimate = _on_z(bare, topic_se, judged.sum(axis=(1, 2)), "topics", level, below)
    if is_weighted(C):
        return Resampled(estimate, Estimate(value=value, low=None, high=None, n=n, topics=T, reason=UNEQUAL), None)
    cells = np.flatnonzero(C)
    less_item = (C.reshape(-1) - np.eye(C.size, dtype=np.int64)[cells]).reshape(-1, *C.shape)
    item_se = error(less_item, C.reshape(-1)[cells])
    return _pair(estimate, _on_z(bare, item_se, np.ones(n), "items", level, None), topic_se, item_se)


def _of_mean(mean: float, scores: Floats, judged: NDArray[Any], level: float, below: float | None) -> Resampled:
    """The interval of `means.mean_interval` from tables, and the same with every item as its own topic."""
    C = judged.sum(axis=0)
    counts = judged.sum(axis=(1, 2))
    total = float(C.sum())
    n = round(C.sum())
    T = len(judged)
    seen = scores[C > 0]
    bounds = (float(scores.min()), float(scores.max()))
    residuals = np.tensordot(judged, scores, axes=2) - counts * mean

    def interval(squares: float, sizes: NDArray[Any], what: str, below: float | None) -> tuple[Estimate, float]:
        units = len(sizes)
        if units < FEWEST_TOPICS:
            return Estimate(
                value=mean, low=None, high=None, n=n, topics=T, reason=f"fewer than {FEWEST_TOPICS} {what}"
            ), 0.0
        if seen.min() == seen.max():
            return Estimate(value=mean, low=None, high=None, n=n, topics=T, reason=EQUAL), 0.0
        se = float(np.sqrt(units / (units - 1) * squares)) / total
        if se <= 1e-12 * np.abs(seen).max():
            return Estimate(value=mean, low=None, high=None, n=n, topics=T, reason="all topic means equal"), 0.0
        return t_interval(
            Estimate(value=mean, low=None, high=None, n=n, topics=T), se, sizes, level=level, bounds=bounds, below=below
        ), se

    estimate, topic_se = interval(float(residuals @ residuals), counts, "topics", below)
    if is_weighted(C):
        return Resampled(estimate, Estimate(value=mean, low=None, high=None, n=n, topics=T, reason=UNEQUAL), None)
    item, item_se = interval(float((C * (scores - mean) ** 2).sum()), np.ones(n), "items", None)
    return _pair(estimate, item, topic_se, item_se)


def _pair(estimate: Estimate, item: Estimate, topic_se: float, item_se: float) -> Resampled:
    known = estimate.low is not None and item.low is not None
    return Resampled(estimate, item, (topic_se / item_se) ** 2 if known else None)
