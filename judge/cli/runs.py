"""Runs before anything is judged: checked, measured, written in another format."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_listed, print_table, progress, say
from judge.errors import UsageError
from judge.io.plan import OneOf, Option
from judge.io.text import count, printable
from judge.jobs.options import NamedRuns
from judge.jobs.results_parquet import PARQUET, ResultsConvertPlan, convert_results
from judge.jobs.tokens import LengthsPlan, RunLengths, count_lengths, lengths_tsv
from judge.jobs.validation import FixedRuns, ValidationPlan, validate_runs
from judge.runs.check import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.pages import PAGE_EXAMPLES
from judge.runs.check.problems import EXAMPLES, RUN_COLUMNS, remaining, run_rows, text_lines, total
from judge.runs.convert import LOG as CHANGES
from judge.runs.convert import TARGETS, convert_runs, tally
from judge.runs.fix import LOG as FIXES
from judge.runs.profiles import described
from judge.runs.topics import topic_turns

SCHEMA = 1
"""Version of what --json prints."""


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
        outcome = validate_runs(plan, steps)
    for name, reason in outcome.refused:
        say(f"{name}: {reason}; no copy was written")
    if output.as_json:
        errors, warnings = (sum(getattr(file, kind) for file in outcome.files) for kind in ("errors", "warnings"))
        head = {"schema": SCHEMA, "errors": errors, "warnings": warnings, "limits": outcome.limits.recorded()}
        print_json({**head, "several_years": outcome.several_years, "files": outcome.files, "fixed": outcome.fixed})
    else:
        print_table(RUN_COLUMNS, run_rows(outcome.files), words=6)
        print()
        if outcome.several_years is not None:
            print_listed(f"error several_years: {outcome.several_years}")
        for line in text_lines(outcome.files, None if more else EXAMPLES):
            print_listed(line)
        if outcome.fixed is not None:
            _print_fixed(outcome.fixed)
    for option, needing in (("--topics", NEEDS_TOPICS), ("--passage-hashes", NEEDS_HASHES)):
        if codes := sorted(outcome.unchecked & set(needing)):
            say(f"not checked without {option}: {', '.join(codes)}")
    say(f"limits: {described(outcome.limits)}")
    return 2 if outcome.unreadable else int(outcome.errors)


def _print_fixed(fixed: FixedRuns) -> None:
    fixes = count(fixed.fixes, "fix", "fixes")
    print()
    print_listed(f"fixed copies in {fixed.folder}: {fixes}, listed in {FIXES}; what remains:")
    for file in fixed.files:
        print_listed(f"  {remaining(file)}")
    if fixed.without_copy:
        print("without a copy:")
    for file in fixed.without_copy:
        print_listed(f"  {remaining(file)}")
    print_listed(total((*fixed.files, *fixed.without_copy)))


LENGTHS = ("run", "rule", "responses", "over", "at limit", "longest", "cut", "emptied", "unanswered")


_Tsv = Annotated[bool, Field(description="Print the figures as tab-separated values."), Option(section="output")]


def tokens(plan: LengthsPlan, output: JsonOutput, tsv: _Tsv = False) -> int:
    """Count the tokens of each run's responses by every rule, and say what each policy for the limit would change.

    For each run and rule: how many responses are over the limit, how many are exactly at it (many suggest that the team
    cut its texts by this rule), the longest response, and what `judge run --token-rule RULE --over-limit POLICY` would
    do. `flag` judges every response as it is. `truncate` cuts the texts over the limit. `exclude` leaves them out; a
    turn whose best-ranked response is left out is unanswered. Nothing is judged here.
    """
    with progress("counting tokens") as steps:
        outcome = count_lengths(plan, steps)
    for name in outcome.unusable:
        say(f"{name}: holds nothing that can be judged; `judge validate` says why")
    if output.as_json:
        print_json(outcome.runs)
    elif tsv:
        sys.stdout.write(lengths_tsv(outcome.runs))
    else:
        _print_lengths(outcome.runs, outcome.limit)
    return 0 if outcome.complete else 1


def _print_lengths(runs: Sequence[RunLengths], limit: int) -> None:
    print_table(LENGTHS, [row for run in runs for row in _rows(run)], words=2, keys=2)
    print(
        f"""
limit {limit}. over: responses that --over-limit flag marks, truncate shortens and exclude leaves out.
at limit: responses of exactly {limit} tokens; many suggest that the team cut its texts by this rule.
cut, emptied: tokens that truncate cuts, and responses that it leaves without text. unanswered: turns
that exclude leaves without the run's first response.""",
        file=sys.stderr,
    )
    declined = [run.run_id for run in runs if not run.eval_response]
    if declined:
        say(f"not judged at all (eval_response: false): {', '.join(declined)}")


def _rows(run: RunLengths) -> Iterator[tuple[str, ...]]:
    for number, effect in enumerate(run.rules):
        numbers = (effect.over, effect.at_limit, effect.longest, effect.tokens_lost, effect.emptied, effect.unanswered)
        yield (run.run_id if not number else "", effect.rule, *map(str, (run.responses, *numbers)))


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
    files = count(len(converted.files), "run")
    changed = count(len(converted.changes), "change")
    say(f"{files} written as {plan.to}; {changed} in {CHANGES}")
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
        print_json({"files": {str(file): rows for file, rows in converted.items()}})
        return 0
    for file, rows in converted.items():
        print(printable(str(file)))
        say(f"{count(rows, 'row')} in {file.name}")
    return 0


COMMANDS = {"validate": validate, "tokens": tokens, "convert": convert}
