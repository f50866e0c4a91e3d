"""What the judges of a calibration cost: calls, tokens and money, alone and asked together."""

import math
from collections.abc import Callable, Iterable, Sequence

from judge.ask.estimates import BYTES_PER_TOKEN, estimated_tokens
from judge.ask.questions import Questions
from judge.ask.tasks import Task
from judge.calibrate.findings import GroupCost
from judge.judges.records import Completion, Request
from judge.records import Criterion

PaidCall = tuple[Request, Completion]


def group_costs(
    judge: str,
    questions: Questions,
    prompts: Sequence[Criterion],
    tasks: Callable[[Sequence[Criterion]], tuple[Task, ...]],
) -> tuple[GroupCost, ...]:
    """A row for each group whose criteria were all asked together and alone."""
    asked = {prompt.digest: prompt for prompt in prompts}
    groups: dict[tuple[str, ...], list[Criterion]] = {}
    for prompt in prompts:
        if prompt.together:
            groups.setdefault(tuple(part.digest for part in prompt.together), []).append(prompt)
    rows: list[GroupCost] = []
    for digests, group in groups.items():
        if len(group) < len(digests) or not set(digests) <= asked.keys():
            continue
        parts = [asked[digest] for digest in digests]
        tasks_alone = tasks(parts)
        alone, together = calls_of(questions, tasks_alone), calls_of(questions, tasks(group))
        rows.append(
            GroupCost(
                judge=judge,
                prompts=tuple(dict.fromkeys(task.criterion.prompt_id for task in tasks_alone)),
                calls_alone=len(alone),
                calls_together=len(together),
                prompt_tokens_alone=sum(map(prompt_tokens_of, alone)),
                prompt_tokens_together=sum(map(prompt_tokens_of, together)),
                reply_tokens_alone=sum(map(reply_tokens_of, alone)),
                reply_tokens_together=sum(map(reply_tokens_of, together)),
            )
        )
    return tuple(rows)


def calls_of(questions: Questions, tasks: Iterable[Task]) -> list[PaidCall]:
    """Every call behind the outcomes of the tasks, once."""
    calls: dict[str, PaidCall] = {}
    for task in questions.ahead(tasks):
        calls |= questions.calls(task)
    return list(calls.values())


def prompt_tokens_of(call: PaidCall) -> int:
    """The tokens of a call's prompt, estimated where the provider did not count them."""
    request, completion = call
    return completion.prompt_tokens or estimated_tokens(request)


def reply_tokens_of(call: PaidCall) -> int:
    """The tokens of a call's reply, likewise."""
    _, completion = call
    return completion.completion_tokens or math.ceil(len(completion.text.encode()) / BYTES_PER_TOKEN)
