"""The passages of runs under the measures of the tracks, by qrels: nDCG, P, recall, MAP, MRR, and the share judged.

Runs may be in any format of the tracks, or TREC runs of six columns. The first 1,000 passages of a turn count, each
once. --by shows nDCG@5, or the measure of --main, by topic, by depth of the turn, or by dependence on the PTKB.
"""

import argparse
from pathlib import Path

from judge.cli.printing import progress
from judge.cli.rankings import add_ranking_arguments, check_form, plan_fields, print_rankings
from judge.evaluate.rankings import MAIN_OF_PASSAGES
from judge.harness.evaluation.measured import PassagesPlan, evaluate_passages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--qrels", type=Path, required=True, metavar="FILE", help="grades of passages")
    add_ranking_arguments(parser, MAIN_OF_PASSAGES)


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    check_form(args)
    with progress("reading grades") as steps:
        outcome = evaluate_passages(PassagesPlan(**plan_fields(args)), steps)
    print_rankings(args, outcome)
    return 0
