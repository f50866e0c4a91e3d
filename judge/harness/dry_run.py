"""A dry run: every judgment of a plan explained, and what asking would cost; nothing is sent or written."""

from array import array
from collections.abc import Sequence

import msgspec

from judge.ask.budget import price_of
from judge.ask.cascading import OpenCascade, ask_checker, recalled
from judge.ask.forecast import Forecast
from judge.ask.settings import Settings
from judge.ask.several import forecasts
from judge.ask.tasks import PickedTasks, Task
from judge.harness.prepared import Prepared, check_out
from judge.harness.recheck import expected_again
from judge.models.journal import Journal, JournalView
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
    requests: int
    """Requests that these calls take: more than calls for a checker that asks about each pair of texts."""
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
    with JournalView(prepared.journals) as journal:
        checked, left, unchecked = _checked(prepared, journal)
        asked = forecasts(prepared.models, left, journal, pooled.pool, pooled.turns)
        seconds = [
            found
            for model in prepared.models
            for found in forecasts((model,), expected_again(prepared, model, left), journal, pooled.pool, pooled.turns)
        ]
    longest = plan.options.max_tokens
    firsts, again = (model_forecasts(found, plan.settings, longest) for found in (asked, seconds))
    rows = tuple(_together(first, second) for first, second in zip(firsts, again, strict=True))
    prompts = sum(map(len, jury.prompts.values())) if jury else len(prepared.criteria)
    samples = jury.samples if jury else 1
    judgments = len(pooled.pool.responses) * prompts * len(prepared.models) * samples
    settled = len(prepared.asked) - len(left)
    checking = checker_forecasts(prepared.cascade, checked, longest) if prepared.cascade else ()
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
        unchecked=unchecked,
        calls=sum(row.calls for row in firsts),
        rechecked=sum(row.calls for row in again),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        unpriced=tuple(row.model for row in (*checking, *rows) if row.cost is None),
        cost=_total([row.cost for row in (*checking, *rows)]),
        most=_total([row.most for row in (*checking, *rows)]),
        by_model=(*checking, *rows),
    )


def _checked(
    prepared: Prepared, journal: JournalView
) -> tuple[tuple[tuple[Model, Forecast], ...], Sequence[Task], int]:
    """What the checker of a cascade is asked, the tasks that it leaves open, and how many it has yet to be asked about.

    A checker that needs no server is asked here, since that sends nothing.
    """
    opened, wanted, pool = prepared.cascade, prepared.asked, prepared.pooled.pool
    if opened is None:
        return (), wanted, 0
    if opened.local:
        with Journal(None) as memory:
            said, _ = ask_checker(opened, wanted, memory, pool)
    else:
        said = recalled(opened, wanted, journal, pool)
    tasks, numbers = opened.questions(wanted)
    settled = opened.settled(wanted, said, prepared.judge)
    left = PickedTasks(wanted, array("q", (place for place in range(len(wanted)) if place not in settled)))
    asked = forecasts((opened.checker,), tasks, journal, pool, None)
    return asked, left, sum(number >= 0 for number in numbers) - len(said)


def checker_forecasts(
    opened: OpenCascade, asked: Sequence[tuple[Model, Forecast]], longest: int
) -> tuple[ModelForecast, ...]:
    """What the calls of a cascade's checker cost; the other arguments are those of `model_forecasts`."""
    rows = model_forecasts(asked, opened.settings, longest)
    if not opened.local:
        return rows
    # Such a checker reads no prompt and writes no reply.
    return tuple(msgspec.structs.replace(row, prompt_tokens=0, completion_tokens=0) for row in rows)


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
        sums = counts.sums
        replies, longer = sums.reply_tokens(rates), sums.told or counts.calls * longest
        rows.append(
            ModelForecast(
                model=model.name,
                judgments=counts.judgments,
                recalled=counts.recalled,
                without_evidence=counts.without_evidence,
                shared=counts.shared,
                calls=counts.calls,
                requests=sums.requests,
                prompt_tokens=counts.prompt_tokens,
                completion_tokens=replies,
                bytes_per_token=round(rates.bytes_per_token, 3),
                tokens_per_reply=round(sums.told / sums.calls if sums.told else rates.reply, 1),
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
