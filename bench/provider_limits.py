"""How providers speak when they limit: their headers on 200 and on 429, and the bodies of their refusals.

The mock server fills the placeholders: `{limit}` and `{left}` requests, the time until all of them are there again as
`{go}` (a Go duration), `{whole}` (seconds) and `{rfc}` (RFC 3339), and the wish to wait as `{wish}` (whole seconds),
`{ms}` and `{seconds}`. Shapes are as published or as quoted in the issues of the libraries that met them.
"""

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from typing import Any


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
        "limit": int(limit),
        "left": int(left),
        "go": go(full),
        "whole": math.ceil(full),
        "rfc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(math.ceil(time.time() + full))),
        "wish": max(1, math.ceil(asked)),
        "ms": math.ceil(1000 * asked),
        "seconds": f"{asked:.3f}",
    }
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


if __name__ == "__main__":
    for name, row in PROVIDERS.items():
        print(name, json.dumps(said(row, 429, 60, 0, 1, 31.5), indent=1))
