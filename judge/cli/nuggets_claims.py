"""Ask a judge which claims of the responses of a pool some nugget carries, one question for each response.

Each sentence gets a label: nugget, none or no_claim, and passage where the prompt shows the passages that the response
used. A response without an answer is a failure, never a label. `judge nuggets score --claims` makes nugget precision of
the labels. The same command goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse

from judge.ask.subjects import NUGGET_PRECISION
from judge.cli.nuggets_options import add_asking_arguments, end_asking, job_fields
from judge.cli.printing import progress
from judge.cli.spending import print_calls, print_forecast, say_lacking_log
from judge.harness.nuggets.questions import NuggetClaimsPlan, forecast_nuggets, label_claims
from judge.nuggets.questions import claim_counts
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_asking_arguments(parser, NUGGET_PRECISION, "ask about N responses only, spread over the pool", "labels")


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing labels, 1 if no response has labels."""
    plan = NuggetClaimsPlan(**job_fields(args), bank=args.bank, prompt=args.prompt)
    if args.dry_run:
        forecast = forecast_nuggets(plan)
        of = f"{forecast.counts['nuggets']} nuggets"
        print_calls(forecast.models[0], {"responses": f"{forecast.models[0].judgments}: {of}"})
        print_forecast(forecast.models)
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = label_claims(plan, progress=line)
    labels = ", ".join(f"{number} {label}" for label, number in claim_counts(outcome.answers).items())
    given = f"sentences of {count(len(outcome.answers), 'response')} in {args.out}: {labels}"
    return end_asking(outcome, given, f"{count(len(outcome.failures), 'response')} without labels", "an answer")
