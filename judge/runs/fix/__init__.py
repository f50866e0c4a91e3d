"""Fixed copies of runs, with a log of every fix; the runs themselves are never touched.

A fix never guesses content: it drops repetitions, orders entries by the run's own ranks and scores, and cuts texts
where the token rule cuts them.
"""

from judge.runs.fix.copies import LOG, FixedCopy, FixFolder, fixed_copy
from judge.runs.fix.fixes import Fix

__all__ = ["LOG", "Fix", "FixFolder", "FixedCopy", "fixed_copy"]
