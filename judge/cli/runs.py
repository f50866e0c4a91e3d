"""Runs before anything is judged: checked, measured, written in another format."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import Field

from judge.cli.declared import JsonOutput
from judge.cli.printing import progress, say_all, show
from judge.errors import UsageError
from judge.io.plan import OneOf, Option
from judge.io.printout import Printout
from judge.io.text import count
from judge.jobs.options import NamedRuns
from judge.jobs.results_parquet import PARQUET, ResultsConvertPlan, convert_results
from judge.jobs.tokens import LengthsPlan, count_lengths, lengths_tsv
from judge.jobs.validation import ValidationPlan, validate_runs
from judge.runs.check.pages import PAGE_EXAMPLES
from judge.runs.convert import LOG as CHANGES
from judge.runs.convert import TARGETS, convert_runs, tally
from judge.runs.topics import topic_turns

_MORE = (
    "List more than 3 problems of a code and file (20 on a page); of those in one list of passages, 10 are listed and "
    "the others counted."
)
_FIX = "Write fixed copies of the runs to the folder of -o, and a log of every fix."
_OUT = Field(description="Where --fix writes; outside the runs' folder.")


def validate(
    plan: ValidationPlan,
    output: JsonOutput,
    more: Annotated[bool, Field(description=_MORE), Option("all", section="output")] = False,
    fix: Annotated[bool, Field(description=_FIX), Option(section="fixed copies")] = False,
    out: Annotated[Path | None, _OUT, Option(short="o", metavar="DIR", section="fixed copies")] = None,
) -> int:
    """List everything that is wrong with the runs of folders and files, all at once.

    An error means that a response, a turn or a run cannot be judged; a warning, that it is judged although a guideline
    is broken. The table of runs comes first, then the problems by file and code, with counts and the first places. Exit
    code 0 if there is no error, 1 if there is one, 2 if a file cannot be read as a run at all (everything else is still
    listed). With --fix, 0 and 1 say what is wrong with the copies, and with the files that have none.
    """
    if fix != (out is not None):
        raise UsageError("--fix and -o DIR go together: the fixed copies are written to a folder of their own")
    plan = plan.with_values(lengths=output.as_json, page_examples=None if more else PAGE_EXAMPLES, fixed_dir=out)
    with progress("checking runs") as steps:
        printout = validate_runs(plan, steps)
    return show(printout, as_json=output.as_json)


_Tsv = Annotated[bool, Field(description="Print the figures as tab-separated values."), Option(section="output")]


def tokens(plan: LengthsPlan, output: JsonOutput, tsv: _Tsv = False) -> int:
    """Count the tokens of each run's responses by every rule, and say what each policy for the limit would change.

    For each run and rule: how many responses are over the limit, how many are exactly at it (many suggest that the team
    cut its texts by this rule), the longest response, and what `judge run --token-rule RULE --over-limit POLICY` would
    do. `flag` judges every response as it is. `truncate` cuts the texts over the limit. `exclude` leaves them out; a
    turn whose best-ranked response is left out is unanswered. Nothing is judged here.
    """
    with progress("counting tokens") as steps:
        printout = count_lengths(plan, steps)
    if tsv and not output.as_json:
        say_all(printout.warnings)
        sys.stdout.write(lengths_tsv(printout.data))
        return printout.exit
    return show(printout, as_json=output.as_json)


class ConversionPlan(NamedRuns):
    """Everything `judge convert` can be told."""

    to: Annotated[str, OneOf([*sorted(TARGETS), PARQUET])]
    """The format to write."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder for the new files, outside the runs' folder."""
    team: Annotated[str | None, Option(metavar="ID")] = None
    """Team id, which ikat2025 needs and other formats lack."""


def convert(plan: ConversionPlan, output: JsonOutput) -> int:
    """Write the runs of a folder in another format, or the judgments of an output folder as Parquet.

    The log of a conversion of runs, conversion.tsv, has a line for each value dropped or altered, or one for all values
    of a kind in a run. Runs with errors are not converted: `judge validate` lists them, `judge validate --fix` fixes
    what can be fixed. What counts in a pool (turns, texts and used passages) stays the same in a run format. The topics
    turn PTKB numbers into statements, and statements into numbers.

    With --to parquet, RUNS is the output folder of `judge run`; its judgments and failures become tables for data
    frames.
    """
    if plan.to == PARQUET:
        return _convert_results(plan, output)
    turns = topic_turns(plan.topics)
    with progress("converting runs") as steps:
        files_given = [place for place in plan.runs if isinstance(place, Path)]
        converted = convert_runs(
            files_given, plan.to, plan.out, turns=turns, team=plan.team, format=plan.format, steps=steps
        )
    counts = tally(converted.changes)
    files = count(len(converted.files), "run")
    changed = count(len(converted.changes), "change")
    notes = [
        *(f"{problem.file}: {problem.code}: {problem.message}" for problem in converted.problems),
        f"{files} written as {plan.to}; {changed} in {CHANGES}",
        *(f"  {'dropped' if dropped else 'altered'}: {name} × {n}" for name, dropped, n in counts),
    ]
    lost = Counter(change.what for change in converted.changes)["PTKB statements"]
    if lost and turns is None:
        notes.append(f"PTKB STATEMENTS LOST in {count(lost, 'response')}: give the topics with --topics to keep them")
    changes = [{"what": name, "dropped": dropped, "times": n} for name, dropped, n in counts]
    printout = Printout(data={"files": converted.files, "changes": changes}, files=converted.files, notes=tuple(notes))
    return show(printout, as_json=output.as_json)


def _convert_results(plan: ConversionPlan, output: JsonOutput) -> int:
    if len(plan.runs) != 1:
        raise UsageError(f"--to {PARQUET}: expected one output folder of `judge run`, found {len(plan.runs)} paths")
    for name in ("topics", "team", "format"):
        if getattr(plan, name) is not None:
            raise UsageError(f"--{name} is for runs: it cannot go with --to {PARQUET}")
    with progress("converting judgments") as steps:
        converted = convert_results(ResultsConvertPlan(folder=plan.runs[0], out=plan.out), steps)
    printout = Printout(
        data={"files": {str(file): rows for file, rows in converted.items()}},
        files=tuple(converted),
        legend=tuple(f"{count(rows, 'row')} in {file.name}" for file, rows in converted.items()),
    )
    return show(printout, as_json=output.as_json)


COMMANDS = {"validate": validate, "tokens": tokens, "convert": convert}
