"""A judge asked for a bank of nuggets: what `judge nuggets create` does, for use from Python."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, ModelForecast
from judge.ask.progress import Progress, job_progress
from judge.ask.records import Failure, Judgment
from judge.ask.tasks import Task
from judge.files.bundle import __version__
from judge.files.folder import replace_folder
from judge.files.jsonl import json_bytes, jsonl_bytes
from judge.files.progress import ProgressLine
from judge.harness.nuggets.creation_plan import CreationInputs, NuggetCreatePlan, read_creation
from judge.harness.nuggets.questions import CREATED
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
    plan: NuggetCreatePlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetCreation:
    """Ask a judge for the nuggets of every turn of a pool, and write them as a bank.

    Args:
        plan: What to do.
        report: Called after each answer, with the progress of the step.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then; or the line to show it on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        inputs = read_creation(plan)
        out, judge = Path(plan.out), inputs.judge
        with inputs.asking(shown) as asking:
            asking.prepare(judge.models[0])
            # Left by a job that is stopped too, so that nothing else is asked into its folder.
            replace_folder(out, {CREATED: _manifest(inputs, "unfinished")}, RECORD, more=True)
            job = _Creation(inputs, asking)
            job.merge()
            job.weigh()
            notes = asking.notes(judge.models, job.results)
        return _written(inputs, job, (*notes, *_notes(inputs.found)), asking.accounts[0])


def forecast_creation(plan: NuggetCreatePlan) -> CreationForecast:
    """Count what the first step of `create_nuggets` would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    inputs = read_creation(plan, keys=False)
    with inputs.asking(dry=True) as asking:
        (row,) = asking.forecast(inputs.judge, inputs.first_tasks()).rows
    listed = [source for sources in inputs.sources.values() for source in sources]
    passages = sum(source.passage is not None for source in listed)
    return CreationForecast(len(inputs.sources), passages, len(listed) - passages, row)


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
        answers = list(self._asking.ask(self._inputs.judge, tasks))
        self.results += answers
        return answers

    def merge(self) -> None:
        """Ask for the nuggets of every source, and which of them are repeats."""
        inputs = self._inputs
        listed = [source for sources in inputs.sources.values() for source in sources]
        of_turns: dict[str, list[tuple[NuggetSource, tuple[str, ...]]]] = {}
        for source, answer in zip(listed, self._ask(inputs.first_tasks()), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("creation", answer, source))
            elif answer.nuggets:
                of_turns.setdefault(source.turn_id, []).append((source, answer.nuggets))
        merged = [TurnMerging(turn_id, candidates_of(pairs), inputs.plan.most) for turn_id, pairs in of_turns.items()]
        # A block is compared with what the blocks before it left, so the blocks of a turn are asked one after another.
        while open_ones := [merging for merging in merged if not merging.done]:
            answers = self._ask([merging.task(inputs.prompts.merging) for merging in open_ones])
            for merging, answer in zip(open_ones, answers, strict=True):
                merging.take(answer)
        self.failures += [creation_failure("merging", each.failure) for each in merged if each.failure is not None]
        self.merged = merged

    def weigh(self) -> None:
        """Ask how important the nuggets are."""
        inputs = self._inputs
        whole = [merging for merging in self.merged if merging.failure is None]
        tasks = [importance_task(merging.turn_id, merging.kept, inputs.prompts.importance) for merging in whole]
        for merging, answer in zip(whole, self._ask(tasks) if tasks else (), strict=True):
            if isinstance(answer, Failure):
                self.failures.append(creation_failure("importance", answer))
            else:
                self.nuggets += weighed(merging.turn_id, merging.kept, answer, inputs.judge.name)


def _written(inputs: CreationInputs, job: _Creation, notes: tuple[str, ...], account: JudgeAccount) -> NuggetCreation:
    """What a creation comes to; its files are written."""
    nuggets, failures = job.nuggets, job.failures
    with_nuggets = {nugget.turn_id for nugget in nuggets}
    without = tuple(turn_id for turn_id in inputs.sources if turn_id not in with_nuggets)
    status = "trial" if inputs.plan.limit is not None else "incomplete" if failures else "complete"
    counts = {
        "turns": len(inputs.sources),
        "turns_without_nuggets": list(without),
        "sources": sum(map(len, inputs.sources.values())),
        "passages_without_text": inputs.found.lacking,
        "passages_not_relevant": inputs.found.irrelevant,
        "candidates_left_over": sum(merging.left_over for merging in job.merged),
        "nuggets": len(nuggets),
        "importance": dict(sorted(Counter(nugget.importance or "" for nugget in nuggets).items())),
        "failures": dict(sorted(Counter(f"{row.step}: {row.reason}" for row in failures).items())),
        "models": sorted({row.model for row in job.results if isinstance(row, Judgment) and row.model}),
    }
    files = {
        BANK: bank_bytes(nuggets, "judge"),
        FAILURES: jsonl_bytes(failures),
        CREATED: _manifest(inputs, status, counts),
    }
    replace_folder(Path(inputs.plan.out), files, RECORD)
    return NuggetCreation(Table(nuggets), Table(failures), len(with_nuggets), without, account, notes)


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


def _manifest(inputs: CreationInputs, status: str, counts: dict[str, Any] | None = None) -> bytes:
    """What the bank was made of, and what came of it; the same bytes for the same bank."""
    head = {"judge_version": __version__, "status": status, "configuration": inputs.configured}
    return json_bytes(head | (counts or {}))
