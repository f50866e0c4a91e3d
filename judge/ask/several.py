"""Who judges a run: one model, or the members of a jury; asking them all, and bringing their answers together."""

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


Results = list[Judgment | Failure]
Fetching = Callable[[str, int, int], None]


def open_models(
    names: Sequence[str], options: ModelOptions, criteria: Sequence[Criterion], settings: Settings
) -> tuple[Model, ...]:
    """The models in natural order of name, all of them checked before any is asked.

    Raises:
        UsageError: A model cannot be asked that, or a budget cannot be kept because its price is unknown.
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
    """Ask one model after the other, under one budget; the first is prepared already.

    Raises:
        OperationalError: It stopped early; what was paid for is in the journal.
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
            model.prepare(fetching or (lambda what, done, total: None))
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
    """What `ask` would send to each model."""
    return tuple((model, Loop(model, journal, pool, turns, settings).forecast(wanted)) for model in models)
