"""An output folder that exists already: its pool, its runs, its report, and whether it can be extended."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judge.errors import InputError
from judge.io.folder import remove_recorded
from judge.io.ids import natural_key
from judge.io.paths import StrPath
from judge.io.safe import shown
from judge.jobs.manifest import MANIFEST, POOLING, UNFINISHED, brief, differences, read_manifest
from judge.pool.folder import BESIDE, read_pool_folder
from judge.pool.records import Pool

_OPTIONS = {
    "pooling.only_turns": "turns",
    "pooling.thresholds": "screen-threshold",
    "token_rule.rule": "token-rule",
    "token_rule.limit": "token-limit",
}
"""Options whose names differ from those in a configuration."""


def read_earlier_pool(folder: Path) -> Pool:
    """The pool of an earlier output folder.

    Raises:
        InputError: The folder has no readable pool, or one that does not belong to its manifest.
    """
    pool = read_pool_folder(folder / "pool.jsonl", *BESIDE)
    # A folder without a manifest was put together by hand. A run that was stopped leaves a manifest, written first.
    manifest = read_manifest(folder)
    if manifest is not None and manifest.get("status") != UNFINISHED:
        runs = manifest["configuration"].get("runs", {})
        if not isinstance(runs, dict):
            raise InputError(f"{folder / MANIFEST}: $.configuration.runs: {shown(runs)}: expected runs with digests")
        expected, pooled = set(runs), {run.run_id for run in pool.runs}
        if expected != pooled:
            names = ", ".join(map(shown, sorted(expected ^ pooled, key=natural_key)[:5]))
            raise InputError(f"{folder / 'runs.jsonl'}: not the runs of {folder / MANIFEST}: {names}")
    return pool


def check_extended(folder: Path, wanted: Mapping[str, Any], files: Mapping[str, StrPath | None]) -> None:
    """Refuse to add to a pool that was made in another way: one leaderboard cannot hold both.

    Args:
        folder: The output folder whose pool is extended.
        wanted: From `pool_configuration`.
        files: The files behind the digests in `wanted`, by the names of their options.

    Raises:
        InputError: The folder has no manifest of judge, or its pool was made with other options.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{folder}: no {MANIFEST} there: expected an output folder of `judge run` or `judge pool`")
    earlier = manifest["configuration"]
    recorded = earlier_options(folder)
    differing = []
    for key, before, now in differences(earlier, wanted, POOLING):
        option = _OPTIONS.get(key, key.rpartition(".")[2].replace("_", "-"))
        if option in files:
            before, now = recorded.get(option, brief(before)) if before else "none", files[option] or "none"
            differing.append(
                f"{now} has changed since" if str(before) == str(now) else f"--{option}: {before} there, {now} now"
            )
        else:
            differing.append(f"--{option}: {brief(before)} there, {brief(now)} now")
    if differing:
        raise InputError(
            f"{folder}: pooled in another way ({'; '.join(differing)}). Leave these options out to pool as before, or "
            "pool all runs anew into another folder"
        )


def earlier_runs(folder: Path) -> dict[str, str]:
    """Run ids and digests in the manifest of an output folder; empty without a manifest.

    Raises:
        InputError: Judge did not write the manifest.
    """
    manifest = read_manifest(folder)
    runs = manifest["configuration"].get("runs") if manifest else None
    return dict(runs) if isinstance(runs, dict) else {}


def earlier_options(folder: Path) -> dict[str, Any]:
    """The options that an output folder was made with, by their names on the command line; empty if none are recorded.

    Raises:
        InputError: Judge did not write the manifest.
    """
    manifest = read_manifest(folder)
    options = manifest.get("options") if manifest else None
    return dict(options) if isinstance(options, dict) else {}


REPORT_RECORD = "report.sha256"
"""The list of the files of a report, for `sha256sum -c`."""


@contextmanager
def reported(out: Path, record: str) -> Iterator[None]:
    """While a job writes a folder: remove the folder's report if the job leaves other files than were there before.

    Args:
        out: The folder.
        record: The job's own list of files with their digests.
    """
    before = _content(out / record)
    yield
    if _content(out / record) != before:
        remove_recorded(out, REPORT_RECORD)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
