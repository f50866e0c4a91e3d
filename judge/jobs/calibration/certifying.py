"""The entries of a certificate: which judge was calibrated, how it was asked, and with what result."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.calibration import parse_requirement
from judge.calibrate.certificate import certified_options
from judge.calibrate.certified import Certified, CertifiedSeal, LabeledRange, topic_digest
from judge.calibrate.findings import AgreementRow, Calibration, TrustVerdict
from judge.calibrate.panel import JudgeColumn, Panel
from judge.calibrate.support import Met, labeled_range, measures_of
from judge.errors import InputError
from judge.jobs.calibration.inputs import CalibrationInputs, CalibrationPlan
from judge.jobs.calibration.labels import resampling
from judge.jobs.manifest import OutputFolder
from judge.judges.credentials import scrub, without_credentials
from judge.judges.model import recorded_options
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
    """The entries of the certificate, one per verdict."""
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
        made = made_by(inputs.plan, origin.source if origin else "", endpoints.get(column.judge))
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
                topic_digests=tuple(sorted(map(topic_digest, panel.topics))),
                design_effect=row.design_effect.get(verdict.statistic) if row else None,
                labeled=_labeled(panel, column, verdict),
            )
        )
    return tuple(entries)


def _labeled(panel: Panel, column: JudgeColumn, verdict: TrustVerdict) -> LabeledRange | None:
    """What the responses were like that the verdict rests on."""
    pool = column.origin.pool if column.origin else None
    pooled = {response.response_id: response for response in pool.responses} if pool is not None else {}
    met: list[Met] = []
    for place in np.flatnonzero(panel.within(verdict.split) & (column.codes >= 0)).tolist():
        item = panel.items[place]
        label = column.first[place]
        response = pooled.get(item.response_id)
        measures = measures_of(response, pool) if response is not None and pool is not None else {}
        met.append(Met(topic=item.topic_id, measures=measures, grade=label.grade if label else None))
    return labeled_range(met)


def _others(verdict: TrustVerdict, row: AgreementRow | None) -> dict[str, Estimate]:
    """The statistics that the requirements bound, besides the primary one."""
    named = {parse_requirement(rule).statistic for rule in verdict.requirements} - {verdict.statistic}
    return {name: row.statistics[name] for name in sorted(named)} if row else {}


def made_by(plan: CalibrationPlan, source: str, endpoint: str | None) -> dict[str, Any]:
    """How the judge was asked, by the plan or by the manifest beside the judgments; empty if neither says."""
    if plan.models:
        url = plan.options.base_url
        options = recorded_options(plan.options)
        options["base_url"] = scrub(without_credentials(url)) if url else endpoint
        return {"options": options}
    try:
        manifest = OutputFolder(Path(source).parent).manifest
    except InputError:
        manifest = None
    configuration = manifest["configuration"] if manifest else {}
    return {name: value for name, value in configuration.items() if isinstance(value, _MADE.get(name, ()))}
