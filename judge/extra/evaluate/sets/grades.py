"""A set of grades, by assessors or a judge, and how far two sets agree on the items that both graded. Pure."""

import math
from collections.abc import Mapping

import numpy as np

from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.records import Estimate, Record
from judge.results.tables import SEED
from judge.stats.resampling import resampled
from judge.stats.tables import MarginalTest, bowker, stuart_maxwell, topic_tables

REPLICATES = 2000
"""Draws of topics behind an interval."""
COMPARED = {
    "percent": "equal grades",
    "kappa": "Cohen's kappa",
    "wkappa": "kappa with quadratic weights",
    "alpha_ordinal": "Krippendorff's alpha, ordinal",
    "ac2": "Gwet's AC2, quadratic weights",
    "bias": "mean of B minus A",
}
"""The statistics of agreement that are shown, in the order of rows, each with a name for people."""

Grades = Mapping[str, Mapping[str, int]]
"""Turn id and item id to a grade; an item is a response or a passage, and both ids are columns of qrels."""


class GradeSet(Record, frozen=True):
    """The grades of one file or folder."""

    name: str
    """The file, as messages name it."""
    grades: dict[str, dict[str, int]]
    """As `Grades`; only turns with a grade."""
    scale: tuple[int, ...]
    """All grades that may be given, ascending."""
    higher_is_better: bool = True

    @property
    def items(self) -> int:
        """How many items are graded."""
        return sum(map(len, self.grades.values()))

    @property
    def worst(self) -> int:
        """The grade at the bad end of the scale."""
        return self.scale[0] if self.higher_is_better else self.scale[-1]

    @property
    def best(self) -> int:
        """The grade at the good end of the scale."""
        return self.scale[-1] if self.higher_is_better else self.scale[0]


class SetOfTwo(Record, frozen=True):
    """One of two sets beside the other."""

    name: str
    items: int
    turns: int
    only_items: int
    """Items that the other set did not grade: the holes of the other."""
    only_turns: int
    """Turns of which the other set graded nothing."""
    mean: float
    """The mean grade of the items that both graded."""
    scale: tuple[int, ...]
    higher_is_better: bool


class SetsAgreement(Record, frozen=True):
    """How far two sets agree on the items that both graded."""

    a: SetOfTwo
    b: SetOfTwo
    items: int
    """Items that both graded."""
    turns: int
    """Turns of which both graded some item."""
    topics: int
    """Topics, or themes, of the items that both graded."""
    statistics: dict[str, Estimate]
    """Of COMPARED, with intervals over topics; the bias is that of B against A."""
    confusion: tuple[tuple[int, ...], ...]
    """Counts of items: grades of A in rows, of B in columns, both ascending."""
    marginals: tuple[MarginalTest, ...]


def binary(given: GradeSet, positive: int) -> GradeSet:
    """The set with grade 1 for items that are graded `positive` or better, and 0 for the others.

    >>> binary(GradeSet("qrels", {"1_1": {"p": 2, "q": 1}}, (0, 1, 2)), 2).grades
    {'1_1': {'p': 1, 'q': 0}}
    """

    def is_positive(grade: int) -> int:
        return int(grade >= positive if given.higher_is_better else grade <= positive)

    grades = {
        turn_id: {item_id: is_positive(grade) for item_id, grade in items.items()}
        for turn_id, items in given.grades.items()
    }
    return GradeSet(given.name, grades, (0, 1))


def common_turns(a: GradeSet, b: GradeSet) -> tuple[str, ...]:
    """The turns of which both sets graded some item, in natural order."""
    return tuple(sorted(a.grades.keys() & b.grades.keys(), key=natural_key))


def sets_agreement(a: GradeSet, b: GradeSet, cluster: Cluster) -> SetsAgreement:
    """Compare two sets of one scale that have an item in common; every statistic gets the same draws."""
    turns = common_turns(a, b)
    items = [(turn_id, item_id) for turn_id in turns for item_id in a.grades[turn_id].keys() & b.grades[turn_id].keys()]
    code = {grade: place for place, grade in enumerate(a.scale)}
    of_a, of_b = ([of.grades[turn_id][item_id] for turn_id, item_id in items] for of in (a, b))
    units = [cluster_of(topic_of(turn_id), cluster) for turn_id, _ in items]
    names = {name: place for place, name in enumerate(dict.fromkeys(units))}
    tables = topic_tables(
        np.array([code[grade] for grade in of_a], dtype=np.int64),
        np.array([code[grade] for grade in of_b], dtype=np.int64),
        np.array([names[unit] for unit in units], dtype=np.int64),
        len(a.scale),
        len(names),
    )
    C = tables.sum(axis=0)

    def resample(name: str) -> Estimate:
        return resampled(name, tables, a.scale, np.random.default_rng(SEED), replicates=REPLICATES).estimate

    def beside(own: GradeSet, other: GradeSet, grades: list[int]) -> SetOfTwo:
        return SetOfTwo(
            name=own.name,
            items=own.items,
            turns=len(own.grades),
            only_items=own.items - len(items),
            only_turns=len(own.grades.keys() - other.grades.keys()),
            mean=math.fsum(grades) / len(grades),
            scale=own.scale,
            higher_is_better=own.higher_is_better,
        )

    return SetsAgreement(
        a=beside(a, b, of_a),
        b=beside(b, a, of_b),
        items=len(items),
        turns=len(turns),
        topics=len(names),
        statistics={name: resample(name) for name in COMPARED},
        confusion=tuple(tuple(row) for row in C.tolist()),
        marginals=(bowker(C), stuart_maxwell(C)),
    )
