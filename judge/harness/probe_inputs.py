"""The plan of `judge probe`, and the plan with its inputs read, its items drawn and their twins made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.ask.asking import JOURNAL, Judge
from judge.ask.criteria import choose_prompts
from judge.ask.opening import check_turns, default_model, judging_options, open_judge, recalls
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.settings import Settings
from judge.ask.subjects import check_unit, unit_of
from judge.ask.tasks import Task
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import Certificate, read_certificate
from judge.calibrate.probe.drawing import draw_items, is_complete, make_twin, passages_of, twin_response
from judge.calibrate.probe.measured import MARGIN
from judge.calibrate.probe.probes import probes_of
from judge.calibrate.probe.records import KINDS, Inapplicable, Probe, ProbeItem, ProbeKind, Twin
from judge.errors import InputError, UsageError
from judge.files.folder import check_apart, check_outside
from judge.files.paths import JobPlan, StrPath, file_in, paths
from judge.files.stored import read_stored, sha256
from judge.harness.earlier import read_earlier_pool
from judge.harness.pooling import Pooling, pool_runs
from judge.harness.run_inputs import DEFAULT_CRITERIA
from judge.models.journal import check_database
from judge.models.model import ModelOptions
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, JudgedUnit, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.steps import Step, Steps, quiet

SEED = 2023
ITEMS = 30
"""Items that are drawn by default."""


class ProbePlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge probe` can be told; paths may be strings, and one may stand where several may."""

    out: StrPath
    """The folder for tables, picture and journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    folder: StrPath | None = None
    """An output folder of `judge run` or `judge pool`, whose pool is drawn from; its journal is used too."""
    runs: Sequence[StrPath] = ()
    """In place of `folder`: folders of run files, and run files."""
    topics: StrPath | None = None
    """The topics file, for prompts that show the conversation."""
    passages: Sequence[StrPath] = ()
    """With `runs`: the collection's passages."""
    models: Sequence[str] = ()
    """Judges, as `backend/model`; by default the environment's JUDGE_MODEL, else a small local model."""
    criteria: Sequence[str] | None = None
    """Criteria under their default prompts; by default groundedness and naturalness, or those of `prompts`."""
    prompts: Sequence[StrPath] = ()
    """Prompts as `criterion/variant` or paths; each is probed."""
    kinds: Sequence[str] = KINDS
    """Which probes: injection, evidence, invariance."""
    items: int = ITEMS
    """How many responses are drawn."""
    margin: float = MARGIN
    """The shift, in levels, that does not matter."""
    seed: int = SEED
    """Of the draw and of the alterations."""
    options: ModelOptions = ModelOptions()
    """How each model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, what may be spent, and prices of your own."""
    certificate: StrPath | None = None
    """The certificate of one of the judges; a copy that says what the probe found is written into `out`."""
    replace: bool = False
    """Write over results of another configuration in `out`."""


class Posed(NamedTuple):
    """One item under one prompt: as it is without a probe, else its twin."""

    criterion: Criterion
    item: ProbeItem
    probe: Probe | None
    twin: Twin | Inapplicable | None

    @property
    def task(self) -> Task | None:
        """The judgment to make; None where the probe does not apply to the item."""
        if self.probe is None:
            return Task(self.item.response, self.criterion)
        if not isinstance(self.twin, Twin):
            return None
        return Task(twin_response(self.item, self.twin, self.probe.name.replace(" ", "-")), self.criterion)


class ProbeInputs(Record, frozen=True):
    """A plan with its inputs read; nothing has been written or sent."""

    plan: ProbePlan
    judge: Judge
    criteria: tuple[Criterion, ...]
    kinds: tuple[ProbeKind, ...]
    """The kinds of probes, in the order of the tables."""
    items: tuple[ProbeItem, ...]
    drawn_from: Pool
    incomplete: int
    """Responses that could not be drawn, because a used passage has no text."""
    posed: tuple[Posed, ...]
    pool: Pool
    """The passages of items and twins."""
    turns: dict[str, Turn] | None
    certificate: Certificate | None
    configured: dict[str, Any]
    """Everything that determines the results, for the manifest."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What each model is asked, in the order of `posed`, without items that have no twin."""
        return tuple(task for each in self.posed if (task := each.task) is not None)

    @property
    def known(self) -> tuple[Path, ...]:
        """The journal of the judged folder, whose answers need not be paid for again."""
        return () if self.plan.folder is None else (Path(self.plan.folder) / JOURNAL,)


def read_probe(plan: ProbePlan, *, keys: bool = True, steps: Steps = quiet) -> ProbeInputs:
    """Read what a plan names, draw the items and make their twins.

    Args:
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.
        steps: Called as the runs are read and pooled.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    kinds = _check(plan)
    check_database(plan.journal)
    chosen = choose_prompts(plan.criteria, plan.prompts, DEFAULT_CRITERIA)
    criteria = tuple({prompt.digest: prompt for several in chosen.values() for prompt in several}.values())
    _check_criteria(criteria, kinds)
    unit = unit_of(criteria)
    certificate = None
    if plan.certificate is not None:
        certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
    names = tuple(dict.fromkeys(plan.models)) or (default_model(),)
    judge = open_judge(names, plan.options, criteria, plan.settings, keys=keys and not recalls(plan))
    pool, turns = _read(plan, unit, steps)
    check_unit(criteria, pool.unit)
    steps(Step("drawing items and altering them"))
    with_passages = any("passages" in criterion.inputs for criterion in criteria)
    items = _drawn(plan, pool, criteria, turns, with_passages=with_passages)
    posed = tuple(
        Posed(criterion, item, probe, make_twin(probe, item, criterion, plan.seed) if probe is not None else None)
        for criterion in criteria
        for item in items
        for probe in (None, *probes_of(criterion, kinds))
    )
    twins = [each.twin for each in posed if isinstance(each.twin, Twin)]
    return ProbeInputs(
        plan=plan,
        judge=judge,
        criteria=criteria,
        kinds=kinds,
        items=items,
        drawn_from=pool,
        incomplete=sum(not is_complete(response, pool) for response in pool.responses) if with_passages else 0,
        posed=posed,
        pool=Pool((), {**pool.passages, **passages_of(twins)}, ()),
        turns=turns,
        certificate=certificate,
        configured=_configuration(plan, pool, criteria, judge, kinds, certificate),
    )


def _drawn(
    plan: ProbePlan, pool: Pool, criteria: Sequence[Criterion], turns: Mapping[str, Turn] | None, *, with_passages: bool
) -> tuple[ProbeItem, ...]:
    """The items of a probe.

    Raises:
        InputError: None can be drawn.
        UsageError: A prompt shows the conversation, and the turn of an item is not known.
    """
    items = draw_items(pool, plan.items, plan.seed, with_passages=with_passages)
    if not items:
        raise InputError(
            f"{plan.folder or ', '.join(map(str, plan.runs))}: no response can be drawn"
            + ("; --passages FILE gives the texts of the passages" if with_passages and pool.responses else "")
        )
    check_turns(criteria, {item.response.turn_id for item in items}, turns or {}, plan.topics)
    return items


def _check(plan: ProbePlan) -> tuple[ProbeKind, ...]:
    """Refuse options that do not go together; the kinds in the order of the tables.

    Raises:
        UsageError: There are some.
    """
    if (plan.folder is None) == (not plan.runs):
        raise UsageError("expected either an output folder of `judge run` or `judge pool`, or runs (--runs)")
    if plan.folder is not None and plan.passages:
        raise UsageError("--passages is about runs (--runs): the folder has the passages of its pool")
    if plan.folder is not None:
        check_apart(Path(plan.out), [Path(plan.folder)])
    check_outside(Path(plan.out), paths(plan.runs))
    for option, number in (("items", plan.items), ("margin", plan.margin)):
        if not 0 < number < float("inf"):
            raise UsageError(f"--{option} {number}: expected a number above 0")
    if plan.seed < 0:
        raise UsageError(f"seed {plan.seed}: expected a number of zero or more (--resampling-seed)")
    if strange := [kind for kind in plan.kinds if kind not in KINDS]:
        raise UsageError(f"no kind of probes called {strange[0]!r} (there are {', '.join(KINDS)})")
    return tuple(kind for kind in KINDS if kind in plan.kinds)


def _check_criteria(criteria: Sequence[Criterion], kinds: tuple[ProbeKind, ...]) -> None:
    """Refuse two prompts of one name, which no table could tell apart, and a prompt that no probe is for.

    Raises:
        UsageError: There are such prompts.
    """
    first: dict[str, Criterion] = {}
    for criterion in criteria:
        if not probes_of(criterion, kinds):
            raise UsageError(f"{criterion.prompt_id}: no probe of the kind {' or '.join(kinds)} is for it")
        other = first.setdefault(criterion.prompt_id, criterion)
        if other is not criterion:
            raise UsageError(f"{other.file} and {criterion.file} are both called {criterion.prompt_id}: rename one")


def _read(plan: ProbePlan, unit: JudgedUnit, steps: Steps) -> tuple[Pool, dict[str, Turn] | None]:
    """The pool, and the turns of the topics file."""
    if plan.folder is None:
        pooled = pool_runs(
            Pooling(runs=plan.runs, topics=plan.topics, unit=unit, passages=plan.passages or None, screen="off"), steps
        )
        if not pooled.pool.responses:
            raise InputError("no response can be judged: every one was excluded", pooled.submitted.problems)
        return pooled.pool, pooled.turns
    turns = turns_by_id(read_topics(Path(plan.topics))) if plan.topics is not None else None
    pool = read_earlier_pool(Path(plan.folder))
    return pool, turns_shown(pool, turns)


def _configuration(
    plan: ProbePlan,
    pool: Pool,
    criteria: Sequence[Criterion],
    judge: Judge,
    kinds: Sequence[ProbeKind],
    certificate: Certificate | None,
) -> dict[str, Any]:
    topics: Mapping[str, Any] = {}
    if plan.topics is not None:
        topics = {"topics": sha256(read_stored(Path(plan.topics)))}
    return {
        **topics,
        "pool": sha256(pool_jsonl(pool)),
        "passages": sha256(passages_jsonl(pool)),
        "criteria": {prompt.prompt_id: prompt.digest for prompt in criteria},
        "judge": [model.name for model in judge.models],
        "options": judging_options(plan.options, judge.models),
        "parser": PARSER_VERSION,
        "renderer": RENDERER_VERSION,
        "kinds": list(kinds),
        "items": plan.items,
        "margin": plan.margin,
        "seed": plan.seed,
        "certificate": certificate.digest if certificate is not None else None,
    }
