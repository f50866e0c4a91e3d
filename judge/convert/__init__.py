"""Runs of one format as files of another, with a log of everything that the other format cannot say."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from judge.convert.changes import Change, Changes, conversion_tsv, tally
from judge.convert.targets import TARGETS, Source, Target
from judge.errors import InputError, UsageError
from judge.files import make_folder, write_atomic
from judge.records import Problem, Run, TokenCount, Turn
from judge.runs import ReadRun, find_runs, read_run
from judge.text import MAX_ID, shown
from judge.trec import safe_names
from judge.validate import validate_run, validate_together

__all__ = ["LOG", "TARGETS", "Change", "Conversion", "conversion_tsv", "convert_run", "convert_runs", "tally"]

LOG = "conversion.tsv"
FORMATS = ("cast2022", "ikat2023", "ikat2024", "ikat2025")
"""The formats that can be converted."""


class Conversion(msgspec.Struct, frozen=True):
    """What was written."""

    files: tuple[Path, ...]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]
    """Of the folder: what was not read as a run."""


def convert_run(
    read: ReadRun, to: str, *, turns: Mapping[str, Turn] | None = None, team: str | None = None
) -> tuple[bytes, tuple[Change, ...]]:
    """One run as a file of the format `to`, and what that format cannot say of it.

    Args:
        read: The run with its places, without errors.
        to: A name in `TARGETS`.
        turns: The turns of the topics by turn id, for PTKB numbers and statements.
        team: The team id, where the format needs one; None for the run's own.

    Raises:
        UsageError: There is no such target.
        InputError: The run has errors, or is none that the target can hold.
    """
    target = _target(to)
    problems = _obstacles(read, to, target, team)
    run = read.run
    if problems or run is None:
        raise InputError("the run cannot be converted", problems)
    changes = Changes(Path(run.file).name)
    return target.write(Source(run, read.places, turns, team), changes), tuple(changes.rows)


def convert_runs(
    runs: Path,
    to: str,
    out: Path,
    *,
    turns: Mapping[str, Turn] | None = None,
    team: str | None = None,
    format: str | None = None,
) -> Conversion:
    """Write every run of a folder (or one run file) in another format into `out`, beside the log of what changed.

    All runs are checked before the first is written; then one at a time is in memory.

    Raises:
        UsageError: `out` holds something else or is the folder of runs, there is no such target or format, or the
            team id is unusable.
        InputError: A run has errors, two share a name, or one cannot be said in the target.
    """
    target = _target(to)
    if team is not None and not (team.strip() and team.isprintable() and len(team) <= MAX_ID):
        raise UsageError(f"the team id {shown(team)} is empty, too long or has unprintable characters")
    paths, folder_problems = find_runs(runs)
    problems = [problem for problem in folder_problems if problem.severity == "error"]
    headers: dict[Path, Run] = {}
    for path in paths:
        read = read_run(path, format)
        problems += _obstacles(read, to, target, team)
        if read.run is not None:
            headers[path] = msgspec.structs.replace(read.run, turns=())
    problems += validate_together(list(headers.values()))
    if problems:
        message = "runs that cannot be converted; nothing was written (`judge validate` lists all that is wrong)"
        raise InputError(message, problems)
    names = safe_names(run.run_id for run in headers.values())
    files = {path: out / f"{names[run.run_id]}{target.suffix}" for path, run in headers.items()}
    _check_output(runs, out, {file.name for file in files.values()})
    make_folder(out)
    changes: list[Change] = []
    # The log comes first: it marks the folder as one that may be written again if this is interrupted.
    write_atomic(out / LOG, conversion_tsv(()))
    for path, file in files.items():
        content, found = convert_run(read_run(path, format), to, turns=turns, team=team)
        write_atomic(file, content)
        changes.extend(found)
    write_atomic(out / LOG, conversion_tsv(changes))
    return Conversion(tuple(files.values()), tuple(changes), folder_problems)


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise UsageError(f"cannot convert to {shown(name)}; one of {', '.join(sorted(TARGETS))}")
    return TARGETS[name]


def _obstacles(read: ReadRun, to: str, target: Target, team: str | None) -> tuple[Problem, ...]:
    """Every reason why a run cannot be converted: its errors, and what the target cannot do without."""
    run = read.run
    if run is None:
        return tuple(problem for problem in read.problems if problem.severity == "error")

    def obstacle(message: str) -> Problem:
        return Problem("not_convertible", "error", run.file, None, "", message)

    if run.format not in FORMATS:
        return (obstacle(f"a {run.format} pool is no run with passages; convertible are {', '.join(FORMATS)}"),)
    checked = validate_run(run, None, _uncounted, limit=1, rule="bare", found=read.problems, places=read.places)
    problems = [problem for problem in checked.problems if problem.severity == "error"]
    if target.needs_team and not (team or run.team):
        problems.append(obstacle(f"{to} needs a team id and {run.format} has none: give it with --team"))
    if not (run.eval_response or target.obeys_eval_response):
        problems.append(obstacle(f"the run says eval_response: false, and {to} cannot say that it is not to be judged"))
    return tuple(problems)


def _uncounted(text: str) -> TokenCount:
    """Lengths are no obstacle, so nothing is counted."""
    return TokenCount(0, 0, 0, None)


def _check_output(runs: Path, out: Path, names: set[str]) -> None:
    """Refuse an output folder with anything in it that this conversion would not write.

    Raises:
        UsageError: It holds something else, or is the folder of runs.
        InputError: It cannot be listed.
    """
    if out.resolve() in (runs.resolve(), runs.resolve().parent if runs.is_file() else None):
        raise UsageError(f"{out}: this is where the runs are; give another folder")
    try:
        present = {path.name for path in out.iterdir()} if out.exists() else set()
    except OSError as error:
        raise InputError(f"{out}: cannot be used as an output folder: {error.strerror}") from error
    expected = names | {LOG}
    strange = present - expected - {f".{name}.tmp" for name in expected}
    if strange or (present and LOG not in present):
        example = min(strange or present)
        raise UsageError(f"{out}: not an empty folder and not this conversion's: it has {shown(example)}")
