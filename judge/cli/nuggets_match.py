"""Ask a judge which nuggets the responses of a pool support, one question for each response and nugget.

The answers are matches: supports, partly, does_not or contradicts. A question without an answer is a failure, never a
label. The same command goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse
from pathlib import Path

from judge.ask.progress import FetchReporter, Reporter
from judge.ask.prompt import NUGGET
from judge.cli.asking import (
    add_judge_arguments,
    add_loop_arguments,
    loop_settings,
    model_options,
    say_lacking_log,
)
from judge.cli.config import add_config_arguments
from judge.cli.options import add_journal_option, add_output_option, positive
from judge.cli.printing import print_fact, progress, say
from judge.cli.run import ASK_AGAIN
from judge.cli.spending import print_forecast, say_accounts
from judge.harness.nuggets.matching import NuggetForecast, NuggetMatchPlan, forecast_matching, match_nuggets
from judge.nuggets.pairs import label_counts
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder with the pool, or its pool.jsonl"
    )
    reading.add_argument("--bank", type=Path, required=True, metavar="FILE", help="bank of nuggets, in any form")
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file, for a prompt that shows the conversation"
    )
    reading.add_argument("--limit", type=positive, metavar="N", help="match only N pairs, spread over the pool")
    asking = parser.add_argument_group("asking")
    asking.add_argument("--model", required=True, metavar="BACKEND/MODEL", help="the judge")
    asking.add_argument(
        "--prompt", default=NUGGET, metavar="NAME|PATH", help="prompt of the criterion nugget (default nugget/graded)"
    )
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    loop.add_argument("--dry-run", action="store_true", help="count questions, tokens and cost; send and write nothing")
    add_output_option(parser, "DIR", "folder for matches and journal", required=True)
    add_journal_option(parser)
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing matches, 1 if there is no match."""
    plan = NuggetMatchPlan(
        pool=args.pool,
        bank=args.bank,
        model=args.model,
        out=args.out,
        journal=args.journal,
        prompt=args.prompt,
        topics=args.topics,
        options=model_options(args),
        settings=loop_settings(args),
        limit=args.limit,
    )
    if args.dry_run:
        _print_forecast(forecast_matching(plan))
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line, Reporter(args.model, line) as reporter:
        outcome = match_nuggets(plan, reporter, FetchReporter(line))
    say_accounts((outcome.account,))
    for note in outcome.notes:
        say(f"note: {note}")
    given = ", ".join(f"{number} {label}" for label, number in label_counts(outcome.matches).items())
    say(f"{count(len(outcome.matches), 'match', 'matches')} in {args.out}: {given}")
    if outcome.failures:
        say(f"{len(outcome.failures)} missing, see failures.jsonl")
    if any(failure.reason in ASK_AGAIN for failure in outcome.failures):
        say("the same command asks again where a passing failure or the budget stopped a match")
        return 3
    return 0 if outcome.matches else 1


def _print_forecast(forecast: NuggetForecast) -> None:
    counts = forecast.forecast
    print_fact("judge", counts.model)
    print_fact("pairs", f"{counts.judgments}: {forecast.responses} responses, {forecast.nuggets} nuggets")
    print_fact("  from the journal", str(counts.recalled))
    print_fact("  by a shared call", str(counts.shared))
    print_fact("calls to be made", str(counts.calls))
    print_forecast([counts])
    say("nothing was sent and nothing was written")
