"""The steps of a calibration: read gold, read or ask for labels, compare, write files."""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.cascade import asked_model
from judge.ask.criteria import bundled_criteria, default_prompts, find_criterion
from judge.ask.dialogue import Task
from judge.ask.group import combine, group_members
from judge.ask.labels import FAILURES, JUDGMENTS, Labels, is_jury, labels_of
from judge.ask.loop import assess
from judge.ask.progress import FetchReporter, Reporter
from judge.ask.prompt import check_unit, needs_turn
from judge.ask.questions import Questions, filler_notes
from judge.ask.records import Failure, Judgment
from judge.ask.returned import model_notes
from judge.ask.several import Fetching, check_prices
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.baselines import ASKED
from judge.calibrate.certificate import Certificate, certificate_bytes, certified_options, make_certificate
from judge.calibrate.disagreements import Disagreement, disagreements
from judge.calibrate.findings import Calibration, CascadeBounds, GroupCost
from judge.calibrate.gate import parse_requirement
from judge.calibrate.intake import (
    Gold,
    LabelSource,
    make_panels,
    off_scale_warnings,
    parse_scale,
    read_gold_files,
    read_sources,
    same_grades,
)
from judge.calibrate.looks import look_at
from judge.calibrate.panel import Panel
from judge.calibrate.report.disagreements import disagreement_files
from judge.calibrate.report.folder import calibration_files
from judge.calibrate.selection import choose
from judge.draw.drawable import undrawn
from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import make_folder, replace_folder
from judge.files.paths import in_folders, published
from judge.files.progress import ProgressLine
from judge.files.stored import sha256
from judge.gold import GOLD_FILES, Look
from judge.gold.rows import GoldRow
from judge.gold.seal import SEAL, TEST_FILES, SealedItem, item_of
from judge.harness.calibration.asking import Asking, ProgressReport, gold_tasks, results_jsonl
from judge.harness.calibration.cascades import PlannedCascades
from judge.harness.calibration.certified import certified, resampling
from judge.harness.calibration.group_costs import group_costs
from judge.harness.calibration.looking import Looking, log_look, looked_often, open_test
from judge.harness.calibration.plan import ASKING, CalibrationPlan, by_id, check_plan
from judge.harness.cascade import address_option
from judge.harness.manifest import JOURNAL, MANIFEST
from judge.harness.reported import reported
from judge.models.backends import open_model
from judge.models.families import read_families
from judge.models.journal import Journal
from judge.models.journals import open_journal
from judge.models.model import Model, recorded_options
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Scale
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.safe import shown
from judge.text.steps import Step, Steps, quiet

CERTIFICATE = "certificate.json"
RECORD = "calibration.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class CalibrationOutcome(msgspec.Struct, frozen=True):
    """What a calibration found, and its certificate."""

    calibration: Calibration
    """Agreement, verdicts and warnings."""
    certificate: Certificate
    """What later runs are compared with."""
    trusted: bool
    """Whether every criterion's verdict is TRUSTED."""
    disagreements: tuple[Disagreement, ...]
    """The items outside the test part that some judge grades otherwise than the assessors, worst first."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to each model took; none where labels were read."""
    not_drawn: tuple[str, ...] = ()
    """A sentence where pictures are missing among the files."""


def calibrate_judges(
    plan: CalibrationPlan,
    now: datetime | None = None,
    *,
    asking: Callable[[str], ProgressReport] | None = None,
    fetching: Fetching | None = None,
    progress: bool = False,
    steps: Steps = quiet,
) -> CalibrationOutcome:
    """Read gold, read or ask for labels, compare them, and write the output folder.

    Args:
        plan: What to do.
        now: For the certificate and the ledger of sealed grades; by default the clock's time.
        asking: Called with a judge's name; it returns the function that is called after each judgment.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show bars in a notebook or on a terminal, elsewhere lines now and then, in place of `asking` and
            `fetching`.
        steps: Called as gold and labels are read and compared, and as the folder is written.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    now = now or datetime.now(UTC)
    if not progress:
        return _Session(plan, now, asking or (lambda judge: lambda progress: None), fetching, steps).run()
    with ProgressLine(sys.stderr) as line:
        return _Session(plan, now, lambda judge: Reporter(judge, line), FetchReporter(line), line).run()


class _Session:
    """One calibration, with everything read so far."""

    def __init__(
        self,
        plan: CalibrationPlan,
        now: datetime,
        asking: Callable[[str], ProgressReport],
        fetching: Fetching | None,
        steps: Steps,
    ) -> None:
        self._steps = steps
        check_plan(plan)
        plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,), test=TEST_FILES, seal=(SEAL,))
        self.plan, self.now = plan, now
        self._criterion = None if plan.criterion is None else os.fspath(plan.criterion)
        self.asking = Asking(plan, asking, fetching)
        self.rules = tuple(map(parse_requirement, plan.requirements))
        self.families = read_families(Path(plan.families)) if plan.families else {}
        self.scale = parse_scale(plan.scale, plan.polarity) if plan.scale else None
        self.prompts = by_id(map(find_criterion, plan.prompts))
        if plan.together:
            self.prompts |= by_id(combine(tuple(self.prompts.values())))
        self.only = self._only()
        self.warnings: list[str] = []
        self.asked: dict[str, Any] = {}
        self.looking: Looking | None = None
        self.costs: tuple[GroupCost, ...] = ()
        self.cascades: PlannedCascades | None = None
        self.bounds: tuple[CascadeBounds, ...] = ()
        self.tried: tuple[Panel, ...] = ()
        self.sealed: frozenset[SealedItem] = frozenset()
        self.turns: Mapping[str, Turn] | None = None
        self.out = Path(plan.out) if plan.out is not None else None
        self.answers: dict[str, bytes] = {}

    def run(self) -> CalibrationOutcome:
        self._steps(Step("reading gold and labels"))
        gold = read_gold_files([Path(path) for path in self.plan.gold], self.only, self.scale)
        if self.plan.topics is not None:
            self.turns = turns_by_id(read_topics(Path(self.plan.topics)))
        if gold.columns:
            self.warnings.append(
                "files of columns do not say how their grades were made; they are taken as given blind"
            )
        rows, sources = self._asked(gold) if self.plan.models else self._stored(gold)
        panels, unmatched = self._panels(rows, sources)
        self.warnings += self._unmet(rows, sources, panels)
        if self.out:
            make_folder(self.out)
        self.warnings += off_scale_warnings(panels)
        if self.looking is None:
            self._log(panels)
        if unmatched:
            self.warnings.append(f"{unmatched} of {len(rows)} gold grades are of responses not in the pool")
        options = CalibrationOptions(
            requirements=self.rules,
            seed=self.plan.seed,
            replicates=self.plan.replicates,
            permutations=self.plan.permutations,
            epsilon=self.plan.epsilon,
            margin=self.plan.margin,
            families=self.families,
            openings=self.looking.opening.number if self.looking and self.looking.seal else None,
        )
        calibration = calibrate(panels, options, self._steps)
        looks = self.looking.rows([panel.criterion for panel in panels]) if self.looking else ()
        warnings = (*self.warnings, *calibration.warnings, *looked_often(calibration, looks))
        calibration = msgspec.structs.replace(
            calibration, warnings=warnings, looks=looks, group_costs=self.costs, cascade_bounds=self.bounds
        )
        if self.cascades is not None:
            calibration = msgspec.structs.replace(calibration, cascades=self.cascades.with_costs(calibration.cascades))
        seal = self.looking.seal if self.looking else None
        entries = certified(self.plan, gold, panels, calibration, seal, self.asking.endpoints)
        certificate = make_certificate(entries, self.now.date().isoformat())
        pool = next((source.pool for source in sources if source.pool is not None), None)
        turns = turns_shown(pool, self.turns) if pool is not None else self.turns
        found = disagreements(panels, pool, turns, self.sealed)
        if self.out:
            self._steps(Step("making tables and pictures"))
            open_items = sum(side != "test" for panel in panels for side in panel.split)
            files = self.answers | calibration_files(calibration) | disagreement_files(found, open_items)
            files[CERTIFICATE] = certificate_bytes(certificate, self.out / CERTIFICATE)
            with reported(self.out, RECORD):
                # The certificate comes last, so that one never stands beside tables of another calibration.
                replace_folder(self.out, files, RECORD, inputs=self._inputs(), last=CERTIFICATE)
        not_drawn = undrawn("pictures of agreement and confusion") if self.out else ()
        trusted = bool(calibration.verdicts) and all(verdict.word == "TRUSTED" for verdict in calibration.verdicts)
        return CalibrationOutcome(calibration, certificate, trusted, found, self.asking.account.rows(), not_drawn)

    def _inputs(self) -> list[Path]:
        """The files that were read."""
        judgments = [Path(path) for path in self.plan.judgments]
        beside = [path.with_name(FAILURES) for path in judgments]
        return [*judgments, *beside, *map(Path, self.plan.gold)]

    def _unmet(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource], panels: Sequence[Panel]) -> list[str]:
        """A warning for each criterion with gold but no judgments, or the reverse: it gets no verdict."""
        if self.only is not None:
            return []
        compared = {panel.criterion for panel in panels}
        graded = {row.criterion for row in rows}
        judged = {labels.prompt.partition("/")[0] for source in sources for labels in source.labels if labels.prompt}
        return [
            *(f"{name}: gold, but no judgments; nothing is said about it" for name in sorted(graded - compared)),
            *(f"{name}: judgments, but no gold; nothing is said about it" for name in sorted(judged - graded)),
        ]

    def _only(self) -> str | None:
        """The only criterion to compare, or None; if the plan gives a prompt for it, the prompt joins the prompts."""
        wanted = self._criterion
        if wanted is None or not ("/" in wanted or wanted.endswith(".md")):
            return wanted
        prompt = find_criterion(wanted)
        self.prompts.setdefault(prompt.prompt_id, prompt)
        return prompt.name

    def _stored(self, gold: Gold) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The gold rows, and the existing labels together with the baselines."""
        pool = Path(self.plan.pool) if self.plan.pool is not None else None
        # Where labels off the scale count as missing, files of columns are read with all of their grades.
        scale = self.scale if self.plan.off_scale == "error" else None
        sources = read_sources([Path(path) for path in self.plan.judgments], pool, scale)
        sources = tuple(msgspec.structs.replace(source, labels=self._wanted(source.labels)) for source in sources)
        self._find_prompts(sources)
        for source in sources:
            if source.pool is not None:
                named = (labels.prompt for labels in source.labels)
                check_unit([self.prompts[prompt] for prompt in named if prompt is not None], source.pool.unit)
        columns = [labels for source in sources for labels in source.labels]
        self.asked = {
            "gold": gold.digest,
            "labels": sorted(
                [labels.digest, labels.judge, labels.prompt or "", labels.prompt_digest or ""] for labels in columns
            ),
            "criterion": self.only,
            "scale": [
                self.plan.scale,
                self.plan.polarity,
                self.plan.gold_scale and os.fspath(self.plan.gold_scale),
            ],
            "off_scale": self.plan.off_scale,
            "margin": self.plan.margin,
            "resampling": resampling(self.plan),
            "requirements": sorted(self.plan.requirements),
        }
        if self.plan.test is not None:
            return self._opened(gold.rows, sources, lambda rows: sources)
        return gold.rows, (*sources, *self._baselines(gold.rows, sources))

    def _wanted(self, columns: Sequence[Labels]) -> tuple[Labels, ...]:
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

    def _find_prompts(self, sources: Sequence[LabelSource]) -> None:
        """Find the prompts behind the labels, and warn where a prompt file has changed since."""
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
                    self.warnings.append(published(told))

    def _opened(
        self,
        dev: tuple[GoldRow, ...],
        sources: Sequence[LabelSource],
        judged: Callable[[tuple[GoldRow, ...]], tuple[LabelSource, ...]],
    ) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The rows of both parts, and the labels together with the baselines; opening the seal is logged.

        Args:
            dev: The gold rows of the dev part.
            sources: The labels so far.
            judged: From the sealed rows to the labels of both parts; it may ask a judge.
        """
        if any(row.split != "dev" for row in dev):
            raise UsageError("--test goes with the dev.jsonl that `judge gold split` wrote beside it (--gold)")
        # What would stop a calibration must not cost a look at the sealed grades.
        self._panels(dev, sources)
        if self.out:
            make_folder(self.out)
        everything: tuple[LabelSource, ...] = ()

        def look(rows: tuple[GoldRow, ...]) -> Look:
            nonlocal everything
            self._check_sealed((*dev, *rows), sources)
            everything = judged(rows)
            everything += self._baselines((*dev, *rows), everything)
            return self._look(self._check_sealed((*dev, *rows), everything))

        rows, self.looking = open_test(self.plan, self.now, look)
        self.sealed = frozenset(map(item_of, rows))
        return (*dev, *rows), everything

    def _check_sealed(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[Panel, ...]:
        """The panels; stops before the opening is logged if sealed grades cannot be used, and shows none of them."""
        try:
            return self._panels(rows, sources)[0]
        except InputError as error:
            raise InputError(
                f"{self.plan.test}: {max(1, len(error.problems))} problems of the sealed grades, such as grades off "
                "their scale; the seal was not opened"
            ) from None

    def _look(self, panels: Sequence[Panel]) -> Look:
        """What is asked of the gold; its scale says which grades count as positive."""
        return look_at(
            {**self.asked, "scales": [self._gold_scale(panel.criterion) for panel in panels]}, panels, self.tried
        )

    def _log(self, panels: Sequence[Panel]) -> None:
        """Put the look at unsealed gold on record."""
        self.looking = log_look([Path(path) for path in self.plan.gold], self.out, self._look(panels), self.now)
        if self.looking is None:
            self.warnings.append(
                "the gold's folder cannot be written and there is no --out, so this look is on no record"
            )

    def _baselines(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[LabelSource, ...]:
        """The baselines' labels of the same responses, if there is a pool and the sources lack these labels."""
        pool = next((source.pool for source in sources if source.pool is not None), None)
        judges = {labels.judge for source in sources for labels in source.labels}
        added: list[LabelSource] = []
        for name in ASKED if pool is not None else ():
            model = open_model(name)
            prompts = (
                self._gradable(model, {row.criterion for row in rows}, pool) if pool and name not in judges else []
            )
            if pool is None or not prompts:
                continue
            with Journal(None) as journal:
                results = assess(self._gold_tasks(rows, pool, prompts, 1), model, journal, pool)
            added.append(LabelSource(labels_of(results, name, sha256(b"")), pool))
        return tuple(added)

    def _gradable(self, model: Model, criteria: Collection[str], pool: Pool) -> list[Criterion]:
        """For each judged criterion, the first of its prompts, the default prompt last, that the model can grade."""
        gradable: list[Criterion] = []
        for criterion in sorted(criteria):
            judged = [prompt for prompt in self.prompts.values() if prompt.name == criterion]
            default = [find_criterion(criterion)] if judged and criterion in default_prompts() else []
            asked = (prompt for prompt in (*judged, *default) if prompt.unit == pool.unit and _accepts(model, prompt))
            if prompt := next(asked, None):
                self.prompts.setdefault(prompt.prompt_id, prompt)
                gradable.append(prompt)
        return gradable

    def _asked(self, gold: Gold) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The gold rows, and the models' labels; only the chosen judge is asked about responses with test grades."""
        plan = self.plan
        if plan.pool is None or self.out is None:
            raise UsageError(ASKING)
        pool, out = read_pool_folder(Path(plan.pool), "passages.jsonl"), self.out
        prompts = [prompt for prompt in self.prompts.values() if self.only in (None, prompt.name)]
        check_unit(prompts, pool.unit)
        turns = turns_shown(pool, self.turns)
        with_turn = [prompt.prompt_id for prompt in prompts if needs_turn(prompt)]
        if with_turn and turns is None:
            names = ", ".join(with_turn)
            raise UsageError(f"{names}: shown with the conversation, so a topics file is needed (--topics)")
        dev = tuple(row for row in gold.rows if row.split != "test")
        # All models are opened first, so that one that cannot be asked stops the job before another is paid.
        models = [self.asking.open(name, prompts) for name in dict.fromkeys(plan.models)]
        self.cascades = cascades = PlannedCascades(plan, self.asking, prompts, models)
        check_prices(plan.models, [*models, *cascades.checkers], plan.settings)
        make_folder(out)
        if (out / MANIFEST).exists():
            raise InputError(
                f"{out}: holds the results of `judge run`, which asking would write over: choose another --out"
            )
        with open_journal(out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
            results: list[Judgment | Failure] = []
            for model in models:
                wanted = self._gold_tasks(dev, pool, prompts, plan.samples)
                answers = self.asking.ask(model, wanted, journal, pool, turns)
                questions = Questions(model, journal, pool, turns)
                results += answers
                results += cascades.beside(model, wanted, answers, questions, journal, pool)
                if plan.cascade_grid:
                    self.bounds += cascades.bounds(model, wanted, answers, lambda said: self._tried(dev, said, pool))
                self.costs += group_costs(
                    model.name,
                    questions,
                    prompts,
                    lambda group: self._gold_tasks(dev, pool, group, plan.samples),
                )
            panels, _ = self._panels(dev, [self._source(results, pool)])
            choices = (choose(panel, "dev" if panel.split[0] == "dev" else "all") for panel in panels)
            chosen = [column for column in choices if column]
            options = recorded_options(plan.options)
            judges = sorted({asked_model(column.judge) for column in chosen} & self.asking.endpoints.keys())
            moved = {judge: self.asking.endpoints[judge] for judge in judges}
            self.asked = {
                **({"endpoints": moved} if moved else {}),
                "gold": gold.digest,
                "parameters": certified_options(options | address_option(plan.cascade_url)),
                "margin": plan.margin,
                "resampling": resampling(plan),
                "requirements": sorted(plan.requirements),
            }

            def held_out(rows: tuple[GoldRow, ...]) -> tuple[LabelSource, ...]:
                for column in chosen if rows else ():
                    prompt = [self.prompts[column.prompt]] if column.prompt else []
                    wanted = self._gold_tasks(rows, pool, prompt, plan.samples)
                    model = self.asking.again(asked_model(column.judge), prompt)
                    opened = cascades.of(column.judge)
                    results.extend(
                        self.asking.ask(model, wanted, journal, pool, turns)
                        if opened is None
                        else cascades.ask(opened, model, wanted, journal, pool, turns)
                    )
                return (self._source(results, pool),)

            rows = gold.rows
            if plan.test is not None:
                if any(isinstance(result, Failure) and result.reason == "budget" for result in results):
                    raise OperationalError("the budget is spent before a judge is chosen: the test grades stay closed")
                # Asked before the seal is opened, so that the look names the very labels that it compares.
                rows, sources = self._opened(rows, [self._source(results, pool)], held_out)
            else:
                sources = held_out(tuple(row for row in rows if row.split == "test"))
                sources += self._baselines(rows, sources)
            notes = filler_notes((model.name for model in models), journal)
        self.warnings += (*model_notes(results), *notes)
        self.answers = {
            "judgments.jsonl": results_jsonl(results, Judgment),
            FAILURES: results_jsonl(results, Failure),
        }
        # The results are written before any statistic is computed, so that a failure there loses none of them.
        replace_folder(out, self.answers, RECORD, inputs=self._inputs(), last=CERTIFICATE, more=True)
        return rows, sources

    def _gold_tasks(
        self, rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int
    ) -> tuple[Task, ...]:
        return gold_tasks(rows, pool, prompts, samples, str(self.plan.gold[0]))

    def _source(self, results: Sequence[Judgment | Failure], pool: Pool) -> LabelSource:
        return LabelSource(labels_of(results, str(self.out), sha256(b"")), pool)

    def _tried(self, rows: Sequence[GoldRow], said: Sequence[Judgment | Failure], pool: Pool) -> tuple[Panel, ...]:
        """The panels of other bounds of a cascade, which the look at the gold counts."""
        panels, _ = self._panels(rows, [self._source(said, pool)])
        self.tried += panels
        return panels

    def _panels(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource]) -> tuple[tuple[Panel, ...], int]:
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
                f"{self.plan.gold[0]} has grades of {', '.join(sorted(criteria))}, and files of columns do not say "
                "which they are about: --criterion NAME is needed"
            )
        scales = {name: self._gold_scale(name) for name in sorted(criteria)}
        panels, unmatched = make_panels(
            *(rows, sources, self.prompts, scales, str(self.plan.gold[0]), criteria),
            *(self.plan.off_scale, self.plan.cluster),
        )
        if not panels:
            raise UsageError(f"{self.plan.gold[0]}: no grade of a response under a criterion that was judged")
        return panels, unmatched

    def _gold_scale(self, criterion: str) -> Scale:
        """The scale that the gold of a criterion is on."""
        if self.plan.gold_scale is not None:
            prompt = find_criterion(self.plan.gold_scale)
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


def _accepts(model: Model, prompt: Criterion) -> bool:
    try:
        model.check([prompt])
    except UsageError:
        return False
    return True
