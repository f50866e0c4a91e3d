"""What becomes of a task: the judgment that its answer holds, or the failure that says why there is none. Pure."""

from collections.abc import Sequence

from judge.ask.inquiry import Answer
from judge.ask.records import Failure, Judgment, SentenceSupport, Unreadable, Verdict
from judge.ask.tasks import Task
from judge.records import FailureReason


def outcome(task: Task, answer: Answer, judge: str, digest: str) -> Judgment | Failure:
    """The judgment or failure that an inquiry ends with; `digest` is that of its last request."""
    verdict, completion = answer.verdict, answer.completion
    if isinstance(verdict, Unreadable):
        return failure(
            task, judge, verdict.reason, verdict.detail, raw=completion.text or completion.raw, digest=digest
        )
    return Judgment(
        response_id=task.response.response_id,
        turn_id=task.response.turn_id,
        topic_id=task.response.topic_id,
        criterion=task.criterion.name,
        variant=task.criterion.variant,
        grade=verdict.grade,
        unable=verdict.unable,
        expected=verdict.expected,
        probabilities=completion.probabilities,
        rationale=verdict.rationale,
        sentences=verdict.sentences,
        judge=judge,
        model=completion.model,
        criterion_digest=task.criterion.digest,
        request_digest=digest,
        form=answer.request.form,
        repaired=answer.repaired,
        sample=task.sample,
        support=_support(verdict, task.response.passages),
        nuggets=verdict.nuggets,
    )


def _support(verdict: Verdict, passages: Sequence[str]) -> tuple[SentenceSupport, ...]:
    """The support of each sentence by keys of passages; empty if a number is none of a passage."""
    if any(number > len(passages) for _, numbers in verdict.support for number in numbers):
        return ()
    return tuple(
        SentenceSupport(tuple(passages[number - 1] for number in numbers), probability)
        for probability, numbers in verdict.support
    )


def failure(
    task: Task, judge: str, reason: FailureReason, detail: str, *, raw: str | None = None, digest: str | None = None
) -> Failure:
    """The record of a missing judgment.

    Args:
        task: The judgment that is missing.
        judge: The name of the judge.
        reason: Why it is missing, as a code.
        detail: Why it is missing, in words.
        raw: The full reply, if there was one.
        digest: The digest of the last request, if one was made.
    """
    return Failure(
        response_id=task.response.response_id,
        turn_id=task.response.turn_id,
        topic_id=task.response.topic_id,
        criterion=task.criterion.name,
        variant=task.criterion.variant,
        reason=reason,
        detail=detail,
        raw=raw,
        judge=judge,
        criterion_digest=task.criterion.digest,
        request_digest=digest,
        sample=task.sample,
    )
