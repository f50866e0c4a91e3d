"""Read what people changed in the sheet of a bank, and write it as edits; the bank itself stays as it was made.

The edits are those in the sheet and those that were there before. A row that is not in the sheet changes nothing.
"""

import argparse
from pathlib import Path

from judge.cli.printing import say
from judge.harness.nuggets.banks import NuggetImportPlan, import_nugget_edits
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("sheet", metavar="SHEET", type=Path, help="the sheet as people filled it in")
    parser.add_argument(
        "--bank",
        type=Path,
        required=True,
        metavar="FILE|DIR",
        help="the bank of the sheet, or its folder",
    )
    parser.add_argument("--edited-by", required=True, metavar="NAME", help="who changed the sheet")
    parser.add_argument(
        "--edits", type=Path, metavar="FILE", help="file of edits to write (default: edits.jsonl in the bank's folder)"
    )


def main(args: argparse.Namespace) -> int:
    """Write the edits and count them."""
    outcome = import_nugget_edits(
        NuggetImportPlan(sheet=args.sheet, bank=args.bank, edited_by=args.edited_by, edits=args.edits)
    )
    actions = outcome.actions
    say(
        f"{outcome.out}: {actions['change']} changed, {actions['delete']} deleted, {actions['add']} added; "
        f"{count(outcome.nuggets, 'nugget')} with these edits"
    )
    return 0
