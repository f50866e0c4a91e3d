"""Labels that exist already, beside gold."""

import os
from pathlib import Path

import msgspec

from judge.ask.subjects import check_unit
from judge.calibrate.intake import Gold, read_sources
from judge.harness.calibration.baselines import baseline_labels
from judge.harness.calibration.certified import resampling
from judge.harness.calibration.comparison import GoldComparison
from judge.harness.calibration.labeled import LabeledGold
from judge.harness.calibration.look import GoldLook
from judge.harness.calibration.plan import CalibrationPlan


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
    return LabeledGold(gold.rows, (*sources, *baseline_labels(comparison, gold.rows, sources)), warnings)
