"""How the lines of each kind of batch are written and read."""

import json
from typing import Any

import msgspec
import pytest

from judge.errors import ContentFilterError, RejectedError, UsageError
from judge.models.batch.completions import same_model
from judge.models.batch.service import bare_model, offer_of
from judge.models.batch.wire import Returned
from judge.models.records import Message
from tests.mock import ask

pytestmark = pytest.mark.fast

SCHEMA = {"type": "object", "properties": {"grade": {"type": "string"}}}
PARAMETERS: dict[str, Any] = {
    "temperature": 0.0,
    "max_tokens": 1024,
    "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}},
}
MESSAGES = (Message("system", "You grade."), Message("user", "A"), Message("assistant", "B"), Message("user", "C"))


def written(judge: str, **more: object) -> dict[str, Any]:
    wire, parameters = offer_of(judge).wire, {"model": judge.partition("/")[2], **PARAMETERS, **more}
    body = wire.body(bare_model(parameters, judge), parameters, MESSAGES)
    return dict(json.loads(msgspec.json.encode(wire.line("d" * 64, body))))


@pytest.mark.parametrize(
    ("judge", "model", "own"),
    [
        ("openai/gpt-4.1-mini", "gpt-4.1-mini", {}),
        ("server/owner/model", "owner/model", {}),
        ("litellm/groq/llama", "llama", {"allowed_openai_params": ["top_logprobs"]}),
    ],
)
def test_chat_completions_are_asked_as_they_would_be_sent(judge: str, model: str, own: dict[str, Any]) -> None:
    line = written(judge, **own)
    assert (line["custom_id"], line["method"], line["url"]) == ("d" * 64, "POST", "/v1/chat/completions")
    messages = [{"role": message.role, "content": message.content} for message in MESSAGES]
    assert line["body"] == {**PARAMETERS, "model": model, "messages": messages}


def test_anthropic_has_the_system_message_apart() -> None:
    assert written("litellm/anthropic/claude-x") == {
        "custom_id": "d" * 64,
        "params": {
            "model": "claude-x",
            "max_tokens": 1024,
            "temperature": 0.0,
            "system": "You grade.",
            "messages": [
                {"role": "user", "content": "A"},
                {"role": "assistant", "content": "B"},
                {"role": "user", "content": "C"},
            ],
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        },
    }


def test_gemini_calls_the_assistant_a_model() -> None:
    assert written("litellm/gemini/gemini-x", seed=3) == {
        "key": "d" * 64,
        "request": {
            "systemInstruction": {"parts": [{"text": "You grade."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "A"}]},
                {"role": "model", "parts": [{"text": "B"}]},
                {"role": "user", "parts": [{"text": "C"}]},
            ],
            "generationConfig": {
                "temperature": 0.0,
                "maxOutputTokens": 1024,
                "seed": 3,
                "responseMimeType": "application/json",
                "responseJsonSchema": SCHEMA,
            },
        },
    }


@pytest.mark.parametrize(
    ("judge", "line", "expected"),
    [
        ("openai/m", {"response": {"status_code": 200, "body": {"a": 1}}, "error": None}, Returned(b'{"a":1}')),
        ("server/m", {"response": {"body": {"a": 1}}}, Returned(b'{"a":1}')),
        (
            "openai/m",
            {"response": {"status_code": 200, "body": {}}, "body": {"model": "m"}},
            Returned(b"{}", asked=b'{"model":"m"}'),
        ),
        (
            "openai/m",
            {"response": {"status_code": 429, "body": {"error": {"message": "slow down"}}}},
            Returned(error="status 429: slow down"),
        ),
        (
            "openai/m",
            {"response": None, "error": {"code": "batch_expired", "message": "late"}},
            Returned(error="batch_expired: late"),
        ),
        ("server/m", {"response": None, "error": "boom"}, Returned(error="boom")),
        (
            "server/m",
            {"response": {"status_code": 400, "body": None}, "error": {"error": {"message": "too long", "code": 400}}},
            Returned(error="status 400: too long"),
        ),
        ("server/m", {}, Returned(error="no response and no error")),
        ("litellm/anthropic/m", {"result": {"type": "succeeded", "message": {}}}, Returned(b"{}")),
        ("litellm/anthropic/m", {"result": {"type": "expired"}}, Returned(error="expired")),
        (
            "litellm/anthropic/m",
            {"result": {"type": "errored", "error": {"error": {"message": "too long"}}}},
            Returned(error="errored: too long"),
        ),
        ("litellm/gemini/m", {"response": {}}, Returned(b"{}")),
        ("litellm/gemini/m", {"error": {"code": 8, "message": "no quota"}}, Returned(error="status 8: no quota")),
    ],
)
def test_a_line_is_a_reply_or_says_why_not(judge: str, line: dict[str, Any], expected: Returned) -> None:
    assert offer_of(judge).wire.returned(msgspec.json.encode(line)) == expected


def test_a_message_of_anthropic_is_read_in_the_words_of_chat_completions() -> None:
    message = {
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Grade: "},
            {"type": "text", "text": "1"},
        ],
        "stop_reason": "max_tokens",
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 4,
            "cache_creation_input_tokens": 6,
            "output_tokens": 3,
        },
    }
    read = offer_of("litellm/anthropic/m").wire.completion(json.dumps(message).encode(), ask())
    assert (read.text, read.finish_reason, read.model) == ("Grade: 1", "length", "claude-x")
    assert (read.prompt_tokens, read.cached_tokens, read.completion_tokens) == (20, 4, 3)


def test_a_candidate_of_gemini_is_read_without_its_thoughts() -> None:
    reply = {
        "modelVersion": "gemini-x-001",
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "Grade: 1"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 5},
    }
    read = offer_of("litellm/gemini/m").wire.completion(json.dumps(reply).encode(), ask())
    assert (read.text, read.finish_reason, read.model) == ("Grade: 1", "stop", "gemini-x-001")
    # Thoughts are billed as the rest of the reply is.
    assert (read.prompt_tokens, read.completion_tokens) == (10, 8)
    with pytest.raises(ContentFilterError, match="the prompt was blocked: SAFETY"):
        offer_of("litellm/gemini/m").wire.completion(b'{"promptFeedback":{"blockReason":"SAFETY"}}', ask())
    with pytest.raises(RejectedError, match="without candidates"):
        offer_of("litellm/gemini/m").wire.completion(b"{}", ask())


def test_a_version_of_a_model_answers_for_it() -> None:
    assert same_model("gpt-4.1-mini", "gpt-4.1-mini-2025-04-14")
    assert same_model("owner/model", "model") and same_model("model", "/weights/model")
    assert same_model("gemini-x", "models/gemini-x-001")
    assert same_model("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022")
    assert same_model("claude-sonnet-4-0", "claude-sonnet-4-20250514") and same_model("m", "m-preview-05-20")
    assert not same_model("gpt-4.1", "gpt-4.10") and not same_model("gpt-4.1-mini", "gpt-4.1")
    assert not same_model("gpt-4.1", "gpt-4.1-mini-2025-04-14") and not same_model("gpt-4o", "gpt-4o-mini")
    assert not same_model("gemini-2.5-flash", "gemini-2.5-flash-lite") and not same_model("gpt-4", "gpt-4-32k")


def test_a_reply_is_taken_whatever_it_says_beside_its_text() -> None:
    usage = {"input_tokens": "ten", "output_tokens": 1.5, "cache_read_input_tokens": [3]}
    strange = {"content": [3, {"type": "text", "text": "Grade: 1"}], "usage": usage, "model": {}, "stop_reason": []}
    read = offer_of("litellm/anthropic/m").wire.completion(json.dumps(strange).encode(), ask())
    assert (read.text, read.model, read.finish_reason, read.prompt_tokens) == ("Grade: 1", None, None, None)
    half = b'{"candidates": [{"content": {"parts": [{"text": "1\\ud83d"}]}}], "usageMetadata": 7}'
    assert offer_of("litellm/gemini/m").wire.completion(half, ask()).text == "1?"


@pytest.mark.parametrize("judge", ["local/m", "mine/m"])
def test_a_judge_of_this_process_has_no_requests(judge: str) -> None:
    with pytest.raises(UsageError, match=rf"{judge} is asked in this process.*`judge run` asks it"):
        offer_of(judge)
