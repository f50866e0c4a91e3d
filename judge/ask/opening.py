"""Opens judges, and refuses what cannot be asked before anything is sent."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.account import EVERY_OTHER, Settings, given_price, price_of
from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.prompt import needs_turn
from judge.ask.records import JOURNAL, Task
from judge.ask.results import StoredResults
from judge.errors import MissingKeyError, UsageError
from judge.io.files import StrPath
from judge.io.ids import natural_key
from judge.io.text import count, shown
from judge.judges import backends
from judge.judges.backends import backend_facts, open_model, options_beside
from judge.judges.credentials import scrub, without_credentials
from judge.judges.forms import supported_forms
from judge.judges.model import FREE, Model, ModelOptions, recorded_options
from judge.plugins import is_there
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn

OVERLAP = "baseline/overlap"
"""The judge that costs nothing, with which others are compared."""
CHECKED = ("groundedness", "support")
"""The criteria that checkers grade, by their prompts for sentences."""
DEFAULT_MODEL = "local/qwen2.5-1.5b"
MOST_SAMPLES = 1000
"""Most repetitions of one question (`--samples`)."""


def groundedness_judge() -> str:
    """The judge of groundedness that needs nothing and does best; it shows which passages support a sentence."""
    return "checker/overlap" if is_there("checkers") else OVERLAP


def default_models() -> tuple[str, ...]:
    """The judges when none is named: that of JUDGE_MODEL, else one of groundedness and a model for the rest."""
    model = os.environ.get("JUDGE_MODEL")
    return (model,) if model else (groundedness_judge(), DEFAULT_MODEL)


def grades_support(name: str | Model) -> bool:
    """Whether a judge takes only what checkers grade, so that another may judge the rest."""
    facts = backend_facts(str(name))
    return facts.checker or facts.baseline


def judge_of_each(names: Sequence[str | Model], criteria: Sequence[Criterion]) -> dict[str, str | Model]:
    """Criterion to the one of two judges that judges it: what checkers grade to the one that takes nothing else.

    The default judge of groundedness is spared a prompt that it cannot be asked.
    """
    first, rest = sorted(names, key=grades_support, reverse=True)
    judges = {criterion.name: rest for criterion in criteria}
    for criterion in criteria:
        if criterion.name in CHECKED and (first != groundedness_judge() or takes(str(first), criterion)):
            judges[criterion.name] = first
    return judges


def open_judge(
    names: Sequence[str | Model],
    options: ModelOptions,
    criteria: Sequence[Criterion],
    settings: Settings,
    *,
    keys: bool = True,
    parts: Mapping[str, str | Model] | None = None,
) -> Judge:
    """Open models, in natural order of their names; all are checked before any is asked.

    The arguments are those of `open_one`, and which of the models judges each criterion (`parts`), if not each judges
    all. A UsageError if a model cannot be asked these criteria, there is a budget and its price is unknown, or a price
    is given for no model.
    """
    options_of_each = [options_beside(name, options) if parts else options for name in names]
    if options.base_url is not None and all(own.base_url is None for own in options_of_each):
        raise UsageError("--base-url is for judges that run elsewhere; --model names one")
    if options.reasoning_effort is not None and all(own.reasoning_effort is None for own in options_of_each):
        raise UsageError("--reasoning-effort is for chat models at a provider or server; --model names one")
    models = []
    for name, own in zip(names, options_of_each, strict=True):
        asked = [criterion for criterion in criteria if not parts or parts[criterion.name] == name]
        models.append(open_one(name, own, asked, settings, keys=keys))
    check_prices([*map(str, names)], models, settings)
    titles = {str(name): model.name for name, model in zip(names, models, strict=True)}
    judges = {criterion: titles[str(name)] for criterion, name in (parts or {}).items()}
    models.sort(key=lambda model: natural_key(model.name))
    return Judge(models, options, settings, parts=judges)


def open_one(
    name: str | Model, options: ModelOptions, criteria: Sequence[Criterion], settings: Settings, *, keys: bool = True
) -> Model:
    """Open a model, `backend/model` or a judge of one's own, and check that it can be asked.

    `keys`: refuse a model without its key; a forecast needs none. A UsageError if the model cannot be asked these
    criteria, or there is a budget and its price is unknown.
    """
    model = open_model(name, options)
    try:
        model.check(criteria)
    except MissingKeyError:
        if keys:
            raise
    if options.reasoning_effort is not None and "reasoning_effort" not in model.required:
        raise UsageError(
            f"--reasoning-effort is for chat models at a provider or server; {model.name} takes no such parameter"
        )
    if options.form is not None:
        if options.form not in model.forms:
            raise UsageError(f"{model.name} cannot be asked in the form {options.form}, but {' or '.join(model.forms)}")
        model.forms = (options.form,)
    for criterion in criteria:
        if not any(form in supported_forms(criterion) for form in model.forms):
            why = "decides between labels" if "decision" in model.forms else "answers with one label only"
            raise UsageError(f"{model.name} {why}, so it cannot be asked {criterion.prompt_id}")
    if settings.max_cost is not None and price_of(model, settings.known_prices) is None:
        raise UsageError(
            f"the price of {model.name} is not known here, so a budget cannot be kept (--max-cost): --price IN/OUT "
            "gives it, in dollars per million tokens, or a file does (--prices)"
        )
    return model


def recalls(out: Path) -> bool:
    """Whether a folder has a journal already, whose completions are recalled without a key."""
    return (out / JOURNAL).exists()


def check_prices(names: Sequence[str], models: Sequence[Model], settings: Settings) -> None:
    """Refuse a price that is of no model, as a UsageError."""
    for priced in settings.prices.keys() - {EVERY_OTHER}:
        if not any(given_price(model.name, {priced: FREE}) for model in models):
            raise UsageError(f"--price {priced}=…: there is no such model among {', '.join(names)}")


def takes(name: str | Model, criterion: Criterion, options: ModelOptions | None = None) -> bool:
    """Whether a checker or a baseline, which sends nothing for it, can be asked a criterion."""
    try:
        backends.open_model(name, options_beside(name, options or ModelOptions())).check((criterion,))
    except UsageError:
        return False
    return True


def check_turns(
    criteria: Sequence[Criterion], turn_ids: Collection[str], turns: Collection[str], topics: StrPath | None
) -> None:
    """Refuse prompts that show turns of `turn_ids` which are not among the known `turns`, as a UsageError."""
    names = ", ".join(criterion.prompt_id for criterion in criteria if needs_turn(criterion))
    unknown = sorted(set(turn_ids) - set(turns), key=natural_key)
    if names and unknown and topics is None:
        raise UsageError(f"{names}: shown with the conversation, so a topics file is needed (--topics)")
    if names and unknown:
        raise UsageError(f"{topics}: lacks turns that {names} shows: {', '.join(unknown[:5])}")


def check_references(
    criteria: Sequence[Criterion], turn_ids: Collection[str], turns: Mapping[str, Turn], column: str | None
) -> None:
    """Refuse prompts that show reference answers where one of the turns has none, as a UsageError.

    `column`: where a table has them; None where topics do.
    """
    names = ", ".join(criterion.prompt_id for criterion in criteria if "reference" in criterion.inputs)
    lacking: list[str] = []
    if names:
        lacking = sorted((turn_id for turn_id in turn_ids if not turns[turn_id].references), key=natural_key)
    if lacking:
        where = "the topics" if column is None else f"the column {shown(column)}"
        raise UsageError(
            f"{names}: shows a reference answer, and {where} {'has' if column else 'have'} none for "
            f"{count(len(lacking), 'turn')} of {len(turn_ids)} ({', '.join(lacking[:5])}); "
            "--turns FILE judges the others"
        )


def ask_free(name: str, wanted: Sequence[Task], pool: Pool, turns: Mapping[str, Turn] | None = None) -> StoredResults:
    """What a model that sends nothing, such as `baseline/overlap`, says of tasks; nothing is kept."""
    with Asking(JournalPlace(None), pool, turns) as asking:
        return asking.ask(Judge((backends.open_model(name),)), wanted)


def judging_options(options: ModelOptions, models: Sequence[Model]) -> dict[str, object]:
    """The judge's options that may change a grade; patience, speed and room for a longer reply do not."""
    needless = {"timeout", "threads", "max_tokens"}
    return {name: value for name, value in all_options(options, models).items() if name not in needless}


def all_options(options: ModelOptions, models: Sequence[Model]) -> dict[str, Any]:
    """The judge's options without credentials, and with the address to which the environment moves it."""
    url: object = None if options.base_url is None else scrub(without_credentials(options.base_url))
    moved = {model.name: model.endpoint for model in models if model.endpoint is not None}
    if moved:
        url = moved if len(models) > 1 else models[0].endpoint
    return {**recorded_options(options), "base_url": url}
