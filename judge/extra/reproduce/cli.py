"""The commands `judge reproduce` and `judge crowd cast-regin`."""

from collections.abc import Sequence

from judge.cli.declared import JsonOutput
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, columns, print_grids, print_json, progress, say, say_all
from judge.crowd.released import RELEVANT
from judge.extra import reproduce
from judge.extra.reproduce.cast_regin import MadeFile, MatchedRun, ReginOutcome, ReginPlan, Score, remake_cast_regin
from judge.extra.reproduce.published import Reproduction
from judge.io.installed import undrawn
from judge.io.layout import table_lines
from judge.io.text import count, fold, number, pad, printable, shorten
from judge.records import Problem

_AVERAGINGS = {
    "complete": "all its turns, missing ones as 0 (trec_eval -c)",
    "intersection": "turns that the run has too (the README's words)",
}
_HEADER = ("run", "turns", "P@1", "[95 %]", "grade@1", "nDCG@3", "MRR", "MAP")
_NAME = 20
"""Longest run name shown, in columns of the terminal."""


def cast_regin(plan: ReginPlan, output: JsonOutput) -> int:
    """Read CAsT-ReGIn as published, list its known problems, and make its qrels, pools and banks again, byte for byte.

    With runs, also map their texts to bank ids and evaluate them. Exit code 1 where the release is damaged.
    """
    with progress("reading the resource") as steps:
        outcome = remake_cast_regin(plan, steps)
    if output.as_json:
        runs = [{"run_id": run.run_id, "part": run.part.kind.folder, **run.counts} for run in outcome.runs]
        print_json({"problems": outcome.problems, "files": outcome.files, "runs": runs, "evaluation": outcome.scores})
    else:
        lines = (*_problem_lines(outcome.problems), *_file_lines(outcome.files))
        for line in (*lines, *_run_lines(outcome.runs), *_score_lines(outcome.scores)):
            print(line)
    say(_regin_totals(outcome))
    if not outcome.files:
        say("nothing was written: the judgments or the bank are damaged")
    damaged = any(problem.severity == "error" for problem in outcome.problems)
    return 1 if damaged or not outcome.files else 0


def _regin_totals(outcome: ReginOutcome) -> str:
    errors = sum(problem.severity == "error" for problem in outcome.problems)
    same = sum(file.compared == "same bytes" for file in outcome.files)
    compared = sum(file.compared != "no release" for file in outcome.files)
    return (
        f"{count(errors, 'error')}, {count(len(outcome.problems) - errors, 'warning')}; "
        f"{count(len(outcome.files), 'file')} made; {same} of the {compared} that are released are the same bytes"
    )


def _problem_lines(problems: Sequence[Problem]) -> list[str]:
    lines = []
    for problem in problems:
        head = f"{problem.severity} {problem.code} {problem.file}{' ' if problem.where else ''}{problem.where}"
        lines += fold(printable(f"{head}: {problem.message}"), columns())
    return lines


def _file_lines(files: Sequence[MadeFile]) -> list[str]:
    lines: list[str] = []
    for folder in dict.fromkeys(file.path.partition("/")[0] for file in files):
        members = [file for file in files if file.path.startswith(f"{folder}/")]
        lines += ["", f"{folder}/", *(f"  {pad(file.compared, 10)}  {file.path.partition('/')[2]}" for file in members)]
    return lines


def _run_lines(runs: Sequence[MatchedRun]) -> list[str]:
    lines = [""] if runs else []
    for run in runs:
        counts = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in run.counts.items())
        name = shorten(printable(run.run_id), _NAME)
        lines += fold(f"{name}: {len(run.responses)} texts against {run.part.kind.name}_bank: {counts}", columns())
    return lines


def _short(value: float | None) -> str:
    """Two decimals without a leading zero, as publications print them."""
    return number(value, 2).removeprefix("0")


def _score_lines(scores: Sequence[Score]) -> list[str]:
    lines = ["", f"judged pairs only; relevant from grade {RELEVANT} on"] if scores else []
    for qrels, averaging in dict.fromkeys((score.qrels, score.averaging) for score in scores):
        lines += ["", *fold(f"{qrels}: {_AVERAGINGS[averaging]}", columns())]
        rows = [score for score in scores if (score.qrels, score.averaging) == (qrels, averaging)]
        cells = []
        for run_id in dict.fromkeys(score.run_id for score in rows):
            estimates = {score.measure: score.estimate for score in rows if score.run_id == run_id}
            precision = estimates["P@1"]
            interval = "" if precision.low is None else f"[{_short(precision.low)}, {_short(precision.high)}]"
            values = (_short(estimates[measure].value) for measure in ("grade@1", "nDCG@3", "MRR", "MAP"))
            cells.append([printable(run_id), str(precision.n), _short(precision.value), interval, *values])
        lines += table_lines(_HEADER, cells, columns())
    return lines


def main(plan: reproduce.ReproductionPlan, tables: TableFormat, output: JsonOutput) -> int:
    """Make a published table again from its released files, and print it beside the published one, cell by cell.

    Needs no key and no model. Each published number stands beside ours with the difference and, where the two
    differ, the reason; then comes what the publication does not show, such as intervals and tests of pairs.
    """
    with progress("reading") as steps:
        made = reproduce.reproduce_published(plan, steps)
    if output.as_json:
        print_json(reproduce.reproduction_object(made))
    else:
        # For tools, a reason stands beside its number; for people a note has it.
        marks = tables.format not in ("tsv", "json")
        print_grids((reproduce.comparison(made, marks=marks), *made.beyond), tables.format)
    if plan.out is not None and reproduce.with_intervals(made):
        say_all(undrawn("pictures of the intervals"))
    say(_totals(made))
    return 0


def _totals(made: Reproduction) -> str:
    printed = [number for number in made.numbers if number.published is not None]
    same = sum(number.difference == 0 for number in printed)
    differ = sum(bool(number.difference) for number in printed)
    lacking = len(printed) - same - differ
    return (
        f"{count(len(printed), 'published number')}: {same} made again, {differ} "
        f"{'differs' if differ == 1 else 'differ'}, {lacking} cannot be made from these files"
    )


COMMANDS = {"reproduce": main, "crowd cast-regin": cast_regin}

EXAMPLES = read_examples(__file__)
