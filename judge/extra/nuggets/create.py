"""A judge asked for a bank of nuggets: what `judge nuggets create` does, for use from Python."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JobForecast, Judge
from judge.ask.criteria import find_criterion
from judge.ask.opening import check_turns, judging_options, open_judge, recalls
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment, Task
from judge.ask.subjects import NUGGET_CREATION, NUGGET_IMPORTANCE, NUGGET_MERGING, check_unit
from judge.ask.verdict import PARSER_VERSION
from judge.errors import UsageError
from judge.extra.nuggets.creation import (
    BLOCK,
    NEW,
    OKAY,
    REPEAT,
    VITAL,
    NuggetSource,
    SourceKind,
    TurnMerging,
    TurnSources,
    candidates_of,
    creation_failure,
    importance_task,
    turn_sources,
    weighed,
)
from judge.extra.nuggets.forms import BANK, CREATED, bank_bytes
from judge.extra.nuggets.labels import LABEL_FAILURES
from judge.extra.nuggets.questions import NuggetJobPlan, check_same, nugget_turns, spread_evenly
from judge.extra.nuggets.records import Nugget, NuggetFailure
from judge.io.files import json_bytes, jsonl_bytes, sha256
from judge.io.folder import check_apart, replace_folder
from judge.io.plan import Option, Positive
from judge.io.steps import ProgressLine
from judge.io.table import Table
from judge.io.text import count
from judge.jobs.manifest import job_manifest
from judge.pool.bank import pool_file, pool_jsonl, read_pool_folder
from judge.pool.lists import read_relevance
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn

MOST = 30
"""Most nuggets of a turn, as in nuggetizer."""
_LABELS = {NUGGET_MERGING: (NEW, REPEAT), NUGGET_IMPORTANCE: (VITAL, OKAY)}


class NuggetCreatePlan(NuggetJobPlan):
    """Everything `judge nuggets create` can be told."""

    sources: Annotated[SourceKind, Option("from")] = "both"
    """What nuggets are taken from."""
    qrels: Annotated[Path | None, Option(metavar="FILE")] = None
    """Passage qrels: take only passages that they grade as relevant."""
    relevant_from: Annotated[int, Option(metavar="GRADE")] = 1
    """With --qrels: least grade of a relevant passage."""
    most: Annotated[Positive, Option(metavar="N")] = MOST
    """Most nuggets of a turn."""
    creation: Annotated[str | Path, Option("creation-prompt", metavar="NAME|PATH")] = NUGGET_CREATION
    """Prompt for the nuggets of one source (default nugget_creation/graded)."""
    merging: Annotated[str | Path, Option("merging-prompt", metavar="NAME|PATH")] = NUGGET_MERGING
    """Prompt that tells new nuggets from repeats (default nugget_merging/graded)."""
    importance: Annotated[str | Path, Option("importance-prompt", metavar="NAME|PATH")] = NUGGET_IMPORTANCE
    """Prompt that says which nuggets are vital (default nugget_importance/graded)."""

    def _check(self) -> None:
        if self.qrels is not None and self.sources == "responses":
            raise UsageError("--qrels says which passages are relevant, and --from responses takes none")


class CreationInputs(Record, frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    plan: NuggetCreatePlan
    judge: Judge
    prompts: tuple[Criterion, Criterion, Criterion]
    """Of the three steps: creation, merging and importance."""
    pool: Pool
    turns: dict[str, Turn]
    found: TurnSources
    listed: tuple[NuggetSource, ...]
    """The sources of the turns of this job."""
    configured: dict[str, Any]
    """What decides the nuggets, as the folder remembers it."""

    @property
    def tasks(self) -> list[Task]:
        """The questions for the nuggets of every source."""
        return [source.task(self.prompts[0]) for source in self.listed]

    @property
    def asked_turns(self) -> tuple[str, ...]:
        """The turns of this job."""
        return tuple(dict.fromkeys(source.turn_id for source in self.listed))


def read_creation(plan: NuggetCreatePlan, *, keys: bool = True) -> CreationInputs:
    """Read everything a plan names, and open its judge; a dry run needs no `keys`."""
    prompts = (
        _prompt(plan.creation, NUGGET_CREATION),
        _prompt(plan.merging, NUGGET_MERGING),
        _prompt(plan.importance, NUGGET_IMPORTANCE),
    )
    judge = open_judge((plan.model,), plan.options, prompts, plan.settings, keys=keys and not recalls(plan))
    pool = read_pool_folder(plan.pool, *(() if plan.sources == "responses" else ("passages.jsonl",)))
    check_unit(prompts, pool.unit)
    turns = nugget_turns(plan, pool)
    found = _sources(plan, prompts, pool, turns)
    configured = {
        "judge": judge.name,
        "options": judging_options(plan.options, judge.models),
        "prompts": {prompt.prompt_id: prompt.digest for prompt in prompts},
        "sources": {
            "from": plan.sources,
            "pool": sha256(pool_jsonl(pool)),
            "texts": sha256(json_bytes([source for listed in found.by_turn.values() for source in listed])),
            "relevant_from": plan.relevant_from if plan.qrels is not None else None,
        },
        "most": plan.most,
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION, "block": BLOCK},
    }
    check_apart(plan.out, [pool_file(plan.pool), *(path for path in (plan.topics, plan.qrels) if path)])
    check_same(plan.out / CREATED, configured, "a bank made with other", "judge nuggets create")
    kept = spread_evenly(tuple(found.by_turn), plan.limit)
    listed = tuple(source for turn_id in kept for source in found.by_turn[turn_id])
    return CreationInputs(plan, judge, prompts, pool, turns, found, listed, configured)


def _sources(
    plan: NuggetCreatePlan, prompts: Sequence[Criterion], pool: Pool, turns: Mapping[str, Turn]
) -> TurnSources:
    relevance = None
    if plan.qrels is not None:
        relevance = read_relevance(plan.qrels, minimum=plan.relevant_from, known=list(turns) or None)
    found = turn_sources(pool, plan.sources, relevance.grades if relevance else None, plan.relevant_from)
    if not found.by_turn:
        raise UsageError(f"{plan.pool}: no {_named(plan)} to take nuggets from{_why(found)}")
    check_turns(prompts, found.by_turn, turns, plan.topics)
    return found


def _prompt(name: str | Path, criterion: str) -> Criterion:
    prompt = find_criterion(name)
    if prompt.name != criterion:
        raise UsageError(f'{prompt.prompt_id}: not a prompt of this step: expected `criterion = "{criterion}"` in it')
    labels = _LABELS.get(criterion)
    if labels is not None and {level.label for level in prompt.sentence_levels} != {*labels}:
        raise UsageError(f"{prompt.prompt_id}: expected the sentence levels {' and '.join(labels)}, and no other")
    return prompt


def _named(plan: NuggetCreatePlan) -> str:
    passages = "relevant passage" if plan.qrels is not None else "passage"
    return {"passages": passages, "responses": "response", "both": f"{passages} or response"}[plan.sources]


def _why(found: TurnSources) -> str:
    reasons = (
        (found.lacking, "passage", "without a text"),
        (found.irrelevant, "passage", "not graded as relevant"),
        (found.own_turns, "response", "of interactive runs"),
    )
    told = ", ".join(f"{count(number, name)} {why}" for number, name, why in reasons if number)
    return f" ({told})" if told else ""


RECORD = "bank.sha256"


class NuggetCreation(Record, frozen=True):
    """The bank that a judge made, and what it took."""

    nuggets: Table[Nugget]
    failures: Table[NuggetFailure]
    turns: int
    """Turns with nuggets."""
    without: tuple[str, ...]
    """Turns with sources and without a nugget."""
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def create_nuggets(
    plan: NuggetCreatePlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetCreation:
    """Ask a judge for the nuggets of every turn of a pool, and write them as a bank.

    `report` is called after each answer, with the progress of the step. `progress` shows a bar in a notebook or on a
    terminal, elsewhere lines now and then; or it is the line to show it on. An OperationalError if asking stopped
    early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        inputs = read_creation(plan)
        out, judge = plan.out, inputs.judge
        with Asking.of(plan, inputs.pool, inputs.turns, shown) as asking:
            asking.prepare(judge.models[0])
            # Left by a job that is stopped too, so that nothing else is asked into its folder.
            replace_folder(out, {CREATED: job_manifest("unfinished", inputs.configured)}, RECORD, more=True)
            job = _Creation(inputs, asking)
            job.merge()
            job.weigh()
            notes = (*asking.notes(judge.models, job.results), *_notes(inputs.found))
        return _written(inputs, job, notes, asking.accounts[0])


def forecast_creation(plan: NuggetCreatePlan) -> JobForecast:
    """Count what the first step of `create_nuggets` would send beyond what the journals hold."""
    inputs = read_creation(plan, keys=False)
    with Asking.of(plan, inputs.pool, inputs.turns, dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    passages = sum(source.passage is not None for source in inputs.listed)
    responses = len(inputs.listed) - passages
    counts = {"turns": len(inputs.asked_turns), "passages": passages, "responses": responses}
    return JobForecast(counts, forecast.rows)


class _Creation:
    """The steps of a creation, and what came of them."""

    def __init__(self, inputs: CreationInputs, asking: Asking) -> None:
        self._inputs = inputs
        self._asking = asking
        self.results: list[Judgment | Failure] = []
        self.failures: list[NuggetFailure] = []
        self.merged: list[TurnMerging] = []
        """The candidates of every turn without repeats; turns without a candidate are left out."""
        self.nuggets: list[Nugget] = []
        """With their importance; a turn whose nuggets were not weighed, or not merged, has none."""

    def _ask(self, tasks: Sequence[Task]) -> list[Judgment | Failure]:
        answers = list(self._asking.ask(self._inputs.judge, tasks)) if tasks else []
        self.results += answers
        return answers

    def merge(self) -> None:
        """Ask for the nuggets of every source, and which of them are repeats."""
        inputs = self._inputs
        of_turns: dict[str, list[tuple[NuggetSource, tuple[str, ...]]]] = {}
        for source, answer in zip(inputs.listed, self._ask(inputs.tasks), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("creation", answer, source))
            elif answer.nuggets:
                of_turns.setdefault(source.turn_id, []).append((source, answer.nuggets))
        self.merged = [TurnMerging(turn, candidates_of(pairs), inputs.plan.most) for turn, pairs in of_turns.items()]
        # A block is compared with what the blocks before it left, so the blocks of a turn are asked one after another.
        while open_ones := [merging for merging in self.merged if not merging.done]:
            answers = self._ask([merging.task(inputs.prompts[1]) for merging in open_ones])
            for merging, answer in zip(open_ones, answers, strict=True):
                merging.take(answer)

    def weigh(self) -> None:
        """Ask how important the nuggets are."""
        inputs = self._inputs
        self.failures += [creation_failure("merging", each.failure) for each in self.merged if each.failure]
        whole = [merging for merging in self.merged if merging.failure is None]
        tasks = [importance_task(merging.turn_id, merging.kept, inputs.prompts[2]) for merging in whole]
        for merging, answer in zip(whole, self._ask(tasks), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("importance", answer))
            else:
                self.nuggets += weighed(merging.turn_id, merging.kept, answer, inputs.judge.name)


def _written(inputs: CreationInputs, job: _Creation, notes: tuple[str, ...], account: JudgeAccount) -> NuggetCreation:
    nuggets, failures = job.nuggets, job.failures
    with_nuggets = {nugget.turn_id for nugget in nuggets}
    without = tuple(turn_id for turn_id in inputs.asked_turns if turn_id not in with_nuggets)
    status = "trial" if inputs.plan.limit is not None else "incomplete" if failures else "complete"
    counts = {
        "turns": len(inputs.asked_turns),
        "turns_without_nuggets": list(without),
        "sources": len(inputs.listed),
        "passages_without_text": inputs.found.lacking,
        "passages_not_relevant": inputs.found.irrelevant,
        "candidates_left_over": sum(len(merging.waiting) for merging in job.merged),
        "nuggets": len(nuggets),
        "importance": dict(sorted(Counter(nugget.importance or "" for nugget in nuggets).items())),
        "failures": dict(sorted(Counter(f"{row.step}: {row.reason}" for row in failures).items())),
        "models": sorted({row.model for row in job.results if isinstance(row, Judgment) and row.model}),
    }
    files = {
        BANK: bank_bytes(nuggets, "judge"),
        LABEL_FAILURES: jsonl_bytes(failures),
        CREATED: job_manifest(status, inputs.configured, **counts),
    }
    replace_folder(inputs.plan.out, files, RECORD)
    return NuggetCreation(Table(nuggets), Table(failures), len(with_nuggets), without, account, notes)


def _notes(found: TurnSources) -> tuple[str, ...]:
    rows = (
        (found.lacking, "used passage", "without a text: no nugget is taken from them"),
        (found.irrelevant, "used passage", "not graded as relevant: left out"),
        (found.own_turns, "response", "of interactive runs, whose turns are the runs' own: left out"),
    )
    return tuple(f"{count(number, name)} {what}" for number, name, what in rows if number)
