"""Providers' refusals, as they really word them, and the errors they must become."""

import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge import errors
from judge.judges.http_errors import Refusal, check_redirect, connection_error, error_for, read_refusal, shorten
from judge.judges.limits import retry_after


def openai(message: str, kind: str | None = "invalid_request_error", code: object = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


QUOTA = "You exceeded your current quota, please check your plan and billing details."
CONTEXT = "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens."
VLLM = "You passed 1015 input tokens. However, the model's context length is only 1024 tokens, resulting in a maximum"
LLAMA = "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"
GONE = openai("The model `x` does not exist", "invalid_request_error", "model_not_found")
AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."

REFUSALS: list[tuple[int, Any, type[errors.JudgeError]]] = [
    (429, openai("Rate limit reached for gpt-4o", "requests", "rate_limit_exceeded"), errors.RateLimitError),
    (429, "slow down", errors.RateLimitError),
    (429, openai(QUOTA, "insufficient_quota", "insufficient_quota"), errors.QuotaError),
    (429, openai("No credit.", "insufficient_quota", "credit_balance_exhausted"), errors.QuotaError),
    # Gemini words a limit per minute just as OpenAI words an empty account.
    (429, [{"error": {"code": 429, "message": QUOTA, "status": "RESOURCE_EXHAUSTED"}}], errors.RateLimitError),
    (402, openai("Insufficient Balance"), errors.QuotaError),
    (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}, errors.QuotaError),
    (401, openai("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), errors.AuthenticationError),
    (403, openai("Country, region, or territory not supported"), errors.AuthenticationError),
    (404, GONE, errors.AuthenticationError),
    (404, {"detail": "Not Found"}, errors.AuthenticationError),
    (400, GONE, errors.AuthenticationError),
    (400, openai(CONTEXT, "invalid_request_error", "context_length_exceeded"), errors.ContextLengthError),
    (400, {"object": "error", "message": CONTEXT, "type": "BadRequestError", "code": 400}, errors.ContextLengthError),
    (400, openai(VLLM, "BadRequestError", 400), errors.ContextLengthError),
    (400, openai(LLAMA, "exceed_context_size_error", 400), errors.ContextLengthError),
    (500, openai("Context size has been exceeded.", "server_error", 500), errors.ContextLengthError),
    (400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}},
        errors.ContextLengthError),
    (422, {"error": "`inputs` must have less than 4096 tokens", "error_type": "validation"}, errors.ContextLengthError),
    (413, "Request Entity Too Large", errors.ContextLengthError),
    (400, openai(AZURE, None, "content_filter"), errors.ContentFilterError),
    (400, openai("Prompt blocked.", None, "content_policy_violation"), errors.ContentFilterError),
    (400, {"error": {"message": "Blocked.", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
        errors.ContentFilterError),
    (403, openai("Your input was flagged by the moderation of this model", None, 403), errors.ContentFilterError),
    (400, openai("'response_format' of type 'json_schema' is not supported with this model."),
        errors.StructureUnsupported),
    (400, openai("Failed to parse grammar"), errors.StructureUnsupported),
    (400, openai("Invalid schema for response_format 'verdict'"), errors.StructureUnsupported),
    (400, openai("Unsupported value: 'temperature' does not support 0.0 with this model."), errors.RejectedError),
    (422, {"detail": [{"loc": ["body", "seed"], "msg": "value is not an integer"}]}, errors.RejectedError),
    (408, "", errors.TransientError),
    (409, openai("conflict"), errors.TransientError),
    (500, openai("The server had an error"), errors.TransientError),
    (502, "<html>Bad Gateway</html>", errors.TransientError),
    (503, openai("overloaded", "service_unavailable_error"), errors.TransientError),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, errors.RateLimitError),
    (418, "teapot", errors.RejectedError),
]  # fmt: skip


def error(status: int, body: object, structured: bool = True) -> errors.JudgeError:
    encoded = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    return error_for(read_refusal(status, encoded), {}, structured=structured)


@pytest.mark.parametrize(("status", "body", "expected"), REFUSALS)
def test_refusals_become_the_error_that_says_what_to_do(
    status: int, body: object, expected: type[errors.JudgeError]
) -> None:
    found = error(status, body)
    assert type(found) is expected
    assert str(found).startswith(f"status {status}: ")


def test_structure_is_only_doubted_where_it_was_asked() -> None:
    assert type(error(400, openai("response_format is unknown"), structured=False)) is errors.RejectedError


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("https://u:pw@new.example/v1?key=k", "https://new.example"),
        ("https://Old.example/v2/chat/?key=k", "https://old.example/v2/chat/"),
        ("/v2/chat/", "https://old.example/v2/chat/"),
        ("http://old.example/v1/chat", "http://old.example"),
        ("https://old.example:444/v1/chat", "https://old.example:444"),
        ("https://[new/", "an address that cannot be read"),
        (None, "https://old.example/v1/chat"),
    ],
)
def test_a_redirect_is_refused_with_both_addresses(location: str | None, there: str) -> None:
    with pytest.raises(errors.OperationalError) as refused:
        check_redirect(302, "https://old.example:443/v1/chat", location)
    assert str(refused.value) == (
        f"status 302: https://old.example redirects to {there}, and judge follows no redirect; if the judge is there, "
        "name that address in --base-url"
    )


@pytest.mark.parametrize("status", [200, 299, 400])
def test_other_statuses_are_no_redirect(status: int) -> None:
    check_redirect(status, "https://old.example/v1", "https://new.example/")


def test_the_echo_of_a_request_after_a_servers_own_words_is_not_read_as_its_words() -> None:
    echo = "1 validation error for Body: seed: value is not an integer, input: " + "x" * 300
    assert (
        type(error(400, openai(f"{echo} insufficient_quota, context length, content_filter"))) is errors.RejectedError
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (openai("it broke"), "it broke"),
        ([openai("it broke")], "it broke"),
        ({"error": "it broke"}, "it broke"),
        ({"message": "it broke"}, "it broke"),
        ({"detail": "it broke"}, "it broke"),
        ({"detail": [{"msg": "it broke"}]}, '[{"msg": "it broke"}]'),
        ({"surprise": 1}, '{"surprise":1}'),
        ("it\n  broke", "it broke"),
        ("", "no message"),
        (None, "null"),
        (openai("x" * 1000), "x" * 299 + "…"),
    ],
)
def test_the_message_is_found_in_every_shape(body: object, message: str) -> None:
    encoded = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    assert read_refusal(400, encoded).message == message


def test_bytes_that_are_no_text_are_survived() -> None:
    assert read_refusal(500, b"\xff\xfe\x00").message == "\ufffd\ufffd\x00"
    assert read_refusal(500, b"[" * 100_000).message.startswith("[[[")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "2", "Retry-After-Ms": "1500"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    then = datetime.now(UTC) + timedelta(seconds=60)
    found = retry_after({"Retry-After": format_datetime(then, usegmt=True)})
    assert found is not None
    assert 50 < found <= 60


def test_a_wish_to_wait_reaches_the_error() -> None:
    for status in (429, 503):
        found = error_for(Refusal(status, "busy"), {"Retry-After": "7"}, structured=False)
        assert isinstance(found, errors.TransientError)
        assert found.retry_after == 7


def test_no_key_is_ever_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcd-efgh-1234")
    shown = shorten("key abcd-efgh-1234, sk-proj-99aa*****zz, Bearer tok.en at https://u:pw@host/x")
    assert shown == "key ***, ***, Bearer *** at https://***host/x"


def verified(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


OWN = "; for a certificate of your own, SSL_CERT_FILE=FILE names it, or that of the authority that signed it"
OTHER_PROTOCOL = "; the port speaks no TLS: if it is one of plain HTTP, its address begins with http://"


def of_reason(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "no")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (verified(18), OWN),  # self-signed
        (verified(19), OWN),  # signed by an authority of one's own
        (verified(20), OWN),  # that authority is not sent
        (verified(10), ""),  # too late
        (verified(62), ""),  # of another host
        (of_reason("WRONG_VERSION_NUMBER"), OTHER_PROTOCOL),
        (of_reason("TLSV1_ALERT_PROTOCOL_VERSION"), ""),
    ],
)
def test_a_failure_of_tls_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: ssl.SSLError, advice: str
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    found = connection_error(error, 5.0, "https://host/v1")
    assert type(found) is errors.OperationalError
    assert str(found).partition("; ")[2] == advice.removeprefix("; ")
    # OpenSSL passes over a file that is not there.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    told = str(connection_error(error, 5.0))
    assert ("none.pem', which is no file" in told) == (advice == OWN)
