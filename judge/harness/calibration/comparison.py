"""Gold and labels side by side: the prompts behind the labels, and the scale that each grade is on."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from judge.ask.criteria import bundled_criteria, default_prompts, find_criterion
from judge.ask.group import combine, group_members
from judge.ask.labels import Labels, is_jury, labels_of
from judge.ask.opening import ask_free, takes
from judge.ask.tasks import Task
from judge.calibrate.baselines import ASKED
from judge.calibrate.findings import CascadeBounds, CascadeCost, GroupCost
from judge.calibrate.intake import LabelSource, make_panels, parse_scale, same_grades
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.files.paths import published
from judge.files.stored import sha256
from judge.gold import match
from judge.gold.rows import GoldRow
from judge.harness.calibration.plan import CalibrationPlan, by_id
from judge.models.backends import open_model
from judge.models.model import Model
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.text.safe import shown


class LabeledGold(NamedTuple):
    """Gold rows and the labels of the same responses; the rest is of calibrations that ask models."""

    rows: tuple[GoldRow, ...]
    sources: tuple[LabelSource, ...]
    """The labels, those of baselines last."""
    warnings: tuple[str, ...]
    answers: Mapping[str, bytes] = {}
    """The files of what models said, by name."""
    costs: tuple[GroupCost, ...] = ()
    bounds: tuple[CascadeBounds, ...] = ()
    cascade_costs: Mapping[tuple[str, str], CascadeCost] = {}
    """What the calls of a cascade took, by its name and the prompt."""


class GoldComparison:
    """What a calibration compares with gold, by the prompts that are known so far.

    Args:
        plan: The options of the calibration.

    Raises:
        UsageError: A scale or a prompt of the plan cannot be used.
        InputError: A prompt file has problems.
    """

    def __init__(self, plan: CalibrationPlan) -> None:
        self._plan = plan
        self._criterion = None if plan.criterion is None else os.fspath(plan.criterion)
        self.scale = parse_scale(plan.scale, plan.polarity) if plan.scale else None
        """The scale of grades in columns."""
        self.prompts = by_id(map(find_criterion, plan.prompts))
        """The prompts, by `criterion/variant`; those behind labels and baselines join them."""
        if plan.together:
            self.prompts |= by_id(combine(tuple(self.prompts.values())))
        self.only = self._only()
        """The only criterion to compare, or None."""

    def _only(self) -> str | None:
        """The only criterion; if the plan gives a prompt for it, the prompt joins the prompts."""
        wanted = self._criterion
        if wanted is None or not ("/" in wanted or wanted.endswith(".md")):
            return wanted
        prompt = find_criterion(wanted)
        self.prompts.setdefault(prompt.prompt_id, prompt)
        return prompt.name

    def wanted(self, columns: Sequence[Labels]) -> tuple[Labels, ...]:
        """The labels under the criterion that the plan names, or under its very prompt."""
        wanted = self._criterion
        if wanted is None:
            return tuple(columns)
        exact = {prompt.prompt_id for prompt in self.prompts.values()} if wanted != self.only else None
        return tuple(
            labels
            for labels in columns
            if labels.prompt is None
            or (labels.prompt in exact if exact else labels.prompt.partition("/")[0] == self.only)
        )

    def find_prompts(self, sources: Sequence[LabelSource]) -> tuple[str, ...]:
        """Find the prompts behind labels.

        Returns:
            A warning for each prompt file that has changed since.

        Raises:
            UsageError: A prompt is not known.
        """
        warnings: list[str] = []
        # By name only: a file of judgments must not make judge read some other path.
        bundled = {prompt.prompt_id: prompt for prompt in bundled_criteria()}
        for source in sources:
            for labels in source.labels:
                if labels.prompt is None:
                    continue
                if labels.prompt not in self.prompts:
                    known = bundled | self.prompts
                    if not all(name in known for name in group_members(labels.prompt) or (labels.prompt,)):
                        raise UsageError(
                            f"{labels.source}: no prompt called {shown(labels.prompt)} comes with judge: give the file "
                            "of a prompt of your own with --prompt PATH"
                        )
                    self.prompts[labels.prompt] = find_criterion(labels.prompt, known)
                prompt = self.prompts[labels.prompt]
                if prompt.digest != labels.prompt_digest and not is_jury(labels.judge):
                    told = f"{labels.source}: {prompt.file} has changed since these judgments were made"
                    # Warnings are published with the findings.
                    warnings.append(published(told))
        return tuple(warnings)

    def tasks(
        self, rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int
    ) -> tuple[Task, ...]:
        """A task for each response with gold, prompt of its criterion and sample."""
        return gold_tasks(rows, pool, prompts, samples, str(self._plan.gold[0]))

    def baselines(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[LabelSource, ...]:
        """The baselines' labels of the same responses, if there is a pool and the sources lack these labels."""
        pool = next((source.pool for source in sources if source.pool is not None), None)
        judges = {labels.judge for source in sources for labels in source.labels}
        added: list[LabelSource] = []
        for name in ASKED if pool is not None else ():
            model = open_model(name)
            criteria = {row.criterion for row in rows}
            prompts = self._gradable(model, criteria, pool) if pool and name not in judges else []
            if pool is None or not prompts:
                continue
            results = ask_free(model, self.tasks(rows, pool, prompts, 1), pool)
            added.append(LabelSource(labels_of(results, name, sha256(b"")), pool))
        return tuple(added)

    def _gradable(self, model: Model, criteria: Collection[str], pool: Pool) -> list[Criterion]:
        """For each judged criterion, the first of its prompts, the default prompt last, that the model can grade."""
        gradable: list[Criterion] = []
        for criterion in sorted(criteria):
            judged = [prompt for prompt in self.prompts.values() if prompt.name == criterion]
            default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
            fitting = (prompt for prompt in (*judged, *default) if prompt.unit == pool.unit and takes(model, prompt))
            if prompt := next(fitting, None):
                self.prompts.setdefault(prompt.prompt_id, prompt)
                gradable.append(prompt)
        return gradable

    def panels(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[tuple[Panel, ...], int]:
        """Gold and labels side by side, and the number of gold grades without a pooled response.

        Raises:
            UsageError: Nothing was both graded and judged.
        """
        named = {labels.prompt.partition("/")[0] for source in sources for labels in source.labels if labels.prompt}
        columns = any(labels.prompt is None for source in sources for labels in source.labels)
        criteria = {row.criterion for row in rows if columns or row.criterion in named}
        if self.only is not None:
            criteria &= {self.only}
        elif columns and len(criteria) > 1:
            raise UsageError(
                f"{self._plan.gold[0]} has grades of {', '.join(sorted(criteria))}, and files of columns do not say "
                "which they are about: --criterion NAME is needed"
            )
        scales = {name: self.gold_scale(name) for name in sorted(criteria)}
        panels, unmatched = make_panels(
            *(rows, sources, self.prompts, scales, str(self._plan.gold[0]), criteria),
            *(self._plan.off_scale, self._plan.cluster),
        )
        if not panels:
            raise self.nothing_judged()
        return panels, unmatched

    def nothing_judged(self) -> UsageError:
        """The error where no response was both graded and judged."""
        return UsageError(f"{self._plan.gold[0]}: no grade of a response under a criterion that was judged")

    def gold_scale(self, criterion: str) -> Scale:
        """The scale that the gold of a criterion is on."""
        if self._plan.gold_scale is not None:
            prompt = find_criterion(self._plan.gold_scale)
            if prompt.name == criterion:
                return prompt.scale
        if self.scale is not None:
            return self.scale
        scales = [prompt.scale for prompt in self.prompts.values() if prompt.name == criterion]
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
