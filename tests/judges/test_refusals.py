"""What every backend that sends refuses, and makes of refusals, limits and faults, against a server process here."""

import asyncio
from typing import Any

import msgspec
import pytest

from judge import errors
from judge.judges.backends import open_model
from judge.judges.limits import Allowance, RateLimits
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Message, Request
from tests.mock import Mock, ask, complete

SECRET = "sk-test-0123456789"
JUDGES = ["server/mock", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini", "litellm/hosted_vllm/mock"]


@pytest.fixture(autouse=True)
def _environment(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "JUDGE_API_KEY"):
        monkeypatch.setenv(name, SECRET)


@pytest.fixture(params=JUDGES)
def judge(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def once(mock: Mock, judge: str, asked: Request | None = None, **options: Any) -> Completion:
    return complete(open_model(judge, ModelOptions(base_url=mock.base_url, **options)), asked or ask("json"))


def said(message: str, status: int = 400, **more: str) -> dict[str, Any]:
    """A reply with an error."""
    return {"status": status, "body": {"error": {"message": message, **more}}}


@pytest.mark.parametrize(
    ("step", "expected", "message"),
    [
        (said("slow down", 429), errors.RateLimitError, "status 429: slow down"),
        (said("empty", 429, code="insufficient_quota"), errors.QuotaError, "status 429: empty"),
        (said("Insufficient Balance", 402), errors.QuotaError, "Insufficient Balance"),
        (said("oops", 500), errors.TransientError, "status 500: oops"),
        ({"status": 503, "body": "busy"}, errors.TransientError, "status 503: busy"),
        (said("slow", 408), errors.TransientError, "status 408: slow"),
        (said(f"bad {SECRET}", 401), errors.AuthenticationError, r"401: bad \*\*\*.*API key"),
        ({"status": 401, "body": {"error": "who?"}}, errors.AuthenticationError, "API key"),
        (said("no access", 403), errors.AuthenticationError, "403: no access"),
        (said("which model?", 404), errors.AuthenticationError, "404: which model"),
        ({"status": 404, "body": {"detail": "Not Found"}}, errors.AuthenticationError, "Not Found"),
        ({"status": 404, "body": {"error": {"code": "model_not_found"}}}, errors.AuthenticationError, "model"),
        (
            said("This model's maximum context length is 9 tokens"),
            errors.ContextLengthError,
            "400: This model's maximum",
        ),
        (said("model's context length is only 9 tokens"), errors.ContextLengthError, "context length is only 9"),
        (said("long", code="context_length_exceeded"), errors.ContextLengthError, "status 400: long"),
        ({"status": 413, "body": "too large"}, errors.ContextLengthError, "too large"),
        (said("no", code="content_filter"), errors.ContentFilterError, "status 400: no"),
        (said("Invalid prompt: violating our usage policy: flagged"), errors.ContentFilterError, "Invalid prompt"),
        (said("no json_schema here"), errors.StructureUnsupported, "json_schema"),
        (said("bad"), errors.RejectedError, "status 400: bad"),
        ({"status": 422, "body": {"detail": "bad seed"}}, errors.RejectedError, "bad seed"),
        (
            {"status": 307, "headers": {"Location": "http://other/v1"}, "body": ""},
            errors.OperationalError,
            "to http://other,",
        ),
        ({"status": 200, "body": "<html>"}, errors.TransientError, "status 200, but not JSON: it begins '<html>'"),
        ({"status": 200, "body": {"choices": []}}, errors.RejectedError, "no choices"),
        ({"status": 200, "body": {"hello": 1}}, (errors.RejectedError, errors.TransientError), "choices"),
        ({"drop": True}, errors.TransientError, "ServerDisconnectedError"),
        ({"delay": 1.0}, errors.TransientError, "no answer within 0.3 s"),
    ],
)
def test_failures_are_told_apart_after_one_request(mock: Mock, judge: str, step, expected, message) -> None:
    mock.script(step)
    with pytest.raises(errors.JudgeError, match=message) as failed:
        once(mock, judge, timeout=0.3)
    assert type(failed.value) in (expected if isinstance(expected, tuple) else (expected,))
    assert SECRET not in f"{failed.value!r} {failed.value}"
    assert "litellm." not in str(failed.value)
    assert mock.stats()["requests"] == 1


def test_retry_after_is_handed_on(mock: Mock, judge: str) -> None:
    mock.config(p429=1, retry_after=0.3)
    with pytest.raises(errors.TransientError) as limited:
        once(mock, judge)
    assert limited.value.retry_after == 0.3
    assert mock.stats()["requests"] == 1


def test_a_refusal_keeps_its_words(mock: Mock, judge: str) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot \ud83d."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    mock.script({"status": 200, "body": {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}})
    found = once(mock, judge)
    assert (found.text, found.finish_reason) == ("I cannot ?.", "refusal")


def test_text_that_is_no_unicode_fails_alone(mock: Mock, judge: str) -> None:
    broken = msgspec.structs.replace(ask(), messages=(Message("user", "a \ud800"),))
    with pytest.raises(errors.RejectedError, match="cannot be sent"):
        once(mock, judge, broken)
    assert mock.stats()["requests"] == 0


def told(mock: Mock, judge: str, calls: int) -> list[RateLimits | errors.JudgeError | None]:
    """What the judge says of its limits after each call, or the error of the call."""

    async def whole() -> list[RateLimits | errors.JudgeError | None]:
        model = open_model(judge, ModelOptions(base_url=mock.base_url))
        found: list[RateLimits | errors.JudgeError | None] = []
        try:
            for number in range(calls):
                try:
                    await model.complete(ask(text=f"question {number}"))
                except errors.JudgeError as error:
                    found.append(error)
                found.append(model.limits)
        finally:
            await model.aclose()
        return found

    return asyncio.run(whole())


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
    assert type(error) is errors.RateLimitError
    # The server's own wish is longer than the one that it was told to have.
    assert 85 < (error.retry_after or 0) <= 100


def test_a_provider_that_says_nothing_leaves_nothing(mock: Mock, judge: str) -> None:
    mock.config(provider="openai", rps=100, burst=2)
    assert told(mock, judge, 1) != [None]
    mock.config(provider="vllm")
    assert told(mock, judge, 1) == [None]


@pytest.mark.parametrize(
    ("provider", "seconds"), [("gemini", 32.0), ("azure", 31.5), ("litellm", 32.0), ("vllm", None)]
)
def test_the_wish_of_every_provider_comes_through(mock: Mock, judge: str, provider: str, seconds: float | None) -> None:
    mock.config(provider=provider, p429=1, retry_after=31.5)
    error, _ = told(mock, judge, 1)
    assert type(error) is errors.RateLimitError
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "refusal", ["anthropic-spend", "anthropic-contract", "anthropic-workspace", "openai-quota", "gemini-day"]
)
def test_what_no_wait_outlasts_is_no_rate_limit(mock: Mock, judge: str, refusal: str) -> None:
    mock.config(refuse=refusal)
    error, _ = told(mock, judge, 1)
    assert type(error) is errors.QuotaError
    assert "asking again does not help" in str(error)


@pytest.mark.parametrize(
    ("judge", "options", "message"),
    [
        ("server/m", {}, "--base-url"),
        ("server/m", {"base_url": "localhost:8000"}, "--base-url"),
        ("server/m", {"base_url": "http://localhost", "threads": 2}, "--threads"),
        ("openai/gpt-4o", {"base_url": "nowhere"}, "--base-url"),
        ("openai/gpt-4o", {"base_url": "http://ann:pw@host/v1"}, "--base-url"),
        ("openai/gpt-4o", {"threads": 2}, "--threads"),
        ("litellm/openai/gpt-4o", {"base_url": "nowhere"}, "--base-url"),
        ("litellm/openai/gpt-4o", {"base_url": "http://ann:pw@host/v1"}, "--base-url"),
        ("litellm/openai/gpt-4o", {"threads": 2}, "--threads"),
        ("litellm/anthropic/claude-sonnet-4-5", {"seed": 1}, "seed"),
    ],
)
def test_what_can_never_work_is_refused_before_anything_is_sent(judge, options, message) -> None:
    with pytest.raises(errors.UsageError, match=message) as refused:
        open_model(judge, ModelOptions(**options)).check([])
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("judge", "variables"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("litellm/anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("litellm/gemini/gemini-2.5-flash", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("litellm/mistral/mistral-large-latest", "MISTRAL_API_KEY"),
    ],
)
def test_missing_keys_are_named(monkeypatch: pytest.MonkeyPatch, judge: str, variables: str) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(errors.UsageError, match=variables):
        open_model(judge, ModelOptions()).check([])


def test_reasoning_models_of_litellms_list_get_another_limit_and_no_temperature(mock: Mock) -> None:
    judge = "litellm/openai/o3-mini"
    once(mock, judge, ask("text"), max_tokens=9)
    sent = mock.last()[1]
    assert sent["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature"} & set(sent)
    with pytest.raises(errors.UsageError, match="temperature"):
        open_model(judge, ModelOptions(base_url=mock.base_url, temperature=0.5)).check([])
