"""Systematic sampling with probability proportional to size (Madow 1949; Hartley & Rao 1962); pure.

Each unit is an interval on a line, as long as its inclusion probability; the intervals follow one another. Points at a
distance of 1, with a uniform start, pick the units they fall on. The probabilities are exact in any order of the units.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from judge.io.text import digest

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def inclusion(sizes: _Floats, draws: int) -> _Floats:
    """Inclusion probabilities proportional to the sizes, adding up to `draws`; none is above 1.

    A unit whose share would reach 1 is taken for certain, and the others share the remaining draws. Sizes (T,) are
    positive.
    """
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = draws - int(certain.sum())
        rest = sizes[~certain].sum()
        probabilities = np.where(certain, 1.0, left * sizes / rest if left and rest else 0.0)
        # The tolerance counts a share of exactly 1 as certain in spite of rounding.
        over = (probabilities >= 1 - 1e-12) & ~certain
        if not over.any():
            return probabilities
        certain |= over


def systematic(probabilities: _Floats, start: float) -> NDArray[np.bool_]:
    """Which units (T,) the points `start`, `start` + 1, … fall on; probabilities (T,) add up to a whole number."""
    # With a start of 32 bits, the difference below loses nothing to rounding.
    start = np.floor(start * 2**32) / 2**32
    # A unit is picked if more points lie below its end than below its beginning.
    below = np.ceil(_ends(probabilities) - start)
    return np.diff(below, prepend=0.0) > 0


def fewest(probabilities: _Floats, counts: _Ints) -> _Ints:
    """The smallest count of each kind (R,) that a sample may have, over all starts.

    As the start grows, the sample changes only where the start passes the fractional part of an interval's end: a point
    then moves from that unit to the next. Counts (T, R) are of each kind in each unit, in their order.
    """
    # Rounded, so that ends a whole number apart are passed at the same start.
    fractions = np.round(_ends(probabilities)[:-1] % 1.0, 12) % 1.0
    order = np.argsort(fractions, kind="stable")
    # A start of 0 has already passed the ends at whole numbers.
    order = order[fractions[order] > 0]
    passed = np.cumsum((counts[1:] - counts[:-1])[order], axis=0)
    last = np.append(fractions[order][1:] != fractions[order][:-1], True)[: len(order)]
    first = counts[systematic(probabilities, 0.0)].sum(axis=0, keepdims=True)
    smallest: _Ints = np.concatenate([first, first + passed[last]]).min(axis=0)
    return smallest


def _ends(probabilities: _Floats) -> _Floats:
    """The ends of the units' intervals (T,), rounded so that whole numbers are exact."""
    return np.cumsum(probabilities).round(12)


DOUBLE = 0.2
"""Share of the items that every assessor labels, where there are several and nobody says otherwise."""


def shared_items(names: Sequence[str], share: float, seed: int) -> frozenset[int]:
    """Places of the items that every assessor labels: a simple random sample, rounded to whole items."""
    return frozenset(_shuffled(names, seed, "shared")[: int(share * len(names) + 0.5)])


def deal(names: Sequence[str], assessors: Sequence[str], share: float, seed: int) -> tuple[tuple[int, ...], ...]:
    """The places of each assessor's items, in the order in which that assessor labels them.

    Each item has its own random number, so an order does not depend on how Python shuffles.

    >>> deal(["a", "b", "c", "d"], ["ann", "bob"], 0.5, 1)
    ((0, 2, 1), (3, 1, 0))
    """
    shared = shared_items(names, share, seed)
    others = [place for place in _shuffled(names, seed, "others") if place not in shared]
    dealt = []
    for number, assessor in enumerate(assessors):
        own = shared.union(others[number :: len(assessors)])
        dealt.append(tuple(place for place in _shuffled(names, seed, f"order\n{assessor}") if place in own))
    return tuple(dealt)


def _shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    return sorted(range(len(names)), key=lambda place: digest(f"{seed}\n{purpose}\n{names[place]}"))
