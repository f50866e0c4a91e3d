"""The judgments to make: of which response, under which prompt, and with which texts. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion


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
