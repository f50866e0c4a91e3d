"""How long the responses of each run are by every way of counting tokens, and what each policy would change.

For each run and rule: how many responses are over the limit, how many are at it exactly (many of them say that the
team cut its texts by this rule), the longest one, and what `judge run --token-rule RULE --over-limit POLICY` would do.
`flag` judges everything as it is; `truncate` cuts the texts over the limit; `exclude` leaves them out, and the turns
whose best-ranked response that is are unanswered. Nothing is judged here.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.cli.options import positive
from judge.cli.tables import print_table
from judge.records import Run, RunTurn, TokenRule, Turn
from judge.runs.check.validate import validate_run
from judge.runs.formats import FORMATS, find_runs, read_run
from judge.runs.tokens import RULES, RuleEffect, TokenCounter, rule_effect
from judge.runs.topics import read_topics
from judge.text.safe import printable
from judge.text.tsv import tsv

HEADER = ("run", "rule", "responses", "over", "at limit", "longest", "tokens cut", "emptied", "unanswered")
COLUMNS = (
    *("run_id", "file", "eval_response", "rule", "limit", "turns", "responses"),
    *("over", "at_limit", "longest", "tokens_lost", "emptied", "unanswered"),
)


class RunLengths(msgspec.Struct, frozen=True):
    """The lengths of one run's responses under each rule; the run's turns and responses with text, as pooled."""

    run_id: str
    file: str
    eval_response: bool
    limit: int
    turns: int
    responses: int
    rules: tuple[RuleEffect, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--runs", type=Path, required=True, metavar="DIR", help="folder of run files, of any formats, or one run file"
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file: turns it does not have are left out")
    parser.add_argument(
        "--format", choices=sorted(FORMATS), help="read every file as this format instead of detecting it"
    )
    parser.add_argument(
        "--token-limit", type=positive, default=250, metavar="N", help="longest response in tokens (default 250)"
    )
    parser.add_argument(
        "--depth", type=positive, default=1, metavar="K", help="responses per turn and run, by rank (default 1)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the figures as JSON")
    form.add_argument("--tsv", action="store_true", help="print the figures as tab-separated values")


def main(args: argparse.Namespace) -> int:
    """Read the runs one after the other, count, print."""
    turns = None
    if args.topics:
        turns = {turn.turn_id: turn for topic in read_topics(args.topics) for turn in topic.turns}
    paths, problems = find_runs(args.runs)
    counters = {rule: TokenCounter(rule, args.token_limit) for rule in RULES}
    found: list[RunLengths] = []
    unreadable = sum(problem.severity == "error" for problem in problems)
    for path in paths:
        run = _read(path, args.format, turns)
        if run is None:
            unreadable += 1
            print(
                printable(f"{path.name}: holds nothing that can be judged; `judge validate` says why"), file=sys.stderr
            )
        else:
            found.append(_lengths(run, counters, args.depth))
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif args.tsv:
        sys.stdout.write(lengths_tsv(found))
    else:
        _print(found, args.token_limit)
    return 1 if unreadable else 0


def _read(path: Path, format: str | None, turns: Mapping[str, Turn] | None) -> Run | None:
    """What can be judged of a run."""
    read = read_run(path, format)
    if read.run is None:
        return None
    return validate_run(read.run, turns, None, problems=read.problems, places=read.places).run


def _lengths(run: Run, counters: Mapping[TokenRule, TokenCounter], depth: int) -> RunLengths:
    texts = [_texts(turn, depth) for turn in run.turns]
    return RunLengths(
        run_id=run.run_id,
        file=run.file,
        eval_response=run.eval_response,
        limit=counters["bare"].limit,
        turns=len(texts),
        responses=sum(map(len, texts)),
        rules=tuple(rule_effect(texts, counter, counters["bare"]) for counter in counters.values()),
    )


def _texts(turn: RunTurn, depth: int) -> list[str]:
    """The texts that pooling would take of a turn, best rank first."""
    best = sorted(turn.responses, key=lambda response: response.rank)[:depth]
    return [response.text for response in best if response.text.strip()]


def lengths_tsv(runs: Sequence[RunLengths]) -> str:
    """A line for each run and rule, under COLUMNS."""
    lines = (
        (
            *(run.run_id, run.file, run.eval_response, effect.rule, run.limit, run.turns, run.responses),
            *(effect.over, effect.at_limit, effect.longest, effect.tokens_lost, effect.emptied, effect.unanswered),
        )
        for run in runs
        for effect in run.rules
    )
    return tsv(COLUMNS, lines)


def _print(runs: Sequence[RunLengths], limit: int) -> None:
    print_table(HEADER, [row for run in runs for row in _rows(run)], words=2)
    print(
        f"""
limit {limit}. over: what --over-limit flag marks and changes nothing of, truncate shortens, exclude leaves out.
at limit: responses of exactly {limit}; many are a sign of a team that cut its texts by this rule.
tokens cut, emptied: by truncate, with the responses it leaves no text of. unanswered: turns that exclude
leaves without the run's first response.""",
        file=sys.stderr,
    )
    declined = [run.run_id for run in runs if not run.eval_response]
    if declined:
        print(printable(f"not judged at all (eval_response: false): {', '.join(declined)}"), file=sys.stderr)


def _rows(run: RunLengths) -> Iterator[tuple[str, ...]]:
    for number, one in enumerate(run.rules):
        numbers = (one.over, one.at_limit, one.longest, one.tokens_lost, one.emptied, one.unanswered)
        yield (run.run_id if number == 0 else "", one.rule, *map(str, (run.responses, *numbers)))
