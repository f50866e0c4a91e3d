"""The plan of `judge run`, and its inputs, read, checked and pooled."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.asking import JOURNAL, JournalPlace, Judge
from judge.ask.blocks import needs_turn
from judge.ask.cascade import CascadeJudge, check_cascade, open_first, parse_cascade
from judge.ask.criteria import choose_prompts
from judge.ask.group import combine
from judge.ask.opening import all_options, check_turns, default_model, judging_options, open_judge
from judge.ask.settings import Settings
from judge.ask.subjects import check_unit, unit_of
from judge.ask.tasks import Tasks, tasks
from judge.calibrate.certificate import Certificate, CertificateStatement, match_run, read_certificate, statement
from judge.calibrate.recheck import parse_part
from judge.crowd.members import Jury, make_jury
from judge.errors import InputError, UsageError
from judge.files.folder import same_place
from judge.files.paths import StrPath, file_in
from judge.harness.engine import EngineName, check_engine
from judge.harness.manifest import GROWING, check_folder, configuration
from judge.harness.options import DEFAULT_CRITERIA
from judge.harness.pooling import Pooled, Pooling, check_complete, pool_runs
from judge.models.journal import check_database
from judge.models.model import Model, ModelOptions
from judge.records import Criterion, Record
from judge.runs.families import read_families
from judge.text.ids import Cluster, check_cluster
from judge.text.steps import Steps, quiet

DEFAULT_OUT = Path("judge-out")


class Plan(Pooling, frozen=True, kw_only=True):
    """Everything `judge run` can be told; paths may be strings, and one may stand where several may."""

    out: StrPath | None = None
    """Output folder; by default that of `extend`, else `judge-out`."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    criteria: Sequence[str] = ()
    """Criteria judged with their default prompts; by default groundedness and naturalness, or those of `prompts`."""
    prompts: Sequence[StrPath] = ()
    """Prompts as `criterion/variant` or paths, in place of their criterion's default."""
    together: bool = False
    """Ask for all criteria of a response in one call; each is then a prompt of its own, under its own digest."""
    model: str | Model | None = None
    """`backend/model`, or a `FunctionJudge`; by default the environment's JUDGE_MODEL, else a small local model."""
    jury: str | None = None
    """A key of JURIES; several models, prompts of a criterion, or samples then act as one judge."""
    models: Sequence[str | Model] = ()
    """Models of the jury; by default `model` alone."""
    cascade: str | None = None
    """`CHECKER@LOW:HIGH`: the checker judges first, and `model` is asked only what the checker is not sure of."""
    cascade_url: str | None = None
    """The address of that checker, where it is behind a server."""
    samples: int = 1
    """How often each member of the jury is asked; each sample votes as a member of its own."""
    families: StrPath | None = None
    """Run or judge, a tab and the family of models behind it; warnings name jury members that share or judge one."""
    options: ModelOptions = ModelOptions()
    """How each model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, what may be spent, and prices of your own."""
    engine: EngineName | None = None
    """`ray` spreads the calls over a Ray cluster; by default they are made here. It changes no result."""
    address: str | None = None
    """`HOST:PORT` of the cluster's head; by default the environment's RAY_ADDRESS, else a cluster on this machine."""
    workers: int | None = None
    """Workers of the cluster at once; by default one per CPU, or per node where the judge computes on all cores."""
    limit: int | None = None
    """Judge only this many responses per criterion, spread over the pool."""
    recheck: str | int | None = None
    """Ask this part of the judgments a second time, as `2%` or a number of each prompt's; no grade depends on it."""
    replace: bool = False
    """Write over results of another configuration in `out`."""
    certificate: StrPath | None = None
    """What `judge calibrate` wrote; the outputs say whether this run is what it certifies."""
    cluster: Cluster = "topic"
    """What the leaderboard's intervals and tests are over; it changes no grade."""
    argv: Sequence[str] = ()
    """The command line, for the manifest."""
    chosen: Mapping[str, Any] = {}
    """The options that are not the default, by their names on the command line, for the manifest and `--extend`."""


class RunInputs(Record, frozen=True):
    """A plan with its inputs read, checked and pooled; nothing has been written or sent."""

    plan: Plan
    out: Path
    place: JournalPlace
    """Where the answers are kept; those of the folder that is extended are known already."""
    pooled: Pooled
    criteria: tuple[Criterion, ...]
    judge: Judge
    tasks: Tasks
    """The judgments to make: a response under a prompt each."""
    asked: Tasks
    """What each model is asked."""
    configured: dict[str, Any]
    """Everything that determines the judgments, for the manifest."""
    certificate: Certificate | None = None

    @property
    def jury(self) -> Jury | None:
        """The judge, if it is a jury."""
        return self.judge if isinstance(self.judge, Jury) else None

    def certified(self, returned: Mapping[str, Sequence[str]] | None = None) -> CertificateStatement | None:
        """What the certificate says; None without a certificate.

        Args:
            returned: The models that the provider named, by criterion; None before any was asked.
        """
        certificate, options = self.certificate, all_options(self.plan.options, self.judge.models)
        if certificate is None:
            return None
        matches = [
            match
            for criterion in self.criteria
            for match in match_run(certificate, [criterion], *self.judge.described(criterion, options), returned)
        ]
        return statement(certificate, matches, self.criteria)


def read_run(plan: Plan, *, keys: bool = True, steps: Steps = quiet) -> RunInputs:
    """Read, check and pool everything a plan names.

    Args:
        plan: What to do.
        keys: Refuse a model without its key or address where no journal can have its completions; a dry run needs
            neither.
        steps: Called as the runs are read and pooled.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    _check(plan)
    out = Path(plan.out or plan.extend or DEFAULT_OUT)
    earlier = () if plan.extend is None else (Path(plan.extend) / JOURNAL,)
    place = JournalPlace(out, plan.journal, earlier, plan.settings.max_wait)
    # What a journal holds is recalled without a key.
    keys = keys and not place.journals
    prompts = _choose(plan)
    shown = tuple(prompt for several in prompts.values() for prompt in several)
    unit = unit_of(shown)
    if plan.unit is not None:
        check_unit(shown, plan.unit)
    plan = msgspec.structs.replace(plan, unit=unit)
    certificate = None
    if plan.certificate is not None:
        certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
    families = read_families(Path(plan.families)) if plan.families is not None else {}
    # Without topics only interactive runs have conversations: others are refused before a model is opened.
    early = _pooled(plan, shown, steps) if plan.topics is None and any(map(needs_turn, shown)) else None
    judge = _open(plan, shown, keys=keys)
    pooled = early or _pooled(plan, shown, steps)
    if plan.missing_passages == "fail" and any("passages" in prompt.inputs for prompt in shown):
        check_complete(pooled.pool)
    criteria = shown
    if plan.jury is not None:
        runs = [run.run_id for run in pooled.submitted.runs if run.selected]
        judge = jury = make_jury(plan.jury, judge, prompts, plan.samples, families, runs)
        criteria = jury.criteria
    options = judging_options(plan.options, judge.models)
    wanted = tasks(pooled.pool, criteria, partial=plan.missing_passages == "judge-without")
    wanted = wanted if plan.limit is None else wanted.spread(plan.limit)
    return RunInputs(
        plan=plan,
        out=out,
        place=place,
        pooled=pooled,
        criteria=criteria,
        judge=judge,
        tasks=wanted,
        asked=judge.tasks(wanted),
        configured=configuration(pooled.configured, criteria, judge.name, options) | judge.configuration(),
        certificate=certificate,
    )


def _check(plan: Plan) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: There are some.
    """
    check_cluster(plan.cluster)
    check_engine(plan.engine, plan.address, plan.workers, cascade=plan.cascade is not None)
    if plan.engine is not None and any(isinstance(name, Model) for name in model_names(plan)):
        raise UsageError(f"--engine {plan.engine} opens judges by their names, so it takes no judge of one's own")
    check_database(plan.journal)
    if plan.recheck is not None:
        parse_part(str(plan.recheck))
    several = plan.jury is not None or bool(plan.models)
    check_cascade(plan.cascade, plan.cascade_url, jury=several, together=plan.together)


def model_names(plan: Plan) -> tuple[str | Model, ...]:
    """The models, as the plan or the environment names them."""
    return tuple(plan.models) or (plan.model or default_model(),)


def _open(plan: Plan, criteria: Sequence[Criterion], *, keys: bool) -> Judge:
    """The judge of a plan before a jury is made of it."""
    names = model_names(plan)
    if plan.cascade is None:
        return open_judge(names, plan.options, criteria, plan.settings, keys=keys)
    cascade = parse_cascade(plan.cascade)
    first = open_first(cascade, plan.cascade_url, criteria, plan.options, plan.settings, keys=keys)
    rest = open_judge(names, plan.options, criteria, plan.settings, keys=keys, beside=first.models)
    return CascadeJudge(cascade, first, rest)


def _pooled(plan: Plan, criteria: Sequence[Criterion], steps: Steps) -> Pooled:
    """The pool of a plan, with every turn that prompts show."""
    pooled = pool_runs(plan, steps)
    pool = pooled.pool
    if not pool.responses:
        raise InputError("no response can be judged: every one was excluded", pooled.submitted.problems)
    check_turns(criteria, {response.turn_id for response in pool.responses}, pooled.turns or {}, plan.topics)
    return pooled


def _choose(plan: Plan) -> dict[str, list[Criterion]]:
    """The prompts of each criterion: one, or several for a jury.

    Raises:
        UsageError: Two prompts for one criterion, or options of a jury, without a jury; calibration compares prompts.
            Or the criteria cannot be asked together, as the plan wants.
    """
    chosen = choose_prompts(plan.criteria, plan.prompts, DEFAULT_CRITERIA)
    if plan.together:
        group = combine([prompt for several in chosen.values() for prompt in several])
        chosen = {prompt.name: [prompt] for prompt in group}
    if plan.jury is not None:
        return chosen
    if plan.models or plan.samples != 1 or plan.families is not None:
        raise UsageError(
            "several models, samples and families need a jury (--jury RULE); `judge calibrate` compares models"
        )
    for name, (first, *rest) in chosen.items():
        if rest:
            raise UsageError(
                f"two prompts for {name}: {first.prompt_id} and {rest[0].prompt_id}; "
                "judge each into an output folder of its own and compare them with `judge calibrate`"
            )
    return chosen


def check_out(inputs: RunInputs) -> bool:
    """Check the output folder, and say whether it holds results of another configuration.

    Raises:
        InputError: The folder cannot be used, or holds what this run must not write over.
    """
    plan, out = inputs.plan, inputs.out
    in_place = plan.extend is not None and same_place(Path(plan.extend), out)
    may_differ = GROWING if in_place else ()
    return check_folder(
        out, inputs.configured, trial=plan.limit is not None, replace=plan.replace, may_differ=may_differ
    )
