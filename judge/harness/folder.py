"""The output folder of a run: the bytes of every file that a track publishes."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from judge.ask.cascade import SettledCount, settled_counts
from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.records import Failure, Judgment
from judge.crowd.notes import JuryNotes
from judge.files.content import FileContent, Pieces, jsonl_pieces
from judge.files.jsonl import json_bytes
from judge.files.paths import published
from judge.files.trec import response_run, safe_names
from judge.harness.pooling import Pooled
from judge.pool.bank import excluded_tsv, pool_lines, runs_jsonl, stored_pool, turns_jsonl
from judge.pool.build import lacking_texts
from judge.pool.folder import TURNS
from judge.pool.records import Pool
from judge.pool.screen import screen_tsv
from judge.records import Criterion
from judge.results.details import Details
from judge.results.differences import differences_tsv, told_apart
from judge.results.leaderboard import leaderboard_markdown, leaderboard_tsv
from judge.results.qrels import qrel_name, qrels_text, sidecar
from judge.results.rows import LeaderboardRow, RunDifference
from judge.text.tsv import tsv

UNCALIBRATED = (
    "UNCALIBRATED: these grades come from an automatic judge that nobody has compared with human assessors on "
    "these responses; they rank runs as this judge sees them, not as people would."
)
MISSING_COLUMNS = ("response_id", "turn_id", "passage_id")


def pool_files(pooled: Pooled) -> dict[str, FileContent]:
    """The files that can be written before any judge is asked, by name."""
    pool = pooled.pool
    files: dict[str, FileContent] = {
        **stored_pool(pool),
        "pool.txt": pool_lines(pool).encode(),
        "excluded.tsv": excluded_tsv(pool.exclusions),
        "runs.jsonl": runs_jsonl(pool),
        "problems.json": json_bytes(
            [structs.replace(problem, file=published(problem.file)) for problem in pooled.submitted.problems]
        ),
        "missing_passages.tsv": _missing_passages(pool),
    }
    if pool.turns:
        files[TURNS] = turns_jsonl(pool)
    if pooled.screened is not None:
        files["screen.tsv"] = screen_tsv(pooled.screened)
    if pooled.choice is not None:
        files["run_choice.tsv"] = pooled.choice.encode()
    return files | _response_runs(pool)


def result_files(
    results: Sequence[Judgment | Failure],
    criteria: Sequence[Criterion],
    rows: Sequence[LeaderboardRow],
    banner: str = UNCALIBRATED,
    notes: JuryNotes | None = None,
    partial: Mapping[str, int] | None = None,
    models: Sequence[str] = (),
    pairs: Sequence[RunDifference] = (),
    clustered: Sequence[str] = (),
    beside: Details | None = None,
) -> dict[str, FileContent]:
    """The files of a judge's results, by name.

    Args:
        results: What the judge said, or a jury decided.
        criteria: The prompts behind the results.
        rows: The leaderboard.
        banner: How far to believe the judge; it stands in every file that people read.
        notes: How a jury came to its grades.
        partial: Criterion to the number of grades that rest on some of the used passages only.
        models: From `cascade_notes`, `model_notes` and `certainty_notes`.
        pairs: Every two runs.
        clustered: From `clustering`.
        beside: The tables that only some results have.
    """
    partial = partial or {}
    lines = [*(notes.lines if notes else ()), *models, *(_partly(*entry) for entry in sorted(partial.items()))]
    lines += [f"{line}." for line in clustered]
    sentences = beside.sentences if beside is not None else ()
    files: dict[str, FileContent] = {
        **_lines(results, JUDGMENTS, FAILURES),
        "leaderboard.tsv": leaderboard_tsv(rows).encode(),
        "leaderboard.md": leaderboard_markdown(rows, banner, criteria, lines, told_apart(pairs), sentences).encode(),
        "differences.tsv": differences_tsv(pairs).encode(),
    }
    files |= beside.files() if beside is not None else {}
    if notes is not None:
        files |= _lines(notes.said, "members.jsonl", "member_failures.jsonl")
    settled: dict[str, list[SettledCount]] = {}
    for count in settled_counts(results):
        settled.setdefault(count.criterion, []).append(count)
    for criterion in criteria:
        description: dict[str, Any] = sidecar(criterion, results, banner)
        if criterion.name in partial:
            description["partial_evidence"] = partial[criterion.name]
        if notes is not None:
            description["jury"] = notes.about(criterion.name)
        for row in settled.get(criterion.name, ()):
            description["cascade"] = {
                "name": row.cascade,
                "settled": row.settled,
                "asked": row.asked,
                "checker_failed": row.checker_failed,
            }
        name = f"qrels/{qrel_name(criterion)}"
        files[name] = qrels_text(results, criterion).encode()
        files[f"{name}.json"] = json_bytes(description)
    return files


def _lines(results: Sequence[Judgment | Failure], judgments: str, failures: str) -> dict[str, FileContent]:
    """Two files of results: the judgments, and what is missing."""

    def of(kind: type[Judgment] | type[Failure]) -> Pieces:
        return Pieces(lambda: jsonl_pieces(result for result in results if isinstance(result, kind)))

    return {judgments: of(Judgment), failures: of(Failure)}


def _missing_passages(pool: Pool) -> bytes:
    """The used passages without a text."""
    lines = (
        (response.response_id, response.turn_id, key)
        for response in pool.responses
        for key in lacking_texts(response, pool)
    )
    return tsv(MISSING_COLUMNS, lines).encode()


def _response_runs(pool: Pool) -> dict[str, bytes]:
    """Each run as TREC run lines over response ids."""
    lines: dict[str, list[tuple[str, str, int]]] = {run.run_id: [] for run in pool.runs if run.selected}
    for response in pool.responses:
        for entry in response.runs:
            lines.setdefault(entry.run_id, []).append((response.listed_under, response.response_id, entry.rank))
    names = safe_names(lines)
    return {
        f"response_runs/{names[run_id]}.run": response_run(run_id, entries).encode()
        for run_id, entries in lines.items()
    }


def _partly(criterion: str, count: int) -> str:
    return (
        f"{count} grades of {criterion} rest on some of the used passages only, since the others have no text "
        "(missing_passages.tsv)."
    )
