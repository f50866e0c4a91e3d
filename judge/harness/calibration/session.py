"""A calibration from files to files: gold is read, labels are read or asked for, and both are compared."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.blocks import needs_turn
from judge.ask.labels import FAILURES, JUDGMENTS, labels_of
from judge.ask.opening import address_option, check_prices, open_one
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.ask.records import Failure, Judgment
from judge.ask.subjects import check_unit
from judge.ask.tasks import Task
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.certificate import Certificate, certificate_bytes, certified_options, make_certificate
from judge.calibrate.disagreements import Disagreement, disagreements
from judge.calibrate.findings import Calibration, CascadeBounds, GroupCost
from judge.calibrate.gate import parse_requirement
from judge.calibrate.intake import Gold, LabelSource, off_scale_warnings, read_gold_files, read_sources
from judge.calibrate.panel import Column, Panel
from judge.calibrate.report.disagreements import disagreement_files
from judge.calibrate.report.folder import calibration_files
from judge.calibrate.selection import choose
from judge.draw.drawable import undrawn
from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import make_folder, replace_folder
from judge.files.paths import StrPath, in_folders
from judge.files.progress import ProgressLine
from judge.files.stored import sha256
from judge.gold import GOLD_FILES, match, seal_of
from judge.gold.rows import GoldRow
from judge.gold.seal import SEAL, TEST_FILES, read_seal, read_sealed
from judge.harness.calibration.certified import certified, resampling
from judge.harness.calibration.comparison import GoldComparison, LabeledGold
from judge.harness.calibration.costs import PlannedCascades, group_costs
from judge.harness.calibration.look import GoldLook, check_dev, looked_often
from judge.harness.calibration.plan import ASKING, CalibrationForecast, CalibrationPlan, check_plan
from judge.harness.earlier import reported
from judge.harness.manifest import MANIFEST
from judge.models.backends import judges_in
from judge.models.model import recorded_options
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.pool.intake import turns_by_id
from judge.records import Criterion
from judge.runs.families import read_families
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.ids import natural_key
from judge.text.steps import Step


class ModelLabels:
    """The models of a plan, asked about the responses that have gold.

    Args:
        plan: The options of the calibration; it names models.
        comparison: Knows the prompts and makes the panels.
        look: Opens the sealed grades, if the plan names any.
        topics: The turns of the topics by id; None without topics.
        dry: Only forecast.

    Raises:
        UsageError: An option is missing, or a model cannot be asked the prompts.
        InputError: The pool is bad; every problem is listed.
    """

    def __init__(
        self,
        plan: CalibrationPlan,
        comparison: GoldComparison,
        look: GoldLook,
        topics: Mapping[str, Turn] | None,
        *,
        dry: bool = False,
    ) -> None:
        if plan.pool is None or plan.out is None:
            raise UsageError(ASKING)
        self._plan, self._comparison, self._look, self._dry = plan, comparison, look, dry
        self._out = Path(plan.out)
        self._pool = read_pool_folder(Path(plan.pool), "passages.jsonl")
        only = comparison.only
        self._prompts = [prompt for prompt in comparison.prompts.values() if only in (None, prompt.name)]
        check_unit(self._prompts, self._pool.unit)
        self._turns = turns_shown(self._pool, topics)
        with_turn = [prompt.prompt_id for prompt in self._prompts if needs_turn(prompt)]
        if with_turn and self._turns is None:
            names = ", ".join(with_turn)
            raise UsageError(f"{names}: shown with the conversation, so a topics file is needed (--topics)")
        # All models are opened first, so that one that cannot be asked stops the job before another is paid.
        models = [
            open_one(name, plan.options, self._prompts, plan.settings, keys=not dry)
            for name in dict.fromkeys(plan.models)
        ]
        self._judges = [Judge((model,), plan.options, plan.settings) for model in models]
        self._cascades = PlannedCascades(plan, self._prompts, self._judges, keys=not dry)
        asked = [model for cascade in self._cascades.judges.values() for model in cascade.asked]
        check_prices(plan.models, [*models, *asked], plan.settings)
        self.endpoints = {model.name: model.endpoint for model in models if model.endpoint is not None}
        """Judge to the address to which the environment moves it."""
        self.accounts: tuple[JudgeAccount, ...] = ()
        """What the calls took."""
        self._results: list[Judgment | Failure] = []
        self._costs: tuple[GroupCost, ...] = ()
        self._bounds: tuple[CascadeBounds, ...] = ()

    def _asking(self, progress: JobProgress | None = None, known: tuple[Path, ...] = ()) -> Asking:
        """What asks the judges."""
        plan = self._plan
        place = JournalPlace(self._out, plan.journal, known, plan.settings.max_wait)
        return Asking(place, self._pool, self._turns, progress, dry=self._dry)

    def beside(self, gold: Gold, progress: JobProgress, known: tuple[Path, ...] = ()) -> LabeledGold:
        """The gold rows, and what the models said; only the chosen judge is asked about responses with test grades.

        Args:
            gold: The gold files.
            progress: Is told how far the asking is.
            known: Journals that hold paid answers to the same questions.

        Raises:
            UsageError: Nothing was both graded and judged, or the gold does not go with the sealed grades.
            InputError: The output folder holds other results, or the sealed grades cannot be used.
            OperationalError: Asking stopped early; the same call goes on from there.
        """
        dev = self._checked(gold)
        with self._asking(progress, known) as asking:
            for judge in self._judges:
                self._ask(asking, judge, dev)
            rows, sources = self._held_out_too(asking, gold, dev)
            models = [model for judge in self._judges for model in judge.models]
            warnings = asking.notes(models, self._results)
        self.accounts = asking.accounts
        answers = {
            JUDGMENTS: _results_jsonl(self._results, Judgment),
            FAILURES: _results_jsonl(self._results, Failure),
        }
        return LabeledGold(rows, sources, warnings, answers, self._costs, self._bounds, self._cascades.costs)

    def _held_out_too(
        self, asking: Asking, gold: Gold, dev: tuple[GoldRow, ...]
    ) -> tuple[tuple[GoldRow, ...], tuple[LabelSource, ...]]:
        """The gold rows and all labels, once the chosen judges are asked about the responses with test grades."""
        chosen = self._chosen(dev)
        self._look.asked = self._asked(gold, chosen)

        def held_out(rows: tuple[GoldRow, ...]) -> tuple[LabelSource, ...]:
            for column in chosen if rows else ():
                prompt = [self._comparison.prompts[column.prompt]] if column.prompt else []
                self._results.extend(asking.ask(self._judge(column.judge), self._tasks(rows, prompt)))
            return (self._source(self._results),)

        if self._plan.test is None:
            sources = held_out(tuple(row for row in gold.rows if row.split == "test"))
            return gold.rows, sources + self._comparison.baselines(gold.rows, sources)
        if any(isinstance(result, Failure) and result.reason == "budget" for result in self._results):
            raise OperationalError("the budget is spent before a judge is chosen: the test grades stay closed")
        # Asked before the seal is opened, so that the look names the very labels that it compares.
        return self._look.open(gold.rows, [self._source(self._results)], held_out)

    def _judge(self, name: str) -> Judge:
        """The judge of a column."""
        return self._cascades.judges.get(name) or next(judge for judge in self._judges if judge.name == name)

    def forecast(self, gold: Gold) -> CalibrationForecast:
        """Count what `beside` would send beyond what the journals hold.

        Args:
            gold: The gold files.

        Raises:
            UsageError: Nothing that is graded would be judged, or the gold does not go with the sealed grades.
            InputError: The output folder holds other results, or the sealed grades cannot be used.
        """
        dev = self._checked(gold)
        wanted = self._tasks(dev, self._prompts)
        with self._asking() as asking:
            rows = tuple(row for judge in self._judges for row in asking.forecast(judge, wanted).rows)
            rows += self._cascades.forecast(asking, wanted)
        asked = {prompt.name for prompt in self._prompts}
        matched, unmatched = match(dev, self._pool, str(self._plan.gold[0]))
        return CalibrationForecast(
            responses=len({response for response, criterion in matched if criterion in asked}),
            unmatched=sum(row.criterion in asked for row in unmatched),
            by_model=rows,
            test_judgments=self._held_out(gold),
        )

    def _held_out(self, gold: Gold) -> int:
        """Judgments of responses with test grades, at most; a seal names the responses, and stays closed."""
        seal = seal_of(self._plan.test, self._plan.seal)
        criteria = {prompt.name: prompt for prompt in self._prompts}
        if seal is None:
            return len(self._tasks([row for row in gold.rows if row.split == "test"], tuple(criteria.values())))
        test = read_seal(seal).test
        return min(test.rows, len(test.items) * len(criteria)) * self._plan.samples

    def _checked(self, gold: Gold) -> tuple[GoldRow, ...]:
        """The gold that is not held out, once everything is checked that would stop the calibration after calls."""
        seal = seal_of(self._plan.test, self._plan.seal)
        if self._plan.test is not None and seal is not None:
            check_dev(gold.rows)
            read_sealed(Path(self._plan.test), seal)
        dev = tuple(row for row in gold.rows if row.split != "test")
        if not self._tasks(dev, self._prompts):
            raise self._comparison.nothing_judged()
        if self._out.exists() and not self._out.is_dir():
            raise InputError(f"{self._out}: cannot be used as an output folder: it is none")
        if (self._out / MANIFEST).exists():
            raise InputError(
                f"{self._out}: holds the results of `judge run`, which asking would write over: choose another --out"
            )
        return dev

    def _ask(self, asking: Asking, judge: Judge, dev: tuple[GoldRow, ...]) -> None:
        """Ask a judge, alone and in cascades, about the responses without test grades."""
        cascades, wanted = self._cascades, self._tasks(dev, self._prompts)
        answers = asking.ask(judge, wanted)
        self._results += answers
        self._results += cascades.beside(asking, judge, wanted, answers)
        if self._plan.cascade_grid:
            self._bounds += cascades.bounds(judge, wanted, answers, lambda said: self._tried(dev, said))
        (model,) = judge.models
        questions = asking.questions(model, self._turns)
        self._costs += group_costs(judge.name, questions, self._prompts, lambda group: self._tasks(dev, group))

    def _chosen(self, dev: tuple[GoldRow, ...]) -> list[Column]:
        """The judge that is chosen for each criterion, where one is."""
        panels, _ = self._comparison.panels(dev, [self._source(self._results)])
        choices = (choose(panel, "dev" if panel.split[0] == "dev" else "all") for panel in panels)
        return [column for column in choices if column]

    def _asked(self, gold: Gold, chosen: Sequence[Column]) -> dict[str, Any]:
        """What a look at the gold asks of it."""
        plan, endpoints = self._plan, self.endpoints
        options = recorded_options(plan.options)
        judges = sorted({judges_in(column.judge)[-1] for column in chosen} & endpoints.keys())
        moved = {judge: endpoints[judge] for judge in judges}
        return {
            **({"endpoints": moved} if moved else {}),
            "gold": gold.digest,
            "parameters": certified_options(options | address_option(plan.cascade_url)),
            "margin": plan.margin,
            "resampling": resampling(plan),
            "requirements": sorted(plan.requirements),
        }

    def _tasks(self, rows: Sequence[GoldRow], prompts: Sequence[Criterion]) -> tuple[Task, ...]:
        return self._comparison.tasks(rows, self._pool, prompts, self._plan.samples)

    def _source(self, results: Sequence[Judgment | Failure]) -> LabelSource:
        return LabelSource(labels_of(results, str(self._out), sha256(b"")), self._pool)

    def _tried(self, rows: Sequence[GoldRow], said: Sequence[Judgment | Failure]) -> tuple[Panel, ...]:
        """The panels of other bounds of a cascade, which the look at the gold counts."""
        panels, _ = self._comparison.panels(rows, [self._source(said)])
        self._look.tried += panels
        return panels


def _results_jsonl(results: Sequence[Judgment | Failure], kind: type[Judgment] | type[Failure]) -> bytes:
    """The judgments or the failures as JSON Lines, sorted by judge and prompt."""
    kept = [result for result in results if isinstance(result, kind)]
    kept.sort(key=lambda result: (natural_key(result.judge), natural_key(f"{result.criterion}/{result.variant}")))
    return b"".join(msgspec.json.encode(result) + b"\n" for result in kept)


def stored_labels(plan: CalibrationPlan, comparison: GoldComparison, look: GoldLook, gold: Gold) -> LabeledGold:
    """The gold rows, and the labels of the plan's files together with the baselines.

    Args:
        plan: The options of the calibration; it names files of labels.
        comparison: Knows the prompts; those behind the labels join them.
        look: Opens the sealed grades, if the plan names any.
        gold: The gold files.

    Raises:
        UsageError: A prompt is not known, is about another unit, or the gold does not go with the sealed grades.
        InputError: A file is bad; every problem is listed.
        OperationalError: The ledger of the sealed grades cannot be written.
    """
    pool = Path(plan.pool) if plan.pool is not None else None
    # Where labels off the scale count as missing, files of columns are read with all of their grades.
    scale = comparison.scale if plan.off_scale == "error" else None
    # The list of disagreements alone shows rationales, and it has no item of a sealed part.
    explained = {row.turn_id for row in gold.rows}
    sources = read_sources([Path(path) for path in plan.judgments], pool, scale, explained=explained)
    sources = tuple(msgspec.structs.replace(source, labels=comparison.wanted(source.labels)) for source in sources)
    warnings = comparison.find_prompts(sources)
    for source in sources:
        if source.pool is not None:
            named = (labels.prompt for labels in source.labels)
            check_unit([comparison.prompts[prompt] for prompt in named if prompt is not None], source.pool.unit)
    columns = [labels for source in sources for labels in source.labels]
    look.asked = {
        "gold": gold.digest,
        "labels": sorted(
            [labels.digest, labels.judge, labels.prompt or "", labels.prompt_digest or ""] for labels in columns
        ),
        "criterion": comparison.only,
        "scale": [plan.scale, plan.polarity, plan.gold_scale and os.fspath(plan.gold_scale)],
        "off_scale": plan.off_scale,
        "margin": plan.margin,
        "resampling": resampling(plan),
        "requirements": sorted(plan.requirements),
    }
    if plan.test is not None:
        rows, everything = look.open(gold.rows, sources, lambda rows: sources)
        return LabeledGold(rows, everything, warnings)
    return LabeledGold(gold.rows, (*sources, *comparison.baselines(gold.rows, sources)), warnings)


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
    report: Callable[[Progress], None] | None = None,
    progress: bool | ProgressLine = False,
    known: Sequence[StrPath] = (),
) -> CalibrationOutcome:
    """Read gold, read or ask for labels, compare them, and write the output folder.

    Args:
        plan: What to do.
        now: For the certificate and the ledger of sealed grades; by default the clock's time.
        report: Called after each judgment.
        progress: Show bars in a notebook or on a terminal, elsewhere lines now and then; or the line to show them on.
        known: Journals that hold paid answers to the same questions.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        return _Session(plan, now or datetime.now(UTC), shown, tuple(map(Path, known))).run()


def forecast_calibration(plan: CalibrationPlan, progress: ProgressLine | None = None) -> CalibrationForecast:
    """Count what `calibrate_judges` would send beyond what the journals hold; sealed grades stay closed.

    Raises:
        UsageError: The plan asks for what cannot be done, or names no model to ask.
        InputError: An input is bad, or the output folder would be refused.
    """
    if not plan.models:
        raise UsageError("a dry run counts what models would be asked (--dry-run goes with --model)")
    return _Session(plan, datetime.now(UTC), JobProgress(progress)).forecast()


class _Session:
    """One calibration, with everything read so far."""

    def __init__(
        self, plan: CalibrationPlan, now: datetime, progress: JobProgress, known: tuple[Path, ...] = ()
    ) -> None:
        check_plan(plan)
        plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,), test=TEST_FILES, seal=(SEAL,))
        self.plan, self.now, self.progress, self.known = plan, now, progress, known
        self.rules = tuple(map(parse_requirement, plan.requirements))
        self.families = read_families(Path(plan.families)) if plan.families else {}
        self.comparison = GoldComparison(plan)
        self.look = GoldLook(plan, self.comparison, now)
        self.out = Path(plan.out) if plan.out is not None else None
        self.endpoints: Mapping[str, str] = {}
        self.accounts: tuple[JudgeAccount, ...] = ()

    def forecast(self) -> CalibrationForecast:
        gold, topics = self._read()
        return ModelLabels(self.plan, self.comparison, self.look, topics, dry=True).forecast(gold)

    def _read(self) -> tuple[Gold, Mapping[str, Turn] | None]:
        self.progress.steps(Step("reading gold and labels"))
        gold = read_gold_files([Path(path) for path in self.plan.gold], self.comparison.only, self.comparison.scale)
        return gold, None if self.plan.topics is None else turns_by_id(read_topics(Path(self.plan.topics)))

    def run(self) -> CalibrationOutcome:
        gold, topics = self._read()
        labeled = self._labeled(gold, topics)
        panels, unmatched = self.comparison.panels(labeled.rows, labeled.sources)
        calibration = self._compared(gold, labeled, panels, unmatched)
        seal = self.look.record.seal if self.look.record else None
        entries = certified(self.plan, gold, panels, calibration, seal, self.endpoints)
        certificate = make_certificate(entries, self.now.date().isoformat())
        pool = next((source.pool for source in labeled.sources if source.pool is not None), None)
        turns = turns_shown(pool, topics) if pool is not None else topics
        found = disagreements(panels, pool, turns, self.look.sealed)
        if self.out:
            self.progress.steps(Step("making tables and pictures"))
            open_items = sum(side != "test" for panel in panels for side in panel.split)
            files = {**labeled.answers} | calibration_files(calibration) | disagreement_files(found, open_items)
            files[CERTIFICATE] = certificate_bytes(certificate, self.out / CERTIFICATE)
            with reported(self.out, RECORD):
                # The certificate comes last, so that one never stands beside tables of another calibration.
                replace_folder(self.out, files, RECORD, inputs=self._inputs(), last=CERTIFICATE)
        not_drawn = undrawn("pictures of agreement and confusion") if self.out else ()
        trusted = bool(calibration.verdicts) and all(verdict.word == "TRUSTED" for verdict in calibration.verdicts)
        return CalibrationOutcome(calibration, certificate, trusted, found, self.accounts, not_drawn)

    def _compared(self, gold: Gold, labeled: LabeledGold, panels: tuple[Panel, ...], unmatched: int) -> Calibration:
        """What gold and labels side by side say; the look at the gold is put on record before."""
        warnings = [*labeled.warnings, *self._unmet(labeled.rows, labeled.sources, panels)]
        if gold.columns:
            warnings.insert(0, "files of columns do not say how their grades were made; they are taken as given blind")
        if self.out:
            make_folder(self.out)
        warnings += off_scale_warnings(panels)
        if self.look.record is None:
            self.look.log(panels)
        record = self.look.record
        if record is None:
            warnings.append("the gold's folder cannot be written and there is no --out, so this look is on no record")
        if unmatched:
            warnings.append(f"{unmatched} of {len(labeled.rows)} gold grades are of responses not in the pool")
        options = CalibrationOptions(
            requirements=self.rules,
            seed=self.plan.seed,
            replicates=self.plan.replicates,
            permutations=self.plan.permutations,
            epsilon=self.plan.epsilon,
            margin=self.plan.margin,
            families=self.families,
            openings=record.opening.number if record and record.seal else None,
        )
        found = calibrate(panels, options, self.progress.steps)
        looks = record.rows([panel.criterion for panel in panels]) if record else ()
        costs = labeled.cascade_costs
        return msgspec.structs.replace(
            found,
            warnings=(*warnings, *found.warnings, *looked_often(found, looks)),
            looks=looks,
            group_costs=labeled.costs,
            cascade_bounds=labeled.bounds,
            cascades=tuple(
                msgspec.structs.replace(row, cost=costs.get((row.judge, row.prompt))) for row in found.cascades
            ),
        )

    def _labeled(self, gold: Gold, topics: Mapping[str, Turn] | None) -> LabeledGold:
        """Gold beside the labels of the plan's files, or beside those that its models are asked for."""
        if not self.plan.models:
            return stored_labels(self.plan, self.comparison, self.look, gold)
        asked = ModelLabels(self.plan, self.comparison, self.look, topics)
        labeled = asked.beside(gold, self.progress, self.known)
        self.endpoints, self.accounts = asked.endpoints, asked.accounts
        if self.out:
            # The results are written before any statistic is computed, so that a failure there loses none of them.
            replace_folder(self.out, labeled.answers, RECORD, inputs=self._inputs(), last=CERTIFICATE, more=True)
        return labeled

    def _inputs(self) -> list[Path]:
        """The files that were read."""
        judgments = [Path(path) for path in self.plan.judgments]
        beside = [path.with_name(FAILURES) for path in judgments]
        return [*judgments, *beside, *map(Path, self.plan.gold)]

    def _unmet(self, rows: Sequence[GoldRow], sources: Sequence[LabelSource], panels: Sequence[Panel]) -> list[str]:
        """A warning for each criterion with gold but no judgments, or the reverse: it gets no verdict."""
        if self.comparison.only is not None:
            return []
        compared = {panel.criterion for panel in panels}
        graded = {row.criterion for row in rows}
        judged = {labels.prompt.partition("/")[0] for source in sources for labels in source.labels if labels.prompt}
        return [
            *(f"{name}: gold, but no judgments; nothing is said about it" for name in sorted(graded - compared)),
            *(f"{name}: judgments, but no gold; nothing is said about it" for name in sorted(judged - graded)),
        ]
