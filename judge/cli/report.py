"""Write a report on output folders: one page to open in a browser, and the same as Markdown with pictures.

OUT is a folder of `judge run` or `judge calibrate`; several are set side by side. The page needs no network and asks
for nothing. With --gold, people's grades stand beside the judge's: agreement and corrected means; the look at the gold
is put on record beside it, as by `judge calibrate`.
"""

from judge.cli.printing import progress, say
from judge.io.cells import count
from judge.report.job import ReportPlan, write_report


def main(plan: ReportPlan) -> int:
    """Write the report and name the page."""
    with progress("reading folders") as steps:
        outcome = write_report(plan, steps)
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    print(outcome.page)
    more = len(outcome.files) - 1
    if more:
        say(f"and {count(more, 'file')} beside it; report.sha256 lists them")
    return 0
