"""What asking for several criteria in one call saves, counted from the journal of a calibration."""

import math
from collections.abc import Callable, Iterable, Sequence

from judge.ask.estimates import BYTES_PER_TOKEN, estimated_tokens
from judge.ask.questions import Questions
from judge.ask.tasks import Task
from judge.calibrate.findings import GroupCost
from judge.models.records import Completion, Request
from judge.records import Criterion


def group_costs(
    judge: str,
    questions: Questions,
    prompts: Sequence[Criterion],
    tasks: Callable[[Sequence[Criterion]], tuple[Task, ...]],
) -> tuple[GroupCost, ...]:
    """A row for each group whose criteria were all asked together and alone.

    Args:
        judge: The name of the judge.
        questions: What it was asked; the journal holds the answers.
        prompts: All prompts that it was asked.
        tasks: The tasks of some of them.
    """
    asked = {prompt.digest: prompt for prompt in prompts}
    groups: dict[tuple[str, ...], list[Criterion]] = {}
    for prompt in prompts:
        if prompt.together:
            groups.setdefault(tuple(part.digest for part in prompt.together), []).append(prompt)
    return tuple(
        _cost(judge, questions, tasks([asked[digest] for digest in digests]), tasks(group))
        for digests, group in groups.items()
        if len(group) == len(digests) and all(digest in asked for digest in digests)
    )


def _cost(judge: str, questions: Questions, alone: Sequence[Task], together: Sequence[Task]) -> GroupCost:
    of_alone, of_together = calls_of(questions, alone), calls_of(questions, together)
    return GroupCost(
        judge=judge,
        prompts=tuple(dict.fromkeys(task.criterion.prompt_id for task in alone)),
        calls_alone=len(of_alone),
        calls_together=len(of_together),
        prompt_tokens_alone=sum(map(prompt_tokens_of, of_alone)),
        prompt_tokens_together=sum(map(prompt_tokens_of, of_together)),
        reply_tokens_alone=sum(map(reply_tokens_of, of_alone)),
        reply_tokens_together=sum(map(reply_tokens_of, of_together)),
    )


def calls_of(questions: Questions, tasks: Iterable[Task]) -> list[tuple[Request, Completion]]:
    """Every call behind the outcomes of the tasks, once."""
    calls: dict[str, tuple[Request, Completion]] = {}
    for task in questions.ahead(tasks):
        calls |= questions.calls(task)
    return list(calls.values())


def prompt_tokens_of(call: tuple[Request, Completion]) -> int:
    """The tokens of a call's prompt, estimated where the provider did not count them."""
    request, completion = call
    return completion.prompt_tokens or estimated_tokens(request)


def reply_tokens_of(call: tuple[Request, Completion]) -> int:
    """The tokens of a call's reply, likewise."""
    _, completion = call
    return completion.completion_tokens or math.ceil(len(completion.text.encode()) / BYTES_PER_TOKEN)
