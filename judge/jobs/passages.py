"""Indexes of passages, and the passages that runs or a pool use: what `judge passages` does, for use from Python."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

from judge.errors import InputError, UsageError
from judge.io.files import jsonl_bytes
from judge.io.folder import write_atomic
from judge.io.ids import natural_key
from judge.io.plan import Option, Options, Positive
from judge.io.printout import Printout
from judge.io.steps import Steps, quiet
from judge.jobs.manifest import MANIFEST, OutputFolder
from judge.passages import differing, files_of, listed, read_passages
from judge.pool.bank import BESIDE
from judge.pool.intake import read_runs
from judge.pool.selection import Selection

SHOWN = 10
"""How many passages of each kind are named."""
_LEFT_OUT = {
    "missing": "not found",
    "unlisted": "left out, not on the hash list",
    "differing": "left out, the text differs from the hash list",
}
"""Why passages were not extracted."""


class IndexPlan(Options):
    """Everything `judge passages index` can be told; either `hashes` or `collection` is given."""

    hashes: Annotated[Path | None, Option(metavar="LIST")] = None
    """The collection's list: document, passage number, MD5; packed or not."""
    collection: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Plain JSONL files of passages, or folders of them."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """The index file to write."""

    def _check(self) -> None:
        if (self.hashes is None) == (not self.collection):
            raise UsageError("an index is made of a hash list or of a collection: give exactly one of them")


class ExtractPlan(Options):
    """Everything `judge passages extract` can be told; either `runs` or `pool` is given."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Folders of run files, of any formats, .gz too, and run files."""
    pool: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """Output folder of `judge pool` or `judge run`, or its pool.jsonl."""
    depth: Annotated[Positive, Option(metavar="N")] = 1
    """With --runs: the passages of the N best-ranked responses of a turn (default 1); give --max-rank here if you pool
    with it."""
    passages: Annotated[tuple[Path, ...], Option(metavar="PATH")]
    """The collection: JSONL or TREC-web files, packed or not, folders of them, an index of it, or ir:NAME."""
    passage_hashes: Annotated[Path | None, Option(metavar="FILE")] = None
    """Hash list or its index: passages that it does not list, and texts that differ, are named and left out."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """The passages.jsonl to write."""

    def _check(self) -> None:
        if bool(self.runs) == (self.pool is not None):
            raise UsageError("passages are extracted for runs or for a pool: give exactly one of them")
        if not self.runs:
            self.refuse_unused(["depth"], "it is about --runs; a pool was made to its own depth")


def index_passages(plan: IndexPlan, steps: Steps = quiet) -> int:
    """Build an index of a hash list or of a collection, not over it, and return its number of passages."""
    out = plan.out
    collection = list(plan.collection)
    _refuse_overwriting(out, [plan.hashes] if plan.hashes is not None else files_of(collection))
    if plan.hashes is not None:
        from judge.passages.hashes import index_hashes

        return index_hashes(plan.hashes, out, steps)
    from judge.passages.index import index_collection

    return index_collection(collection, out, steps)


def extract_passages(
    plan: ExtractPlan, tell: Callable[[int], None] = lambda errors: None, steps: Steps = quiet
) -> Printout:
    """Write the texts of the passages that runs or a pool use, in natural order of their ids.

    `tell`: called with the number of errors in the runs, before the collection is read. The exit code is 1 if a passage
    is missing or a run cannot be used.
    """
    out = plan.out
    _refuse_overwriting(out, _inputs(plan))
    if plan.runs:
        wanted, errors = _used_by_runs(plan.runs, plan.depth, steps)
    else:
        wanted = _used_by_pool(_pool_folder(plan))
        errors = 0
    tell(errors)
    stored = read_passages(list(plan.passages), wanted, steps)
    kept = stored
    foreign: Collection[str] = ()
    if plan.passage_hashes is not None:
        from judge.passages.hashes import open_hashes

        hashes = open_hashes(plan.passage_hashes)
        kept = listed(stored, hashes.find)
        foreign = differing(kept, hashes.find)
    texts = sorted(
        (passage for passage in kept.values() if passage.passage_id not in foreign),
        key=lambda passage: natural_key(passage.passage_id),
    )
    write_atomic(out, jsonl_bytes({"id": passage.passage_id, "contents": passage.text} for passage in texts))
    left_out = {
        "missing": sorted(wanted - stored.keys(), key=natural_key),
        "unlisted": sorted(stored.keys() - kept.keys(), key=natural_key),
        "differing": sorted(foreign, key=natural_key),
    }
    notes = [f"{out}: {len(texts):,} of {len(wanted):,} {'passage' if len(wanted) == 1 else 'passages'}"]
    for kind, ids in left_out.items():
        if ids:
            notes.append(f"{len(ids):,} {_LEFT_OUT[kind]}:")
            notes += [f"  {passage_id}" for passage_id in ids[:SHOWN]]
        if len(ids) > SHOWN:
            notes.append(f"  … and {len(ids) - SHOWN:,} more")
    return Printout(
        data={"wanted": len(wanted), "extracted": len(texts), **left_out, "errors": errors},
        notes=tuple(notes),
        exit=int(errors > 0 or len(texts) < len(wanted)),
    )


def _refuse_overwriting(output: Path, inputs: Iterable[Path]) -> None:
    try:
        if output.is_dir():
            raise UsageError(f"{output}: this is a folder; name the file to write")
        if not output.exists():
            return
        if not output.is_file():
            raise UsageError(f"{output}: not a regular file; name the file to write")
        for path in inputs:
            # Paths are compared as files, because a link has another name. Reading reports a missing input.
            if path.exists() and output.samefile(path):
                raise UsageError(f"{output}: the output would replace the input {path}")
    except (OSError, ValueError) as error:
        raise UsageError(f"{output}: cannot be written: {error}") from error


def _inputs(plan: ExtractPlan) -> Iterable[Path]:
    """Every file that an extraction may read."""
    yield from files_of(list(plan.passages))
    if plan.passage_hashes is not None:
        yield plan.passage_hashes
    for path in plan.runs:
        yield from path.iterdir() if path.is_dir() else (path,)
    if plan.pool is not None:
        yield from (_pool_folder(plan) / name for name in ("pool.jsonl", *BESIDE, MANIFEST))


def _pool_folder(plan: ExtractPlan) -> Path:
    """The folder of the plan's pool, which may be named by its `pool.jsonl`."""
    path = Path(str(plan.pool))
    return path.parent if path.is_file() else path


def _used_by_runs(runs: Sequence[Path], depth: int, steps: Steps) -> tuple[frozenset[str], int]:
    """The ids of the passages that the runs' responses use, and the number of errors in the runs."""
    submitted = read_runs(runs, selection=Selection(depth=depth), steps=steps)
    if not submitted.candidates:
        raise InputError(f"{', '.join(map(str, runs))}: no response, so no passage to extract", submitted.unusable)
    used: set[str] = set()
    for candidate in submitted.candidates:
        used.update(passage.passage_id for passage in candidate.used)
    return frozenset(used), len(submitted.unusable)


def _used_by_pool(folder: Path) -> frozenset[str]:
    """The ids of the passages that the pool's responses use."""
    pool = OutputFolder(folder).pool
    if not pool.responses:
        raise InputError(f"{folder}: no response, so no passage to extract")
    keys = frozenset(chain.from_iterable(response.passages for response in pool.responses))
    return frozenset(pool.passages[key].passage_id if key in pool.passages else key for key in keys)
