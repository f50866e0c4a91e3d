"""Measure runs of RCD-2020: spans that need context (task 1), and passages about them (task 2).

For spans, the weighted overlap of character n-grams, which the track calls BLEU, and the Jaccard overlap of words, with
the figures that the organizers' own script prints. For passages, AP, P@5 and RR with the relevant passages of the
topics of a conversation put together.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_output_option
from judge.cli.printing import add_form_option, print_grids, print_json, progress, say_undrawn
from judge.harness.evaluation.spans import SpansPlan, evaluate_spans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--run",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="runs of spans (topic, tab, span) or of passages (TREC, six columns)",
    )
    parser.add_argument("--gold", type=Path, metavar="FILE", help="gold spans: topic, tab, span")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="passage qrels, for runs of passages")
    parser.add_argument(
        "--equivalence",
        type=Path,
        metavar="FILE",
        help="topics that share a conversation, a line each (default: each topic alone)",
    )
    add_output_option(parser, "DIR", "folder for the tables, with a row for each group")
    add_form_option(parser)
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    with progress("reading spans") as steps:
        outcome = evaluate_spans(
            SpansPlan(runs=args.run, gold=args.gold, qrels=args.qrels, equivalence=args.equivalence, out=args.out),
            steps,
        )
    if args.out is not None:
        say_undrawn("pictures of the intervals")
    if args.json:
        print_json(outcome)
    else:
        print_grids(list(outcome.grids.values()), args.format)
    return 0
