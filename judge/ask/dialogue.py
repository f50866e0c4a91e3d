"""One judgment as a dialogue: what is asked, what is asked again, and the record that comes of it. Pure."""

from collections.abc import Generator, Sequence
from typing import NamedTuple

import msgspec

from judge.ask.prompt import repair
from judge.ask.records import Failure, Judgment, Unreadable, Verdict
from judge.ask.verdict import parse
from judge.models.records import Completion, Request
from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, FailureReason


class Task(NamedTuple):
    """One judgment to be made."""

    response: PooledResponse
    criterion: Criterion
    sample: int = 0


class Answer(NamedTuple):
    """Where a dialogue ended: the last request and completion, and what they say."""

    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Dialogue = Generator[Request, Completion, Answer]


def tasks(pool: Pool, criteria: Sequence[Criterion], *, partial: bool = False) -> tuple[Task, ...]:
    """All judgments of a pool, by criterion and then in the pool's order.

    With `partial` evidence will do: a response is judged by those of its used passages that have a text.
    """
    responses = [_with_texts(one, pool) for one in pool.responses] if partial else pool.responses
    return tuple(Task(response, criterion) for criterion in criteria for response in responses)


def _with_texts(response: PooledResponse, pool: Pool) -> PooledResponse:
    """The response without the passages that have no text, or as it is where none has."""
    keys = tuple(key for key in response.passages if key in pool.passages)
    return msgspec.structs.replace(response, passages=keys) if keys else response


def spread(wanted: Sequence[Task], limit: int | None) -> tuple[Task, ...]:
    """At most `limit` tasks a criterion, evenly spaced over the pool so that a trial sees every topic."""
    if limit is None:
        return tuple(wanted)
    groups: dict[str, list[Task]] = {}
    for task in wanted:
        groups.setdefault(task.criterion.digest, []).append(task)
    return tuple(
        group[place * len(group) // size]
        for group in groups.values()
        for size in (min(limit, len(group)),)
        for place in range(size)
    )


def dialogue(criterion: Criterion, request: Request) -> Dialogue:
    """Yield what is to be asked and be sent what came back: the request and, after an unreadable reply, one repair."""
    completion = yield request
    verdict = parse(completion, criterion, request.form, request.sentences)
    if not isinstance(verdict, Unreadable) or verdict.reason != "unreadable" or request.form == "label":
        return Answer(verdict, completion, request, repaired=False)
    mended = repair(request, completion, verdict)
    completion = yield mended
    return Answer(parse(completion, criterion, request.form, request.sentences), completion, mended, repaired=True)


def outcome(task: Task, answer: Answer, judge: str, digest: str) -> Judgment | Failure:
    """The record of an answer, under the digest of its request."""
    verdict, completion = answer.verdict, answer.completion
    if isinstance(verdict, Unreadable):
        return failure(task, judge, verdict.reason, verdict.detail, raw=completion.text, digest=digest)
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
    )


def failure(
    task: Task, judge: str, reason: FailureReason, detail: str, *, raw: str | None = None, digest: str | None = None
) -> Failure:
    """The record of a judgment that is missing."""
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


def evidence_gap(task: Task, pool: Pool) -> str | None:
    """Why a task that needs passages cannot be judged: no judge is asked to imagine them."""
    if "passages" not in task.criterion.inputs:
        return None
    keys = task.response.passages
    if not keys:
        return "the response names no passage"
    missing = lacking_texts(task.response, pool)
    if not missing:
        return None
    return f"{len(missing)} of {len(keys)} used passages have no text: {', '.join(missing[:5])}"
