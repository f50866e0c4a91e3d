"""What a calibration compares: gold, prompts, the scale that each grade is on, and panels of gold and labels."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from judge.ask.criteria import default_prompts, find_criterion
from judge.ask.group import combine
from judge.ask.labels import JUDGMENTS, labels_of
from judge.ask.opening import ask_free, takes
from judge.ask.tasks import Task
from judge.calibrate import CalibrationOptions
from judge.calibrate.gate import parse_requirement
from judge.calibrate.intake import Gold, LabelSource, make_panels, parse_scale, read_gold_files, same_grades
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.gold import GOLD_FILES, match
from judge.gold.rows import GoldRow
from judge.gold.seal import SEAL, TEST_FILES
from judge.io.paths import StrPath, in_folders, paths
from judge.io.steps import Step, Steps, quiet
from judge.io.stored import sha256
from judge.jobs.calibration.plan import CalibrationPlan, check_plan
from judge.judges.backends import open_model
from judge.judges.backends.baseline import BASELINES
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.runs.families import read_families
from judge.runs.records import Turn
from judge.runs.topics import read_topics


class CalibrationInputs(NamedTuple):
    """A plan with its gold, prompts and topics read; nothing has been asked or written."""

    plan: CalibrationPlan
    options: CalibrationOptions
    scale: Scale | None
    """The scale of grades in columns."""
    prompts: dict[str, Criterion]
    """The prompts, by `criterion/variant`; those behind labels and the baseline join them."""
    only: str | None
    """The only criterion to compare."""
    gold: Gold
    topics: Mapping[str, Turn] | None
    """The turns of the topics by id; None without topics."""
    pool: Pool | None
    """The responses that models are asked about, where they are not those of the plan."""
    known: tuple[Path, ...]
    """Journals that hold paid answers to the same questions."""

    @property
    def out(self) -> Path | None:
        """The output folder."""
        return self.plan.out


def read_inputs(
    plan: CalibrationPlan, steps: Steps = quiet, pool: Pool | None = None, known: Sequence[StrPath] = ()
) -> CalibrationInputs:
    """Check a plan, and read its gold, prompts and topics.

    Args:
        plan: The plan.
        steps: Is told what is read.
        pool: The responses that models are asked about, where they are not those of the plan.
        known: Journals that hold paid answers to the same questions.

    Raises:
        UsageError: Options do not go together, or a scale or a prompt cannot be used.
        InputError: A file is bad; every problem is listed.
    """
    check_plan(plan)
    plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,), test=TEST_FILES, seal=(SEAL,))
    options = CalibrationOptions(
        requirements=tuple(map(parse_requirement, plan.requirements)),
        seed=plan.resampling_seed,
        replicates=plan.replicates,
        permutations=plan.permutations,
        epsilon=plan.epsilon,
        margin=plan.margin,
        families=read_families(plan.families) if plan.families else {},
    )
    scale = parse_scale(plan.scale, plan.polarity) if plan.scale else None
    prompts = _by_id(map(find_criterion, plan.prompts))
    if plan.together:
        prompts |= _by_id(combine(tuple(prompts.values())))
    only = None if plan.criterion is None else os.fspath(plan.criterion)
    if only is not None and ("/" in only or only.endswith(".md")):
        prompt = find_criterion(only)
        prompts.setdefault(prompt.prompt_id, prompt)
        only = prompt.name
    steps(Step("reading gold and labels"))
    gold = read_gold_files(plan.gold, only, scale)
    topics = None if plan.topics is None else turns_by_id(read_topics(plan.topics))
    return CalibrationInputs(plan, options, scale, prompts, only, gold, topics, pool, paths(known))


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


def judged_criteria(sources: Sequence[LabelSource]) -> set[str]:
    """The criteria of the prompts that labels name."""
    return {labels.prompt.partition("/")[0] for source in sources for labels in source.labels if labels.prompt}


def make_comparison(
    inputs: CalibrationInputs, rows: Sequence[GoldRow], sources: Sequence[LabelSource]
) -> tuple[tuple[Panel, ...], int]:
    """Gold and labels side by side, and the number of gold grades without a pooled response.

    Raises:
        UsageError: Nothing was both graded and judged, or the scale of the grades is not known.
        InputError: Grades are off their scale or contradict each other; every problem is listed.
    """
    plan, name = inputs.plan, str(inputs.plan.gold[0])
    columns = any(labels.prompt is None for source in sources for labels in source.labels)
    criteria = {row.criterion for row in rows}
    if not columns:
        criteria &= judged_criteria(sources)
    if inputs.only is not None:
        criteria &= {inputs.only}
    elif columns and len(criteria) > 1:
        raise UsageError(
            f"{name} has grades of {', '.join(sorted(criteria))}, and files of columns do not say "
            "which they are about: --criterion NAME is needed"
        )
    scales = {criterion: gold_scale(inputs, criterion) for criterion in sorted(criteria)}
    panels, unmatched = make_panels(rows, sources, inputs.prompts, scales, name, criteria, plan.off_scale, plan.cluster)
    if not panels:
        raise UsageError(f"{name}: no grade of a response under a criterion that was judged")
    return panels, unmatched


def gold_scale(inputs: CalibrationInputs, criterion: str) -> Scale:
    """The scale that the gold of a criterion is on.

    Raises:
        UsageError: It is not known, or the prompts of the criterion have different ones.
    """
    if inputs.plan.gold_scale is not None:
        prompt = find_criterion(inputs.plan.gold_scale)
        if prompt.name == criterion:
            return prompt.scale
    if inputs.scale is not None:
        return inputs.scale
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


def gold_tasks(
    rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int, name: str
) -> tuple[Task, ...]:
    """A task for each response with gold, prompt of its criterion and sample; `name` is that of the gold."""
    matched, _ = match(rows, pool, name)
    return tuple(
        Task(response, prompt, sample)
        for prompt in prompts
        for response in pool.responses
        if (response.response_id, prompt.name) in matched
        for sample in range(samples)
    )


def with_baselines(
    inputs: CalibrationInputs, rows: Sequence[GoldRow], sources: tuple[LabelSource, ...]
) -> tuple[LabelSource, ...]:
    """The labels, and those of each baseline that is no judge already, where there is a pool."""
    pool = next((source.pool for source in sources if source.pool is not None), None)
    judges = {labels.judge for source in sources for labels in source.labels}
    absent = () if pool is None else tuple(name for name in map("baseline/{}".format, BASELINES) if name not in judges)
    made = (_baseline(name, inputs, rows, pool) for name in absent if pool is not None)
    return (*sources, *(source for source in made if source is not None))


def _baseline(name: str, inputs: CalibrationInputs, rows: Sequence[GoldRow], pool: Pool) -> LabelSource | None:
    """The labels of a baseline under the first prompt of each criterion that it can grade, the default prompt last."""
    model = open_model(name)
    gradable: list[Criterion] = []
    for criterion in sorted({row.criterion for row in rows}):
        judged = [prompt for prompt in inputs.prompts.values() if prompt.name == criterion]
        default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
        fitting = (prompt for prompt in (*judged, *default) if prompt.unit == pool.unit and takes(model, prompt))
        if prompt := next(fitting, None):
            inputs.prompts.setdefault(prompt.prompt_id, prompt)
            gradable.append(prompt)
    if not gradable:
        return None
    results = ask_free(model, gold_tasks(rows, pool, gradable, 1, str(inputs.plan.gold[0])), pool)
    return LabelSource(labels_of(results, name, sha256(b"")), pool)
