"""Hand requests to a provider's batch API, see how far it is, and take what it brought into the journal.

DIR is the folder of `judge requests`. It remembers every batch, so each action may be given again, by another process
and on another day. Nothing is submitted twice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_table, progress, say
from judge.extra.scale.batch.service import SubmittedBatch
from judge.extra.scale.batches import collect_batches, poll_batches, submit_batches
from judge.extra.scale.cli_completions import tell_taken
from judge.extra.scale.completions import JournalTaker
from judge.io.plan import Option


class BatchFolder(JsonOutput):
    """Which batches."""

    requests: Annotated[Path, Option(metavar="DIR", place="only")]
    """Folder of `judge requests`."""


def submit(plan: BatchFolder) -> int:
    """Hand every file of requests to its provider."""
    with progress("submitting") as steps:
        batches = submit_batches(plan.requests, steps)
    _print(batches, as_json=plan.as_json)
    places = ", ".join(sorted({batch.address for batch in batches}))
    say(f"submitted to {places}; `judge batch status {plan.requests}` asks how far they are")
    return 0


def status(plan: BatchFolder) -> int:
    """Ask how far the batches are; 3 while one has not ended, 1 if a provider refused a file."""
    batches = poll_batches(plan.requests)
    _print(batches, as_json=plan.as_json)
    return _code(batches)


def collect(plan: BatchFolder, taker: JournalTaker) -> int:
    """Fetch what has ended, and take it into the journal; 3 while a batch has not ended, 1 if lines were refused."""
    with progress("fetching") as steps:
        collected = collect_batches(plan.requests, taker.out, taker.answered_by, steps, journal=taker.journal)
    if plan.as_json:
        print_json(collected)
    else:
        _print(collected.batches, as_json=False)
    if collected.taken is None:
        say("nothing has come back yet")
        return _code(collected.batches)
    return tell_taken(collected.taken, facts=not plan.as_json) or _code(collected.batches)


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


ACTIONS = {"submit": submit, "status": status, "collect": collect}
