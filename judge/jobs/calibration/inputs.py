"""The options of a calibration."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from judge.ask.criteria import alias_notes, bundled_criteria, default_prompts, find_criterion
from judge.ask.opening import MOST_SAMPLES, ask_free, takes
from judge.ask.options import AskingOptions
from judge.ask.prompt import needs_turn
from judge.ask.records import Task
from judge.ask.results import JUDGMENTS, Labels, labels_of, read_labels
from judge.calibrate import CalibrationOptions
from judge.calibrate.calibration import parse_requirement
from judge.calibrate.certificate import Certificate, read_certificate
from judge.calibrate.certified import topic_digest
from judge.calibrate.gold_tables import apart, read_gold_tables
from judge.calibrate.intake import (
    MOST_GRADES,
    Gold,
    OffScale,
    in_pool,
    make_panels,
    parse_scale,
    read_gold_files,
    same_grades,
)
from judge.calibrate.panel import Panel, scale_remedy
from judge.calibrate.second_year import DEFAULT_MARGIN
from judge.calibrate.tables import (
    GRADERS,
    UNNAMED,
    Items,
    grade_table,
    scale_of,
    side_by_side,
    topics_said,
)
from judge.errors import UsageError, refuse
from judge.gold.examples import WithoutExamples, without_examples
from judge.gold.rows import GoldRow, match
from judge.gold.seal import GOLD_FILES, SEAL, TEST_FILES, read_seal, seal_of
from judge.io.files import file_in, sha256
from judge.io.ids import Cluster, cluster_of, topic_of
from judge.io.plan import Option, Options, Seed, in_folders
from judge.io.steps import Step, Steps, quiet
from judge.judges.backends.baseline import BASELINES
from judge.judges.model import Model
from judge.pool.bank import read_pool_folder
from judge.pool.conversation import turns_shown
from judge.pool.lists import read_families
from judge.pool.pairs import other_orders
from judge.pool.records import Pool
from judge.records import Criterion, Problem, Scale
from judge.runs.topics import topic_turns
from judge.units import UNITS

ASKING = "asking needs --prompt, --pool (the responses that the gold is of) and --out (for the journal)"
NEEDLESS = "they are about asking a judge, which --model names"
_OF_ASKING = (*AskingOptions.model_fields, "samples")


class ComparedJudges(Options, section="reading"):
    """What is compared with what: labels and judges that are asked."""

    tables: Annotated[tuple[Path, ...], Option(metavar="TABLE", place="only")] = ()
    """A table (CSV, TSV, JSON, JSON Lines, Parquet) with people's grades in one column and a judge's in another, or
    several of each, in place of --gold and --judgments."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Gold grades: JSONL, four columns, or a table whose rows name responses by id, or by run and turn, or by text."""
    columns: Annotated[tuple[str, ...], Option("column", metavar="ROLE=COLUMN", repeat=True)] = ()
    """The column of a table with people's (human=COLUMN) or a judge's grades (judge=COLUMN), or of the question, topic,
    id, system or answer, where its name is not a usual one; may be repeated."""
    test: Annotated[Path | None, Option(metavar="FILE")] = None
    """Sealed test grades of `judge gold split`; only the chosen judge is reported on them, openings are logged."""
    seal: Annotated[Path | None, Option(metavar="FILE")] = None
    """Their seal (default: seal.json beside --test)."""
    judgments: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Labels of one or more judges, or logs of inspect or promptfoo; if there are none, --model is asked."""
    pool: Annotated[Path | None, Option(metavar="PATH")] = None
    """Folder of `judge run`, or its pool.jsonl, if it is not beside the judgments."""
    criterion: Annotated[str | Path | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion, or judgments under this prompt; for columns, the criterion of the grades."""
    scale: Annotated[str | None, Option(metavar="LOW-HIGH")] = None
    """Grades of gold and labels in columns, such as 0-3."""
    polarity: Literal["higher", "lower"] = "higher"
    """Which end of --scale is good."""
    gold_scale: Annotated[str | Path | None, Option(metavar="PROMPT")] = None
    """Prompt whose scale the gold is on, if not the judges' scale: grades then count as positive or not."""
    off_scale: OffScale = "error"
    """A judge's label off its scale stops the calibration, or counts as a missing judgment."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Of passages: run files and folders of them, TREC runs too, which people's grades rank, and each judge's."""
    measure: Annotated[str | None, Option(metavar="NAME")] = None
    """By what they are ranked, as ir-measures writes it (default: nDCG@5)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics, for prompts that show the conversation and for the list of disagreements."""
    families: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run or judge, tab, family of models behind it."""
    prompts: Annotated[
        tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True, section="asking")
    ] = ()
    """Prompt, as criterion/variant or a file of your own, also one that judgments are under; may be repeated."""
    models: Annotated[tuple[str | Model, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """A judge; may be repeated."""
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES), Option(metavar="N")] = 1
    """Ask each question N times, for test-retest."""


Draws = Annotated[int, Field(ge=200, le=1_000_000)]
"""A number of resamples; with fewer, the verdict would depend on the seed."""


class CalibrationPlan(
    ComparedJudges,
    AskingOptions,
    section="deciding",
    main="gold test judgments pool criterion topics prompt model base-url require out dry-run",
):
    """Everything `judge calibrate` can be told."""

    requirements: Annotated[tuple[str, ...], Option("require", metavar="RULE", repeat=True)] = ()
    """Such as 'wkappa.lo>=0.4': exit 1 unless the verdict is TRUSTED; may be repeated."""
    epsilon: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Epsilon of the alternative annotator test: .2 experts, .15 skilled annotators, .1 crowd."""
    margin: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, Option(metavar="M")] = None
    """Also test whether the chosen judge is as good as each other one, and as assessors are among themselves: whether
    the primary statistic differs by less than M. With --certificate, how much less agreement does not matter (default:
    0.1)."""
    certificate: Annotated[Path | None, Option(metavar="FILE")] = None
    """The `certificate.json` of this very judge from other topics: say whether its agreement carries to these; exit 1
    unless it does."""
    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one."""
    replicates: Annotated[Draws, Option(metavar="N")] = 2000
    """Bootstrap resamples."""
    permutations: Annotated[Draws, Option(metavar="N")] = 10_000
    """Permutations per comparison."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of resamples and permutations."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR", section="output")] = None
    """Write tables, report, plots and certificate here."""

    @property
    def carrying_margin(self) -> float:
        """With an earlier certificate, how much less agreement does not matter."""
        return DEFAULT_MARGIN if self.margin is None else self.margin

    def _check(self) -> None:
        if self.tables:
            others = ("gold", "judgments", "models", "prompts", "pool", "test", "runs", "certificate")
            self.refuse_unused(others, "a table has the grades of people and of judges")
            return
        if not self.gold:
            raise UsageError("expected a table with people's and a judge's grades, or gold grades (--gold)")
        if bool(self.judgments) == bool(self.models):
            raise UsageError("expected either existing judgments (--judgments) or models to ask (--model)")
        if self.models and not (self.prompts and self.pool and self.out):
            raise UsageError(ASKING)
        if not self.models:
            self.refuse_unused(_OF_ASKING, NEEDLESS)
        else:
            self.refuse_unused(["certificate"], "it is compared with judgments that are there (--judgments)")
        if not self.runs:
            self.refuse_unused(["measure"], "it ranks the runs of --runs")
        if self.scale is None:
            self.refuse_unused(["polarity"], "it says which end of --scale is good")
        if self.test is None:
            self.refuse_unused(["seal"], "it is the seal of the grades in --test")


class CalibrationInputs:
    """A plan with its gold, prompts and topics read; nothing has been asked or written."""

    def __init__(self, plan: CalibrationPlan, steps: Steps = quiet) -> None:
        self.plan = plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,), test=TEST_FILES, seal=(SEAL,))
        self.out = plan.out
        self.options = CalibrationOptions(
            requirements=tuple(map(parse_requirement, plan.requirements)),
            seed=plan.resampling_seed,
            replicates=plan.replicates,
            permutations=plan.permutations,
            epsilon=plan.epsilon,
            margin=None if plan.certificate is not None else plan.margin,
            families=read_families(plan.families) if plan.families else {},
        )
        self.certificate: Certificate | None = None
        """The earlier certificate of the judge."""
        if plan.certificate is not None:
            earlier = file_in(plan.certificate, "certificate.json")
            self.certificate = read_certificate(earlier)
            if plan.out is not None and earlier.resolve() == (plan.out / "certificate.json").resolve():
                raise UsageError(
                    f"--out {plan.out}: holds the earlier certificate, which would be replaced: name another folder"
                )
        self.scale = parse_scale(plan.scale, plan.polarity) if plan.scale else None
        """The scale of grades in columns."""
        self.prompts = _by_id(map(find_criterion, plan.prompts))
        """The prompts, by `criterion/variant`; those behind labels and the baseline join them."""
        only = None if plan.criterion is None else os.fspath(plan.criterion)
        if only is not None and ("/" in only or only.endswith(".md")):
            prompt = find_criterion(only)
            self.prompts.setdefault(prompt.prompt_id, prompt)
            only = prompt.name
        self.only = only
        """The only criterion to compare."""
        steps(Step("reading gold and labels"))
        self.beside: tuple[Labels, ...] | None = None
        """The judges' labels of tables that have people's too; None where labels are read or asked for."""
        self.notes: tuple[str, ...] = ()
        """In words, what was taken for what in tables."""
        if plan.tables:
            self._take_tables(plan.tables)
        else:
            self.gold = self._read_gold(plan.gold)
        self.topics = topic_turns(plan.topics)
        """The turns of the topics by id; None without topics."""

    def _take_tables(self, paths: Sequence[Path]) -> None:
        """Read people's and judges' grades of tables; their scale, unless given, is what occurs."""
        criterion = self.only = self.only or UNNAMED
        is_known = self.scale is not None or criterion in default_prompts()
        scale = gold_scale(self, criterion) if is_known else None
        problems: list[Problem] = []
        rows: list[GoldRow] = []
        judged: list[Labels] = []
        digests: list[str] = []
        items = Items()
        for path in paths:
            graded = grade_table(path, self.plan.columns, GRADERS, problems)
            if graded is None:
                continue
            gold, labels = side_by_side(graded, criterion, problems, items, scale, self.plan.off_scale)
            rows += gold
            judged += labels
            digests.append(graded.table.digest)
            self.notes += (graded.said, topics_said(graded.table))
        refuse(problems, f"tables of grades that cannot be used{scale_remedy(problems)}")
        if scale is None:
            lowest, highest = scale_of(rows, judged)
            if highest - lowest >= MOST_GRADES:
                raise UsageError(
                    f"grades from {lowest} to {highest} are on no scale: --column human=COLUMN and judge=COLUMN name "
                    f"the columns of grades; {'; '.join(self.notes)}"
                )
            self.scale = parse_scale(f"{lowest}-{highest}", self.plan.polarity)
            self.notes += (f"grades are taken to be on the scale {lowest} to {highest} (--scale says otherwise)",)
        self.gold = Gold(tuple(rows), sha256(" ".join(sorted(digests)).encode()), columns=True)
        self.beside = tuple(judged)
        self.plan = self.plan.with_values(criterion=criterion)

    def _read_gold(self, paths: Sequence[Path]) -> Gold:
        """Gold of files; in tables, of the responses of the pool beside the judgments."""
        plan = self.plan
        tabular, others = apart(paths, plan.columns)
        if not tabular:
            return read_gold_files(paths, self.only, self.scale)
        beside = next((path.with_name("pool.jsonl") for path in plan.judgments), None)
        place = plan.pool or beside
        if place is None or not place.exists():
            raise UsageError(f"{tabular[0]}: a table names pooled responses: --pool says where these are")
        criteria = {self.only} if self.only else {prompt.name for prompt in self.prompts.values()}
        labels = [each for path in plan.judgments for each in read_labels(path, grades_only=True, lenient=True)]
        known = {prompt.prompt_id: prompt for prompt in bundled_criteria()} | self.prompts
        prompts = {*self.prompts, *(judged.prompt for judged in labels if judged.prompt)} & known.keys()
        tables = read_gold_tables(
            tabular,
            plan.columns,
            criteria or judged_criteria(labels),
            read_pool_folder(place, "passages.jsonl"),
            [known[prompt] for prompt in prompts],
        )
        self.notes += tables.notes
        rows = tables.rows
        digests = tables.digests
        if others:
            gold = read_gold_files(others, self.only, self.scale)
            rows += gold.rows
            digests += (gold.digest,)
        return Gold(rows, sha256(" ".join(sorted(digests)).encode()), columns=True)


def _by_id(prompts: Iterable[Criterion]) -> dict[str, Criterion]:
    """Prompts by `criterion/variant`; two different ones of one name are refused."""
    named: dict[str, Criterion] = {}
    for prompt in prompts:
        first = named.setdefault(prompt.prompt_id, prompt)
        if first.digest != prompt.digest:
            raise UsageError(
                f"{prompt.file} and {first.file} are both called {prompt.prompt_id}: rename one of the files"
            )
    return named


def judged_criteria(columns: Sequence[Labels]) -> set[str]:
    """The criteria of the prompts that labels name."""
    return {labels.prompt.partition("/")[0] for labels in columns if labels.prompt}


def make_comparison(
    inputs: CalibrationInputs, rows: Sequence[GoldRow], labels: Sequence[Labels]
) -> tuple[tuple[Panel, ...], int]:
    """Gold and labels side by side, and the number of gold grades without a pooled response."""
    plan = inputs.plan
    name = str((*plan.tables, *plan.gold)[0])
    columns = any(judged.prompt is None for judged in labels)
    criteria = {row.criterion for row in rows}
    if not columns:
        criteria &= judged_criteria(labels)
    if inputs.only is not None:
        criteria &= {inputs.only}
    elif columns and len(criteria) > 1:
        raise UsageError(
            f"{name} has grades of {', '.join(sorted(criteria))}, and files of columns do not say "
            "which they are about: --criterion NAME is needed"
        )
    panels, unmatched = make_panels(
        without_shown(inputs, rows, labels).rows,
        labels,
        inputs.prompts,
        scales={criterion: gold_scale(inputs, criterion) for criterion in sorted(criteria)},
        name=name,
        only=criteria,
        off_scale=plan.off_scale,
        cluster=plan.cluster,
        units={criterion: prompt.unit for criterion in criteria if (prompt := _prompt_of(inputs, criterion))},
    )
    if not panels:
        called = "".join(f"; {note}" for note in alias_notes([inputs.only] if inputs.only else []))
        if not rows:
            raise UsageError(f"{name}: no row has a grade{called}")
        raise UsageError(f"{name}: no grade of a response under a criterion that was judged{called}")
    return panels, unmatched


def without_shown(inputs: CalibrationInputs, rows: Sequence[GoldRow], labels: Sequence[Labels]) -> WithoutExamples:
    """The gold rows of a comparison without what a prompt behind the labels shows as an example."""
    prompts = [inputs.prompts[judged.prompt] for judged in labels if judged.prompt in inputs.prompts]
    pool = next((judged.pool for judged in labels if judged.pool is not None), None)
    seal = seal_of(inputs.plan.test, inputs.plan.seal) if any(prompt.examples for prompt in prompts) else None
    tested = () if seal is None else read_seal(seal).test.topics
    return without_examples(rows, prompts, pool, tested, _certified_topics(inputs, prompts))


def _certified_topics(inputs: CalibrationInputs, prompts: Iterable[Criterion]) -> frozenset[str]:
    """The topics of examples whose ids are those of certified ones, and which are left out of a second year."""
    entries = () if inputs.certificate is None else inputs.certificate.certified
    known = {digest for entry in entries for digest in entry.topic_digests}
    topics = {topic_of(example.turn_id) for prompt in prompts for example in prompt.examples}
    return frozenset(topic for topic in topics if topic_digest(cluster_of(topic, inputs.plan.cluster)) in known)


def _prompt_of(inputs: CalibrationInputs, criterion: str) -> Criterion | None:
    """A prompt of a criterion: one behind labels, else the default one; None where the name is the user's own."""
    known = next((prompt for prompt in inputs.prompts.values() if prompt.name == criterion), None)
    return find_criterion(criterion) if known is None and criterion in default_prompts() else known


def gold_scale(inputs: CalibrationInputs, criterion: str) -> Scale:
    """The scale that the gold of a criterion is on."""
    if inputs.plan.gold_scale is not None:
        prompt = find_criterion(inputs.plan.gold_scale)
        if prompt.name == criterion:
            return prompt.scale
    if inputs.scale is not None:
        return _with_positive(inputs.scale, _prompt_of(inputs, criterion))
    scales = [prompt.scale for prompt in inputs.prompts.values() if prompt.name == criterion]
    if not scales and criterion in default_prompts():
        return find_criterion(criterion).scale
    if not scales:
        raise UsageError(f"the grades of {criterion} are not known: --scale LOW-HIGH is needed")
    if not all(same_grades(scale, scales[0]) for scale in scales):
        raise UsageError(
            f"the prompts of {criterion} have different scales: --gold-scale PROMPT names the one whose scale the "
            "gold is on, and judges on others are compared as positive or not"
        )
    return scales[0]


def _with_positive(scale: Scale, prompt: Criterion | None) -> Scale:
    """A scale of passages, with the grades positive that are for the judge: tracks add levels at the upper end."""
    if prompt is None or not UNITS[prompt.unit].listed or {scale.polarity, prompt.scale.polarity} != {"higher"}:
        return scale
    positive = tuple(level.grade for level in scale.levels if level.grade >= min(prompt.scale.positive))
    return msgspec.structs.replace(scale, positive=positive) if 0 < len(positive) < len(scale.levels) else scale


def gold_tasks(
    rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int, name: str
) -> tuple[Task, ...]:
    """A task for each response with gold, prompt of its criterion and sample; of pairs one for either order.

    `name` is that of the gold.
    """
    matched, _ = match(rows, pool, name)
    others = other_orders(pool)
    matched |= {(others[of].response_id, criterion): rows for (of, criterion), rows in matched.items() if others}
    wanted = []
    for prompt in prompts:
        for response in pool.responses:
            if (response.response_id, prompt.name) in matched:
                for sample in range(samples):
                    wanted.append(Task(response, prompt, sample))
    return tuple(wanted)


def with_baselines(
    inputs: CalibrationInputs, rows: Sequence[GoldRow], labels: tuple[Labels, ...]
) -> tuple[Labels, ...]:
    """The labels, and those of each baseline that is no judge already, where there is a pool."""
    pool = next((judged.pool for judged in labels if judged.pool is not None), None)
    if pool is None:
        return labels
    judges = {judged.judge for judged in labels}
    for name in map("baseline/{}".format, BASELINES):
        if name not in judges:
            labels += _baseline(name, inputs, rows, pool)
    return labels


def _baseline(name: str, inputs: CalibrationInputs, rows: Sequence[GoldRow], pool: Pool) -> tuple[Labels, ...]:
    """The labels of a baseline under the first prompt of each criterion that it can grade, the default prompt last.

    Where the conversations are not known, prompts that show them are left out, which a note says.
    """
    turns = turns_shown(pool, inputs.topics) or {}
    wanted: list[Task] = []
    for criterion in sorted({row.criterion for row in rows}):
        judged = [prompt for prompt in inputs.prompts.values() if prompt.name == criterion]
        default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
        fitting = (prompt for prompt in (*judged, *default) if prompt.unit == pool.unit and takes(name, prompt))
        if (prompt := next(fitting, None)) is None:
            continue
        tasks = gold_tasks(rows, pool, [prompt], 1, str(inputs.plan.gold[0]))
        if needs_turn(prompt) and any(task.response.turn_id not in turns for task in tasks):
            inputs.notes += (f"{name} is not compared under {prompt.prompt_id}: it needs the conversations (--topics)",)
            continue
        inputs.prompts.setdefault(prompt.prompt_id, prompt)
        wanted += tasks
    if not wanted:
        return ()
    results = ask_free(name, wanted, pool, turns)
    return in_pool(labels_of(results, name, sha256(b"")), pool)
