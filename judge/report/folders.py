"""The folders that a report is about, read back: those of `judge run`, and those of `judge calibrate`."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from judge.ask.results import JUDGMENTS
from judge.calibrate.findings import Calibration
from judge.calibrate.recheck import RecheckedItem
from judge.calibrate.report.folder import SCHEMA
from judge.errors import InputError
from judge.io.files import StrPath, read_stored, sha256
from judge.io.installed import __version__
from judge.io.text import shown
from judge.jobs.calibration import RECORD as CALIBRATION_RECORD
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.leaderboard import CORRECTED_RECORD, CorrectionOutcome, CorrectionPlan, correct_leaderboard
from judge.jobs.manifest import JOURNAL, MANIFEST, POOLED, RECORD, UNFINISHED, OutputFolder
from judge.jobs.recheck import RECHECK
from judge.judges.journal import JournalView
from judge.judges.journal_tools import JournalSpending, read_spending
from judge.records import Criterion, Problem
from judge.report.sections import scale_of
from judge.results.citations import refuse_listed
from judge.results.tables import ResultTables
from judge.stats.agreement import STATISTICS

FINDINGS = "calibration.json"
_Content = TypeVar("_Content")


class _Layout(msgspec.Struct):
    """The part of the findings that says how to read the rest."""

    schema: int


class RunFolder(msgspec.Struct, frozen=True):
    """An output folder of `judge run`, with what gold says of it."""

    name: str
    """What the report calls it."""
    judged: JudgedFolder
    tables: ResultTables
    problems: tuple[Problem, ...]
    screen: tuple[tuple[str, str], ...]
    """Code and response of each flag of the screen."""
    spending: tuple[JournalSpending, ...] | str
    """What each judge's completions took, or why that is not known."""
    corrected: CorrectionOutcome | str | None
    """The leaderboard corrected by gold, or why there is none; None without gold."""
    compared: Calibration | None
    """The judge against gold; None without gold."""
    rechecked: tuple[RecheckedItem, ...] = ()
    """The questions that were asked again."""
    recorded: Mapping[str, str] = {}
    """When the answers to these questions were recorded, by the digest of the request, as far as that is known."""


class CalibrationFolder(msgspec.Struct, frozen=True):
    """An output folder of `judge calibrate`."""

    name: str
    path: Path
    calibration: Calibration


ReportedFolder = RunFolder | CalibrationFolder


def folder_names(folders: Sequence[Path]) -> list[str]:
    """The folders' names, with those of their parents where two are called alike."""
    resolved = [folder.resolve() for folder in folders]
    for length in range(1, max(len(path.parts) for path in resolved) + 1):
        names = ["/".join(path.parts[-length:]) for path in resolved]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in resolved]


def is_calibration(folder: Path) -> bool:
    """Whether `judge calibrate` wrote the folder."""
    return (folder / FINDINGS).is_file()


def record_of(folder: Path) -> tuple[str, str]:
    """The list of digests that the folder's job left, and its own SHA-256; both empty where there is none."""
    path = folder / (CALIBRATION_RECORD if is_calibration(folder) else RECORD)
    return (path.name, sha256(read_stored(path))) if path.is_file() else ("", "")


def read_folder(
    folder: Path,
    name: str,
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    columns: Sequence[str] = (),
) -> ReportedFolder:
    """Read one folder, and set gold beside its judgments.

    An InputError if no command that can be reported on has finished the folder, or a file of it is damaged. A
    UsageError if a prompt is not found, or the gold has no grade of a pooled response.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder: expected an output folder of `judge run` or `judge calibrate`")
    if is_calibration(folder):
        return CalibrationFolder(name, folder, read_calibration(folder / FINDINGS))
    check_finished(folder)
    judged = read_judged(folder, criterion, prompts=prompts)
    refuse_listed(judged.pool)
    judged = judged.with_used()
    corrected, compared = _with_gold(judged, gold, criterion, prompts, columns) if gold else (None, None)
    judged = judged.beside(compared.verdicts) if compared else judged
    problems = read_problems(folder / "problems.json")
    screen = read_screen(folder / "screen.tsv")
    rechecked = read_rechecked(folder / RECHECK, judged.criteria)
    digests = (digest for item in rechecked for digest in (item.request_digest, item.again_request_digest) if digest)
    spending = _spending(folder / JOURNAL)
    recorded = _times(folder / JOURNAL, digests)
    return RunFolder(
        name=name,
        judged=judged,
        tables=judged.tables,
        problems=problems,
        screen=screen,
        spending=spending,
        corrected=corrected,
        compared=compared,
        rechecked=rechecked,
        recorded=recorded,
    )


def check_finished(folder: Path) -> None:
    """Refuse a folder without all of its results: a report on a part of them would be taken for one on all.

    An InputError if the run was stopped, or nothing was judged yet.
    """
    status = OutputFolder(folder).status
    if status == UNFINISHED:
        raise InputError(
            f"{folder}: the run is not finished ({MANIFEST} says so): the same `judge run` command goes on from there, "
            "and then there is something to report"
        )
    if status == POOLED:
        raise InputError(f"{folder}: a pool that nobody has judged yet: `judge run` with the same options judges it")
    if (folder / CORRECTED_RECORD).is_file() and not (folder / JUDGMENTS).exists():
        raise InputError(f"{folder}: a corrected leaderboard: `judge report OUT --gold FILE` shows it with its run")
    if not (folder / JUDGMENTS).exists():
        raise InputError(
            f"{folder}: neither {JUDGMENTS} nor {FINDINGS} there: expected an output folder of `judge run` or "
            "`judge calibrate`"
        )


def read_calibration(path: Path) -> Calibration:
    """The findings that `judge calibrate` wrote; an InputError if the file has another layout or is not as written."""
    layout = _decoded(path, "the findings of a calibration", msgspec.json.Decoder(_Layout).decode).schema
    if layout != SCHEMA:
        raise InputError(f"{path}: findings of layout {layout}, this is judge {__version__} (layout {SCHEMA})")
    calibration = _decoded(path, "the findings of a calibration", msgspec.json.Decoder(Calibration).decode)
    if wrong := next(_contradictions(calibration), None):
        raise InputError(f"{path}: not the findings of a calibration as judge writes them: {wrong}")
    return calibration


def _decoded(path: Path, what: str, decode: Callable[[bytes], _Content], lacking: Any = None) -> _Content:
    """The content of a file, or what stands for one that is not there."""
    content: _Content = lacking
    try:
        if lacking is None or path.is_file():
            content = decode(read_stored(path))
        return content
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, csv.Error, KeyError) as error:
        raise InputError(f"{path}: not {what} as judge writes them: {error}") from error


def _contradictions(calibration: Calibration) -> Iterator[str]:
    """What no calibration can have found, a phrase each."""
    for row in calibration.agreement:
        if row.primary not in STATISTICS or row.primary not in row.statistics:
            yield f"$.agreement: no statistic {shown(row.primary)}"
        if [len(counts) for counts in row.confusion] != [len(row.grades)] * len(row.grades):
            yield f"$.agreement: the table of grades of {shown(row.judge)} is not square"
    for place in ("verdicts", "comparisons", "selections"):
        named = {row.statistic for row in getattr(calibration, place)}
        if unknown := sorted(named - STATISTICS.keys()):
            yield f"$.{place}: no statistic {shown(unknown[0])}"


def _with_gold(
    judged: JudgedFolder,
    gold: Sequence[Path],
    criterion: str | None,
    prompts: Sequence[StrPath],
    columns: Sequence[str],
) -> tuple[CorrectionOutcome | str, Calibration]:
    given: dict[str, Any] = {"gold": gold, "columns": columns, "criterion": criterion, "prompts": prompts}
    asked = CalibrationPlan(judgments=(judged.path / JUDGMENTS,), cluster=judged.cluster, **given)
    try:
        compared = calibrate_judges(asked).calibration
    except InputError as error:
        if any(problem.code == "off_scale" for problem in error.problems):
            raise _off_scale(judged, error) from error
        raise
    try:
        return correct_leaderboard(CorrectionPlan(folder=judged.path, **given), judged=judged), compared
    except InputError as error:
        # Agreement needs no probabilities; only a correction does.
        if {problem.code for problem in error.problems} != {"inclusion_probability"}:
            raise
        said = str(error)
        for path in gold:
            said = said.replace(str(path), path.name)
        return said, compared


def _off_scale(judged: JudgedFolder, error: InputError) -> InputError:
    """The error with the folder that it is about, the folder's scales, and the ways out."""
    prompts = ", ".join(f"{criterion.prompt_id} has {scale_of(criterion)}" for criterion in judged.criteria)
    other = ", or on another of its criteria with --criterion" if len(judged.criteria) > 1 else ""
    return InputError(
        f"{judged.path}: {error}: the gold has grades that are not on the scale ({prompts}): report on this folder "
        f"without --gold{other}",
        error.problems,
    )


def read_problems(path: Path) -> tuple[Problem, ...]:
    """The problems in a folder's `problems.json`, none without it; an InputError if it is not as judge writes it."""
    return _decoded(path, "the problems of runs", msgspec.json.Decoder(tuple[Problem, ...]).decode, ())


def read_screen(path: Path) -> tuple[tuple[str, str], ...]:
    """Code and response of each flag in a folder's `screen.tsv`, none without it; an InputError if it is damaged."""

    def flags(content: bytes) -> tuple[tuple[str, str], ...]:
        lines = csv.DictReader(io.StringIO(content.decode()), delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple((line["code"], line["response_id"]) for line in lines)

    return _decoded(path, "the flags of a screen", flags, ())


def read_rechecked(path: Path, criteria: Sequence[Criterion]) -> tuple[RecheckedItem, ...]:
    """The questions of these criteria that a folder's `recheck.jsonl` holds; none without the file.

    An InputError if the file is not as judge writes it, or has a grade that is not on its criterion's scale.
    """
    items = _decoded(path, "the questions of a recheck", msgspec.json.Decoder(RecheckedItem).decode_lines, [])
    grades = {prompt.name: {None, *(level.grade for level in prompt.scale.levels)} for prompt in criteria}
    kept = tuple(item for item in items if item.criterion in grades)
    for item in kept:
        if off := {item.grade, item.again_grade} - grades[item.criterion]:
            raise InputError(f"{path}: grade {shown(off.pop())} of {shown(item.response_id)}: not on the scale")
    return kept


def _times(path: Path, digests: Iterable[str]) -> dict[str, str]:
    """When completions were recorded, by digest; empty where the journal cannot be read."""
    try:
        with JournalView([path]) as journal:
            return journal.times(digests)
    except InputError:
        return {}


def _spending(path: Path) -> tuple[JournalSpending, ...] | str:
    """What the journal says; a report can do without it, so a journal that cannot be read is only said."""
    if not path.is_file():
        return f"there is no {JOURNAL} in the folder"
    try:
        spending = read_spending(path)
    except InputError:
        return f"{JOURNAL} cannot be read"
    return spending or f"{JOURNAL} holds no call"
