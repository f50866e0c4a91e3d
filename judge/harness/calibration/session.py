"""The steps of a calibration: read gold, read or ask for labels, compare, write files."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.calibrate import CalibrationOptions, calibrate
from judge.calibrate.certificate import Certificate, certificate_bytes, make_certificate
from judge.calibrate.disagreements import Disagreement, disagreements
from judge.calibrate.findings import Calibration
from judge.calibrate.gate import parse_requirement
from judge.calibrate.intake import Gold, LabelSource, off_scale_warnings, read_gold_files
from judge.calibrate.panel import Panel
from judge.calibrate.report.disagreements import disagreement_files
from judge.calibrate.report.folder import calibration_files
from judge.draw.drawable import undrawn
from judge.errors import UsageError
from judge.files.folder import make_folder, replace_folder
from judge.files.paths import in_folders
from judge.files.progress import ProgressLine
from judge.gold import GOLD_FILES
from judge.gold.rows import GoldRow
from judge.gold.seal import SEAL, TEST_FILES
from judge.harness.calibration.asked import AskedLabels, stored_labels
from judge.harness.calibration.certified import certified
from judge.harness.calibration.comparison import GoldComparison, LabeledGold
from judge.harness.calibration.look import GoldLook, looked_often
from judge.harness.calibration.plan import CalibrationForecast, CalibrationPlan, check_plan
from judge.harness.reported import reported
from judge.models.families import read_families
from judge.pool.conversation import turns_shown
from judge.pool.intake import turns_by_id
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.steps import Step

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
    known: tuple[Path, ...] = (),
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
        return _Session(plan, now or datetime.now(UTC), shown, known).run()


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
        return AskedLabels(self.plan, self.comparison, self.look, topics, dry=True).forecast(gold)

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
        asked = AskedLabels(self.plan, self.comparison, self.look, topics)
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
