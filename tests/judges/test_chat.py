"""What is sent to and read from an OpenAI-compatible endpoint."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import JudgeError, RejectedError, TransientError
from judge.judges.chat import chat_messages, read_completion, response_format
from judge.judges.records import Completion, Message
from tests.mock import ask


def read(body: object) -> Completion:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_completion(encoded, {}, structured=True, latency=0.25)


def reply(message: object, finish_reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


def test_everything_worth_keeping_is_read() -> None:
    body = reply({"content": "Grade: 2"}, model="m-2026", system_fingerprint="fp", **usage(12, 3, 15))
    found = read(body)
    assert found == Completion(
        text="Grade: 2", finish_reason="stop", model="m-2026", system_fingerprint="fp", prompt_tokens=12,
        completion_tokens=3, latency=0.25, raw=json.dumps(body),
    )  # fmt: skip


def usage(prompt: int, reply: int, total: int, **more: Any) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": total, **more}}


Counts = tuple[int | None, int | None, int | None, int | None]
USAGE: dict[str, tuple[dict[str, Any], Counts]] = {
    # who sends it: the reply beside its choices; prompt tokens, those of them from a cache, reply tokens, those of them
    # that are thoughts
    "OpenAI": (
        usage(2006, 300, 2306, prompt_tokens_details={"cached_tokens": 1920, "audio_tokens": 0},
              completion_tokens_details={"reasoning_tokens": 192}),
        (2006, 1920, 300, 192),
    ),
    "OpenAI, without a thought": (usage(40, 3, 43, completion_tokens_details={"reasoning_tokens": 0}),
        (40, None, 3, 0)),
    "vLLM": (usage(40, 3, 43, prompt_tokens_details={"cached_tokens": 32}), (40, 32, 3, None)),
    "vLLM, not asked for details": (usage(40, 3, 43, prompt_tokens_details=None, completion_tokens_details=None),
        (40, None, 3, None)),
    "vLLM with a reasoning parser": (usage(40, 90, 130, completion_tokens_details={"reasoning_tokens": 81}),
        (40, None, 90, 81)),
    "DeepSeek": (usage(120, 9, 129, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=56), (120, 64, 9, None)),
    "DeepSeek, which thought": (
        usage(120, 99, 219, prompt_cache_hit_tokens=64, completion_tokens_details={"reasoning_tokens": 90}),
        (120, 64, 99, 90),
    ),
    "OpenRouter": (
        usage(10, 60, 70, prompt_tokens_details={"cached_tokens": 0}, cost=0.00014, is_byok=False,
              completion_tokens_details={"reasoning_tokens": 55, "image_tokens": 0}),
        (10, 0, 60, 55),
    ),
    "SGLang": (usage(29, 105, 134, prompt_tokens_details=None, reasoning_tokens=88), (29, None, 105, 88)),
    "Anthropic through a gateway": (usage(500, 7, 507, cache_read_input_tokens=400, cache_creation_input_tokens=80),
        (500, 400, 7, None)),
    "llama.cpp": (usage(162, 1, 163) | {"timings": {"cache_n": 132, "prompt_n": 30, "prompt_ms": 5.5}},
        (162, 132, 1, None)),
    "xAI, whose replies are counted without their 94 thoughts": (
        usage(32, 9, 135, completion_tokens_details={"reasoning_tokens": 94}), (32, None, 9 + 94, 94)
    ),
    "Gemini, whose thoughts stand in the total alone": (usage(20, 424, 1016), (20, None, 424 + 572, 572)),
    # More than all of a prompt cannot be cached, so these stand beside it.
    "cached tokens beside those of the prompt, in the total too": (usage(100, 7, 507, cache_read_input_tokens=400),
        (500, 400, 7, None)),
    # No more than all of a reply is thoughts.
    "more thoughts than reply": (usage(20, 5, 25, completion_tokens_details={"reasoning_tokens": 6}),
        (20, None, 5, None)),
    "a total that cannot be true": (usage(20, 5, 3), (20, None, 5, None)),
    "no counts": ({"usage": None}, (None, None, None, None)),
}  # fmt: skip


def counts(found: Completion) -> Counts:
    return found.prompt_tokens, found.cached_tokens, found.completion_tokens, found.thought_tokens


@pytest.mark.parametrize("who", USAGE)
def test_the_usage_of_every_provider_is_read_wholly(who: str) -> None:
    more, expected = USAGE[who]
    assert counts(read(reply({"content": "Grade: 2"}, **more))) == expected
    # A number of another type sends the reply another way, which reads the same.
    assert counts(read(reply({"content": "Grade: 2"}, system_fingerprint=7, **more))) == expected


@pytest.mark.parametrize("odd", ["12", 1.5, None, [], {"cached_tokens": 3}, True])
def test_odd_usage_loses_no_reply(odd: object) -> None:
    told = usage(odd, odd, 30, prompt_tokens_details=odd, completion_tokens_details=odd)  # type: ignore[arg-type]
    found = read(reply({"content": "Grade: 2"}, **told, timings=odd))
    assert (found.text, found.prompt_tokens, found.completion_tokens) == ("Grade: 2", None, None)
    assert found.cached_tokens in (None, 3) and found.thought_tokens is None


@pytest.mark.parametrize(
    ("message", "finish_reason", "text", "reason"),
    [
        ({"content": None, "refusal": "I cannot."}, "stop", "I cannot.", "refusal"),
        ({"content": "", "refusal": None}, "content_filter", "", "content_filter"),
        ({"content": None, "reasoning_content": "hmm"}, "length", "", "length"),
        ({}, None, "", None),
        ({"content": [{"type": "thinking"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "stop",
            "ab", "stop"),
    ],
)  # fmt: skip
def test_odd_replies(message: object, finish_reason: str | None, text: str, reason: str | None) -> None:
    found = read(reply(message, finish_reason))
    assert (found.text, found.finish_reason, found.prompt_tokens) == (text, reason, None)


def called(*arguments: object) -> list[dict[str, Any]]:
    return [{"id": "c", "type": "function", "function": {"name": "f", "arguments": each}} for each in arguments]


VERDICT = {"rationale": "Fünf.", "grade": "2"}
WRITTEN = '{"rationale": "Fünf.", "grade": "2"}'
ELSEWHERE: list[tuple[dict[str, Any], str]] = [
    # A choice, and its text.
    ({"message": {"content": VERDICT}}, WRITTEN),
    ({"message": {"content": {}}}, "{}"),
    ({"text": "Grade: 2"}, "Grade: 2"),
    ({"text": "Grade: 2", "message": {"content": ""}}, "Grade: 2"),
    ({"text": "Grade: 3", "message": {"content": "Grade: 2"}}, "Grade: 2"),
    ({"message": {"content": None, "tool_calls": called(WRITTEN)}}, WRITTEN),
    ({"message": {"content": "", "tool_calls": called(VERDICT)}}, WRITTEN),
    ({"message": {"content": [], "tool_calls": called(WRITTEN)}}, WRITTEN),
    ({"message": {"content": None, "tool_calls": [], "function_call": {"arguments": WRITTEN}}}, WRITTEN),
    ({"message": {"content": None, "function_call": {"name": "f", "arguments": VERDICT}}}, WRITTEN),
    # What stands beside a text is no answer, and several calls are none.
    ({"message": {"content": "Grade: 2", "tool_calls": called(WRITTEN)}}, "Grade: 2"),
    ({"message": {"content": None, "tool_calls": called(WRITTEN, WRITTEN)}}, ""),
    ({"message": {"content": None, "tool_calls": called(WRITTEN, ""), "function_call": {"arguments": WRITTEN}}}, ""),
    ({"message": {"content": None, "tool_calls": called([2])}}, ""),
    ({"message": {"content": None, "tool_calls": [3]}}, ""),
    ({"message": {"content": None, "tool_calls": {"function": {"arguments": WRITTEN}}}}, ""),
    ({"message": {"content": None, "reasoning_content": WRITTEN}}, ""),
    ({"text": {"grade": "2"}}, ""),
]


@pytest.mark.parametrize(("choice", "text"), ELSEWHERE)
def test_a_text_is_read_wherever_a_server_puts_it(choice: dict[str, Any], text: str) -> None:
    assert read({"choices": [choice]}).text == text


OPENED = [
    # What was asked, the reply, and what opens its thoughts.
    ("Is it grounded?", "Grade: 3? No.\n</think>\nGrade: 1", "<think>"),
    ("Is it grounded?", "Grade: 3? No.\n[/THINK]Grade: 1", "[THINK]"),
    ("Is it grounded?", "Grade: 3?◁/think▷Grade: 1", "◁think▷"),
    ("Is it grounded?", "It says </thinking>.\n</think>Grade: 1", "<thinking>"),
    ("Think twice. /no_think", "Grade: 3? No.\n</think>\nGrade: 1", "<think>"),
    ("Is it grounded?", "Grade: 1", ""),
    ("Is it grounded?", "<think>Grade: 3?</think>Grade: 1", ""),
    ("Is it grounded?", "It uses <think> and </think>.\nGrade: 1", ""),
    ("Is it grounded?", '{"rationale": "It says </think>.", "grade": "1"}', ""),
    ("Is it grounded?", '```json\n{"rationale": "It says </think>.", "grade": "1"}\n```', ""),
    *(
        (quoted, "Grade: 0. It says\n</think>\nGrade: 3", "")
        for quoted in (
            "</think>\nGrade: 3", "‹/think>\nGrade: 3", "< / THINK >", "&lt;/think&gt;", "&lt;&sol;think&gt;",
            "\\u003c/think\\u003e", "<\\/think>", "%3C%2Fthink%3E", "＜／ｔｈｉｎｋ＞", "<\u2044think>",
            "</\u200bthink>",
            "[/THINK]", "◁/think▷", "</thinking>", "</seed:think>",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "said", "opening"), OPENED)
def test_thoughts_are_opened_only_where_nobody_can_have_quoted_their_end(asked: str, said: str, opening: str) -> None:
    body = json.dumps(reply({"content": said})).encode()
    request = ask(text=f"The response:\n{asked}")
    found = read_completion(body, {}, structured=True, latency=0.25, request=request)
    assert (found.text, found.raw) == (f"{opening}{said}", body.decode())
    # Our repair repeats the reply.
    repaired = (*request.messages, Message("assistant", said), Message("user", f"It holds {said}"))
    request = msgspec.structs.replace(request, messages=repaired)
    assert read_completion(body, {}, structured=True, latency=0.25, request=request).text == found.text
    assert read(reply({"content": said})).text == said


def test_half_an_emoji_does_not_lose_the_reply() -> None:
    found = read(rb'{"choices": [{"message": {"content": "fine \ud83d Grade: 1"}, "finish_reason": "length"}]}')
    assert found.text == "fine ? Grade: 1"
    assert read(b'{"choices": [{"message": {"content": "a\xffb"}}]}').text == "a\ufffdb"


def test_a_reply_with_a_byte_order_mark_is_read() -> None:
    assert read(b'\xef\xbb\xbf{"choices": [{"message": {"content": "Grade: 1"}}]}').text == "Grade: 1"


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b'{"choices": [', b"\xff", b'{"a":' * 100_000])
def test_what_is_not_json_may_pass(body: bytes) -> None:
    with pytest.raises(TransientError, match="not JSON"):
        read(body)


@pytest.mark.parametrize("body", [{}, [], 3, {"choices": []}, {"choices": {"a": 1}}])
def test_json_of_another_shape_is_rejected(body: object) -> None:
    with pytest.raises(RejectedError, match="status 200, but"):
        read(body)


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": {"prompt_tokens": 1.5, "completion_tokens": 3}},
        {"usage": {"prompt_tokens": -12, "completion_tokens": 3}},
        {"usage": {"prompt_tokens": "12", "completion_tokens": 3}},
        {"usage": {"prompt_tokens": 10**30, "completion_tokens": 3}},
        {"usage": [12, 3]},
        {"usage": "none"},
        {"model": 5},
        {"model": ["m"]},
        {"system_fingerprint": {"a": 1}},
        {"logprobs": {"content": [{"logprob": float("-inf")}, {"logprob": float("nan")}]}},
    ],
)
def test_what_no_judgment_needs_costs_no_reply(odd: dict[str, Any]) -> None:
    """`json.dumps` writes Infinity and NaN, which servers in Python send too."""
    body = reply({"content": "Grade: 2"}, **odd)
    found = read(body)
    assert (found.text, found.finish_reason) == ("Grade: 2", "stop")
    assert (found.model, found.system_fingerprint, found.prompt_tokens) == (None, None, None)
    assert found.raw == json.dumps(body)


@pytest.mark.parametrize("body", [{"choices": [{}]}, {"choices": [3]}, reply({"content": 3}), reply([1])])
def test_a_completed_reply_without_a_text_is_kept_whole(body: object) -> None:
    found = read(body)
    assert (found.text, found.raw) == ("", json.dumps(body))


@pytest.mark.parametrize("name", ["JUDGE_API_KEY", "OPENAI_API_KEY"])
def test_a_key_that_a_reply_repeats_is_not_kept(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "tell-nobody-this")
    for debug in ("tell-nobody-this", "Authorization: Bearer tell-nobody-this", "https://me:tell-nobody-this@host"):
        found = read(reply({"content": "Grade: 2"}, debug=debug))
        assert found.raw is not None
        assert "tell-nobody-this" not in found.raw
    # What only looks like a key was paid for.
    assert "sk-0123456789" in str(read(reply({"content": "Grade: 2"}, debug="sk-0123456789")).raw)


def test_an_error_sent_with_status_200_is_an_error() -> None:
    with pytest.raises(TransientError, match="status 429: busy"):
        read({"error": {"code": 429, "message": "busy"}})
    with pytest.raises(TransientError, match="broke off"):
        read(reply({"content": "half"}, "error"))


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda value: json.dumps(value).encode(),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["choices", "message", "content", "error", "code", "usage", "refusal"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        ),
    )
)
def test_any_body_gives_a_completion_or_an_error_of_ours(body: bytes) -> None:
    try:
        found = read(body)
    except JudgeError as error:
        assert str(error)
    else:
        found.text.encode()


def test_json_is_asked_by_schema_and_text_by_nothing() -> None:
    assert response_format(ask("text")) == {}
    wanted = response_format(ask("json"))["response_format"]
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    assert wanted["json_schema"]["schema"]["properties"]["grade"]["enum"] == ["0", "1", "2", "3"]
    by_sentence = response_format(ask("json", sentences=2))["response_format"]
    assert "sentences" in by_sentence["json_schema"]["schema"]["properties"]


def test_messages_that_are_no_unicode_cannot_be_sent() -> None:
    assert chat_messages(ask())[0] == {"role": "system", "content": "You grade responses."}
    broken = msgspec.structs.replace(ask(), messages=(Message("user", "a \ud800 b"),))
    with pytest.raises(RejectedError, match="character 2"):
        chat_messages(broken)
