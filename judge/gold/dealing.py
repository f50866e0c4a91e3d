"""Which items each assessor labels, and in which order. Pure."""

from collections.abc import Sequence

from judge.io.text import digest

DOUBLE = 0.2
"""Share of the items that every assessor labels, where there are several and nobody says otherwise."""


def shared_items(names: Sequence[str], share: float, seed: int) -> frozenset[int]:
    """Places of the items that every assessor labels: a simple random sample, rounded to whole items."""
    return frozenset(_shuffled(names, seed, "shared")[: int(share * len(names) + 0.5)])


def deal(names: Sequence[str], assessors: Sequence[str], share: float, seed: int) -> tuple[tuple[int, ...], ...]:
    """The places of each assessor's items, in the order in which that assessor labels them.

    Each item has its own random number, so an order does not depend on how Python shuffles.

    >>> deal(["a", "b", "c", "d"], ["ann", "bob"], 0.5, 1)
    ((0, 2, 1), (3, 1, 0))
    """
    shared = shared_items(names, share, seed)
    others = [place for place in _shuffled(names, seed, "others") if place not in shared]
    dealt = []
    for number, assessor in enumerate(assessors):
        own = shared.union(others[number :: len(assessors)])
        dealt.append(tuple(place for place in _shuffled(names, seed, f"order\n{assessor}") if place in own))
    return tuple(dealt)


def _shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    return sorted(range(len(names)), key=lambda place: digest(f"{seed}\n{purpose}\n{names[place]}"))
