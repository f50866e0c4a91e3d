"""List everything that is wrong with the runs of a folder (or with one run file), all at once.

An error means that a response, a turn or a run cannot be judged; a warning, that it is judged although a guideline is
broken. One line a problem: file, severity, code, turn, place, what was found. Exit code 1 if there is an error.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from judge.cli.options import add_input_arguments
from judge.records import Problem, Run
from judge.runs import find_runs, read_run
from judge.text import printable
from judge.tokens import TokenCounter
from judge.topics import read_topics
from judge.validate import NEEDS_TOPICS, validate_run, validate_together

SHOWN = 5
"""Problems of one code listed for one file unless --all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input_arguments(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", action="store_true", help="print all problems as one JSON list, with nothing left out"
    )
    output.add_argument("--all", action="store_true", help=f"list more than {SHOWN} problems of one code and file")


def main(args: argparse.Namespace) -> int:
    """Check the runs one after the other and list the problems."""
    turns = None
    if args.topics:
        turns = {turn.turn_id: turn for topic in read_topics(args.topics) for turn in topic.turns}
    paths, folder_problems = find_runs(args.runs)
    count_tokens = TokenCounter(rule=args.token_rule, limit=args.token_limit)
    problems = list(folder_problems)
    heads: list[Run] = []
    for path in paths:
        read = read_run(path, args.format)
        if read.run is None:
            problems.extend(read.problems)
            continue
        checked = validate_run(
            read.run,
            turns,
            count_tokens,
            limit=args.token_limit,
            rule=args.token_rule,
            found=read.problems,
            places=read.places,
        )
        problems.extend(checked.problems)
        # Without its turns a run is small enough to be kept until all are read.
        heads.append(msgspec.structs.replace(read.run, turns=()))
    problems.extend(validate_together(heads))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(problems), indent=2).decode())
    else:
        for line in _lines(problems, None if args.all else SHOWN):
            print(printable(line))
    errors = sum(problem.severity == "error" for problem in problems)
    print(
        f"{len(paths)} files, {len(heads)} readable as runs: {errors} errors, {len(problems) - errors} warnings",
        file=sys.stderr,
    )
    if turns is None:
        print(f"not checked without --topics: {', '.join(NEEDS_TOPICS)}", file=sys.stderr)
    return 1 if errors else 0


def _lines(problems: Sequence[Problem], shown: int | None) -> Iterator[str]:
    """One line a problem; beyond `shown` of a code in a file, one line that counts the rest."""
    totals = Counter((problem.file, problem.code) for problem in problems)
    listed: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        kind = (problem.file, problem.code)
        listed[kind] += 1
        if shown is None or listed[kind] <= shown:
            where = " ".join(part for part in (problem.turn_id, problem.path) if part)
            head = f"{problem.file}: {problem.severity} {problem.code}"
            yield f"{head}{' ' if where else ''}{where}: {problem.message}"
        elif listed[kind] == shown + 1:
            more = totals[kind] - shown
            yield f"{problem.file}: {problem.severity} {problem.code}: {more} more (--all lists them)"
