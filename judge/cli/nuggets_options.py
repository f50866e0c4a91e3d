"""Options that several commands about nuggets share, and what those that ask about nuggets say at their end."""

import argparse
from pathlib import Path
from typing import Any

from judge.cli.asking import add_dry_run_option, add_judge_arguments, add_loop_arguments, loop_settings, model_options
from judge.cli.config import add_config_arguments
from judge.cli.options import add_journal_option, add_output_option, pair, positive
from judge.cli.printing import say
from judge.cli.spending import asks_again, say_accounts
from judge.harness.nuggets.questions import NuggetAnswers


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
    add_job_arguments(parser, asking, f"folder for {answers} and journal")


def add_job_arguments(parser: argparse.ArgumentParser, asking: argparse._ArgumentGroup, out: str) -> None:
    """Declare how the judge is asked, the loop and the output.

    Args:
        parser: The parser of the command.
        asking: Its group about the judge.
        out: What --out is.
    """
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    add_dry_run_option(loop, "questions")
    add_output_option(parser, "DIR", out, required=True)
    add_journal_option(parser)
    add_config_arguments(parser)


def job_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields that the plans of these commands share."""
    names = "pool", "model", "out", "journal", "topics", "limit"
    return {name: getattr(args, name) for name in names} | {
        "options": model_options(args),
        "settings": loop_settings(args),
    }


def end_asking(outcome: NuggetAnswers, given: str, lacking: str, stopped: str) -> int:
    """Say what asking brought.

    Args:
        outcome: What came of it.
        given: What there is.
        lacking: What is missing, if anything is.
        stopped: What another call of the command would ask again.

    Returns:
        The exit code: 3 if asking again may bring missing answers, 1 if there is no answer.
    """
    say_accounts((outcome.account,))
    for note in outcome.notes:
        say(f"note: {note}")
    say(given)
    if outcome.failures:
        say(f"{lacking}, see failures.jsonl")
    if asks_again((failure.reason for failure in outcome.failures), stopped):
        return 3
    return 0 if outcome.answers else 1


def add_matches_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the pool, the bank, the matches, and other names of runs.

    Args:
        parser: The parser of the command.
        what: What --matches names.
    """
    parser.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder with the pool")
    parser.add_argument(
        "--bank", type=Path, required=True, metavar="FILE|DIR", help="bank of nuggets in any form, or its folder"
    )
    parser.add_argument(
        "--matches",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE|DIR",
        help=f"{what}; of several judges the majority counts",
    )
    parser.add_argument(
        "--rename",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=RUN",
        help="the run of the pool that the matches call NAME; may be repeated",
    )
