"""Pool the runs of a folder without judging anything, for human assessors, a crowd or `judge run`.

Writes the pool (TREC pool, records, response bank, passages), each run over the pooled responses, and the reason for
each response left out. `judge run` with the same options and --out continues there.
"""

import argparse
import sys
from pathlib import Path
from typing import get_args

from judge.cli.config import add_config_arguments
from judge.cli.pooling import add_pooling_arguments, pooling_options
from judge.cli.printing import print_json, progress, say
from judge.cli.tables import pooled_counts, print_pooled, print_problems
from judge.harness.folder import write_pool
from judge.harness.pooling import Pooling, check_complete, pool_runs
from judge.harness.run_inputs import DEFAULT_OUT
from judge.records import JudgedUnit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_pooling_arguments(parser)
    unit = parser.add_argument_group("unit")
    unit.add_argument(
        "--unit",
        choices=get_args(JudgedUnit),
        default="response",
        help="what is pooled: each response (default), or for each run and topic the whole dialogue, for prompts about "
        "dialogues",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--out", type=Path, metavar="DIR", help=f"output folder (default {DEFAULT_OUT}, or that of --extend)"
    )
    output.add_argument("--replace", action="store_true", help="write over another pool, or its results, in --out")
    output.add_argument("--json", action="store_true", help="print the counts of the pool as one JSON object")
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Pool, write, and say what was left out; 1 if no response is pooled."""
    pooling = Pooling(**pooling_options(args), unit=args.unit)
    with progress("reading and checking runs") as steps:
        pooled = pool_runs(pooling, steps)
    print_problems(pooled, checked_topics=args.topics is not None)
    if pooling.missing_passages == "fail":
        check_complete(pooled.pool)
    out = args.out or args.extend or DEFAULT_OUT
    with progress("writing the pool"):
        write_pool(out, pooled, sys.argv[1:], extended=args.extend, replace=args.replace, options=args.chosen)
    print_pooled(pooled)
    if args.json:
        print_json(pooled_counts(pooled))
    say(f"the pool is in {out}")
    return 0 if pooled.pool.responses else 1
