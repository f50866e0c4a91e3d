"""How the mock server fails, and how providers speak when they limit: a row for each; standard library only.

A fault says what is sent in place of a good answer. Its share is the option `faults` of the server, as on its command
line (`--fault html=0.02`) and in `POST /__config`.

In the words of providers the server fills the placeholders: `{limit}` and `{left}` requests, the time until all of them
are there again as `{go}` (a Go duration), `{whole}` (seconds) and `{rfc}` (RFC 3339), and the wish to wait as `{wish}`
(whole seconds), `{ms}` and `{seconds}`. Shapes are as published or as quoted in the issues of libraries that met them.
"""

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

HTML = (
    "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>The gateway has no upstream.</body></html>"
)
JSON = "application/json"

Answer = dict[str, Any]
"""A chat completion, as the server would send it."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """One way to fail."""

    body: Callable[[Answer], Answer | str] = lambda answer: answer
    """What is sent, of the good answer."""
    status: int = 200
    paid: bool = True
    """Whether the provider bills it."""
    content_type: str = JSON
    slow: str = ""
    """`first byte` or `drip`: what the seconds of the option `slow` go to."""
    sent: float = 1.0
    """Share of the reply after which the connection is cut."""
    schema_only: bool = False
    """Whether it befalls only requests with a JSON schema; others are answered well."""


def ended(answer: Answer, reword: Callable[[str], str | None], finish_reason: str = "stop") -> Answer:
    """The answer with another text and another reason for its end."""
    choice = answer["choices"][0]
    message = {**choice["message"], "content": reword(choice["message"]["content"])}
    return {**answer, "choices": [{**choice, "message": message, "finish_reason": finish_reason}]}


def off_scale(content: str) -> str:
    """A verdict as it was asked for, but with a grade that is on no scale."""
    if content.startswith("{"):
        members = json.loads(content)
        if "sentences" in members:
            return json.dumps({**members, "sentences": [{**one, "label": "17"} for one in members["sentences"]]})
        return json.dumps({**members, "grade": 17})
    head, colon, _ = content.rpartition(":")
    return f"{head}{colon} 17"


def two_verdicts(content: str) -> str:
    """A verdict, and another one after it."""
    return f"{content}\nOn second thoughts:\n{off_scale(content)}"


def quoted_scale(content: str) -> str:
    """The whole scale in words, before the verdict."""
    return f"The scale: Grade: 0 is worst, Grade: 1 is poor, Grade: 2 is fair, Grade: 3 is best.\n{content}"


def among_thoughts(answer: Answer) -> Answer:
    """The answer as a server sends it whose reasoning parser takes all of it for thoughts."""
    choice = answer["choices"][0]
    message = {**choice["message"], "content": None, "reasoning_content": choice["message"]["content"]}
    return {**answer, "choices": [{**choice, "message": message}]}


def tool_call(answer: Answer) -> Answer:
    """The answer as the arguments of a tool that nobody offered."""
    choice = answer["choices"][0]
    function = {"name": "verdict", "arguments": choice["message"]["content"]}
    message = {**choice["message"], "content": None, "tool_calls": [{"type": "function", "function": function}]}
    return {**answer, "choices": [{**choice, "message": message, "finish_reason": "tool_calls"}]}


def as_object(answer: Answer) -> Answer:
    """The answer with an object in place of the text that writes it."""
    choice = answer["choices"][0]
    message = {**choice["message"], "content": json.loads(choice["message"]["content"])}
    return {**answer, "choices": [{**choice, "message": message}]}


def as_text_choice(answer: Answer) -> Answer:
    """The answer as a server sends it that speaks /completions."""
    choice = answer["choices"][0]
    text = {"index": 0, "text": choice["message"]["content"], "finish_reason": choice["finish_reason"]}
    return {**answer, "object": "text_completion", "choices": [text]}


def harmony(content: str) -> str:
    """A text in the format of gpt-oss, with its thoughts."""
    return (
        "<|channel|>analysis<|message|>Grade: 0? No.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{content}<|return|>"
    )


def first_half(content: str) -> str:
    """A text that ends in the middle."""
    return content[: len(content) // 2]


def error(code: int | str | None, message: str, **more: object) -> dict[str, Any]:
    """An error as OpenAI and Azure write it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code, **more}}


FILTERED = error(
    "content_filter",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    param="prompt",
    innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
)
TOO_LONG = error(
    "context_length_exceeded",
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
    param="messages",
)

FAULTS: Mapping[str, Fault] = {
    "slow-first-byte": Fault(slow="first byte"),
    "slow-drip": Fault(slow="drip"),
    "dropped": Fault(sent=0.0),
    "half-sent": Fault(sent=0.5),
    "empty-choices": Fault(lambda answer: {**answer, "choices": []}),
    "html": Fault(lambda answer: HTML, paid=False, content_type="text/html"),
    "error-in-200": Fault(lambda answer: error(503, "The engine is overloaded, try again"), paid=False),
    "filter-400": Fault(lambda answer: FILTERED, status=400, paid=False),
    "filter-200": Fault(lambda answer: ended(answer, lambda content: None, "content_filter")),
    "context-length": Fault(lambda answer: TOO_LONG, status=400, paid=False),
    "length": Fault(lambda answer: ended(answer, first_half, "length")),
    "white-space": Fault(lambda answer: ended(answer, lambda content: "{" + " \n" * 800, "length"), schema_only=True),
    "off-scale": Fault(lambda answer: ended(answer, off_scale)),
    "two-verdicts": Fault(lambda answer: ended(answer, two_verdicts)),
    "quoted-scale": Fault(lambda answer: ended(answer, quoted_scale)),
    "length-in-other-words": Fault(lambda answer: ended(answer, first_half, "MAX_TOKENS")),
    "filter-in-other-words": Fault(lambda answer: ended(answer, lambda content: None, "SAFETY")),
    "among-thoughts": Fault(among_thoughts, schema_only=True),
    "tool-call": Fault(tool_call),
    "object": Fault(as_object, schema_only=True),
    "text-choice": Fault(as_text_choice),
    "end-tokens": Fault(lambda answer: ended(answer, lambda content: f"{content}<|im_end|>\n</s>")),
    "harmony": Fault(lambda answer: ended(answer, harmony)),
    "unopened-thoughts": Fault(lambda answer: ended(answer, lambda content: f"Grade: 0? No.\n</think>\n\n{content}")),
}
"""Every fault by its name; the shares are drawn in this order."""


@dataclasses.dataclass(frozen=True)
class Provider:
    """One row: how a provider writes its limits."""

    always: Mapping[str, str]
    """Headers of every reply, 200 and 429."""
    wish: Mapping[str, str]
    """Headers of a 429 that say how long to wait."""
    body: Any
    """The body of a 429; `{words}` is where the message says how long to wait."""
    words: str = ""


OPENAI = {
    "x-ratelimit-limit-requests": "{limit}",
    "x-ratelimit-remaining-requests": "{left}",
    "x-ratelimit-reset-requests": "{go}",
    "x-ratelimit-limit-tokens": "2000000",
    "x-ratelimit-remaining-tokens": "1999000",
    "x-ratelimit-reset-tokens": "30ms",
    "x-request-id": "req_mock",
}

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        always=OPENAI,
        wish={"retry-after": "{wish}", "retry-after-ms": "{ms}", "x-should-retry": "true"},
        body={
            "error": {
                "message": "Rate limit reached for mock in organization org-mock on requests per min (RPM): Limit "
                "{limit}, Used {limit}, Requested 1.{words} Visit https://platform.openai.com/account/rate-limits to "
                "learn more.",
                "type": "requests",
                "param": None,
                "code": "rate_limit_exceeded",
            }
        },
        words=" Please try again in {seconds}s.",
    ),
    "anthropic": Provider(
        always={
            "anthropic-ratelimit-requests-limit": "{limit}",
            "anthropic-ratelimit-requests-remaining": "{left}",
            "anthropic-ratelimit-requests-reset": "{rfc}",
            "anthropic-ratelimit-tokens-limit": "2000000",
            "anthropic-ratelimit-tokens-remaining": "1999000",
            "anthropic-ratelimit-tokens-reset": "{rfc}",
            "request-id": "req_mock",
        },
        wish={"retry-after": "{wish}", "x-should-retry": "true"},
        body={
            "type": "error",
            "error": {
                "type": "rate_limit_error",
                "message": "This request would exceed your organization's rate limit of {limit} requests per minute.",
            },
            "request_id": "req_mock",
        },
    ),
    # openai-python#937, openai-dotnet#838: whole seconds, no retry-after at times, and -1 where nobody counts.
    "azure": Provider(
        always={
            "x-ratelimit-limit-requests": "{limit}",
            "x-ratelimit-remaining-requests": "{left}",
            "x-ratelimit-reset-requests": "{whole}",
            "x-ratelimit-limit-tokens": "-1",
            "x-ratelimit-remaining-tokens": "-1",
            "x-ratelimit-reset-tokens": "0",
            "apim-request-id": "mock",
        },
        wish={"retry-after": "{wish}", "retry-after-ms": "{ms}"},
        body={
            "error": {
                "code": "429",
                "message": "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 "
                "have exceeded call rate limit of your current AIServices S0 pricing tier.{words}",
            }
        },
        words=" Please retry after {wish} seconds. Please contact Azure support service if you would like to further "
        "increase the default rate limit.",
    ),
    "gemini": Provider(
        always={},
        wish={},
        body=[
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota, please check your plan and billing details. For more "
                    "information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.{words}",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [
                        {
                            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                            "violations": [
                                {
                                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
                                    "quotaId": "GenerateRequestsPerMinutePerProjectPerModel",
                                    "quotaValue": "{limit}",
                                }
                            ],
                        },
                        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "{wish}s"},
                    ],
                }
            }
        ],
        words=" Please retry in {seconds}s.",
    ),
    "vllm": Provider(
        always={"server": "uvicorn"},
        wish={},
        body={"error": {"message": "Too many requests", "type": "TooManyRequests", "param": None, "code": 429}},
    ),
    # BerriAI/litellm#21553: the provider's headers come with a prefix, and Retry-After only so.
    "litellm": Provider(
        always={
            "x-litellm-call-id": "mock",
            "x-ratelimit-limit-requests": "{limit}",
            "x-ratelimit-remaining-requests": "{left}",
            **{f"llm_provider-{name}": value for name, value in OPENAI.items()},
        },
        wish={"llm_provider-retry-after": "{wish}"},
        body={
            "error": {
                "message": "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for mock",
                "type": "throttling_error",
                "param": None,
                "code": "429",
            }
        },
    ),
}
"""The rows, by the option `--provider` of the mock server."""

DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
REGAIN = "You will regain access on 2099-01-01 at 00:00 UTC."


def _anthropic(status: int, kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    details = {"details": {"error_code": code}} if code else {}
    return {"status": status, "body": {"type": "error", "error": {"type": kind, "message": message, **details}}}


HOPELESS: dict[str, dict[str, Any]] = {
    "anthropic-spend": _anthropic(
        429, "rate_limit_error", f"You have reached your API usage limits. {REGAIN}", "enforced_spend_limit_reached"
    ),
    "anthropic-contract": _anthropic(
        429, "rate_limit_error", "Your contract's spend limit is reached.", "contract_spend_limit_reached"
    ),
    "anthropic-workspace": _anthropic(
        400, "invalid_request_error", f"You have reached your specified workspace API usage limits. {REGAIN}"
    ),
    "anthropic-billing": _anthropic(402, "billing_error", "There is an issue with the payment of your account."),
    "anthropic-credit": _anthropic(
        400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
    ),
    "openai-quota": {
        "status": 429,
        "body": {
            "error": {
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "type": "insufficient_quota",
                "param": None,
                "code": "insufficient_quota",
            }
        },
    },
    "gemini-day": {
        "status": 429,
        "body": {
            "error": {
                "code": 429,
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [{"quotaMetric": "generate_content_free_tier_requests", "quotaId": DAY}],
                    },
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22s"},
                ],
            }
        },
    },
    "azure-day": {
        "status": 429,
        "body": {
            "error": {
                "code": "429",
                "message": "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-05-01 "
                "have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 "
                "seconds.",
            }
        },
    },
    "openrouter-credit": {"status": 402, "body": {"error": {"code": 402, "message": "Insufficient credits"}}},
}
"""Refusals that no waiting of a run can outlast, by the option `--refuse` of the mock server."""


def said(provider: Provider, status: int, limit: float, left: float, rate: float, wish: float | None) -> dict[str, Any]:
    """A reply in the words of a provider, as a step of the mock server's script.

    Args:
        provider: The row.
        status: 200 or 429.
        limit: Most requests at once.
        left: Requests left of them.
        rate: Requests that come back each second.
        wish: Seconds to wait; None to say nothing of it.
    """
    full = (limit - left) / rate if rate else 0.0
    asked = 0.0 if wish is None else wish
    fields = {
        "limit": int(limit), "left": int(left), "go": go(full), "whole": math.ceil(full),
        "rfc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(time.time() + full))),
        "wish": max(1, math.ceil(asked)), "ms": math.ceil(1000 * asked), "seconds": f"{asked:.3f}",
    }  # fmt: skip
    fields["words"] = provider.words.format(**fields) if wish is not None else ""
    headers = dict(provider.always)
    if status == 429 and wish is not None:
        headers |= provider.wish
    if status == 429 and wish is None and isinstance(provider.body, list):
        body: Any = [{"error": {**provider.body[0]["error"], "details": []}}]
    else:
        body = provider.body
    return {"headers": {name: value.format(**fields) for name, value in headers.items()}, "body": _filled(body, fields)}


def go(seconds: float) -> str:
    """A duration as Go writes it."""
    if seconds < 1:
        return f"{math.ceil(1000 * seconds)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


def _filled(part: Any, fields: Mapping[str, Any]) -> Any:
    """A body with its placeholders filled."""
    if isinstance(part, str):
        return part.format(**fields)
    if isinstance(part, dict):
        return {name: _filled(value, fields) for name, value in part.items()}
    return [_filled(value, fields) for value in part] if isinstance(part, list) else part
