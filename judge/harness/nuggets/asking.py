"""A judge asked about pooled responses and nuggets: what the commands that do so share."""

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from judge.ask.account import Account, JudgeAccount
from judge.ask.blocks import needs_turn
from judge.ask.criteria import find_criterion
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.questions import filler_notes
from judge.ask.records import Failure, Judgment
from judge.ask.returned import model_notes
from judge.ask.settings import Settings
from judge.ask.several import Fetching, ask, check_prices, forecasts, open_one
from judge.ask.subjects import check_unit
from judge.ask.tasks import Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.files.bundle import __version__
from judge.files.folder import check_apart, make_folder, replace_folder
from judge.files.jsonl import json_bytes
from judge.files.paths import JobPlan, StrPath
from judge.files.progress import ProgressLine
from judge.files.stored import read_stored, sha256
from judge.harness.dry_run import ModelForecast, model_forecasts
from judge.harness.manifest import JOURNAL, MANIFEST
from judge.harness.nuggets.creation_plan import bank_notes
from judge.harness.nuggets.scoring import read_pool_with_runs
from judge.harness.prepared import judging_options
from judge.models.journal import JournalView, check_database, open_journal, paid_journals
from judge.models.model import Model, ModelOptions
from judge.nuggets.forms import bank_bytes, read_bank
from judge.nuggets.records import NuggetBank
from judge.pool.bank import pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.folder import Beside, pool_file
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.ids import natural_key

NUGGETS = "nuggets.json"
"""What the answers in the folder were made of."""
_Row = TypeVar("_Row")


class NuggetAskPlan(JobPlan, frozen=True, kw_only=True):
    """What every command that asks a judge about nuggets can be told; paths may be strings."""

    pool: StrPath
    """The output folder with the pool, or its `pool.jsonl`."""
    bank: StrPath
    """The bank of nuggets."""
    model: str
    """The judge, as `backend/model`."""
    out: StrPath
    """The folder for answers and journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    prompt: StrPath
    """The prompt, as `criterion/variant` or a path."""
    topics: StrPath | None = None
    """Topics file, for a prompt that shows the conversation; the pool has that of interactive runs."""
    options: ModelOptions = ModelOptions()
    """How the model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Ask only so many questions, spread over the pool."""


class NuggetAsking(Record, frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    plan: NuggetAskPlan
    model: Model
    prompt: Criterion
    bank: NuggetBank
    pool: Pool
    turns: dict[str, Turn]
    configured: dict[str, Any]
    """Everything that determines the answers."""


class NuggetAnswers(Record, frozen=True):
    """What a judge answered to each task, and what it took."""

    results: Sequence[Judgment | Failure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def open_asking(
    plan: NuggetAskPlan, check: Callable[[Criterion], None], *, keys: bool, beside: tuple[Beside, ...] = ()
) -> NuggetAsking:
    """Read the prompt, the bank, the pool and the topics of a plan, and open its judge.

    Args:
        plan: What to do.
        check: Refuses a prompt that asks something else.
        keys: Refuse a model without its key; a dry run needs none.
        beside: Files of the pool to read beside its runs and exclusions, where the prompt shows passages.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    check_database(plan.journal)
    prompt = find_criterion(plan.prompt)
    check(prompt)
    model = open_one(plan.model, plan.options, (prompt,), plan.settings, keys=keys)
    check_prices((plan.model,), (model,), plan.settings)
    bank = read_bank(plan.bank)
    pool = read_pool_with_runs(Path(plan.pool), *(beside if "passages" in prompt.inputs else ()))
    check_unit((prompt,), pool.unit)
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None) or {}
    configured = {
        "judge": model.name,
        "options": judging_options(plan.options, (model,)),
        "prompt": {"name": prompt.prompt_id, "digest": prompt.digest},
        "bank": sha256(bank_bytes(bank.nuggets, "judge")),
        "pool": sha256(pool_jsonl(pool)),
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
    }
    return NuggetAsking(plan, model, prompt, bank, pool, turns, configured)


def check_asking(asking: NuggetAsking, turn_ids: Collection[str], what: str, command: str) -> None:
    """Refuse questions that cannot be asked, and a folder with answers to others.

    Args:
        asking: What was read.
        turn_ids: The turns of the responses to ask about.
        what: What the answers are called.
        command: The command that writes them.

    Raises:
        UsageError: No nugget is of the pool, the prompt shows turns that nothing tells, or the folder is that of an
            input.
        InputError: The folder holds other results.
    """
    plan, prompt = asking.plan, asking.prompt
    if not turn_ids:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    unknown = sorted(set(turn_ids) - asking.turns.keys(), key=natural_key)
    if needs_turn(prompt) and unknown and plan.topics is None:
        raise UsageError(f"{prompt.prompt_id}: shown with the conversation, so a topics file is needed (--topics)")
    if needs_turn(prompt) and unknown:
        raise UsageError(f"{plan.topics}: lacks turns that {prompt.prompt_id} shows: {', '.join(unknown[:5])}")
    out = Path(plan.out)
    check_apart(out, [pool_file(Path(plan.pool)), Path(plan.bank)])
    if (out / MANIFEST).exists():
        raise InputError(f"{out}: holds the results of `judge run`: choose another --out")
    path = out / NUGGETS
    if not path.exists():
        return
    try:
        earlier = msgspec.json.decode(read_stored(path)).get("configuration", {})
    except (msgspec.MsgspecError, UnicodeDecodeError, AttributeError) as error:
        raise InputError(f"{path}: not as `{command}` writes it: choose another --out") from error
    now = msgspec.json.decode(msgspec.json.encode(asking.configured))
    changed = [name for name in now if not isinstance(earlier, dict) or earlier.get(name) != now[name]]
    if changed:
        raise InputError(f"{out}: holds {what} made with another {', another '.join(changed)}: choose another --out")


def answers_of(
    asking: NuggetAsking,
    tasks: Sequence[Task],
    unfinished: bytes,
    record: str,
    report: Callable[[Progress], None] | None,
    fetching: Fetching | None,
) -> NuggetAnswers:
    """Ask the judge, or recall what the journal holds.

    Args:
        asking: What was read.
        tasks: The questions.
        unfinished: The manifest of the folder until all is asked.
        record: The list of the files of the folder.
        report: Called after each answer.
        fetching: Called while a model is fetched.

    Raises:
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    plan, out, model = asking.plan, Path(asking.plan.out), asking.model
    make_folder(out)
    account = Account()
    with open_journal(out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
        model.prepare(fetching or (lambda what, done, total: None))
        # Left by a run that is stopped too, so that nothing else is asked into its folder.
        replace_folder(out, {NUGGETS: unfinished}, record, more=True)
        results = ask(
            (model,),
            tasks,
            journal,
            asking.pool,
            turns=asking.turns,
            settings=plan.settings,
            report=report,
            fetching=fetching,
            account=account,
            folder=out,
        )
        notes = (*bank_notes(plan.bank), *model_notes(results), *filler_notes((model.name,), journal))
    return NuggetAnswers(results, account.rows()[0], notes)


def forecast_asking(asking: NuggetAsking, tasks: Sequence[Task]) -> ModelForecast:
    """What asking would send beyond what the journal in the output folder holds, and the shared one."""
    with JournalView(paid_journals(Path(asking.plan.out) / JOURNAL, asking.plan.journal)) as journal:
        counted = forecasts((asking.model,), tasks, journal, asking.pool, asking.turns)
    (row,) = model_forecasts(counted, asking.plan.settings, asking.plan.options.max_tokens)
    return row


def with_progress(
    name: str,
    report: Callable[[Progress], None] | None,
    asking: Callable[[Callable[[Progress], None], Fetching], _Row],
) -> _Row:
    """Call what asks, with a bar in a notebook or on a terminal, elsewhere with lines now and then.

    Args:
        name: The judge.
        report: Called after each answer too.
        asking: What asks.
    """
    with ProgressLine(sys.stderr) as line, Reporter(name, line, report) as reporter:
        return asking(reporter, FetchReporter(line))


def asking_manifest(asking: NuggetAsking, status: str, facts: dict[str, Any]) -> bytes:
    """What the answers were made of, and what came of it; the same bytes for the same answers."""
    head = {"judge_version": __version__, "status": status, "configuration": asking.configured}
    return json_bytes({**head, **facts})
