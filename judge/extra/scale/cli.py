"""The commands of large runs: requests as files, a provider's batches, and what comes back of both."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.parser import read_examples
from judge.cli.printing import print_fact, print_json, print_table, progress, say
from judge.cli.run import print_dry_run, say_lacking
from judge.cli.spending import DryRunOption
from judge.cli.tables import print_pooled, print_problems
from judge.errors import UsageError
from judge.extra.scale import write_requests
from judge.extra.scale.batches import (
    CompletionsPlan,
    JournalTaker,
    TakenCompletions,
    collect_batches,
    import_completions,
    poll_batches,
    submit_batches,
)
from judge.extra.scale.service import SubmittedBatch
from judge.io.plan import Option, Options, Positive
from judge.io.text import count
from judge.jobs.run import dry_run
from judge.jobs.run_inputs import Plan, RunInputs, RunOptions

_SHOWN = 20


class RequestFiles(
    Options,
    section="requests",
    main="requests shards runs topics passages criteria prompt model column out dry-run limit",
):
    """Where the requests go."""

    requests: Annotated[Path, Option(metavar="DIR")]
    """A new folder for the requests, one for each round."""
    shards: Annotated[Positive | None, Option(metavar="N")] = None
    """Spread them over N files (default: as few as the engine takes)."""
    shard_lines: Annotated[Positive | None, Option(metavar="N")] = None
    """Most requests of a file (default: what the engine takes)."""


_Folder = Annotated[Path, Field(description="Folder of `judge requests`."), Option(metavar="DIR", place="only")]


def requests(
    files: RequestFiles, plan: RunOptions, trial: DryRunOption, output: JsonOutput, file: FileOfOptions
) -> int:
    """Write what `judge run` would still ask as files that batch engines take: providers' batch APIs, `vllm run-batch`.

    Nothing is sent. The options are those of `judge run`, but for an engine and a recheck. `judge
    completions import` takes what comes back into the journal of --out, and the same command then writes what is still
    open: the repairs of unreadable replies, and what failed.
    """
    with progress("reading and checking runs") as steps:
        inputs = RunInputs(Plan(**plan.part(Plan)), keys=False, steps=steps)
        if inputs.passages is not None:
            responses, passages = inputs.criteria, inputs.passages.criteria
            raise UsageError(
                f"{' '.join(one.name for one in (*responses, *passages))}: requests about responses and about passages "
                f"go into folders of their own: ask for {' '.join(one.name for one in passages)} alone with "
                f"--provenance both --out {inputs.passages.out}; then `judge run` takes both"
            )
    print_problems(inputs.pooled, checked_topics=inputs.pooled.asks)
    print_pooled(inputs.pooled)
    if trial.dry_run:
        return print_dry_run(inputs, as_json=output.as_json)
    with progress("") as steps:
        outcome = write_requests(inputs, files.requests, shards=files.shards, most=files.shard_lines, steps=steps)
    if output.as_json:
        print_json(outcome)
    elif outcome.shards:
        rows = [(each.name, each.judge, each.form, f"{each.lines:,}", f"{each.bytes:,}") for each in outcome.shards]
        print_table(("file", "judge", "form", "requests", "bytes"), rows, words=3)
    if outcome.folder is None:
        if say_lacking(dry_run(inputs)):
            return 1
        say("the journal answers everything: no requests were written; `judge run` gives the results")
        return 0
    say(f"{count(outcome.requests, 'request')} in {outcome.folder}; nothing was sent")
    line = f"judge completions import FILE... --requests {outcome.folder} --out {inputs.out}"
    say(f"`{line}` takes what comes back")
    return 0


def submit(requests: _Folder, output: JsonOutput) -> int:
    """Hand every file of requests to its provider's batch API.

    The folder remembers every batch, so this may be given again, by another process and on another day. Nothing is
    submitted twice.
    """
    with progress("submitting") as bar:
        batches = submit_batches(requests, bar, bar.say)
    _print_batches(batches, batches if output.as_json else None)
    say(f"`judge batch status {requests}` asks how far they are")
    return 0


def status(requests: _Folder, output: JsonOutput) -> int:
    """Ask how far the batches are; the exit code is 3 while one has not ended, 1 if a provider refused a file."""
    batches = poll_batches(requests, say)
    _print_batches(batches, batches if output.as_json else None)
    return _code(batches)


def collect(requests: _Folder, output: JsonOutput, taker: JournalTaker) -> int:
    """Fetch what has ended, and take it into the journal.

    The exit code is 3 while a batch has not ended or less came than its provider counts, 1 if lines were refused.
    """
    with progress("fetching") as bar:
        batches, taken = collect_batches(requests, taker.out, taker.answered_by, bar, bar.say)
    _print_batches(batches, {"batches": batches, "taken": taken} if output.as_json else None)
    spoilt = any(len(batch.fetched) < len(batch.outputs) for batch in batches)
    if taken is None:
        say("nothing has come back yet")
        return 3 if spoilt else _code(batches)
    refused = _tell_taken(taken, facts=not output.as_json)
    return 3 if spoilt else refused or _code(batches)


def take(plan: CompletionsPlan, output: JsonOutput) -> int:
    """Take completions that a batch engine brought back into the journal of a run.

    Lines may come in any order, more than once and from several files. A line without a completion is counted by its
    reason; the next `judge requests` writes its question again. A line of another model or request is refused.
    """
    with progress("taking completions") as steps:
        taken = import_completions(plan, steps)
    if output.as_json:
        print_json(taken)
    return _tell_taken(taken, facts=not output.as_json)


def _print_batches(batches: Sequence[SubmittedBatch], json: object = None) -> None:
    """Print a table, or something as JSON."""
    if json is not None:
        print_json(json)
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


def _tell_taken(taken: TakenCompletions, *, facts: bool) -> int:
    """Say what became of the lines, print the counts if `facts`, and give the exit code."""
    if facts:
        numbers = taken.lines, taken.taken, taken.repeated, sum(taken.failed.values()), len(taken.refused)
        for name, number in zip(("lines", "  taken", "  there already", "  failed", "  refused"), numbers, strict=True):
            print_fact(name, f"{number:,}")
        if taken.cost is not None:
            print_fact("cost", f"${taken.cost:,.4f}")
        print_fact("still open", f"{taken.open:,}")
    for why, number in taken.failed.items():
        say(f"failed × {number:,}: {why}")
    for place, why in taken.refused[:_SHOWN]:
        say(f"{place}: refused: {why}")
    if len(taken.refused) > _SHOWN:
        say(f"... and {count(len(taken.refused) - _SHOWN, 'refused line')} more (--json lists all)")
    open_ = "`judge requests` with a new --requests folder writes what is still open"
    none = "every request is answered; `judge requests` writes repairs of unreadable replies, `judge run` the results"
    say(open_ if taken.open else none)
    return 1 if taken.refused else 0


COMMANDS = {
    "requests": requests,
    "batch submit": submit,
    "batch status": status,
    "batch collect": collect,
    "completions import": take,
}

EXAMPLES = read_examples(__file__)
