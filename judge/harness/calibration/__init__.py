"""A calibration from files to files: what `judge calibrate` does, for use from Python."""

from judge.harness.calibration.plan import CalibrationPlan
from judge.harness.calibration.session import CalibrationOutcome, calibrate_judges

__all__ = ["CalibrationOutcome", "CalibrationPlan", "calibrate_judges"]
