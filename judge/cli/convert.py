"""Write the runs of a folder in another format, or the judgments of an output folder as Parquet.

The log of a conversion of runs, conversion.tsv, has a line for each value dropped or altered, or one for all values of
a kind in a run.
Runs with errors are not converted: `judge validate` lists them, `judge validate --fix` fixes what can be fixed. What
counts in a pool (turns, texts and used passages) stays the same in a run format. The topics turn PTKB numbers into
statements, and statements into numbers.

With --to parquet, RUNS is the output folder of `judge run`; its judgments and failures become tables for data frames.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, progress, say
from judge.errors import UsageError
from judge.io.cells import count
from judge.io.plan import OneOf, Option
from judge.io.safe import printable
from judge.jobs.options import NamedRuns
from judge.jobs.results_parquet import PARQUET, ResultsConvertPlan, convert_results
from judge.runs.convert import LOG, TARGETS, convert_runs, tally
from judge.runs.topics import topic_turns


class ConversionPlan(NamedRuns):
    """Everything `judge convert` can be told."""

    to: Annotated[str, OneOf([*sorted(TARGETS), PARQUET])]
    """The format to write."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder for the new files, outside the runs' folder."""
    team: Annotated[str | None, Option(metavar="ID")] = None
    """Team id, which ikat2025 needs and other formats lack."""


def main(plan: ConversionPlan, output: JsonOutput) -> int:
    """Convert the runs and say what changed, or convert judgments."""
    if plan.to == PARQUET:
        return _convert_results(plan, output)
    turns = topic_turns(plan.topics)
    with progress("converting runs") as steps:
        converted = convert_runs(
            plan.runs, plan.to, plan.out, turns=turns, team=plan.team, format=plan.format, steps=steps
        )
    if output.as_json:
        changes = [{"what": name, "dropped": dropped, "times": n} for name, dropped, n in tally(converted.changes)]
        print_json({"files": [str(file) for file in converted.files], "changes": changes})
    for file in () if output.as_json else converted.files:
        print(printable(str(file)))
    for problem in converted.problems:
        say(f"{problem.file}: {problem.code}: {problem.message}")
    say(
        f"{count(len(converted.files), 'run')} written as {plan.to}; {count(len(converted.changes), 'change')} in {LOG}"
    )
    for name, dropped, n in tally(converted.changes):
        say(f"  {'dropped' if dropped else 'altered'}: {name} × {n}")
    lost = Counter(change.what for change in converted.changes)["PTKB statements"]
    if lost and turns is None:
        say(f"PTKB STATEMENTS LOST in {count(lost, 'response')}: give the topics with --topics to keep them")
    return 0


def _convert_results(plan: ConversionPlan, output: JsonOutput) -> int:
    if len(plan.runs) != 1:
        raise UsageError(f"--to {PARQUET}: expected one output folder of `judge run`, found {len(plan.runs)} paths")
    for name in ("topics", "team", "format"):
        if getattr(plan, name) is not None:
            raise UsageError(f"--{name} is for runs: it cannot go with --to {PARQUET}")
    with progress("converting judgments") as steps:
        converted = convert_results(ResultsConvertPlan(folder=plan.runs[0], out=plan.out), steps)
    if output.as_json:
        print_json({"files": {str(file): rows for file, rows in converted.rows.items()}})
        return 0
    for file, rows in converted.rows.items():
        print(printable(str(file)))
        say(f"{count(rows, 'row')} in {file.name}")
    return 0
