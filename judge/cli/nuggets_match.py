"""Ask a judge which nuggets the responses of a pool support, one question for each response and nugget.

The answers are matches: supports, partly, does_not or contradicts. A question without an answer is a failure, never a
label. The same command goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse

from judge.ask.subjects import NUGGET
from judge.cli.nuggets_options import add_asking_arguments, end_asking, job_fields
from judge.cli.printing import progress
from judge.cli.spending import print_calls, print_forecast, say_lacking_log
from judge.harness.nuggets.questions import NuggetMatchPlan, forecast_nuggets, match_nuggets
from judge.nuggets.questions import match_counts
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_asking_arguments(parser, NUGGET, "match only N pairs, spread over the pool", "matches")


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing matches, 1 if there is no match."""
    plan = NuggetMatchPlan(**job_fields(args), bank=args.bank, prompt=args.prompt)
    if args.dry_run:
        forecast = forecast_nuggets(plan)
        of = f"{forecast.counts['responses']} responses, {forecast.counts['nuggets']} nuggets"
        print_calls(forecast.models[0], {"pairs": f"{forecast.models[0].judgments}: {of}"})
        print_forecast(forecast.models)
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = match_nuggets(plan, progress=line)
    labels = ", ".join(f"{number} {label}" for label, number in match_counts(outcome.answers).items())
    given = f"{count(len(outcome.answers), 'match', 'matches')} in {args.out}: {labels}"
    return end_asking(outcome, given, f"{len(outcome.failures)} missing", "a match")
