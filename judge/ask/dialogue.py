"""One judgment as a dialogue: the request, a second request if needed, and the resulting record. Pure."""

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judge.ask.group_verdict import parse_group
from judge.ask.nugget_verdict import parse_nuggets
from judge.ask.prompt import repair
from judge.ask.records import Failure, Judgment, SentenceSupport, Unreadable, Verdict
from judge.ask.verdict import parse
from judge.models.records import Completion, Request
from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, FailureReason


class Task(NamedTuple):
    """One judgment to make."""

    response: PooledResponse
    criterion: Criterion
    sample: int = 0
    nugget: str | None = None
    """The text of the nugget to match the response with, for criteria that show one."""
    nuggets: tuple[str, ...] = ()
    """The texts of all nuggets of the turn and topic, for criteria that show them."""
    known: tuple[str, ...] = ()
    """The texts of the nuggets that are known already, for criteria that show them."""
    candidates: tuple[str, ...] = ()
    """The texts to label in place of the response's sentences, for criteria that show them."""


class Answer(NamedTuple):
    """The end of a dialogue: the last request, its completion, and what the completion says."""

    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Dialogue = Generator[Request, Completion, Answer]


def tasks(pool: Pool, criteria: Sequence[Criterion], *, partial: bool = False) -> tuple[Task, ...]:
    """All judgments to make of a pool, by criterion and then in the order of the pool.

    Args:
        pool: The responses to judge.
        criteria: The prompts to judge them under.
        partial: Judge a response by those of its used passages that have a text, even if others have none.
    """
    responses = [_with_texts(response, pool) for response in pool.responses] if partial else pool.responses
    return tuple(Task(response, criterion) for criterion in criteria for response in responses)


def _with_texts(response: PooledResponse, pool: Pool) -> PooledResponse:
    """The response without the passages that have no text; unchanged if no passage has a text."""
    keys = tuple(key for key in response.passages if key in pool.passages)
    return msgspec.structs.replace(response, passages=keys) if keys else response


def spread(wanted: Sequence[Task], limit: int | None) -> tuple[Task, ...]:
    """At most `limit` tasks for each prompt, evenly spaced over the pool, so that a trial covers all topics."""
    if limit is None:
        return tuple(wanted)
    groups: dict[str, list[Task]] = {}
    for task in wanted:
        groups.setdefault(task.criterion.digest, []).append(task)
    return tuple(
        group[index * len(group) // size]
        for group in groups.values()
        for size in (min(limit, len(group)),)
        for index in range(size)
    )


def dialogue(criterion: Criterion, request: Request) -> Dialogue:
    """Yield a request and receive its completion; after an unreadable reply, do so once more, with a repair.

    Where criteria are asked together, the repair names everything that was unreadable in the reply, so that it is the
    same request for each of them. A verdict that was readable in the first reply stands.
    """
    completion = yield request
    verdicts = _verdicts(completion, criterion, request)
    verdict = verdicts[criterion.name]
    if not isinstance(verdict, Unreadable) or verdict.reason != "unreadable" or request.form == "label":
        return Answer(verdict, completion, request, repaired=False)
    again = repair(request, completion, _complaint(verdicts))
    completion = yield again
    return Answer(_verdicts(completion, criterion, request)[criterion.name], completion, again, repaired=True)


def _verdicts(completion: Completion, criterion: Criterion, request: Request) -> dict[str, Verdict | Unreadable]:
    """What a completion says of each criterion that was asked, by name."""
    if request.lists_nuggets:
        return {criterion.name: parse_nuggets(completion, criterion.scale, request.form)}
    if not request.together:
        return {criterion.name: parse(completion, criterion, request.form, request.sentences)}
    asked = {part.name for part in request.together}
    return parse_group(completion, [part for part in criterion.together if part.name in asked], request.form)


def _complaint(verdicts: Mapping[str, Verdict | Unreadable]) -> Unreadable:
    """Everything that was unreadable in a reply; what is wrong with the whole reply is said once."""
    unreadable = {name: verdict for name, verdict in verdicts.items() if isinstance(verdict, Unreadable)}
    details = list(dict.fromkeys(verdict.detail for verdict in unreadable.values()))
    if len(details) > 1 or len(unreadable) < len(verdicts):
        details = [f"{name}: {verdict.detail}" for name, verdict in unreadable.items()]
    return Unreadable("unreadable", "; ".join(details))


def outcome(task: Task, answer: Answer, judge: str, digest: str) -> Judgment | Failure:
    """The judgment or failure that a dialogue ends with; `digest` is that of its last request."""
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


def evidence_gap(task: Task, pool: Pool) -> str | None:
    """Why a task lacks the passages that its criterion needs, or None; no judge is asked to imagine passages."""
    if "passages" not in task.criterion.inputs:
        return None
    keys = task.response.passages
    if not keys:
        return "the response names no passage"
    missing = lacking_texts(task.response, pool)
    if not missing:
        return None
    return f"{len(missing)} of {len(keys)} used passages have no text: {', '.join(missing[:5])}"
