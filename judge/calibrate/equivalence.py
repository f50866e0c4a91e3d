"""Whether the chosen judge agrees with assessors as well as another judge does, or as assessors do. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import Equivalence, EquivalenceRow, Split
from judge.calibrate.panel import Column, GradeCodes, Panel
from judge.records import Estimate
from judge.stats.agreement import primary_statistic
from judge.stats.comparison import compare
from judge.stats.means import consensus
from judge.stats.tables import topic_tables

ASSESSORS = "assessors"
"""The name of the other side where a judge is compared with the assessors' agreement among themselves."""
LEVEL = 0.9
"""Two one-sided tests at 5 % reject exactly where this interval lies within the margin."""


def equivalences(
    panel: Panel, chosen: Column, others: Sequence[Column], split: Split, decided: Split, margin: float, seed: int
) -> tuple[EquivalenceRow, ...]:
    """The chosen judge against every other one, and against the assessors, each by two one-sided tests.

    D. J. Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach for assessing the
    equivalence of average bioavailability, J. Pharmacokinet. Biopharm. 15(6), 657-680.

    Args:
        panel: Gold and labels.
        chosen: The judge.
        others: The judges to compare it with, on the items of `split` that both graded.
        split: The split that judges are compared on.
        decided: The split of the verdict, for the comparison with the assessors.
        margin: The difference of the primary statistic that does not matter.
        seed: Seed of the resampling.
    """
    mask = panel.within(split)
    pairs: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
    for other in others:
        common = mask & (chosen.codes >= 0) & (other.codes >= 0)
        pairs[chosen.name, other.name] = panel.tables(chosen.codes, common), panel.tables(other.codes, common)
    rows = _rows(panel, pairs, split, margin, seed)
    beside = _beside_assessors(panel, chosen, panel.within(decided))
    if beside is None:
        return rows
    *tables, n = beside
    (row,) = _rows(panel, {(chosen.name, ASSESSORS): (tables[0], tables[1])}, decided, margin, seed)
    difference = msgspec.structs.replace(row.difference, n=n)
    return (*rows, msgspec.structs.replace(row, difference=difference))


def word_of(difference: Estimate, margin: float) -> Equivalence:
    """EQUIVALENT where the interval lies within the margin, DIFFERENT where it lies beyond it, else INCONCLUSIVE."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return "INCONCLUSIVE"
    if -margin < low and high < margin:
        return "EQUIVALENT"
    return "DIFFERENT" if low > margin or high < -margin else "INCONCLUSIVE"


def _rows(
    panel: Panel,
    pairs: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]],
    split: Split,
    margin: float,
    seed: int,
) -> tuple[EquivalenceRow, ...]:
    name = primary_statistic(len(panel.grades))
    # Only the intervals are wanted, so a single exchange is enough.
    compared = compare(pairs, name, panel.grades, np.random.default_rng(seed), permutations=1, level=LEVEL)
    return tuple(
        EquivalenceRow(
            criterion=panel.criterion,
            split=split,
            statistic=name,
            a=pair.a,
            b=pair.b,
            difference=pair.difference,
            margin=margin,
            word=word_of(pair.difference, margin),
        )
        for pair in compared.pairs
    )


def _beside_assessors(
    panel: Panel, column: Column, mask: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[Any], int] | None:
    """Tables of the judge and of the assessors, both against the same grades: for each assessor, the others' consensus.

    The last number counts the items. A judge that is set against the consensus of all has the easier task, since errors
    of assessors partly cancel there. None where no item has two assessors and a grade of the judge.
    """
    codes = np.array(list(panel.assessors.values()))
    if len(codes) < 2:
        return None
    others = np.concatenate([_consensus(np.delete(codes, i, axis=0), panel.grades) for i in range(len(codes))])
    assessor, judge = codes.reshape(-1), np.tile(column.codes, len(codes))
    reference = np.where(np.tile(mask, len(codes)) & (assessor >= 0) & (judge >= 0), others, -1)
    if not (reference >= 0).any():
        return None
    topic, weights = np.tile(panel.topic, len(codes)), np.tile(panel.weights, len(codes))
    k, T = len(panel.grades), len(panel.topics)
    of_judge, of_assessors = (topic_tables(reference, side, topic, k, T, weights) for side in (judge, assessor))
    return of_judge, of_assessors, int((reference >= 0).reshape(len(codes), -1).any(axis=0).sum())


def _consensus(codes: GradeCodes, grades: tuple[int, ...]) -> GradeCodes:
    """The consensus of the assessors in the rows (A x N) for every item (N,); -1 where nobody graded."""
    place = {grade: i for i, grade in enumerate(grades)}
    graded = [[grades[code] for code in item if code >= 0] for item in codes.T]
    return np.array([place[consensus(item)] if item else -1 for item in graded], dtype=np.int64)
