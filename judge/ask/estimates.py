"""How many tokens calls will have, by our own estimate. Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from judge.models.model import Model, SentRequests
from judge.models.records import Message, Request

BYTES_PER_TOKEN = 4.0
"""Of a text in UTF-8, where the judge has not counted enough prompts: about right for English and Chinese alike."""
TYPICAL_REPLY = 150
"""Tokens of a typical reply with its rationale, likewise; where criteria are asked together, for each of them."""
FEWEST = 10
"""The fewest counted calls from which an estimate is learned."""
_PLAUSIBLE = (1.0, 12.0)
"""Bytes per token that a tokenizer can have; a server that counts otherwise teaches nothing."""


class TokenRates(NamedTuple):
    """What a judge's tokens come to."""

    bytes_per_token: float = BYTES_PER_TOKEN
    reply: float = TYPICAL_REPLY
    """Tokens of a reply, thoughts included."""
    calls: int = 0
    """The calls of the journal that both were counted in; 0 where they are our own guess."""

    @property
    def basis(self) -> str:
        """What the estimate rests on, in words."""
        of = f"{self.bytes_per_token:.3g} bytes a token and {self.reply:.0f} tokens a reply"
        return f"{of}, as counted in {self.calls} calls" if self.calls else f"{of}, our own guess"


GUESS = TokenRates()
"""The rates of a judge that has counted nothing yet."""


def learned_rates(calls: int, size: int, prompt_tokens: int, completion_tokens: int) -> TokenRates:
    """The rates of a judge from what it has counted; our own guess if that is too little or cannot be true.

    >>> learned_rates(10, 40_000, 8_000, 900)
    TokenRates(bytes_per_token=5.0, reply=90.0, calls=10)

    Args:
        calls: Calls whose tokens were counted.
        size: Bytes of their prompts in UTF-8.
        prompt_tokens: Tokens of their prompts.
        completion_tokens: Tokens of their replies.
    """
    if calls < FEWEST or not prompt_tokens:
        return GUESS
    rate = size / prompt_tokens
    if not _PLAUSIBLE[0] <= rate <= _PLAUSIBLE[1]:
        return GUESS
    return TokenRates(rate, completion_tokens / calls, calls)


def prompt_bytes(messages: Sequence[Message]) -> int:
    """The bytes of messages in UTF-8."""
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages)


def grades_of(request: Request) -> int:
    """How many grades a request asks for."""
    return max(1, len(request.together))


def reply_tokens(rates: TokenRates, calls: int, grades: int) -> int:
    """The tokens of replies by our own estimate.

    Args:
        rates: What the judge's tokens come to.
        calls: The requests.
        grades: The grades that they ask for: more than requests, where criteria are asked together.
    """
    return round(calls * rates.reply) if rates.calls else grades * TYPICAL_REPLY


def estimated_call(model: Model, request: Request, reply: int) -> tuple[int, int]:
    """Tokens that a call sends and those of its reply, where the provider counts none.

    Args:
        model: The judge; one that divides its calls sends other texts than those of the request.
        request: The request.
        reply: Tokens of the reply of a judge that sends the request as it is.
    """
    sent = model.sent(request)
    if sent is None:
        return estimated_tokens(request), reply
    return math.ceil(sent.prompt_bytes / BYTES_PER_TOKEN), sent.reply_tokens


def estimated_tokens(request: Request, rates: TokenRates = GUESS) -> int:
    """The tokens of a request by our own estimate."""
    return math.ceil(prompt_bytes(request.messages) / rates.bytes_per_token)


class CallSums(NamedTuple):
    """What several calls send, by our own estimate."""

    calls: int = 0
    requests: int = 0
    """Requests that go out: more than calls where a judge divides a call."""
    grades: int = 0
    """Grades that the calls ask for, where the judge sends them as they are."""
    prompt_tokens: int = 0
    told: int = 0
    """Most tokens of the replies to calls that a judge asks in words of its own."""

    def plus(self, request: Request, rates: TokenRates, sent: SentRequests | None) -> "CallSums":
        """These and one more call.

        Args:
            request: The call.
            rates: What the judge's tokens come to.
            sent: What the judge sends for it in words of its own; None where it sends it as it is.
        """
        tokens = estimated_tokens(request, rates)
        if sent is not None and not rates.calls:
            tokens = math.ceil(sent.prompt_bytes / rates.bytes_per_token)
        requests, grades, told = (1, grades_of(request), 0) if sent is None else (sent.requests, 0, sent.reply_tokens)
        return CallSums(
            calls=self.calls + 1,
            requests=self.requests + requests,
            grades=self.grades + grades,
            prompt_tokens=self.prompt_tokens + tokens,
            told=self.told + told,
        )

    def reply_tokens(self, rates: TokenRates) -> int:
        """Tokens of the replies."""
        return self.told or reply_tokens(rates, self.calls, self.grades)
