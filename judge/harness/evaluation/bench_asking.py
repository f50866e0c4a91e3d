"""A judge asked about public datasets: the prompts, the pool, the loop, and what the calls took."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.blocks import needs_turn
from judge.ask.criteria import choose_prompts, default_prompts, find_criterion
from judge.ask.opening import ask_free, open_judge, takes
from judge.ask.progress import JobProgress
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.subjects import check_unit
from judge.ask.tasks import Task
from judge.errors import MissingKeyError, UsageError
from judge.evaluate.cards.card import OVERLAP
from judge.evaluate.cards.making import Answers
from judge.evaluate.cards.measured import BenchItem, asked_items, basis
from judge.evaluate.cards.pooled import bench_pool
from judge.evaluate.datasets import Dataset
from judge.files.paths import JobPlan, StrPath
from judge.harness.evaluation.bench_data import ReadDataset, choose_datasets, read_dataset
from judge.models.backends import backend_facts, open_model
from judge.models.journal import check_database
from judge.models.model import Model, ModelOptions
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn

SEED = 2023


class BenchPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge bench` can be told; paths may be strings, and one may stand where several may."""

    data: StrPath
    """The folder with the downloaded datasets."""
    out: StrPath
    """The folder for the card, the items and the journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    model: str | None = None
    """The judge, as `backend/model`; None measures every judge whose labels were released with the data."""
    datasets: Sequence[str] = ()
    """Names of datasets; by default all that are there."""
    prompts: Sequence[StrPath] = ()
    """Prompts as `criterion/variant` or paths, in place of their criterion's default."""
    options: ModelOptions = ModelOptions()
    """How the model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Judge only this many items of each dataset, drawn at random."""
    seed: int = SEED
    """Of the draw and of the resamples."""


class BenchInputs(Record, frozen=True):
    """A plan with its datasets read and its judge opened; nothing has been written or sent."""

    plan: BenchPlan
    judge: Judge
    sets: tuple[ReadDataset, ...]
    prompts: tuple[Criterion, ...]
    """The prompt of each dataset."""
    pool: Pool
    turns: dict[str, Turn]
    tasks: tuple[Task, ...]
    notes: tuple[str, ...]
    """A sentence for each dataset that is there and left out."""

    def asking(self, progress: JobProgress | None = None, *, dry: bool = False) -> Asking:
        """What asks the judge."""
        plan = self.plan
        place = JournalPlace(Path(plan.out), plan.journal, max_wait=plan.settings.max_wait)
        return Asking(place, self.pool, self.turns, progress, dry=dry)


def read_bench(plan: BenchPlan, *, keys: bool = True) -> BenchInputs:
    """Read the datasets that the judge can be asked about.

    Args:
        plan: What to do; it names a model.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: A dataset or a prompt is bad; every problem is listed.
    """
    check_database(plan.journal)
    folder = Path(plan.data)
    chosen = choose_datasets(folder, plan.datasets)
    prompts = _prompts(plan, chosen)
    judge = open_judge((plan.model or "",), plan.options, (), plan.settings, keys=keys)
    sets: list[ReadDataset] = []
    asked: list[Criterion] = []
    left_out: dict[str, list[str]] = {}
    for dataset in chosen:
        prompt = prompts.get(dataset.criterion)
        reason = _refusal(judge.models[0], dataset, prompt)
        read = read_dataset(dataset, folder, plan.limit, plan.seed) if reason is None else None
        if read is not None and prompt is not None:
            reason = _unaskable(read, prompt)
            if reason is None:
                sets.append(read)
                asked.append(prompt)
                continue
        if plan.datasets:
            raise UsageError(f"{dataset.name}: {reason}")
        left_out.setdefault(str(reason), []).append(dataset.name)
    notes = tuple(f"{', '.join(names)} left out: {reason}" for reason, names in left_out.items())
    if not sets:
        raise UsageError(f"{judge.name} can be asked about no dataset: {'; '.join(notes)}")
    pool, turns = bench_pool([read.drawn for read in sets])
    responses = {response.response_id: response for response in pool.responses}
    tasks = tuple(
        Task(responses[response_id], prompt)
        for read, prompt in zip(sets, asked, strict=True)
        for response_id in read.drawn.ids
    )
    return BenchInputs(plan, judge, tuple(sets), tuple(asked), pool, turns, tasks, notes)


def _prompts(plan: BenchPlan, chosen: Sequence[Dataset]) -> dict[str, Criterion]:
    """The prompt of each criterion of the datasets; none where the criterion has no default one.

    Raises:
        UsageError: A criterion has two prompts, or a prompt is of no dataset.
    """
    given = choose_prompts(None, plan.prompts, ())
    check_unit([prompt for several in given.values() for prompt in several], "response")
    criteria = {dataset.criterion for dataset in chosen}
    for name, several in given.items():
        if len(several) > 1:
            names = " and ".join(prompt.prompt_id for prompt in several)
            raise UsageError(f"two prompts for {name}: {names}; give each an --out of its own and compare the cards")
        if name not in criteria:
            raise UsageError(f"{several[0].prompt_id}: no dataset is about {name} (there are {', '.join(criteria)})")
    defaults = {name: find_criterion(name) for name in sorted(criteria & default_prompts().keys() - given.keys())}
    return defaults | {name: prompt for name, (prompt,) in given.items()}


def _refusal(model: Model, dataset: Dataset, prompt: Criterion | None) -> str | None:
    """Why a model cannot be asked about a dataset, before it is read."""
    if prompt is None:
        return f"no prompt of {dataset.criterion} comes with judge: --prompt names one of your own"
    try:
        model.check((prompt,))
    except MissingKeyError:
        return None
    except UsageError as error:
        return str(error)
    return None


def _unaskable(read: ReadDataset, prompt: Criterion) -> str | None:
    """Why the items of a dataset cannot be shown."""
    if not read.drawn.has_texts:
        return "its texts were not released with the labels; --stored measures the judges whose labels were"
    if needs_turn(prompt) and not read.drawn.has_turns:
        return f"{prompt.prompt_id} shows the conversation, and the dataset has none"
    return None


def bench_answers(inputs: BenchInputs, results: Sequence[Judgment | Failure]) -> tuple[Answers, ...]:
    """A judge's answers to each dataset, with those of word overlap beside them."""
    by_id = {result.response_id: result for result in results}
    overlap = {} if backend_facts(inputs.judge.name).baseline else overlap_items(inputs.sets, inputs.prompts)
    answers = []
    for read, prompt in zip(inputs.sets, inputs.prompts, strict=True):
        items, expected = asked_items(read.drawn, prompt, by_id)
        words, words_prompt = overlap.get(read.drawn.dataset.name, (None, None))
        of = basis(read.drawn.dataset, prompt.scale)
        answers.append(Answers(read.drawn, read.files, read.skipped, items, of, expected, prompt, words, words_prompt))
    return tuple(answers)


def overlap_items(
    sets: Sequence[ReadDataset], prompts: Sequence[Criterion | None]
) -> Mapping[str, tuple[tuple[BenchItem, ...], Criterion]]:
    """Dataset to the answers of word overlap and the prompt that they are under; those it cannot grade are left out.

    Args:
        sets: The datasets.
        prompts: The prompt of each; where word overlap cannot be asked under it, or there is none, it is asked under
            the default one.
    """
    model = open_model(OVERLAP)
    graded: list[tuple[ReadDataset, Criterion]] = []
    for read, prompt in zip(sets, prompts, strict=True):
        criterion = read.drawn.dataset.criterion
        default = [find_criterion(criterion)] if criterion in default_prompts() else []
        fitting = (each for each in ([prompt] if prompt else []) + default if takes(model, each))
        if read.drawn.has_texts and (under := next(fitting, None)) is not None:
            graded.append((read, under))
    pool, turns = bench_pool([read.drawn for read, _ in graded])
    responses = {response.response_id: response for response in pool.responses}
    wanted = [Task(responses[response_id], under) for read, under in graded for response_id in read.drawn.ids]
    results = {result.response_id: result for result in (ask_free(model, wanted, pool, turns) if wanted else ())}
    return {read.drawn.dataset.name: (asked_items(read.drawn, under, results)[0], under) for read, under in graded}
