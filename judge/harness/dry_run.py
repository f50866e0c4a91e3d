"""A dry run: every judgment of a plan explained, and what asking would cost; nothing is sent or written."""

from collections.abc import Sequence
from pathlib import Path

from judge.ask.budget import TYPICAL_REPLY, price_of
from judge.ask.forecast import Forecast
from judge.ask.loop import Settings
from judge.ask.several import forecasts
from judge.harness.manifest import JOURNAL
from judge.harness.prepared import Prepared, check_out
from judge.models.journal import Journal
from judge.models.model import Model
from judge.records import Record


class DryRun(Record, frozen=True):
    """What carrying out a plan would send.

    `judgments` is the product of the four counts before it. `calls` is what is left of it when the four counts after it
    are taken away.
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
    calls: int
    """Calls to be made; repairs of unreadable replies come on top."""
    prompt_tokens: int
    """Tokens of these calls' prompts, by our own estimate."""
    unpriced: tuple[str, ...]
    """Models whose price is not known."""
    cost: float | None
    """US dollars if each reply has 150 tokens for each grade; None if a price is not known."""
    most: float | None
    """US dollars if each reply is as long as it may be."""


def dry_run(prepared: Prepared) -> DryRun:
    """Count what carrying out a plan would send to each model beyond what the journals hold.

    Raises:
        InputError: The output folder exists and would be refused.
    """
    if prepared.out.exists():
        check_out(prepared)
    plan, pooled, jury = prepared.plan, prepared.pooled, prepared.jury
    folders = [prepared.out, *([Path(plan.extend)] if plan.extend is not None else ())]
    with Journal(None) as journal:
        for path in dict.fromkeys(folder.resolve() / JOURNAL for folder in folders):
            if path.exists():
                journal.adopt(path)
        asked = forecasts(prepared.models, prepared.asked, journal, pooled.pool, pooled.turns)
    total = Forecast(*map(sum, zip(*(counts for _, counts in asked), strict=True)))
    prompts = sum(map(len, jury.prompts.values())) if jury else len(prepared.criteria)
    samples = jury.samples if jury else 1
    judgments = len(pooled.pool.responses) * prompts * len(prepared.models) * samples
    cost, most, unpriced = cost_of(asked, plan.settings, plan.options.max_tokens)
    return DryRun(
        responses=len(pooled.pool.responses),
        prompts=prompts,
        models=len(prepared.models),
        samples=samples,
        judgments=judgments,
        recalled=total.recalled,
        without_evidence=total.without_evidence,
        shared=total.shared,
        left_out=judgments - total.judgments,
        calls=total.calls,
        prompt_tokens=total.prompt_tokens,
        unpriced=unpriced,
        cost=cost,
        most=most,
    )


def cost_of(
    asked: Sequence[tuple[Model, Forecast]], settings: Settings, longest: int
) -> tuple[float | None, float | None, tuple[str, ...]]:
    """What the calls of forecasts cost in US dollars with typical replies, and at most; the models without a price.

    Args:
        asked: From `forecasts`.
        settings: The prices that the user gave.
        longest: Tokens of the longest reply.
    """
    costs: list[float] = []
    unpriced = []
    for of_grade, of_call in ((TYPICAL_REPLY, 0), (0, longest)):
        cost = 0.0
        for model, counts in asked:
            price = price_of(model, settings.prices)
            if price is None:
                unpriced.append(model.name)
            else:
                replies = counts.answers * of_grade + counts.calls * of_call
                cost += counts.prompt_tokens * price.prompt + replies * price.completion
        costs.append(cost)
    return None if unpriced else costs[0], None if unpriced else costs[1], tuple(dict.fromkeys(unpriced))
