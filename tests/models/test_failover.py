import asyncio
from typing import Any, cast

import pytest

from judge.errors import AuthenticationError, JudgeError, OperationalError, RateLimitError, TransientError
from judge.models.failover import Failover
from judge.models.records import Completion
from tests.mock import ask


class Failing:
    """A connection that fails in one way."""

    def __init__(self, error: JudgeError) -> None:
        self.error = error
        self.calls = 0

    async def post(self, body: bytes, request: Any) -> Completion:
        self.calls += 1
        raise self.error


KEY = AuthenticationError("refused")
FAULT = TransientError("fault")
FULL = RateLimitError("full")


def full(seconds: float) -> RateLimitError:
    return RateLimitError("full", seconds)


# The failures of two servers; what the first call fails for, and what the next one fails for.
CASES: list[tuple[JudgeError, JudgeError, JudgeError, JudgeError]] = [
    (full(600), full(20), full(20), full(20)),
    (full(600), FAULT, FAULT, FAULT),
    (full(600), FULL, FULL, FULL),
    # One of them will be ready, so nothing ends the run.
    (full(20), KEY, full(20), full(20)),
    (KEY, full(20), full(20), full(20)),
    (FAULT, KEY, FAULT, FAULT),
    (FAULT, FULL, FAULT, FAULT),
    (TransientError("slow", 7), full(3), TransientError("slow", 3), full(3)),
    (KEY, KEY, KEY, KEY),
    (KEY, OperationalError("moved"), KEY, KEY),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("turned", [False, True])
def test_what_two_servers_that_fail_come_to(case: tuple[JudgeError, ...], turned: bool) -> None:
    one, two, *expected = case
    urls = ("http://b", "http://a") if turned else ("http://a", "http://b")
    failover = Failover(
        cast(Any, {url: Failing(error) for url, error in zip(urls, (one, two), strict=True)}), lambda: 0.0
    )
    for error in expected:
        with pytest.raises(JudgeError) as caught:
            asyncio.run(failover.post(b"{}", ask()))
        if not isinstance(error, OperationalError):
            assert type(caught.value) is type(error)
        assert isinstance(caught.value, OperationalError) == isinstance(error, OperationalError)
        assert getattr(caught.value, "retry_after", None) == getattr(error, "retry_after", None)
        assert all(url in str(caught.value) for url in urls)


def test_a_server_that_asks_to_wait_is_not_asked_again_and_holds_no_call_back() -> None:
    busy, refusing = Failing(full(600)), Failing(KEY)
    failover = Failover(cast(Any, {"http://a": busy, "http://b": refusing}), lambda: 0.0)
    for _ in range(3):
        with pytest.raises(RateLimitError, match="http://a: full"):
            asyncio.run(failover.post(b"{}", ask()))
    assert busy.calls == 1
