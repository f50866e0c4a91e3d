"""The whole line in one call: what `judge run` does, for use from Python."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.assess import Forecast, Progress, Settings
from judge.certificate import Certificate, Statement, match_run, read_certificate, statement
from judge.criteria import choose_prompts
from judge.crowd.notes import JuryNotes
from judge.dialogue import Task, spread, tasks
from judge.errors import InputError, UsageError
from judge.families import read_families
from judge.ids import natural_key
from judge.intake import Submitted, make_pool, read_runs, turns_by_id
from judge.journal import Journal
from judge.leaderboard import leaderboard
from judge.manifest import (
    GROWING,
    JOURNAL,
    check_folder,
    configuration,
    earlier_runs,
    without_credentials,
    write_manifest,
)
from judge.members import Jury, ask, forecasts, make_jury, open_models
from judge.models import Model, ModelOptions
from judge.outputs import UNCALIBRATED, clear_results, read_previous_pool, write_pool, write_results
from judge.prompt import needs_turn
from judge.records import Criterion, Failure, Judgment, LeaderboardRow, OverLimit, Pool, TokenRule, Turn
from judge.runs import rules_of
from judge.topics import read_topics

DEFAULT_CRITERIA = ("groundedness", "naturalness")
"""Those that need no conversation."""
DEFAULT_MODEL = "local/qwen2.5-1.5b"
DEFAULT_OUT = Path("judge-out")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `judge run` can be told; paths may be strings."""

    runs: Path | str
    """Folder of run files, or one file."""
    out: Path | str | None = None
    """Output folder; by default that of `extend`, else `judge-out`."""
    topics: Path | str | None = None
    passages: Sequence[Path | str] | None = None
    """The collection's passage files; if given, only their texts count as evidence."""
    criteria: Sequence[str] | None = None
    """Criteria judged with their default prompts; by default groundedness and naturalness, or those of `prompts`."""
    prompts: Sequence[str] = ()
    """Prompts as `criterion/variant` or paths, in place of their criterion's default."""
    model: str | None = None
    """`backend/model`; by default the environment's JUDGE_MODEL, else a small local model."""
    jury: str | None = None
    """A key of JURIES: several models, prompts of a criterion, or samples are one judge."""
    models: Sequence[str] = ()
    """Models of the jury; by default one, `model`."""
    samples: int = 1
    """How often each member of the jury is asked, each time as a member of its own."""
    families: Path | str | None = None
    """Run or judge, a tab and the family of models behind it; a jury is warned of its own."""
    options: ModelOptions = ModelOptions()
    settings: Settings = Settings()
    format: str | None = None
    depth: int = 1
    token_rule: TokenRule = "bare"
    token_limit: int = 250
    over_limit: OverLimit = "flag"
    extend: Path | str | None = None
    """An earlier output folder whose pool is added to."""
    limit: int | None = None
    """Judge only this many responses a criterion, spread over the pool."""
    replace: bool = False
    """Write over results of another configuration."""
    certificate: Path | str | None = None
    """What `judge calibrate` wrote; the outputs say whether this run is what it certifies."""
    argv: Sequence[str] = ()
    """The command line, for the manifest."""


class Prepared(msgspec.Struct, frozen=True):
    """A plan with its inputs read, checked and pooled; nothing has been written or sent."""

    plan: Plan
    out: Path
    submitted: Submitted
    pool: Pool
    criteria: tuple[Criterion, ...]
    turns: dict[str, Turn] | None
    models: tuple[Model, ...]
    """One, but for a jury."""
    tasks: tuple[Task, ...]
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
    def expectation(self) -> Statement | None:
        """What the certificate says of the plan, as far as can be known before anything is asked."""
        if self.certificate is None:
            return None
        options = msgspec.to_builtins(self.plan.options)
        found = match_run(self.certificate, self.criteria, self.judge, _presentable(options))
        return statement(self.certificate, found, self.criteria)


class Outcome(msgspec.Struct, frozen=True):
    """What a run of the whole line gave."""

    out: Path
    pool: Pool
    criteria: tuple[Criterion, ...]
    results: tuple[Judgment | Failure, ...]
    leaderboard: tuple[LeaderboardRow, ...]
    statement: Statement | None = None
    """What the certificate says, where there is one."""
    notes: JuryNotes | None = None
    """What is to be said of a jury."""

    @property
    def banner(self) -> str:
        """What stands over every output."""
        return self.statement.banner if self.statement else UNCALIBRATED

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The judgments that are missing."""
        return tuple(one for one in self.results if isinstance(one, Failure))


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
    topics = read_topics(Path(plan.topics)) if plan.topics is not None else None
    blind = [criterion.prompt_id for criterion in shown if needs_turn(criterion)]
    if blind and topics is None:
        raise UsageError(f"{', '.join(blind)}: shown with the conversation, so a topics file is needed (--topics)")
    names = plan.models or (plan.model or os.environ.get("JUDGE_MODEL") or DEFAULT_MODEL,)
    models = open_models(names, plan.options, shown, plan.settings)
    submitted = read_runs(
        plan.runs,
        topics,
        format=plan.format,
        depth=plan.depth,
        token_rule=plan.token_rule,
        token_limit=plan.token_limit,
    )
    pool = make_pool(
        submitted,
        plan.passages,
        over_limit=plan.over_limit,
        previous=read_previous_pool(Path(plan.extend)) if plan.extend is not None else None,
    )
    if not pool.responses:
        raise InputError("no response can be judged: every one was excluded", submitted.problems)
    turns = turns_by_id(topics) if topics is not None else None
    unknown = sorted({one.turn_id for one in pool.responses} - (turns or {}).keys(), key=natural_key)
    if blind and unknown:
        raise UsageError(
            f"{plan.topics}: lacks turns of the pool that {', '.join(blind)} shows: {', '.join(unknown[:5])}"
        )
    jury = None
    if plan.jury is not None:
        runs = [run.run_id for run in submitted.runs]
        jury = make_jury(plan.jury, models, prompts, plan.samples, families, runs, plan.options.temperature)
    criteria = jury.criteria if jury else shown
    return Prepared(
        plan=plan,
        out=Path(plan.out or plan.extend or DEFAULT_OUT),
        submitted=submitted,
        pool=pool,
        criteria=criteria,
        turns=turns,
        models=models,
        tasks=spread(tasks(pool, criteria), plan.limit),
        certificate=certificate,
        jury=jury,
    )


def forecast(prepared: Prepared) -> tuple[tuple[Model, Forecast], ...]:
    """What carrying out a plan would send to each model, given what its journal holds; nothing is written."""
    path, settings = prepared.out / JOURNAL, prepared.plan.settings
    with Journal(None) as journal:
        if path.exists():
            journal.adopt(path)
        return forecasts(prepared.models, prepared.asked, journal, prepared.pool, prepared.turns, settings)


def carry_out(
    prepared: Prepared,
    report: Callable[[Progress], None] | None = None,
    fetching: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Ask the judge and write the output folder.

    Args:
        prepared: From `prepare`.
        report: Called after each judgment.
        fetching: Called while a model is fetched, with what, the bytes done and the bytes in all.

    Raises:
        InputError: The output folder cannot be used or holds results of another configuration.
        OperationalError: The run stopped early; the same call goes on from there.
    """
    plan, out, pool, jury = prepared.plan, prepared.out, prepared.pool, prepared.jury
    submitted, criteria = prepared.submitted, prepared.criteria
    extended = Path(plan.extend) if plan.extend is not None else None
    configured = configuration(
        submitted,
        pool,
        criteria,
        prepared.judge,
        _judging_options(plan),
        Path(plan.topics) if plan.topics else None,
        earlier_runs(extended) if extended else {},
    )
    if jury is not None:
        configured["jury"] = jury.configuration()
    in_place = extended is not None and extended.resolve() == out.resolve()
    changed = check_folder(
        out,
        configured,
        trial=plan.limit is not None,
        replace=plan.replace,
        may_differ=GROWING if in_place else (),
    )
    with Journal(out / JOURNAL) as journal:
        if extended is not None and not in_place and (extended / JOURNAL).exists():
            journal.adopt(extended / JOURNAL)
        prepared.models[0].prepare(fetching or (lambda what, done, total: None))
        write_manifest(out, plan.argv, configured, "unfinished", submitted, pool)
        if changed:
            clear_results(out)
        write_pool(out, submitted, pool)
        answers = ask(
            prepared.models,
            prepared.asked,
            journal,
            pool,
            turns=prepared.turns,
            settings=plan.settings,
            report=report,
            fetching=fetching,
        )
        results, notes = jury.decide(answers) if jury is not None else (answers, None)
        rows = leaderboard(pool, results, criteria, expected=_expected(prepared))
        said = _statement(prepared, results)
        outcome = Outcome(out, pool, criteria, tuple(results), tuple(rows), said, notes)
        write_results(out, results, criteria, rows, outcome.banner, notes)
        asked = {"limit": plan.limit, "judgments": len(prepared.tasks)}
        status = "complete" if plan.limit is None else "trial"
        write_manifest(out, plan.argv, configured, status, submitted, pool, results, asked, said, notes)
    return outcome


def run(plan: Plan, report: Callable[[Progress], None] | None = None) -> Outcome:
    """Do the whole line: read, check, pool, judge, write.

    Raises:
        JudgeError: As `prepare` and `carry_out` raise it.
    """
    return carry_out(prepare(plan), report)


def _choose(plan: Plan) -> dict[str, list[Criterion]]:
    """The prompts of each criterion: one, but for a jury.

    Raises:
        UsageError: Two prompts for one, or another thing that only a jury can use: comparing is calibration's job.
    """
    chosen = choose_prompts(plan.criteria, plan.prompts, DEFAULT_CRITERIA)
    if plan.jury is not None:
        return chosen
    if plan.models or plan.samples != 1 or plan.families is not None:
        raise UsageError("several models, samples, and families are about juries (--jury)")
    for name, (first, *others) in chosen.items():
        if others:
            raise UsageError(
                f"two prompts for {name}: {first.prompt_id} and {others[0].prompt_id}; "
                "judge each into an output folder of its own and compare them with `judge calibrate`"
            )
    return chosen


def _statement(prepared: Prepared, results: Sequence[Judgment | Failure]) -> Statement | None:
    """What the certificate says of these results; None without one."""
    if prepared.certificate is None:
        return None
    models: dict[str, set[str]] = {}
    for one in results:
        if isinstance(one, Judgment) and one.model:
            models.setdefault(one.criterion, set()).add(one.model)
    returned = {criterion: sorted(names) for criterion, names in models.items()}
    options = _presentable(msgspec.to_builtins(prepared.plan.options))
    found = match_run(prepared.certificate, prepared.criteria, prepared.judge, options, returned)
    return statement(prepared.certificate, found, prepared.criteria)


def _presentable(options: dict[str, Any]) -> dict[str, Any]:
    """The judge's options without credentials."""
    url = options["base_url"]
    return {**options, "base_url": without_credentials(url) if url else None}


def _expected(prepared: Prepared) -> dict[str, Collection[str]]:
    """The turns that each submitted run had to answer: those of the topics, else of the pool; a bank's, its own."""
    every = prepared.turns or {response.turn_id for response in prepared.pool.responses}
    return {run.run_id: every if rules_of(run.format).all_turns else () for run in prepared.submitted.runs}


def _judging_options(plan: Plan) -> dict[str, object]:
    """The options that may change a grade; patience and speed do not."""
    options = _presentable(msgspec.to_builtins(plan.options))
    return {
        **{name: value for name, value in options.items() if name not in {"timeout", "threads"}},
        "depth": plan.depth,
        "over_limit": plan.over_limit,
    }
