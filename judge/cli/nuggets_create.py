"""Ask a judge for a bank of nuggets: which facts a good response to each turn may state, and which of them are vital.

Nuggets are taken from the passages that responses used and from the responses, one call for each. Repeats are left
out, and another prompt says which nuggets are vital. People edit the bank with `judge nuggets sheet`. The same command
goes on where an earlier one stopped, and pays for nothing twice.
"""

import argparse
from collections import Counter
from pathlib import Path

from judge.ask.subjects import NUGGET_CREATION, NUGGET_IMPORTANCE, NUGGET_MERGING
from judge.cli.nuggets_options import add_job_arguments, job_fields
from judge.cli.options import positive, refuse_unused
from judge.cli.printing import progress, say
from judge.cli.spending import asks_again, print_calls, print_forecast, say_accounts, say_lacking_log
from judge.harness.nuggets.creation import MOST, NuggetCreatePlan, create_nuggets, forecast_creation
from judge.nuggets.creation import SOURCE_KINDS
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder with the pool, or its pool.jsonl"
    )
    reading.add_argument("--topics", type=Path, metavar="FILE", help="topics file, to show the conversation")
    reading.add_argument(
        "--from",
        dest="sources",
        choices=SOURCE_KINDS,
        default="both",
        help="what nuggets are taken from (default both)",
    )
    reading.add_argument(
        "--qrels", type=Path, metavar="FILE", help="passage qrels: take only passages that they grade as relevant"
    )
    reading.add_argument(
        "--relevant-from",
        type=int,
        default=1,
        metavar="GRADE",
        help="with --qrels: least grade of a relevant passage (default 1)",
    )
    reading.add_argument(
        "--limit", type=positive, metavar="N", help="make nuggets of only N turns, spread over the pool"
    )
    asking = parser.add_argument_group("asking")
    asking.add_argument("--model", required=True, metavar="BACKEND/MODEL", help="the judge")
    asking.add_argument(
        "--most", type=positive, default=MOST, metavar="N", help=f"most nuggets of a turn (default {MOST})"
    )
    for option, default, what in (
        ("--creation-prompt", NUGGET_CREATION, "for the nuggets of one source"),
        ("--merging-prompt", NUGGET_MERGING, "that tells new nuggets from repeats"),
        ("--importance-prompt", NUGGET_IMPORTANCE, "that says which nuggets are vital"),
    ):
        asking.add_argument(
            option, default=default, metavar="NAME|PATH", help=f"prompt {what} (default {default}/graded)"
        )
    add_job_arguments(parser, asking, "folder for bank and journal")


def main(args: argparse.Namespace) -> int:
    """Ask and write; 3 if asking again may bring missing nuggets, 1 if there is no nugget."""
    if args.qrels is None:
        refuse_unused(args, ["relevant-from"], "it is about the grades of --qrels")
    plan = NuggetCreatePlan(
        **job_fields(args),
        sources=args.sources,
        qrels=args.qrels,
        relevant_from=args.relevant_from,
        most=args.most,
        creation=args.creation_prompt,
        merging=args.merging_prompt,
        importance=args.importance_prompt,
    )
    if args.dry_run:
        forecast = forecast_creation(plan)
        counts, (row,) = forecast.counts, forecast.models
        of = f"{counts['passages']} passages, {counts['responses']} responses"
        print_calls(row, {"turns": str(counts["turns"]), "sources": f"{row.judgments}: {of}"})
        say("repeats and importance come on top, with two calls or more a turn that depend on these replies")
        print_forecast(forecast.models)
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = create_nuggets(plan, progress=line)
    say_accounts((outcome.account,))
    for note in outcome.notes:
        say(f"note: {note}")
    given = Counter(nugget.importance for nugget in outcome.nuggets)
    say(
        f"{count(len(outcome.nuggets), 'nugget')} of {count(outcome.turns, 'turn')} in {args.out}: "
        f"{given['vital']} vital, {given['okay']} okay"
    )
    if outcome.without:
        say(f"{count(len(outcome.without), 'turn')} without nuggets, see bank.json")
    if outcome.failures:
        say(f"{count(len(outcome.failures), 'answer')} missing, see failures.jsonl")
    if asks_again((failure.reason for failure in outcome.failures), "an answer"):
        return 3
    return 0 if outcome.nuggets else 1
