"""How far the matches of a judge agree with those of people of the same pairs, with intervals over topics."""

import argparse
from pathlib import Path

from judge.cli.nuggets_options import add_matches_arguments
from judge.cli.options import add_cluster_option, by_name
from judge.cli.printing import add_form_option, print_grids, progress
from judge.harness.nuggets.scoring import SEED, NuggetAgreePlan, compare_matches
from judge.nuggets.people import agreement_grids


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_matches_arguments(parser, "folders of `judge nuggets match`")
    parser.add_argument("--gold", type=Path, nargs="+", required=True, metavar="FILE", help="people's matches")
    parser.add_argument(
        "--resampling-seed", type=int, default=SEED, metavar="N", help=f"seed of the resamples (default {SEED})"
    )
    add_cluster_option(parser)
    add_form_option(parser)


def main(args: argparse.Namespace) -> int:
    """Compare and print."""
    with progress("comparing matches"):
        agreement = compare_matches(
            NuggetAgreePlan(
                pool=args.pool,
                bank=args.bank,
                gold=args.gold,
                matches=args.matches,
                renamed=by_name("--rename", args.rename),
                cluster=args.cluster,
                seed=args.resampling_seed,
            )
        )
    print_grids(agreement_grids(agreement), args.format)
    return 0
