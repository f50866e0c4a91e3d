"""How many tokens calls will have, by our own estimate. Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from judge.judges.model import Model, SentRequests
from judge.judges.records import Message, Request

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

    `size`: bytes of the prompts in UTF-8.

    >>> learned_rates(10, 40_000, 8_000, 900)
    TokenRates(bytes_per_token=5.0, reply=90.0, calls=10)
    """
    if calls < FEWEST or not prompt_tokens:
        return GUESS
    rate = size / prompt_tokens
    if not _PLAUSIBLE[0] <= rate <= _PLAUSIBLE[1]:
        return GUESS
    return TokenRates(rate, completion_tokens / calls, calls)


def prompt_bytes(messages: Sequence[Message]) -> int:
    """The bytes of messages in UTF-8."""
    texts = (message.content for message in messages)
    return sum(len(text if text.isascii() else text.encode("utf-8", "replace")) for text in texts)


def typical_reply(request: Request) -> int:
    """The tokens of a typical reply to a request, which may ask for several grades."""
    return TYPICAL_REPLY * max(1, len(request.together))


def estimated_call(model: Model, request: Request, reply: int) -> tuple[int, int]:
    """Tokens that a call sends and those of its reply, where the provider counts none.

    `reply`: tokens of the reply of a judge that sends the request as it is, and does not divide it.
    """
    sent = model.sent(request)
    if sent is None:
        return estimated_tokens(request), reply
    return math.ceil(sent.prompt_bytes / BYTES_PER_TOKEN), sent.reply_tokens


def estimated_tokens(request: Request) -> int:
    """The tokens of a request by our own estimate."""
    return math.ceil(prompt_bytes(request.messages) / BYTES_PER_TOKEN)


class CallSums:
    """What several calls send and bring back, by our own estimate."""

    def __init__(self, rates: TokenRates = GUESS) -> None:
        self.rates = rates
        self.calls = 0
        self.requests = 0
        """Requests that go out: more than calls where a judge divides a call."""
        self.prompt_tokens = 0
        self.told = 0
        """Most tokens of the replies to calls that a judge asks in words of its own."""
        self._typical = 0
        """Tokens of typical replies to the calls that the judge sends as they are."""

    def add(self, request: Request, sent: SentRequests | None) -> None:
        """Count a call, with what the judge sends for it in words of its own; None where it sends it as it is."""
        self.calls += 1
        if sent is None:
            self.requests += 1
            self._typical += typical_reply(request)
        else:
            self.requests += sent.requests
            self.told += sent.reply_tokens
        size = prompt_bytes(request.messages) if sent is None else sent.prompt_bytes
        self.prompt_tokens += math.ceil(size / self.rates.bytes_per_token)

    @property
    def reply_tokens(self) -> int:
        """Tokens of the replies."""
        return self.told or (round(self.calls * self.rates.reply) if self.rates.calls else self._typical)
