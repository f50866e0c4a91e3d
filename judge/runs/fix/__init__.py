"""Repaired copies of runs, with a log of every edit; the runs themselves are never touched.

Only what can be mended without a guess about content is mended: what is dropped is in the file already, what is
reordered follows the run's own ranks and scores, what is cut is cut where the rules cut it.
"""

from judge.runs.fix.copies import FixFolder, Outcome, repaired
from judge.runs.fix.fixes import MENDED, Edit

__all__ = ["MENDED", "Edit", "FixFolder", "Outcome", "repaired"]
