"""Two raters of the same items side by side: how far they agree, with intervals over the units of the items."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.records import Estimate
from judge.stats.resampling import all_resampled
from judge.stats.tables import MarginalTest, bowker, stuart_maxwell, topic_tables

GradeCodes = NDArray[np.int64]
"""Places of grades on the ascending scale, -1 where there is no grade."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The grades of rater b against those of rater a."""

    n: int
    """Items that both graded; the statistics are about these."""
    only_a: int
    """Items that a alone graded."""
    only_b: int
    """Items that b alone graded."""
    topics: int
    """Topics, or other units of inference, of the items that both graded."""
    statistics: dict[str, Estimate]
    """Rows of `STATISTICS` by name, with intervals over the units."""
    item: dict[str, Estimate]
    """The same with intervals that ignore the units."""
    design_effect: dict[str, float | None]
    """Squared ratio of the standard errors over units and over items."""
    confusion: tuple[tuple[int, ...], ...]
    """Counts of items: grades of a in rows, of b in columns, both over `grades`."""
    grades: tuple[int, ...]
    marginals: tuple[MarginalTest, ...]

    @property
    def higher(self) -> int:
        """Items to which b gave a higher grade than a."""
        return int(np.triu(self.confusion, 1).sum())

    @property
    def lower(self) -> int:
        """Items to which b gave a lower grade than a."""
        return int(np.tril(self.confusion, -1).sum())


def codes_of(column: Iterable[Hashable | None], scale: Sequence[Hashable]) -> GradeCodes:
    """The places of a rater's grades on a scale (N,), -1 for None.

    >>> codes_of([3, None, 0], (0, 1, 3)).tolist()
    [2, -1, 0]
    """
    places: dict[Hashable | None, int] = {grade: place for place, grade in enumerate(scale)}
    places[None] = -1
    return np.array([places[grade] for grade in column], dtype=np.int64)


def compare_raters(
    names: Iterable[str],
    a: GradeCodes,
    b: GradeCodes,
    units: GradeCodes,
    grades: Sequence[int],
    seed: int,
    *,
    tables: NDArray[Any] | None = None,
    apart: NDArray[np.bool_] | None = None,
    replicates: int = 2000,
) -> Comparison:
    """Compare the codes of two raters of N items over the k grades of a scale.

    Both graded the first and the last of these items, on two topics, and differ on the last:

    >>> a, b = np.array([0, 1, -1, 1]), np.array([0, -1, 1, 0])
    >>> found = compare_raters(["percent"], a, b, np.array([0, 0, 1, 1]), (0, 1), seed=1)
    >>> found.n, found.only_a, found.only_b, found.topics, found.confusion, found.statistics["percent"].value
    (2, 1, 1, 2, ((1, 0), (1, 0)), 0.5)

    Args:
        names: Keys of STATISTICS; all get the same draws.
        a: The codes of the first rater (N,).
        b: Those of the second one.
        units: The unit of inference of each item (N,), numbered from 0.
        grades: The scale's grades, ascending.
        seed: Of the draws.
        tables: C of every unit (T x k x k) where items have weights or several grades; by default the counts.
        apart: Items (N,) that a gave no one grade: they are in `n` and in `tables`, not in the confusion.
        replicates: Draws of units.
    """
    both = (a >= 0) & (b >= 0)
    T = int(units.max(initial=-1)) + 1
    counts = topic_tables(a if apart is None else np.where(apart, -1, a), b, units, len(grades), T)
    C = counts.sum(axis=0)
    rng = np.random.default_rng(seed)
    rows = all_resampled(names, counts if tables is None else tables, grades, rng, replicates=replicates)
    return Comparison(
        n=int(both.sum()),
        only_a=int(((a >= 0) & (b < 0)).sum()),
        only_b=int(((a < 0) & (b >= 0)).sum()),
        topics=len(set(units[both].tolist())),
        statistics={name: row.estimate for name, row in rows.items()},
        item={name: row.item for name, row in rows.items()},
        design_effect={name: row.design_effect for name, row in rows.items()},
        confusion=tuple(tuple(row) for row in C.tolist()),
        grades=tuple(grades),
        marginals=(bowker(C), stuart_maxwell(C)),
    )
