"""What every judge is to the loop: options, price, and one call that is one attempt."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from judge.models.records import AnswerForm, Completion, Request
from judge.records import Criterion


class ModelOptions(msgspec.Struct, frozen=True):
    """What the user may say about any model; a backend refuses what it cannot honour."""

    base_url: str | None = None
    temperature: float = 0.0
    max_tokens: int = 1024
    seed: int | None = None
    timeout: float = 120.0
    """Seconds for one attempt."""
    threads: int | None = None
    """CPU threads of a local model; None means the free cores."""


class Price(msgspec.Struct, frozen=True):
    """US dollars a token."""

    prompt: float
    completion: float


class Model(Protocol):
    """A judge. One call is one attempt: retries, journal and concurrency belong to the loop."""

    name: str
    """`backend/model`, as every record names the judge."""
    forms: tuple[AnswerForm, ...]
    """Answer forms this judge can be asked in, the preferred one first."""
    max_concurrency: int | None
    """More calls in flight than this gain nothing; None for no such limit."""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse, before anything is sent, what can never work.

        Raises:
            UsageError: This judge cannot answer one of the criteria, or a key or file is missing.
        """

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Fetch what the judge needs before the loop; `report` hears what, the bytes done, and the bytes in all.

        Raises:
            OperationalError: It cannot be had now.
        """

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages, as JSON values; part of the request's digest."""

    def price(self) -> Price | None:
        """The price if it is known offline."""

    async def complete(self, request: Request) -> Completion:
        """Ask once.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user mends something.
        """

    async def aclose(self) -> None:
        """Release connections and memory."""
