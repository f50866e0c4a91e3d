"""A judge asked for a bank of nuggets: what `judge nuggets create` does, for use from Python."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import Account, JudgeAccount
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.questions import filler_notes
from judge.ask.records import Failure, Judgment
from judge.ask.returned import model_notes
from judge.ask.several import Fetching, ask, forecasts
from judge.ask.tasks import Task
from judge.files.bundle import __version__
from judge.files.folder import make_folder, replace_folder
from judge.files.jsonl import json_bytes, jsonl_bytes
from judge.files.progress import ProgressLine
from judge.harness.dry_run import ModelForecast, model_forecasts
from judge.harness.manifest import JOURNAL
from judge.harness.nuggets.creation_plan import CREATED, NuggetCreatePlan, PreparedCreation, prepare_creation
from judge.models.journal import Journal, JournalView, open_journal, paid_journals
from judge.nuggets.creation import (
    TurnMerging,
    candidates_of,
    creation_failure,
    importance_task,
    weighed,
)
from judge.nuggets.forms import BANK, bank_bytes
from judge.nuggets.records import Nugget, NuggetFailure
from judge.nuggets.sources import NuggetSource, TurnSources
from judge.records import Record
from judge.text.cells import count
from judge.text.table import Table

FAILURES = "failures.jsonl"
RECORD = "bank.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


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


class CreationForecast(Record, frozen=True):
    """What the first step of a plan would send; the calls of the other steps depend on its replies."""

    turns: int
    passages: int
    responses: int
    forecast: ModelForecast


def create_nuggets(
    plan: NuggetCreatePlan,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    *,
    progress: bool = False,
) -> NuggetCreation:
    """Ask a judge for the nuggets of every turn of a pool, and write them as a bank.

    Args:
        plan: What to do.
        report: Called after each answer, with the progress of the step.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    if not progress:
        return _create(prepare_creation(plan), report, fetching)
    with ProgressLine(sys.stderr) as line:
        prepared = prepare_creation(plan)
        with Reporter(prepared.model.name, line, report) as reporter:
            return _create(prepared, reporter, FetchReporter(line))


def forecast_creation(plan: NuggetCreatePlan) -> CreationForecast:
    """Count what the first step of `create_nuggets` would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prepared = prepare_creation(plan, keys=False)
    with JournalView(paid_journals(Path(plan.out) / JOURNAL, plan.journal)) as journal:
        counted = forecasts((prepared.model,), prepared.first_tasks(), journal, prepared.pool, prepared.turns)
    (row,) = model_forecasts(counted, plan.settings, plan.options.max_tokens)
    listed = [source for sources in prepared.sources.values() for source in sources]
    passages = sum(source.passage is not None for source in listed)
    return CreationForecast(len(prepared.sources), passages, len(listed) - passages, row)


class _Steps:
    """Asks step after step under one budget."""

    def __init__(
        self,
        prepared: PreparedCreation,
        journal: Journal,
        account: Account,
        report: Callable[[Progress], None] | None,
        fetching: Fetching | None,
    ) -> None:
        self._prepared = prepared
        self._journal = journal
        self._account = account
        self._report = report
        self._fetching = fetching
        self._spent = 0.0
        self.results: list[Judgment | Failure] = []

    def ask(self, tasks: Sequence[Task]) -> list[Judgment | Failure]:
        """An answer to each task, in their order."""
        spent = self._spent

        def counted(progress: Progress) -> None:
            self._spent = spent + progress.cost
            if self._report is not None:
                self._report(progress)

        settings = self._prepared.plan.settings
        if settings.max_cost is not None:
            settings = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - spent))
        answers = ask(
            (self._prepared.model,),
            tasks,
            self._journal,
            self._prepared.pool,
            turns=self._prepared.turns,
            settings=settings,
            report=counted,
            fetching=self._fetching,
            account=self._account,
            folder=Path(self._prepared.plan.out),
        )
        self.results += answers
        return list(answers)


def _create(
    prepared: PreparedCreation, report: Callable[[Progress], None] | None, fetching: Fetching | None
) -> NuggetCreation:
    plan, out, model = prepared.plan, Path(prepared.plan.out), prepared.model
    make_folder(out)
    account = Account()
    failures: list[NuggetFailure] = []
    with open_journal(out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
        model.prepare(fetching or (lambda what, done, total: None))
        # Left by a job that is stopped too, so that nothing else is asked into its folder.
        replace_folder(out, {CREATED: _manifest(prepared, "unfinished")}, RECORD, more=True)
        steps = _Steps(prepared, journal, account, report, fetching)
        merged = _merged(prepared, steps, failures)
        nuggets = _weighed(prepared, steps, merged, failures)
        notes = (*model_notes(steps.results), *filler_notes((model.name,), journal))
    with_nuggets = {nugget.turn_id for nugget in nuggets}
    without = tuple(turn_id for turn_id in prepared.sources if turn_id not in with_nuggets)
    status = "trial" if plan.limit is not None else "incomplete" if failures else "complete"
    counts = {
        "turns": len(prepared.sources),
        "turns_without_nuggets": list(without),
        "sources": sum(map(len, prepared.sources.values())),
        "passages_without_text": prepared.found.lacking,
        "passages_not_relevant": prepared.found.irrelevant,
        "candidates_left_over": sum(merging.left_over for merging in merged),
        "nuggets": len(nuggets),
        "importance": dict(sorted(Counter(nugget.importance or "" for nugget in nuggets).items())),
        "failures": dict(sorted(Counter(f"{row.step}: {row.reason}" for row in failures).items())),
        "models": sorted({row.model for row in steps.results if isinstance(row, Judgment) and row.model}),
    }
    files = {
        BANK: bank_bytes(nuggets, "judge"),
        FAILURES: jsonl_bytes(failures),
        CREATED: _manifest(prepared, status, counts),
    }
    replace_folder(out, files, RECORD)
    return NuggetCreation(
        Table(nuggets),
        Table(failures),
        len(with_nuggets),
        without,
        account.rows()[0],
        (*notes, *_notes(prepared.found)),
    )


def _merged(prepared: PreparedCreation, steps: _Steps, failures: list[NuggetFailure]) -> list[TurnMerging]:
    """The candidates of every turn without repeats; turns without a candidate are left out."""
    listed = [source for sources in prepared.sources.values() for source in sources]
    of_turns: dict[str, list[tuple[NuggetSource, tuple[str, ...]]]] = {}
    for source, answer in zip(listed, steps.ask(prepared.first_tasks()), strict=True):
        if isinstance(answer, Failure):
            failures.append(creation_failure("creation", answer, source))
        elif answer.nuggets:
            of_turns.setdefault(source.turn_id, []).append((source, answer.nuggets))
    merged = [TurnMerging(turn_id, candidates_of(pairs), prepared.plan.most) for turn_id, pairs in of_turns.items()]
    # A block is compared with what the blocks before it left, so the blocks of a turn are asked one after the other.
    while asked := [merging for merging in merged if not merging.done]:
        answers = steps.ask([merging.task(prepared.prompts.merging) for merging in asked])
        for merging, answer in zip(asked, answers, strict=True):
            merging.take(answer)
    failures += [creation_failure("merging", merging.failure) for merging in merged if merging.failure is not None]
    return merged


def _weighed(
    prepared: PreparedCreation, steps: _Steps, merged: Sequence[TurnMerging], failures: list[NuggetFailure]
) -> list[Nugget]:
    """The nuggets with their importance; a turn whose nuggets were not weighed, or not merged, has none."""
    whole = [merging for merging in merged if merging.failure is None]
    tasks = [importance_task(merging.turn_id, merging.kept, prepared.prompts.importance) for merging in whole]
    nuggets: list[Nugget] = []
    for merging, answer in zip(whole, steps.ask(tasks) if tasks else (), strict=True):
        if isinstance(answer, Failure):
            failures.append(creation_failure("importance", answer))
        else:
            nuggets += weighed(merging.turn_id, merging.kept, answer, prepared.model.name)
    return nuggets


def _notes(found: TurnSources) -> tuple[str, ...]:
    notes = []
    if found.lacking:
        notes.append(f"{count(found.lacking, 'used passage')} without a text: no nugget is taken from them")
    if found.irrelevant:
        notes.append(f"{count(found.irrelevant, 'used passage')} not graded as relevant: left out")
    if found.own_turns:
        notes.append(
            f"{count(found.own_turns, 'response')} of interactive runs, whose turns are the runs' own: left out"
        )
    return tuple(notes)


def _manifest(prepared: PreparedCreation, status: str, counts: dict[str, Any] | None = None) -> bytes:
    """What the bank was made of, and what came of it; the same bytes for the same bank."""
    head = {"judge_version": __version__, "status": status, "configuration": prepared.configured}
    return json_bytes(head | (counts or {}))
