"""Read CAsT-ReGIn as published, list its known defects, and make its qrels, pools and banks again, byte for byte.

With runs, also map their texts to bank ids and evaluate them. Exit code 1 where the release is damaged.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.calibrate.report.terminal import COLUMNS, short
from judge.crowd.regin.checks import check
from judge.crowd.regin.matching import MatchedRun, Score, TextIndex, evaluate, match_run, not_matched_tsv, scores_tsv
from judge.crowd.regin.resource import RELEVANT, Part, qrels_of, read_resource, read_turns, regenerate
from judge.errors import InputError, UsageError
from judge.files.folder import make_folder, write_atomic
from judge.files.trec import response_run, safe_names
from judge.records import Problem, Run
from judge.runs.check.validate import validate_together
from judge.runs.formats import find_runs, read_run
from judge.text.cells import count, fold, pad, shorten
from judge.text.safe import printable

_AVERAGINGS = {
    "complete": "all its turns, missing ones as 0 (trec_eval -c)",
    "intersection": "turns that the run has too (the README's words)",
}
_NAME = 20
"""Columns that a run's name has at most."""


class _File(msgspec.Struct, frozen=True):
    """A file that was made, and what it is against the released one."""

    path: str
    compared: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the published resource, or one of its two folders")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder to write")
    parser.add_argument(
        "--mi-turns", type=Path, metavar="FILE", help="turn ids of question_relevance_mi_subset, one a line"
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="submitted runs, to be mapped to bank ids by text")
    parser.add_argument("--evaluate", action="store_true", help="evaluate the runs")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")


def main(args: argparse.Namespace) -> int:
    """Read, check, make everything, and only then write."""
    if args.evaluate and not args.runs:
        raise UsageError("--evaluate needs --runs")
    parts = read_resource(args.folder)
    turns = _mi_turns(args.mi_turns, parts) if args.mi_turns else None
    problems = [problem for part in parts for problem in check(part, turns)]
    if any(part.problems for part in parts):
        _print(args, problems, [], [], [])
        _say("nothing is written: the judgments or the bank are damaged")
        return 1
    contents, files = _regenerated(parts, turns)
    inputs = {part.folder / path for part in parts for path in part.released}
    runs: list[MatchedRun] = []
    scores: list[Score] = []
    if args.runs:
        paths, submitted = _runs(args.runs, problems)
        inputs |= set(paths)
        indexes = [TextIndex(part) for part in parts]
        runs = [match_run(run, indexes) for run in submitted]
        contents |= _run_files(runs)
    if args.evaluate:
        scores = [score for run in runs for score in evaluate(run, qrels_of(run.part, turns))]
        contents["evaluation.tsv"] = scores_tsv(scores)
    _write(args.out, contents, inputs | ({args.mi_turns} if args.mi_turns else set()))
    _print(args, problems, files, runs, scores)
    return 1 if any(problem.severity == "error" for problem in problems) else 0


def _mi_turns(path: Path, parts: Sequence[Part]) -> tuple[str, ...]:
    turns = read_turns(path)
    part = next((part for part in parts if part.kind.criterion_of_subsets), None)
    if part is None:
        raise UsageError("--mi-turns is about the clarifying questions, which are not here")
    judged = {row.turn_id for row in part.rows}
    unknown = [turn_id for turn_id in turns if turn_id not in judged]
    # Rows that are damaged were not read: their turns are not unknown.
    if unknown and not part.problems:
        message = "no question of this turn is judged"
        problems = [Problem("unknown_turn", "error", str(path), turn_id, "", message) for turn_id in unknown]
        raise InputError(f"{path}: not turns of the resource", problems)
    return turns


def _regenerated(parts: Sequence[Part], turns: Sequence[str] | None) -> tuple[dict[str, bytes], list[_File]]:
    contents: dict[str, bytes] = {}
    files = []
    for part in parts:
        for path, content in regenerate(part, turns).items():
            released = part.released.get(path)
            compared = "no release" if released is None else "same bytes" if content == released else "differs"
            files.append(_File(f"{part.kind.folder}/{path}", compared))
            contents[files[-1].path] = content
    return contents, files


def _runs(folder: Path, problems: list[Problem]) -> tuple[Sequence[Path], list[Run]]:
    """The readable runs; of several with one id the first."""
    paths, found = find_runs(folder)
    problems.extend(found)
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


def _write(out: Path, contents: dict[str, bytes], inputs: set[Path]) -> None:
    """Write all files, none over one that was read."""
    read = {path.resolve() for path in inputs}
    for name in contents:
        if (out / name).resolve() in read:
            raise UsageError(f"{out / name}: would be written over what was read: choose another --out")
    make_folder(out)
    for name, content in contents.items():
        write_atomic(out / name, content)


def _print(
    args: argparse.Namespace,
    problems: Sequence[Problem],
    files: Sequence[_File],
    runs: Sequence[MatchedRun],
    scores: Sequence[Score],
) -> None:
    if args.json:
        matched = [{"run_id": run.run_id, "part": run.part.kind.folder, **run.counts} for run in runs]
        value: dict[str, Any] = {"problems": problems, "files": files, "runs": matched, "evaluation": scores}
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        for line in (*_problem_lines(problems), *_file_lines(files), *_run_lines(runs), *_score_lines(scores)):
            print(line)
    errors = sum(problem.severity == "error" for problem in problems)
    same = sum(file.compared == "same bytes" for file in files)
    compared = sum(file.compared != "no release" for file in files)
    _say(
        f"{count(errors, 'error')}, {count(len(problems) - errors, 'warning')}; "
        f"{count(len(files), 'file')} made, {same} of {compared} that the release has are the same bytes"
    )


def _problem_lines(problems: Sequence[Problem]) -> list[str]:
    lines = []
    for one in problems:
        where = " ".join(part for part in (one.turn_id, one.path) if part)
        head = f"{one.severity} {one.code} {one.file}{' ' if where else ''}{where}"
        lines += fold(printable(f"{head}: {one.message}"), COLUMNS)
    return lines


def _file_lines(files: Sequence[_File]) -> list[str]:
    lines: list[str] = []
    for folder in dict.fromkeys(file.path.partition("/")[0] for file in files):
        of = [file for file in files if file.path.startswith(f"{folder}/")]
        lines += ["", f"{folder}/", *(f"  {pad(file.compared, 10)}  {file.path.partition('/')[2]}" for file in of)]
    return lines


def _run_lines(runs: Sequence[MatchedRun]) -> list[str]:
    lines = [""] if runs else []
    for run in runs:
        found = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in run.counts.items())
        name = shorten(printable(run.run_id), _NAME)
        lines += fold(f"{name}: {len(run.responses)} texts against {run.part.kind.name}_bank: {found}", COLUMNS)
    return lines


def _score_lines(scores: Sequence[Score]) -> list[str]:
    lines = ["", f"judged pairs only; relevant from grade {RELEVANT} on"] if scores else []
    for qrels, averaging in dict.fromkeys((score.qrels, score.averaging) for score in scores):
        lines += ["", *fold(f"{qrels}: {_AVERAGINGS[averaging]}", COLUMNS)]
        rows = [score for score in scores if (score.qrels, score.averaging) == (qrels, averaging)]
        cells = [["run", "turns", "P@1", "[95 %]", "grade@1", "nDCG@3", "MRR", "MAP"]]
        for run_id in dict.fromkeys(score.run_id for score in rows):
            of = {score.measure: score.estimate for score in rows if score.run_id == run_id}
            first = of["P@1"]
            spread = "" if first.low is None else f"[{short(first.low)}, {short(first.high)}]"
            values = (short(of[measure].value) for measure in ("grade@1", "nDCG@3", "MRR", "MAP"))
            name = shorten(printable(run_id), _NAME)
            cells.append([name, str(first.n), short(first.value), spread, *values])
        widths = [max(len(row[place]) for row in cells) for place in range(1, len(cells[0]))]
        lines += ["  ".join([pad(row[0], _NAME), *map(str.rjust, row[1:], widths)]).rstrip() for row in cells]
    return lines


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)
