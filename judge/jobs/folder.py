"""The output folder of a run: the bytes of every file that a track publishes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from msgspec import structs

from judge.ask.account import JudgeAccount
from judge.ask.asking import JOURNAL, Asking, JournalPlace
from judge.ask.labels import FAILURES, JUDGMENTS
from judge.ask.records import Failure, Judgment
from judge.ask.returned import settled_counts
from judge.ask.stored_results import StoredResults
from judge.calibrate.certificate import CertificateStatement
from judge.crowd.notes import JuryNotes
from judge.errors import InputError
from judge.io.content import FileContent, Pieces, jsonl_pieces
from judge.io.folder import replace_folder, same_place
from judge.io.line_stream import json_bytes
from judge.io.paths import StrPath, published
from judge.io.table import Table, tsv
from judge.io.trec import response_run, safe_names
from judge.jobs.earlier import reported
from judge.jobs.index import INDEX, index_markdown
from judge.jobs.manifest import GROWING, MANIFEST, POOLED, RECORD, check_folder, pool_manifest, read_manifest
from judge.jobs.pooling import Pooled
from judge.jobs.recheck import Rechecked
from judge.pool.bank import excluded_tsv, pool_lines, runs_jsonl, stored_pool, turns_jsonl
from judge.pool.build import lacking_texts
from judge.pool.folder import TURNS
from judge.pool.records import Pool
from judge.pool.screen import screen_tsv
from judge.records import Criterion, Record
from judge.results.qrels import qrel_name, qrels_text, sidecar
from judge.results.rows import LeaderboardRow, RunDifference
from judge.results.tables import ResultTables

UNCALIBRATED = (
    "UNCALIBRATED: these grades come from an automatic judge that nobody has compared with human assessors on "
    "these responses; they rank runs as this judge sees them, not as people would."
)
MISSING_COLUMNS = ("response_id", "turn_id", "passage_id")


class Outcome(Record, frozen=True):
    """What the whole line gave: the pool, the results and the leaderboard."""

    out: Path
    pool: Pool
    criteria: tuple[Criterion, ...]
    results: StoredResults
    tables: ResultTables
    statement: CertificateStatement | None = None
    """What the certificate says, where there is one."""
    notes: JuryNotes | None = None
    """How far the members of a jury agree, and what each of them said; None without a jury."""

    model_notes: tuple[str, ...] = ()
    """In words, where the provider answered with another model than the one asked or with several, or where the judge
    could not be asked under a JSON schema."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to each model took."""
    rechecked: Rechecked | None = None
    """What the second answers say; None without a recheck."""
    label_notes: tuple[str, ...] = ()
    """In words, how many judgments have label probabilities and how sure these are, where they were asked for."""
    clustered: tuple[str, ...] = ()
    """In words, over what the intervals are if it is not topics."""
    settled_notes: tuple[str, ...] = ()
    """In words, how many judgments of each criterion the checker of a cascade settled; empty without a cascade."""

    @property
    def banner(self) -> str:
        """What stands over every output."""
        return self.statement.banner if self.statement else UNCALIBRATED

    @property
    def leaderboard(self) -> Table[LeaderboardRow]:
        """A row for each run and criterion."""
        return self.tables.leaderboard

    @property
    def differences(self) -> Table[RunDifference]:
        """Every two runs."""
        return self.tables.differences

    @property
    def failures(self) -> Table[Failure]:
        """The judgments that are missing."""
        return Table(result for result in self.results if isinstance(result, Failure))

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.banner)}</p>{self.leaderboard._repr_html_()}"


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


def write_pool(
    out: StrPath,
    pooled: Pooled,
    argv: Sequence[str] = (),
    *,
    extended: StrPath | None = None,
    replace: bool = False,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write a pool into a folder; `judge run` with the same options can continue there.

    Args:
        out: The folder.
        pooled: The pool.
        argv: The command line, for the manifest.
        extended: The folder whose pool was extended; its journal is taken over, so that nothing is paid for twice.
        replace: Write over another pool, and remove its judgments.
        options: The options by their names on the command line, for the manifest.

    Raises:
        InputError: The folder cannot be used or holds something else.
    """
    out, earlier = Path(out), None if extended is None else Path(extended)
    in_place = earlier is not None and same_place(earlier, out)
    there = read_manifest(out)
    if in_place and not replace and there is not None and "judge" in there["configuration"]:
        raise InputError(f"{out}: judged already; `judge run --extend {out}` adds runs to it")
    changed = check_folder(out, pooled.configured, trial=False, replace=replace, may_differ=GROWING if in_place else ())
    if earlier is not None and not in_place and (earlier / JOURNAL).exists():
        with Asking(JournalPlace(out, known=(earlier / JOURNAL,)), pooled.pool, None):
            pass  # An asking takes over what earlier journals hold.

    manifest = pool_manifest(pooled.configured, pooled.submitted, pooled.pool, argv, options or {})
    files = pool_files(pooled)
    with reported(out, RECORD):
        replace_folder(out, {MANIFEST: json_bytes(manifest)} | files, RECORD, more=not changed)
        files[INDEX] = index_markdown(files, pooled.pool.unit)
        replace_folder(out, files | {MANIFEST: json_bytes(manifest | {"status": POOLED})}, RECORD)


def result_files(outcome: Outcome) -> dict[str, FileContent]:
    """The files of what the judge said, or a jury decided, and of what that comes to, by name."""
    results, criteria, notes, banner = outcome.results, outcome.criteria, outcome.notes, outcome.banner
    partial = _on_partial_evidence(outcome.pool, results, criteria)
    lines = [
        *(notes.lines if notes else ()),
        *outcome.settled_notes,
        *outcome.model_notes,
        *outcome.label_notes,
        *(_partly(*entry) for entry in sorted(partial.items())),
        *(f"{line}." for line in outcome.clustered),
    ]
    files = _lines(results, JUDGMENTS, FAILURES) | outcome.tables.files(banner, criteria, lines)
    if notes is not None:
        files |= _lines(notes.said, "members.jsonl", "member_failures.jsonl")
    settled = {row.criterion: row for row in settled_counts(results)}
    for criterion in criteria:
        description: dict[str, Any] = sidecar(criterion, results, banner)
        if criterion.name in partial:
            description["partial_evidence"] = partial[criterion.name]
        if notes is not None:
            description["jury"] = notes.about(criterion.name)
        if row := settled.get(criterion.name):
            counts = {"settled": row.settled, "asked": row.asked, "checker_failed": row.checker_failed}
            description["cascade"] = {"name": row.cascade, **counts}
        name = f"qrels/{qrel_name(criterion)}"
        files[name] = qrels_text(results, criterion).encode()
        files[f"{name}.json"] = json_bytes(description)
    return files | (outcome.rechecked.files() if outcome.rechecked else {})


def _on_partial_evidence(
    pool: Pool, results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]
) -> dict[str, int]:
    """How many grades rest on some of the used passages only, by criterion whose prompt shows passages."""
    shown = {criterion.name for criterion in criteria if "passages" in criterion.inputs}
    partly = {response.response_id for response in pool.responses if lacking_texts(response, pool)}
    return Counter(
        result.criterion
        for result in results
        if isinstance(result, Judgment) and result.criterion in shown and result.response_id in partly
    )


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
