"""Fixed copies of runs, with a log of every fix; the runs themselves are never touched.

Only what needs no guess about content is fixed: what is dropped is in the file already, what is reordered follows the
run's own ranks and scores, what is cut is cut where the rules cut it.
"""

from judge.runs.fix.copies import LOG, FixedCopy, FixFolder, fixed_copy
from judge.runs.fix.fixes import Fix

__all__ = ["LOG", "Fix", "FixFolder", "FixedCopy", "fixed_copy"]
