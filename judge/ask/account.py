"""What calls take and cost: our own estimate, the limits and the money of asking, and what calls took. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judge.errors import BudgetError
from judge.io.ids import natural_key
from judge.judges.backends import backend_facts
from judge.judges.model import FREE, Model, Price, SentRequests
from judge.judges.prices import CallSum, Spending
from judge.judges.records import Completion, Message, Request
from judge.records import Record

BYTES_PER_TOKEN = 4.0
"""Of a text in UTF-8, where the judge has not counted enough prompts: about right for English and Chinese alike."""
TYPICAL_REPLY = 150
"""Tokens of a typical reply with its rationale, likewise."""
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


def sent_together(model: Model, requests: Sequence[Request]) -> SentRequests | None:
    """What one call with these requests sends, as `Model.sent` tells of each; what all of them show goes out once."""
    whole = model.sent(requests[0])
    for request in requests[1:]:
        sent = model.sent(request)
        if whole is None or sent is None:
            return None
        shared = prompt_bytes([message for message in request.messages if message.role == "user"])
        whole = SentRequests(
            requests=max(whole.requests, sent.requests),
            prompt_bytes=whole.prompt_bytes + sent.prompt_bytes - shared,
            reply_tokens=whole.reply_tokens + sent.reply_tokens,
        )
    return whole


def estimated_call(model: Model, requests: Sequence[Request], reply: int) -> tuple[int, int]:
    """Tokens that a call sends and those of its reply, where the provider counts none.

    `reply`: tokens of the reply of a judge that sends the requests as they are, and does not divide them.
    """
    sent = sent_together(model, requests)
    if sent is None:
        return estimated_tokens(requests), reply
    return math.ceil(sent.prompt_bytes / BYTES_PER_TOKEN), sent.reply_tokens


def estimated_tokens(requests: Sequence[Request]) -> int:
    """The tokens of a call with these requests by our own estimate."""
    return math.ceil(call_bytes(requests) / BYTES_PER_TOKEN)


def call_bytes(requests: Sequence[Request]) -> int:
    """The bytes of a call with these requests; what all of them show goes out once."""
    first, *others = requests
    size = prompt_bytes(first.messages)
    for request in others:
        size += prompt_bytes([message for message in request.messages if message.role != "user"])
    return size


class CallSums:
    """What several calls send and bring back, by our own estimate."""

    def __init__(self, rates: TokenRates = GUESS) -> None:
        self.rates = rates
        self.calls = 0
        self.requests = 0
        """Requests that go out: more than calls where a judge divides a call."""
        self.prompt_tokens = 0
        self.told: int | None = None
        """Most tokens of the replies to calls that a judge asks in words of its own; None if it asks none so."""
        self._typical = 0
        """Tokens of typical replies to the calls that the judge sends as they are."""

    def add(self, requests: Sequence[Request], sent: SentRequests | None) -> None:
        """Count a call, with what the judge sends for it in words of its own; None where it sends it as it is."""
        self.calls += 1
        if sent is None:
            self.requests += 1
            self._typical += TYPICAL_REPLY
        else:
            self.requests += sent.requests
            self.told = (self.told or 0) + sent.reply_tokens
        size = call_bytes(requests) if sent is None else sent.prompt_bytes
        self.prompt_tokens += math.ceil(size / self.rates.bytes_per_token)

    @property
    def reply_tokens(self) -> int:
        """Tokens of the replies."""
        if self.told is not None:
            return self.told
        return round(self.calls * self.rates.reply) if self.rates.calls else self._typical

    def spending(self, price: Price | None) -> Spending:
        """What they are expected to take, with no token from a cache."""
        return Spending(
            calls=self.calls,
            attempts=self.requests,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.reply_tokens,
            counted=self.calls,
            cost=0.0 if price is None else price.cost(self.prompt_tokens, 0, self.reply_tokens),
            priced=0 if price is None else self.calls,
        )


class JudgeAccount(Record, frozen=True, kw_only=True):
    """What one judge's calls took."""

    judge: str
    expected: Spending
    """What was estimated for the calls of `asked` before they were made, with no token from a cache; repairs of
    unreadable replies are in no estimate."""
    basis: str
    """What the estimate rests on, in words."""
    asked: Spending
    """The calls of this process."""
    results: Spending
    """All calls that the results rest on, those of the journal included."""
    seconds: float
    """Seconds that the asking took, from its start to its end."""
    price: Price | None = None
    """US dollars a token; None if the price is not known, or for several judges."""


class _JudgeCalls:
    """The calls of one judge."""

    def __init__(self, price: Price | None, rates: TokenRates) -> None:
        self.price = price
        self.expected = CallSums(rates)
        self.asked = CallSum(price)
        self.results = CallSum(price)
        self.counted: set[int] = set()
        """Hashes of the digests in `results`, because there may be millions."""
        self.seconds = 0.0

    def row(self, judge: str) -> JudgeAccount:
        """What they took."""
        return JudgeAccount(
            judge=judge,
            expected=self.expected.spending(self.price),
            basis=self.expected.rates.basis,
            asked=self.asked.spending,
            results=self.results.spending,
            seconds=self.seconds,
            price=self.price,
        )


class Account:
    """Collects what the calls of one job took, by judge; several loops may share one."""

    def __init__(self) -> None:
        self._judges: dict[str, _JudgeCalls] = {}

    def open(self, judge: str, price: Price | None, rates: TokenRates) -> None:
        """Say what a judge's tokens cost and come to, before it is asked; the first estimate stands."""
        self._judges.setdefault(judge, _JudgeCalls(price, rates))

    def ask(
        self, judge: str, requests: Sequence[Request], completions: Iterable[Completion], sent: SentRequests | None
    ) -> None:
        """Enter a call that was made, with what it sent where the judge asks in words of its own."""
        calls = self._judges[judge]
        for completion in completions:
            calls.asked.add(completion)
        if all(message.role != "assistant" for message in requests[0].messages):
            calls.expected.add(requests, sent)

    def rest(self, judge: str, completions: Mapping[str, Completion]) -> None:
        """Enter the completions, by their digests, that a result of an opened judge rests on, each once."""
        if (calls := self._judges.get(judge)) is None:
            return
        for digest, completion in completions.items():
            if (key := hash(digest)) not in calls.counted:
                calls.counted.add(key)
                calls.results.add(completion)

    def end(self, judge: str, seconds: float) -> None:
        """Enter how long asking a judge took."""
        self._judges[judge].seconds += seconds

    def rows(self) -> tuple[JudgeAccount, ...]:
        """What each judge's calls took, in natural order of the judges' names."""
        return tuple(self._judges[judge].row(judge) for judge in sorted(self._judges, key=natural_key))


class Settings(msgspec.Struct, frozen=True):
    """How many calls and how much money the loop may use."""

    concurrency: int = 16
    """Calls in flight at most."""
    attempts: int = 6
    """Most attempts of one call; only failures that may pass are tried again, and rate limits do not count."""
    max_cost: float | None = None
    """US dollars that this process may spend; judgments left over fail for `budget`."""
    prices: Mapping[str, Price] = {}
    """Prices by the model's name, in place of what is known of it; `*` names every other model."""
    price_table: Mapping[str, Price] = {}
    """Prices as in `prices`, which wins over it; it may name models that are not asked."""
    rpm: int | None = None
    """Requests a minute that one judge is sent at most."""
    tpm: int | None = None
    """Tokens a minute, likewise, by our own estimate."""
    max_wait: float = 300.0
    """Seconds for which a provider may make the loop wait; one that asks for more ends it."""

    @property
    def known_prices(self) -> Mapping[str, Price]:
        """The prices of both."""
        return {**self.price_table, **self.prices}


EVERY_OTHER = "*"
"""The name, among prices, of every model that has none of its own."""
_DIGEST = re.compile(r"~[0-9a-f]{8}(?=$|[#@])")


class Budget:
    """The cost of one judge's calls so far, of which `most` US dollars may be spent.

    A provider's counts are believed if they can be true: more than no token for a prompt, and none below zero. Where
    they are missing or cannot be true, tokens are estimated, so that a silent server does not make a budget endless.
    """

    def __init__(self, model: Model, most: float | None, prices: Mapping[str, Price]) -> None:
        self._most = most
        self._price = price_of(model, prices)
        # A provider that bills by another price than the user's is not asked what a call cost.
        self._bills = given_price(model.name, prices) is None
        self._calls = 0
        self._in_flight = 0.0
        self._model = model
        self.spent = 0.0
        """US dollars so far."""
        self.estimated = 0
        """Calls whose cost rests on our own estimate of their tokens."""

    def reserve(self, requests: Sequence[Request]) -> float | None:
        """Set aside what a call will cost by our estimate; None while the calls in flight may need all that is left.

        The caller gives the amount back with `release`. A BudgetError if the money is spent.
        """
        if self._most is None:
            return 0.0
        if self.spent >= self._most:
            basis = f", by our own estimate of the tokens of {self.estimated} replies" if self.estimated else ""
            raise BudgetError(f"the budget of ${self._most} is spent{basis}")
        if 0 < self._in_flight >= self._most - self.spent:
            return None
        reserved = self.spent / self._calls if self._calls else 0.0
        if self._price is not None:
            prompt, reply = estimated_call(self._model, requests, TYPICAL_REPLY)
            reserved = max(reserved, self._price.cost(prompt, 0, reply))
        self._in_flight += reserved
        return reserved

    def release(self, reserved: float) -> None:
        """Give back what was set aside for a call that has ended."""
        self._in_flight = max(0.0, self._in_flight - reserved)

    def charge(self, requests: Sequence[Request], completions: Sequence[Completion]) -> list[Completion]:
        """Count a call, and give its completions with their cost, or with None where tokens had to be estimated."""
        writes = requests[0].form != "decision"
        costs = [self._reported(completion, writes=writes) for completion in completions]
        if None in costs and self._price is not None:
            size = sum(len(completion.text.encode()) for completion in completions)
            prompt, reply = estimated_call(self._model, requests, math.ceil(size / BYTES_PER_TOKEN))
            self.spent += self._price.cost(prompt, 0, reply)
            self.estimated += 1
            costs = [None for _ in costs]
        self.spent += sum(cost or 0.0 for cost in costs)
        self._calls += 1
        pairs = zip(completions, costs, strict=True)
        return [msgspec.structs.replace(completion, cost=cost) for completion, cost in pairs]

    def _reported(self, completion: Completion, *, writes: bool) -> float | None:
        """The cost by what the provider says; None if it says nothing that can be true.

        `writes`: whether the model wrote the text, which takes tokens.
        """
        price = self._price
        prompt = completion.prompt_tokens
        reply = completion.completion_tokens
        counted = bool(prompt) and reply is not None and (reply > 0 or not (writes and completion.text))
        billed = completion.cost if self._bills else None
        if billed is not None and (counted or billed > 0 or price == FREE):
            return billed
        if price == FREE:
            return 0.0
        if price is None or not counted or prompt is None or reply is None:
            return None
        return price.cost(prompt, completion.cached_tokens or 0, reply)


def given_price(name: str, prices: Mapping[str, Price]) -> Price | None:
    """The price that the user gave for a judge, or for every other.

    A judge's name counts without the backend too where a provider follows it, and without the digests of the files
    that a checker reads.
    """
    short = name.partition("/")[2] if backend_facts(name).names_provider else name
    names = (name, short, _DIGEST.sub("", name))
    return next((prices[known] for known in names if known in prices), prices.get(EVERY_OTHER))


def price_of(model: Model, prices: Mapping[str, Price]) -> Price | None:
    """The price of a judge: the user's, else the known one; None if there is neither."""
    return given_price(model.name, prices) or model.price()
