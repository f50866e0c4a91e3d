"""Systematic sampling of units with probability proportional to size (Madow 1949; Hartley & Rao 1962). Pure.

Each unit is an interval on a line, as long as its inclusion probability, and points at a distance of 1, with a uniform
start, pick the units that they fall on. The probabilities are exact for any order of the units.
"""

import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Floats

Ints = NDArray[np.int64]


def inclusion(sizes: Floats, draws: int) -> Floats:
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


def systematic(probabilities: Floats, start: float) -> NDArray[np.bool_]:
    """Which units (T,) the points `start`, `start` + 1, … fall on; probabilities (T,) add up to a whole number."""
    # With a start of 32 bits, the difference below loses nothing to rounding.
    start = np.floor(start * 2**32) / 2**32
    # A unit is picked if more points lie below its end than below its beginning.
    below = np.ceil(_ends(probabilities) - start)
    return np.diff(below, prepend=0.0) > 0


def fewest(probabilities: Floats, counts: Ints) -> Ints:
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
    smallest: Ints = np.concatenate([first, first + passed[last]]).min(axis=0)
    return smallest


def _ends(probabilities: Floats) -> Floats:
    """The ends of the units' intervals (T,), rounded so that whole numbers are exact."""
    return np.cumsum(probabilities).round(12)
