"""BLEU and ROUGE of the responses of runs against manual responses of the same turns.

BLEU is of all turns together; ROUGE-1, ROUGE-2 and ROUGE-L are means of F over turns, with intervals over topics. Both
reward the words of the manual response; a right answer in other words scores low. Interactive runs are left out: no
manual response is of their turns. Needs the extras bleu and rouge.
"""

import argparse
from pathlib import Path
from typing import get_args

from judge.cli.options import add_cluster_option, add_output_option
from judge.cli.printing import add_form_option, print_grids, progress, say
from judge.evaluate.wording.tables import OverReferences
from judge.harness.evaluation.wording import WordingPlan, evaluate_wording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        required=True,
        metavar="PATH",
        help="run files, or folders of them, in any format of the tracks",
    )
    parser.add_argument(
        "--reference",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="manual runs, whose first response in a turn is a reference; several give a turn several",
    )
    parser.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file, whose canonical responses are references too"
    )
    parser.add_argument(
        "--over",
        choices=get_args(OverReferences),
        default="references",
        help="turns with a reference, unanswered ones as empty texts, or those answered (default references)",
    )
    add_cluster_option(parser)
    add_form_option(parser)
    add_output_option(parser, "DIR", "folder for the table in all forms, and the values of all turns")


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    with progress("reading manual responses") as steps:
        outcome = evaluate_wording(
            WordingPlan(
                runs=args.runs,
                references=args.reference,
                topics=args.topics,
                over=args.over,
                cluster=args.cluster,
                out=args.out,
            ),
            steps,
        )
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    print_grids([outcome.grid], args.format)
    return 0
