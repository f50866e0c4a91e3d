"""Systematic sampling with probability proportional to size (Madow 1949; Hartley & Rao 1962); pure.

Each unit has an interval on a line as long as its inclusion probability, one after the other; points one apart with a
uniform start pick the units they fall on. In whatever order the units lie, the probabilities are exact.
"""

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def inclusion(sizes: _Floats, draws: int) -> _Floats:
    """Inclusion probabilities proportional to sizes that add up to `draws`; what would pass 1 is taken for certain.

    Args:
        sizes: Positive sizes (T,).
        draws: Turns to draw, at most T.
    """
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = draws - int(certain.sum())
        rest = sizes[~certain].sum()
        probabilities = np.where(certain, 1.0, left * sizes / rest if left and rest else 0.0)
        # Of the smallest excess too: a size that is exactly its share belongs to those taken for certain.
        over = (probabilities >= 1 - 1e-12) & ~certain
        if not over.any():
            return probabilities
        certain |= over


def systematic(probabilities: _Floats, start: float) -> NDArray[np.bool_]:
    """Which of the units, in their order, the points `start`, `start` + 1, … fall on.

    Args:
        probabilities: Inclusion probabilities (T,) that add up to a whole number.
        start: From 0 up to, not including, 1.
    """
    # A start of 32 bits can be taken from an end without being rounded away.
    start = np.floor(start * 2**32) / 2**32
    # Points below each end: a unit is hit if one more lies below its end than below its beginning.
    below = np.ceil(_ends(probabilities) - start)
    return np.diff(below, prepend=0.0) > 0


def fewest(probabilities: _Floats, answers: _Ints) -> _Ints:
    """The fewest that a sample has of each kind, over all starts.

    As the start moves on, the sample changes only where it passes the fraction of an interval's end: a point then goes
    from that unit to the next.

    Args:
        probabilities: Inclusion probabilities (T,) in the order of the units.
        answers: How many of each kind the units have, (T, R).

    Returns:
        Counts (R,).
    """
    # Rounded, so that ends a whole number apart are passed at one time.
    fractions = np.round(_ends(probabilities)[:-1] % 1.0, 12) % 1.0
    order = np.argsort(fractions, kind="stable")
    # A start of 0 has passed the ends at whole numbers.
    order = order[fractions[order] > 0]
    passed = np.cumsum((answers[1:] - answers[:-1])[order], axis=0)
    last = np.append(fractions[order][1:] != fractions[order][:-1], True)[: len(order)]
    first = answers[systematic(probabilities, 0.0)].sum(axis=0, keepdims=True)
    counts: _Ints = np.concatenate([first, first + passed[last]]).min(axis=0)
    return counts


def _ends(probabilities: _Floats) -> _Floats:
    """Where the units' intervals end; whole numbers are whole in spite of rounding."""
    return np.cumsum(probabilities).round(12)
