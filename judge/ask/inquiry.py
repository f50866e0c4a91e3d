"""An inquiry of a judge: the request, a second one after an unreadable reply, and what the completion says. Pure."""

from collections.abc import Generator, Mapping
from typing import NamedTuple

from judge.ask.prompt import repair
from judge.ask.records import Unreadable, Verdict
from judge.ask.verdict import parse, parse_group
from judge.models.records import NO_SCORE, Completion, Request
from judge.records import Criterion


class Answer(NamedTuple):
    """The end of an inquiry: the last request, its completion, and what the completion says."""

    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Inquiry = Generator[Request, Completion, Answer]


def inquiry(criterion: Criterion, request: Request) -> Inquiry:
    """Yield a request and receive its completion; after an unreadable reply, do so once more, with a repair.

    Where criteria are asked together, the repair names everything that was unreadable in the reply, so that it is the
    same request for each of them. A verdict that was readable in the first reply stands. There is no repair of a label,
    nor of a checker's reply: a checker reads no messages.
    """
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
