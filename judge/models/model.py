"""The interface of a judge: its options, its price, and one call that is one attempt."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from judge.models.endpoints import Endpoint
from judge.models.limits import RateLimits
from judge.models.records import AnswerForm, Completion, Request
from judge.records import Criterion


class ModelOptions(msgspec.Struct, frozen=True):
    """Options that the user may set for any model; a backend refuses an option that it cannot honor."""

    base_url: str | None = None
    """The address, where it is not the usual one of the backend; part of every request's digest."""
    replicas: tuple[str, ...] = ()
    """Further addresses that serve the same model as `base_url` (`server/…` only); part of no digest."""
    temperature: float = 0.0
    max_tokens: int = 1024
    """Most tokens of a completion."""
    seed: int | None = None
    timeout: float = 120.0
    """Most seconds for one attempt."""
    threads: int | None = None
    """CPU threads of a local model; None means all cores that this process may use."""
    logprobs: bool = False
    """Ask for the probability of every label, and so for one label without reasons where a grade is asked."""


def recorded_options(options: ModelOptions) -> dict[str, Any]:
    """The options as records show them; records are older than `logprobs`, so it is there only if it is set."""
    recorded: dict[str, Any] = msgspec.to_builtins(options)
    return {name: value for name, value in recorded.items() if name != "logprobs" or value}


class Price(msgspec.Struct, frozen=True):
    """US dollars for each token of a prompt and of a completion; as text, per million, as `--price` takes it."""

    prompt: float
    completion: float
    cached: float | None = None
    """For each token of a prompt that the provider read from its cache; None where it costs as much as any other."""

    def cost(self, prompt: int, cached: int, completion: int) -> float:
        """US dollars for a call.

        Args:
            prompt: Tokens of the prompt, those from the cache included.
            cached: Tokens of the prompt that the provider read from its cache.
            completion: Tokens of the completion.
        """
        rate = self.prompt if self.cached is None else self.cached
        return (prompt - cached) * self.prompt + cached * rate + completion * self.completion

    def per_million(self) -> dict[str, float]:
        """US dollars per million tokens: `in`, `cached` where it differs, `out`."""
        cached = {} if self.cached is None else {"cached": round(self.cached * 1e6, 6)}
        return {"in": round(self.prompt * 1e6, 6), **cached, "out": round(self.completion * 1e6, 6)}

    def __str__(self) -> str:
        return "/".join(f"{amount:g}" for amount in self.per_million().values())


FREE = Price(0.0, 0.0)
"""The price of a judge that nobody bills."""


class Model(Protocol):
    """A judge. One call is one attempt: retries, journal and concurrency belong to the loop."""

    name: str
    """`backend/model`, as every record names the judge."""
    forms: tuple[AnswerForm, ...]
    """Answer forms this judge can be asked in, the preferred one first."""
    max_concurrency: int | None
    """More calls in flight than this gain nothing; None if there is no such number."""
    endpoint: str | None
    """The address to which the environment moves the judge, as records show it; None where nothing but name and options
    decide."""
    limits: RateLimits | None
    """What the provider said of its rate limits with its last reply, an error included; None if nothing."""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse criteria and options that can never work, before anything is sent.

        Raises:
            UsageError: This judge cannot answer one of the criteria, or a key or file is missing.
        """

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Fetch what the judge needs before the loop asks it.

        Args:
            report: Called with the name of the step, the bytes done, and the bytes in all.

        Raises:
            OperationalError: What the judge needs cannot be fetched now.
        """

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages, as JSON values; the request's digest covers it."""

    def price(self) -> Price | None:
        """The price, or None if it is not known offline."""

    async def complete(self, request: Request) -> Completion:
        """Ask once.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """

    async def aclose(self) -> None:
        """Release connections and memory."""


@runtime_checkable
class Replicated(Protocol):
    """A judge that may be asked at several addresses."""

    @property
    def servers(self) -> Sequence[Endpoint]:
        """How each of several addresses does; empty where there is one."""


class SentRequests(NamedTuple):
    """What one call of a judge sends, where the judge asks in words of its own."""

    requests: int
    prompt_bytes: int
    """Of the texts of these requests in UTF-8."""
    reply_tokens: int
    """Most tokens of their replies together."""


class Unfinished(NamedTuple):
    """The replies so far that no completion counts, because their call is under way or has failed."""

    prompt_tokens: int = 0
    """As the provider counted them, like those of the replies."""
    reply_tokens: int = 0
    uncounted_bytes: int = 0
    """Of the prompts whose tokens the provider did not count, in UTF-8."""
    uncounted_reply: int = 0
    """Most tokens of the replies to them."""

    def plus(self, other: "Unfinished") -> "Unfinished":
        """The sum of two."""
        return Unfinished(*(one + another for one, another in zip(self, other, strict=True)))

    def less(self, other: "Unfinished") -> "Unfinished":
        """What is left without another."""
        return Unfinished(*(one - another for one, another in zip(self, other, strict=True)))


@runtime_checkable
class Divided(Protocol):
    """A judge that divides a call into requests of its own."""

    @property
    def unfinished(self) -> Unfinished:
        """What was paid for without a completion since the judge was opened or closed."""

    def sent(self, request: Request) -> SentRequests | None:
        """What a call sends; None if it sends nothing."""
