"""A judge asked which nuggets responses support: what `judge nuggets match` does, for use from Python."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import Account, JudgeAccount
from judge.ask.criteria import find_criterion
from judge.ask.loop import Settings
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.prompt import NUGGET, RENDERER_VERSION, needs_turn
from judge.ask.questions import filler_notes
from judge.ask.returned import model_notes
from judge.ask.several import Fetching, ask, check_prices, forecasts, open_one
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
from judge.harness.nuggets.scoring import read_pool_with_runs
from judge.harness.prepared import judging_options
from judge.models.journal_view import JournalView
from judge.models.journals import check_database, open_journal
from judge.models.model import Model, ModelOptions
from judge.nuggets.forms import bank_bytes, read_bank
from judge.nuggets.matches import MATCH_FAILURES, MATCHES, matches_jsonl
from judge.nuggets.pairs import NuggetPair, check_prompt, label_counts, matched, nugget_pairs, pair_task, spread_pairs
from judge.nuggets.records import MatchedNugget, MatchFailure, NuggetBank
from judge.pool.bank import pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.folder import pool_file
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.ids import natural_key
from judge.text.table import Table

NUGGETS = "nuggets.json"
"""What the matches of the folder were made of."""
RECORD = "matches.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class NuggetMatchPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets match` can be told; paths may be strings."""

    pool: StrPath
    """The output folder with the pool, or its `pool.jsonl`."""
    bank: StrPath
    """The bank of nuggets."""
    model: str
    """The judge, as `backend/model`."""
    out: StrPath
    """The folder for matches and journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    prompt: StrPath = NUGGET
    """The prompt, as `nugget/variant` or a path."""
    topics: StrPath | None = None
    """Topics file, for a prompt that shows the conversation; the pool has that of interactive runs."""
    options: ModelOptions = ModelOptions()
    """How the model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Match only this many pairs, spread over the pool."""


class PreparedMatching(Record, frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    plan: NuggetMatchPlan
    model: Model
    prompt: Criterion
    bank: NuggetBank
    pool: Pool
    turns: dict[str, Turn]
    pairs: tuple[NuggetPair, ...]
    configured: dict[str, Any]
    """Everything that determines the matches."""


class NuggetMatching(Record, frozen=True):
    """The matches of a judge, and what they took."""

    matches: Table[MatchedNugget]
    failures: Table[MatchFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


class NuggetForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    nuggets: int
    forecast: ModelForecast


def prepare_matching(plan: NuggetMatchPlan, *, keys: bool = True) -> PreparedMatching:
    """Read everything a plan names.

    Args:
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has matches of something else; every problem is listed.
    """
    if plan.journal is not None:
        check_database(plan.journal)
    prompt = find_criterion(plan.prompt)
    check_prompt(prompt)
    model = open_one(plan.model, plan.options, (prompt,), plan.settings, keys=keys)
    check_prices((plan.model,), (model,), plan.settings)
    bank = read_bank(plan.bank)
    pool = read_pool_with_runs(Path(plan.pool))
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None) or {}
    pairs = nugget_pairs(pool, bank)
    if not pairs:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    unknown = sorted({pair.response.turn_id for pair in pairs} - turns.keys(), key=natural_key)
    if needs_turn(prompt) and unknown and plan.topics is None:
        raise UsageError(f"{prompt.prompt_id}: shown with the conversation, so a topics file is needed (--topics)")
    if needs_turn(prompt) and unknown:
        raise UsageError(f"{plan.topics}: lacks turns that {prompt.prompt_id} shows: {', '.join(unknown[:5])}")
    configured = {
        "judge": model.name,
        "options": judging_options(plan.options, (model,)),
        "prompt": {"name": prompt.prompt_id, "digest": prompt.digest},
        "bank": sha256(bank_bytes(bank.nuggets, "judge")),
        "pool": sha256(pool_jsonl(pool)),
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
    }
    _check_out(plan, configured)
    return PreparedMatching(plan, model, prompt, bank, pool, turns, spread_pairs(pairs, plan.limit), configured)


def _check_out(plan: NuggetMatchPlan, configured: dict[str, Any]) -> None:
    """Refuse a folder with results of something else; matches of the same are gone on with.

    Raises:
        UsageError: The folder is that of an input.
        InputError: It holds other results.
    """
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
        raise InputError(f"{path}: not as `judge nuggets match` writes it: choose another --out") from error
    now = msgspec.json.decode(msgspec.json.encode(configured))
    changed = [name for name in now if not isinstance(earlier, dict) or earlier.get(name) != now[name]]
    if changed:
        raise InputError(f"{out}: holds matches made with another {', another '.join(changed)}: choose another --out")


def match_nuggets(
    plan: NuggetMatchPlan,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    *,
    progress: bool = False,
) -> NuggetMatching:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    Args:
        plan: What to do.
        report: Called after each match.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    if not progress:
        return _match(prepare_matching(plan), report, fetching)
    with ProgressLine(sys.stderr) as line:
        prepared = prepare_matching(plan)
        with Reporter(prepared.model.name, line, report) as reporter:
            return _match(prepared, reporter, FetchReporter(line))


def forecast_matching(plan: NuggetMatchPlan) -> NuggetForecast:
    """Count what `match_nuggets` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prepared = prepare_matching(plan, keys=False)
    path = Path(plan.out) / JOURNAL
    shared = [] if plan.journal is None else [plan.journal]
    with JournalView([*shared, *([path] if path.exists() else ())]) as journal:
        tasks = [pair_task(pair, prepared.prompt) for pair in prepared.pairs]
        counted = forecasts((prepared.model,), tasks, journal, prepared.pool, prepared.turns)
    (row,) = model_forecasts(counted, plan.settings, plan.options.max_tokens)
    return NuggetForecast(
        len({pair.response.response_id for pair in prepared.pairs}),
        len({pair.nugget.nugget_id for pair in prepared.pairs}),
        row,
    )


def _match(
    prepared: PreparedMatching, report: Callable[[Progress], None] | None, fetching: Fetching | None
) -> NuggetMatching:
    plan, out, model = prepared.plan, Path(prepared.plan.out), prepared.model
    make_folder(out)
    account = Account()
    with open_journal(out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
        model.prepare(fetching or (lambda what, done, total: None))
        # Left by a run that is stopped too, so that nothing else is matched into its folder.
        replace_folder(out, {NUGGETS: _manifest(prepared, "unfinished")}, RECORD, more=True)
        results = ask(
            (model,),
            [pair_task(pair, prepared.prompt) for pair in prepared.pairs],
            journal,
            prepared.pool,
            turns=prepared.turns,
            settings=plan.settings,
            report=report,
            fetching=fetching,
            account=account,
        )
        notes = (*model_notes(results), *filler_notes((model.name,), journal))
    matches, failures = matched(prepared.pairs, results, prepared.prompt)
    status = "complete" if plan.limit is None else "trial"
    files = {
        MATCHES: matches_jsonl(matches),
        MATCH_FAILURES: matches_jsonl(failures),
        NUGGETS: _manifest(prepared, status, matches, failures),
    }
    replace_folder(out, files, RECORD)
    return NuggetMatching(Table(matches), Table(failures), account.rows()[0], notes)


def _manifest(
    prepared: PreparedMatching,
    status: str,
    matches: list[MatchedNugget] | None = None,
    failures: list[MatchFailure] | None = None,
) -> bytes:
    """What the matches were made of, and what came of it; the same bytes for the same matches."""
    reasons: dict[str, int] = {}
    for failure in failures or ():
        reasons[failure.reason] = reasons.get(failure.reason, 0) + 1
    return json_bytes(
        {
            "judge_version": __version__,
            "status": status,
            "configuration": prepared.configured,
            "pairs": len(prepared.pairs),
            "labels": None if matches is None else label_counts(matches),
            "missing": None if failures is None else reasons,
            "models": None if matches is None else sorted({match.model for match in matches if match.model}),
        }
    )
