"""Ask a judge which claims of the responses of a pool some nugget carries, one question for each response.

Each sentence gets a label: nugget, none or no_claim, and passage where the prompt shows the passages that the response
used. A response without an answer is a failure, never a label. `judge nuggets score --claims` makes nugget precision of
the labels. The same command goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse

from judge.ask.subjects import NUGGET_PRECISION
from judge.cli.asking import say_lacking_log
from judge.cli.nuggets_asking import add_asking_arguments, asked_fields, end_asking, print_asking_forecast
from judge.cli.printing import progress
from judge.harness.nuggets.questions import NuggetClaimsPlan, forecast_nuggets, label_claims
from judge.nuggets.claim_tasks import claim_counts
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_asking_arguments(parser, NUGGET_PRECISION, "ask about N responses only, spread over the pool", "labels")


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing labels, 1 if no response has labels."""
    plan = NuggetClaimsPlan(**asked_fields(args))
    if args.dry_run:
        forecast = forecast_nuggets(plan)
        print_asking_forecast(forecast.forecast, "responses", f"{forecast.nuggets} nuggets")
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = label_claims(plan, progress=line)
    given = ", ".join(f"{number} {label}" for label, number in claim_counts(outcome.claims).items())
    return end_asking(
        *(outcome.account, outcome.notes, len(outcome.claims), outcome.failures),
        (
            f"sentences of {count(len(outcome.claims), 'response')} in {args.out}: {given}",
            f"{count(len(outcome.failures), 'response')} without labels",
            "an answer",
        ),
    )
