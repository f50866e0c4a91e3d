"""Count the tokens of each run's responses by every rule, and say what each policy for the limit would change.

For each run and rule: how many responses are over the limit, how many are exactly at it (many suggest that the team
cut its texts by this rule), the longest response, and what `judge run --token-rule RULE --over-limit POLICY` would do.
`flag` judges every response as it is. `truncate` cuts the texts over the limit. `exclude` leaves them out; a turn whose
best-ranked response is left out is unanswered. Nothing is judged here.
"""

import sys
from collections.abc import Iterator, Sequence

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_table, progress, say
from judge.jobs.tokens import LengthsPlan, RunLengths, count_lengths, lengths_tsv

HEADER = ("run", "rule", "responses", "over", "at limit", "longest", "cut", "emptied", "unanswered")


class LengthsOutput(JsonOutput, section="output"):
    """How the lengths are printed."""

    tsv: bool = False
    """Print the figures as tab-separated values."""


def main(plan: LengthsPlan, output: LengthsOutput) -> int:
    """Count and print; 1 if a file holds nothing that can be judged."""
    with progress("counting tokens") as steps:
        outcome = count_lengths(plan, steps)
    for name in outcome.unusable:
        say(f"{name}: holds nothing that can be judged; `judge validate` says why")
    if output.as_json:
        print_json(outcome.runs)
    elif output.tsv:
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
