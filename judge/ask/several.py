"""Asks several judges, such as the members of a jury, one after the other and under one budget."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from judge.ask.account import Account
from judge.ask.budget import EVERY_OTHER, given_price, price_of
from judge.ask.forecast import Forecast, forecast
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.settings import Settings
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import Task
from judge.errors import MissingKeyError, UsageError
from judge.models.backends import open_model
from judge.models.forms import supported_forms
from judge.models.journal import Journal, JournalView
from judge.models.model import FREE, Model, ModelOptions
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn
from judge.text.ids import natural_key

MOST_SAMPLES = 1000
"""Most repetitions of one question (`--samples`)."""


Fetching = Callable[[str, int, int], None]


class Assess(Protocol):
    """Asks one judge, as the loop's `assess` does, which describes the arguments."""

    def __call__(
        self,
        wanted: Sequence[Task],
        model: Model,
        journal: Journal,
        pool: Pool,
        *,
        turns: Mapping[str, Turn] | None,
        settings: Settings,
        report: Callable[[Progress], None] | None,
        account: Account | None,
        folder: Path | None,
    ) -> StoredResults:
        """A judgment or a failure for each task."""
        ...


def open_models(
    names: Sequence[str],
    options: ModelOptions,
    criteria: Sequence[Criterion],
    settings: Settings,
    *,
    keys: bool = True,
    beside: Sequence[Model] = (),
) -> tuple[Model, ...]:
    """Open the models, in natural order of their names; all are checked before any is asked.

    The arguments are those of `open_one`, and the models `beside` these, which are open and may have a price.

    Raises:
        UsageError: A model cannot be asked these criteria or is open already, there is a budget and its price is
            unknown, or a price is given for no model.
    """
    models = [open_one(name, options, criteria, settings, keys=keys) for name in names]
    if twice := {model.name for model in beside} & {model.name for model in models}:
        raise UsageError(f"{', '.join(twice)} is the checker of the cascade, so it cannot be asked the rest too")
    check_prices([*names, *(model.name for model in beside)], [*models, *beside], settings)
    return tuple(sorted(models, key=lambda model: natural_key(model.name)))


def open_one(
    name: str, options: ModelOptions, criteria: Sequence[Criterion], settings: Settings, *, keys: bool = True
) -> Model:
    """Open a model, and check that it can be asked.

    Args:
        name: `backend/model`.
        options: How it is called.
        criteria: What it is asked.
        settings: The budget, and the prices that the user gave.
        keys: Refuse a model without its key; a forecast needs none.

    Raises:
        UsageError: The model cannot be asked these criteria, or there is a budget and its price is unknown.
    """
    model = open_model(name, options)
    try:
        model.check(criteria)
    except MissingKeyError:
        if keys:
            raise
    for criterion in criteria:
        if not any(form in supported_forms(criterion) for form in model.forms):
            raise UsageError(
                f"{model.name} answers with one label only, so it cannot be asked {criterion.prompt_id}"
                f"{' (--together)' if criterion.together else ''}"
            )
    if settings.max_cost is not None and price_of(model, settings.known_prices) is None:
        raise UsageError(
            f"the price of {model.name} is not known here, so a budget cannot be kept (--max-cost): --price IN/OUT "
            "gives it, in dollars per million tokens, or a file does (--prices)"
        )
    return model


def check_prices(names: Sequence[str], models: Sequence[Model], settings: Settings) -> None:
    """Refuse a price that is of no model.

    Raises:
        UsageError: There is one.
    """
    for priced in settings.prices.keys() - {EVERY_OTHER}:
        if not any(given_price(model.name, {priced: FREE}) for model in models):
            raise UsageError(f"--price {priced}=…: there is no such model among {', '.join(names)}")


def ask(
    models: Sequence[Model],
    wanted: Sequence[Task],
    journal: Journal,
    pool: Pool,
    *,
    turns: Mapping[str, Turn] | None,
    settings: Settings,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    account: Account | None = None,
    folder: Path | None = None,
    engine: Assess = assess,
) -> StoredResults:
    """Ask one model after the other, under one budget.

    Args:
        models: The judges; the caller has prepared the first one.
        wanted: The judgments to ask each model for.
        journal: Holds every paid completion.
        pool: The pool of the responses.
        turns: The turns by id, for criteria that show the conversation.
        settings: Limits on calls and cost; the budget is for all models together.
        report: Called with the progress over all models, after each judgment and when a rate limit holds calls back.
        fetching: Called while a model is being fetched.
        account: Where calls and completions are entered.
        folder: As for `assess`.
        engine: What asks a model: the loop in this process, or one that spreads the calls.

    Returns:
        Judgments and failures, by model and then in the order of `wanted`.

    Raises:
        OperationalError: The loop stopped early; every paid completion is in the journal.
    """
    results: list[StoredResults] = []
    before = Progress(0, len(wanted) * len(models), 0, 0, 0.0)
    now = before

    def counted(progress: Progress) -> None:
        nonlocal now
        now = Progress(
            before.done + progress.done,
            before.total,
            before.recalled + progress.recalled,
            before.failures + progress.failures,
            before.cost + progress.cost,
            before.estimated + progress.estimated,
            before.servers + progress.servers,
            progress.limited,
        )
        if report is not None:
            report(now)

    for model in models:
        if model is not models[0]:
            model.prepare(fetching or (lambda step, done, total: None))
        left = settings
        if settings.max_cost is not None:
            left = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - before.cost))
        results.append(
            engine(
                *(wanted, model, journal, pool),
                turns=turns,
                settings=left,
                report=counted,
                account=account,
                folder=folder,
            )
        )
        before = now
    return StoredResults.joined(results)


def forecasts(
    models: Sequence[Model],
    wanted: Sequence[Task],
    journal: Journal | JournalView,
    pool: Pool,
    turns: Mapping[str, Turn] | None,
) -> tuple[tuple[Model, Forecast], ...]:
    """What the loop would do with each model; nothing is sent."""
    return tuple((model, forecast(Questions(model, journal, pool, turns), wanted)) for model in models)
