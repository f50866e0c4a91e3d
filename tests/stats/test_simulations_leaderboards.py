"""Fast parts of the simulations of leaderboards; with few replicates a figure may be out by MARGIN of its errors."""

from typing import Any

import numpy as np
import pytest

from bench.simulations import battles
from bench.simulations import leaderboards as simulate

pytestmark = pytest.mark.long

MARGIN = 2.5


def rng() -> np.random.Generator:
    return np.random.default_rng(21)


def all_within(findings: list[Any]) -> bool:
    return all(figure.within(MARGIN) for figure in findings)


def test_with_ten_gold_grades_a_run_intervals_cover_and_some_pairs_are_told_apart() -> None:
    findings = simulate.with_gold(10, 60, rng())
    assert all_within(findings)
    coverage, _, apart, false = (figure.obtained for figure in findings)
    # Before λ and variances were shared, intervals covered .93 and 1 to 4 % of the pairs were told apart.
    assert coverage > 0.94
    assert apart > 0.055
    assert false <= 0.05


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        *((kind, {"runs": (5, 10, 24), "topics": (8,)}) for kind in ("e", "s", "d")),
        # A run without grades on 40 % of the turns.
        ("miss", {"runs": (5,), "topics": (8, 25)}),
        # Runs of unequal noise.
        ("n", {"runs": (10,), "topics": (8, 25)}),
        # A run that fails on some topics.
        ("fail", {"topics": (25,)}),
    ],
)
def test_equal_runs_are_seldom_told_apart(kind: str, sizes: dict[str, tuple[int, ...]]) -> None:
    assert all_within(getattr(simulate, kind)(60, rng(), **sizes))


def test_differences_have_power_and_point_the_right_way() -> None:
    assert all_within(simulate.p(4, rng()))


def test_ratings_of_compared_runs_cover_and_equal_runs_are_seldom_told_apart() -> None:
    assert all_within(battles.bt(40, rng(), topics=(22,)))
    assert all_within(battles.bte(40, rng(), runs=(5,)))


def test_on_topics_of_unequal_size_equal_runs_are_seldom_told_apart() -> None:
    """Where one topic has 40 % of the turns, .17 to .42 of worlds had some pair apart."""
    assert all_within(simulate.u(60, rng(), runs=(5,)))
    assert all_within(battles.btu(60, rng(), runs=(5,)))


def test_ranks_beside_a_run_that_won_or_lost_all_lie_in_their_intervals() -> None:
    findings = battles.btw(100, rng())
    assert all_within(findings)
    right, _, width = (np.reshape([figure.obtained for figure in findings], (3, 3))).T
    # Without a rank for such runs .10 to .50 of the ranks were right, and intervals held 3.8 ranks more than one.
    assert min(right) > 0.6
    assert max(width) < 2.6


def test_looks_add_up_to_no_more_than_their_number() -> None:
    assert all_within(battles.btl(60, rng()))
