"""What calls cost: prices, a file of the user's own prices, and what completions took by judge."""

import json
import tomllib
from array import array
from collections.abc import Mapping
from typing import Any

import msgspec

from judge.errors import InputError, refuse
from judge.io.files import LARGEST_TOML, StrPath, read_stored
from judge.io.text import count, did_you_mean, shown
from judge.judges.records import Completion
from judge.records import Problem, Record, file_problem

KEYS = ("in", "cached", "out")
"""US dollars per million tokens: of prompts, of what a provider reads of them from its cache, of replies."""
_REQUIRED = ("in", "out")
_EXPECTED = "expected a table such as {in = 0.40, cached = 0.10, out = 1.60} for the name of each model"


class Price(msgspec.Struct, frozen=True):
    """US dollars for each token of a prompt and of a completion; as text, per million, as `--price` takes it."""

    prompt: float
    completion: float
    cached: float | None = None
    """For each token of a prompt that the provider read from its cache; None where it costs as much as any other."""

    def cost(self, prompt: int, cached: int, completion: int) -> float:
        """US dollars for a call of so many tokens; those that the provider read from its cache are part of `prompt`."""
        rate = self.prompt if self.cached is None else self.cached
        return (prompt - cached) * self.prompt + cached * rate + completion * self.completion

    def of(self, completion: Completion) -> float | None:
        """US dollars for a completion; None where it does not say its tokens."""
        prompt = completion.prompt_tokens
        reply = completion.completion_tokens
        return None if prompt is None or reply is None else self.cost(prompt, completion.cached_tokens or 0, reply)

    def per_million(self) -> dict[str, float]:
        """US dollars per million tokens: `in`, `cached` where it differs, `out`."""
        cached = {} if self.cached is None else {"cached": round(self.cached * 1e6, 6)}
        return {"in": round(self.prompt * 1e6, 6), **cached, "out": round(self.completion * 1e6, 6)}

    def __str__(self) -> str:
        return "/".join(f"{amount:g}" for amount in self.per_million().values())


FREE = Price(0.0, 0.0)
"""The price of a judge that nobody bills."""


class Spending(Record, frozen=True, kw_only=True):
    """What calls took, or are expected to take; spendings add up.

    A sum leaves out the calls that do not say theirs, which `counted`, `priced` and `timed` show.
    """

    calls: int = 0
    """One that answered several questions is counted with the first of them."""
    attempts: int = 0
    """Requests that these calls took, failed attempts included."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Those of the prompts' tokens that the provider read from its cache; part of `prompt_tokens`."""
    completion_tokens: int = 0
    """Tokens of the replies, thoughts included."""
    thought_tokens: int = 0
    """Those of the replies' tokens that are hidden thoughts, as far as the provider tells; part of
    `completion_tokens`."""
    counted: int = 0
    """Calls that say the tokens of both prompt and reply."""
    cost: float = 0.0
    """US dollars."""
    priced: int = 0
    """Calls whose price is known."""
    seconds: float = 0.0
    """The calls' durations added up; calls that ran at once count each."""
    timed: int = 0
    """Calls that say their duration."""

    def __add__(self, other: "Spending") -> "Spending":
        """What both took together."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        return Spending(**sums)

    @property
    def whole_cost(self) -> float | None:
        """US dollars of all calls; None if the price of some is not known."""
        return self.cost if self.priced == self.calls else None


class CallSum:
    """The calls of one judge, added up as they come; equal calls in any order give equal sums.

    `price` is for the calls that were recorded without their cost.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._calls = self._attempts = self._counted = self._priced = 0
        self._prompt_tokens = self._cached_tokens = self._completion_tokens = self._thought_tokens = 0
        # Sums of floats depend on their order, so every one is kept.
        self.costs = array("d")
        self.seconds = array("d")

    def add(self, call: Completion) -> None:
        """Count a call; what came with the call of another completion counts its share of the tokens alone."""
        own = call.attempts > 0
        self._calls += own
        self._attempts += call.attempts
        if call.prompt_tokens is not None and call.completion_tokens is not None:
            self._counted += own
            self._prompt_tokens += call.prompt_tokens
            self._cached_tokens += call.cached_tokens or 0
            self._completion_tokens += call.completion_tokens
            self._thought_tokens += call.thought_tokens or 0
        cost = call.cost
        if cost is None and self._price is not None and call.prompt_tokens:
            cost = self._price.of(call)
        if cost is not None:
            self.costs.append(cost)
            self._priced += own
        if call.latency is not None:
            self.seconds.append(call.latency)

    @property
    def spending(self) -> Spending:
        """What they took."""
        return Spending(
            calls=self._calls,
            attempts=self._attempts,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            completion_tokens=self._completion_tokens,
            thought_tokens=self._thought_tokens,
            counted=self._counted,
            cost=round(sum(sorted(self.costs)), 9),
            priced=self._priced,
            seconds=round(sum(sorted(self.seconds)), 3),
            timed=len(self.seconds),
        )


def read_prices(path: StrPath) -> dict[str, Price]:
    """The prices of a TOML or JSON file by the name of the model; `*` names every model without one of its own.

    All problems of a file are listed in one InputError.
    """
    table = _document(path)
    prices: dict[str, Price] = {}
    problems: list[Problem] = []
    for model, entry in table.items():
        found = list(_problems(entry))
        where = f"$[{json.dumps(model)}]"
        problems += [file_problem("bad_price", path, message, where + at) for at, message in found]
        if not found:
            cached = entry.get("cached")
            prices[model] = Price(entry["in"] / 1e6, entry["out"] / 1e6, None if cached is None else cached / 1e6)
    refuse(problems, f"{path}: {count(len(problems), 'problem')}, so no price of this file is used")
    if not prices:
        raise InputError(f"{path}: holds no price: {_EXPECTED}")
    return prices


def _document(path: StrPath) -> Mapping[str, Any]:
    stored = read_stored(path)
    if len(stored) > LARGEST_TOML:
        raise InputError(f"{path}: {len(stored):,} bytes: a file of prices has at most {LARGEST_TOML:,}")
    # No TOML begins with a brace.
    as_json = stored.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    try:
        text = stored.decode("utf-8-sig")
        document: Mapping[str, Any] = json.loads(text, object_pairs_hook=_once) if as_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not {'JSON' if as_json else 'TOML'}: {error}") from error
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"{shown(key)} occurs twice in one object")
        members[key] = value
    return members


def _problems(entry: object) -> list[tuple[str, str]]:
    """What is wrong with the entry of a model: the place within it, and the message."""
    if not isinstance(entry, dict):
        return [("", f"found {shown(entry)}; {_EXPECTED}")]
    problems = [(f".{key}", "is missing") for key in _REQUIRED if key not in entry]
    for key, value in entry.items():
        if key not in KEYS:
            quoted = "; the name of a model stands in quotation marks" if isinstance(value, dict) else ""
            problems.append(
                (f"[{json.dumps(key)}]", f"no key of a price ({', '.join(KEYS)}){did_you_mean(key, KEYS)}{quoted}")
            )
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
            problems.append((f".{key}", f"{shown(value)} is no number of dollars: expected zero or more"))
    return problems
