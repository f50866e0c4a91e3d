"""A dry run: every judgment of a plan explained, and what asking would cost; nothing is sent or written."""

from collections.abc import Sequence

import msgspec

from judge.ask.budget import price_of
from judge.ask.estimates import reply_tokens
from judge.ask.forecast import Forecast
from judge.ask.loop import Settings
from judge.ask.several import forecasts
from judge.harness.prepared import Prepared, check_out
from judge.harness.recheck import expected_again
from judge.models.journal_view import JournalView
from judge.models.model import Model
from judge.records import Record


class ModelForecast(Record, frozen=True):
    """What would be sent to one model; `calls` is `judgments` less the three counts between them."""

    model: str
    judgments: int
    recalled: int
    """Judgments that the journal answers already."""
    without_evidence: int
    """Judgments that the model is not asked for, because a passage that the criterion needs has no text."""
    shared: int
    """Judgments that the call for another judgment answers too, because the requests are equal."""
    calls: int
    """Calls to be made, those of a recheck included; repairs of unreadable replies come on top."""
    prompt_tokens: int
    """Tokens of these calls' prompts, estimated."""
    completion_tokens: int
    """Tokens of their replies, estimated."""
    bytes_per_token: float
    """Of a prompt in UTF-8, in the estimate."""
    tokens_per_reply: float
    """In the estimate."""
    counted_calls: int
    """Calls of the journal that the two numbers before were counted in; 0 where they are our own guess."""
    price: dict[str, float] | None
    """US dollars per million tokens; None if the price is not known."""
    cost: float | None
    """US dollars if each reply has as many tokens as estimated and no prompt is in a cache; None without a price."""
    most: float | None
    """US dollars if each reply is as long as it may be."""


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
    """The same for each model."""


def dry_run(prepared: Prepared) -> DryRun:
    """Count what carrying out a plan would send to each model beyond what the journals hold.

    Raises:
        InputError: The output folder exists and would be refused.
    """
    if prepared.out.exists():
        check_out(prepared)
    plan, pooled, jury = prepared.plan, prepared.pooled, prepared.jury
    with JournalView(prepared.journals) as journal:
        asked = forecasts(prepared.models, prepared.asked, journal, pooled.pool, pooled.turns)
        seconds = [
            found
            for model in prepared.models
            for found in forecasts((model,), expected_again(prepared, model), journal, pooled.pool, pooled.turns)
        ]
    longest = plan.options.max_tokens
    firsts, again = (model_forecasts(found, plan.settings, longest) for found in (asked, seconds))
    rows = tuple(_together(first, second) for first, second in zip(firsts, again, strict=True))
    prompts = sum(map(len, jury.prompts.values())) if jury else len(prepared.criteria)
    samples = jury.samples if jury else 1
    judgments = len(pooled.pool.responses) * prompts * len(prepared.models) * samples
    return DryRun(
        responses=len(pooled.pool.responses),
        prompts=prompts,
        models=len(prepared.models),
        samples=samples,
        judgments=judgments,
        recalled=sum(row.recalled for row in firsts),
        without_evidence=sum(row.without_evidence for row in firsts),
        shared=sum(row.shared for row in firsts),
        left_out=judgments - sum(row.judgments for row in firsts),
        calls=sum(row.calls for row in firsts),
        rechecked=sum(row.calls for row in again),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        unpriced=tuple(row.model for row in rows if row.cost is None),
        cost=_total([row.cost for row in rows]),
        most=_total([row.most for row in rows]),
        by_model=rows,
    )


def _together(first: ModelForecast, again: ModelForecast) -> ModelForecast:
    """What a model is asked, with the calls of its recheck."""
    return msgspec.structs.replace(
        first,
        calls=first.calls + again.calls,
        prompt_tokens=first.prompt_tokens + again.prompt_tokens,
        completion_tokens=first.completion_tokens + again.completion_tokens,
        cost=_total([first.cost, again.cost]),
        most=_total([first.most, again.most]),
    )


def model_forecasts(
    asked: Sequence[tuple[Model, Forecast]], settings: Settings, longest: int
) -> tuple[ModelForecast, ...]:
    """What the calls of forecasts cost.

    Args:
        asked: From `forecasts`.
        settings: The prices that the user gave.
        longest: Tokens of the longest reply.
    """
    rows = []
    for model, counts in asked:
        price, rates = price_of(model, settings.known_prices), counts.rates
        replies, longer = reply_tokens(rates, counts.calls, counts.answers), counts.calls * longest
        rows.append(
            ModelForecast(
                model=model.name,
                judgments=counts.judgments,
                recalled=counts.recalled,
                without_evidence=counts.without_evidence,
                shared=counts.shared,
                calls=counts.calls,
                prompt_tokens=counts.prompt_tokens,
                completion_tokens=replies,
                bytes_per_token=round(rates.bytes_per_token, 3),
                tokens_per_reply=round(rates.reply, 1),
                counted_calls=rates.calls,
                price=None if price is None else price.per_million(),
                cost=None if price is None else price.cost(counts.prompt_tokens, 0, replies),
                most=None if price is None else price.cost(counts.prompt_tokens, 0, max(replies, longer)),
            )
        )
    return tuple(rows)


def _total(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
