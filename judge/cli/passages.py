"""Make passage texts and passage checks fast: indexes of a collection, and the texts that a pool needs.

`index --hashes` turns the collection's list of MD5s into a file that tells at once which passages exist and whether a
text is theirs. `index --collection` records where each passage stands in plain JSONL files. `extract` writes the texts
of the passages that a pool or runs use to one small passages.jsonl for `judge run --passages`, in one pass over the
collection or through its index. If options other than --depth decide what is pooled, pool first (`judge pool`) and
extract with --pool.
"""

from judge.cli.declared import JsonOutput
from judge.cli.printing import progress, say, show
from judge.jobs.passages import ExtractPlan, IndexPlan, extract_passages, index_passages


def index(plan: IndexPlan) -> int:
    """Build an index of a hash list or of a collection."""
    with progress("indexing") as steps:
        count = index_passages(plan, steps)
    say(f"{plan.out}: {count:,} {'passage' if count == 1 else 'passages'} indexed")
    return 0


def extract(plan: ExtractPlan, output: JsonOutput) -> int:
    """Write the texts of the passages that runs or a pool use; 1 if one is missing or a run cannot be used."""
    with progress("reading runs") as steps:
        printout = extract_passages(plan, _say_errors, steps)
    return show(printout, as_json=output.as_json)


def _say_errors(errors: int) -> None:
    if errors:
        say(f"{errors} {'error' if errors == 1 else 'errors'} in the runs; `judge validate` lists them")


COMMANDS = {"passages": {"index": index, "extract": extract}}
