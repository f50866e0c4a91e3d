"""What a calibration compares once all labels are there."""

from collections.abc import Mapping
from typing import NamedTuple

from judge.calibrate.findings import CascadeBounds, GroupCost
from judge.calibrate.intake import LabelSource
from judge.gold.rows import GoldRow
from judge.harness.calibration.cascades import PlannedCascades


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
    cascades: PlannedCascades | None = None
