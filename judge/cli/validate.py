"""List everything that is wrong with the runs of folders and files, all at once.

An error means that a response, a turn or a run cannot be judged; a warning, that it is judged although a guideline is
broken. The table of runs comes first, then the problems by file and code, with counts and the first places. Exit code 0
if there is no error, 1 if there is one, 2 if a file cannot be read as a run at all (everything else is still listed).
With --fix, 0 and 1 say what is wrong with the copies, and with the files that have none.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_input_arguments, add_output_option, given_runs
from judge.cli.printing import print_json, print_listed, print_table, progress, say
from judge.errors import UsageError
from judge.harness.validation import FixedRuns, ValidationPlan, validate_runs
from judge.runs.check.codes import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.pages import PAGE_EXAMPLES
from judge.runs.check.problems import EXAMPLES, RUN_COLUMNS, remaining, run_rows, text_lines, total
from judge.runs.fields import LISTED
from judge.runs.fix import LOG
from judge.runs.profiles import described
from judge.text.cells import count

SCHEMA = 1
"""Version of what --json prints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input_arguments(parser, alone=True)
    parser.add_argument(
        "--passage-hashes",
        type=Path,
        metavar="FILE",
        help="the collection's list of `doc_id passage_number MD5`, or its index, to check passage ids and texts",
    )
    parser.add_argument("--strict", action="store_true", help="count warnings as errors")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print all that --all lists, and more, as one JSON object")
    output.add_argument(
        "--all",
        action="store_true",
        help=f"list more than {EXAMPLES} problems of a code and file ({PAGE_EXAMPLES} on a page); of those in one list "
        f"of passages, {LISTED} are listed and the others counted",
    )
    output.add_argument(
        "--report-dir",
        type=Path,
        metavar="DIR",
        help="write one Markdown page per run and one per team, to send to the team; outside the runs' folder",
    )
    output.add_argument(
        "--teams", type=Path, metavar="TSV", help="run, tab, team, where the runs do not name their team"
    )
    fixing = parser.add_argument_group("fixed copies")
    fixing.add_argument(
        "--fix", action="store_true", help="write fixed copies of the runs to the folder of -o, and a log of every fix"
    )
    add_output_option(fixing, "DIR", "where --fix writes; outside the runs' folder")


def main(args: argparse.Namespace) -> int:
    """Check the runs and list the problems."""
    if args.fix != (args.out is not None):
        raise UsageError("--fix and -o DIR go together: the fixed copies are written to a folder of their own")
    with progress("checking runs") as steps:
        outcome = validate_runs(
            ValidationPlan(
                runs=given_runs(args),
                topics=args.topics,
                format=args.format,
                token_rule=args.token_rule,
                token_limit=args.token_limit,
                citation_limit=args.citation_limit,
                profile=args.profile,
                passage_hashes=args.passage_hashes,
                strict=args.strict,
                lengths=args.json,
                report_dir=args.report_dir,
                page_examples=None if args.all else PAGE_EXAMPLES,
                fixed_dir=args.out,
                teams=args.teams,
            ),
            steps,
        )
    for name, reason in outcome.refused:
        say(f"{name}: {reason}; no copy was written")
    if args.json:
        errors, warnings = (sum(getattr(file, kind) for file in outcome.files) for kind in ("errors", "warnings"))
        head = {"schema": SCHEMA, "errors": errors, "warnings": warnings, "limits": outcome.limits.recorded()}
        print_json({**head, "several_years": outcome.several_years, "files": outcome.files, "fixed": outcome.fixed})
    else:
        print_table(RUN_COLUMNS, run_rows(outcome.files), words=6)
        print()
        if outcome.several_years is not None:
            print_listed(f"error several_years: {outcome.several_years}")
        for line in text_lines(outcome.files, None if args.all else EXAMPLES):
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
