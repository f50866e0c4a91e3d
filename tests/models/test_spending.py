"""What calls took, added up."""

from itertools import permutations

import msgspec
import pytest

from judge.models.model import Price
from judge.models.spending import CallFacts, add_up

CALLS = (
    CallFacts(prompt_tokens=1000, cached_tokens=600, completion_tokens=50, cost=0.0015, latency=0.1, attempts=1),
    CallFacts(prompt_tokens=2000, cached_tokens=None, completion_tokens=100, cost=None, latency=0.2, attempts=3),
    CallFacts(prompt_tokens=None, completion_tokens=None, cost=None, latency=None, attempts=1),
)


def test_calls_are_added_up_and_what_is_unknown_is_in_no_sum() -> None:
    took = add_up("server/a", CALLS)
    assert (took.judge, took.completions, took.attempts) == ("server/a", 3, 1 + 3 + 1)
    assert (took.prompt_tokens, took.cached_tokens, took.completion_tokens, took.counted) == (3000, 600, 150, 2)
    assert (took.cost, took.priced, took.seconds, took.timed) == (0.0015, 1, 0.3, 2)


def test_a_call_without_its_cost_is_priced_by_its_tokens() -> None:
    """The second call costs 2,000 × $2 + 100 × $8 per million; the first keeps what was recorded."""
    took = add_up("server/a", CALLS, Price(2e-6, 8e-6, 5e-7))
    assert (took.cost, took.priced) == (pytest.approx(0.0015 + 0.004 + 0.0008), 2)


def test_the_order_of_calls_changes_no_byte() -> None:
    calls = [CallFacts(cost=amount, latency=amount) for amount in (0.1, 0.2, 0.3, 1e-9, 7.77)]
    sums = {msgspec.json.encode(add_up("a", order)) for order in permutations(calls)}
    assert len(sums) == 1
