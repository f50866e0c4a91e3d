"""Nuggets, what responses do with them, what carries the sentences of responses, and what is missing. Pure."""

from typing import Literal, get_args

from judge.records import FailureReason, Record

Importance = Literal["vital", "okay"]
"""vital: a good response must say it. okay: a good response may say it."""
MatchLabel = Literal["supports", "partly", "does_not", "contradicts"]
"""What a response does with a nugget.

supports: it says all of it. partly: it says a part. does_not: it says nothing of it. contradicts: it says the opposite.
"""
CreationStep = Literal["creation", "merging", "importance"]
"""A step in making a bank: nuggets of one source, the removal of repeats, and how important nuggets are."""
MATCH_LABELS: tuple[MatchLabel, ...] = get_args(MatchLabel)
AnswerRule = Literal["AND", "OR"]
"""Whether a question needs all of its answers or one of them."""
ClaimLabel = Literal["none", "no_claim", "passage", "nugget"]
"""What carries a sentence.

nugget: nuggets of its turn or topic say what it claims. passage: they do not, but the passages that its response used
do. none: neither does. no_claim: it claims nothing.
"""
CLAIM_LABELS: tuple[ClaimLabel, ...] = get_args(ClaimLabel)
"""From worst to best for the response."""


class Nugget(Record, frozen=True):
    """A fact that a good response says, or a question that it answers (fields: docs/reference/files.toml)."""

    nugget_id: str
    topic_id: str
    text: str
    turn_id: str | None = None
    """The turn that it is about; None for a nugget of the whole topic."""
    importance: Importance | None = None
    """None where the bank does not say."""
    weight: float | None = None
    """What it counts for, where the bank says it; below zero it is a fault, which a good response does not have."""
    question: str | None = None
    """The question to which the text is an answer; None for a nugget that stands for itself."""
    aggregator: AnswerRule | None = None
    """Of a question: whether it needs all answers of the turn or topic, which are a nugget each."""
    aspect: str | None = None
    """The sub-narrative or the axis that it belongs to, where the bank says it."""
    relevance: int | None = None
    """The grade of the passage that it was taken from, where the bank says it."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that it was taken from, or that bear an answer out."""
    responses: tuple[str, ...] = ()
    """Ids of the pooled responses that it was taken from."""
    made_by: str | None = None
    edited_by: str | None = None
    """Who changed or added it."""

    @property
    def scope(self) -> str:
        """The turn that it is about, or else the topic."""
        return self.turn_id or self.topic_id

    @property
    def fault(self) -> bool:
        """Whether a good response does not have it."""
        return self.weight is not None and self.weight < 0


class NuggetBank(Record, frozen=True):
    """The nuggets of a file, in its order."""

    form: str
    """The form of the file, a key of FORMS."""
    nuggets: tuple[Nugget, ...]
    unreferenced: int = 0
    """Answers that no document bears out, and that are left out for it."""

    def by_scope(self) -> dict[str, list[Nugget]]:
        """Turn or topic to its nuggets, in the order of the bank."""
        scopes: dict[str, list[Nugget]] = {}
        for nugget in self.nuggets:
            scopes.setdefault(nugget.scope, []).append(nugget)
        return scopes


class _JudgeAnswer(Record, frozen=True, omit_defaults=True, kw_only=True):
    """How a judge came to its answer; the last fields of a row."""

    rationale: str | None = None
    model: str | None = None
    """The model, as the provider names it."""
    prompt: str | None = None
    """`criterion/variant`."""
    prompt_digest: str | None = None
    """SHA-256 of the prompt file."""
    request_digest: str | None = None
    repaired: bool = False
    """Whether the first reply was unreadable and the judge was asked again."""


class MatchedNugget(_JudgeAnswer, frozen=True, omit_defaults=True):
    """What one judge or one assessor says of a response and a nugget."""

    turn_id: str
    """The turn of the response."""
    nugget_id: str
    label: MatchLabel
    response_id: str | None = None
    text_sha256: str | None = None
    """SHA-256 of the response's text in NFC without outer white space, as in gold."""
    nugget_sha256: str | None = None
    """SHA-256 of the nugget's text as it was matched."""
    run_id: str | None = None
    """A run that ranked the response first in the turn, where there is no `response_id`."""
    assessor: str | None = None
    """Who matched; None where a judge did."""
    judge: str | None = None
    """`backend/model`; None where a person matched."""
    inclusion_probability: float | None = None
    """The probability with which a person was to match the nuggets of this response."""
    expected: float | None = None
    """Mean of the grades under the label probabilities."""
    probabilities: dict[str, float] | None = None


class ResponseClaims(_JudgeAnswer, frozen=True, omit_defaults=True):
    """What one judge or one assessor says of the sentences of a response."""

    turn_id: str
    response_id: str
    labels: tuple[ClaimLabel, ...]
    """One for each sentence of the response, in order."""
    passages: bool = False
    """Whether the passages of the response were shown, so that they may carry a sentence."""
    text_sha256: str | None = None
    """As in `MatchedNugget`."""
    nuggets_sha256: str | None = None
    """SHA-256 over the texts of the nuggets that were shown."""
    assessor: str | None = None
    """Who labeled; None where a judge did."""
    judge: str | None = None
    """`backend/model`; None where a person labeled."""


class NuggetFailure(Record, frozen=True, omit_defaults=True):
    """A step in making a bank that failed, and why; what it would have added is missing from the bank."""

    turn_id: str
    step: CreationStep
    reason: FailureReason
    detail: str
    judge: str
    passage: str | None = None
    """Of the step `creation`: the id of the passage that was shown."""
    response_id: str | None = None
    """Of the step `creation`: the response that was shown."""
    raw: str | None = None
    """The full reply, if there was one."""
    request_digest: str | None = None


class LabelFailure(Record, frozen=True, omit_defaults=True, kw_only=True):
    """A match or the labels of a response that are missing, and why; never a label."""

    turn_id: str
    nugget_id: str | None = None
    """None where the sentences of the response have no labels."""
    response_id: str
    reason: FailureReason | Literal["unable"]
    """unable: the judge said that it cannot tell."""
    detail: str
    judge: str
    raw: str | None = None
    """The full reply, if there was one."""
    request_digest: str | None = None
