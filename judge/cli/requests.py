"""Write what `judge run` would still ask as files that batch engines take: providers' batch APIs, `vllm run-batch`.

Nothing is sent. The options are those of `judge run`, but for a cascade, an engine and a recheck. `judge completions
import` takes what comes back into the journal of --out, and the same command then writes what is still open: the
repairs of unreadable replies, and what failed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from judge.cli.options import positive
from judge.cli.printing import print_json, print_table, progress, say
from judge.cli.run import add_run_arguments, print_dry_run, read_plan
from judge.cli.tables import print_pooled, print_problems
from judge.harness.requests import write_requests
from judge.harness.run_inputs import read_run
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    requests = parser.add_argument_group("requests")
    requests.add_argument(
        "--requests", type=Path, required=True, metavar="DIR", help="a new folder for the requests, one for each round"
    )
    requests.add_argument(
        "--shards", type=positive, metavar="N", help="spread them over N files (default: as few as the engine takes)"
    )
    requests.add_argument(
        "--shard-lines", type=positive, metavar="N", help="most requests of a file (default: what the engine takes)"
    )
    add_run_arguments(parser, asks=False, printed="the folder and its files")


def main(args: argparse.Namespace, argv: Sequence[str] | None = None) -> int:
    """Pool, and write the requests."""
    with progress("reading and checking runs") as steps:
        inputs = read_run(read_plan(args, argv), keys=False, steps=steps)
    print_problems(inputs.pooled, checked_topics=args.topics is not None)
    print_pooled(inputs.pooled)
    if args.dry_run:
        print_dry_run(inputs, as_json=args.json)
        return 0
    with progress("") as steps:
        outcome = write_requests(inputs, args.requests, shards=args.shards, most=args.shard_lines, steps=steps)
    if args.json:
        print_json(outcome)
    elif outcome.shards:
        rows = [
            (shard.name, shard.judge, shard.form, f"{shard.lines:,}", f"{shard.bytes:,}") for shard in outcome.shards
        ]
        print_table(("file", "judge", "form", "requests", "bytes"), rows, words=3)
    if outcome.folder is None:
        say("the journal answers everything: no requests were written; `judge run` gives the results")
        return 0
    say(f"{count(outcome.requests, 'request')} in {outcome.folder}; nothing was sent")
    shared = "" if args.journal is None else " --journal URL"
    say(
        f"`judge completions import FILE... --requests {outcome.folder} --out {inputs.out}{shared}` takes what comes "
        "back"
    )
    return 0
