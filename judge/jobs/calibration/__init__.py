"""A calibration from files to files: what `judge calibrate` does, for use from Python."""

from judge.jobs.calibration.inputs import CalibrationPlan
from judge.jobs.calibration.session import CalibrationOutcome, calibrate_judges

__all__ = ["CalibrationOutcome", "CalibrationPlan", "calibrate_judges"]
