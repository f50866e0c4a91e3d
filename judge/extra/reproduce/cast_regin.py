"""CAsT-ReGIn checked and made again, with runs over it: what `judge crowd cast-regin` does, for use from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from judge.crowd.released import Part, read_resource, read_turns
from judge.errors import InputError, UsageError
from judge.extra.reproduce.matching import (
    MatchedRun,
    Score,
    TextIndex,
    evaluate,
    graded,
    match_run,
    not_matched_tsv,
    scores_tsv,
)
from judge.extra.reproduce.regin import check, qrels_of, regenerate
from judge.io.folder import replace_folder
from judge.io.ids import response_run, safe_names
from judge.io.plan import Option, Options
from judge.io.steps import Steps, quiet, stepped
from judge.records import Problem
from judge.runs.check.validate import validate_together
from judge.runs.formats import find_runs, read_run
from judge.runs.records import Run


class ReginPlan(Options):
    """Everything `judge crowd cast-regin` can be told."""

    folder: Annotated[Path, Option(metavar="DIR", place="only")]
    """The published resource, or one of its two folders."""
    out: Annotated[Path, Option(short="o", metavar="OUT")]
    """Folder to write."""
    mi_turns: Annotated[Path | None, Option(metavar="FILE")] = None
    """Turn ids of question_relevance_mi_subset, one per line."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Submitted runs, to be mapped to bank ids by text."""
    evaluate: bool = False
    """Evaluate the runs."""


class MadeFile(msgspec.Struct, frozen=True):
    """A file that was made, and how it compares with the released one."""

    path: str
    """Relative to the output folder."""
    compared: str
    """`same bytes`, `differs`, or `no release` where the release has no such file."""


class ReginOutcome(msgspec.Struct, frozen=True):
    """Problems of the resource, the files made from it, and the scores of runs over it."""

    problems: tuple[Problem, ...]
    files: tuple[MadeFile, ...] = ()
    """Empty if the judgments or the bank are damaged; nothing was written then."""
    runs: tuple[MatchedRun, ...] = ()
    scores: tuple[Score, ...] = ()


def remake_cast_regin(plan: ReginPlan, steps: Steps = quiet) -> ReginOutcome:
    """Read and check the resource, make every file, and only then write."""
    if plan.evaluate and not plan.runs:
        raise UsageError("--evaluate needs --runs")
    parts = read_resource(plan.folder)
    turns = _mi_turns(plan.mi_turns, parts) if plan.mi_turns is not None else None
    problems = [problem for part in parts for problem in check(part, turns)]
    if any(part.problems for part in parts):
        return ReginOutcome(tuple(problems))
    contents, files = _regenerated(parts, turns)
    inputs = {part.folder / path for part in parts for path in part.released}
    inputs |= {plan.mi_turns} if plan.mi_turns is not None else set()
    runs: list[MatchedRun] = []
    scores: list[Score] = []
    if plan.runs:
        paths, submitted = _runs(plan.runs, problems)
        inputs |= set(paths)
        indexes = [TextIndex(part) for part in parts]
        runs = [match_run(run, indexes) for run in stepped("matching runs", submitted, steps)]
        contents |= _run_files(runs)
    if plan.evaluate:
        qrels = {part.kind.name: graded(qrels_of(part, turns)) for part in parts}
        of_runs = (evaluate(run, qrels[run.part.kind.name]) for run in stepped("evaluating runs", runs, steps))
        scores = [score for of_run in of_runs for score in of_run]
        contents["evaluation.tsv"] = scores_tsv(scores)
    replace_folder(plan.out, contents, "cast-regin.sha256", inputs=inputs)
    return ReginOutcome(tuple(problems), tuple(files), tuple(runs), tuple(scores))


def _mi_turns(path: Path, parts: Sequence[Part]) -> tuple[str, ...]:
    turns = read_turns(path)
    part = next((part for part in parts if part.kind.criterion_of_subsets), None)
    if part is None:
        raise UsageError("--mi-turns is about the clarifying questions, and the folder has none")
    judged = {row.turn_id for row in part.rows}
    unknown = [turn_id for turn_id in turns if turn_id not in judged]
    # Damaged rows were not read, so a turn missing from the rows read may still be judged.
    if unknown and not part.problems:
        message = "no question of this turn is judged"
        problems = [Problem("unknown_turn", "error", str(path), turn_id, "", message) for turn_id in unknown]
        raise InputError(f"{path}: not turns of the resource", problems)
    return turns


def _regenerated(parts: Sequence[Part], turns: Sequence[str] | None) -> tuple[dict[str, bytes], list[MadeFile]]:
    contents: dict[str, bytes] = {}
    files = []
    for part in parts:
        for path, content in regenerate(part, turns).items():
            released = part.released.get(path)
            compared = "no release" if released is None else "same bytes" if content == released else "differs"
            files.append(MadeFile(f"{part.kind.folder}/{path}", compared))
            contents[files[-1].path] = content
    return contents, files


def _runs(given: Sequence[Path], problems: list[Problem]) -> tuple[Sequence[Path], list[Run]]:
    """The paths of the runs, and the readable runs: the first of each run id."""
    paths, folder_problems = find_runs(given)
    problems.extend(folder_problems)
    runs: list[Run] = []
    for path in paths:
        read = read_run(path)
        problems.extend(read.problems)
        if read.run is not None and read.run.run_id:
            runs.append(read.run)
    problems.extend(validate_together(runs))
    return paths, list({run.run_id: run for run in reversed(runs)}.values())[::-1]


def _run_files(runs: Sequence[MatchedRun]) -> dict[str, bytes]:
    names = safe_names(run.run_id for run in runs)
    contents = {
        f"{run.part.kind.name}_runs/{names[run.run_id]}.run": response_run(run.run_id, run.entries).encode()
        for run in runs
        if run.entries
    }
    return contents | {"not_matched.tsv": not_matched_tsv(runs)}
