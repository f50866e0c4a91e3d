"""The whole line in one call: what `judge run` does, for use from Python."""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.assess import Forecast, Loop, Progress, Settings, Task, assess, tasks
from judge.certificate import Certificate, Statement, match_run, read_certificate, statement
from judge.criteria import DEFAULT_VARIANTS, find_criterion
from judge.errors import InputError, UsageError
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
from judge.models import Model, ModelOptions, open_model
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
    model: Model
    tasks: tuple[Task, ...]
    certificate: Certificate | None = None

    @property
    def expectation(self) -> Statement | None:
        """What the certificate says of the plan, as far as can be known before anything is asked."""
        if self.certificate is None:
            return None
        options = msgspec.to_builtins(self.plan.options)
        found = match_run(self.certificate, self.criteria, self.model.name, _presentable(options))
        return statement(self.certificate, found)


class Outcome(msgspec.Struct, frozen=True):
    """What a run of the whole line gave."""

    out: Path
    pool: Pool
    criteria: tuple[Criterion, ...]
    results: tuple[Judgment | Failure, ...]
    leaderboard: tuple[LeaderboardRow, ...]
    statement: Statement | None = None
    """What the certificate says, where there is one."""

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
    criteria = choose_criteria(plan.criteria, plan.prompts)
    certificate = read_certificate(Path(plan.certificate)) if plan.certificate is not None else None
    topics = read_topics(Path(plan.topics)) if plan.topics is not None else None
    blind = [criterion.prompt_id for criterion in criteria if needs_turn(criterion)]
    if blind and topics is None:
        raise UsageError(f"{', '.join(blind)}: shown with the conversation, so a topics file is needed (--topics)")
    model = open_model(plan.model or os.environ.get("JUDGE_MODEL") or DEFAULT_MODEL, plan.options)
    model.check(criteria)
    if plan.settings.max_cost is not None and model.price() is None:
        raise UsageError(f"the price of {model.name} is not known here, so a budget cannot be kept (--max-cost)")
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
    return Prepared(
        plan=plan,
        out=Path(plan.out or plan.extend or DEFAULT_OUT),
        submitted=submitted,
        pool=pool,
        criteria=criteria,
        turns=turns,
        model=model,
        tasks=spread(tasks(pool, criteria), plan.limit),
        certificate=certificate,
    )


def forecast(prepared: Prepared) -> Forecast:
    """What carrying out a plan would send, given what its journal already holds; nothing is written."""
    path = prepared.out / JOURNAL
    with Journal(None) as journal:
        if path.exists():
            journal.adopt(path)
        loop = Loop(prepared.model, journal, prepared.pool, prepared.turns, prepared.plan.settings)
        return loop.forecast(prepared.tasks)


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
    plan, out, pool, model = prepared.plan, prepared.out, prepared.pool, prepared.model
    submitted, criteria = prepared.submitted, prepared.criteria
    extended = Path(plan.extend) if plan.extend is not None else None
    configured = configuration(
        submitted,
        pool,
        criteria,
        model.name,
        _judging_options(plan),
        Path(plan.topics) if plan.topics else None,
        earlier_runs(extended) if extended else {},
    )
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
        model.prepare(fetching or (lambda what, done, total: None))
        write_manifest(out, plan.argv, configured, "unfinished", submitted, pool)
        if changed:
            clear_results(out)
        write_pool(out, submitted, pool)
        results = assess(
            prepared.tasks, model, journal, pool, turns=prepared.turns, settings=plan.settings, report=report
        )
        rows = leaderboard(pool, results, criteria, expected=_expected(prepared))
        said = _statement(prepared, results)
        outcome = Outcome(out, pool, criteria, tuple(results), tuple(rows), said)
        write_results(out, results, criteria, rows, outcome.banner)
        asked = {"limit": plan.limit, "judgments": len(prepared.tasks)}
        status = "complete" if plan.limit is None else "trial"
        write_manifest(out, plan.argv, configured, status, submitted, pool, results, asked, said)
    return outcome


def run(plan: Plan, report: Callable[[Progress], None] | None = None) -> Outcome:
    """Do the whole line: read, check, pool, judge, write.

    Raises:
        JudgeError: As `prepare` and `carry_out` raise it.
    """
    return carry_out(prepare(plan), report)


def choose_criteria(names: Sequence[str] | None, prompts: Sequence[str]) -> tuple[Criterion, ...]:
    """The criteria to judge, by name: each with the prompt given for it, else with its default.

    Raises:
        UsageError: An unknown criterion, or two prompts for one: comparing prompts is calibration's job.
    """
    chosen: dict[str, Criterion] = {}
    for prompt in prompts:
        criterion = find_criterion(prompt)
        if criterion.name in chosen:
            raise UsageError(
                f"two prompts for {criterion.name}: {chosen[criterion.name].prompt_id} and {criterion.prompt_id}; "
                "judge each into an output folder of its own and compare them with `judge calibrate`"
            )
        chosen[criterion.name] = criterion
    for name in names if names is not None else () if chosen else DEFAULT_CRITERIA:
        if name not in DEFAULT_VARIANTS:
            raise UsageError(f"no criterion called {name!r}: there are {', '.join(sorted(DEFAULT_VARIANTS))}")
        if name not in chosen:
            chosen[name] = find_criterion(f"{name}/{DEFAULT_VARIANTS[name]}")
    return tuple(chosen[name] for name in sorted(chosen))


def spread(wanted: Sequence[Task], limit: int | None) -> tuple[Task, ...]:
    """At most `limit` tasks a criterion, evenly spaced over the pool so that a trial sees every topic."""
    if limit is None:
        return tuple(wanted)
    groups: dict[str, list[Task]] = {}
    for task in wanted:
        groups.setdefault(task.criterion.digest, []).append(task)
    return tuple(
        group[place * len(group) // size]
        for group in groups.values()
        for size in (min(limit, len(group)),)
        for place in range(size)
    )


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
    found = match_run(prepared.certificate, prepared.criteria, prepared.model.name, options, returned)
    return statement(prepared.certificate, found)


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
