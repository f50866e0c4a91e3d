"""Compare two sets of grades: of the same items, and as what they make of the runs.

A and B are qrels of responses or passages, label files of four columns, `judgments.jsonl`, or output folders of `judge
run`. Printed are the agreement of the grades that both gave, and, with runs, of the two rankings: which pairs of runs
swap, which of their differences are significant, and how far the items that only one set graded could move it all.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_cluster_option, add_output_option, add_runs_option
from judge.cli.printing import add_form_option, print_grids, print_json, progress, say
from judge.errors import UsageError
from judge.harness.evaluation.qrels import QrelsPlan, compare_qrels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("a", type=Path, metavar="A", help="qrels, labels of four columns, or judgments")
    parser.add_argument("b", type=Path, metavar="B", help="others of the same items")
    reading = parser.add_argument_group("reading")
    add_runs_option(reading)
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file; graded turns that it lacks are refused"
    )
    reading.add_argument("--criterion", metavar="NAME|PATH", help="criterion of the judgments, or their prompt file")
    reading.add_argument("--scale", metavar="LOW-HIGH", help="scale of grades in columns (default: as they are given)")
    reading.add_argument(
        "--polarity",
        choices=("higher", "lower"),
        default="higher",
        help="which end of the scale of columns is good (default higher)",
    )
    reading.add_argument(
        "--off-scale",
        choices=("missing", "error"),
        default="error",
        help="a grade off its scale stops the comparison, or counts as missing (default error)",
    )
    comparing = parser.add_argument_group("comparing")
    comparing.add_argument(
        "--positive",
        type=int,
        nargs="+",
        metavar="N",
        help="compare positive or not: grade N or better; two numbers are for A and for B",
    )
    comparing.add_argument(
        "--measure",
        nargs="+",
        default=[],
        metavar="NAME",
        help="mean, the mean grade of first responses, or as ir-measures writes it (default: mean where A, B or the "
        "runs are of an output folder, else nDCG@5)",
    )
    add_cluster_option(comparing)
    writing = parser.add_argument_group("writing")
    add_output_option(writing, "DIR", "also write every table in all forms, and a picture of the rankings")
    add_form_option(parser)
    parser.add_argument("--json", action="store_true", help="print one object with everything")


def main(args: argparse.Namespace) -> int:
    """Compare, print."""
    with progress("reading grades") as steps:
        outcome = compare_qrels(
            QrelsPlan(
                a=args.a,
                b=args.b,
                runs=args.runs or (),
                measures=args.measure,
                topics=args.topics,
                criterion=args.criterion,
                scale=args.scale,
                polarity=args.polarity,
                positive=_positive(args.positive),
                off_scale=args.off_scale,
                cluster=args.cluster,
                out=args.out,
            ),
            steps,
        )
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if args.json:
        print_json(outcome)
    else:
        print_grids(tuple(outcome.grids.values()), args.format)
    return 0


def _positive(given: list[int] | None) -> int | tuple[int, int] | None:
    match given:
        case None:
            return None
        case [one]:
            return one
        case [first, second]:
            return first, second
    raise UsageError(f"--positive {' '.join(map(str, given))}: expected one grade, or one for A and one for B")
