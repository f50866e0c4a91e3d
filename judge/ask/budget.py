"""The limits of asking, what calls cost, and when the money that may be spent is spent. Pure."""

import math
import re
from collections.abc import Mapping

import msgspec

from judge.ask.account import BYTES_PER_TOKEN, estimated_call, typical_reply
from judge.errors import BudgetError
from judge.judges.backends import backend_facts
from judge.judges.model import FREE, Model, Price
from judge.judges.records import Completion, Request


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

    def reserve(self, request: Request) -> float | None:
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
            prompt, reply = estimated_call(self._model, request, typical_reply(request))
            reserved = max(reserved, self._price.cost(prompt, 0, reply))
        self._in_flight += reserved
        return reserved

    def release(self, reserved: float) -> None:
        """Give back what was set aside for a call that has ended."""
        self._in_flight = max(0.0, self._in_flight - reserved)

    def charge(self, request: Request, completion: Completion) -> Completion:
        """Count a call, and give its completion with its cost, or with None where tokens had to be estimated."""
        cost = self._reported(completion)
        if cost is None and self._price is not None:
            prompt, reply = estimated_call(
                self._model, request, math.ceil(len(completion.text.encode()) / BYTES_PER_TOKEN)
            )
            self.spent += self._price.cost(prompt, 0, reply)
            self.estimated += 1
        self.spent += cost or 0.0
        self._calls += 1
        return msgspec.structs.replace(completion, cost=cost)

    def _reported(self, completion: Completion) -> float | None:
        """The cost by what the provider says; None if it says nothing that can be true."""
        price, prompt, reply = self._price, completion.prompt_tokens, completion.completion_tokens
        counted = bool(prompt) and reply is not None and (reply > 0 or not completion.text)
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
