"""The output folder: one file per thing a track publishes, each replaced whole, the same bytes on a rerun."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.labels import CARRIED
from judge.crowd.notes import JuryNotes
from judge.errors import InputError
from judge.files.folder import write_atomic
from judge.files.jsonl import json_bytes
from judge.files.stored import read_stored
from judge.files.trec import response_run, safe_names
from judge.harness.manifest import MANIFEST, UNFINISHED, read_manifest
from judge.harness.mixed import Carried, as_asked
from judge.pool.bank import bank_json, excluded_tsv, passages_jsonl, pool_jsonl, pool_lines, read_pool, runs_jsonl
from judge.pool.intake import Submitted
from judge.records import Criterion, Failure, Judgment, Pool
from judge.results.leaderboard import leaderboard_markdown, leaderboard_tsv
from judge.results.qrels import qrel_name, qrels_text, sidecar
from judge.results.rows import LeaderboardRow
from judge.text.ids import natural_key
from judge.text.safe import shown

UNCALIBRATED = (
    "UNCALIBRATED: these grades come from an automatic judge that nobody has compared with human assessors on "
    "these responses; they rank runs as this judge sees them, not as people would."
)


def _jsonl(records: Sequence[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def read_previous_pool(folder: Path) -> Pool:
    """The pool of an earlier output folder.

    Raises:
        InputError: The folder has no readable pool, or one that does not belong to its manifest.
    """
    pool = read_pool(
        read_stored(folder / "pool.jsonl"),
        read_stored(folder / "passages.jsonl"),
        str(folder),
        read_stored(folder / "excluded.tsv"),
        read_stored(folder / "runs.jsonl"),
    )
    # Without a manifest the folder was put together by hand; of a run that was stopped the manifest comes first.
    manifest = read_manifest(folder)
    if manifest is not None and manifest.get("status") != UNFINISHED:
        expected, found = set(manifest["configuration"].get("runs", {})), {run.run_id for run in pool.runs}
        if expected != found:
            names = ", ".join(map(shown, sorted(expected ^ found, key=natural_key)[:5]))
            raise InputError(f"{folder / 'runs.jsonl'}: not the runs of {folder / MANIFEST}: {names}")
    return pool


def write_pool(out: Path, submitted: Submitted, pool: Pool) -> None:
    """Write what is known before any judge is asked."""
    write_atomic(out / "pool.jsonl", pool_jsonl(pool))
    write_atomic(out / "pool.txt", pool_lines(pool).encode())
    write_atomic(out / "bank.json", bank_json(pool))
    write_atomic(out / "passages.jsonl", passages_jsonl(pool))
    write_atomic(out / "excluded.tsv", excluded_tsv(pool.exclusions))
    write_atomic(out / "runs.jsonl", runs_jsonl(pool))
    write_atomic(out / "problems.json", json_bytes(submitted.problems))
    lines: dict[str, list[tuple[str, str, int]]] = {run.run_id: [] for run in pool.runs if run.selected}
    for response in pool.responses:
        for entry in response.runs:
            lines.setdefault(entry.run_id, []).append((response.turn_id, response.response_id, entry.rank))
    names = safe_names(lines)
    for run_id, entries in lines.items():
        write_atomic(out / "response_runs" / f"{names[run_id]}.run", response_run(run_id, entries).encode())


def write_results(
    out: Path,
    results: Sequence[Judgment | Failure],
    criteria: Sequence[Criterion],
    rows: Sequence[LeaderboardRow],
    banner: str = UNCALIBRATED,
    notes: JuryNotes | None = None,
    carried: Carried | None = None,
    partial: Mapping[str, int] | None = None,
) -> None:
    """Write what the judge said, everywhere under the banner that says how far to believe it.

    Where judgments are `carried` over from another configuration, every file says so: the qrels by their names.
    `partial` are the numbers of grades, by criterion, that rest on some of the used passages only.
    """
    partial = partial or {}
    mixed = {one["criterion"] for one in carried.origins} if carried else set()
    asked = as_asked(results, criteria)
    if notes is not None:
        write_atomic(out / "members.jsonl", _jsonl([one for one in notes.said if isinstance(one, Judgment)]))
        write_atomic(out / "member_failures.jsonl", _jsonl(notes.failures))
    judgments = [one for one in results if isinstance(one, Judgment)]
    failures = [one for one in results if isinstance(one, Failure)]
    write_atomic(out / "judgments.jsonl", _jsonl(judgments))
    write_atomic(out / "failures.jsonl", _jsonl(failures))
    graded = [one for one in asked if isinstance(one, Judgment)]
    missing = [one for one in asked if isinstance(one, Failure)]
    for criterion in criteria:
        name = qrel_name(criterion, mixed=criterion.name in mixed)
        write_atomic(out / "qrels" / name, qrels_text(graded, criterion).encode())
        about = sidecar(criterion, graded, missing, banner)
        about["file"] = name
        if carried is not None and criterion.name in mixed:
            about["mixed"] = [one for one in carried.origins if one["criterion"] == criterion.name]
        if criterion.name in partial:
            about["partial_evidence"] = partial[criterion.name]
        if notes is not None:
            about["jury"] = notes.about(criterion.name)
        write_atomic(out / "qrels" / f"{name}.json", json_bytes(about))
    write_atomic(out / "leaderboard.tsv", leaderboard_tsv(rows, mixed).encode())
    said = [*(notes.lines if notes else ()), *(_partly(*one) for one in sorted(partial.items()))]
    write_atomic(out / "leaderboard.md", leaderboard_markdown(rows, banner, criteria, said).encode())


def _partly(criterion: str, count: int) -> str:
    return (
        f"{count} grades of {criterion} rest on some of the used passages only, since the others have no text "
        "(missing_passages.tsv)."
    )


def clear_results(out: Path, keep: Collection[str] = ()) -> None:
    """Take away what an earlier configuration left, so that nothing stands beside a manifest it does not belong to."""
    stale = [*(out / "qrels").glob("response_*"), *(out / "response_runs").glob("*.run")]
    names = (
        "judgments.jsonl",
        "failures.jsonl",
        "leaderboard.tsv",
        "leaderboard.md",
        "members.jsonl",
        "member_failures.jsonl",
        "screen.tsv",
        "missing_passages.tsv",
        "run_choice.tsv",
        CARRIED,
    )
    for path in (*stale, *(out / name for name in names if name not in keep)):
        path.unlink(missing_ok=True)
