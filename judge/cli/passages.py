"""Make passage texts and passage checks fast: indexes of a collection, and the texts that a pool needs.

`index --hashes` turns the collection's list of MD5s into a file that answers at once which passages exist and what
their texts are. `index --collection` does so for where each passage stands in plain JSONL files. `extract` writes the
texts of the passages that a pool or runs use, in one pass over the collection or through its index, as one small
passages.jsonl for `judge run --passages`. Where more than --depth decides what is pooled, pool first (`judge pool`)
and extract by --pool.
"""

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from judge.cli.options import positive
from judge.errors import InputError, UsageError
from judge.files.folder import write_atomic
from judge.files.jsonl import jsonl_bytes
from judge.harness.earlier import read_earlier_pool
from judge.passages import differing, files_of, listed, read_passages
from judge.pool.intake import read_runs
from judge.pool.selection import Selection
from judge.records import Passage
from judge.text.ids import natural_key
from judge.text.safe import printable

SHOWN = 10
"""Missing passages that are named."""


class _ActionParser(argparse.ArgumentParser):
    """Complains of an unknown option itself, with the usage of its action; argparse would leave that to the parent."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="index|extract", parser_class=_ActionParser)
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
    users.add_argument("--pool", type=Path, metavar="OUT", help="output folder of `judge pool` or `judge run`")
    extract.add_argument(
        "--depth",
        type=positive,
        default=1,
        metavar="N",
        help="with --runs: the passages of the N best-ranked responses of a turn (default 1); with --max-rank, that",
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
        help="hash list or its index: leave out, and name, passages that it has not, and texts that differ",
    )
    extract.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the passages.jsonl to write")


def main(args: argparse.Namespace) -> int:
    """Build an index, or extract; 1 if a passage is missing or a run cannot be used."""
    if args.action == "index":
        return _index(args)
    return _extract(args)


def _index(args: argparse.Namespace) -> int:
    _refuse_overwriting(args.output, [args.hashes] if args.hashes else files_of(args.collection))
    if args.hashes:
        from judge.passages.hashes import index_hashes

        count = index_hashes(args.hashes, args.output)
    else:
        from judge.passages.index import index_collection

        count = index_collection(args.collection, args.output)
    print(printable(f"{args.output}: {count:,} passages indexed"), file=sys.stderr)
    return 0


def _refuse_overwriting(output: Path, inputs: Iterable[Path]) -> None:
    try:
        if output.is_dir():
            raise UsageError(f"{output}: this is a folder; name the file to write")
        if not output.exists():
            return
        if not output.is_file():
            raise UsageError(f"{output}: this is no regular file; name the file to write")
        for one in inputs:
            # By what they are and not by name: a link may have another one. What is missing, reading will report.
            if one.exists() and output.samefile(one):
                raise UsageError(f"{output}: the output would replace the input {one}")
    except (OSError, ValueError) as error:
        raise UsageError(f"{output}: cannot be written: {error}") from error


def _inputs(args: argparse.Namespace) -> Iterable[Path]:
    """Every file that `extract` may read."""
    yield from files_of(args.passages)
    if args.passage_hashes:
        yield args.passage_hashes
    folder: Path = args.runs or args.pool
    if folder.is_dir():
        names = ("pool.jsonl", "passages.jsonl", "excluded.tsv")
        yield from folder.iterdir() if args.runs else (folder / name for name in names)
    else:
        yield folder


def _extract(args: argparse.Namespace) -> int:
    _refuse_overwriting(args.output, _inputs(args))
    wanted, unusable = _used(args)
    found = read_passages(args.passages, wanted)
    kept = found
    foreign: Collection[str] = ()
    if args.passage_hashes:
        from judge.passages.hashes import open_hashes, same_text

        hashes = open_hashes(args.passage_hashes)
        kept = listed(found, hashes.find)
        foreign = differing(kept, hashes.find, same_text)
    texts = sorted((one for one in kept.values() if one.passage_id not in foreign), key=_order)
    write_atomic(
        args.output,
        jsonl_bytes({"id": one.passage_id, "contents": one.text} for one in texts),
    )
    print(printable(f"{args.output}: {len(texts):,} of {len(wanted):,} passages"), file=sys.stderr)
    _name(wanted - found.keys(), "not found")
    _name(found.keys() - kept.keys(), "left out, not on the hash list")
    _name(foreign, "left out, the text is not the one of the hash list")
    return 1 if unusable or len(texts) < len(wanted) else 0


def _order(passage: Passage) -> tuple[object, ...]:
    return natural_key(passage.passage_id)


def _used(args: argparse.Namespace) -> tuple[frozenset[str], int]:
    """The ids of the passages that the responses rest on, and how many errors there are in the runs.

    Raises:
        InputError: There is no response.
    """
    if args.runs:
        submitted = read_runs(args.runs, selection=Selection(depth=args.depth))
        if not submitted.candidates:
            raise InputError(f"{args.runs}: no response to take passages of", submitted.unusable)
        if submitted.unusable:
            print(f"{len(submitted.unusable)} errors in the runs; `judge validate` lists them", file=sys.stderr)
        used = frozenset(passage.passage_id for one in submitted.candidates for passage in one.used)
        return used, len(submitted.unusable)
    pool = read_earlier_pool(args.pool)
    if not pool.responses:
        raise InputError(f"{args.pool}: no response to take passages of")
    keys = frozenset(key for response in pool.responses for key in response.passages)
    return frozenset(pool.passages[key].passage_id if key in pool.passages else key for key in keys), 0


def _name(ids: Collection[str], what: str) -> None:
    if not ids:
        return
    print(f"{len(ids):,} {what}:", file=sys.stderr)
    for passage_id in sorted(ids, key=natural_key)[:SHOWN]:
        print(f"  {printable(passage_id)}", file=sys.stderr)
    if len(ids) > SHOWN:
        print(f"  … and {len(ids) - SHOWN:,} more", file=sys.stderr)
