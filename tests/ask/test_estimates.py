"""How many tokens calls will have."""

import msgspec
import pytest

from judge.ask.account import GUESS, CallSums, TokenRates, estimated_tokens, learned_rates
from judge.judges.records import Message
from tests.mock import ask


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
    assert estimated_tokens(request) == tokens
    sums = CallSums(TokenRates(bytes_per_token=2.0))
    sums.add(request, None)
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
