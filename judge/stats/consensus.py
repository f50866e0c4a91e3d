"""A grade for each item from how often it got each grade: majority, mean, median, and rules for ties.

Counts are N x k: a row for each item, a column for each grade of the scale. A code is a grade's place in the scale, -1
where an item has no label. All sums are of integers, so no tie is broken by a rounding error.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats

Counts = NDArray[np.int64]
"""How often each item got each grade (N x k)."""
Codes = NDArray[np.int8]
"""Places in the scale, -1 where there is no grade."""
_HalfDown = Callable[[int, int, int], bool]

ALIKE = 1e-9
"""Weighted votes and probabilities that differ by less than this share of the greatest are a tie."""


class Tie(NamedTuple):
    """A rule for items that the majority leaves open."""

    words: str
    """The rule in words."""
    choose: "Callable[[Counts, NDArray[np.bool_], NDArray[np.int64]], Codes]"
    """From counts (N x k), modes (N x k) and the scale's values (k,) to codes (N,); each item has a label."""


def majority(
    counts: Counts,
    grades: Sequence[int],
    *,
    share: str = "plurality",
    tie: str = "mean-half-up",
    votes: Floats | None = None,
) -> Codes:
    """The grade that most labels name (N,); the tie rule decides where there is no such grade.

    The default is the rule of CAsT-ReGIn, read as in `judge.stats.means.consensus`. Weighted votes (N x k) replace the
    counts when the majority is taken; means and medians of tied items are still those of the labels. A ValueError if
    `share` or `tie` names no rule.
    """
    if share not in SHARES or tie not in TIES:
        raise ValueError(f"{share}, {tie}: expected one of {', '.join(SHARES)}, and one of {', '.join(TIES)}")
    ballot = counts if votes is None else votes
    mode = modes(ballot)
    code = np.where(counts.any(axis=1), mode.argmax(axis=1), -1).astype(np.int8)
    decided = mode.sum(axis=1) == 1
    if share == "absolute":
        decided &= 2 * ballot.max(axis=1) > ballot.sum(axis=1)
    open_ = np.flatnonzero(~decided & (code >= 0))
    code[open_] = TIES[tie].choose(counts[open_], mode[open_], np.asarray(grades, dtype=np.int64))
    return code


def modes(ballot: NDArray[Any]) -> NDArray[np.bool_]:
    """Which grades got the most votes (N x k); all grades where there are no votes."""
    most = ballot.max(axis=1, keepdims=True)
    return np.asarray(ballot >= (most if ballot.dtype.kind == "i" else most * (1 - ALIKE)))


def mean_grade(counts: Counts, grades: Sequence[int]) -> Codes:
    """The grade nearest to the mean of all labels (N,); halfway between two grades, the higher one."""
    return _of_labeled(_mean, counts, grades)


def median_grade(counts: Counts, grades: Sequence[int]) -> Codes:
    """The median of all labels (N,); of two different grades in the middle, the grade nearest to their mean."""
    return _of_labeled(_median, counts, grades)


def means(counts: Counts, grades: Sequence[int]) -> Floats:
    """The mean of each item's labels (N,), nan without labels."""
    n = counts.sum(axis=1)
    mean: Floats = np.full(len(n), np.nan)
    np.divide(counts @ np.asarray(grades, dtype=np.int64), n, out=mean, where=n > 0)
    return mean


def entropy(counts: Counts) -> Floats:
    """The entropy of each item's labels in bits (N,): 0 where all agree, log2 k at most, nan without labels."""
    n = counts.sum(axis=1)
    total = np.zeros(len(n))
    for column in counts.T:
        p = column / np.maximum(n, 1)
        total -= p * np.log2(p, out=np.zeros_like(p), where=p > 0)
    # Adding 0.0 turns the -0.0 of items where all agree into 0.0.
    return np.where(n > 0, total + 0.0, np.nan)


def mode_shares(ballot: NDArray[Any]) -> Floats:
    """How much each grade is the majority (N x k): grades that tie for most votes share it; 0 where there are no votes.

    >>> mode_shares(np.array([[0, 2, 1], [1, 0, 1], [0, 0, 0]])).tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    mode = modes(ballot) & ballot.any(axis=1, keepdims=True)
    return np.asarray(mode / np.maximum(mode.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def against_others(
    worker: NDArray[np.integer[Any]],
    item: NDArray[np.integer[Any]],
    code: NDArray[np.integer[Any]],
    counts: Counts,
    workers: int,
) -> NDArray[Any]:
    """For each worker the table (W x k x k) of the majority of the others' labels against the worker's own.

    Where the others tie, a label counts in parts: with a share of each grade that most of them name. So nobody's
    agreement depends on a rule for ties. Labels of items that nobody else labeled do not count.
    """
    k = counts.shape[1]
    tables = np.zeros((workers, k, k))
    for own in range(k):
        labels = np.flatnonzero(code == own)
        others = counts[item[labels]]
        others[:, own] -= 1
        shares = mode_shares(others)
        for grade in range(k):
            tables[:, grade, own] = np.bincount(worker[labels], weights=shares[:, grade], minlength=workers)
    whole = tables.astype(np.int64)
    return whole if (whole == tables).all() else tables


def log_odds(tables: NDArray[Any], *, smoothing: float = 0.5) -> dict[str, Floats]:
    """The `weight` of each worker (W,), 0 or more, from the `agreement` with the rest of the crowd (W,).

    Of n labels on items that others labeled too, c equal the majority of the others, in the tables that
    `against_others` makes: a = (c + s) / (n + 2s) and weight = max(0, ln a / (1 - a) + ln (k - 1)). That is the optimal
    weight of a voter who is right with probability a and otherwise names every other grade with the same probability. A
    worker who guesses (a = 1/k) has weight 0, and so has a worker below that, whose labels the model would read as
    evidence against the grades they name. s pseudo-labels agree, and as many do not.

    S. Nitzan & J. Paroush (1982), Optimal decision rules in uncertain dichotomous choice situations, International
    Economic Review 23(2), 289-297. A ValueError if `smoothing` is not positive.
    """
    if smoothing <= 0:
        raise ValueError(f"smoothing {smoothing}: a worker who always agrees needs a positive one for a finite weight")
    n = tables.sum(axis=(1, 2))
    agreed = tables.trace(axis1=1, axis2=2)
    agreement = (agreed + smoothing) / (n + 2 * smoothing)
    weight = np.log(agreement / (1 - agreement)) + np.log(tables.shape[1] - 1)
    return {"weight": np.maximum(weight, 0.0), "agreement": agreement}


def weighted_votes(
    worker: NDArray[np.integer[Any]],
    item: NDArray[np.integer[Any]],
    code: NDArray[np.integer[Any]],
    weight: Floats,
    shape: tuple[int, int],
) -> Floats:
    """The sum of the weights of the workers who gave each item each grade (N x k).

    Weights are rounded to 2^-32, so that equal votes have equal sums in any order.
    """
    exact = np.round(weight * 2.0**32) * 2.0**-32
    flat = np.bincount(item.astype(np.int64) * shape[1] + code, weights=exact[worker], minlength=shape[0] * shape[1])
    return np.asarray(flat.reshape(shape), dtype=np.float64)


def nearest(total: Counts, n: Counts, values: NDArray[np.int64], down: _HalfDown) -> Codes:
    """The code of the grade nearest to total / n (N,), computed with integers.

    `down` says of two neighboring grades, and of the sum of the scale's ends, whether the lower one is taken halfway.
    On a scale with gaps the mean goes straight to its nearest grade and is not rounded to an integer first.
    """
    code = np.zeros(len(n), dtype=np.int8)
    for low, high in zip(values[:-1].tolist(), values[1:].tolist(), strict=True):
        above = 2 * total - n * (low + high)
        code += above > 0 if down(low, high, int(values[0] + values[-1])) else above >= 0
    return code


def _of_labeled(
    choose: Callable[[Counts, NDArray[np.bool_], NDArray[np.int64]], Codes], counts: Counts, grades: Sequence[int]
) -> Codes:
    code = choose(counts, np.ones(counts.shape, dtype=np.bool_), np.asarray(grades, dtype=np.int64))
    code[~counts.any(axis=1)] = -1
    return code


def _up(*_: int) -> bool:
    return False


def _mean(counts: Counts, _: NDArray[np.bool_], values: NDArray[np.int64], down: _HalfDown = _up) -> Codes:
    return nearest(counts @ values, counts.sum(axis=1), values, down)


def _mean_floor(counts: Counts, _: NDArray[np.bool_], values: NDArray[np.int64]) -> Codes:
    total = counts @ values
    n = counts.sum(axis=1)
    code = np.zeros(len(n), dtype=np.int8)
    for value in values[1:].tolist():
        code += total >= n * value
    return code


def _nearest_mode(counts: Counts, mode: NDArray[np.bool_], values: NDArray[np.int64]) -> Codes:
    total = counts @ values
    n = counts.sum(axis=1)
    code = np.zeros(len(n), dtype=np.int8)
    least = np.full(len(n), np.iinfo(np.int64).max)
    for place, value in enumerate(values.tolist()):
        distance = np.abs(total - n * value)
        # Of two equally near modes the later one wins, which is the higher.
        closer = mode[:, place] & (distance <= least)
        code[closer] = place
        least[closer] = distance[closer]
    return code


def _median(counts: Counts, _: NDArray[np.bool_], values: NDArray[np.int64]) -> Codes:
    n = counts.sum(axis=1)
    lower = np.zeros(len(n), dtype=np.int64)
    upper = np.zeros(len(n), dtype=np.int64)
    seen = np.zeros(len(n), dtype=np.int64)
    # The middle labels are number (n + 1) // 2 and n // 2 + 1 in ascending order; the last grade cannot move them.
    for column in counts.T[:-1]:
        seen += column
        lower += seen < (n + 1) // 2
        upper += seen < n // 2 + 1
    return nearest(values[lower] + values[upper], np.full(len(n), 2), values, _up)


SHARES: dict[str, str] = {
    "plurality": "the grade that most labels name",
    "absolute": "the grade that more than half of the labels name",
}
"""The rules for a majority, by name, in words."""

TIES: dict[str, Tie] = {
    "mean-half-up": Tie("the grade nearest to the mean of all labels, halves up", _mean),
    "mean-half-even": Tie(
        "the grade nearest to the mean of all labels, halves to the even grade",
        partial(_mean, down=lambda low, high, _: low % 2 == 0 and high % 2 == 1),
    ),
    "mean-half-middle": Tie(
        "the grade nearest to the mean of all labels, halves towards the middle of the scale",
        partial(_mean, down=lambda low, high, ends: low + high > ends),
    ),
    "mean-floor": Tie("the highest grade that the mean of all labels reaches", _mean_floor),
    "nearest-mode": Tie("the mode nearest to the mean of all labels, the higher of two as near", _nearest_mode),
    "lowest": Tie("the lowest mode", lambda _, mode, __: mode.argmax(axis=1).astype(np.int8)),
    "highest": Tie(
        "the highest mode", lambda _, mode, values: (len(values) - 1 - mode[:, ::-1].argmax(axis=1)).astype(np.int8)
    ),
    "median": Tie(
        "the median of all labels, or the grade nearest to the mean of two in the middle, halves up", _median
    ),
}
"""The rules for an item without a majority, by name."""
