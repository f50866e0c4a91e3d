"""The options of every command that reads matches of nuggets."""

import argparse
from pathlib import Path

from judge.cli.options import pair


def add_matches_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the pool, the bank, the matches, and other names of runs.

    Args:
        parser: The parser of the command.
        what: What --matches names.
    """
    parser.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder with the pool")
    parser.add_argument(
        "--bank", type=Path, required=True, metavar="FILE|DIR", help="bank of nuggets in any form, or its folder"
    )
    parser.add_argument(
        "--matches",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE|DIR",
        help=f"{what}; of several judges the majority counts",
    )
    parser.add_argument(
        "--rename",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=RUN",
        help="the run of the pool that the matches call NAME; may be repeated",
    )
