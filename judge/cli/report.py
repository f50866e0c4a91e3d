"""Write a report on output folders: one page to open in a browser, and the same as Markdown with pictures.

OUT is a folder of `judge run` or `judge calibrate`; several are set side by side. The page needs no network and asks
for nothing. With --gold, people's grades stand beside the judge's: agreement and corrected means; the look at the gold
is put on record beside it, as by `judge calibrate`.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_output_option, add_own_prompts_option
from judge.cli.printing import progress, say
from judge.report.job import ReportPlan, write_report
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="OUT", help="output folders of `judge run` or `judge calibrate`"
    )
    parser.add_argument("--gold", type=Path, nargs="+", default=[], metavar="FILE", help="gold grades (JSONL)")
    parser.add_argument("--criterion", metavar="NAME", help="only this criterion")
    add_own_prompts_option(parser)
    add_output_option(parser, "DIR", "where the report goes (default: into OUT, if it is one folder)")


def main(args: argparse.Namespace) -> int:
    """Write the report and name the page."""
    plan = ReportPlan(folders=args.folders, out=args.out, gold=args.gold, criterion=args.criterion, prompts=args.prompt)
    with progress("reading folders") as steps:
        outcome = write_report(plan, steps)
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    print(outcome.page)
    more = len(outcome.files) - 1
    if more:
        say(f"and {count(more, 'file')} beside it; report.sha256 lists them")
    return 0
