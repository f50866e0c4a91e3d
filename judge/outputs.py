"""The output folder: one file per thing a track publishes, each replaced whole, the same bytes on a rerun."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge import __version__
from judge.errors import InputError
from judge.files import make_folder, read_stored, sha256, write_atomic
from judge.intake import Submitted
from judge.leaderboard import leaderboard_markdown, leaderboard_tsv
from judge.pool import bank_json, excluded_tsv, passages_jsonl, pool_jsonl, pool_lines, read_pool
from judge.prompt import RENDERER_VERSION
from judge.qrels import qrel_name, qrels_text, sidecar
from judge.records import Criterion, Failure, Judgment, LeaderboardRow, Pool
from judge.trec import response_run, safe_names
from judge.verdict import PARSER_VERSION

SCHEMA = 1
"""Version of the folder's layout and of the manifest."""
MANIFEST = "manifest.json"
JOURNAL = "journal.sqlite"
UNCALIBRATED = (
    "UNCALIBRATED: these grades come from an automatic judge that nobody has compared with human assessors on "
    "these responses; they rank runs as this judge sees them, not as people would."
)


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def _jsonl(records: Sequence[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def configuration(
    submitted: Submitted,
    pool: Pool,
    criteria: Sequence[Criterion],
    judge: str,
    options: Mapping[str, Any],
    topics: Path | None,
) -> dict[str, Any]:
    """All that determines the judgments, as JSON values: two folders with the same configuration are comparable."""
    return {
        "runs": {run.run_id: run.digest for run in submitted.runs},
        "topics": None if topics is None else sha256(read_stored(topics)),
        "passages": sha256(passages_jsonl(pool)),
        "pool": sha256(pool_jsonl(pool)),
        "criteria": {one.name: {"prompt": one.prompt_id, "sha256": one.digest} for one in criteria},
        "judge": judge,
        "options": dict(options),
        "parser": PARSER_VERSION,
        "renderer": RENDERER_VERSION,
        "token_rule": {
            "rule": submitted.count_tokens.rule,
            "limit": submitted.count_tokens.limit,
            "versions": submitted.count_tokens.versions,
        },
    }


def check_folder(out: Path, wanted: Mapping[str, Any], *, replace: bool = False) -> None:
    """Refuse a folder whose results were made otherwise, so that no two configurations get mixed in one place.

    With `replace`, another configuration is accepted; another layout, or a manifest of somebody else's, is not.

    Raises:
        InputError: The folder cannot be used, or holds results of another version or configuration.
    """
    make_folder(out)
    path = out / MANIFEST
    if not path.exists():
        return
    try:
        manifest = msgspec.json.decode(read_stored(path))
        schema, made_by, there = manifest["schema"], manifest["judge_version"], manifest["configuration"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a manifest that judge wrote ({error}); choose another --out") from error
    if schema != SCHEMA:
        raise InputError(
            f"{out}: made by judge {made_by} (layout {schema}), this is {__version__} (layout {SCHEMA}); "
            "choose another --out"
        )
    different = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
    if different and not replace:
        details = "; ".join(
            f"{key}: {_brief(there.get(key))} there, {_brief(wanted.get(key))} now" for key in different
        )
        raise InputError(
            f"{out}: holds results of another configuration ({details}). Choose another --out, or --replace to "
            "write these results over (the journal of paid calls is kept)"
        )


def _brief(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 100 else f"{text[:97]}…"


def read_previous_pool(folder: Path) -> Pool:
    """The pool of an earlier output folder.

    Raises:
        InputError: The folder has no readable pool.
    """
    return read_pool(
        read_stored(folder / "pool.jsonl"),
        read_stored(folder / "passages.jsonl"),
        str(folder),
        read_stored(folder / "excluded.tsv"),
    )


def write_pool(out: Path, submitted: Submitted, pool: Pool) -> None:
    """Write what is known before any judge is asked."""
    write_atomic(out / "pool.jsonl", pool_jsonl(pool))
    write_atomic(out / "pool.txt", pool_lines(pool).encode())
    write_atomic(out / "bank.json", bank_json(pool))
    write_atomic(out / "passages.jsonl", passages_jsonl(pool))
    write_atomic(out / "excluded.tsv", excluded_tsv(pool.exclusions))
    write_atomic(out / "problems.json", _json(submitted.problems))
    lines: dict[str, list[tuple[str, str, int]]] = {run.run_id: [] for run in submitted.runs}
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
) -> None:
    """Write what the judge said."""
    judgments = [one for one in results if isinstance(one, Judgment)]
    failures = [one for one in results if isinstance(one, Failure)]
    write_atomic(out / "judgments.jsonl", _jsonl(judgments))
    write_atomic(out / "failures.jsonl", _jsonl(failures))
    for criterion in criteria:
        name = qrel_name(criterion)
        write_atomic(out / "qrels" / name, qrels_text(judgments, criterion).encode())
        write_atomic(out / "qrels" / f"{name}.json", _json(sidecar(criterion, judgments, failures)))
    write_atomic(out / "leaderboard.tsv", leaderboard_tsv(rows).encode())
    write_atomic(out / "leaderboard.md", leaderboard_markdown(rows, UNCALIBRATED, criteria).encode())


def write_manifest(
    out: Path,
    argv: Sequence[str],
    configured: Mapping[str, Any],
    status: str,
    submitted: Submitted,
    pool: Pool,
    results: Sequence[Judgment | Failure] = (),
    asked: Mapping[str, Any] | None = None,
) -> None:
    """Write how everything else came about; no clock in it, so that a rerun gives the same bytes."""
    counts = Counter(one.reason if isinstance(one, Failure) else "judgment" for one in results)
    manifest = {
        "schema": SCHEMA,
        "judge_version": __version__,
        "python": platform.python_version(),
        "status": status,
        "argv": list(argv),
        "configuration": dict(configured),
        "asked": dict(asked or {}),
        "runs": submitted.runs,
        "counts": {
            "runs": len(submitted.runs),
            "problems": Counter(problem.severity for problem in submitted.problems),
            "pooled": len(pool.responses),
            "excluded": Counter(one.reason for one in pool.exclusions),
            "results": counts,
        },
        "models_returned": sorted({one.model for one in results if isinstance(one, Judgment) and one.model}),
        "seeds": {"sampling": configured["options"].get("seed")},
    }
    write_atomic(out / MANIFEST, _json(manifest))
