"""Judges on public labels: one that is asked, or those whose labels were released; what `judge bench` does."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace
from judge.ask.criteria import choose_prompts, default_prompts, find_criterion
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.opening import OVERLAP, ask_free, judging_options, open_judge, recalls, takes
from judge.ask.options import AskingOptions
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION, check_unit, needs_turn
from judge.ask.records import Failure, Judgment, Task
from judge.ask.results import Labels, labels_of
from judge.ask.returned import unpublished_models, with_model
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, MissingKeyError, UsageError
from judge.extra.bench import Drawn, bench_pool, choose_datasets
from judge.extra.bench.card import (
    CARD,
    ITEMS,
    PAGE,
    Answers,
    JudgeCard,
    dataset_card,
    items_bytes,
    parse_card,
    stored_labels,
)
from judge.extra.bench.datasets import Dataset
from judge.extra.bench.page import card_page
from judge.io.files import json_bytes, read_stored, sha256
from judge.io.folder import check_apart, recorded, replace_folder
from judge.io.ids import natural_key, safe_names
from judge.io.installed import __version__
from judge.io.plan import Option, Options, Positive
from judge.io.steps import ProgressLine, Step, Steps, stepped
from judge.jobs.manifest import MANIFEST
from judge.judges.backends import backend_facts
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.units import UNITS


class BenchData(Options, section="reading"):
    """Which labels by people a judge is measured on."""

    data: Annotated[Path, Option(metavar="DIR")]
    """Folder with the datasets, or clones of their releases."""
    datasets: Annotated[tuple[str, ...], Option("dataset", metavar="NAME")] = ()
    """Only these datasets (default: all that are there)."""
    limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Judge only N items of each dataset, drawn at random."""
    resampling_seed: Annotated[int, Option(metavar="N")] = 2023
    """Seed of the draw of --limit and of resamples."""
    model: Annotated[str | None, Option(metavar="BACKEND/MODEL", section="asking")] = None
    """The judge; in Python, None measures every judge whose labels were released with the data."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt for its criterion, as criterion/variant or a file of your own; may be repeated."""


class BenchPlan(
    BenchData,
    AskingOptions,
    section="output",
    main="data dataset model prompt base-url stored limit out dry-run max-cost",
):
    """Everything `judge bench` can be told."""

    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder for card, items and journal."""
    model_names: bool = False
    """Show on the card the name by which a server calls its model, whatever a server put there."""


RECORD = "bench.sha256"
TIMING = "timing.json"
_TIMING = ("attempts", "seconds", "cached_tokens", "thought_tokens")


class BenchOutcome(Record, frozen=True):
    """The cards of the measured judges."""

    cards: tuple[JudgeCard, ...]
    """One of a judge that was asked, or those of the stored judges in natural order."""
    failures: tuple[Failure, ...] = ()
    accounts: tuple[JudgeAccount, ...] = ()


class BenchInputs:
    """A plan with its judge opened, and the datasets read that it can be asked about; nothing has been written or sent.

    A dry run needs no `keys`.
    """

    def __init__(self, plan: BenchPlan, *, keys: bool = True) -> None:
        self.plan = plan
        chosen = choose_datasets(plan.data, plan.datasets)
        prompts = _prompts(plan, chosen)
        self.judge = open_judge(
            (plan.model or "",), plan.options, (), plan.settings, keys=keys and not recalls(plan.out)
        )
        self.sets: list[tuple[Drawn, Criterion]] = []
        left_out: dict[str, list[str]] = {}
        for dataset in chosen:
            found = self._drawn(dataset, prompts.get(dataset.criterion))
            if not isinstance(found, str):
                self.sets.append(found)
            elif plan.datasets:
                raise UsageError(f"{dataset.name}: {found}")
            else:
                left_out.setdefault(found, []).append(dataset.name)
        self.notes = tuple(f"{', '.join(names)} left out: {reason}" for reason, names in left_out.items())
        """A sentence for each dataset that is there and left out."""
        if not self.sets:
            raise UsageError(f"{self.judge.name} can be asked about no dataset: {'; '.join(self.notes)}")
        self.pool, self.turns, self.tasks = _posed(self.sets)

    def _drawn(self, dataset: Dataset, prompt: Criterion | None) -> tuple[Drawn, Criterion] | str:
        """The items of a dataset and their prompt, or why the judge cannot be asked about them."""
        if prompt is None:
            return f"no prompt of {dataset.criterion} comes with judge: --prompt names one of your own"
        try:
            self.judge.models[0].check((prompt,))
        except MissingKeyError:
            pass
        except UsageError as error:
            return str(error)
        drawn = Drawn(dataset, self.plan.data, self.plan.limit, self.plan.resampling_seed)
        if not drawn.has_texts:
            return "its texts were not released with the labels; --stored measures the judges whose labels were"
        if needs_turn(prompt) and not any(item.utterance or item.context for item in drawn.every):
            return f"{prompt.prompt_id} shows the conversation, and the dataset has none"
        return drawn, prompt


def _posed(sets: Sequence[tuple[Drawn, Criterion]]) -> tuple[Pool, dict[str, Turn], tuple[Task, ...]]:
    """The items of datasets as a pool with its turns, and what is asked about them."""
    pool, turns = bench_pool([drawn for drawn, _ in sets])
    responses = {response.response_id: response for response in pool.responses}
    # A citation is a response of one sentence with one passage.
    asked: list[Task] = []
    for drawn, prompt in sets:
        asked.extend(Task(replace(responses[name], unit=prompt.unit), prompt) for name in drawn.ids)
    return pool, turns, tuple(asked)


def _prompts(plan: BenchPlan, chosen: Sequence[Dataset]) -> dict[str, Criterion]:
    """The prompt of each criterion of the datasets; none where the criterion has no default one."""
    given = choose_prompts((), plan.prompts, ())
    prompts = chain.from_iterable(given.values())
    check_unit([prompt for prompt in prompts if not UNITS[prompt.unit].part_of_response], "response")
    criteria = {dataset.criterion for dataset in chosen}
    for name, several in given.items():
        if len(several) > 1:
            names = " and ".join(prompt.prompt_id for prompt in several)
            raise UsageError(f"two prompts for {name}: {names}; give each an --out of its own and compare the cards")
        if name not in criteria:
            raise UsageError(f"{several[0].prompt_id}: no dataset is about {name} (there are {', '.join(criteria)})")
    defaults = {name: find_criterion(name) for name in sorted(criteria & default_prompts().keys() - given.keys())}
    return defaults | {name: prompt for name, (prompt,) in given.items()}


def _overlap(sets: Iterable[tuple[Drawn, Criterion | None]]) -> dict[str, Labels]:
    """The labels of word overlap by dataset, under its prompt if overlap can grade under that, else the default one."""
    graded: list[tuple[Drawn, Criterion]] = []
    for drawn, prompt in sets:
        criterion = drawn.dataset.criterion
        default = [find_criterion(criterion)] if criterion in default_prompts() else []
        fitting = (each for each in ([prompt] if prompt else []) + default if takes(OVERLAP, each))
        if drawn.has_texts and (under := next(fitting, None)) is not None:
            graded.append((drawn, under))
    pool, turns, tasks = _posed(graded)
    results = {result.response_id: result for result in (ask_free(OVERLAP, tasks, pool, turns) if tasks else ())}
    return {drawn.dataset.name: _labels(drawn, under, results) for drawn, under in graded}


def _labels(drawn: Drawn, prompt: Criterion, results: Mapping[str, Judgment | Failure]) -> Labels:
    """What a judge said of the drawn items of a dataset, by response id."""
    (labels,) = labels_of((results[name] for name in drawn.ids), drawn.dataset.name, drawn.digest)
    return msgspec.structs.replace(labels, scale=prompt.scale)


def bench_judges(
    plan: BenchPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> BenchOutcome:
    """Measure a judge on public labels, or the judges whose labels were released with them, and write their cards.

    `report` is called after each judgment. `progress` shows bars in a notebook or on a terminal, elsewhere lines now
    and then; or it is the line to show them on. An OperationalError if asking stopped early; the same call goes on from
    there.
    """
    check_apart(plan.out, [plan.data])
    with job_progress(progress, report) as shown:
        return _bench_stored(plan, shown.steps) if plan.model is None else _bench_asked(BenchInputs(plan), shown)


def forecast_bench(plan: BenchPlan) -> JobForecast:
    """Count what `bench_judges` would send beyond what the journal in the output folder holds."""
    inputs = BenchInputs(plan, keys=False)
    with AskingForecast(JournalPlace(plan.out), inputs.pool, inputs.turns) as forecasts:
        rows = forecasts.forecast(inputs.judge, inputs.tasks)
    return JobForecast({drawn.dataset.name: len(drawn.items) for drawn, _ in inputs.sets}, rows, inputs.notes)


def _bench_asked(inputs: BenchInputs, progress: JobProgress) -> BenchOutcome:
    plan = inputs.plan
    out = plan.out
    judge = inputs.judge
    _check_out(out, judge.name)
    with Asking(JournalPlace(plan.out), inputs.pool, inputs.turns, progress) as asking:
        results = tuple(asking.ask(judge, inputs.tasks))
        if not plan.model_names:
            # A card is made to be published.
            named = ((row.judge, row.model) for row in results if isinstance(row, Judgment) and row.model)
            models = unpublished_models(named)
            results = tuple(with_model(row, models) for row in results)
        notes = asking.notes(judge.models, results)
    (account,) = asking.accounts
    took = account.results
    progress.steps(Step("making the card"))
    by_id = {result.response_id: result for result in results}
    overlap = {} if backend_facts(judge.name).baseline else _overlap(inputs.sets)
    answers = [
        Answers(drawn, _labels(drawn, prompt, by_id), overlap.get(drawn.dataset.name)) for drawn, prompt in inputs.sets
    ]
    card = _card(
        judge.name,
        plan,
        answers,
        models_returned=tuple(sorted({row.model for row in results if isinstance(row, Judgment) and row.model})),
        options=judging_options(plan.options, judge.models),
        spending=msgspec.structs.replace(took, seconds=0.0, timed=0),
        notes=(*inputs.notes, *notes),
        versions={"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
    )
    # What depends on the day, of the calls that the journal has.
    timing = {"calls": took.calls} | {name: getattr(took, name) for name in _TIMING}
    replace_folder(out, {**card_files(card, answers), TIMING: json_bytes(timing)}, RECORD)
    failures = tuple(result for result in results if isinstance(result, Failure))
    return BenchOutcome((card,), failures, (account,))


def _bench_stored(plan: BenchPlan, steps: Steps) -> BenchOutcome:
    """The cards of all judges whose labels were released with the datasets, each in a folder of its own."""
    if plan.prompts:
        raise UsageError("stored labels are under no prompt of judge (--prompt)")
    folder = plan.data
    out = plan.out
    _check_out(out, None)
    chosen = choose_datasets(folder, plan.datasets)
    without = [dataset.name for dataset in chosen if dataset.stored is None]
    if plan.datasets and without:
        raise UsageError(f"{', '.join(without)}: no labels of judges were released with it")
    sets = [
        (Drawn(dataset, folder, plan.limit, plan.resampling_seed), dataset.stored(folder))
        for dataset in stepped("reading datasets", chosen, steps)
        if dataset.stored is not None
    ]
    if not sets:
        raise UsageError(f"{folder}: no labels of judges were released with {', '.join(without)}")
    overlap = _overlap((drawn, None) for drawn, _ in sets)
    cards: list[JudgeCard] = []
    files: dict[str, bytes] = {}
    judges = sorted(set(chain.from_iterable(stored for _, stored in sets)), key=natural_key)
    names = safe_names(judges)
    for judge in stepped("making cards", judges, steps):
        answers = [
            Answers(drawn, stored_labels(drawn, judge, stored[judge]), overlap.get(drawn.dataset.name))
            for drawn, stored in sets
            if judge in stored
        ]
        cards.append(_card(judge, plan, answers))
        made = card_files(cards[-1], answers)
        files |= {f"{names[judge]}/{name}": content for name, content in made.items()}
    replace_folder(out, files, RECORD)
    return BenchOutcome(tuple(cards))


def _card(
    judge: str,
    plan: BenchPlan,
    answers: Sequence[Answers],
    versions: Mapping[str, str | int] | None = None,
    notes: Sequence[str] = (),
    **more: Any,
) -> JudgeCard:
    made = [dataset_card(answer, plan.resampling_seed) for answer in answers]
    all_notes = [*notes]
    for _, own_notes in made:
        all_notes += own_notes
    return JudgeCard(
        judge=judge,
        limit=plan.limit,
        seed=plan.resampling_seed,
        versions={"judge": __version__, **(versions or {})},
        datasets=tuple(dataset for dataset, _ in made),
        items_digest=sha256(items_bytes(answers)),
        notes=tuple(all_notes),
        **more,
    )


def card_files(card: JudgeCard, answers: Sequence[Answers]) -> dict[str, bytes]:
    """The files of a card, by name."""
    return {CARD: json_bytes(card), PAGE: card_page(card).encode(), ITEMS: items_bytes(answers)}


def _check_out(out: Path, judge: str | None) -> None:
    """Refuse a folder with other results than an earlier card of the same judge, which is written over."""
    if (out / MANIFEST).exists():
        raise InputError(f"{out}: holds the results of `judge run`: choose another --out")
    path = out / CARD
    if path.exists():
        earlier = parse_card(read_stored(path), str(path)).judge
        if earlier != judge:
            raise InputError(f"{out}: holds the card of {earlier}: choose another --out")
    own = {name for name, _ in recorded(out, RECORD)}
    if judge is not None and (
        strange := [name for name in (PAGE, ITEMS, TIMING) if (out / name).exists() and name not in own]
    ):
        # Found only when the card is written, it would have cost every call.
        raise InputError(f"{out}: {', '.join(strange)}: not listed in {RECORD}: choose another --out")
