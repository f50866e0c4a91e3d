"""How the mock server may fail: a row for each fault, standard library only.

A row says what is sent in place of a good answer. The share of a fault is the option `faults` of the server, as on its
command line (`--fault html=0.02`) and in `POST /__config`.
"""

import dataclasses
import json
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


def first_half(content: str) -> str:
    """A text that ends in the middle."""
    return content[: len(content) // 2]


def error(status: int, message: str, **more: object) -> Mapping[str, Any]:
    """An error as OpenAI and Azure write it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": status, **more}}


FILTERED = error(
    400,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    code="content_filter",
    param="prompt",
    innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
)
TOO_LONG = error(
    400,
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
    code="context_length_exceeded",
    param="messages",
)

FAULTS: Mapping[str, Fault] = {
    "slow-first-byte": Fault(slow="first byte"),
    "slow-drip": Fault(slow="drip"),
    "dropped": Fault(sent=0.0),
    "half-sent": Fault(sent=0.5),
    "empty-choices": Fault(lambda answer: {**answer, "choices": []}),
    "html": Fault(lambda answer: HTML, paid=False, content_type="text/html"),
    "error-in-200": Fault(lambda answer: {**error(503, "The engine is overloaded, try again")}, paid=False),
    "filter-400": Fault(lambda answer: {**FILTERED}, status=400, paid=False),
    "filter-200": Fault(lambda answer: ended(answer, lambda content: None, "content_filter")),
    "context-length": Fault(lambda answer: {**TOO_LONG}, status=400, paid=False),
    "length": Fault(lambda answer: ended(answer, first_half, "length")),
    "white-space": Fault(lambda answer: ended(answer, lambda content: "{" + " \n" * 800, "length"), schema_only=True),
    "off-scale": Fault(lambda answer: ended(answer, off_scale)),
    "two-verdicts": Fault(lambda answer: ended(answer, two_verdicts)),
    "quoted-scale": Fault(lambda answer: ended(answer, quoted_scale)),
}
"""Every fault by its name; the shares are drawn in this order."""
