"""Checkers: how likely a passage supports a sentence, where told contradicts it, and what labels that gives."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.errors import MissingKeyError, RejectedError, UsageError
from judge.io.text import count
from judge.io.words import containment, content_words, split_sentences
from judge.judges.chat import KEY, Connection
from judge.judges.credentials import Address, read_address, read_key
from judge.judges.http_errors import shorten
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion
from judge.units import UNITS

VERSION = 1
"""Goes up whenever the same scores may give other labels."""
THRESHOLD = 0.5
SUPPORTED = "supported"
CONTRADICTED = "contradicted"
UNSUPPORTED = "unsupported"
NO_CLAIM = "no_claim"
_LABELS: Mapping[str, frozenset[str]] = {
    "groundedness": frozenset((SUPPORTED, UNSUPPORTED)),
    "support": frozenset((SUPPORTED, UNSUPPORTED)),
}
"""Criterion to the labels of sentences without which it cannot be checked."""
_ADVICE = {
    "nugget": "baseline/overlap matches nuggets",
    "support": "add --prompt support/sentences",
}
"""Criterion to what can be done instead; others have the labels of groundedness."""
RERANKERS = (
    "passages are graded by checker/reranker/MODEL --base-url http://HOST/score, checker/reranker-onnx/PATH, or "
    "baseline/overlap"
)
"""What grades passages without a language model."""
_ALONE, _SCORES = "yes or no alone", "supports, contradicts"
"""In the raw reply: how many scores are 1 or 0 because the scorer said no probability; sentence to scores by text."""
SUPPORTS = frozenset(("entailment", "entails", "supported", "supports", "consistent", "grounded", "yes", "true"))
"""Labels of classes that mean support, in lower case."""
CONTRADICTS = frozenset(("contradiction", "contradicts", "contradicted", "refuted", "refutes"))
"""Labels of classes that mean contradiction, in lower case."""

TextPair = tuple[str, str]
"""A passage and a sentence."""


class PairScore(NamedTuple):
    """What a scorer says of one passage and one sentence; the first two are probabilities."""

    supports: float
    contradicts: float = 0.0
    """0 where the scorer does not tell contradiction from absence."""
    decided: bool = False
    """Whether the scorer only said yes or no, which is 1 or 0 here."""


class Checker(Model):
    """Labels sentences by the scores of (passage, sentence); the prompt's roll-up makes a grade of the labels.

    A sentence is supported if some passage's score reaches the threshold, else contradicted if a passage's
    contradiction does, else unsupported. A question and a sentence without a content word claim nothing. It reads one
    sentence and one passage at a time, so a claim that only two passages together bear out is unsupported, and so is
    one whose "it" stands for something in the sentence before.

    A kind of checker defines `rule`, and `score` or `answer`. `model` stands in the name after the kind, the settings
    after `#`.
    """

    forms: tuple[AnswerForm, ...] = ("json",)
    kind: str
    """In the name, what follows `checker/`."""
    model_needed = ""
    """What follows the kind, for a message; empty if there must be nothing."""
    takes: tuple[str, ...] = ()
    threshold = THRESHOLD
    """The least probability that counts."""

    def __init__(self, model: str, options: ModelOptions, settings: Mapping[str, str]) -> None:
        self._model = model
        self._options = options
        self._settings = settings
        self._called = f"checker/{self.kind}/{model}"

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse criteria that it cannot be asked."""
        for criterion in criteria:
            self.check_criterion(criterion)

    def check_criterion(self, criterion: Criterion) -> None:
        """Refuse all but groundedness and support by sentences."""
        if is_checkable(criterion):
            return
        advice = _ADVICE.get(criterion.name, "add --prompt groundedness/sentences")
        if UNITS[criterion.unit].listed:
            advice = RERANKERS
        raise UsageError(
            f"{self.name} labels sentences by used passages, and cannot be asked {criterion.prompt_id}: {advice}"
        )

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The version of the labels' rule, the threshold, the labels, and what decides the scores."""
        return {"version": VERSION, "threshold": self.threshold, "labels": list(request.labels), **self.rule()}

    def rule(self) -> dict[str, Any]:
        """What decides the scores beside the texts, as JSON values."""
        raise NotImplementedError

    def pairs(self, request: Request) -> list[TextPair]:
        """Each passage beside each sentence that claims something."""
        sentences = filter(claims, split_sentences(request.response))
        pairs: list[tuple[str, str]] = []
        for sentence in sentences:
            pairs.extend((passage, sentence) for passage in request.passages)
        return pairs

    async def score(self, pairs: Sequence[TextPair]) -> list[PairScore]:
        """The scores of pairs, in their order; it raises what `complete` does."""
        raise NotImplementedError

    async def answer(self, request: Request, pairs: Sequence[TextPair]) -> tuple[Completion, Sequence[PairScore]]:
        """The scores of a request's pairs, and what they took; its finish reason is `stop` where all have a score."""
        completion = Completion(text="", finish_reason="stop", model=self.name, cost=0.0 if self.free else None)
        return completion, await self.score(pairs)

    async def complete(self, request: Request) -> Completion:
        """Label every sentence, with the passages that support it; or give the reply that is no score."""
        completion, scores = await self.answer(request, self.pairs(request))
        if completion.finish_reason != "stop":
            # The verdict is read from this reply, and no label of other sentences makes a grade without it.
            return completion
        left = iter(scores)
        rows: dict[int, list[PairScore]] = {}
        labels = []
        support = []
        for number, sentence in enumerate(split_sentences(request.response), 1):
            if claims(sentence):
                rows[number] = list(itertools.islice(left, len(request.passages)))
            labels.append({"n": number, "label": self._label(rows.get(number), request)})
            support.append(self._support(rows.get(number)))
        shown: dict[str, list[tuple[float, float]]] = {}
        for number, row in rows.items():
            shown[str(number)] = [score[:2] for score in row]
        raw: dict[str, Any] = {_SCORES: shown}
        if decided := sum(score.decided for score in scores):
            raw[_ALONE] = decided
        return msgspec.structs.replace(
            completion,
            text=msgspec.json.encode({"sentences": labels}).decode(),
            support=tuple(support),
            raw=msgspec.json.encode(raw).decode(),
        )

    def _label(self, scores: Sequence[PairScore] | None, request: Request) -> str:
        """The label of a sentence; the scores are None where it claims nothing."""
        if scores is None and NO_CLAIM in request.labels:
            return NO_CLAIM
        if any(score.supports >= self.threshold for score in scores or ()):
            return SUPPORTED
        against = any(score.contradicts >= self.threshold for score in scores or ())
        return CONTRADICTED if against and CONTRADICTED in request.labels else UNSUPPORTED

    def _support(self, scores: Sequence[PairScore] | None) -> tuple[float | None, tuple[int, ...]]:
        """The highest support of a sentence, and the passages that support it, the likeliest first."""
        if not scores:
            return None, ()
        reached = [number for number, score in enumerate(scores, 1) if score.supports >= self.threshold]
        likeliest = sorted(reached, key=lambda number: -scores[number - 1].supports)
        return round(max(score.supports for score in scores), 6), tuple(likeliest)

    def notes(self, completions: Iterable[Completion]) -> tuple[str, ...]:
        """How many scores are a bare yes or no, if some are."""
        alone = scores = 0
        for completion in completions:
            raw = msgspec.json.decode(completion.raw or "{}", type=dict[str, Any])
            alone += raw.get(_ALONE, 0)
            scores += sum(map(len, raw.get(_SCORES, {}).values()))
        if not alone:
            return ()
        return (
            f"{self.name}: {alone} of {count(scores, 'score')} are a yes or a no alone, which is 1 or 0 here, because "
            "the server gave no log probabilities or too little of them. No threshold changes these.",
        )


def probability(written: str) -> float:
    """The number that is written; -1 if it is none."""
    try:
        return float(written)
    except ValueError:
        return -1.0


def is_checkable(criterion: Criterion) -> bool:
    """Whether checkers have the labels that a prompt's sentences need."""
    needed = _LABELS.get(criterion.name)
    labels = {level.label for level in criterion.sentence_levels}
    return needed is not None and needed <= labels


def claims(sentence: str) -> bool:
    """Whether a sentence may state a fact: it is no question, and has a content word."""
    return not sentence.rstrip("\"'”’)]*_ ").endswith(("?", "？")) and bool(content_words(sentence))


class OverlapChecker(Checker):
    """The share of a sentence's content words that the passage holds.

    It sees no negation, no swapped number and no new claim made of old words.
    """

    kind = "overlap"
    max_concurrency = 1
    uses_cores = True
    free = True

    def rule(self) -> dict[str, Any]:
        """The version of the rule; it goes up whenever the same texts may get another score."""
        return {"overlap": 1}

    async def score(self, pairs: Sequence[TextPair]) -> list[PairScore]:
        """The shares."""
        return [PairScore(containment(sentence, (passage,))) for passage, sentence in pairs]


class ServedChecker(Checker):
    """A checker at one address."""

    model_needed = "MODEL"
    address_needed: str
    """What --base-url must be, for a message."""
    path: str
    """What follows the address."""
    _connection: Connection | None = None

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing or malformed address and a malformed key, too."""
        super().check(criteria)
        read_key(KEY)
        self._address()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    def _address(self) -> Address:
        if self._options.base_url is None:
            raise MissingKeyError(f"{self._called} needs --base-url{self.address_needed}")
        return read_address(self._options.base_url)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._address(), self._options, self.path)
        return self._connection


def text_bytes(texts: Iterable[str]) -> int:
    """The size of texts in UTF-8."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def pair_score(
    labels: Sequence[str], probabilities: Sequence[float], settings: Mapping[str, str], *, ordered: bool = False
) -> PairScore:
    """The score of a pair, from the probability of each class.

    The only class of a classifier means support, whatever it is called.

    >>> pair_score(["Entailment", "neutral", "contradiction"], [0.7, 0.2, 0.1], {})[:2]
    (0.7, 0.1)
    >>> pair_score(["no", "so so", "sure"], [0.2, 0.1, 0.7], {"supports": "2"}, ordered=True)[:2]
    (0.7, 0.0)

    `settings` say which classes support and contradict, by label or number, where the words of the labels do not tell.
    `ordered` classes stand in the order of their numbers; else a number N is that of `LABEL_N`. Where none or several
    labels mean support, or a class of the settings is not there, that is a RejectedError.
    """
    if len(labels) == 1 and "supports" not in settings:
        return PairScore(probabilities[0])
    names = [label.lower() for label in labels]
    supports = _places(names, settings.get("supports"), SUPPORTS, ordered)
    if len(supports) != 1:
        raise RejectedError(
            f"none or several of the model's labels mean support: {shorten(', '.join(names))}; expected one of "
            f"{', '.join(sorted(SUPPORTS))}, or the label after the model's name, as in #supports=LABEL_1"
        )
    against = _places(names, settings.get("contradicts"), CONTRADICTS, ordered)
    return PairScore(probabilities[supports[0]], max((probabilities[place] for place in against), default=0.0))


def _places(names: Sequence[str], wanted: str | None, words: frozenset[str], ordered: bool) -> list[int]:
    """The places of the class that the settings want, or of the classes whose labels are among some words."""
    if wanted is None:
        return [place for place, name in enumerate(names) if name in words]
    if wanted.lower() in names:
        return [place for place, name in enumerate(names) if name == wanted.lower()]
    if ordered and wanted.isascii() and wanted.isdecimal() and int(wanted) < len(names):
        return [int(wanted)]
    if (name := f"label_{wanted.lower()}") in names:
        return [names.index(name)]
    raise RejectedError(f"the model has no class {wanted!r}: its classes are {shorten(', '.join(names))}")
