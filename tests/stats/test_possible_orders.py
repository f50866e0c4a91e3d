import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.ranking import PossibleTau, batched_tau_b, defined_values, possible_tau
from judge.stats.tables import Undefined

pytestmark = pytest.mark.long

Range = tuple[int, int]


def tau(x: list[Range], y: list[Range]) -> PossibleTau:
    (low_x, high_x), (low_y, high_y) = (np.array(side, dtype=float).T for side in (x, y))
    return possible_tau((low_x, high_x), (low_y, high_y))


def at(*scores: int) -> list[Range]:
    return [(score, score) for score in scores]


def test_without_holes_the_range_is_tau_b() -> None:
    found = tau(at(4, 3, 3, 1), at(4, 3, 2, 2))
    # 4 of 6 pairs are concordant, one is tied by each side: 4 / √(5 · 5).
    assert (found.least, found.greatest) == (4 / 5, 4 / 5)
    assert found.certain == found.pairs == 6


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7))
def test_without_holes_the_range_is_that_of_scipy(points: list[Range]) -> None:
    x, y = zip(*points, strict=True)
    found, expected = tau(at(*x), at(*y)), scipy.stats.kendalltau(x, y).statistic
    if np.isnan(expected):
        assert isinstance(found.least, Undefined) and isinstance(found.greatest, Undefined)
    else:
        assert (found.least, found.greatest) == pytest.approx((expected, expected))


def test_a_pair_whose_ranges_overlap_is_counted_for_either_bound() -> None:
    # The first pair is open, so of 3 pairs 3 are concordant, or 2 and one discordant.
    found = tau([(4, 6), (5, 5), (1, 1)], at(3, 2, 1))
    assert (found.least, found.greatest) == (pytest.approx((2 - 1) / 3), 1)
    assert (found.pairs, found.certain) == (3, 2)
    # Ranges that meet in a point leave a tie possible and no swap: 3 / 3, or 2 / √(2 · 3).
    found = tau([(5, 6), (5, 5), (1, 1)], at(3, 2, 1))
    assert (found.least, found.greatest) == (pytest.approx(2 / 6**0.5), 1)
    assert found.certain == 2


def test_a_side_that_ties_all_runs_has_no_range() -> None:
    found = tau(at(1, 1, 1), [(1, 3), (2, 2), (1, 3)])
    assert found.least == found.greatest == Undefined("one side ranks all runs the same")


ranges = st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ranges, ranges), min_size=2, max_size=3))
def test_no_scores_within_the_ranges_have_a_tau_beyond_the_bounds(runs: list[tuple[Range, Range]]) -> None:
    found = tau([x for x, _ in runs], [y for _, y in runs])
    # Halves lie between the ends too.
    options = [np.arange(low, high + 0.5, 0.5) for run in runs for low, high in run]
    points = np.array(list(itertools.product(*options)))
    values = defined_values(batched_tau_b, points[:, ::2], points[:, 1::2])
    if not np.isnan(values).all():
        assert not isinstance(found.least, Undefined) and not isinstance(found.greatest, Undefined)
        assert found.least - 1e-9 <= np.nanmin(values) <= np.nanmax(values) <= found.greatest + 1e-9
