"""Calibrate: judges' labels against assessors' grades of the same items, and what may be claimed about a judge.

    intake      gold, labels and pools, from files to panels
    panel       gold by item, the problems that forbid a comparison, and gold and labels side by side, as arrays
    agreement   every statistic of one judge, with its intervals
    diagnostics findings beside agreement, each a function and its table: bias by length, turn depth and generator
                family; the calibration map; the ranking of runs; the alternative annotator
    selection   judges compared pairwise, the choice among them and what it costs, and what is as good as the chosen one
    calibration all of the above for every panel, and the verdict, from an interval's lower end
    disagreements  the items on which a judge and the assessors differ, with their texts
    recheck     how far a judge moves in one run, and between two dates
    certificate what was calibrated, for a later run to compare itself with
    second_year whether a certificate's agreement carries to other topics, and how many labels show it
    support     whether responses are like those that were labeled

Only intake and certificate read files. Nothing here asks a judge; the command line adds the loop.
"""

from judge.calibrate.calibration import calibrate
from judge.calibrate.findings import CalibrationOptions

__all__ = ["CalibrationOptions", "calibrate"]
