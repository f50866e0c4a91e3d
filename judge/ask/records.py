"""Judgments, and failures where there is no judgment. Pure."""

from typing import Literal

from judge.judges.records import AnswerForm
from judge.records import FailureReason, Record, bare


class SentenceSupport(Record, frozen=True):
    """What a checker found for one sentence."""

    passages: tuple[str, ...]
    """The used passages that support it, as `pool.jsonl` names them, the likeliest first."""
    probability: float | None
    """The highest probability that a passage supports it; None where none was asked about."""


class Verdict(Record, frozen=True):
    """The grade that one completion gives."""

    grade: int
    rationale: str | None
    sentences: tuple[str, ...] = ()
    """A label for each sentence, where sentences are labeled."""
    expected: float | None = None
    """Mean of the grades under the label probabilities; None where the judge gave none."""
    unable: bool = False
    """Whether the grade is the level of "unable to judge"."""
    support: tuple[tuple[float | None, tuple[int, ...]], ...] = ()
    """For each sentence the highest probability of support, and the numbers of the passages that support it, from 1;
    empty where the reply does not tell."""
    nuggets: tuple[str, ...] = ()
    """The nuggets, where a list of them is asked."""


class Unreadable(Record, frozen=True):
    """A completion without a readable grade, and why."""

    reason: Literal["unreadable", "refused", "truncated", "content_filter"]
    detail: str


class Judgment(Record, frozen=True, tag="judgment", tag_field="kind", omit_defaults=True):
    """One grade of one judge for one pooled response; docs/reference/files.toml lists the fields."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    grade: int
    unable: bool
    expected: float | None
    probabilities: dict[str, float] | None
    rationale: str | None
    sentences: tuple[str, ...]
    judge: str
    """`backend/model`."""
    model: str | None
    """The model, as the provider names it."""
    criterion_digest: str
    """SHA-256 of the prompt file."""
    request_digest: str
    """Digest of the last request."""
    form: AnswerForm
    repaired: bool
    """Whether the first reply was unreadable and the judge was asked again."""
    sample: int
    """Number of the repetition, from 0."""
    support: tuple[SentenceSupport, ...] = ()
    """Of a checker: which passages support each sentence."""
    cascade: str | None = None
    """The cascade that the judgment is of, whoever of its two judges made it; None without one."""
    checker_failed: FailureReason | None = None
    """In a cascade, why the checker said nothing, so that the other judge was asked; None where it said something."""
    nuggets: tuple[str, ...] = ()
    """What the prompt of `judge nuggets create` asks for; `judge run` asks for none."""

    @property
    def whole_judge(self) -> str:
        """The judge that the judgment counts for: the cascade, if it is of one."""
        return self.cascade or self.judge

    @property
    def settled(self) -> bool:
        """Whether the checker of a cascade gave it, so that the other judge was not asked."""
        return self.cascade is not None and not self.cascade.endswith(f"+{self.judge}")

    def __repr__(self) -> str:
        grade = "unable" if self.unable else self.grade
        return f"Judgment({bare(self.response_id)} {bare(self.criterion)}={grade} by {bare(self.judge)})"


class Failure(Record, frozen=True, tag="failure", tag_field="kind", omit_defaults=True):
    """A judgment that is missing, and why; never a grade."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    reason: FailureReason
    detail: str
    """The reason in words."""
    raw: str | None
    """The full reply, if there was one."""
    judge: str
    criterion_digest: str
    request_digest: str | None
    sample: int
    cascade: str | None = None
    """The cascade that the judgment would be of; None without one."""
    checker_failed: FailureReason | None = None
    """As in `Judgment`."""

    @property
    def whole_judge(self) -> str:
        """The judge that the judgment would count for: the cascade, if it is of one."""
        return self.cascade or self.judge

    def __repr__(self) -> str:
        return f"Failure({bare(self.response_id)} {bare(self.criterion)}: {self.reason} by {bare(self.judge)})"
