"""What a calibration's certificate says of each verdict."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.prompt import RENDERER_VERSION
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import PARAMETERS, Certified
from judge.calibrate.findings import Calibration
from judge.calibrate.intake import Gold
from judge.calibrate.panel import Panel
from judge.errors import InputError
from judge.harness.calibration.plan import CalibrationPlan
from judge.harness.manifest import read_manifest
from judge.models.address import without_credentials

_MADE = {"parser": int, "renderer": int, "options": dict}
"""What a manifest says of how a judge was asked."""


def certified(
    plan: CalibrationPlan,
    gold: Gold,
    panels: Sequence[Panel],
    found: Calibration,
    openings: int | None,
    seal: str | None,
) -> tuple[Certified, ...]:
    """An entry a verdict."""
    tried = {one.criterion: one for one in found.selections}
    certified = []
    for panel in panels:
        for one in (verdict for verdict in found.verdicts if verdict.criterion == panel.criterion):
            column = next((column for column in panel.columns if column.name == one.judge), None)
            if column is None:
                continue
            origin = column.origin
            made = _made(plan, origin.source if origin else "")
            certified.append(
                Certified(
                    criterion=one.criterion,
                    judge=column.judge,
                    prompt=column.prompt,
                    prompt_digest=origin.prompt_digest if origin else None,
                    parser=made.get("parser", PARSER_VERSION),
                    renderer=made.get("renderer", RENDERER_VERSION),
                    parameters=_parameters(made.get("options")),
                    models_returned=origin.models_returned if origin else (),
                    gold=gold.digest,
                    seal=seal,
                    binary=panel.binary,
                    resampling=resampling(plan),
                    split=one.split,
                    n=one.estimate.n,
                    topics=one.estimate.topics,
                    tried=len(tried[one.criterion].tried) if one.criterion in tried else 0,
                    openings=openings,
                    statistic=one.statistic,
                    estimate=one.estimate,
                    requirements=one.requirements,
                    verdict=one.word,
                )
            )
    return tuple(certified)


def resampling(plan: CalibrationPlan) -> dict[str, int]:
    """What the intervals depend on beside the data."""
    return {"seed": plan.seed, "replicates": plan.replicates, "permutations": plan.permutations}


def _made(plan: CalibrationPlan, source: str) -> dict[str, Any]:
    """How the judge was asked: as here, or by the manifest beside the judgments; empty if nobody knows."""
    if plan.models:
        options = msgspec.to_builtins(plan.options)
        url = plan.options.base_url
        return {"options": {**options, "base_url": without_credentials(url) if url else None}}
    try:
        manifest = read_manifest(Path(source).parent)
    except InputError:
        manifest = None
    configuration = manifest["configuration"] if manifest else {}
    return {name: value for name, value in configuration.items() if isinstance(value, _MADE.get(name, ()))}


def _parameters(options: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if options is None else {name: options.get(name) for name in PARAMETERS}
