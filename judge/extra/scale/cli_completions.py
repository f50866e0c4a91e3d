"""Take completions that a batch engine brought back into the journal of a run.

Lines may come in any order, more than once and from several files. A line without a completion is counted by its
reason; the next `judge requests` writes its question again. A line of another model or request is refused.
"""

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_fact, print_json, progress, say
from judge.extra.scale.completions import CompletionsPlan, TakenCompletions, import_completions
from judge.io.cells import count

_SHOWN = 20
"""Most refused lines that are shown."""


def main(plan: CompletionsPlan, output: JsonOutput) -> int:
    """Take the lines; 1 if some were refused."""
    with progress("taking completions") as steps:
        taken = import_completions(plan, steps)
    if output.as_json:
        print_json(taken)
    return tell_taken(taken, facts=not output.as_json)


def tell_taken(taken: TakenCompletions, *, facts: bool) -> int:
    """Say what became of the lines, print the counts if `facts`, and give the exit code."""
    if facts:
        print_fact("lines", f"{taken.lines:,}")
        print_fact("  taken", f"{taken.taken:,}")
        print_fact("  there already", f"{taken.repeated:,}")
        print_fact("  failed", f"{sum(taken.failed.values()):,}")
        print_fact("  refused", f"{len(taken.refused):,}")
        if taken.cost is not None:
            print_fact("cost", f"${taken.cost:,.4f}")
        print_fact("still open", f"{taken.open:,}")
    for why, number in taken.failed.items():
        say(f"failed × {number:,}: {why}")
    for place, why in taken.refused[:_SHOWN]:
        say(f"{place}: refused: {why}")
    if len(taken.refused) > _SHOWN:
        say(f"... and {count(len(taken.refused) - _SHOWN, 'refused line')} more (--json lists all)")
    if taken.open:
        say("`judge requests` with a new --requests folder writes what is still open")
    else:
        say("every request is answered; `judge requests` writes repairs of unreadable replies, `judge run` the results")
    return 1 if taken.refused else 0
