"""A calibration from files to files: what `judge calibrate` does, for use from Python."""

from judge.harness.calibration.plan import Trial
from judge.harness.calibration.session import Tried, carry_out

__all__ = ["Trial", "Tried", "carry_out"]
