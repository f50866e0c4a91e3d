"""Write what `judge run` would still ask as files that batch engines take: providers' batch APIs, `vllm run-batch`.

Nothing is sent. The options are those of `judge run`, but for a cascade, an engine and a recheck. `judge completions
import` takes what comes back into the journal of --out, and the same command then writes what is still open: the
repairs of unreadable replies, and what failed.
"""

from pathlib import Path
from typing import Annotated

from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.printing import print_json, print_table, progress, say
from judge.cli.run import print_dry_run
from judge.cli.spending import DryRunOption
from judge.cli.tables import print_pooled, print_problems
from judge.extra.scale.requests import write_requests
from judge.io.cells import count
from judge.io.plan import Option, Options, Positive
from judge.jobs.run_inputs import Plan, RunOptions, read_run


class RequestFiles(Options, section="requests"):
    """Where the requests go."""

    requests: Annotated[Path, Option(metavar="DIR")]
    """A new folder for the requests, one for each round."""
    shards: Annotated[Positive | None, Option(metavar="N")] = None
    """Spread them over N files (default: as few as the engine takes)."""
    shard_lines: Annotated[Positive | None, Option(metavar="N")] = None
    """Most requests of a file (default: what the engine takes)."""


def main(files: RequestFiles, plan: RunOptions, trial: DryRunOption, output: JsonOutput, file: FileOfOptions) -> int:
    """Pool, and write the requests."""
    with progress("reading and checking runs") as steps:
        inputs = read_run(Plan(**plan.part(Plan)), keys=False, steps=steps)
    print_problems(inputs.pooled, checked_topics=plan.topics is not None)
    print_pooled(inputs.pooled)
    if trial.dry_run:
        print_dry_run(inputs, as_json=output.as_json)
        return 0
    with progress("") as steps:
        outcome = write_requests(inputs, files.requests, shards=files.shards, most=files.shard_lines, steps=steps)
    if output.as_json:
        print_json(outcome)
    elif outcome.shards:
        rows = [
            (shard.name, shard.judge, shard.form, f"{shard.lines:,}", f"{shard.bytes:,}") for shard in outcome.shards
        ]
        print_table(("file", "judge", "form", "requests", "bytes"), rows, words=3)
    if outcome.folder is None:
        say("the journal answers everything: no requests were written; `judge run` gives the results")
        return 0
    say(f"{count(outcome.requests, 'request')} in {outcome.folder}; nothing was sent")
    shared = "" if plan.journal is None else " --journal URL"
    say(
        f"`judge completions import FILE... --requests {outcome.folder} --out {inputs.out}{shared}` takes what comes "
        "back"
    )
    return 0
