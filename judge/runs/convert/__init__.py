"""Runs of one format as files of another, with a log of everything that the other format cannot hold."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.io.files import StrPath, paths, read_stored
from judge.io.folder import check_apart, check_own_folder, make_folder, write_atomic
from judge.io.ids import safe_names
from judge.io.steps import Steps, quiet, stepped
from judge.io.text import MAX_ID, shown
from judge.records import Problem, Record, file_problem
from judge.runs.check.validate import validate_run, validate_together
from judge.runs.convert.targets import TARGETS, Change, ConversionTarget, SourceRun, conversion_tsv, tally
from judge.runs.formats import FORMATS, ReadRun, find_runs, read_run, rules_of
from judge.runs.records import Run, Turn

__all__ = ["LOG", "TARGETS", "Change", "Conversion", "conversion_tsv", "convert_run", "convert_runs", "tally"]

LOG = "conversion.tsv"


class Conversion(Record, frozen=True):
    """The written files, and the changes that the target required."""

    files: tuple[Path, ...]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]
    """Problems of the folder: its entries that were not read as runs."""


def convert_run(
    read: ReadRun, to: str, *, turns: Mapping[str, Turn] | None = None, team: str | None = None
) -> tuple[bytes, tuple[Change, ...]]:
    """One run, read without errors, as a file of the format `to`, and the changes that this format requires.

    `turns` are those of the topics, for PTKB numbers and statements; `team` is the team id where the format needs one,
    None for the run's own.

    Raises:
        UsageError: There is no such target, or it has no team id, or the team id is unusable.
        InputError: The run has errors, or the target cannot hold it.
    """
    target = _target(to, team)
    problems = _obstacles(read, to, target, team)
    if problems or read.run is None:
        raise InputError("the run cannot be converted", problems)
    source = SourceRun(read, read.run, turns, team)
    return target.write(source), source.changes


def convert_runs(
    runs: StrPath | Sequence[StrPath],
    to: str,
    out: StrPath,
    *,
    turns: Mapping[str, Turn] | None = None,
    team: str | None = None,
    format: str | None = None,
    steps: Steps = quiet,
) -> Conversion:
    """Write every run of folders and files in another format into `out`, beside the log of the changes.

    One run at a time is in memory. The new files wait in a temporary folder until all runs have been converted.

    Raises:
        UsageError: `out` holds other files or is the folder of runs, there is no such target or format, the target has
            no team id, or the team id is unusable.
        InputError: A run has errors, two runs share a name, or the target cannot hold a run.
        OperationalError: The disk is full, or `out` or the temporary folder cannot be written.
    """
    target = _target(to, team)
    given = paths(runs)
    out = Path(out)
    files, folder_problems = find_runs(given)
    check_apart(out, (*given, *files), given)
    problems = [problem for problem in folder_problems if problem.severity == "error"]
    headers: list[Run] = []
    changes: list[Change] = []
    with tempfile.TemporaryDirectory(prefix="judge-convert-") as waiting:
        for place, path in enumerate(stepped("converting runs", files, steps)):
            read = read_run(path, format)
            problems += _obstacles(read, to, target, team)
            if read.run is None:
                continue
            headers.append(msgspec.structs.replace(read.run, turns=()))
            if not problems:
                source = SourceRun(read, read.run, turns, team)
                _keep(Path(waiting) / str(place), target.write(source))
                changes.extend(source.changes)
        written = _move(headers, problems, Path(waiting), out, target, changes)
    return Conversion(written, tuple(changes), folder_problems)


def _keep(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error


def _move(
    runs: Sequence[Run],
    problems: Sequence[Problem],
    waiting: Path,
    out: Path,
    target: ConversionTarget,
    changes: Sequence[Change],
) -> tuple[Path, ...]:
    """Move the waiting files to `out` if no run has a problem; `runs` are all runs that were read."""
    problems = (*problems, *validate_together(runs))
    if problems:
        message = "runs that cannot be converted; nothing was written (`judge validate` lists all that is wrong)"
        raise InputError(message, problems)
    safe = safe_names(run.run_id for run in runs)
    names = [f"{safe[run.run_id]}{target.suffix}" for run in runs]
    check_own_folder(out, {*names, LOG}, LOG)
    make_folder(out)
    # The log comes first: it marks the folder as one that may be written again after an interruption.
    write_atomic(out / LOG, conversion_tsv(()))
    for place, name in enumerate(names):
        write_atomic(out / name, read_stored(waiting / str(place)))
    write_atomic(out / LOG, conversion_tsv(changes))
    return tuple(out / name for name in names)


def _target(name: str, team: str | None) -> ConversionTarget:
    if name not in TARGETS:
        raise UsageError(f"cannot convert to {shown(name)}; one of {', '.join(sorted(TARGETS))}")
    target = TARGETS[name]
    if team is not None and not target.needs_team:
        raise UsageError(f"{name} has no team id: leave --team out")
    if team is not None and not (team.strip() and team.isprintable() and len(team) <= MAX_ID):
        raise UsageError(f"the team id {shown(team)} is empty, too long or has unprintable characters")
    return target


def _obstacles(read: ReadRun, to: str, target: ConversionTarget, team: str | None) -> tuple[Problem, ...]:
    """Every reason why a run cannot be converted: its errors, and values that the target needs and the run lacks."""
    run = read.run
    if run is None:
        return tuple(problem for problem in read.problems if problem.severity == "error")

    def obstacle(message: str) -> Problem:
        return file_problem("not_convertible", run.file, message)

    if rules_of(run.format).form in ("pool", "table", "list"):
        others = ", ".join(name for name in sorted(FORMATS) if rules_of(name).form not in ("pool", "table", "list"))
        what = "table" if run.format == "table" else f"{run.format} pool"
        return (obstacle(f"a {what} is no run of a track with passages; convertible are {others}"),)
    # Lengths are no obstacle, so no tokens are counted.
    checked = validate_run(read, None, None)
    problems = [problem for problem in checked.problems if problem.severity == "error"]
    if target.needs_team and not (team or run.team):
        problems.append(obstacle(f"{to} needs a team id and {run.format} has none: give it with --team"))
    if target.sources and run.format not in target.sources:
        problems.append(obstacle(f"{to} has sentences that cite, which runs of {run.format} have not"))
    if not (run.eval_response or target.obeys_eval_response):
        problems.append(obstacle(f"the run says eval_response: false, and {to} cannot say that it is not to be judged"))
    return tuple(problems)
