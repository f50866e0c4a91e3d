"""Asks several judges, such as the members of a jury, one after the other and under one budget."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from judge.ask.loop import Forecast, Loop, Progress, Settings, Task, assess
from judge.ask.records import Failure, Judgment
from judge.errors import UsageError
from judge.models.backends import open_model
from judge.models.journal import Journal
from judge.models.model import Model, ModelOptions
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn
from judge.text.ids import natural_key

MOST_SAMPLES = 1000
"""Most repetitions of one question (`--samples`)."""


Results = list[Judgment | Failure]
Fetching = Callable[[str, int, int], None]


def open_models(
    names: Sequence[str], options: ModelOptions, criteria: Sequence[Criterion], settings: Settings
) -> tuple[Model, ...]:
    """Open the models, in natural order of their names; all are checked before any is asked.

    Raises:
        UsageError: A model cannot be asked these criteria, or there is a budget and its price is unknown.
    """
    models = []
    for name in names:
        model = open_model(name, options)
        model.check(criteria)
        if settings.max_cost is not None and model.price() is None:
            raise UsageError(f"the price of {model.name} is not known here, so a budget cannot be kept (--max-cost)")
        models.append(model)
    return tuple(sorted(models, key=lambda model: natural_key(model.name)))


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
) -> Results:
    """Ask one model after the other, under one budget.

    Args:
        models: The judges; the caller has prepared the first one.
        wanted: The judgments to ask each model for.
        journal: Holds every paid completion.
        pool: The pool of the responses.
        turns: The turns by id, for criteria that show the conversation.
        settings: Limits on calls and cost; the budget is for all models together.
        report: Called after each judgment, with the progress over all models.
        fetching: Called while a model is being fetched.

    Returns:
        Judgments and failures, by model and then in the order of `wanted`.

    Raises:
        OperationalError: The loop stopped early; every paid completion is in the journal.
    """
    results: Results = []
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
        )
        if report is not None:
            report(now)

    for model in models:
        if model is not models[0]:
            model.prepare(fetching or (lambda step, done, total: None))
        left = settings
        if settings.max_cost is not None:
            left = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - before.cost))
        results += assess(wanted, model, journal, pool, turns=turns, settings=left, report=counted)
        before = now
    return results


def forecasts(
    models: Sequence[Model],
    wanted: Sequence[Task],
    journal: Journal,
    pool: Pool,
    turns: Mapping[str, Turn] | None,
    settings: Settings,
) -> tuple[tuple[Model, Forecast], ...]:
    """What the loop would do with each model; nothing is sent."""
    return tuple((model, Loop(model, journal, pool, turns, settings).forecast(wanted)) for model in models)
