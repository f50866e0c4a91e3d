"""Options of the jobs that ask a judge."""

import math
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import AfterValidator, BeforeValidator

from judge.ask.account import EVERY_OTHER, Settings
from judge.io.plan import AboveZero, Amount, Option, Options, Positive
from judge.io.text import did_you_mean
from judge.judges.model import ModelOptions, Price
from judge.judges.prices import read_prices
from judge.judges.records import ReasoningEffort


def _price(text: str) -> tuple[str, Price]:
    """`IN/OUT` or `IN/CACHED/OUT`, either after `MODEL=`."""
    model, named, amounts = text.rpartition("=")
    try:
        dollars = [float(part) for part in amounts.split("/")]
    except ValueError:
        dollars = []
    if len(dollars) not in (2, 3) or not all(0 <= amount < math.inf for amount in dollars) or (named and not model):
        raise ValueError(f"{text!r} is not IN/OUT or IN/CACHED/OUT, such as 0.40/1.60, nor one of them after MODEL=")
    price = Price(
        prompt=dollars[0] / 1e6,
        completion=dollars[-1] / 1e6,
        cached=dollars[1] / 1e6 if len(dollars) == 3 else None,
    )
    return model or EVERY_OTHER, price


def _checked_price(text: str) -> str:
    _price(text)
    return text


_WITHOUT_THOUGHTS, _WITH_THOUGHTS = 1024, 8192
"""Tokens of the longest reply, where the user names none."""
_OMISSIBLE = ("temperature", "max_tokens", "seed", "response_format", "system")
"""What `--omit` may name."""


def _split(value: object) -> object:
    """Names between commas, each of them as one."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list | tuple):
        names: list[str] = []
        for text in value:
            names.extend(str(text).split(","))
        return names
    return value


def _checked_name(name: str) -> str:
    if name not in _OMISSIBLE:
        expected = f"expected one of {', '.join(_OMISSIBLE)}"
        raise ValueError(f"{name!r} cannot be left out{did_you_mean(name, _OMISSIBLE)} ({expected})")
    return name


class JudgeOptions(Options, section="asking"):
    """How a judge is asked."""

    base_url: Annotated[str | None, Option(metavar="URL")] = None
    """Address of server/…, or another than the usual one for openai/… and litellm/…."""
    temperature: Amount = 0.0
    """Sampling temperature."""
    max_tokens: Annotated[Positive | None, Option(metavar="N")] = None
    """Longest reply in tokens, hidden thoughts included (default: 1024; 8192 with a --reasoning-effort other than
    none)."""
    reasoning_effort: ReasoningEffort | None = None
    """How much the model is to think before it answers (default: what the provider does by itself)."""
    seed: Annotated[int | None, Option(metavar="N")] = None
    """Sampling seed, where the provider takes one."""
    timeout: Annotated[AboveZero, Option(metavar="SECONDS")] = 120.0
    """Seconds for one attempt."""
    threads: Annotated[Positive | None, Option(metavar="N")] = None
    """CPU threads of a local model (default: the free cores)."""
    logprobs: bool = False
    """Ask for one label without reasons, and for the probability of every label."""
    form: Annotated[Literal["json", "text", "label"] | None, Option()] = None
    """Ask in this answer form alone: an object by schema, a text, or one label (default: the first that the endpoint
    takes)."""
    omit: Annotated[
        tuple[Annotated[str, AfterValidator(_checked_name)], ...],
        BeforeValidator(_split),
        Option(metavar="NAME[,NAME]", repeat=True),
    ] = ()
    """Parameters that are not sent, such as temperature, max_tokens, seed, response_format; system puts the system
    message in front of the user's."""

    @property
    def options(self) -> ModelOptions:
        """The options as a model takes them; where the user names no longest reply, thoughts get room."""
        values = self.part(JudgeOptions)
        longest = values.pop("max_tokens")
        options = ModelOptions(**values)
        if longest is None:
            longest = _WITH_THOUGHTS if options.thinks else _WITHOUT_THOUGHTS
        return msgspec.structs.replace(options, max_tokens=longest)


class LoopOptions(Options, section="the loop"):
    """How many calls and how much money asking may use."""

    concurrency: Annotated[Positive, Option(metavar="N")] = 16
    """Calls in flight."""
    attempts: Annotated[Positive, Option(metavar="N")] = 6
    """Most attempts of a call whose failure may pass."""
    rpm: Annotated[Positive | None, Option(metavar="N")] = None
    """Requests a minute at most, for each judge."""
    tpm: Annotated[Positive | None, Option(metavar="N")] = None
    """Tokens a minute at most, by judge's own estimate."""
    max_wait: Annotated[AboveZero, Option(metavar="SECONDS")] = 300.0
    """Longest wait for a rate limit; a provider that asks for more ends the run."""
    max_cost: Annotated[Amount | None, Option(metavar="USD")] = None
    """Spend no more than this in this invocation."""
    price: Annotated[
        tuple[Annotated[str, AfterValidator(_checked_price)], ...], Option(metavar="[MODEL=]IN/OUT", repeat=True)
    ] = ()
    """US dollars per million tokens of prompts and of replies, for one model or for all; IN/CACHED/OUT also gives that
    of cached tokens; may be repeated."""
    prices: Annotated[Path | None, Option(metavar="FILE")] = None
    """TOML or JSON with prices by model; --price wins over it."""

    @property
    def settings(self) -> Settings:
        """The limits as the loop takes them; the file of prices is read.

        An InputError if the file cannot be read or holds what is no price.
        """
        limits = {name: value for name, value in self.part(LoopOptions).items() if name not in ("price", "prices")}
        table = {} if self.prices is None else read_prices(self.prices)
        return Settings(prices=dict(map(_price, self.price)), price_table=table, **limits)


class AskingOptions(JudgeOptions, LoopOptions):
    """How a judge is asked, and within what limits."""


ASKING = tuple(AskingOptions.model_fields)
"""Names of these options, which have no effect where nobody is asked."""
