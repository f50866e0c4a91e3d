"""Which items each assessor labels, and in which order. Pure."""

from collections.abc import Collection, Sequence

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


def differ(grades: Sequence[int | None], levels: Sequence[int], by: int) -> bool:
    """Whether the labels of an item differ: by so many levels of the scale, or in that only some found a grade.

    `grades`: None for an assessor who was unable to judge. `levels`: the grades of the scale, ascending.

    >>> differ([1, 3], [0, 1, 3], 1), differ([1, 3], [0, 1, 3], 2), differ([3, None], [0, 1, 3], 2)
    (True, False, True)
    >>> differ([None, None], [0, 1], 1), differ([1], [0, 1], 1)
    (False, False)
    """
    places = [levels.index(grade) for grade in grades if grade is not None]
    if not places:
        return False
    return len(places) < len(grades) or max(places) - min(places) >= by


def deal_apart(
    names: Sequence[str], excluded: Sequence[Collection[str]], people: Sequence[str], seed: int
) -> tuple[tuple[int, ...], ...]:
    """The places of each person's items, each to one who may have it and has the fewest; one that nobody may, to none.

    `excluded`: for each item, who may not have it.

    >>> deal_apart(["a", "b", "c", "d"], [(), ["dee"], [], ["dee", "eve"]], ["dee", "eve"], 1)
    ((0, 2), (1,))
    """
    dealt: dict[str, list[int]] = {person: [] for person in people}
    for place in _shuffled(names, seed, "apart"):
        able = [person for person in people if person not in excluded[place]]
        if able:
            dealt[min(able, key=lambda person: len(dealt[person]))].append(place)
    return tuple(map(tuple, dealt.values()))


def _shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    return sorted(range(len(names)), key=lambda place: digest(f"{seed}\n{purpose}\n{names[place]}"))
