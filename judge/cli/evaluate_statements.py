"""The PTKB statements that runs name, as rankings and as sets, by each assessment: nDCG, P, recall, MRR, F1, MAP.

Without --qrels, the statements that the topics link to a turn are the relevant ones. Several files of qrels stand side
by side. Runs that name statements by text need --topics.
"""

import argparse
from pathlib import Path

from judge.cli.printing import progress
from judge.cli.rankings import add_ranking_arguments, check_form, plan_fields, print_rankings
from judge.evaluate.rankings import MAIN_OF_STATEMENTS
from judge.harness.evaluation.measured import StatementsPlan, evaluate_statements


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--qrels",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="grades of statements by number, a file for each group of assessors (default: the links of --topics)",
    )
    add_ranking_arguments(parser, MAIN_OF_STATEMENTS)


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    check_form(args)
    with progress("reading grades") as steps:
        outcome = evaluate_statements(StatementsPlan(**plan_fields(args)), steps)
    print_rankings(args, outcome)
    return 0
