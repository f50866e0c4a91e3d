"""`checker/<scorer>[#settings][@threshold]`: each sentence of a response against each used passage, or each nugget."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError, UsageError
from judge.models.call_parts import CallParts
from judge.models.chat_scorer import NO_INSTRUCTION, ChatScorer, read_instruction
from judge.models.journal_rows import request_digest
from judge.models.model import FREE, Model, ModelOptions, Price, SentRequests, Unfinished
from judge.models.onnx_scorer import OnnxScorer, read_model_files
from judge.models.records import NO_SCORE, AnswerForm, Completion, Request
from judge.models.scorers import NoScore, OverlapScorer, PairScore, Scorer, ScorerSettings
from judge.models.server_scorer import ServerScorer
from judge.records import Criterion
from judge.text.hints import did_you_mean
from judge.text.safe import digest as text_digest
from judge.text.sentences import split_sentences
from judge.text.words import content_words

VERSION = 1
"""Goes up whenever the same scores may give other labels."""
THRESHOLD = 0.5
DIGITS = 8
"""Of the digest of a file in the name of a judge."""
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


class Checker(Model):
    """Labels sentences by the scores of (passage, sentence); the prompt's roll-up makes a grade of the labels.

    A sentence is supported if some passage's score reaches the threshold, else contradicted if a passage's
    contradiction does, else unsupported. A question and a sentence without a content word claim nothing. It reads one
    sentence and one passage at a time, so a claim that only two passages together bear out is unsupported, and so is
    one whose "it" stands for something in the sentence before.

    Where a prompt shows nuggets, a nugget carries a sentence if its score reaches the threshold, else a passage does if
    its score does and the prompt shows passages, else none.

    Args:
        name: What the judge is called, with its settings and its threshold if they were given.
        scorer: Scores the pairs.
        threshold: The least probability that counts.
    """

    forms: tuple[AnswerForm, ...] = ("json",)
    divides = True

    def __init__(self, name: str, scorer: Scorer, threshold: float) -> None:
        self.name = name
        self.max_concurrency = scorer.concurrency
        self.uses_cores = scorer.concurrency is not None
        self._scorer = scorer
        self._threshold = threshold
        self._parts: CallParts | None = None

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse all but groundedness and nugget precision by sentences, and options of the scorer that can never work.

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
        self._scorer.check()

    def keep(self, parts: CallParts) -> None:
        """Keep here what comes back for pairs."""
        self._parts = parts

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The version of the rule, the threshold, the labels, and what decides the scores."""
        rule = {"version": VERSION, "threshold": self._threshold, "labels": list(request.labels)}
        return rule | self._scorer.parameters()

    def price(self) -> Price | None:
        """The scorer's."""
        return self._scorer.price

    @property
    def unfinished(self) -> Unfinished:
        """The scorer's."""
        return self._scorer.unfinished

    def sent(self, request: Request) -> SentRequests | None:
        """What the scorer sends for the pairs of this request."""
        return self._scorer.sent(_pairs(request, list(filter(claims, split_sentences(request.response)))))

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
        scores = await self._scorer.score(pairs, digest, self._parts)
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
            cost=0.0 if self.price() == FREE else None,
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

    async def aclose(self) -> None:
        """Release the scorer's connections."""
        await self._scorer.aclose()

    def _label(self, scores: Sequence[PairScore] | None, request: Request) -> tuple[str, _Support]:
        """The label of a sentence with its support; the scores are None where it claims nothing."""
        labels, nuggets = request.labels, len(request.nuggets)
        none: _Support = (None, ())
        if scores is None and NO_CLAIM in labels:
            return NO_CLAIM, none
        reached = [number for number, score in enumerate(scores or (), 1) if score.supports >= self._threshold]
        if nuggets:
            if reached and reached[0] <= nuggets:
                return NUGGET, none
            return (PASSAGE if PASSAGE in labels and reached else NONE), none
        if not scores:
            return UNSUPPORTED, none
        support = round(max(score.supports for score in scores), 6), _likeliest(reached, scores)
        against = max(score.contradicts for score in scores) >= self._threshold and CONTRADICTED in labels
        return (SUPPORTED if reached else CONTRADICTED if against else UNSUPPORTED), support


def _likeliest(numbers: Sequence[int], scores: Sequence[PairScore]) -> tuple[int, ...]:
    return tuple(sorted(numbers, key=lambda number: -scores[number - 1].supports))


def _pairs(request: Request, sentences: Sequence[str]) -> list[tuple[str, str]]:
    """Each sentence beside each nugget, then beside each passage."""
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


def open_model(model: str, options: ModelOptions) -> Model:
    """The checker of this name: a row of SCORERS, with `#settings` and `@threshold` or without.

    Raises:
        UsageError: No checker has this name, a setting is none of the scorer's, or the threshold is no probability.
    """
    name, written = split_threshold(model)
    threshold = THRESHOLD if written is None else _threshold(written)
    kind, _, rest = name.partition("/")
    row = SCORERS.get(kind)
    if row is None or bool(row.rest) != bool(rest):
        *names, last = (f"checker/{kind}" + (row.rest and f"/{row.rest}") for kind, row in SCORERS.items())
        raise UsageError(
            f"no checker called {name!r}{did_you_mean(name, SCORERS)} (expected {', '.join(names)} or {last})"
        )
    rest, settings = _settings(rest, kind, row)
    named = settings.named()
    if "instruction" in named:
        named["instruction"] = _instruction_title(named["instruction"])
    # The name goes into every record: it must not depend on a folder, and two files must not share it.
    title = _model_title(rest) if kind == "onnx" else rest
    shown = f"checker/{kind}" + (title and f"/{title}")
    shown += "#" + ",".join(f"{setting}={value}" for setting, value in named.items()) if named else ""
    shown += "" if written is None else f"@{written}"
    return Checker(shown, row.make(rest, options, settings), threshold)


def split_threshold(name: str) -> tuple[str, str | None]:
    """A checker's name, and the threshold that is written after its last `@`; None if there is none.

    What has a slash is the rest of a path and no threshold.

    >>> split_threshold("checker/overlap@0.6"), split_threshold("checker/onnx/m@v2/x")
    (('checker/overlap', '0.6'), ('checker/onnx/m@v2/x', None))
    """
    before, at, written = name.rpartition("@")
    return (before, written) if at and "/" not in written else (name, None)


def _threshold(written: str) -> float:
    try:
        threshold = float(written)
    except ValueError:
        threshold = -1.0
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {written!r} of a checker: expected a number above 0 and up to 1, as in @0.5")
    return threshold


def _model_title(path: str) -> str:
    """The name of a model's file or folder, with the beginning of the digest of its files."""
    model = Path(path).expanduser()
    return _titled(model.name.removesuffix(".onnx"), lambda: read_model_files(model).digest)


def _instruction_title(path: str) -> str:
    """The name of a file with an instruction, with the beginning of the digest of its text."""
    return path if path == NO_INSTRUCTION else _titled(Path(path).name, lambda: text_digest(read_instruction(path)))


def _titled(name: str, digest: Callable[[], str]) -> str:
    try:
        return f"{name}~{digest()[:DIGITS]}"
    except InputError:
        # The scorer's check says what is wrong with the files, after what is wrong with the installation.
        return name


def _settings(rest: str, kind: str, row: "_Row") -> tuple[str, ScorerSettings]:
    """What stands before the last `#` of a name, and the settings after it, if there are any."""
    before, mark, written = rest.rpartition("#")
    if not mark or "=" not in written:
        return rest, ScorerSettings()
    given: dict[str, str] = {}
    for part in written.split(","):
        key, _, value = part.partition("=")
        if key not in row.settings or not value or key in given:
            raise UsageError(
                f"setting {part!r} of checker/{kind}{did_you_mean(key, row.settings)} (expected settings as in "
                f"#supports=0,contradicts=2, each once; it takes {', '.join(row.settings) or 'none'})"
            )
        given[key] = value
    return before, ScorerSettings(**given)


class _Row(NamedTuple):
    """A kind of scorer."""

    make: Callable[[str, ModelOptions, ScorerSettings], Scorer]
    """What makes it of the rest of the name, the options and the settings."""
    rest: str = ""
    """What the rest of the name is; empty if there must be none."""
    settings: tuple[str, ...] = ()
    """The settings that it takes."""


SCORERS = {
    "overlap": _Row(lambda model, options, settings: OverlapScorer()),
    "server": _Row(ServerScorer, "MODEL", ("supports", "contradicts", "join")),
    "chat": _Row(ChatScorer, "MODEL", ("instruction",)),
    "onnx": _Row(OnnxScorer, "PATH", ("supports", "contradicts")),
}
"""Name of a scorer to its row."""
