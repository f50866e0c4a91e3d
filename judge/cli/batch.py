"""Hand requests to a provider's batch API, see how far it is, and take what it brought into the journal.

DIR is the folder of `judge requests`. It remembers every batch, so each action may be given again, by another process
and on another day. Nothing is submitted twice.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from judge.cli.completions_import import add_answered_by_option, tell_taken
from judge.cli.options import add_actions, add_journal_option
from judge.cli.printing import print_json, print_table, progress, say
from judge.harness.batches import collect_batches, poll_batches, submit_batches
from judge.models.batch.service import SubmittedBatch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    commands = add_actions(parser, "submit|status|collect")
    submit = commands.add_parser("submit", help="hand every file of requests to its provider")
    status = commands.add_parser("status", help="ask how far the batches are")
    collect = commands.add_parser("collect", help="fetch what has ended, and take it into the journal")
    for action in (submit, status, collect):
        action.add_argument("requests", type=Path, metavar="DIR", help="folder of `judge requests`")
        action.add_argument("--json", action="store_true", help="print the same as JSON")
    collect.add_argument(
        "-o", "--out", type=Path, required=True, metavar="OUT", help="output folder of `judge run`, with the journal"
    )
    add_answered_by_option(collect)
    add_journal_option(collect)


def main(args: argparse.Namespace) -> int:
    """Carry out an action; 3 while a batch has not ended, 1 if lines were refused or a provider refused a file."""
    return _ACTIONS[args.action](args)


def _submit(args: argparse.Namespace) -> int:
    with progress("submitting") as steps:
        batches = submit_batches(args.requests, steps)
    _print(batches, as_json=args.json)
    places = ", ".join(sorted({batch.address for batch in batches}))
    say(f"submitted to {places}; `judge batch status {args.requests}` asks how far they are")
    return 0


def _status(args: argparse.Namespace) -> int:
    batches = poll_batches(args.requests)
    _print(batches, as_json=args.json)
    return _code(batches)


def _collect(args: argparse.Namespace) -> int:
    with progress("fetching") as steps:
        collected = collect_batches(args.requests, args.out, args.answered_by, steps, journal=args.journal)
    if args.json:
        print_json(collected)
    else:
        _print(collected.batches, as_json=False)
    if collected.taken is None:
        say("nothing has come back yet")
        return _code(collected.batches)
    return tell_taken(collected.taken, facts=not args.json) or _code(collected.batches)


def _print(batches: Sequence[SubmittedBatch], *, as_json: bool) -> None:
    if as_json:
        print_json(batches)
        return
    rows = [
        (batch.file, batch.batch_id or "", batch.status, str(batch.requests), str(batch.completed), str(batch.failed))
        for batch in batches
    ]
    print_table(("file", "batch", "status", "requests", "completed", "failed"), rows, words=3)
    for batch in batches:
        for problem in batch.problems:
            say(f"{batch.file}: refused by the provider: {problem}")


def _code(batches: Sequence[SubmittedBatch]) -> int:
    if lacking := [batch.file for batch in batches if batch.lacks_output]:
        say(f"{', '.join(lacking)}: ended, but the provider does not say yet what came of it")
    if lacking or any(not batch.ended for batch in batches):
        return 3
    return 1 if any(batch.problems for batch in batches) else 0


_ACTIONS = {"submit": _submit, "status": _status, "collect": _collect}
