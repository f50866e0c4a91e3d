"""What `judge run` shows of its recheck."""

from judge.cli.printing import print_table, print_text, say
from judge.harness.recheck import Rechecked
from judge.text.cells import count, interval

HEADER = (
    *("judge", "prompt", "asked again/topics", "other answer [95 %]", "distance [95 %]"),
    *("higher", "lower", "missing"),
)


def print_rechecked(rechecked: Rechecked | None, *, table: bool) -> None:
    """Print how often the second answer differs, and warn where something else answered.

    Args:
        rechecked: What was asked again; None without a recheck.
        table: Whether stdout may hold a table.
    """
    if rechecked is None:
        return
    if table:
        print()
        print_text(
            f"{count(sum(row.asked for row in rechecked.rows), 'question')} asked again (--recheck {rechecked.part}): "
            "the share of other answers and the mean distance of the two grades"
        )
        print_table(
            HEADER,
            [
                (
                    row.judge,
                    row.prompt,
                    f"{row.asked}/{row.flipped.topics}",
                    interval(row.flipped),
                    interval(row.change),
                    *map(str, (row.higher, row.lower, row.missing)),
                )
                for row in rechecked.rows
            ],
            words=2,
            keys=2,
        )
    else:
        say(f"{count(len(rechecked.items), 'question')} asked again: manifest.json says what came of it")
    for line in rechecked.changes:
        say(f"warning: {line}")
    if rechecked.missing:
        say(f"{count(rechecked.missing, 'question')} of the recheck without a second answer, see recheck.jsonl")
