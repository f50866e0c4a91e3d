"""What calls take: estimated before, asked now, and behind the results."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.account import GUESS, Account, CallSums, Settings, TokenRates, estimated_tokens, learned_rates
from judge.ask.forecast import forecast
from judge.ask.questions import Questions
from judge.ask.records import tasks
from judge.cli.spending import in_all, say_accounts
from judge.errors import RejectedError, TransientError
from judge.judges.journal import Journal
from judge.judges.model import Price
from judge.judges.records import Completion, Message
from tests.ask.clock import assess_at_once
from tests.ask.test_loop import Scripted, criterion, pool
from tests.mock import ask

PRICE = {"*": Price(0.001, 0.01, 0.0001)}


def reply(text: str = "Grade: 2", **more: Any) -> Completion:
    return Completion(
        text, "stop", "m", **{"prompt_tokens": 20, "cached_tokens": 12, "completion_tokens": 8, "latency": 0.5} | more
    )


def judged(tmp_path: Path, model: Scripted, texts: list[str], **settings: Any) -> Account:
    account, one = Account(), pool(texts)
    with Journal(tmp_path / "journal") as journal:
        chosen = Settings(**{"concurrency": 2, "prices": PRICE} | settings)
        assess_at_once(tasks(one, [criterion()]), model, journal, one, settings=chosen, account=account)
    return account


def test_what_was_asked_and_what_the_results_rest_on(tmp_path: Path) -> None:
    """Each call costs 8 × $0.001 + 12 × $0.0001 + 8 × $0.01 = $0.0892."""
    script = {"b": [TransientError("busy"), reply()], "c": [reply("no grade"), reply()], "d": [RejectedError("no")]}
    (row,) = judged(tmp_path, Scripted(script, default=reply()), ["a", "b", "c", "d", "a"]).rows()
    # a once for two turns, b at the second attempt, c again after an unreadable reply; d has no completion.
    assert (row.asked.calls, row.asked.attempts) == (1 + 1 + 2, 1 + 2 + 2)
    assert (row.asked.prompt_tokens, row.asked.cached_tokens, row.asked.completion_tokens) == (80, 48, 32)
    assert (row.asked.cost, row.asked.seconds) == (pytest.approx(4 * 0.0892), 2.0)
    assert row.results == row.asked
    # The second question after an unreadable reply was not estimated.
    assert row.expected.calls == 3
    (later,) = judged(tmp_path, Scripted(default=reply()), ["a", "b", "c", "d", "e"]).rows()
    assert (later.asked.calls, later.expected.calls) == (2, 2)
    assert (later.results.calls, later.results.cost) == (6, pytest.approx(6 * 0.0892))


def test_a_rerun_that_asks_nothing_has_the_same_results(tmp_path: Path) -> None:
    script = {"c": [reply("no grade"), reply()], "d": [reply("no grade"), reply("none again")]}
    (first,) = judged(tmp_path, Scripted(script, default=reply()), ["a", "b", "c", "d"]).rows()
    (second,) = judged(tmp_path, Scripted(default=RejectedError("must not be asked")), ["a", "b", "c", "d"]).rows()
    assert (second.asked.calls, second.expected.calls) == (0, 0)
    assert second.results == first.results and first.results.calls == 2 + 2 + 2


def test_thoughts_are_added_up_at_the_price_of_a_reply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each reply's 8 tokens 6 are thoughts: 2 × 6 × $0.01 = $0.12."""
    (row,) = judged(tmp_path, Scripted(default=reply(thought_tokens=6)), ["a", "b"]).rows()
    assert (row.results.completion_tokens, row.results.thought_tokens) == (16, 12)
    say_accounts([row])
    told = capsys.readouterr().err
    heading, _, estimated, asked = told.strip().splitlines()[:4]
    assert heading.split() == ["judge", "calls", "attempts", "prompt", "cached", "reply", "thoughts", "cost", "time"]
    assert asked.split()[2:8] == ["2", "2", "40", "24", "16", "12"]
    assert len(estimated.split()) == 5, "no thoughts are estimated"
    assert "12 tokens of hidden thoughts, $0.1200 at the price of a reply" in told


def test_no_column_is_for_thoughts_where_nobody_thinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    say_accounts(judged(tmp_path, Scripted(default=reply(thought_tokens=0)), ["a"]).rows())
    assert "thoughts" not in capsys.readouterr().err


def test_calls_behind_other_results_are_left_out(tmp_path: Path) -> None:
    judged(tmp_path, Scripted(default=reply()), ["a", "b", "c"])
    (row,) = judged(tmp_path, Scripted(default=reply()), ["b"]).rows()
    assert (row.asked.calls, row.results.calls) == (0, 1)


def test_a_price_given_later_prices_the_calls_of_before(tmp_path: Path) -> None:
    (before,) = judged(tmp_path, Scripted(default=reply()), ["a", "b"], prices={}).rows()
    assert (before.asked.priced, before.expected.whole_cost) == (0, None)
    (after,) = judged(tmp_path, Scripted(default=reply()), ["a", "b"]).rows()
    assert (after.results.priced, after.results.cost) == (2, pytest.approx(2 * 0.0892))


def test_the_estimate_is_that_of_the_dry_run(tmp_path: Path) -> None:
    texts, one = [f"text {index}" for index in range(12)], pool([f"text {index}" for index in range(12)])
    with Journal(tmp_path / "journal") as journal:
        expected = forecast(Questions(Scripted(), journal, one, None), tasks(one, [criterion()]), Settings(), 1000)
    (row,) = judged(tmp_path, Scripted(default=reply(prompt_tokens=60)), texts).rows()
    assert row.expected.prompt_tokens == expected.expected.prompt_tokens
    assert (row.expected.calls, row.expected.completion_tokens) == (12, 12 * 150)
    # The estimate of the next run rests on what this one counted: 12 calls of 60 tokens, replies of 8.
    more = pool([f"other {index}" for index in range(3)])
    with Journal(tmp_path / "journal") as journal:
        learned = forecast(Questions(Scripted(), journal, more, None), tasks(more, [criterion()]), Settings(), 1000)
    assert (learned.counted_calls, learned.tokens_per_reply) == (12, 8.0)


def test_judges_are_added_up(tmp_path: Path) -> None:
    first = judged(tmp_path / "1", Scripted(default=reply()), ["a", "b"]).rows()
    second = judged(tmp_path / "2", Scripted(default=reply()), ["a"], prices={}).rows()
    both = in_all([*first, *second])
    assert (both.asked.calls, both.asked.priced, both.results.prompt_tokens) == (3, 2, 60)
    assert both.expected.whole_cost is None and both.expected.calls == 3


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("words", 2),
        # Three bytes a character, so that 12 characters are 36 bytes and 9 tokens, not 3.
        ("气候变化大会于去年举行。", 9),
        ("half an emoji \ud83d", 4),
    ],
)
def test_four_bytes_are_a_token(text: str, tokens: int) -> None:
    request = msgspec.structs.replace(ask(), messages=(Message("user", text),))
    assert estimated_tokens([request]) == tokens
    sums = CallSums(TokenRates(bytes_per_token=2.0))
    sums.add([request], None)
    assert sums.prompt_tokens == pytest.approx(2 * tokens, abs=1)


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        # 10 calls of 40,000 bytes: 40,000 / 8,000 = 5 bytes a token, 900 / 10 = 90 tokens a reply.
        ((10, 40_000, 8_000, 900), TokenRates(5.0, 90.0, 10)),
        ((9, 40_000, 8_000, 900), GUESS),
        ((10, 40_000, 0, 900), GUESS),
        # A server that always says 1 token, or counts bytes twice, teaches nothing.
        ((10, 40_000, 10, 10), GUESS),
        ((10, 40_000, 80_000, 900), GUESS),
        ((0, 0, 0, 0), GUESS),
    ],
)
def test_the_estimate_is_learned_from_calls_that_were_counted(counted, expected) -> None:
    assert learned_rates(*counted) == expected


def test_an_estimate_says_what_it_rests_on() -> None:
    assert GUESS.basis == "4 bytes a token and 150 tokens a reply, our own guess"
    assert TokenRates(4.5, 90.0, 76).basis == "4.5 bytes a token and 90 tokens a reply, as counted in 76 calls"
