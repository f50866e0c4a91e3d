"""List everything that is wrong with the runs of folders and files, all at once.

An error means that a response, a turn or a run cannot be judged; a warning, that it is judged although a guideline is
broken. The table of runs comes first, then the problems by file and code, with counts and the first places. Exit code 0
if there is no error, 1 if there is one, 2 if a file cannot be read as a run at all (everything else is still listed).
With --fix, 0 and 1 say what is wrong with the copies, and with the files that have none.
"""

from pathlib import Path
from typing import Annotated

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_listed, print_table, progress, say
from judge.errors import UsageError
from judge.io.cells import count
from judge.io.plan import Option, Options
from judge.jobs.validation import FixedRuns, ValidationPlan, validate_runs
from judge.runs.check.codes import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.pages import PAGE_EXAMPLES
from judge.runs.check.problems import EXAMPLES, RUN_COLUMNS, remaining, run_rows, text_lines, total
from judge.runs.fix import LOG
from judge.runs.profiles import described

SCHEMA = 1
"""Version of what --json prints."""


class ProblemListing(JsonOutput, section="output"):
    """What is printed."""

    all: bool = False
    """List more than 3 problems of a code and file (20 on a page); of those in one list of passages, 10 are listed and
    the others counted."""


class Fixing(Options, section="fixed copies"):
    """Where fixed copies go."""

    fix: bool = False
    """Write fixed copies of the runs to the folder of -o, and a log of every fix."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Where --fix writes; outside the runs' folder."""


def main(plan: ValidationPlan, output: ProblemListing, fixing: Fixing) -> int:
    """Check the runs and list the problems."""
    if fixing.fix != (fixing.out is not None):
        raise UsageError("--fix and -o DIR go together: the fixed copies are written to a folder of their own")
    plan = plan.with_values(
        lengths=output.as_json, page_examples=None if output.all else PAGE_EXAMPLES, fixed_dir=fixing.out
    )
    with progress("checking runs") as steps:
        outcome = validate_runs(plan, steps)
    for name, reason in outcome.refused:
        say(f"{name}: {reason}; no copy was written")
    if output.as_json:
        errors, warnings = (sum(getattr(file, kind) for file in outcome.files) for kind in ("errors", "warnings"))
        head = {"schema": SCHEMA, "errors": errors, "warnings": warnings, "limits": outcome.limits.recorded()}
        print_json({**head, "several_years": outcome.several_years, "files": outcome.files, "fixed": outcome.fixed})
    else:
        print_table(RUN_COLUMNS, run_rows(outcome.files), words=6)
        print()
        if outcome.several_years is not None:
            print_listed(f"error several_years: {outcome.several_years}")
        for line in text_lines(outcome.files, None if output.all else EXAMPLES):
            print_listed(line)
        if outcome.fixed is not None:
            _print_fixed(outcome.fixed)
    for option, needing in (("--topics", NEEDS_TOPICS), ("--passage-hashes", NEEDS_HASHES)):
        if codes := sorted(outcome.unchecked & set(needing)):
            say(f"not checked without {option}: {', '.join(codes)}")
    say(f"limits: {described(outcome.limits)}")
    return 2 if outcome.unreadable else int(outcome.errors)


def _print_fixed(fixed: FixedRuns) -> None:
    fixes = count(fixed.fixes, "fix", "fixes")
    print()
    print_listed(f"fixed copies in {fixed.folder}: {fixes}, listed in {LOG}; what remains:")
    for file in fixed.files:
        print_listed(f"  {remaining(file)}")
    if fixed.without_copy:
        print("without a copy:")
    for file in fixed.without_copy:
        print_listed(f"  {remaining(file)}")
    print_listed(total((*fixed.files, *fixed.without_copy)))
