"""The plan of `judge run`, and its inputs, read, checked and pooled."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import judge.ask.opening as opening
from judge.ask.account import given_price
from judge.ask.asking import CallEngine, JournalPlace, Judge
from judge.ask.criteria import alias_notes, choose_prompts, find_criterion, own_name
from judge.ask.options import JudgeOptions, LoopOptions
from judge.ask.prompt import check_unit, needs_turn, unit_of
from judge.ask.records import JOURNAL, Failure, Judgment, tasks
from judge.calibrate.certificate import Certificate, CertificateStatement, Match, match_run, read_certificate, statement
from judge.calibrate.recheck import parse_part
from judge.calibrate.support import supports_of
from judge.crowd.jury import Jury, juries
from judge.errors import InputError, UsageError
from judge.io.files import file_in
from judge.io.folder import same_place
from judge.io.ids import Cluster
from judge.io.installed import need_extra
from judge.io.plan import OneOf, Option, Positive
from judge.io.steps import Steps, quiet
from judge.io.text import printable
from judge.jobs.manifest import GROWING, check_folder, configuration
from judge.jobs.options import DEFAULT_CRITERIA, usual_criteria
from judge.jobs.parts import parts_of, with_chosen
from judge.jobs.pooling import JudgedPool, Pooled, check_complete, pool_runs
from judge.judges.backends import backend_facts
from judge.judges.model import FREE, Model, ModelOptions
from judge.plugins import need, refuse_absent
from judge.pool.lists import read_families
from judge.records import Criterion
from judge.runs.formats.table_columns import USUAL, Role
from judge.runs.sources import Sources
from judge.units import UNITS

EngineName = Literal["ray"]
"""An engine; it changes no result."""


def check_engine(engine: EngineName | None, address: str | None, workers: int | None) -> None:
    """Refuse options with which no engine can be used; nothing is started."""
    if engine is None:
        if address is not None or workers is not None:
            raise UsageError("--address and --workers are for an engine (--engine ray)")
        return
    refuse_absent(f"engines.{engine}", f"--engine {engine}")
    need_extra("ray", "--engine ray")
    address_of(address)


@contextmanager
def open_engine(
    engine: EngineName | None, address: str | None, workers: int | None, names: Sequence[str], options: ModelOptions
) -> Iterator[CallEngine | None]:
    """What makes the calls of models elsewhere, until the block ends; None where this process makes them."""
    if engine is None:
        yield None
        return
    made = need(f"engines.{engine}", f"--engine {engine}")(address_of(address), workers, names, options)
    with closing(made) as opened:
        yield opened.model


def address_of(address: str | None) -> str | None:
    """The address of a cluster's head, `HOST:PORT`; None where a cluster is to be started here."""
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is None or address == "local":
        return None
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(
            f"{printable(address)}: expected HOST:PORT of a Ray cluster's head; judge has to run on one of its nodes"
        )
    return address


DEFAULT_OUT = Path("judge-out")


class RunOptions(JudgedPool, JudgeOptions, LoopOptions, section="asking"):
    """What `judge run` and `judge requests` can be told alike."""

    model: Annotated[tuple[str | Model, ...], Option(metavar="BACKEND/MODEL", repeat=True)] = ()
    """The judge (default: JUDGE_MODEL, else checker/overlap for groundedness and local/qwen2.5-1.5b for the rest), in
    Python also a `FunctionJudge`; may be repeated for a jury, or once to let a checker judge groundedness."""
    jury: Annotated[
        str | None, OneOf(juries()), Option(section="a jury: each model under each prompt, as one judge")
    ] = None
    """From the members' grades to one."""
    samples: Annotated[Positive, Option(metavar="N")] = 1
    """Ask every member N times, each with a vote of its own."""
    families: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run or judge, tab, family of models behind it: warns of members that share one or judge their own."""
    limit: Annotated[Positive | None, Option(metavar="N", section="the loop")] = None
    """Judge only N responses per criterion, spread over the pool."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR", section="output")] = None
    """Output folder (default judge-out, or that of --extend)."""
    certificate: Annotated[Path | None, Option(metavar="FILE")] = None
    """The `certificate.json` of `judge calibrate`; every output says whether this run is what it certifies."""
    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one."""
    replace: bool = False
    """Write over results of another configuration in --out."""


class Plan(
    RunOptions,
    section="asking",
    main="runs topics passages criteria prompt model base-url column out dry-run limit max-cost",
):
    """Everything `judge run` can be told."""

    engine: Annotated[EngineName | None, Option(section="the loop")] = None
    """Where the calls are made (default: in this process); ray: by workers of a Ray cluster, which share all of these
    limits; results are the same."""
    address: Annotated[str | None, Option(metavar="HOST:PORT")] = None
    """Head of the Ray cluster (default: RAY_ADDRESS, else a cluster on this machine for this run)."""
    workers: Annotated[Positive | None, Option(metavar="N")] = None
    """Workers at once (default: one per CPU of the cluster; one per node for a model that computes there)."""
    recheck: Annotated[str | int | None, Option(metavar="PART")] = None
    """Ask a part of the judgments a second time and say how many differ: a share such as 2%, or a number, of those
    under each prompt."""

    @property
    def judges(self) -> tuple[str | Model, ...]:
        """The models, as the plan or the environment names them; a jury needs no checker of ours."""
        return self.model or opening.default_models()[0 if self.jury is None else -1 :]

    def _check(self) -> None:
        super()._check()
        check_engine(self.engine, self.address, self.workers)
        if self.engine is not None and any(isinstance(name, Model) for name in self.model):
            raise UsageError(f"--engine {self.engine} opens judges by their names, so it takes no judge of one's own")
        if self.recheck is not None:
            parse_part(str(self.recheck))


class RunInputs:
    """A plan with its inputs read, checked and pooled; nothing has been written or sent.

    `keys`: refuse a model without key or address, if it may be asked. `beside`: what is judged of the same runs, whose
    runs and turns are chosen here too.
    """

    certificate: Certificate | None = None
    jury: Jury | None = None
    """The judge, if it is a jury."""
    passages: "RunInputs | None" = None
    """Of a plan about responses and passages: the passages."""

    def __init__(self, plan: Plan, *, keys: bool = True, steps: Steps = quiet, beside: Pooled | None = None) -> None:
        self.out = plan.out or plan.extend or DEFAULT_OUT
        plan, listed = run_parts(plan, self.out)
        earlier = () if plan.extend is None else (plan.extend / JOURNAL,)
        self.place = JournalPlace(self.out, earlier)
        """Where the answers are kept; those of the folder that is extended are known already."""
        # What the user names is checked before runs are read.
        sources = None if plan.criteria or plan.prompts else plan.sources()
        usual = DEFAULT_CRITERIA if sources is None else usual_criteria(sources, plan.profile, plan.format)
        prompts = _choose(plan, usual)
        shown = tuple(chain.from_iterable(prompts.values()))
        unit = unit_of(shown)
        if plan.unit is not None:
            check_unit(shown, plan.unit)
        self.plan = plan = plan.with_values(unit=unit)
        find = plan.sources if listed is None else plan.sources_beside_lists
        if plan.fill is not None and len(prompts) > 1:
            raise UsageError(f"--fill {plan.fill}: grades under one criterion, and {' and '.join(prompts)} are judged")
        if plan.certificate is not None:
            self.certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
        families = read_families(plan.families) if plan.families is not None else {}
        # Without topics only interactive runs have conversations: others are refused before a model is opened.
        early = None
        if plan.topics is None and any(map(needs_turn, shown)):
            sources = sources or find()
            early = _pooled(plan, shown, steps, sources, beside)
        # What a journal holds is recalled without a key.
        self.judge = _open(plan, shown, keys=keys and not self.place.journals)
        sources = sources or find()
        self.pooled = early or _pooled(plan, shown, steps, sources, beside)
        if plan.missing_passages == "fail" and any("passages" in prompt.inputs for prompt in shown):
            check_complete(self.pooled.pool)
        self.criteria = shown
        if plan.jury is not None:
            self.judge = self.jury = Jury(
                aggregator=plan.jury,
                judge=self.judge,
                prompts=prompts,
                samples=plan.samples,
                families=families,
                runs=[run.run_id for run in self.pooled.submitted.runs if run.selected],
            )
            self.criteria = self.jury.criteria
        options = opening.judging_options(plan.options, self.judge.models)
        wanted = tasks(self.pooled.pool, self.criteria, partial=plan.missing_passages == "judge-without")
        self.tasks = wanted if plan.limit is None else wanted.spread(plan.limit)
        """The judgments to make: a response under a prompt each."""
        self.asked = self.tasks if self.jury is None else self.jury.tasks(self.tasks)
        """What each model is asked."""
        self.configured = configuration(self.pooled.configured, self.criteria, self.judge.name, options)
        """Everything that determines the judgments, for the manifest."""
        if self.jury is not None:
            self.configured |= self.jury.configuration()
        self.notes = (*sources.notes, *alias_notes(plan.criteria))
        """In words, what was taken for what."""
        self.left_out = _left_out(plan, usual)
        """In words, what is not judged because nothing here can."""
        if listed is not None:
            self.passages = RunInputs(listed, keys=keys, steps=steps, beside=self.pooled)

    def certified(
        self, returned: Mapping[str, Sequence[str]] | None = None, results: Iterable[Judgment | Failure] | None = None
    ) -> CertificateStatement | None:
        """What the certificate says; None without a certificate.

        `returned`: the models that the provider named, by criterion, and `results` what they said, once there are any.
        """
        certificate = self.certificate
        options = opening.all_options(self.plan.options, self.judge.models)
        if certificate is None:
            return None
        matches: list[Match] = []
        for criterion in self.criteria:
            judge = self.judge.parts.get(criterion.name, self.judge.name)
            matches.extend(match_run(certificate, [criterion], judge, options, returned))
        supports = {} if results is None else supports_of(certificate, self.pooled.pool, results)
        return statement(certificate, matches, self.criteria, supports)


def run_parts(plan: Plan, out: Path) -> tuple[Plan, Plan | None]:
    """As `parts_of`; of two models of which one or both are checkers, each plan has those that it asks.

    A checker that grades passages and no responses takes the passages, whatever the other one is. Else a checker leaves
    the passages to the other model.
    """
    first, listed = parts_of(plan, out)
    checkers = [name for name in plan.model if opening.grades_support(name)]
    if listed is None or plan.jury is not None or len(plan.model) != 2 or not checkers:
        return first, listed
    of_passages = [name for name in checkers if _can_be_asked(name, listed)]
    of_both = [name for name in of_passages if _can_be_asked(name, first)]
    only_passages = [name for name in of_passages if name not in of_both]
    if len(only_passages) == 1:
        graders = tuple(only_passages)
    elif len(checkers) == 1:
        graders = tuple(name for name in plan.model if name not in checkers)
    elif len(of_both) == 1:
        graders = tuple(of_both)
    else:
        return first, listed
    own = tuple(name for name in plan.model if name not in graders)
    if len(checkers) == 1 and own == tuple(checkers) and not _criteria(first) <= {*opening.CHECKED}:
        own = plan.model
    # The folder of the responses records the whole command, which --extend takes over.
    return _asking(first, own).with_values(chosen=plan.chosen), _asking(listed, graders)


def _criteria(plan: Plan) -> set[str]:
    """The names of the criteria that a plan with criteria judges."""
    return {*map(own_name, plan.criteria), *(find_criterion(prompt).name for prompt in plan.prompts)}


def _can_be_asked(name: str | Model, plan: Plan) -> bool:
    """Whether a checker can be asked any criterion of a plan."""
    instead = {one: f"{one}/sentences" for one in opening.CHECKED} if backend_facts(str(name)).checker else {}
    prompts = choose_prompts(plan.criteria, plan.prompts, (), instead)
    criteria = chain.from_iterable(prompts.values())
    return any(opening.takes(name, criterion, plan.options) for criterion in criteria)


def _asking(plan: Plan, models: tuple[str | Model, ...]) -> Plan:
    """A plan with some of its models, and without the prices of the others."""
    prices: list[str] = []
    for text in plan.price:
        priced = {text.rpartition("=")[0]: FREE}
        of_models = [name for name in plan.model if given_price(str(name), priced)]
        # A price of no model at all stays, and is refused.
        if not of_models or not {*models}.isdisjoint(of_models):
            prices.append(text)
    chosen = with_chosen(plan, {"model": models, "price": tuple(prices)})
    return plan.with_values(model=models, price=tuple(prices), chosen=chosen)


def _open(plan: Plan, criteria: Sequence[Criterion], *, keys: bool) -> Judge:
    """The judge of a plan before a jury is made of it."""
    names = plan.judges
    parts = opening.judge_of_each(names, criteria) if plan.jury is None and len(names) == 2 else {}
    used = tuple(dict.fromkeys(parts.values())) or names
    if plan.model and len(used) < len(names):
        raise UsageError(
            f"{' and '.join(map(str, names))}: {used[0]} would judge all of {', '.join(parts)}; name it alone"
        )
    return opening.open_judge(
        used, plan.options, criteria, plan.settings, keys=keys, parts=parts if len(used) == 2 else {}
    )


def _pooled(plan: Plan, criteria: Sequence[Criterion], steps: Steps, sources: Sources, beside: Pooled | None) -> Pooled:
    """The pool of a plan, with every turn that prompts show."""
    _check_columns(criteria, sources)
    pooled = pool_runs(plan, steps, sources, beside)
    pool = pooled.pool
    if not pool.responses:
        raise InputError(UNITS[plan.unit or "response"].words.none_left, pooled.submitted.problems)
    judged = {response.turn_id for response in pool.responses}
    opening.check_turns(criteria, judged, pooled.turns or {}, plan.topics)
    opening.check_references(criteria, judged, pooled.turns or {}, sources.tables.reference if sources.tables else None)
    return pooled


def _check_columns(criteria: Sequence[Criterion], sources: Sources) -> None:
    """Refuse prompts that show what the tables have no column of."""
    if sources.tables is None:
        return
    wanted: tuple[tuple[str, Role, bool], ...] = (
        ("passages", "contexts", sources.tables.evidence),
        ("reference", "reference", sources.tables.reference is not None),
    )
    for name, role, there in wanted:
        showing = [criterion.prompt_id for criterion in criteria if name in criterion.inputs]
        if showing and not there:
            usual = ", ".join(USUAL[role])
            raise UsageError(
                f"{', '.join(showing)}: shows the {role} of each answer, and the table has no such column ({usual}); "
                f"name it: --column {role}=COLUMN"
            )


def _left_out(plan: Plan, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Why nothing here can judge what checkers do not, where the user names neither judge nor criteria."""
    *first, rest = plan.judges
    extra = backend_facts(str(rest)).extra
    unchecked = [name for name in usual if name not in opening.CHECKED]
    if not unchecked or not first or plan.model or plan.criteria or plan.prompts or extra is None:
        return ()
    try:
        need_extra(extra, str(rest))
    except UsageError as missing:
        return (f"{', '.join(unchecked)} is not judged: {missing}; then the same command needs --replace",)
    return ()


def _choose(plan: Plan, usual: tuple[str, ...]) -> dict[str, list[Criterion]]:
    """The prompts of each criterion: one, or several for a jury. A checker needs one by sentences."""
    checks = plan.jury is None and any(backend_facts(str(name)).checker for name in plan.judges)
    instead = {name: f"{name}/sentences" for name in opening.CHECKED} if checks else {}
    default = usual
    if left_out := _left_out(plan, usual):
        default = tuple(name for name in usual if name in opening.CHECKED)
        if not default:
            raise UsageError(f"nothing here can judge {' and '.join(usual)}: {left_out[0]}")
    chosen = choose_prompts(plan.criteria, plan.prompts, default, instead)
    if plan.jury is not None:
        return chosen
    shared = len(plan.model) == 2 and sum(map(opening.grades_support, plan.model)) == 1
    if (len(plan.model) > 1 and not shared) or plan.samples != 1 or plan.families is not None:
        raise UsageError(
            "several models, samples and families need a jury (--jury RULE), but for a checker beside another model; "
            "`judge calibrate` compares models"
        )
    for name, (first, *rest) in chosen.items():
        if rest:
            raise UsageError(
                f"two prompts for {name}: {first.prompt_id} and {rest[0].prompt_id}; "
                "judge each into an output folder of its own and compare them with `judge calibrate`"
            )
    return chosen


def check_out(inputs: RunInputs) -> bool:
    """Check the output folder, and say whether it holds results of another configuration."""
    plan = inputs.plan
    out = inputs.out
    in_place = plan.extend is not None and same_place(plan.extend, out)
    may_differ = GROWING if in_place else ()
    return check_folder(
        out,
        inputs.configured,
        trial=plan.limit is not None,
        replace=plan.replace,
        may_differ=may_differ,
        beside=() if inputs.passages is None else (inputs.passages.out.name,),
    )
