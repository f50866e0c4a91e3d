"""Judges on public labels: one that is asked, or those whose labels were released; what `judge bench` does."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judge.ask.account import JudgeAccount
from judge.ask.asking import ModelForecast
from judge.ask.opening import judging_options
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.evaluate.cards.card import CARD, ITEMS, PAGE, Expense, JudgeCard, card_bytes, parse_card
from judge.evaluate.cards.making import Answers, dataset_card, items_bytes, rung_cards
from judge.evaluate.cards.measured import stored_items
from judge.evaluate.cards.page import card_page
from judge.files.bundle import __version__
from judge.files.folder import check_apart, recorded, replace_folder
from judge.files.jsonl import json_bytes
from judge.files.progress import ProgressLine
from judge.files.stored import read_stored, sha256
from judge.files.trec import safe_names
from judge.harness.evaluation.bench_asking import BenchInputs, BenchPlan, bench_answers, overlap_items, read_bench
from judge.harness.evaluation.bench_data import choose_datasets, read_dataset
from judge.harness.manifest import MANIFEST
from judge.models.spending import Spending
from judge.records import Record
from judge.text.ids import natural_key
from judge.text.steps import Step, Steps, stepped

RECORD = "bench.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
TIMING = "timing.json"


class BenchOutcome(Record, frozen=True):
    """The cards of the measured judges."""

    cards: tuple[JudgeCard, ...]
    """One of a judge that was asked, or those of the stored judges in natural order."""
    failures: tuple[Failure, ...] = ()
    """The missing answers of a judge that was asked."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to a judge that was asked took."""


class BenchForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    judge: str
    items: dict[str, int]
    """Dataset to the number of judgments."""
    forecast: ModelForecast
    notes: tuple[str, ...]


def bench_judges(
    plan: BenchPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> BenchOutcome:
    """Measure a judge on public labels, or the judges whose labels were released with them, and write their cards.

    Args:
        plan: What to do.
        report: Called after each judgment.
        progress: Show bars in a notebook or on a terminal, elsewhere lines now and then; or the line to show them on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    check_apart(Path(plan.out), [Path(plan.data)])
    with job_progress(progress, report) as shown:
        return _bench_stored(plan, shown.steps) if plan.model is None else _bench_asked(read_bench(plan), shown)


def forecast_bench(plan: BenchPlan) -> BenchForecast:
    """Count what `bench_judges` would send beyond what the journal in the output folder holds, and the shared one.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    inputs = read_bench(plan, keys=False)
    with inputs.asking(dry=True) as asking:
        (row,) = asking.forecast(inputs.judge, inputs.tasks).rows
    items = {read.drawn.dataset.name: len(read.drawn.items) for read in inputs.sets}
    return BenchForecast(inputs.judge.name, items, row, inputs.notes)


def _bench_asked(inputs: BenchInputs, progress: JobProgress) -> BenchOutcome:
    plan, out, judge = inputs.plan, Path(inputs.plan.out), inputs.judge
    _check_out(out, judge.name)
    with inputs.asking(progress) as asking:
        results = tuple(asking.ask(judge, inputs.tasks))
        answers = bench_answers(inputs, results)
        notes = asking.notes(judge.models, results)
    (account,) = asking.accounts
    progress.steps(Step("making the card"))
    card = _card(
        judge.name,
        "asked",
        plan,
        answers,
        models_returned=tuple(sorted({row.model for row in results if isinstance(row, Judgment) and row.model})),
        options=judging_options(plan.options, judge.models),
        expense=_expense(account.results),
        notes=(*inputs.notes, *notes),
    )
    replace_folder(out, {**card_files(card, answers), TIMING: json_bytes(_timing(account.results))}, RECORD)
    failures = tuple(result for result in results if isinstance(result, Failure))
    return BenchOutcome((card,), failures, (account,))


def _timing(took: Spending) -> dict[str, Any]:
    """What depends on the day: attempts, seconds and cached tokens of the calls that the journal has."""
    return {
        "calls": took.completions,
        "attempts": took.attempts,
        "seconds": took.seconds,
        "cached_tokens": took.cached_tokens,
    }


def _expense(took: Spending) -> Expense:
    counted, priced = took.counted == took.completions, took.priced == took.completions
    return Expense(
        calls=took.completions,
        prompt_tokens=took.prompt_tokens if counted else None,
        completion_tokens=took.completion_tokens if counted else None,
        cost=took.cost if priced else None,
    )


def _bench_stored(plan: BenchPlan, steps: Steps) -> BenchOutcome:
    """The cards of all judges whose labels were released with the datasets, each in a folder of its own."""
    if plan.prompts:
        raise UsageError("stored labels are under no prompt of judge (--prompt)")
    if plan.journal is not None:
        raise UsageError("stored labels need no journal (--journal)")
    folder, out = Path(plan.data), Path(plan.out)
    _check_out(out, None)
    chosen = choose_datasets(folder, plan.datasets)
    without = [dataset.name for dataset in chosen if dataset.stored is None]
    if plan.datasets and without:
        raise UsageError(f"{', '.join(without)}: no labels of judges were released with it")
    sets = [
        (read_dataset(dataset, folder, plan.limit, plan.seed), dataset.stored(folder))
        for dataset in stepped("reading datasets", chosen, steps)
        if dataset.stored is not None
    ]
    if not sets:
        raise UsageError(f"{folder}: no labels of judges were released with {', '.join(without)}")
    overlap = overlap_items([read for read, _ in sets], [None] * len(sets))
    cards: list[JudgeCard] = []
    files: dict[str, bytes] = {}
    judges = sorted({judge for _, stored in sets for judge in stored}, key=natural_key)
    names = safe_names(judges)
    for judge in stepped("making cards", judges, steps):
        answers = []
        for read, stored in sets:
            if judge in stored:
                items, of = stored_items(read.drawn, stored[judge])
                words, under = overlap.get(read.drawn.dataset.name, (None, None))
                answers.append(
                    Answers(read.drawn, read.files, read.skipped, items, of, overlap=words, overlap_prompt=under)
                )
        cards.append(_card(judge, "stored", plan, answers))
        made = card_files(cards[-1], answers)
        files |= {f"{names[judge]}/{name}": content for name, content in made.items()}
    replace_folder(out, files, RECORD)
    return BenchOutcome(tuple(cards))


def _card(judge: str, kind: Any, plan: BenchPlan, answers: Sequence[Answers], **more: Any) -> JudgeCard:
    versions: dict[str, str | int] = {"judge": __version__}
    if kind == "asked":
        versions |= {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION}
    return JudgeCard(
        judge=judge,
        kind=kind,
        limit=plan.limit,
        seed=plan.seed,
        versions=versions,
        datasets=tuple(dataset_card(each, plan.seed) for each in answers),
        rungs=rung_cards(answers),
        items_digest=sha256(items_bytes(answers)),
        **more,
    )


def card_files(card: JudgeCard, answers: Sequence[Answers]) -> dict[str, bytes]:
    """The files of a card, by name."""
    return {CARD: card_bytes(card), PAGE: card_page(card).encode(), ITEMS: items_bytes(answers)}


def _check_out(out: Path, judge: str | None) -> None:
    """Refuse a folder with other results than an earlier card of the same judge, which is written over.

    Raises:
        InputError: There are others.
    """
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
