"""What a judge has said, or why it has said nothing. Pure."""

from typing import Literal

from judge.models.records import AnswerForm
from judge.records import FailureReason, Record, bare


class Verdict(Record, frozen=True):
    """What one completion says."""

    grade: int
    rationale: str | None
    sentences: tuple[str, ...] = ()
    expected: float | None = None
    """Mean of the grades under the label probabilities."""
    unable: bool = False


class Unreadable(Record, frozen=True):
    """A completion that says no grade, and why not."""

    reason: Literal["unreadable", "refused", "truncated", "content_filter"]
    detail: str


class Judgment(Record, frozen=True, tag="judgment", tag_field="kind"):
    """One grade by one judge for one pooled response."""

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
    criterion_digest: str
    request_digest: str
    form: AnswerForm
    repaired: bool
    sample: int

    def __repr__(self) -> str:
        grade = "unable" if self.unable else self.grade
        return f"Judgment({bare(self.response_id)} {bare(self.criterion)}={grade} by {bare(self.judge)})"


class Failure(Record, frozen=True, tag="failure", tag_field="kind"):
    """A judgment that is missing, and why; never a grade."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    reason: FailureReason
    detail: str
    raw: str | None
    """The full raw reply where there was one."""
    judge: str
    criterion_digest: str
    request_digest: str | None
    sample: int

    def __repr__(self) -> str:
        return f"Failure({bare(self.response_id)} {bare(self.criterion)}: {self.reason} by {bare(self.judge)})"
