"""Everything that `judge nuggets create` is told, read and checked before anything is sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.blocks import needs_turn
from judge.ask.criteria import find_criterion
from judge.ask.opening import judging_options, open_judge
from judge.ask.progress import JobProgress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.settings import Settings
from judge.ask.subjects import NUGGET_CREATION, NUGGET_IMPORTANCE, NUGGET_MERGING, check_unit
from judge.ask.tasks import Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import UsageError
from judge.files.folder import check_apart
from judge.files.jsonl import json_bytes
from judge.files.paths import JobPlan, StrPath
from judge.files.stored import sha256
from judge.harness.nuggets.questions import CREATED, check_same
from judge.models.journal import check_database
from judge.models.model import ModelOptions
from judge.nuggets.creation import (
    BLOCK,
    NEW,
    OKAY,
    REPEAT,
    VITAL,
    source_task,
)
from judge.nuggets.sources import SOURCE_KINDS, NuggetSource, SourceKind, TurnSources, turn_sources
from judge.pool.bank import pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.folder import pool_file, read_pool_folder
from judge.pool.intake import turns_by_id
from judge.pool.lists import read_relevance
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.cells import count
from judge.text.hints import did_you_mean

MOST = 30
"""Most nuggets of a turn, as in nuggetizer."""
_LABELS = {NUGGET_MERGING: (NEW, REPEAT), NUGGET_IMPORTANCE: (VITAL, OKAY)}


class NuggetCreatePlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets create` can be told; paths may be strings."""

    pool: StrPath
    """The output folder with the pool and its passages."""
    model: str
    """The judge, as `backend/model`."""
    out: StrPath
    """The folder for bank and journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    topics: StrPath | None = None
    """Topics file; needed unless no prompt shows the conversation."""
    sources: SourceKind = "both"
    """What nuggets are taken from: passages, responses, or both."""
    qrels: StrPath | None = None
    """Passage qrels: only passages that they grade as relevant are sources."""
    relevant_from: int = 1
    """The least grade of a relevant passage."""
    most: int = MOST
    """Most nuggets of a turn."""
    creation: StrPath = NUGGET_CREATION
    """The prompt for the nuggets of a source, as `nugget_creation/variant` or a path."""
    merging: StrPath = NUGGET_MERGING
    """The prompt that tells new candidates from repeats, as `nugget_merging/variant` or a path."""
    importance: StrPath = NUGGET_IMPORTANCE
    """The prompt that says how important nuggets are, as `nugget_importance/variant` or a path."""
    options: ModelOptions = ModelOptions()
    """How the model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Make nuggets of only this many turns, spread over the pool."""


class CreationPrompts(Record, frozen=True):
    """The prompts of the three steps."""

    creation: Criterion
    merging: Criterion
    importance: Criterion

    def all(self) -> tuple[Criterion, ...]:
        """The prompts in the order of the steps."""
        return self.creation, self.merging, self.importance


class CreationInputs(Record, frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    plan: NuggetCreatePlan
    judge: Judge
    prompts: CreationPrompts
    pool: Pool
    turns: dict[str, Turn]
    found: TurnSources
    sources: dict[str, tuple[NuggetSource, ...]]
    """The turns of this job with their sources."""
    configured: dict[str, Any]
    """What decides the nuggets, as the folder remembers it."""

    def first_tasks(self) -> list[Task]:
        """The questions for the nuggets of every source."""
        return [source_task(source, self.prompts.creation) for listed in self.sources.values() for source in listed]

    def asking(self, progress: JobProgress | None = None, *, dry: bool = False) -> Asking:
        """What asks the judge, step after step."""
        plan = self.plan
        place = JournalPlace(Path(plan.out), plan.journal, max_wait=plan.settings.max_wait)
        return Asking(place, self.pool, self.turns, progress, dry=dry)


def read_creation(plan: NuggetCreatePlan, *, keys: bool = True) -> CreationInputs:
    """Read everything a plan names, and open its judge.

    Args:
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has a bank of something else; every problem is listed.
    """
    _check(plan)
    prompts = CreationPrompts(
        _prompt(plan.creation, NUGGET_CREATION),
        _prompt(plan.merging, NUGGET_MERGING),
        _prompt(plan.importance, NUGGET_IMPORTANCE),
    )
    judge = open_judge((plan.model,), plan.options, prompts.all(), plan.settings, keys=keys)
    pool = read_pool_folder(Path(plan.pool), *(() if plan.sources == "responses" else ("passages.jsonl",)))
    check_unit(prompts.all(), pool.unit)
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None) or {}
    found = _sources(plan, prompts, pool, turns)
    configured = {
        "judge": judge.name,
        "options": judging_options(plan.options, judge.models),
        "prompts": {prompt.prompt_id: prompt.digest for prompt in prompts.all()},
        "sources": {
            "from": plan.sources,
            "pool": sha256(pool_jsonl(pool)),
            "texts": sha256(json_bytes([source for listed in found.by_turn.values() for source in listed])),
            "relevant_from": plan.relevant_from if plan.qrels is not None else None,
        },
        "most": plan.most,
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION, "block": BLOCK},
    }
    out = Path(plan.out)
    check_apart(out, [pool_file(Path(plan.pool)), *(Path(path) for path in (plan.topics, plan.qrels) if path)])
    check_same(out / CREATED, configured, "a bank made with other", "judge nuggets create")
    names = list(found.by_turn)
    if plan.limit is not None and plan.limit < len(names):
        names = [names[place * len(names) // plan.limit] for place in range(plan.limit)]
    sources = {name: found.by_turn[name] for name in names}
    return CreationInputs(plan, judge, prompts, pool, turns, found, sources, configured)


def _check(plan: NuggetCreatePlan) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: There are some.
    """
    if plan.sources not in SOURCE_KINDS:
        raise UsageError(
            f"--from {plan.sources}{did_you_mean(plan.sources, SOURCE_KINDS)}: expected {', '.join(SOURCE_KINDS)}"
        )
    if plan.most < 1:
        raise UsageError(f"--most {plan.most}: expected 1 or more")
    if plan.qrels is not None and plan.sources == "responses":
        raise UsageError("--qrels says which passages are relevant, and --from responses takes none")
    check_database(plan.journal)


def _sources(plan: NuggetCreatePlan, prompts: CreationPrompts, pool: Pool, turns: Mapping[str, Turn]) -> TurnSources:
    """What nuggets are taken from.

    Raises:
        UsageError: There is nothing, or a prompt shows turns that nothing tells.
        InputError: The qrels cannot be read.
    """
    relevance = None
    if plan.qrels is not None:
        relevance = read_relevance(Path(plan.qrels), minimum=plan.relevant_from, known=list(turns) or None)
    found = turn_sources(pool, plan.sources, relevance.grades if relevance else None, plan.relevant_from)
    if not found.by_turn:
        raise UsageError(f"{plan.pool}: no {_named(plan)} to take nuggets from{_why(found)}")
    unknown = [turn_id for turn_id in found.by_turn if turn_id not in turns]
    showing = [prompt.prompt_id for prompt in prompts.all() if needs_turn(prompt)]
    if showing and unknown:
        lacks = "so a topics file is needed (--topics)" if plan.topics is None else f"and {plan.topics} lacks turns"
        raise UsageError(f"{', '.join(showing)}: shown with the conversation, {lacks}: {', '.join(unknown[:5])}")
    return found


def _prompt(name: StrPath, criterion: str) -> Criterion:
    """The prompt of a step.

    Raises:
        UsageError: It is one of another criterion, or has other labels than the step reads.
    """
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
    reasons = [
        f"{count(number, 'passage')} {what}"
        for number, what in ((found.lacking, "without a text"), (found.irrelevant, "not graded as relevant"))
        if number
    ]
    reasons += [f"{count(found.own_turns, 'response')} of interactive runs"] if found.own_turns else []
    return f" ({', '.join(reasons)})" if reasons else ""
