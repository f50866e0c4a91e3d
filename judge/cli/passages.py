"""Make passage texts and passage checks fast: indexes of a collection, and the texts that a pool needs.

`index --hashes` turns the collection's list of MD5s into a file that tells at once which passages exist and whether a
text is theirs. `index --collection` records where each passage stands in plain JSONL files. `extract` writes the texts
of the passages that a pool or runs use to one small passages.jsonl for `judge run --passages`, in one pass over the
collection or through its index. If options other than --depth decide what is pooled, pool first (`judge pool`) and
extract with --pool.
"""

from collections.abc import Collection

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, progress, say, say_all
from judge.io.ids import natural_key
from judge.jobs.passages import ExtractPlan, IndexPlan, extract_passages, index_passages

SHOWN = 10
"""How many passages of each kind are named."""


def index(plan: IndexPlan) -> int:
    """Build an index of a hash list or of a collection."""
    with progress("indexing") as steps:
        count = index_passages(plan, steps)
    say(f"{plan.out}: {count:,} {'passage' if count == 1 else 'passages'} indexed")
    return 0


def extract(plan: ExtractPlan, output: JsonOutput) -> int:
    """Write the texts of the passages that runs or a pool use; 1 if one is missing or a run cannot be used."""
    with progress("reading runs") as steps:
        outcome = extract_passages(plan, _say_errors, steps)
    if output.as_json:
        left_out = {
            kind: sorted(getattr(outcome, kind), key=natural_key) for kind in ("missing", "unlisted", "differing")
        }
        print_json({"wanted": outcome.wanted, "extracted": outcome.extracted, **left_out, "errors": outcome.errors})
    say(f"{plan.out}: {outcome.extracted:,} of {outcome.wanted:,} {'passage' if outcome.wanted == 1 else 'passages'}")
    _name(outcome.missing, "not found")
    _name(outcome.unlisted, "left out, not on the hash list")
    _name(outcome.differing, "left out, the text differs from the hash list")
    return 1 if outcome.errors or outcome.extracted < outcome.wanted else 0


def _say_errors(errors: int) -> None:
    if errors:
        say(f"{errors} {'error' if errors == 1 else 'errors'} in the runs; `judge validate` lists them")


def _name(ids: Collection[str], reason: str) -> None:
    if ids:
        say(f"{len(ids):,} {reason}:")
    say_all(sorted(ids, key=natural_key)[:SHOWN], "  ")
    if len(ids) > SHOWN:
        say(f"  … and {len(ids) - SHOWN:,} more")


COMMANDS = {"passages": {"index": index, "extract": extract}}
