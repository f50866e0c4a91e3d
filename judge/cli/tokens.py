"""Count the tokens of each run's responses by every rule, and say what each policy for the limit would change.

For each run and rule: how many responses are over the limit, how many are exactly at it (many suggest that the team
cut its texts by this rule), the longest response, and what `judge run --token-rule RULE --over-limit POLICY` would do.
`flag` judges every response as it is. `truncate` cuts the texts over the limit. `exclude` leaves them out; a turn whose
best-ranked response is left out is unanswered. Nothing is judged here.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.cli.options import add_profile_argument, add_runs_arguments, given_runs, positive
from judge.cli.printing import print_json, print_table, progress, say
from judge.harness.tokens import LengthsPlan, RunLengths, count_lengths, lengths_tsv
from judge.runs.formats import FORMATS

HEADER = ("run", "rule", "responses", "over", "at limit", "longest", "cut", "emptied", "unanswered")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_runs_arguments(parser)
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file: turns it does not have are left out")
    parser.add_argument(
        "--format", choices=sorted(FORMATS), help="read every file as this format instead of detecting it"
    )
    parser.add_argument(
        "--token-limit", type=positive, metavar="N", help="longest response in tokens (default: the profile's)"
    )
    add_profile_argument(parser)
    parser.add_argument(
        "--depth", type=positive, default=1, metavar="K", help="responses per turn and run, by rank (default 1)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the figures as JSON")
    form.add_argument("--tsv", action="store_true", help="print the figures as tab-separated values")


def main(args: argparse.Namespace) -> int:
    """Count and print; 1 if a file holds nothing that can be judged."""
    with progress("counting tokens") as steps:
        outcome = count_lengths(
            LengthsPlan(
                runs=given_runs(args),
                topics=args.topics,
                format=args.format,
                limit=args.token_limit,
                profile=args.profile,
                depth=args.depth,
            ),
            steps,
        )
    for name in outcome.unusable:
        say(f"{name}: holds nothing that can be judged; `judge validate` says why")
    if args.json:
        print_json(outcome.runs)
    elif args.tsv:
        sys.stdout.write(lengths_tsv(outcome.runs))
    else:
        _print(outcome.runs, outcome.limit)
    return 0 if outcome.complete else 1


def _print(runs: Sequence[RunLengths], limit: int) -> None:
    print_table(HEADER, [row for run in runs for row in _rows(run)], words=2, keys=2)
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
