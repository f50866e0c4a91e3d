"""Prices: of a call, as text, and files of them."""

import json
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.cli import main
from judge.errors import InputError
from judge.judges.journal_store import completion_of
from judge.judges.journal_tools import read_spending
from judge.judges.prices import CallSum, Price, Spending, read_prices
from judge.judges.records import Completion
from tests.conftest import put, refused
from tests.judges.test_journal_export import filled

TOML = """
# US dollars per million tokens
["openai/gpt-4.1-mini"]
in = 0.40
cached = 0.10
out = 1.60

["server/a"]
in = 1
out = 2

["*"]
in = 0
out = 0
"""
PRICES = {"openai/gpt-4.1-mini": Price(0.4e-6, 1.6e-6, 0.1e-6), "server/a": Price(1e-6, 2e-6), "*": Price(0.0, 0.0)}


def test_a_cached_token_has_a_price_of_its_own() -> None:
    """Of 1,000 tokens 600 are cached: 400 × $2 + 600 × $0.5 + 50 × $8 per million."""
    assert Price(2e-6, 8e-6, 0.5e-6).cost(1000, 600, 50) == pytest.approx(0.0008 + 0.0003 + 0.0004)
    assert Price(2e-6, 8e-6).cost(1000, 600, 50) == pytest.approx(0.002 + 0.0004)
    assert Price(2e-6, 8e-6, 0.0).cost(1000, 600, 50) == pytest.approx(0.0008 + 0.0004)


@pytest.mark.parametrize(
    ("price", "text"), [(Price(0.4e-6, 1.6e-6), "0.4/1.6"), (Price(0.4e-6, 1.6e-6, 0.1e-6), "0.4/0.1/1.6")]
)
def test_a_price_as_text_is_what_the_option_takes(price: Price, text: str) -> None:
    assert str(price) == text


def close(found: dict[str, Price]) -> bool:
    """Whether these are PRICES, in the last digits or almost."""
    return {model: str(price) for model, price in found.items()} == {model: str(PRICES[model]) for model in PRICES}


def test_prices_are_read_from_toml_and_from_json(tmp_path: Path) -> None:
    assert close(read_prices(put(tmp_path / "prices", TOML)))
    as_json = {
        "openai/gpt-4.1-mini": {"in": 0.4, "cached": 0.1, "out": 1.6},
        "server/a": {"in": 1, "out": 2},
        "*": {"in": 0, "out": 0},
    }
    for content in (json.dumps(as_json), "\ufeff\n" + json.dumps(as_json)):
        assert close(read_prices(put(tmp_path / "prices", content)))


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    content = {
        "a": {"in": 1}, "b": {"in": -1, "out": "2", "cached": True}, "c": 3, "d": {"in": 1, "out": 2, "cache": 0.5},
        "e": {"in": 1e300, "out": 1}, "good": {"in": 1, "out": 2},
    }  # fmt: skip
    with pytest.raises(InputError, match="7 problems, so no price of this file is used") as refused:
        read_prices(put(tmp_path / "prices", json.dumps(content)))
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert list(told) == ['$["a"].out', '$["b"].in', '$["b"].out', '$["b"].cached', '$["c"]', '$["d"]["cache"]',
                          '$["e"].in']  # fmt: skip
    assert told['$["a"].out'] == "is missing"
    assert "-1 is no number of dollars: expected zero or more" in told['$["b"].in']
    assert "expected a table such as {in = 0.40, cached = 0.10, out = 1.60}" in told['$["c"]']
    assert told['$["d"]["cache"]'] == "no key of a price (in, cached, out); did you mean cached?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "holds no price"),
        ("[openai/gpt-x]\nin = 1\n", "not TOML"),
        ('{"a": {"in": 1, "out": 2},', "not JSON"),
        ('{"a": {"in": 1, "out": 2}, "a": {"in": 3, "out": 4}}', "not JSON: 'a' occurs twice"),
        ('{"a": {"in": 1, "out": 2, "out": 4}}', "not JSON: 'out' occurs twice"),
        ('{"a": {"in": NaN, "out": 1}}', "1 problem"),
        ("a" * 70_000, "at most 65,536"),
        ('{"a":' * 5000, "not JSON"),
    ],
)
def test_what_is_no_file_of_prices_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_prices(put(tmp_path / "prices", content))


def test_a_name_with_a_dot_and_no_quotation_marks_is_explained(tmp_path: Path) -> None:
    problems = refused(read_prices, put(tmp_path / "prices", "[gpt-4.1-mini]\nin = 1\nout = 2\n"))
    assert any("stands in quotation marks" in problem.message for problem in problems)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: cannot be read"):
        read_prices(tmp_path / "none.toml")


def call(**facts: Any) -> Completion:
    return Completion(text="", finish_reason=None, model=None, **facts)


def add_up(calls: Iterable[Completion], price: Price | None = None) -> Spending:
    total = CallSum(price)
    for one in calls:
        total.add(one)
    return total.spending


CALLS = (
    call(
        prompt_tokens=1000,
        cached_tokens=600,
        completion_tokens=50,
        thought_tokens=40,
        cost=0.0015,
        latency=0.1,
        attempts=1,
    ),
    call(prompt_tokens=2000, cached_tokens=None, completion_tokens=100, cost=None, latency=0.2, attempts=3),
    call(prompt_tokens=None, completion_tokens=None, cost=None, latency=None, attempts=1),
)


def test_calls_are_added_up_and_what_is_unknown_is_in_no_sum() -> None:
    took = add_up(CALLS)
    assert (took.calls, took.attempts) == (3, 1 + 3 + 1)
    assert (took.prompt_tokens, took.cached_tokens, took.completion_tokens, took.counted) == (3000, 600, 150, 2)
    assert took.thought_tokens == 40
    assert (took.cost, took.priced, took.seconds, took.timed) == (0.0015, 1, 0.3, 2)


def test_a_call_without_its_cost_is_priced_by_its_tokens() -> None:
    """The second call costs 2,000 × $2 + 100 × $8 per million; the first keeps what was recorded."""
    took = add_up(CALLS, Price(2e-6, 8e-6, 5e-7))
    assert (took.cost, took.priced) == (pytest.approx(0.0015 + 0.004 + 0.0008), 2)


def test_spendings_add_up() -> None:
    """The first call costs $0.0015; the price of the other two is not known."""
    one, others = add_up(CALLS[:1]), add_up(CALLS[1:])
    assert msgspec.structs.astuple(one + others) == pytest.approx(msgspec.structs.astuple(add_up(CALLS)))
    assert (one.whole_cost, others.whole_cost, (one + others).whole_cost) == (0.0015, None, None)
    assert Spending().whole_cost == 0.0


def test_the_order_of_calls_changes_no_byte() -> None:
    calls = [call(cost=amount, latency=amount) for amount in (0.1, 0.2, 0.3, 1e-9, 7.77)]
    assert len({msgspec.json.encode(add_up(order)) for order in permutations(calls)}) == 1


def took(seconds: float | None, reason: str = "stop", **more: object) -> Completion:
    return Completion(text="Grade: 1", finish_reason=reason, model="m-1", latency=seconds, **more)  # type: ignore[arg-type]


def test_sums_and_percentiles(tmp_path: Path) -> None:
    answers: dict[str, Completion | str] = {
        "a": took(
            1.0, prompt_tokens=100, completion_tokens=10, cached_tokens=64, thought_tokens=8, cost=0.25, attempts=3
        ),
        "b": took(2.0, prompt_tokens=50, completion_tokens=5, cost=0.5),
        "c": took(4.0, "length"),
        "d": took(None, system_fingerprint="fp"),
    }
    path = filled(tmp_path / "j", answers)
    filled(path, {"a": took(7.0)}, judge="b/another")
    other, row = read_spending(path)
    assert (other.judge, other.spending.calls, other.seconds_p50) == ("b/another", 1, 7.0)
    spent = row.spending
    assert (spent.calls, spent.attempts) == (4, 3 + 1 + 1 + 1)
    assert (spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens, spent.counted) == (150, 64, 15, 2)
    assert spent.thought_tokens == 8
    assert (spent.cost, spent.priced, spent.whole_cost) == (0.75, 2, None)
    # Of 1, 2 and 4 seconds, half took at most the second, and 95 % at most the third.
    assert (spent.seconds, spent.timed, row.seconds_p50, row.seconds_p95) == (7.0, 3, 2.0, 4.0)
    assert row.first <= row.last


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such journal"):
        read_spending(tmp_path / "absent")


def test_a_row_from_before_thoughts_were_counted_is_read() -> None:
    old = '{"text":"Grade: 1","finish_reason":"stop","model":"m","completion_tokens":3,"cached_tokens":2}'
    row = ("d", "b/m", "{}", "[]", 0, "text", "r", "t", "c", old, "2026-01-01T00:00:00.000Z", None)
    found = completion_of(row)
    assert (found.cached_tokens, found.thought_tokens) == (2, None)
    thinking = msgspec.structs.replace(found, thought_tokens=1)
    assert completion_of((*row[:9], msgspec.json.encode(thinking).decode(), *row[10:])) == thinking


THOUGHTS = {
    # tokens of thoughts in the only completion: what stands of them in the listing
    None: "9 in, 0 of them cached; 3 out\n",
    0: "9 in, 0 of them cached; 3 out\n",
    2: "9 in, 0 of them cached; 3 out, 2 of them hidden thoughts\n",
}


@pytest.mark.parametrize("thoughts", THOUGHTS)
def test_stats_say_how_much_of_the_replies_are_thoughts(tmp_path, capsys, thoughts: int | None) -> None:
    path = filled(tmp_path / "j", {"a": took(1.0, prompt_tokens=9, completion_tokens=3, thought_tokens=thoughts)})
    assert main(["journal", "stats", str(path)]) == 0
    assert THOUGHTS[thoughts] in capsys.readouterr().out
    assert main(["journal", "stats", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["spending"]["thought_tokens"] == (thoughts or 0)
