"""A calibration from files to files: gold is read, labels are read or asked for, and both are compared."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.forecast import JobForecast
from judge.ask.progress import Progress, job_progress
from judge.ask.results import FAILURES, JUDGMENTS
from judge.calibrate import calibrate
from judge.calibrate.certificate import Certificate, certificate_bytes, make_certificate
from judge.calibrate.disagreements import Disagreement, disagreement_files, disagreements
from judge.calibrate.findings import Calibration
from judge.calibrate.intake import beyond_warnings, off_scale_warnings
from judge.calibrate.panel import Panel
from judge.calibrate.report.folder import calibration_files
from judge.errors import UsageError
from judge.gold.seal import item_of
from judge.io.folder import make_folder, refuse_foreign, replace_folder
from judge.io.installed import undrawn
from judge.io.steps import ProgressLine, Step, Steps, quiet
from judge.jobs.calibration.certifying import certified
from judge.jobs.calibration.inputs import CalibrationInputs, judged_criteria, make_comparison, without_shown
from judge.jobs.calibration.inputs import CalibrationPlan as CalibrationPlan
from judge.jobs.calibration.labels import LabeledGold, ask_models, forecast_models, stored_labels
from judge.jobs.calibration.look import looked_often
from judge.jobs.calibration.rankings import with_rankings
from judge.jobs.calibration.second_year import check_second_year, with_second_year
from judge.jobs.manifest import reported
from judge.pool.conversation import turns_shown
from judge.units import UNITS

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
    notes: tuple[str, ...] = ()
    """What was taken for what in tables of grades."""

    @property
    def carries(self) -> bool:
        """Whether an earlier certificate's agreement holds under every criterion; true where none was given."""
        carried = self.calibration.carried
        return carried is msgspec.UNSET or all(row.word == "CARRIES" for row in carried)


def calibrate_judges(
    plan: CalibrationPlan,
    now: datetime | None = None,
    *,
    report: Callable[[Progress], None] | None = None,
    progress: bool | ProgressLine = False,
) -> CalibrationOutcome:
    """Read gold, read or ask for labels, compare them, and write the output folder.

    `now`: for the certificate and the ledger of sealed grades; by default the clock's time. `report` and `progress`: as
    for `run`. If asking stops early, the same call goes on from there.
    """
    now = now or datetime.now(UTC)
    with job_progress(progress, report) as shown:
        inputs = CalibrationInputs(plan, shown.steps)
        if plan.models:
            if plan.out is not None:
                refuse_foreign(plan.out, (CERTIFICATE, JUDGMENTS, FAILURES), RECORD)
            labeled = ask_models(inputs, now, shown)
        else:
            labeled = stored_labels(inputs, now, partial(check_second_year, inputs))
        if inputs.out and labeled.files:
            # The results are written before any statistic is computed, so that a failure there loses none of them.
            _write(inputs, inputs.out, labeled.files, more=True)
        panels, unmatched = make_comparison(inputs, labeled.rows, labeled.labels)
        panels = with_rankings(inputs, panels, labeled, shown.steps)
        if inputs.out:
            make_folder(inputs.out)
        calibration = compare_labels(inputs, labeled, panels, unmatched, shown.steps)
        seal = labeled.record.seal if labeled.record else None
        entries = certified(inputs, panels, calibration, seal, labeled.endpoints)
        calibration, entries = with_second_year(inputs, calibration, panels, entries, labeled.record)
        certificate = make_certificate(entries, now.date().isoformat())
        found = _disagreements(inputs, labeled, panels)
        if inputs.out:
            shown.steps(Step("making tables and pictures"))
            open_items = sum(side != "test" for panel in panels for side in panel.split)
            files = {**labeled.files, **calibration_files(calibration), **disagreement_files(found, open_items)}
            files[CERTIFICATE] = certificate_bytes(certificate, inputs.out / CERTIFICATE)
            with reported(inputs.out, RECORD):
                _write(inputs, inputs.out, files)
    not_drawn = undrawn("pictures of agreement and confusion") if inputs.out else ()
    trusted = bool(calibration.verdicts) and all(verdict.word == "TRUSTED" for verdict in calibration.verdicts)
    return CalibrationOutcome(
        calibration=calibration,
        certificate=certificate,
        trusted=trusted,
        disagreements=found,
        accounts=labeled.accounts,
        not_drawn=not_drawn,
        notes=inputs.notes,
    )


def _disagreements(
    inputs: CalibrationInputs, labeled: LabeledGold, panels: tuple[Panel, ...]
) -> tuple[Disagreement, ...]:
    """What judges grade otherwise than assessors, with texts where there is a pool."""
    pool = next((labels.pool for labels in labeled.labels if labels.pool is not None), None)
    turns = turns_shown(pool, inputs.topics) if pool is not None else inputs.topics
    # The rows beyond those of the gold files are sealed ones.
    sealed = frozenset(map(item_of, labeled.rows[len(inputs.gold.rows) :]))
    return disagreements(panels, pool, turns, sealed)


def forecast_calibration(plan: CalibrationPlan, progress: ProgressLine | None = None) -> JobForecast:
    """Count what `calibrate_judges` would send beyond what the journal holds; sealed grades stay closed."""
    if not plan.models:
        raise UsageError("a dry run counts what models would be asked (--dry-run goes with --model)")
    return forecast_models(CalibrationInputs(plan, progress or quiet))


def compare_labels(
    inputs: CalibrationInputs,
    labeled: LabeledGold,
    panels: tuple[Panel, ...],
    unmatched: int,
    steps: Steps,
) -> Calibration:
    """What gold and labels side by side say."""
    warnings = [
        *labeled.warnings,
        *without_shown(inputs, labeled.rows, labeled.labels).warnings,
        *_unmet(inputs, labeled, panels),
        *off_scale_warnings(panels),
        *beyond_warnings(labeled.rows, panels),
    ]
    if inputs.gold.columns:
        warnings.insert(0, "files of columns do not say how their grades were made; they are taken as given blind")
    if unmatched:
        things = UNITS[panels[0].unit].nouns.responses
        warnings.append(f"{unmatched} of {len(labeled.rows)} gold grades are of {things} not in the pool")
    record = labeled.record
    openings = record.opening.number if record else None
    found = calibrate(panels, msgspec.structs.replace(inputs.options, openings=openings), steps)
    looks = record.rows([panel.criterion for panel in panels]) if record else ()
    return msgspec.structs.replace(
        found,
        warnings=(*warnings, *found.warnings, *looked_often(looks)),
        looks=looks,
    )


def _unmet(inputs: CalibrationInputs, labeled: LabeledGold, panels: Sequence[Panel]) -> list[str]:
    """A warning for each criterion with gold but no judgments, or the reverse: it gets no verdict."""
    if inputs.only is not None:
        return []
    compared = {panel.criterion for panel in panels}
    graded = {row.criterion for row in labeled.rows}
    judged = judged_criteria(labeled.labels)
    return [
        *(f"{name}: gold, but no judgments; nothing is said about it" for name in sorted(graded - compared)),
        *(f"{name}: judgments, but no gold; nothing is said about it" for name in sorted(judged - graded)),
    ]


def _write(inputs: CalibrationInputs, out: Path, files: Mapping[str, bytes], *, more: bool = False) -> None:
    """Write files; the certificate is last, so that it never stands beside other tables. `more`: others follow."""
    judgments = inputs.plan.judgments
    read = [*judgments, *(path.with_name(FAILURES) for path in judgments), *inputs.plan.gold, *inputs.plan.tables]
    replace_folder(out, files, RECORD, inputs=read, last=CERTIFICATE, more=more)
