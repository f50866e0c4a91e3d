"""Calibrate: judges' labels against assessors' grades of the same items, and what may be claimed of it.

    panel       gold and labels side by side, as arrays over the same items
    agreement   every statistic of one judge, with its intervals
    selection   judges compared pairwise, the choice among them and what it costs
    gate        the verdict, from an interval's lower end
    diagnostics bias by length, turn depth and generator family; the calibration map; systems; the alternative annotator
    calibration all of it

Pure: records and arrays in, records out. It never asks a judge; the command line composes it with the loop.
"""

from judge.calibrate.calibration import CalibrationOptions, calibrate

__all__ = ["CalibrationOptions", "calibrate"]
