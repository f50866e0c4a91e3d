"""An inquiry of a judge: the request, a second one after an unreadable reply, and what becomes of the task. Pure."""

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judge.ask.prompt import repair
from judge.ask.records import Failure, Judgment, SentenceSupport, Task, Unreadable, Verdict
from judge.ask.verdict import CUT_OFF, parse, parse_group
from judge.judges.records import NO_SCORE, STOPPED, AnswerForm, Completion, Request, provider_name
from judge.records import Criterion, FailureReason


class Answer(NamedTuple):
    """The end of an inquiry: the last request, its completion, and what the completion says."""

    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Inquiry = Generator[Request, Completion, Answer]


def inquiry(criterion: Criterion, request: Request, parts: Sequence[Request] | None = None) -> Inquiry:
    """Yield a request and receive its completion; after an unreadable reply, do so once more, with a repair.

    Its parts, where it has some, come before it, up to the first reply without an answer.

    Where criteria are asked together, the repair names everything that was unreadable in the reply, so that it is the
    same request for each of them. A verdict that was readable in the first reply stands. There is no repair of a label,
    nor of a checker's reply: a checker reads no messages.
    """
    if parts is not None:
        replies: list[Completion] = []
        for part in parts:
            replies.append((yield part))
            if replies[-1].finish_reason in STOPPED:
                break
        request = msgspec.structs.replace(request, replies=tuple(replies))
    completion = yield request
    verdicts = _verdicts(completion, criterion, request)
    verdict = verdicts[criterion.name]
    final = request.form == "label" or completion.finish_reason == NO_SCORE
    if final or not isinstance(verdict, Unreadable) or verdict.reason != "unreadable":
        return Answer(verdict, completion, request, repaired=False)
    again = repair(request, completion, _complaint(verdicts))
    completion = yield again
    return Answer(_verdicts(completion, criterion, request)[criterion.name], completion, again, repaired=True)


def _verdicts(completion: Completion, criterion: Criterion, request: Request) -> dict[str, Verdict | Unreadable]:
    """What a completion says of each criterion that was asked, by name."""
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


def is_filler(completion: Completion, form: AnswerForm) -> bool:
    """Whether a reply to a JSON schema was cut off in white space that makes up most of it.

    Constrained decoding lets a weak model write white space for ever, wherever JSON allows it. Nothing in such a reply
    is a verdict, and the same model may well give one in the text form.

    >>> is_filler(Completion(text='{"rationale":' + " " * 50, finish_reason="length", model=None), "json")
    True
    """
    text = completion.text
    return form == "json" and completion.finish_reason in CUT_OFF and 2 * len(text.rstrip()) < len(text)


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
        model=provider_name(completion.model),
        criterion_digest=task.criterion.digest,
        request_digest=digest,
        form=answer.request.form,
        repaired=answer.repaired,
        sample=task.sample,
        support=_support(verdict, task.response.passages) if verdict.support else (),
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
    """The record of a missing judgment, with the full reply and the digest of the last request where there was one."""
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
