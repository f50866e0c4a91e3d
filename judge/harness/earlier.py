"""An output folder that exists already: its pool, the runs of the pool, and whether it can be extended."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import InputError
from judge.harness.manifest import MANIFEST, POOLING, UNFINISHED, details, read_manifest
from judge.pool.folder import BESIDE, read_pool_folder
from judge.pool.records import Pool
from judge.text.ids import natural_key
from judge.text.safe import shown


def read_earlier_pool(folder: Path) -> Pool:
    """The pool of an earlier output folder.

    Raises:
        InputError: The folder has no readable pool, or one that does not belong to its manifest.
    """
    pool = read_pool_folder(folder / "pool.jsonl", *BESIDE)
    # A folder without a manifest was put together by hand. A run that was stopped leaves a manifest, written first.
    manifest = read_manifest(folder)
    if manifest is not None and manifest.get("status") != UNFINISHED:
        expected, pooled = set(manifest["configuration"].get("runs", {})), {run.run_id for run in pool.runs}
        if expected != pooled:
            names = ", ".join(map(shown, sorted(expected ^ pooled, key=natural_key)[:5]))
            raise InputError(f"{folder / 'runs.jsonl'}: not the runs of {folder / MANIFEST}: {names}")
    return pool


def check_extended(folder: Path, wanted: Mapping[str, Any]) -> None:
    """Refuse to add to a pool that was made in another way: one leaderboard cannot hold both.

    Args:
        folder: The output folder whose pool is extended.
        wanted: From `pool_configuration`.

    Raises:
        InputError: The folder has no manifest of judge, or its pool was made with other options.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder}: no {MANIFEST} there: expected an output folder of `judge run` or `judge pool`")
    earlier = manifest["configuration"]
    differing = details(earlier, wanted, [key for key in POOLING if earlier.get(key) != wanted.get(key)])
    if differing:
        raise InputError(f"{folder}: pooled in another way ({differing}); pool all runs anew into another folder")


def earlier_runs(folder: Path) -> dict[str, str]:
    """Run ids and digests in the manifest of an output folder; empty without a manifest.

    Raises:
        InputError: Judge did not write the manifest.
    """
    manifest = read_manifest(folder)
    runs = manifest["configuration"].get("runs") if manifest else None
    return dict(runs) if isinstance(runs, dict) else {}
