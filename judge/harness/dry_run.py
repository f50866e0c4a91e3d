"""A dry run: every judgment of a plan explained, and what asking would cost; nothing is sent or written."""

from collections.abc import Sequence

import msgspec

from judge.ask.asking import Asking, Judge, ModelForecast
from judge.harness.prepared import Prepared, check_out
from judge.harness.recheck import expected_again
from judge.records import Record


class DryRun(Record, frozen=True):
    """What carrying out a plan would send.

    `judgments` is the product of the four counts before it. `calls` is what is left of it when the four counts after it
    and `settled` are taken away; the calls to the checker of a cascade are in `by_model` alone.
    """

    responses: int
    """Pooled responses."""
    prompts: int
    models: int
    samples: int
    """How often each model is asked each question."""
    judgments: int
    recalled: int
    """Judgments that the journal answers already."""
    without_evidence: int
    """Judgments that no model is asked for, because a passage that the criterion needs has no text."""
    shared: int
    """Judgments that the call for another judgment answers too, because the requests are equal."""
    left_out: int
    """Judgments left out of a trial (`--limit`)."""
    settled: int
    """Judgments that the checker of a cascade settles, so that no model is asked for them."""
    unchecked: int
    """Judgments that the checker has yet to be asked about; they are counted as if it settled none of them."""
    calls: int
    """Calls to be made; repairs of unreadable replies come on top."""
    rechecked: int
    """Calls of the recheck, which come on top."""
    prompt_tokens: int
    """Tokens of all these calls' prompts, as each model's estimate has it."""
    unpriced: tuple[str, ...]
    """Models whose price is not known."""
    cost: float | None
    """US dollars if each reply has as many tokens as estimated; None if a price is not known."""
    most: float | None
    """US dollars if each reply is as long as it may be."""
    by_model: tuple[ModelForecast, ...]
    """The same for each model; the checker of a cascade comes first."""


def dry_run(prepared: Prepared) -> DryRun:
    """Count what carrying out a plan would send to each model beyond what the journals hold.

    Raises:
        InputError: The output folder exists and would be refused.
    """
    if prepared.out.exists():
        check_out(prepared)
    plan, pooled, jury = prepared.plan, prepared.pooled, prepared.jury
    with Asking(prepared.place, pooled.pool, pooled.turns, dry=True) as asking:
        found = asking.forecast(prepared.judge, prepared.asked)
        again = [
            row
            for model in prepared.models
            for row in asking.forecast(
                Judge((model,), plan.options, plan.settings), expected_again(prepared, model, found.left)
            ).rows
        ]
    firsts, rows = found.rows, tuple(map(_together, found.rows, again))
    prompts = sum(map(len, jury.prompts.values())) if jury else len(prepared.criteria)
    samples = jury.samples if jury else 1
    judgments = len(pooled.pool.responses) * prompts * len(prepared.models) * samples
    settled = len(prepared.asked) - len(found.left)
    by_model = (*found.checking, *rows)
    return DryRun(
        responses=len(pooled.pool.responses),
        prompts=prompts,
        models=len(prepared.models),
        samples=samples,
        judgments=judgments,
        recalled=sum(row.recalled for row in firsts),
        without_evidence=sum(row.without_evidence for row in firsts),
        shared=sum(row.shared for row in firsts),
        left_out=judgments - settled - sum(row.judgments for row in firsts),
        settled=settled,
        unchecked=found.unchecked,
        calls=sum(row.calls for row in firsts),
        rechecked=sum(row.calls for row in again),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        unpriced=tuple(row.model for row in by_model if row.cost is None),
        cost=_total([row.cost for row in by_model]),
        most=_total([row.most for row in by_model]),
        by_model=by_model,
    )


def _together(first: ModelForecast, again: ModelForecast) -> ModelForecast:
    """What a model is asked, with the calls of its recheck."""
    return msgspec.structs.replace(
        first,
        calls=first.calls + again.calls,
        requests=first.requests + again.requests,
        prompt_tokens=first.prompt_tokens + again.prompt_tokens,
        completion_tokens=first.completion_tokens + again.completion_tokens,
        cost=_total([first.cost, again.cost]),
        most=_total([first.most, again.most]),
    )


def _total(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
