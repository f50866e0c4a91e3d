"""Scorers of (passage, sentence): how likely the passage supports the sentence, and where told, contradicts it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from judge.models.call_parts import PartsOfCall
from judge.models.model import FREE, Price, SentRequests, Unfinished
from judge.text.words import containment


class PairScore(NamedTuple):
    """What a scorer says of one passage and one sentence; the first two are probabilities."""

    supports: float
    contradicts: float = 0.0
    """0 where the scorer does not tell contradiction from absence."""
    decided: bool = False
    """Whether the scorer only said yes or no, which is 1 or 0 here."""
    tokens: tuple[int, int] | None = None
    """Tokens of the prompt and of the reply, where the scorer pays by them and the provider says them."""


class NoScore(NamedTuple):
    """A reply from which no score can be read; it is paid for all the same."""

    text: str
    finish_reason: str | None
    tokens: tuple[int, int] | None
    """As of `PairScore`."""


class CallScores(NamedTuple):
    """What a scorer says of the pairs of one call."""

    scores: list[PairScore]
    """In the order of the pairs, up to the first pair without a score."""
    unread: NoScore | None = None
    """The reply to that pair; no later one is asked. None where every pair has a score."""


class ScorerSettings(NamedTuple):
    """What the name of a checker says beside the model, after `#`; empty where it says nothing."""

    supports: str = ""
    """The class that means support: its label or its number, from 0."""
    contradicts: str = ""
    """The class that means contradiction, likewise."""
    join: str = ""
    """What stands between the passage and the sentence where a server takes both as one text."""
    instruction: str = ""
    """A file with the instruction of a chat model, or `none`."""


class Scorer(Protocol):
    """Scores pairs of a passage and a sentence."""

    concurrency: int | None
    """More items at a time than this gain nothing; None if there is no such number."""
    price: Price | None
    """The price; None if it is not known."""
    unfinished: Unfinished
    """Replies of calls that are under way or have failed."""

    def check(self) -> None:
        """Refuse options that can never work, before anything is sent.

        Raises:
            UsageError: There is one.
        """

    def parameters(self) -> dict[str, Any]:
        """What decides the scores beside the texts, as JSON values."""

    def sent(self, pairs: Sequence[tuple[str, str]]) -> SentRequests | None:
        """What scoring these pairs sends; None if nothing is sent."""

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores of pairs (passage, sentence), in their order.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """

    async def aclose(self) -> None:
        """Release connections."""


@runtime_checkable
class ResumableScorer(Scorer, Protocol):
    """A scorer that is paid for each pair."""

    async def score_call(self, call: str, pairs: Sequence[tuple[str, str]], parts: PartsOfCall | None) -> CallScores:
        """The scores of one call, which goes on where it failed when it is made again.

        Args:
            call: The digest of its request; another sample of the same pairs is another call.
            pairs: As for `score`.
            parts: Where its scores are kept as they come; None if nowhere.

        Raises:
            CallError: As for `score`.
            OperationalError: As for `score`, or the journal cannot be read or written.
        """


class OverlapScorer:
    """The share of a sentence's content words that the passage holds.

    It sees no negation, no swapped number and no new claim made of old words.
    """

    concurrency: int | None = 1
    price: Price | None = FREE
    unfinished = Unfinished()

    def check(self) -> None:
        """Nothing can be wrong: the scorer is this code."""

    def parameters(self) -> dict[str, Any]:
        """The version of the rule; it goes up whenever the same texts may get another score."""
        return {"overlap": 1}

    def sent(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Nothing is sent."""

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The shares."""
        return [PairScore(containment(sentence, (passage,))) for passage, sentence in pairs]

    async def aclose(self) -> None:
        """Nothing is released."""
