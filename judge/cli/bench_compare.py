"""Set judge cards side by side: judges by datasets, and paired differences where the answers are beside the cards.

A card of other data, or under another prompt than the first card, is not compared, and a line says so.
"""

import argparse
from pathlib import Path

from judge.cli.printing import add_form_option, print_grids, progress
from judge.harness.evaluation.bench_cards import CardsPlan, compare_bench


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "cards", nargs="+", type=Path, metavar="CARD", help="cards, or folders that `judge bench` wrote"
    )
    add_form_option(parser)


def main(args: argparse.Namespace) -> int:
    """Read, compare, print."""
    with progress("comparing cards"):
        compared = compare_bench(CardsPlan(cards=args.cards))
    print_grids(compared.grids, args.format)
    return 0
