"""Write a bank as a table for a spreadsheet, a nugget a row; `judge nuggets import` reads what people changed.

People change the columns importance and text, put an x into delete, and add rows without an id. No cell is a formula.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_output_option
from judge.cli.printing import say
from judge.harness.nuggets.banks import NuggetSheetPlan, write_nugget_sheet
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("bank", metavar="BANK", type=Path, help="bank of nuggets in any form, or its folder")
    parser.add_argument(
        "--edits", type=Path, metavar="FILE", help="edits so far (default: edits.jsonl in the folder of the bank)"
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file, to show what the user said")
    add_output_option(parser, "FILE", "the sheet to write, such as sheet.csv", required=True)


def main(args: argparse.Namespace) -> int:
    """Write the sheet and say how many rows it has."""
    rows = write_nugget_sheet(NuggetSheetPlan(bank=args.bank, out=args.out, edits=args.edits, topics=args.topics))
    say(f"{args.out}: {count(rows, 'nugget')}")
    return 0
