"""How the lines of each kind of batch are written and read."""

import json
from typing import Any

import msgspec
import pytest

from judge.errors import RejectedError, UsageError
from judge.extra.scale import OpenQuestion
from judge.extra.scale.batches import same_model
from judge.extra.scale.service import offer_of
from judge.judges.records import Completion, Message
from tests.mock import ask

pytestmark = pytest.mark.fast

SCHEMA = {"type": "object", "properties": {"grade": {"type": "string"}}}
PARAMETERS: dict[str, Any] = {
    "temperature": 0.0,
    "max_tokens": 1024,
    "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}},
}
MESSAGES = (Message("system", "You grade."), Message("user", "A"), Message("assistant", "B"), Message("user", "C"))
ALL = list(msgspec.to_builtins(MESSAGES))


def written(judge: str) -> dict[str, Any]:
    request = msgspec.structs.replace(ask(), messages=MESSAGES)
    question = OpenQuestion("d" * 64, judge, {"model": judge.partition("/")[2], **PARAMETERS}, request)
    return dict(json.loads(msgspec.json.encode(question.line())))


def read(judge: str, line: dict[str, Any]) -> Completion:
    return offer_of(judge).read(line, ask())


@pytest.mark.parametrize(
    ("judge", "model"), [("openai/gpt-4.1-mini", "gpt-4.1-mini"), ("server/owner/model", "owner/model")]
)
def test_chat_completions_are_asked_as_they_would_be_sent(judge: str, model: str) -> None:
    line = written(judge)
    assert (line["custom_id"], line["method"], line["url"]) == ("d" * 64, "POST", "/v1/chat/completions")
    assert line["body"] == {**PARAMETERS, "model": model, "messages": ALL}


def test_anthropic_has_the_system_message_apart() -> None:
    output = {"format": {"type": "json_schema", "schema": SCHEMA}}
    sent = {"model": "claude-x", "max_tokens": 1024, "temperature": 0.0, "system": "You grade.", "messages": ALL[1:]}
    line = written("litellm/anthropic/claude-x")
    assert line == {"custom_id": "d" * 64, "params": {**sent, "output_config": output}}


CHAT = '{"choices":[{"message":{"content":"Grade: 1"}}]}'
MESSAGE = '{"content":[{"type":"text","text":"Grade: 1"}]}'


@pytest.mark.parametrize(("judge", "line", "reply"), [
    ("openai/m", '{"response":{"status_code":200,"body":%s},"error":null}', CHAT),
    ("server/m", '{"response":{"body":%s}}', CHAT),
    ("litellm/anthropic/m", '{"result":{"type":"succeeded","message":%s}}', MESSAGE),
])  # fmt: skip
def test_a_line_is_a_reply(judge: str, line: str, reply: str) -> None:
    found = read(judge, json.loads(line % reply))
    assert (found.text, json.loads(found.raw or "")) == ("Grade: 1", json.loads(reply))


@pytest.mark.parametrize(("judge", "line", "why"), [
    ("openai/m", '{"response":{"status_code":429,"body":{"error":{"message":"wait"}}}}', "status 429: wait"),
    ("openai/m", '{"response":null,"error":{"code":"batch_expired","message":"late"}}', "batch_expired: late"),
    ("server/m", '{"response":null,"error":"boom"}', "boom"),
    ("server/m", '{"response":{"status_code":400,"body":null},"error":{"error":{"message":"too long","code":400}}}',
        "status 400: too long"),
    ("server/m", "{}", "no response and no error"),
    ("server/m", '{"response":{"status_code":500,"body":"bad gateway"}}', 'status 500: "bad gateway"'),
    ("litellm/anthropic/m", '{"result":{"type":"errored","error":"plain"}}', "errored: plain"),
    ("litellm/anthropic/m", '{"result":{"type":"expired"}}', "expired"),
    ("litellm/anthropic/m", '{"result":{"type":"errored","error":{"error":{"message":"no"}}}}', "errored: no"),
])  # fmt: skip
def test_a_line_says_why_there_is_no_reply(judge: str, line: str, why: str) -> None:
    with pytest.raises(RejectedError) as raised:
        read(judge, json.loads(line))
    assert str(raised.value) == why


def test_a_message_of_anthropic_is_read_in_the_words_of_chat_completions() -> None:
    texts = [{"type": "text", "text": text} for text in ("Grade: ", "1")]
    content = [{"type": "thinking", "thinking": "hm"}, *texts]
    cached = {"cache_read_input_tokens": 4, "cache_creation_input_tokens": 6}
    usage = {"input_tokens": 10, "output_tokens": 3, "output_tokens_details": {"thinking_tokens": 2}, **cached}
    message = {"model": "claude-x", "content": content, "stop_reason": "max_tokens", "usage": usage}
    found = read("litellm/anthropic/m", {"result": {"type": "succeeded", "message": message}})
    assert (found.text, found.finish_reason, found.model) == ("Grade: 1", "length", "claude-x")
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (20, 4, 3)
    assert found.thought_tokens == 2


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
    found = read("litellm/anthropic/m", {"result": {"type": "succeeded", "message": strange}})
    assert (found.text, found.model, found.finish_reason, found.prompt_tokens) == ("Grade: 1", None, None, None)


@pytest.mark.parametrize("judge", ["local/m", "mine/m", "litellm/gemini/m"])
def test_a_judge_without_a_batch_format_has_no_requests(judge: str) -> None:
    with pytest.raises(UsageError, match=rf"{judge} has no batch format, so `judge run` asks it"):
        offer_of(judge)
