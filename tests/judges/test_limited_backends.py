"""Every backend that sends says what it was told of rate limits, against a real server process on this machine."""

import asyncio
import os

import pytest

from judge.errors import JudgeError, QuotaError, RateLimitError
from judge.judges.backends import open_model
from judge.judges.limits import Allowance, RateLimits
from judge.judges.model import ModelOptions
from tests.mock import Mock, ask

pytestmark = pytest.mark.slow

JUDGES = ["server/mock", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini", "litellm/hosted_vllm/mock"]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")


def told(mock: Mock, judge: str, calls: int) -> list[RateLimits | JudgeError | None]:
    """What the judge says of its limits after each call, or the error of the call."""

    async def whole() -> list[RateLimits | JudgeError | None]:
        model = open_model(judge, ModelOptions(base_url=mock.base_url))
        found: list[RateLimits | JudgeError | None] = []
        try:
            for number in range(calls):
                try:
                    await model.complete(ask(text=f"question {number}"))
                except JudgeError as error:
                    found.append(error)
                found.append(model.limits)
        finally:
            await model.aclose()
        return found

    return asyncio.run(whole())


@pytest.mark.parametrize("judge", JUDGES)
def test_limits_are_known_after_a_reply_and_after_a_refusal(mock: Mock, judge: str) -> None:
    """1 request in 100 s and 2 at once: after two, all are there again in 200 s."""
    mock.config(provider="openai", rps=0.01, burst=2, retry_after=31.5)
    first, second, error, refused = told(mock, judge, 3)
    tokens = Allowance(2_000_000, 1_999_000, 0.03)
    for limits, left in ((first, 1), (second, 0), (refused, 0)):
        assert isinstance(limits, RateLimits)
        assert limits.tokens == tokens
        assert (limits.requests.limit, limits.requests.left) == (2, left)
        assert 100 * (2 - left) - 15 < (limits.requests.reset or 0) <= 100 * (2 - left)
    assert type(error) is RateLimitError
    # The server's own wish is longer than the one that it was told to have.
    assert 85 < (error.retry_after or 0) <= 100


@pytest.mark.parametrize("judge", JUDGES)
def test_a_provider_that_says_nothing_leaves_nothing(mock: Mock, judge: str) -> None:
    mock.config(provider="openai", rps=100, burst=2)
    assert told(mock, judge, 1) != [None]
    mock.config(provider="vllm")
    assert told(mock, judge, 1) == [None]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    ("provider", "seconds"), [("gemini", 32.0), ("azure", 31.5), ("litellm", 32.0), ("vllm", None)]
)
def test_the_wish_of_every_provider_comes_through(mock: Mock, judge: str, provider: str, seconds: float | None) -> None:
    mock.config(provider=provider, p429=1, retry_after=31.5)
    error, _ = told(mock, judge, 1)
    assert type(error) is RateLimitError
    assert error.retry_after == seconds


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    "refusal", ["anthropic-spend", "anthropic-contract", "anthropic-workspace", "openai-quota", "gemini-day"]
)
def test_what_no_wait_outlasts_is_no_rate_limit(mock: Mock, judge: str, refusal: str) -> None:
    mock.config(refuse=refusal)
    error, _ = told(mock, judge, 1)
    assert type(error) is QuotaError
    assert "asking again does not help" in str(error)
