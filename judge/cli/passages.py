"""Make passage texts and passage checks fast: indexes of a collection, and the texts that a pool needs.

`index --hashes` turns the collection's list of MD5s into a file that tells at once which passages exist and whether a
text is theirs. `index --collection` records where each passage stands in plain JSONL files. `extract` writes the texts
of the passages that a pool or runs use to one small passages.jsonl for `judge run --passages`, in one pass over the
collection or through its index. If options other than --depth decide what is pooled, pool first (`judge pool`) and
extract with --pool.
"""

import argparse
from collections.abc import Collection
from pathlib import Path

from judge.cli.options import add_actions, add_output_option, add_runs_option, positive, refuse_unused
from judge.cli.printing import print_json, progress, say
from judge.harness.passages import ExtractPlan, IndexPlan, extract_passages, index_passages
from judge.text.ids import natural_key

SHOWN = 10
"""How many passages of each kind are named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = add_actions(parser, "index|extract")
    index = actions.add_parser("index", help="build an index of a hash list or of a collection")
    source = index.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--hashes",
        type=Path,
        metavar="LIST",
        help="the collection's list: document, passage number, MD5; packed or not",
    )
    source.add_argument(
        "--collection", type=Path, nargs="+", metavar="PATH", help="plain JSONL files of passages, or folders of them"
    )
    add_output_option(index, "FILE", "the index file to write", required=True)
    extract = actions.add_parser("extract", help="write the texts of the passages that runs or a pool use")
    users = extract.add_mutually_exclusive_group(required=True)
    add_runs_option(users)
    users.add_argument("--pool", type=Path, metavar="OUT|FILE", help="output folder of `judge pool` or `judge run`")
    extract.add_argument(
        "--depth",
        type=positive,
        default=1,
        metavar="N",
        help="with --runs: the passages of the N best-ranked responses of a turn (default 1); give --max-rank here "
        "if you pool with it",
    )
    extract.add_argument(
        "--passages",
        type=Path,
        nargs="+",
        required=True,
        metavar="PATH",
        help="the collection: JSONL or TREC-web files, packed or not, folders of them, or an index of it",
    )
    extract.add_argument(
        "--passage-hashes",
        type=Path,
        metavar="FILE",
        help="hash list or its index: passages that it does not list, and texts that differ, are named and left out",
    )
    extract.add_argument(
        "--json", action="store_true", help="print the counts, and every id left out, as one JSON object"
    )
    add_output_option(extract, "FILE", "the passages.jsonl to write", required=True)


def main(args: argparse.Namespace) -> int:
    """Build an index, or extract; 1 if a passage is missing or a run cannot be used."""
    if args.action == "index":
        return _index(args)
    return _extract(args)


def _index(args: argparse.Namespace) -> int:
    with progress("indexing") as steps:
        count = index_passages(IndexPlan(hashes=args.hashes, collection=args.collection or (), out=args.out), steps)
    say(f"{args.out}: {count:,} {'passage' if count == 1 else 'passages'} indexed")
    return 0


def _extract(args: argparse.Namespace) -> int:
    if args.runs is None:
        refuse_unused(args, ["depth"], "it is about --runs; a pool was made to its own depth")
    with progress("reading runs") as steps:
        outcome = extract_passages(
            ExtractPlan(
                runs=args.runs,
                pool=args.pool,
                depth=args.depth,
                passages=args.passages,
                passage_hashes=args.passage_hashes,
                out=args.out,
            ),
            _say_errors,
            steps,
        )
    if args.json:
        left_out = {
            kind: sorted(getattr(outcome, kind), key=natural_key) for kind in ("missing", "unlisted", "differing")
        }
        print_json({"wanted": outcome.wanted, "extracted": outcome.extracted, **left_out, "errors": outcome.errors})
    say(f"{args.out}: {outcome.extracted:,} of {outcome.wanted:,} {'passage' if outcome.wanted == 1 else 'passages'}")
    _name(outcome.missing, "not found")
    _name(outcome.unlisted, "left out, not on the hash list")
    _name(outcome.differing, "left out, the text differs from the hash list")
    return 1 if outcome.errors or outcome.extracted < outcome.wanted else 0


def _say_errors(errors: int) -> None:
    if errors:
        say(f"{errors} {'error' if errors == 1 else 'errors'} in the runs; `judge validate` lists them")


def _name(ids: Collection[str], reason: str) -> None:
    if not ids:
        return
    say(f"{len(ids):,} {reason}:")
    for passage_id in sorted(ids, key=natural_key)[:SHOWN]:
        say(f"  {passage_id}")
    if len(ids) > SHOWN:
        say(f"  … and {len(ids) - SHOWN:,} more")
