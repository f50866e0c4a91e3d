"""What workers have in common, without which nothing tells whom to believe. Pure."""

import numpy as np
from numpy.typing import NDArray

from judge.crowd.labels import CrowdLabels, distinct
from judge.crowd.workers import FEWEST_COMPARED
from judge.errors import UsageError
from judge.io.text import count, printable

FEWEST_WORKERS = 3
"""Of two workers who disagree, nothing tells which one to believe."""
MOST_APART = 0.1
"""Share of the labels that may be of groups of fewer workers, apart from all others."""
_NAMED = 5


def check_connected(labels: CrowdLabels, aggregator: str) -> None:
    """A UsageError if too many labels are of groups of fewer than FEWEST_WORKERS who share no item with the others.

    A group is of workers who are connected through items that both of two labeled. Larger groups are each weighed by
    themselves, as where every topic has its own workers, and so is one group alone, however small it is.
    """
    if not len(labels.worker):
        return
    group = groups(labels)
    active = distinct(labels.worker)
    size = np.bincount(group[active], minlength=len(labels.workers))
    apart = active[size[group[active]] < FEWEST_WORKERS]
    share = float(np.isin(labels.worker, apart).mean())
    if len(distinct(group[active])) == 1 or share <= MOST_APART:
        return
    names = ", ".join(printable(labels.workers[worker]) for worker in apart[:_NAMED].tolist())
    more = f" and {len(apart) - _NAMED} more" if len(apart) > _NAMED else ""
    raise UsageError(
        f"{labels.criterion}: {share:.0%} of the labels are of {count(len(apart), 'worker')} ({names}{more}) in groups "
        f"of fewer than {FEWEST_WORKERS} that share no item with the others, so {aggregator} cannot know whom to "
        "believe: take --aggregator majority, or let more workers label the same items"
    )


def groups(labels: CrowdLabels) -> NDArray[np.int64]:
    """A number for each worker (W,), equal for workers who are connected through items that both labeled."""
    group = np.arange(len(labels.workers), dtype=np.int64)
    while True:
        of_item = np.full(len(labels.items), len(group), dtype=np.int64)
        np.minimum.at(of_item, labels.item, group[labels.worker])
        lower = group.copy()
        np.minimum.at(lower, labels.worker, of_item[labels.item])
        # A group takes the number that its first worker has by now, so that long chains need few rounds.
        lower = lower[lower]
        if (lower == group).all():
            return group
        group = lower


def thin_overlap(labels: CrowdLabels) -> tuple[str, ...]:
    """In words, what is too little to tell workers apart; empty if nothing is.

    In simulated crowds (`bench/simulations/crowds.py`) with less than this, models of workers were right hardly more
    often than a majority.
    """
    n = labels.counts.sum(axis=1)
    labeled = int((n > 0).sum())
    if not labeled:
        return ()
    active = distinct(labels.worker)
    signs: list[str] = []
    if len(active) < FEWEST_WORKERS:
        signs.append(f"of {count(len(active), 'worker')} nothing tells whom to believe")
    single = int((n == 1).sum())
    if 2 * single > labeled:
        signs.append(f"{single} of {labeled} items have one label")
    compared = np.bincount(labels.worker[n[labels.item] > 1], minlength=len(labels.workers))
    few = compared[labels.worker] < FEWEST_COMPARED
    if few.mean() > 0.5:
        median = int(np.median(compared[active]))
        signs.append(
            f"{few.mean():.0%} of the labels are of workers who share fewer than {FEWEST_COMPARED} items with others "
            f"(median {median})"
        )
    return tuple(signs)
