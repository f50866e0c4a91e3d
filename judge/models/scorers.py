"""Scorers of (passage, sentence): how likely the passage supports the sentence, and where told, contradicts it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.errors import MissingKeyError, RejectedError, UsageError
from judge.models.address import Address, read_address
from judge.models.call_parts import CallParts
from judge.models.connection import Connection, Reply
from judge.models.http_errors import shorten
from judge.models.model import FREE, ModelOptions, Price, SentRequests, Unfinished
from judge.text.words import containment

SUPPORTS = frozenset(("entailment", "entails", "supported", "supports", "consistent", "grounded", "yes", "true"))
"""Labels of classes that mean support, in lower case."""
CONTRADICTS = frozenset(("contradiction", "contradicts", "contradicted", "refuted", "refutes"))
"""Labels of classes that mean contradiction, in lower case."""

TextPairs = Sequence[tuple[str, str]]


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

    def named(self) -> dict[str, str]:
        """The settings that there are."""
        return {name: value for name, value in self._asdict().items() if value}


class Scorer:
    """Scores pairs of a passage and a sentence."""

    concurrency: int | None = None
    """More items at a time than this gain nothing; None if there is no such number."""
    price: Price | None = None
    """The price; None if it is not known."""
    unfinished = Unfinished()
    """Replies of calls that are under way or have failed."""

    def check(self) -> None:
        """Refuse options that can never work, before anything is sent.

        Raises:
            UsageError: There is one.
        """

    def parameters(self) -> dict[str, Any]:
        """What decides the scores beside the texts, as JSON values."""
        raise NotImplementedError

    def sent(self, pairs: TextPairs) -> SentRequests | None:
        """What scoring these pairs sends; None if nothing is sent."""
        return None

    async def score(
        self, pairs: TextPairs, call: str = "", parts: CallParts | None = None
    ) -> Sequence[PairScore | NoScore]:
        """The scores of pairs (passage, sentence), in their order, up to the first reply without a score.

        Args:
            pairs: The pairs.
            call: The digest of the request of the call; another sample of the same pairs is another call.
            parts: Where scores that are paid for are kept as they come; None if nowhere.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something, or the journal fails.
        """
        raise NotImplementedError

    async def aclose(self) -> None:
        """Release connections and memory."""


class OverlapScorer(Scorer):
    """The share of a sentence's content words that the passage holds.

    It sees no negation, no swapped number and no new claim made of old words.
    """

    concurrency = 1
    price = FREE

    def parameters(self) -> dict[str, Any]:
        """The version of the rule; it goes up whenever the same texts may get another score."""
        return {"overlap": 1}

    async def score(self, pairs: TextPairs, call: str = "", parts: CallParts | None = None) -> list[PairScore]:
        """The shares."""
        return [PairScore(containment(sentence, (passage,))) for passage, sentence in pairs]


class ServedScorer(Scorer):
    """A scorer at one address.

    Args:
        model: What the server calls the model.
        options: How it is asked.
        settings: What the name of the checker says beside the model.
    """

    kind: str
    """Of checkers with this scorer, the beginning of their names."""
    address_needed: str
    """What --base-url must be, for a message."""
    path = ""
    """What follows the address."""

    def __init__(self, model: str, options: ModelOptions, settings: ScorerSettings) -> None:
        self.name = f"{self.kind}/{model}"
        self._model = model
        self._options = options
        self._settings = settings
        self._connection: Connection | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    def _address(self) -> Address:
        if self._options.base_url is None or self._options.replicas:
            kind = UsageError if self._options.replicas else MissingKeyError
            raise kind(f"{self.name} needs one --base-url{self.address_needed}")
        return read_address(self._options.base_url)

    async def _fetch(self, sent: Mapping[str, Any], *, probable: bool = False) -> Reply:
        """Send one request; `probable` says whether it asks for probabilities of tokens."""
        try:
            body = msgspec.json.encode(sent)
        except UnicodeEncodeError as error:
            raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error
        if self._connection is None:
            self._connection = Connection(self._address(), self._options, self.path)
        return await self._connection.fetch(body, probable=probable)


def text_bytes(texts: Sequence[str]) -> int:
    """The size of texts in UTF-8."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def pair_score(
    labels: Sequence[str], probabilities: Sequence[float], settings: ScorerSettings, *, ordered: bool = False
) -> PairScore:
    """The score of a pair, from the probability of each class.

    The only class of a classifier means support, whatever it is called.

    >>> pair_score(["Entailment", "neutral", "contradiction"], [0.7, 0.2, 0.1], ScorerSettings())[:2]
    (0.7, 0.1)
    >>> pair_score(["no", "so so", "sure"], [0.2, 0.1, 0.7], ScorerSettings(supports="2"), ordered=True)[:2]
    (0.7, 0.0)

    Args:
        labels: The label of each class.
        probabilities: The probability of each class.
        settings: The labels or numbers of the classes, where the words of the labels do not tell them.
        ordered: Whether the classes stand in the order of their numbers; else a number N is that of `LABEL_N`.

    Raises:
        RejectedError: None or several of the labels mean support, or a class of the settings is not there.
    """
    if len(labels) == 1 and not settings.supports:
        return PairScore(probabilities[0])
    names = [label.lower() for label in labels]
    supports = _places(names, settings.supports, SUPPORTS, ordered)
    if len(supports) != 1:
        raise RejectedError(
            f"none or several of the model's labels mean support: {shorten(', '.join(names))}; expected one of "
            f"{', '.join(sorted(SUPPORTS))}, or the label after the model's name, as in #supports=LABEL_1"
        )
    against = [probabilities[place] for place in _places(names, settings.contradicts, CONTRADICTS, ordered)]
    return PairScore(probabilities[supports[0]], max(against, default=0.0))


def _places(names: Sequence[str], wanted: str, words: frozenset[str], ordered: bool) -> list[int]:
    """The places of the class that the settings want, or of the classes whose labels are among some words."""
    name = wanted.lower()
    if name and name not in names:
        place = int(name) if name.isascii() and name.isdecimal() else len(names)
        if ordered and place < len(names):
            return [place]
        name = f"label_{name}"
        if name not in names:
            raise RejectedError(f"the model has no class {wanted!r}: its classes are {shorten(', '.join(names))}")
    return [place for place, known in enumerate(names) if (known == name if name else known in words)]
