"""What a calibration's certificate says of each verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.ask.opening import address_option
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import certified_options
from judge.calibrate.certified import Certified, CertifiedSeal
from judge.calibrate.findings import AgreementRow, Calibration, TrustVerdict
from judge.calibrate.gate import parse_requirement
from judge.calibrate.panel import Panel
from judge.errors import InputError
from judge.jobs.calibration.comparison import CalibrationInputs
from judge.jobs.calibration.labels import resampling
from judge.jobs.calibration.plan import CalibrationPlan
from judge.jobs.manifest import read_manifest
from judge.judges.address import without_credentials
from judge.judges.backends import judges_in
from judge.judges.model import recorded_options
from judge.judges.secrets import scrub
from judge.records import Estimate

_MADE = {"parser": int, "renderer": int, "options": dict}
"""The keys of a manifest's configuration that say how a judge was asked, and their types."""


def certified(
    inputs: CalibrationInputs,
    panels: Sequence[Panel],
    found: Calibration,
    seal: CertifiedSeal | None,
    endpoints: Mapping[str, str],
) -> tuple[Certified, ...]:
    """The entries of the certificate, one per verdict.

    Args:
        inputs: The plan, and the gold files.
        panels: Gold and labels side by side.
        found: What the calibration found.
        seal: The seal of the test grades.
        endpoints: Judge to the address to which the environment moved it.
    """
    selections = {selection.criterion: selection for selection in found.selections}
    looks = {of_criterion.criterion: of_criterion for of_criterion in found.looks}
    rows = {(row.criterion, row.name, row.split): row for row in found.agreement}
    by_criterion = {panel.criterion: panel for panel in panels}
    entries = []
    for verdict in found.verdicts:
        panel = by_criterion[verdict.criterion]
        column = next((column for column in panel.columns if column.name == verdict.judge), None)
        if column is None:
            continue
        origin = column.origin
        judges = judges_in(column.judge)
        source = origin.source if origin else ""
        made = _made(inputs.plan, source, endpoints.get(judges[-1]), cascade=len(judges) > 1)
        options = made.get("options")
        row = rows.get((verdict.criterion, verdict.judge, verdict.split))
        entries.append(
            Certified(
                criterion=verdict.criterion,
                judge=column.judge,
                prompt=column.prompt,
                prompt_digest=origin.prompt_digest if origin else None,
                parser=made.get("parser", PARSER_VERSION),
                renderer=made.get("renderer", RENDERER_VERSION),
                parameters=None if options is None else certified_options(options),
                models_returned=origin.models_returned if origin else (),
                gold=inputs.gold.digest,
                seal=seal,
                binary=panel.binary,
                resampling=resampling(inputs.plan),
                split=verdict.split,
                n=verdict.estimate.n,
                topics=verdict.estimate.topics,
                tried=len(selections[verdict.criterion].tried) if verdict.criterion in selections else 0,
                looks=looks.get(verdict.criterion),
                made=panel.made,
                graded=row.gold if row else 0,
                statistic=verdict.statistic,
                estimate=verdict.estimate,
                others=_others(verdict, row),
                requirements=verdict.requirements,
                verdict=verdict.word,
            )
        )
    return tuple(entries)


def _others(verdict: TrustVerdict, row: AgreementRow | None) -> dict[str, Estimate]:
    """The statistics that the requirements bound, besides the primary one."""
    named = {parse_requirement(rule).statistic for rule in verdict.requirements} - {verdict.statistic}
    return {name: row.statistics[name] for name in sorted(named)} if row else {}


def _made(plan: CalibrationPlan, source: str, endpoint: str | None, *, cascade: bool) -> dict[str, Any]:
    """How the judge was asked, by the plan or by the manifest beside the judgments; empty if neither says."""
    if plan.models:
        url = plan.options.base_url
        options = recorded_options(plan.options)
        options["base_url"] = scrub(without_credentials(url)) if url else endpoint
        return {"options": {**options, **(address_option(plan.cascade_url) if cascade else {})}}
    try:
        manifest = read_manifest(Path(source).parent)
    except InputError:
        manifest = None
    configuration = manifest["configuration"] if manifest else {}
    made: dict[str, Any] = {
        name: value for name, value in configuration.items() if isinstance(value, _MADE.get(name, ()))
    }
    described = configuration.get("cascade")
    if cascade and "options" in made and isinstance(described, dict) and isinstance(described.get("base_url"), str):
        made["options"] = {**made["options"], **address_option(described["base_url"])}
    return made
