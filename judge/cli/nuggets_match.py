"""Ask a judge which nuggets the responses of a pool support, one question for each response and nugget.

The answers are matches: supports, partly, does_not or contradicts. A question without an answer is a failure, never a
label. The same command goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse

from judge.ask.subjects import NUGGET
from judge.cli.asking import say_lacking_log
from judge.cli.nuggets_asking import add_asking_arguments, asked_fields, end_asking, print_asking_forecast
from judge.cli.printing import progress
from judge.harness.nuggets.questions import NuggetMatchPlan, forecast_nuggets, match_nuggets
from judge.nuggets.pairs import label_counts
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_asking_arguments(parser, NUGGET, "match only N pairs, spread over the pool", "matches")


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing matches, 1 if there is no match."""
    plan = NuggetMatchPlan(**asked_fields(args))
    if args.dry_run:
        forecast = forecast_nuggets(plan)
        print_asking_forecast(forecast.forecast, "pairs", f"{forecast.responses} responses, {forecast.nuggets} nuggets")
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = match_nuggets(plan, progress=line)
    given = ", ".join(f"{number} {label}" for label, number in label_counts(outcome.matches).items())
    return end_asking(
        *(outcome.account, outcome.notes, len(outcome.matches), outcome.failures),
        (
            f"{count(len(outcome.matches), 'match', 'matches')} in {args.out}: {given}",
            f"{len(outcome.failures)} missing",
            "a match",
        ),
    )
