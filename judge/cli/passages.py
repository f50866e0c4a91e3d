"""Make passage texts and passage checks fast: indexes of a collection, and the texts that a pool needs.

`index --hashes` turns the collection's list of MD5s into a file that answers at once which passages exist and what
their texts are. `index --collection` does so for where each passage stands in plain JSONL files. `extract` writes the
texts of the passages that the runs use, in one pass over the collection or through its index, as one small
passages.jsonl for `judge run --passages`.
"""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.cli.options import positive
from judge.errors import UsageError
from judge.files import write_atomic
from judge.ids import natural_key
from judge.intake import read_runs
from judge.outputs import read_previous_pool
from judge.passages import read_passages
from judge.records import Passage
from judge.selection import Selection
from judge.text import printable

SHOWN = 10
"""Missing passages that are named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="index|extract")
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
    index.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the index file to write")
    extract = actions.add_parser("extract", help="write the texts of the passages that runs or a pool use")
    users = extract.add_mutually_exclusive_group(required=True)
    users.add_argument("--runs", type=Path, metavar="DIR", help="folder of run files, or one run file")
    users.add_argument("--pool", type=Path, metavar="OUT", help="output folder of `judge run`")
    extract.add_argument(
        "--depth",
        type=positive,
        default=1,
        metavar="N",
        help="with --runs: the passages of the N best-ranked responses of a turn (default 1)",
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
        help="hash list or its index: leave out, and name, texts that are not the collection's",
    )
    extract.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the passages.jsonl to write")


def main(args: argparse.Namespace) -> int:
    """Build an index, or extract; 1 if a passage is missing."""
    if args.action == "index":
        return _index(args)
    return _extract(args)


def _index(args: argparse.Namespace) -> int:
    inputs = [args.hashes] if args.hashes else args.collection
    _refuse_overwriting(args.output, inputs)
    if args.hashes:
        from judge.passages.hashes import index_hashes

        count = index_hashes(args.hashes, args.output)
    else:
        from judge.passages.index import index_collection

        count = index_collection(args.collection, args.output)
    print(printable(f"{args.output}: {count:,} passages indexed"), file=sys.stderr)
    return 0


def _refuse_overwriting(output: Path, inputs: Sequence[Path]) -> None:
    if any(output.resolve() == one.resolve() for one in inputs):
        raise UsageError(f"{output}: the output would replace the input")
    if output.is_dir():
        raise UsageError(f"{output}: this is a folder; name the file to write")


def _extract(args: argparse.Namespace) -> int:
    _refuse_overwriting(args.output, args.passages)
    wanted = _used(args)
    found = read_passages(args.passages, wanted)
    foreign = _foreign(found, args.passage_hashes) if args.passage_hashes else set()
    kept = sorted((one for one in found.values() if one.passage_id not in foreign), key=_order)
    write_atomic(
        args.output,
        b"".join(msgspec.json.encode({"id": one.passage_id, "contents": one.text}) + b"\n" for one in kept),
    )
    print(printable(f"{args.output}: {len(kept):,} of {len(wanted):,} passages"), file=sys.stderr)
    _name(wanted - found.keys(), "not found")
    _name(foreign, "left out, the text is not the one of the hash list")
    return 0 if len(kept) == len(wanted) else 1


def _order(passage: Passage) -> tuple[object, ...]:
    return natural_key(passage.passage_id)


def _used(args: argparse.Namespace) -> frozenset[str]:
    """The ids of the passages that the responses rest on."""
    if args.runs:
        submitted = read_runs(args.runs, selection=Selection(depth=args.depth))
        if submitted.unusable:
            print(f"{len(submitted.unusable)} errors in the runs; `judge validate` lists them", file=sys.stderr)
        return frozenset(passage.passage_id for one in submitted.candidates for passage in one.used)
    pool = read_previous_pool(args.pool)
    keys = frozenset(key for response in pool.responses for key in response.passages)
    return frozenset(pool.passages[key].passage_id if key in pool.passages else key for key in keys)


def _foreign(found: Mapping[str, Passage], hashes: Path) -> set[str]:
    """The passages whose text is not the collection's."""
    from judge.passages.hashes import open_hashes, same_text

    listed = open_hashes(hashes).find(list(found))
    return {
        passage.passage_id
        for passage, md5 in zip(found.values(), listed, strict=True)
        if md5 is None or not same_text(passage.text, md5)
    }


def _name(ids: Collection[str], what: str) -> None:
    if not ids:
        return
    print(f"{len(ids):,} {what}:", file=sys.stderr)
    for passage_id in sorted(ids, key=natural_key)[:SHOWN]:
        print(f"  {printable(passage_id)}", file=sys.stderr)
    if len(ids) > SHOWN:
        print(f"  … and {len(ids) - SHOWN:,} more", file=sys.stderr)
