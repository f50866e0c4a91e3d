"""The page on a finished run: written where that is quick, and always named."""

import shlex
from pathlib import Path

from judge.cli.printing import say
from judge.harness.run import Outcome
from judge.text.safe import printable

MOST = 10_000
"""Judgments up to which `judge run` writes the page by itself; more take longer than anybody waits for unasked."""


def name_results(outcome: Outcome) -> None:
    """Say where to start: the leaderboard, and the report, which is written if it is not there.

    A report that cannot be written is no reason to call a finished run failed.
    """
    # Imported late, because templates and charts are not needed before the run is finished.
    from judge.harness.earlier import REPORT_RECORD
    from judge.report.job import PAGE, ReportPlan, write_report

    out = outcome.out
    page, shown = out / PAGE, shlex.quote(str(out))
    say(f"start here: {out / 'leaderboard.md'}")
    # A report that no longer fits the results was removed with them.
    if not ((out / REPORT_RECORD).is_file() and page.is_file()):
        if len(outcome.results) > MOST:
            say(f"`judge report {shown}` puts everything on one page")
            return
        try:
            files = [part.file for criterion in outcome.criteria for part in criterion.together or (criterion,)]
            own = [file for file in dict.fromkeys(files) if Path(file).is_file()]
            write_report(ReportPlan(folders=(out,), prompts=own, page_only=True))
        except Exception as error:  # noqa: BLE001 - the run is finished, and nothing about its report may say otherwise
            say(f"warning: no report: {printable(str(error) or type(error).__name__)}")
            say(f"the results are complete; `judge report {shown}` writes the report once that is fixed")
            return
    say(f"the same and more in a browser: {page} (index.md lists all files)")
