"""The recall of runs: which share of the nuggets of a turn the responses support, by people's matches or a judge's.

Names of measures are nuggetizer's. With --gold, the recall by a judge is corrected by people's matches of a part of the
responses. With --claims, runs have nugget precision too: which share of a response's claims some nugget carries.
"""

import argparse
from pathlib import Path

from judge.cli.nuggets_options import add_matches_arguments
from judge.cli.options import add_cluster_option, add_output_option, by_name
from judge.cli.printing import add_form_option, print_grids, progress, say
from judge.harness.nuggets.scoring import NuggetScorePlan, score_nuggets
from judge.nuggets.scores import MAIN, RECALLS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_matches_arguments(parser, "people's matches, or folders of `judge nuggets match`")
    parser.add_argument(
        "--claims",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE|DIR",
        help="labels of claims, or folders of `judge nuggets claims`: precision, and F with strict recall",
    )
    parser.add_argument(
        "--gold",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="people's matches of a part of the responses, to correct the recall by a judge",
    )
    parser.add_argument(
        "--inclusion",
        type=float,
        metavar="P",
        help="probability with which units were drawn for --gold, where its rows do not say it",
    )
    parser.add_argument(
        "--main", choices=RECALLS, default=MAIN, help=f"recall that runs are ranked by (default {MAIN})"
    )
    add_cluster_option(parser)
    add_output_option(parser, "DIR", "folder for the tables")
    add_form_option(parser)


def main(args: argparse.Namespace) -> int:
    """Score and print; 1 if no response has all its nuggets matched."""
    with progress("scoring runs"):
        scored = score_nuggets(
            NuggetScorePlan(
                pool=args.pool,
                bank=args.bank,
                matches=args.matches,
                claims=args.claims,
                gold=args.gold,
                inclusion=args.inclusion,
                renamed=by_name("--rename", args.rename),
                main=args.main,
                cluster=args.cluster,
                out=args.out,
            )
        )
    print_grids(scored.grids, args.format)
    for note in scored.notes:
        say(f"note: {note}")
    if args.out is not None:
        say(f"tables in {args.out}")
    return 0 if any(unit.status == "matched" for unit in scored.units) else 1
