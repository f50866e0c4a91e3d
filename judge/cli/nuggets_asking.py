"""The options of every command that asks a judge about nuggets, and what it says of its forecast."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from judge.ask.account import JudgeAccount
from judge.ask.asking import ModelForecast
from judge.cli.asking import add_dry_run_option, add_judge_arguments, add_loop_arguments, loop_settings, model_options
from judge.cli.config import add_config_arguments
from judge.cli.options import add_journal_option, add_output_option, positive
from judge.cli.printing import print_fact, say
from judge.cli.run import ASK_AGAIN
from judge.cli.spending import print_forecast, say_accounts


def add_asking_arguments(parser: argparse.ArgumentParser, criterion: str, limited: str, answers: str) -> None:
    """Declare the pool, the bank, the judge, the loop and the output.

    Args:
        parser: The parser of the command.
        criterion: The criterion of its prompts.
        limited: What --limit does, with N.
        answers: What the answers are called.
    """
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder with the pool, or its pool.jsonl"
    )
    reading.add_argument(
        "--bank", type=Path, required=True, metavar="FILE|DIR", help="bank of nuggets in any form, or its folder"
    )
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file, for a prompt that shows the conversation"
    )
    reading.add_argument("--limit", type=positive, metavar="N", help=limited)
    asking = parser.add_argument_group("asking")
    asking.add_argument("--model", required=True, metavar="BACKEND/MODEL", help="the judge")
    asking.add_argument(
        "--prompt",
        default=criterion,
        metavar="NAME|PATH",
        help=f"prompt of the criterion {criterion} (default {criterion}/graded)",
    )
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    add_dry_run_option(loop, "questions")
    add_output_option(parser, "DIR", f"folder for {answers} and journal", required=True)
    add_journal_option(parser)
    add_config_arguments(parser)


def asked_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a plan that the options give."""
    return {
        "pool": args.pool,
        "bank": args.bank,
        "model": args.model,
        "out": args.out,
        "journal": args.journal,
        "prompt": args.prompt,
        "topics": args.topics,
        "options": model_options(args),
        "settings": loop_settings(args),
        "limit": args.limit,
    }


class MissingLabel(Protocol):
    """A question without an answer."""

    @property
    def reason(self) -> str:
        """Why, as a code."""


def end_asking(
    account: JudgeAccount,
    notes: Sequence[str],
    answers: int,
    missing: Sequence[MissingLabel],
    said: tuple[str, str, str],
) -> int:
    """Say what asking brought.

    Args:
        account: What the calls took.
        notes: A sentence each.
        answers: How many questions have an answer.
        missing: Those without one.
        said: What there is, what is missing, and what another call of the command would ask again.

    Returns:
        The exit code: 3 if asking again may bring missing answers, 1 if there is no answer.
    """
    given, lacking, stopped = said
    say_accounts((account,))
    for note in notes:
        say(f"note: {note}")
    say(given)
    if missing:
        say(f"{lacking}, see failures.jsonl")
    if any(failure.reason in ASK_AGAIN for failure in missing):
        say(f"the same command asks again where a passing failure or the budget stopped {stopped}")
        return 3
    return 0 if answers else 1


def print_asking_forecast(counts: ModelForecast, what: str, of: str) -> None:
    """Print what would be sent.

    Args:
        counts: The calls.
        what: What is asked about.
        of: What else is counted of them.
    """
    print_fact("judge", counts.model)
    print_fact(what, f"{counts.judgments}: {of}")
    print_fact("  from the journal", str(counts.recalled))
    print_fact("  by a shared call", str(counts.shared))
    print_fact("calls to be made", str(counts.calls))
    print_forecast([counts])
    say("nothing was sent and nothing was written")
