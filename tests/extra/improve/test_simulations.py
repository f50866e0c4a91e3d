"""How often a search says GAINED, as `bench.simulations` has it at full size."""

import pytest

from bench.simulations import wordings
from tests.stats.test_simulations import all_within, rng

pytestmark = pytest.mark.long


def test_equal_wordings_seldom_gain_and_a_better_one_does_more_often() -> None:
    equal = wordings.equal(150, rng(), settings=((25, 25, 8),))
    assert all_within(equal)
    gained, promised, came = equal
    assert promised.obtained > came.obtained + 0.04
    better, _ = wordings.better(100, rng(), settings=((25, 25, 8),))
    assert better.obtained > gained.obtained + 0.1
