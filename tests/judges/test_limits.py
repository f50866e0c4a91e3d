"""What providers say of their limits, as they really write it, in headers and in bodies."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import QuotaError, RateLimitError, RejectedError, TransientError
from judge.judges.http_errors import asked_wait, error_for, read_refusal
from judge.judges.limits import Allowance, RateLimits, read_limits, read_seconds, retry_after, wish_in_words

NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)
AT = {"Date": "Fri, 31 Jan 2025 12:00:00 GMT"}
"""Resets that are times count from the provider's own clock."""

HEADERS: list[tuple[dict[str, str], RateLimits | None]] = [
    (
        # OpenAI
        {
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": "59",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-limit-tokens": "150000",
            "x-ratelimit-remaining-tokens": "149984",
            "x-ratelimit-reset-tokens": "6m0s",
        },
        RateLimits(Allowance(60, 59, 1.0), Allowance(150000, 149984, 360.0)),
    ),
    (
        # OpenAI, a project with a tighter limit of its own
        {
            "X-RateLimit-Limit-Tokens": "150000",
            "X-RateLimit-Remaining-Tokens": "149984",
            "X-RateLimit-Limit-Project-Tokens": "1000",
            "X-RateLimit-Remaining-Project-Tokens": "7",
            "X-RateLimit-Reset-Project-Tokens": "120ms",
        },
        RateLimits(tokens=Allowance(1000, 7, 0.12)),
    ),
    (
        # Anthropic
        {
            **AT,
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2025-01-31T12:00:30Z",
            "anthropic-ratelimit-tokens-limit": "30000",
            "anthropic-ratelimit-tokens-remaining": "29000",
            "anthropic-ratelimit-tokens-reset": "2025-01-31T12:00:02Z",
            "anthropic-ratelimit-output-tokens-remaining": "0",
        },
        RateLimits(Allowance(50, 0, 30.0), Allowance(30000, 29000, 2.0)),
    ),
    (
        # Azure, openai-python#937 and openai-dotnet#838
        {"x-rate-limit-reset-tokens": "55", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-remaining-requests": "9"},
        RateLimits(Allowance(left=9), Allowance(left=0, reset=55.0)),
    ),
    ({"x-ratelimit-limit-tokens": "-1", "x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "0"}, None),
    (
        # litellm's proxy: its own limits by their owner, and the provider's with a prefix
        {"x-ratelimit-api_key-remaining-requests": "3", "x-ratelimit-api_key-limit-requests": "5"},
        RateLimits(Allowance(5, 3)),
    ),
    (
        {
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": "59",
            "llm_provider-x-ratelimit-limit-requests": "60",
            "llm_provider-x-ratelimit-remaining-requests": "59",
            "llm_provider-x-ratelimit-reset-requests": "1s",
        },
        RateLimits(Allowance(60, 59, 1.0)),
    ),
    # vLLM, Gemini
    ({"server": "uvicorn", "content-length": "12"}, None),
    ({"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-tokens": "nan"}, None),
]


@pytest.mark.parametrize(("headers", "limits"), HEADERS)
def test_the_limits_of_every_provider_are_read(headers: dict[str, str], limits: RateLimits | None) -> None:
    assert read_limits(headers) == limits


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h2m3.5s", 3723.5), ("6m0s", 360.0), ("120ms", 0.12), ("17us", 1.7e-5), ("55", 55.0), ("0.5", 0.5),
        ("2025-01-31T12:00:30Z", 30.0), ("2025-01-31T13:01:00+01:00", 60.0), ("2025-01-31T11:59:59Z", None),
        ("0", None), ("-1", None), ("0s", None), ("soon", None), ("1s later", None), ("inf", None), ("", None),
    ],
)  # fmt: skip
def test_a_reset_comes_in_three_units(text: str, seconds: float | None) -> None:
    headers = {**AT, "x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": text}
    assert read_limits(headers) == RateLimits(Allowance(left=1, reset=pytest.approx(seconds)))


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59_999))
def test_a_go_duration_is_the_sum_of_its_parts(hours: int, minutes: int, milliseconds: int) -> None:
    text = f"{hours}h{minutes}m{milliseconds / 1000:.3f}s"
    assert read_seconds(text, NOW) == pytest.approx(3600 * hours + 60 * minutes + milliseconds / 1000)


@given(st.integers(1, 10**7))
def test_a_time_is_as_far_away_as_it_says(seconds: int) -> None:
    then = NOW + timedelta(seconds=seconds)
    assert read_seconds(then.isoformat(), NOW) == seconds
    assert read_seconds(then.strftime("%Y-%m-%dT%H:%M:%SZ"), NOW) == seconds


@given(st.text(max_size=80), st.text(max_size=40))
def test_no_header_breaks_a_reader(text: str, date: str) -> None:
    for found in (read_seconds(text, NOW), wish_in_words(text)):
        assert found is None or found >= 0
    headers = {"Date": date, "retry-after": text, "x-ratelimit-reset-requests": text, "x-ratelimit-limit-tokens": text}
    read_limits(headers)
    wish = retry_after(headers)
    assert wish is None or wish >= 0


AZURE = (
    "Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Please retry after {} seconds."
)


def gemini(*details: object) -> dict[str, Any]:
    message = "You exceeded your current quota, please check your plan and billing details."
    return {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}


def quota_failure(period: str) -> dict[str, Any]:
    failed = {"quotaId": f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier", "quotaValue": "50"}
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [failed]}


RESETS = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}
SAID: list[tuple[dict[str, str], Any, float | None]] = [
    # Each source beats those below it.
    ({"retry-after-ms": "1500", "retry-after": "9"}, [gemini(RETRY_INFO)], 1.5),
    ({"retry-after": "9", **RESETS}, [gemini(RETRY_INFO)], 9.0),
    ({**AT, "retry-after": "Fri, 31 Jan 2025 12:00:09 GMT"}, {}, 9.0),
    (RESETS, [gemini(quota_failure("Minute"), RETRY_INFO)], 31.0),
    ({}, gemini({**RETRY_INFO, "retryDelay": "18.457s"}), 18.457),
    (RESETS, {"error": {"code": "429", "message": AZURE.format(37)}}, 37.0),
    ({}, {"error": {"code": "429", "message": "Rate limit is exceeded. Try again in 50 seconds."}}, 50.0),
    ({}, {"error": {"message": "Limit 3, Used 3, Requested 1. Please try again in 6m0s. Visit us."}}, 360.0),
    ({}, {"error": {"message": "Please try again in 20ms."}}, 0.02),
    (RESETS, {"error": {"message": "slow down"}}, 2.0),
    # Of the limit that is used up, not of the other one.
    ({**RESETS, "x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "50s"}, {}, 2.0),
    # Nothing is used up, but a code names the limit.
    (
        {"x-ratelimit-reset-requests": "2s", "x-ratelimit-reset-tokens": "5s", "x-ratelimit-remaining-tokens": "5"},
        {"error": {"message": "slow down", "type": "tokens"}},
        5.0,
    ),
    ({"llm_provider-retry-after": "4"}, {}, 4.0),
    ({}, {"error": {"message": "slow down"}}, None),
    ({}, gemini({"retryDelay": 31}, "?", {"violations": "?"}, {"violations": ["?", {"quotaId": 1}]}), None),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), SAID)
def test_the_wish_to_wait_is_read_from_whichever_source_says_it(headers, body, seconds) -> None:
    refusal = read_refusal(429, msgspec.json.encode(body))
    assert asked_wait(refusal, headers) == seconds
    found = error_for(refusal, headers, structured=False)
    assert type(found) is RateLimitError
    assert found.retry_after == seconds


def anthropic(kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, "details": {"error_code": code}}}


HOPELESS: list[tuple[int, Any, str]] = [
    (
        429,
        anthropic("rate_limit_error", "Limit.", "enforced_spend_limit_reached"),
        r"again after \d{4}-\d\d-01 00:00 UTC",
    ),
    (429, anthropic("rate_limit_error", "Limit.", "contract_spend_limit_reached"), "once it is raised or renewed"),
    (
        400,
        anthropic("invalid_request_error", "You have reached your specified API usage limits."),
        r"again after \d{4}-\d\d-01 00:00 UTC",
    ),
    (
        429,
        anthropic(
            "rate_limit_error", "You will regain access on 2031-02-03 at 04:05 UTC.", "enforced_spend_limit_reached"
        ),
        "again after 2031-02-03 04:05 UTC",
    ),
    (402, anthropic("billing_error", "Payment."), "add credit"),
    (402, {"error": {"code": 402, "message": "Insufficient credits"}}, "add credit"),
    (429, {"error": {"message": "Quota.", "code": "insufficient_quota"}}, "add credit"),
    (429, [gemini(quota_failure("Minute"), quota_failure("Day"), RETRY_INFO)], "after midnight Pacific time"),
]


@pytest.mark.parametrize(("status", "body", "advice"), HOPELESS)
def test_what_no_wait_outlasts_says_what_to_do_and_when_to_come_back(status: int, body: Any, advice: str) -> None:
    refusal = read_refusal(status, msgspec.json.encode(body))
    with pytest.raises(QuotaError, match=f"^status {status}: .*asking again does not help: .*{advice}"):
        raise error_for(refusal, {"retry-after": "1"}, structured=True)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"x-should-retry": "true"}, RateLimitError),
        (429, {"x-should-retry": "false"}, QuotaError),
        (429, {"x-should-retry": "false", "retry-after": "3"}, RateLimitError),
        (503, {"X-Should-Retry": "false"}, RejectedError),
        (503, {"x-should-retry": "perhaps"}, TransientError),
        (418, {"x-should-retry": "true"}, TransientError),
        (529, {}, RateLimitError),
    ],
)
def test_the_providers_word_on_asking_again_is_obeyed(status, headers, expected) -> None:
    assert type(error_for(read_refusal(status, b"busy"), headers, structured=False)) is expected
