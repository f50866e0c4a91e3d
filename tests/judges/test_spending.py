"""What calls took, added up."""

from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.errors import InputError
from judge.judges.journal_tools import read_spending
from judge.judges.prices import CallSum, Price, Spending
from judge.judges.records import Completion
from tests.judges.test_journal_export import filled


def call(**facts: Any) -> Completion:
    return Completion(text="", finish_reason=None, model=None, **facts)


def add_up(calls: Iterable[Completion], price: Price | None = None) -> Spending:
    total = CallSum(price)
    for one in calls:
        total.add(one)
    return total.spending("server/a")


CALLS = (
    call(prompt_tokens=1000, cached_tokens=600, completion_tokens=50, cost=0.0015, latency=0.1, attempts=1),
    call(prompt_tokens=2000, cached_tokens=None, completion_tokens=100, cost=None, latency=0.2, attempts=3),
    call(prompt_tokens=None, completion_tokens=None, cost=None, latency=None, attempts=1),
)


def test_calls_are_added_up_and_what_is_unknown_is_in_no_sum() -> None:
    took = add_up(CALLS)
    assert (took.judge, took.completions, took.attempts) == ("server/a", 3, 1 + 3 + 1)
    assert (took.prompt_tokens, took.cached_tokens, took.completion_tokens, took.counted) == (3000, 600, 150, 2)
    assert (took.cost, took.priced, took.seconds, took.timed) == (0.0015, 1, 0.3, 2)


def test_a_call_without_its_cost_is_priced_by_its_tokens() -> None:
    """The second call costs 2,000 × $2 + 100 × $8 per million; the first keeps what was recorded."""
    took = add_up(CALLS, Price(2e-6, 8e-6, 5e-7))
    assert (took.cost, took.priced) == (pytest.approx(0.0015 + 0.004 + 0.0008), 2)


def test_the_order_of_calls_changes_no_byte() -> None:
    calls = [call(cost=amount, latency=amount) for amount in (0.1, 0.2, 0.3, 1e-9, 7.77)]
    sums = {msgspec.json.encode(add_up(order)) for order in permutations(calls)}
    assert len(sums) == 1


def took(seconds: float | None, reason: str = "stop", **more: object) -> Completion:
    return Completion(text="Grade: 1", finish_reason=reason, model="m-1", latency=seconds, **more)  # type: ignore[arg-type]


def test_sums_percentiles_and_words(tmp_path: Path) -> None:
    answers: dict[str, Completion | str] = {
        "a": took(1.0, prompt_tokens=100, completion_tokens=10, cached_tokens=64, cost=0.25, attempts=3),
        "b": took(2.0, prompt_tokens=50, completion_tokens=5, cost=0.5),
        "c": took(4.0, "length"),
        "d": took(None, system_fingerprint="fp"),
    }
    path = filled(tmp_path / "j", answers)
    filled(path, {"a": took(7.0)}, judge="b/another")
    other, row = read_spending(path)
    assert (other.judge, other.completions, other.seconds_p50) == ("b/another", 1, 7.0)
    assert (row.completions, row.attempts) == (4, 3 + 1 + 1 + 1)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.counted) == (150, 64, 15, 2)
    assert (row.cost, row.priced) == (0.75, 2)
    # Of 1, 2 and 4 seconds, half took at most the second, and 95 % at most the third.
    assert (row.seconds, row.timed, row.seconds_p50, row.seconds_p95) == (7.0, 3, 2.0, 4.0)
    assert row.finish_reasons == {"length": 1, "stop": 3}
    assert (row.forms, row.models, row.fingerprints) == ({"text": 4}, {"m-1": 4}, {"": 3, "fp": 1})
    assert row.first <= row.last


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such journal"):
        read_spending(tmp_path / "absent")
