"""The output folder of a run: the bytes of every file that a track publishes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from typing import Any

from msgspec import structs

from judge.ask.account import JudgeAccount
from judge.ask.asking import take_over
from judge.ask.records import Failure, Judgment
from judge.ask.results import FAILURES, JUDGMENTS, MEMBER_FAILURES, MEMBERS, StoredResults, failure_counts
from judge.calibrate.certificate import CertificateStatement
from judge.crowd.jury import JuryNotes
from judge.errors import InputError
from judge.io.files import StrPath, json_bytes, published
from judge.io.folder import FileContent, Pieces, jsonl_pieces, replace_folder, same_place, text_pieces
from judge.io.ids import groups_of, response_run, safe_names
from judge.io.table import Table, tsv_lines
from judge.jobs import manifest as manifests
from judge.jobs.filled import Filled
from judge.jobs.pooling import Pooled
from judge.jobs.recheck import Rechecked
from judge.pool.bank import ANSWERS, TURNS, excluded_tsv, pool_lines, stored_pool
from judge.pool.build import lacking_texts
from judge.pool.records import Pool
from judge.pool.screen import screen_lines
from judge.records import Criterion, JudgedUnit, Record
from judge.results.qrels import qrel_name, qrels_text, sidecar
from judge.results.rows import RunDifference, Score
from judge.results.tables import ResultTables
from judge.results.used import UsedPassages
from judge.units import UNITS
from judge.units.unit import Unit

UNCALIBRATED = (
    "UNCALIBRATED: these grades come from an automatic judge that nobody has compared with human assessors on "
    "these responses; they rank runs as this judge sees them, not as people would."
)
MISSING_COLUMNS = ("response_id", "turn_id", "passage_id")
_PARTLY = "rest on some of the used passages only, since the others have no text (missing_passages.tsv)."


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
    judge_notes: tuple[str, ...] = ()
    """In words, who judged what, where it was not one judge."""
    masked: tuple[str, ...] = ()
    """In words, whose replies lost a secret."""
    filled: Filled | None = None
    """People's grades, whose holes the judge fills; None where there are none."""
    passages: "Outcome | None" = None
    """Of a plan about responses and passages: that of the passages, in a folder of their own."""
    used: UsedPassages | None = None
    """With it, which of the used passages are relevant."""

    @property
    def banner(self) -> str:
        """What stands over every output."""
        return self.statement.banner if self.statement else UNCALIBRATED

    @property
    def leaderboard(self) -> Table[Score]:
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


def pool_records(pool: Pool) -> dict[str, FileContent]:
    """The files of a pool alone, by name."""
    return {
        **stored_pool(pool),
        "pool.txt": pool_lines(pool).encode(),
        "excluded.tsv": excluded_tsv(pool.exclusions),
        "runs.jsonl": Pieces(lambda: jsonl_pieces(pool.runs)),
        **({TURNS: Pieces(lambda: jsonl_pieces(pool.turns.values()))} if pool.turns else {}),
        **_response_runs(pool),
    }


def pool_files(pooled: Pooled) -> dict[str, FileContent]:
    """The files that can be written before any judge is asked, by name."""
    problems = pooled.submitted.problems
    names: dict[str, str] = {}
    for file in {problem.file for problem in problems}:
        names[file] = published(file)
    files = pool_records(pooled.pool) | {
        "problems.json": json_bytes([structs.replace(problem, file=names[problem.file]) for problem in problems]),
        "missing_passages.tsv": Pieces(lambda: _missing_passages(pooled.pool)),
    }
    screened = pooled.screened
    if screened is not None:
        files["screen.tsv"] = Pieces(lambda: text_pieces(screen_lines(screened)))
    if pooled.choice is not None:
        files["run_choice.tsv"] = pooled.choice.encode()
    return files


def check_pool(
    out: Path,
    pooled: Pooled,
    *,
    extended: StrPath | None = None,
    replace: bool = False,
    beside: Collection[str] = (),
) -> bool:
    """Refuse a folder that a pool cannot be written into; whether it holds another pool, which must go.

    `replace`: write over another pool, and remove its judgments. `beside`: folders in this one that hold another part
    of the job. An InputError if the folder cannot be used or holds something else.
    """
    in_place = extended is not None and same_place(Path(extended), out)
    there = manifests.OutputFolder(out, manifests.WRITE_ELSEWHERE).manifest
    if in_place and not replace and there is not None and "judge" in there["configuration"]:
        raise InputError(f"{out}: judged already; `judge run --extend {out}` adds runs to it")
    return manifests.check_folder(
        out,
        pooled.configured,
        trial=False,
        replace=replace,
        may_differ=manifests.GROWING if in_place else (),
        beside=beside,
    )


def write_pool(
    out: StrPath,
    pooled: Pooled,
    argv: Sequence[str] = (),
    *,
    extended: StrPath | None = None,
    replace: bool = False,
    options: Mapping[str, Any] | None = None,
    beside: Collection[str] = (),
) -> None:
    """Write a pool into a folder; `judge run` with the same options can continue there.

    The journal of the folder whose pool was extended is taken over, so that nothing is paid for twice. `options` are by
    their names on the command line, for the manifest.
    The other arguments, and errors, are those of `check_pool`.
    """
    out = Path(out)
    earlier = None if extended is None else Path(extended)
    changed = check_pool(out, pooled, extended=extended, replace=replace, beside=beside)
    if earlier is not None and not same_place(earlier, out) and (earlier / manifests.JOURNAL).exists():
        take_over(earlier / manifests.JOURNAL, out)
    manifest = manifests.pool_manifest(pooled.configured, pooled.submitted, pooled.pool, argv, options or {})
    files = pool_files(pooled)
    with manifests.reported(out, manifests.RECORD):
        replace_folder(out, {manifests.MANIFEST: json_bytes(manifest)} | files, manifests.RECORD, more=not changed)
        files[INDEX] = index_markdown(files, pooled.pool.unit)
        replace_folder(
            out, files | {manifests.MANIFEST: json_bytes(manifest | {"status": manifests.POOLED})}, manifests.RECORD
        )


def result_files(outcome: Outcome) -> dict[str, FileContent]:
    """The files of what the judge said, or a jury decided, and of what that comes to, by name."""
    results = outcome.results
    criteria = outcome.criteria
    notes = outcome.notes
    banner = outcome.banner
    partial = _on_partial_evidence(outcome.pool, results, criteria)
    lines = [
        *(notes.lines if notes else ()),
        *outcome.judge_notes,
        *outcome.model_notes,
        *outcome.masked,
        *outcome.label_notes,
        *(f"{number} grades of {name} {_PARTLY}" for name, number in sorted(partial.items())),
        *_about_evidence(outcome),
        *(f"{line}." for line in outcome.clustered),
    ]
    files = result_lines(results, JUDGMENTS, FAILURES) | outcome.tables.files(banner, criteria, lines)
    if outcome.used is not None:
        files |= outcome.used.files(banner)
    if notes is not None:
        files |= result_lines(notes.said, MEMBERS, MEMBER_FAILURES)
    names = listed_names(outcome.pool)
    for criterion in criteria:
        description: dict[str, Any] = sidecar(criterion, results, banner)
        if criterion.name in partial:
            description["partial_evidence"] = partial[criterion.name]
        if notes is not None:
            description["jury"] = notes.about(criterion.name)
        name = f"qrels/{qrel_name(criterion)}"
        files[name] = qrels_text(results, criterion, names).encode()
        files[f"{name}.json"] = json_bytes(description)
        if outcome.filled is not None:
            files |= outcome.filled.files(description)
    return files | (outcome.rechecked.files() if outcome.rechecked else {})


def listed_names(pool: Pool) -> dict[str, str]:
    """Response id to the id that qrels have in its place; empty where it is the same."""
    if not UNITS[pool.unit].listed:
        return {}
    return {response.response_id: response.listed_as for response in pool.responses}


def _about_evidence(outcome: Outcome) -> Iterator[str]:
    """What grades rest on where the passages are those of a table."""
    shown = [criterion.name for criterion in outcome.criteria if "passages" in criterion.inputs]
    if shown and any(passage.source == "table" for passage in outcome.pool.passages.values()):
        yield (
            f"{', '.join(shown)}: the passages are those that each system retrieved, as its table has them; a grade "
            "says whether an answer follows from them, not whether they are right."
        )


def _on_partial_evidence(
    pool: Pool, results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]
) -> dict[str, int]:
    """How many grades rest on some of the used passages only, by criterion whose prompt shows passages."""
    shown = {criterion.name for criterion in criteria if "passages" in criterion.inputs}
    partly = {response.response_id for response in pool.responses if lacking_texts(response, pool)}
    if not partly:
        return Counter()
    return Counter(
        result.criterion
        for result in results
        if isinstance(result, Judgment) and result.criterion in shown and result.response_id in partly
    )


def result_lines(
    results: Sequence[Judgment | Failure],
    judgments: str,
    failures: str,
    shown: Callable[[Judgment | Failure], Judgment | Failure] = lambda result: result,
) -> dict[str, FileContent]:
    """Two files of results by name, with what is shown of each: the judgments, and what is missing."""
    missing = failure_counts(results).total()

    def of(kind: type[Judgment] | type[Failure], number: int) -> Pieces:
        found = results if number else ()
        return Pieces(lambda: jsonl_pieces(shown(result) for result in found if isinstance(result, kind)))

    return {judgments: of(Judgment, len(results) - missing), failures: of(Failure, missing)}


def _missing_passages(pool: Pool) -> Iterator[bytes]:
    """The used passages without a text, a line at a time: of a pool of passages there may be a million."""
    rows = (
        (response.response_id, response.turn_id, key)
        for response in pool.responses
        for key in lacking_texts(response, pool)
    )
    return (line.encode() for line in tsv_lines(MISSING_COLUMNS, rows))


def _response_runs(pool: Pool) -> dict[str, bytes]:
    """Each run as TREC run lines over response ids."""
    entries = ((entry, response) for response in pool.responses for entry in response.runs)
    lines: dict[str, list[tuple[str, str, int]]] = {run.run_id: [] for run in pool.runs if run.selected}
    lines |= groups_of((entry.run_id, (of.listed_under, of.listed_as, entry.rank)) for entry, of in entries)
    names = safe_names(lines)
    return {
        f"response_runs/{names[run_id]}.run": response_run(run_id, entries).encode()
        for run_id, entries in lines.items()
    }


INDEX = "index.md"


def index_markdown(names: Iterable[str], unit: JudgedUnit) -> bytes:
    """The page on a folder with these files."""
    held = {*names, *_ALWAYS}
    judged = not held.isdisjoint(("leaderboard.md", "grades.md"))
    held |= {manifests.JOURNAL} if judged else set()
    start: tuple[str, ...] = _POOLED
    if judged:
        start = _GRADED if UNITS[unit].listed else _JUDGED
    lines = ["# What is in this folder", "", *start, "", "| file | content |", "|---|---|"]
    lines += content_rows(file_contents(UNITS[unit]), held)
    return "\n".join([*lines, ""]).encode()


def content_rows(contents: Mapping[str, str], held: Iterable[str]) -> list[str]:
    """The rows of a Markdown table about those files that a folder holds."""
    files = set(held)
    rows: list[str] = []
    for name, words in contents.items():
        if any(fnmatchcase(file, name) for file in files):
            rows.append(f"| `{name}` | {words} |")
    return rows


_JUDGED = (
    "Start with `leaderboard.md`, or with `report.html` for everything on one page, to open in a browser: `judge run`",
    "leaves it here, and `judge report` on this folder makes it anew, also as `report.md` with pictures.",
)
_GRADED = (
    "Start with `grades.md`. The qrels are what `judge evaluate passages --qrels` and `--passage-qrels` take as they",
    "are.",
)
_POOLED = ("A pool that nobody has judged yet: `judge run` with the same options judges it.",)
_ALWAYS = (manifests.MANIFEST, manifests.RECORD)


def file_contents(unit: Unit) -> dict[str, str]:
    """A file or a pattern of files to what it holds; the most wanted first."""
    turns = unit.nouns.turns
    response = unit.nouns.response
    responses = unit.nouns.responses
    return {
        "grades.md": f"how many {responses} have each grade, in all and by {unit.nouns.turn}",
        "grades.tsv": f"the same by {unit.nouns.turn} as a table",
        "leaderboard.md": f"per run and criterion: rank, mean, interval, and why {turns} have no grade",
        "leaderboard.tsv": "the same as a table",
        "results.csv": "the rows of the table of answers, each with its grades, rationales, and why it has no grade",
        "interactive.tsv": f"interactive runs topic by topic: how many {turns}, mean, and topics never reached as "
        "the worst",
        "differences.tsv": "every two runs, and whether they can be told apart",
        "ratings.tsv": "per run: rating by the pairs that it won, tied and lost, with interval, rank and letters",
        "pairs.tsv": "every two runs, and how often one was better",
        "sentences.tsv": "per run and label of a sentence: how many sentences have it, contradicted ones among them",
        "citations.tsv": "per run: how many used passages support a sentence, and how many sentences a passage "
        "supports",
        "used_passages.md": "per run: how many of the used passages are relevant, and groundedness on relevant ones",
        "used_passages.tsv": "the same as a table",
        "used_passage_grades.tsv": f"each passage that a {response} uses, with its grades by the judge and by people",
        "qrels/*.qrel": "the grades as qrels; marked `.llm`, since a model gave them"
        + ("; with --fill also those by `.people`, and `.merged` ones" if unit.listed else ""),
        "qrels/*.json": "for each of them the judge, the prompt and the scale",
        "judgments.jsonl": "every grade with its reasons",
        "failures.jsonl": "every judgment that is missing, and why",
        "members.jsonl": "what each member of the jury said",
        "member_failures.jsonl": "the judgments of members that are missing, and why",
        "recheck.jsonl": "the second answer to the questions that were asked again",
        "pool.txt": "what was pooled, as a TREC pool",
        "pool.jsonl": "the same in full: texts, passages, lengths, and which runs gave them",
        "bank.json": f"{response} id to text",
        "passages.jsonl": "the texts of the passages" if unit.listed else f"the passages that the {responses} used",
        "response_runs/*.run": f"each run as TREC run lines over {response} ids",
        "runs.jsonl": f"the runs, and the {turns} that each had to answer",
        ANSWERS: "the whole responses that the citations stand in, in the form of pool.jsonl",
        TURNS: unit.words.turns_file,
        "run_choice.tsv": "which runs were chosen, and by what",
        "excluded.tsv": "what was not judged, and why",
        "problems.json": "what is wrong with the runs",
        "missing_passages.tsv": "passages without a text" if unit.listed else "used passages without a text",
        "screen.tsv": f"{responses} that are empty, repeated, copied, off their passages or not English",
        "journal.sqlite": "every completion that was paid for",
        "manifest.json": "how all of this was made: command, versions, digests of inputs and prompts, counts",
        "run.sha256": "digests of these files: `sha256sum -c run.sha256` checks a copy",
    }
