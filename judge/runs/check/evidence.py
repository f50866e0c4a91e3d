"""Whether most of a run's evidence exists. Pure.

A response whose evidence does not exist cannot be judged for groundedness. A run could answer a turn or two, leave the
others without a grade in this way, and still show a high mean over its grades.
"""

from collections.abc import Iterable

FEWEST_TURNS = 3
"""Turns with absent evidence of the smallest run that is named for them."""


def absent_evidence(turns: Iterable[tuple[int, int]], what: str) -> str | None:
    """What to say of a run in most of whose turns a used passage is absent; None of any other run.

    Args:
        turns: For each turn of the run, how many used passages are absent, and how many there are.
        what: What it is that such a passage is or lacks, after "a used passage".

    >>> absent_evidence([(1, 2), (2, 2), (2, 2), (0, 2)], "is not there")
    'in 3 of its 4 turns a used passage is not there: 5 of all 8 used passages'
    """
    counts = list(turns)
    hit = sum(absent > 0 for absent, _ in counts)
    if hit < FEWEST_TURNS or 2 * hit <= len(counts):
        return None
    absent, used = (sum(column) for column in zip(*counts, strict=True))
    return f"in {hit} of its {len(counts)} turns a used passage {what}: {absent} of all {used} used passages"
