"""What a job needs of a journal that it writes, wherever the journal is kept."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from judge.files.paths import StrPath
from judge.models.records import Completion, Message, Request
from judge.models.spending import CallFacts


class HeldElsewhere(Exception):
    """Another process is asking this question."""


class RecordedAnswer(NamedTuple):
    """A completion that the journal holds by now, and the digest of the request that it answers."""

    digest: str
    completion: Completion


class QuestionClaims(Protocol):
    """Which process asks which question, where several processes share a journal."""

    def claim(self, *digests: str, request: Request) -> "asyncio.Future[RecordedAnswer | None]":
        """Claim a question before it is asked.

        Args:
            digests: The requests with which the question can be asked, one for each answer form, in the order that
                every process gives them. The claim is on the first one, whichever is sent.
            request: The one that is to be sent.

        Returns:
            A future with the answer to the first request that the journal holds by now. It gives None if the question
            is ours to ask, until the completion of the first request is written or until `release`. It raises
            HeldElsewhere where another process is asking the question, and an OperationalError where the journal cannot
            be reached.
        """
        ...

    def release(self, digest: str) -> None:
        """Let go of a question, named by its first digest."""
        ...

    def give_up(self, error: BaseException) -> None:
        """End every wait for a claim with an error."""
        ...


class OpenJournal(Protocol):
    """A journal that this process writes; `Journal` describes the methods."""

    @property
    def claims(self) -> QuestionClaims | None:
        """What is to be claimed before it is asked; None where this process alone has the journal."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __bool__(self) -> bool:
        """Whether it holds any completion."""
        ...

    def __contains__(self, digest: str) -> bool: ...

    def check_there(self) -> None:
        """Refuse results that the journal would not give again."""
        ...

    def meta(self, key: str) -> str | None:
        """A fact kept beside the completions; None if not set."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Record a fact beside the completions."""
        ...

    def drop_meta(self, keys: Sequence[str]) -> None:
        """Remove facts; a key that is not set stays so."""
        ...

    def get(self, digest: str) -> Completion | None:
        """The completion recorded under a digest, or None."""
        ...

    def ahead(self, digests: Iterable[str]) -> None:
        """Fetch what is recorded under some digests, for the `get` of each that follows, in place of what was before.

        A journal for which one look at many is not quicker than many looks does not read `digests`.
        """
        ...

    def times(self, digests: Iterable[str]) -> dict[str, str]:
        """When the completions of some digests were recorded."""
        ...

    def sample(self, judge: str, most: int) -> list[tuple[tuple[Message, ...], CallFacts]]:
        """What a judge was asked and what the calls took, of at most `most` calls."""
        ...

    def adopt(self, path: StrPath) -> None:
        """Copy the completions of a journal's file into this one."""
        ...

    def write(
        self, digest: str, judge: str, parameters: Mapping[str, Any], request: Request, completion: Completion
    ) -> "asyncio.Future[None]":
        """Begin to record a completion; the future is done when it is on the disk."""
        ...

    def record(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Record completions that came another way, and give how many were new."""
        ...
