"""Checkers: how likely a passage supports a sentence, where told contradicts it, and what labels that gives."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.errors import MissingKeyError, RejectedError, UsageError
from judge.models.address import Address, read_address
from judge.models.call_parts import CallParts
from judge.models.connection import Connection, Reply
from judge.models.http_errors import shorten
from judge.models.journal_rows import request_digest
from judge.models.model import Model, ModelOptions
from judge.models.records import NO_SCORE, AnswerForm, Completion, Request
from judge.records import Criterion
from judge.text.sentences import split_sentences
from judge.text.words import containment, content_words

VERSION = 1
"""Goes up whenever the same scores may give other labels."""
THRESHOLD = 0.5
SUPPORTED, CONTRADICTED, UNSUPPORTED, NO_CLAIM = "supported", "contradicted", "unsupported", "no_claim"
NUGGET, PASSAGE, NONE = "nugget", "passage", "none"
_LABELS: Mapping[str, frozenset[str]] = {
    "groundedness": frozenset((SUPPORTED, UNSUPPORTED)),
    "nugget_precision": frozenset((NUGGET, NONE)),
}
"""Criterion to the labels of sentences without which it cannot be checked."""
_ADVICE = {
    "nugget": "`judge nuggets claims` sets sentences beside nuggets, and baseline/overlap matches nuggets",
    "nugget_precision": "add --prompt nugget_precision/graded",
}
"""Criterion to what can be done instead; others have the labels of groundedness."""
_ALONE = "yes or no alone"
"""In the raw reply: how many scores are 1 or 0 because the scorer said no probability."""
_STOPPED = frozenset({"refusal", "content_filter"})
"""Finish reasons of replies that the provider stopped."""
_SCORES = "supports, contradicts"
"""In the raw reply: number of a sentence to a score for each text."""

_Support = tuple[float | None, tuple[int, ...]]
"""The highest support of a sentence, and the passages that support it, the likeliest first."""
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


class CheckerSettings(NamedTuple):
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


class Checker(Model):
    """Labels sentences by the scores of (passage, sentence); the prompt's roll-up makes a grade of the labels.

    A sentence is supported if some passage's score reaches the threshold, else contradicted if a passage's
    contradiction does, else unsupported. A question and a sentence without a content word claim nothing. It reads one
    sentence and one passage at a time, so a claim that only two passages together bear out is unsupported, and so is
    one whose "it" stands for something in the sentence before.

    Where a prompt shows nuggets, a nugget carries a sentence if its score reaches the threshold, else a passage does if
    its score does and the prompt shows passages, else none.

    A kind of checker defines `score` and `rule`.
    """

    forms: tuple[AnswerForm, ...] = ("json",)
    divides = True
    threshold = THRESHOLD
    """The least probability that counts."""
    parts: CallParts | None = None
    """Where scores that are paid for are kept as they come; None if nowhere."""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse all but groundedness and nugget precision by sentences, and options that can never work.

        Raises:
            UsageError: There is one of these.
        """
        for criterion in criteria:
            labels = {level.label for level in criterion.sentence_levels}
            needed = _LABELS.get(criterion.name)
            if needed is None or not needed <= labels or criterion.together:
                raise UsageError(
                    f"{self.name} labels sentences by used passages or by nuggets, and cannot be asked "
                    f"{criterion.prompt_id}: {_ADVICE.get(criterion.name, 'add --prompt groundedness/sentences')}"
                )

    def keep(self, parts: CallParts) -> None:
        """Keep here what comes back for pairs."""
        self.parts = parts

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The version of the labels' rule, the threshold, the labels, and what decides the scores."""
        return {"version": VERSION, "threshold": self.threshold, "labels": list(request.labels), **self.rule()}

    def rule(self) -> dict[str, Any]:
        """What decides the scores beside the texts, as JSON values."""
        raise NotImplementedError

    async def score(self, pairs: TextPairs, call: str = "") -> Sequence[PairScore | NoScore]:
        """The scores of pairs (passage, sentence), in their order, up to the first reply without a score.

        Args:
            pairs: The pairs.
            call: The digest of the request of the call; another sample of the same pairs is another call.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something, or the journal fails.
        """
        raise NotImplementedError

    def pairs(self, request: Request) -> list[tuple[str, str]]:
        """Each nugget, then each passage, beside each sentence that claims something."""
        return _pairs(request, filter(claims, split_sentences(request.response)))

    async def complete(self, request: Request) -> Completion:
        """Label every sentence, with the passages that support it; or give the reply that is no score.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        sentences = split_sentences(request.response)
        claiming = [number for number, sentence in enumerate(sentences, 1) if claims(sentence)]
        pairs = _pairs(request, [sentences[number - 1] for number in claiming])
        digest = request_digest(self.name, self.parameters(request), request)
        scores = await self.score(pairs, digest)
        # A pair that occurs twice is scored once.
        tokens = [score.tokens for score in dict(zip(pairs, scores, strict=False)).values()]
        counted = [count for count in tokens if count is not None]
        known = bool(counted) and len(counted) == len(tokens)
        completion = Completion(
            text="",
            finish_reason="stop",
            model=self.name,
            prompt_tokens=sum(prompt for prompt, _ in counted) if known else None,
            completion_tokens=sum(reply for _, reply in counted) if known else None,
            cost=0.0 if self.free else None,
        )
        if scores and isinstance(scores[-1], NoScore):
            # The verdict is read from this reply, and no label of other sentences makes a grade without it.
            stopped = scores[-1].finish_reason if scores[-1].finish_reason in _STOPPED else NO_SCORE
            return msgspec.structs.replace(completion, text=scores[-1].text, finish_reason=stopped)
        read = [score for score in scores if isinstance(score, PairScore)]
        width = len(request.nuggets) + len(request.passages)
        rows = {number: read[at * width : (at + 1) * width] for at, number in enumerate(claiming)}
        found = [self._label(rows.get(number), request) for number in range(1, len(sentences) + 1)]
        entries = [{"n": number, "label": label} for number, (label, _) in enumerate(found, 1)]
        decided = sum(score.decided for score in read)
        raw = {_SCORES: {str(number): [score[:2] for score in row] for number, row in rows.items()}}
        return msgspec.structs.replace(
            completion,
            text=msgspec.json.encode({"sentences": entries}).decode(),
            support=() if request.nuggets else tuple(support for _, support in found),
            raw=msgspec.json.encode(raw | ({_ALONE: decided} if decided else {})).decode(),
        )

    def _label(self, scores: Sequence[PairScore] | None, request: Request) -> tuple[str, _Support]:
        """The label of a sentence with its support; the scores are None where it claims nothing."""
        labels, nuggets = request.labels, len(request.nuggets)
        none: _Support = (None, ())
        if scores is None and NO_CLAIM in labels:
            return NO_CLAIM, none
        reached = [number for number, score in enumerate(scores or (), 1) if score.supports >= self.threshold]
        if nuggets:
            if reached and reached[0] <= nuggets:
                return NUGGET, none
            return (PASSAGE if PASSAGE in labels and reached else NONE), none
        if not scores:
            return UNSUPPORTED, none
        support = round(max(score.supports for score in scores), 6), _likeliest(reached, scores)
        against = max(score.contradicts for score in scores) >= self.threshold and CONTRADICTED in labels
        return (SUPPORTED if reached else CONTRADICTED if against else UNSUPPORTED), support


def _likeliest(numbers: Sequence[int], scores: Sequence[PairScore]) -> tuple[int, ...]:
    return tuple(sorted(numbers, key=lambda number: -scores[number - 1].supports))


def _pairs(request: Request, sentences: Iterable[str]) -> list[tuple[str, str]]:
    return [(text, sentence) for sentence in sentences for text in (*request.nuggets, *request.passages)]


def claims(sentence: str) -> bool:
    """Whether a sentence may state a fact: it is no question, and has a content word."""
    return not sentence.rstrip("\"'”’)]*_ ").endswith(("?", "？")) and bool(content_words(sentence))


class _Raw(msgspec.Struct, frozen=True):
    scores: dict[str, list[Any]] = msgspec.field(name=_SCORES)
    alone: int = msgspec.field(name=_ALONE, default=0)


def alone_of(completion: Completion) -> tuple[int, int]:
    """How many scores of a checker's completion say yes or no alone, and how many there are."""
    try:
        raw = msgspec.json.decode(completion.raw or "", type=_Raw)
    except msgspec.DecodeError:
        return 0, 0
    return raw.alone, sum(map(len, raw.scores.values()))


class OverlapChecker(Checker):
    """The share of a sentence's content words that the passage holds.

    It sees no negation, no swapped number and no new claim made of old words.
    """

    max_concurrency = 1
    uses_cores = True
    free = True

    def rule(self) -> dict[str, Any]:
        """The version of the rule; it goes up whenever the same texts may get another score."""
        return {"overlap": 1}

    async def score(self, pairs: TextPairs, call: str = "") -> list[PairScore]:
        """The shares."""
        return [PairScore(containment(sentence, (passage,))) for passage, sentence in pairs]


class ServedChecker(Checker):
    """A checker at one address.

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

    def __init__(self, model: str, options: ModelOptions, settings: CheckerSettings) -> None:
        self._called = f"{self.kind}/{model}"
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
            raise kind(f"{self._called} needs one --base-url{self.address_needed}")
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
    labels: Sequence[str], probabilities: Sequence[float], settings: CheckerSettings, *, ordered: bool = False
) -> PairScore:
    """The score of a pair, from the probability of each class.

    The only class of a classifier means support, whatever it is called.

    >>> pair_score(["Entailment", "neutral", "contradiction"], [0.7, 0.2, 0.1], CheckerSettings())[:2]
    (0.7, 0.1)
    >>> pair_score(["no", "so so", "sure"], [0.2, 0.1, 0.7], CheckerSettings(supports="2"), ordered=True)[:2]
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
