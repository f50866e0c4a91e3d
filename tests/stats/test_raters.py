"""Two columns of grades side by side."""

import numpy as np

from judge.stats.agreement import STATISTICS
from judge.stats.raters import codes_of, compare_raters
from judge.stats.resampling import all_resampled
from judge.stats.tables import bowker, stuart_maxwell, topic_tables

GRADES = (0, 1, 2)
A = codes_of([0, 1, 2, 2, None, 1, 0, 2, 1, 0, None, 2], GRADES)
B = codes_of([0, 2, 2, 1, 1, None, 0, 2, 1, 1, None, 0], GRADES)
UNITS = np.arange(12) // 2


def test_a_comparison_counts_who_graded_what() -> None:
    found = compare_raters((), A, B, UNITS, GRADES, seed=1)
    assert (found.n, found.only_a, found.only_b, found.topics) == (9, 1, 1, 5)
    assert found.confusion == ((2, 1, 0), (0, 1, 1), (1, 1, 2))
    # 0 1 and 1 2 are higher by b; 2 0 and 2 1 are lower.
    assert (found.higher, found.lower) == (1 + 1, 1 + 1)
    assert found.statistics == {}


def test_its_statistics_are_those_of_the_tables_of_its_units() -> None:
    found = compare_raters(STATISTICS, A, B, UNITS, GRADES, seed=3, replicates=50)
    tables = topic_tables(A, B, UNITS, 3, 6)
    rows = all_resampled(STATISTICS, tables, GRADES, np.random.default_rng(3), replicates=50)
    assert found.statistics == {name: row.estimate for name, row in rows.items()}
    assert found.item == {name: row.item for name, row in rows.items()}
    C = tables.sum(axis=0)
    assert found.marginals == (bowker(C), stuart_maxwell(C))


def test_items_without_one_grade_count_but_are_in_no_cell() -> None:
    found = compare_raters((), A, B, UNITS, GRADES, seed=1, apart=np.arange(12) == 0)
    assert (found.n, found.confusion[0]) == (9, (1, 1, 0))


def test_nothing_beside_nothing() -> None:
    nothing = codes_of([], GRADES)
    found = compare_raters(["percent"], nothing, nothing, nothing, GRADES, seed=1)
    assert (found.n, found.topics, found.statistics["percent"].value) == (0, 0, None)
