"""The whole line in one call: what `judge run` does, for use from Python."""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.criteria import choose_prompts
from judge.ask.dialogue import Task, spread, tasks
from judge.ask.loop import Forecast, Settings
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.prompt import needs_turn
from judge.ask.records import Failure, Judgment
from judge.ask.several import ask, forecasts, open_models
from judge.calibrate.certificate import Certificate, CertificateStatement, match_run, read_certificate, statement
from judge.crowd.members import Jury, make_jury
from judge.crowd.notes import JuryNotes
from judge.errors import InputError, UsageError
from judge.files.folder import replace_folder, same_place
from judge.files.paths import StrPath
from judge.harness.folder import UNCALIBRATED, pool_files, result_files
from judge.harness.judged import compared
from judge.harness.manifest import (
    GROWING,
    JOURNAL,
    MANIFEST,
    RECORD,
    UNFINISHED,
    check_folder,
    configuration,
    manifest_bytes,
)
from judge.harness.pooling import Pooled, Pooling, check_complete, pool_runs
from judge.models.address import without_credentials
from judge.models.families import read_families
from judge.models.journal import Journal
from judge.models.model import Model, ModelOptions
from judge.pool.build import lacking_texts
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.results.leaderboard import leaderboard
from judge.results.rows import LeaderboardRow, RunDifference
from judge.text.ids import natural_key
from judge.text.table import Table

DEFAULT_CRITERIA = ("groundedness", "naturalness")
"""The criteria judged by default; their prompts do not show the conversation."""
DEFAULT_MODEL = "local/qwen2.5-1.5b"
DEFAULT_OUT = Path("judge-out")


class Plan(Pooling, frozen=True, kw_only=True):
    """Everything `judge run` can be told; paths may be strings, and one may stand where several may."""

    out: StrPath | None = None
    """Output folder; by default that of `extend`, else `judge-out`."""
    criteria: Sequence[str] | None = None
    """Criteria judged with their default prompts; by default groundedness and naturalness, or those of `prompts`."""
    prompts: Sequence[StrPath] = ()
    """Prompts as `criterion/variant` or paths, in place of their criterion's default."""
    model: str | None = None
    """`backend/model`; by default the environment's JUDGE_MODEL, else a small local model."""
    jury: str | None = None
    """A key of JURIES; several models, prompts of a criterion, or samples then act as one judge."""
    models: Sequence[str] = ()
    """Models of the jury; by default `model` alone."""
    samples: int = 1
    """How often each member of the jury is asked; each sample votes as a member of its own."""
    families: StrPath | None = None
    """Run or judge, a tab and the family of models behind it; warnings name jury members that share or judge one."""
    options: ModelOptions = ModelOptions()
    """How each model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Judge only this many responses per criterion, spread over the pool."""
    replace: bool = False
    """Write over results of another configuration in `out`."""
    certificate: StrPath | None = None
    """What `judge calibrate` wrote; the outputs say whether this run is what it certifies."""
    argv: Sequence[str] = ()
    """The command line, for the manifest."""


class Prepared(Record, frozen=True):
    """A plan with its inputs read, checked and pooled; nothing has been written or sent."""

    plan: Plan
    out: Path
    pooled: Pooled
    criteria: tuple[Criterion, ...]
    models: tuple[Model, ...]
    """One model, or several for a jury."""
    tasks: tuple[Task, ...]
    """The judgments to make: a response under a prompt each."""
    configured: dict[str, Any]
    """Everything that determines the judgments, for the manifest."""
    certificate: Certificate | None = None
    jury: Jury | None = None

    @property
    def judge(self) -> str:
        """How records name the judge."""
        return self.jury.name if self.jury else self.models[0].name

    @property
    def asked(self) -> tuple[Task, ...]:
        """What each model is asked."""
        return self.jury.tasks(self.tasks) if self.jury else self.tasks

    @property
    def expectation(self) -> CertificateStatement | None:
        """What the certificate says of the plan before any model is asked; None without a certificate."""
        if self.certificate is None:
            return None
        options = msgspec.to_builtins(self.plan.options)
        matches = match_run(self.certificate, self.criteria, self.judge, _presentable(options))
        return statement(self.certificate, matches, self.criteria)


class Outcome(Record, frozen=True):
    """What the whole line gave: the pool, the results and the leaderboard."""

    out: Path
    pool: Pool
    criteria: tuple[Criterion, ...]
    results: Table[Judgment | Failure]
    leaderboard: Table[LeaderboardRow]
    differences: Table[RunDifference]
    """Every two runs."""
    statement: CertificateStatement | None = None
    """What the certificate says, where there is one."""
    notes: JuryNotes | None = None
    """How far the members of a jury agree, and what each of them said; None without a jury."""

    @property
    def banner(self) -> str:
        """What stands over every output."""
        return self.statement.banner if self.statement else UNCALIBRATED

    @property
    def failures(self) -> Table[Failure]:
        """The judgments that are missing."""
        return Table(result for result in self.results if isinstance(result, Failure))


def prepare(plan: Plan) -> Prepared:
    """Read, check and pool everything a plan names.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prompts = _choose(plan)
    shown = tuple(prompt for several in prompts.values() for prompt in several)
    certificate = read_certificate(Path(plan.certificate)) if plan.certificate is not None else None
    families = read_families(Path(plan.families)) if plan.families is not None else {}
    with_turn = [criterion.prompt_id for criterion in shown if needs_turn(criterion)]
    if with_turn and plan.topics is None:
        raise UsageError(f"{', '.join(with_turn)}: shown with the conversation, so a topics file is needed (--topics)")
    names = plan.models or (plan.model or os.environ.get("JUDGE_MODEL") or DEFAULT_MODEL,)
    models = open_models(names, plan.options, shown, plan.settings)
    pooled = pool_runs(plan)
    pool, turns = pooled.pool, pooled.turns
    if not pool.responses:
        raise InputError("no response can be judged: every one was excluded", pooled.submitted.problems)
    if plan.missing_passages == "fail" and any("passages" in prompt.inputs for prompt in shown):
        check_complete(pool)
    unknown = sorted({response.turn_id for response in pool.responses} - (turns or {}).keys(), key=natural_key)
    if with_turn and unknown:
        raise UsageError(
            f"{plan.topics}: lacks turns of the pool that {', '.join(with_turn)} shows: {', '.join(unknown[:5])}"
        )
    jury = None
    if plan.jury is not None:
        runs = [run.run_id for run in pooled.submitted.runs if run.selected]
        jury = make_jury(plan.jury, models, prompts, plan.samples, families, runs, plan.options.temperature)
    criteria = jury.criteria if jury else shown
    judge = jury.name if jury else models[0].name
    configured = configuration(pooled.configured, criteria, judge, _judging_options(plan))
    if jury is not None:
        configured["jury"] = jury.configuration()
    wanted = tasks(pool, criteria, partial=plan.missing_passages == "judge-without")
    return Prepared(
        plan=plan,
        out=Path(plan.out or plan.extend or DEFAULT_OUT),
        pooled=pooled,
        criteria=criteria,
        models=models,
        tasks=spread(wanted, plan.limit),
        configured=configured,
        certificate=certificate,
        jury=jury,
    )


def forecast(prepared: Prepared) -> tuple[tuple[Model, Forecast], ...]:
    """What carrying out a plan would send to each model beyond what the journals hold; nothing is written.

    Raises:
        InputError: The output folder exists and would be refused.
    """
    if prepared.out.exists():
        _check_folder(prepared)
    plan, settings = prepared.plan, prepared.plan.settings
    folders = [prepared.out, *([Path(plan.extend)] if plan.extend is not None else ())]
    with Journal(None) as journal:
        for path in dict.fromkeys(folder.resolve() / JOURNAL for folder in folders):
            if path.exists():
                journal.adopt(path)
        pooled = prepared.pooled
        return forecasts(prepared.models, prepared.asked, journal, pooled.pool, pooled.turns, settings)


def carry_out(
    prepared: Prepared,
    report: Callable[[Progress], None] | None = None,
    fetching: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Ask the judge and write the output folder.

    Args:
        prepared: From `prepare`.
        report: Called after each judgment.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.

    Raises:
        InputError: The output folder cannot be used or holds results of another configuration.
        OperationalError: The run stopped early; the same call goes on from there.
    """
    plan, out, jury = prepared.plan, prepared.out, prepared.jury
    pooled, criteria, pool = prepared.pooled, prepared.criteria, prepared.pooled.pool
    changed = _check_folder(prepared)
    with Journal(out / JOURNAL) as journal:
        if plan.extend is not None and not _in_place(plan, out) and (Path(plan.extend) / JOURNAL).exists():
            journal.adopt(Path(plan.extend) / JOURNAL)
        prepared.models[0].prepare(fetching or (lambda what, done, total: None))
        files = pool_files(pooled)
        unfinished = manifest_bytes(plan.argv, prepared.configured, UNFINISHED, pooled.submitted, pool)
        replace_folder(out, {MANIFEST: unfinished} | files, RECORD, more=not changed)
        replies = ask(
            prepared.models,
            prepared.asked,
            journal,
            pool,
            turns=pooled.turns,
            settings=plan.settings,
            report=report,
            fetching=fetching,
        )
        results, notes = jury.decide(replies) if jury is not None else (replies, None)
        rows = leaderboard(pool, results, criteria)
        certified = _statement(prepared, results)
        pairs = compared(pool, results, criteria)
        outcome = Outcome(out, pool, criteria, Table(results), rows, pairs, certified, notes)
        partial = _on_partial_evidence(pool, results, criteria)
        files |= result_files(results, criteria, rows, outcome.banner, notes, partial, pairs)
        asked = {"limit": plan.limit, "judgments": len(prepared.tasks)}
        status = "complete" if plan.limit is None else "trial"
        files[MANIFEST] = manifest_bytes(
            plan.argv, prepared.configured, status, pooled.submitted, pool, results, asked, certified, notes
        )
        replace_folder(out, files, RECORD)
    return outcome


def _check_folder(prepared: Prepared) -> bool:
    """Check the output folder, and say whether it holds results of another configuration."""
    plan, out = prepared.plan, prepared.out
    return check_folder(
        out,
        prepared.configured,
        trial=plan.limit is not None,
        replace=plan.replace,
        may_differ=GROWING if _in_place(plan, out) else (),
    )


def run(plan: Plan, report: Callable[[Progress], None] | None = None, *, progress: bool = False) -> Outcome:
    """Do the whole line: read, check, pool, judge, write.

    Args:
        plan: What to do.
        report: Called after each judgment.
        progress: Show a bar in a notebook or on a terminal, elsewhere a line now and then.

    Raises:
        JudgeError: `prepare` or `carry_out` failed; they say how.
    """
    prepared = prepare(plan)
    with contextlib.ExitStack() as shown:
        fetching = shown.enter_context(FetchReporter(sys.stderr)) if progress else None
        if progress:
            report = shown.enter_context(Reporter(prepared.judge, sys.stderr, report))
        return carry_out(prepared, report, fetching)


def _choose(plan: Plan) -> dict[str, list[Criterion]]:
    """The prompts of each criterion: one, or several for a jury.

    Raises:
        UsageError: Two prompts for one criterion, or options of a jury, without a jury; calibration compares prompts.
    """
    chosen = choose_prompts(plan.criteria, plan.prompts, DEFAULT_CRITERIA)
    if plan.jury is not None:
        return chosen
    if plan.models or plan.samples != 1 or plan.families is not None:
        raise UsageError("several models, samples and families need a jury (--jury)")
    for name, (first, *rest) in chosen.items():
        if rest:
            raise UsageError(
                f"two prompts for {name}: {first.prompt_id} and {rest[0].prompt_id}; "
                "judge each into an output folder of its own and compare them with `judge calibrate`"
            )
    return chosen


def _statement(prepared: Prepared, results: Sequence[Judgment | Failure]) -> CertificateStatement | None:
    """What the certificate says of these results; None without one."""
    if prepared.certificate is None:
        return None
    models: dict[str, set[str]] = {}
    for result in results:
        if isinstance(result, Judgment) and result.model:
            models.setdefault(result.criterion, set()).add(result.model)
    returned = {criterion: sorted(names) for criterion, names in models.items()}
    options = _presentable(msgspec.to_builtins(prepared.plan.options))
    matches = match_run(prepared.certificate, prepared.criteria, prepared.judge, options, returned)
    return statement(prepared.certificate, matches, prepared.criteria)


def _presentable(options: dict[str, Any]) -> dict[str, Any]:
    """The judge's options without credentials."""
    url = options["base_url"]
    return {**options, "base_url": without_credentials(url) if url else None}


def _on_partial_evidence(
    pool: Pool, results: Sequence[Judgment | Failure], criteria: Sequence[Criterion]
) -> dict[str, int]:
    """How many grades rest on some of the used passages only, by criterion whose prompt shows passages."""
    shown = {criterion.name for criterion in criteria if "passages" in criterion.inputs}
    partly = {response.response_id for response in pool.responses if lacking_texts(response, pool)}
    return Counter(
        result.criterion
        for result in results
        if isinstance(result, Judgment) and result.criterion in shown and result.response_id in partly
    )


def _in_place(plan: Plan, out: Path) -> bool:
    """Whether the output folder is the one whose pool is extended."""
    return plan.extend is not None and same_place(Path(plan.extend), out)


def _judging_options(plan: Plan) -> dict[str, object]:
    """The judge's options that may change a grade; patience and speed do not."""
    options = _presentable(msgspec.to_builtins(plan.options))
    return {name: value for name, value in options.items() if name not in {"timeout", "threads"}}
