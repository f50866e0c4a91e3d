"""What the first questions say of a judge: which they are, and whether there is any use in asking the others. Pure."""

import itertools
import re
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from judge.ask.endpoint import Endpoint
from judge.ask.records import Failure, Task
from judge.errors import OperationalError
from judge.records import AnswerKind, Criterion, FailureReason

FIRSTS = 3
"""Failures alike, and single failures under a form, after which nothing else is expected."""
MOST_ALONE = 20
"""Questions of a kind that are asked one after the other at most."""
_ABOUT_THE_TEXT: tuple[FailureReason, ...] = ("content_filter", "refused", "context_length", "budget")
"""Failures that say nothing of the judge."""
_ADVICE: dict[FailureReason, str] = {
    "provider_error": "--omit leaves parameters out, and --form names the answer form",
    "prompt_cut": "the same command asks again",
}
"""What to do about failures that no journal holds."""


class Firsts(NamedTuple):
    """The first questions of one kind."""

    criterion: Criterion
    numbers: list[int]
    """The numbers of their tasks."""


def first_questions(wanted: Sequence[Task], endpoint: Endpoint) -> list[Firsts]:
    """The first questions of each kind whose way of asking is not settled, or of which no answer could be read.

    They are the first, the last and the middle one, whether the journal holds them or not: neighbors may share a text
    that no judge can read, and a run that was stopped goes on with the same ones.
    """
    criteria: dict[AnswerKind, Criterion] = {}
    numbers: dict[AnswerKind, array[int]] = {}
    settled: dict[str, bool] = {}
    for number, task in enumerate(wanted):
        criterion = task.criterion
        if criterion.digest not in settled:
            settled[criterion.digest] = endpoint.is_settled(criterion) and endpoint.has_judged(criterion)
        if not settled[criterion.digest]:
            criteria.setdefault(criterion.answer, criterion)
            numbers.setdefault(criterion.answer, array("q")).append(number)
    return [Firsts(criteria[answer], _far_apart(of_kind, wanted)) for answer, of_kind in numbers.items()]


def _far_apart(numbers: Sequence[int], wanted: Sequence[Task]) -> list[int]:
    """The first and the last number, and one from the middle on, of tasks about different responses where there are."""
    ends = list(dict.fromkeys((numbers[0], numbers[-1])))
    responses = {wanted[number].response.response_id for number in ends}
    middle = itertools.islice(numbers, len(numbers) // 2, None)
    others = (number for number in middle if wanted[number].response.response_id not in responses)
    return [*ends, *itertools.islice(others, 1)]


class Useless(NamedTuple):
    """That there is no use in asking a judge anything else."""

    error: OperationalError
    is_recorded: bool
    """Whether the journal holds what came back, so that a later run does not ask it again."""


def failed_alike(judge: str, failures: Sequence[Failure]) -> Useless | None:
    """Why there is no use in asking a judge anything else, if its first answers failed alike; None if they did not.

    They did if they are about different responses and say the same, up to the numbers in it.
    """
    told = [failure for failure in failures if failure.reason not in _ABOUT_THE_TEXT]
    responses = {failure.response_id for failure in told}
    words = {re.sub(r"[0-9]+", "0", failure.detail) for failure in told}
    if len(responses) < FIRSTS or len(words) > 1:
        return None
    reason = told[0].reason
    advice = _ADVICE.get(reason, "the same command, given again, asks the rest all the same")
    error = OperationalError(
        f"{judge}: the first {FIRSTS} questions failed alike, so nothing else was asked: {told[0].detail}; {advice}"
    )
    return Useless(error, is_recorded=reason not in _ADVICE)
