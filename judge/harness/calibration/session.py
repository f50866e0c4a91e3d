"""The steps of a calibration: read gold, read or ask for labels, compare, write files."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.progress import FetchReporter, Reporter
from judge.ask.several import Fetching
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
from judge.harness.calibration.asked import AskedLabels
from judge.harness.calibration.asking import Asking, ProgressReport
from judge.harness.calibration.certified import certified
from judge.harness.calibration.comparison import GoldComparison
from judge.harness.calibration.forecast import CalibrationForecast
from judge.harness.calibration.labeled import LabeledGold
from judge.harness.calibration.ledgers import looked_often
from judge.harness.calibration.look import GoldLook
from judge.harness.calibration.plan import CalibrationPlan, check_plan
from judge.harness.calibration.stored import stored_labels
from judge.harness.reported import reported
from judge.models.families import read_families
from judge.pool.conversation import turns_shown
from judge.pool.intake import turns_by_id
from judge.runs.records import Turn
from judge.runs.topics import read_topics
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


def forecast_calibration(plan: CalibrationPlan, steps: Steps = quiet) -> CalibrationForecast:
    """Count what `calibrate_judges` would send beyond what the journals hold; sealed grades stay closed.

    Raises:
        UsageError: The plan asks for what cannot be done, or names no model to ask.
        InputError: An input is bad, or the output folder would be refused.
    """
    if not plan.models:
        raise UsageError("a dry run counts what models would be asked (--dry-run goes with --model)")
    return _Session(plan, datetime.now(UTC), lambda judge: lambda progress: None, None, steps, keys=False).forecast()


class _Session:
    """One calibration, with everything read so far."""

    def __init__(
        self,
        plan: CalibrationPlan,
        now: datetime,
        asking: Callable[[str], ProgressReport],
        fetching: Fetching | None,
        steps: Steps,
        *,
        keys: bool = True,
    ) -> None:
        self._steps = steps
        check_plan(plan)
        plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,), test=TEST_FILES, seal=(SEAL,))
        self.plan, self.now = plan, now
        self.asking = Asking(plan, asking, fetching, keys=keys)
        self.rules = tuple(map(parse_requirement, plan.requirements))
        self.families = read_families(Path(plan.families)) if plan.families else {}
        self.comparison = GoldComparison(plan)
        self.look = GoldLook(plan, self.comparison, now)
        self.out = Path(plan.out) if plan.out is not None else None

    def forecast(self) -> CalibrationForecast:
        gold, topics = self._read()
        return AskedLabels(self.plan, self.comparison, self.look, self.asking, topics).forecast(gold)

    def _read(self) -> tuple[Gold, Mapping[str, Turn] | None]:
        self._steps(Step("reading gold and labels"))
        gold = read_gold_files([Path(path) for path in self.plan.gold], self.comparison.only, self.comparison.scale)
        return gold, None if self.plan.topics is None else turns_by_id(read_topics(Path(self.plan.topics)))

    def run(self) -> CalibrationOutcome:
        gold, topics = self._read()
        labeled = self._labeled(gold, topics)
        rows, sources = labeled.rows, labeled.sources
        panels, unmatched = self.comparison.panels(rows, sources)
        warnings = [*labeled.warnings, *self._unmet(rows, sources, panels)]
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
            warnings.append(f"{unmatched} of {len(rows)} gold grades are of responses not in the pool")
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
        calibration = calibrate(panels, options, self._steps)
        looks = record.rows([panel.criterion for panel in panels]) if record else ()
        warnings += (*calibration.warnings, *looked_often(calibration, looks))
        calibration = msgspec.structs.replace(
            calibration,
            warnings=tuple(warnings),
            looks=looks,
            group_costs=labeled.costs,
            cascade_bounds=labeled.bounds,
        )
        if labeled.cascades is not None:
            cascades = labeled.cascades.with_costs(calibration.cascades)
            calibration = msgspec.structs.replace(calibration, cascades=cascades)
        seal = record.seal if record else None
        entries = certified(self.plan, gold, panels, calibration, seal, self.asking.endpoints)
        certificate = make_certificate(entries, self.now.date().isoformat())
        pool = next((source.pool for source in sources if source.pool is not None), None)
        turns = turns_shown(pool, topics) if pool is not None else topics
        found = disagreements(panels, pool, turns, self.look.sealed)
        if self.out:
            self._steps(Step("making tables and pictures"))
            open_items = sum(side != "test" for panel in panels for side in panel.split)
            files = {**labeled.answers} | calibration_files(calibration) | disagreement_files(found, open_items)
            files[CERTIFICATE] = certificate_bytes(certificate, self.out / CERTIFICATE)
            with reported(self.out, RECORD):
                # The certificate comes last, so that one never stands beside tables of another calibration.
                replace_folder(self.out, files, RECORD, inputs=self._inputs(), last=CERTIFICATE)
        not_drawn = undrawn("pictures of agreement and confusion") if self.out else ()
        trusted = bool(calibration.verdicts) and all(verdict.word == "TRUSTED" for verdict in calibration.verdicts)
        return CalibrationOutcome(calibration, certificate, trusted, found, self.asking.account.rows(), not_drawn)

    def _labeled(self, gold: Gold, topics: Mapping[str, Turn] | None) -> LabeledGold:
        """Gold beside the labels of the plan's files, or beside those that its models are asked for."""
        if not self.plan.models:
            return stored_labels(self.plan, self.comparison, self.look, gold)
        labeled = AskedLabels(self.plan, self.comparison, self.look, self.asking, topics).beside(gold)
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
