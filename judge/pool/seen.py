"""Which responses were seen: a byte for each of the pool, and a name for every other. Pure."""

from collections.abc import Mapping

from judge.pool.records import Pool


def pool_places(pool: Pool) -> dict[str, int]:
    """Response id to its place in the pool."""
    return {response.response_id: place for place, response in enumerate(pool.responses)}


class SeenResponses:
    """A set of response ids that takes a hundredth of the memory where they are those of a pool.

    Args:
        places: From `pool_places`.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._pooled = bytearray(len(places))
        self._others: set[str] = set()
        self._number = 0

    def __len__(self) -> int:
        """How many responses were seen."""
        return self._number

    def add(self, response_id: str) -> bool:
        """Note a response, and say whether it is new."""
        place = self._places.get(response_id)
        if place is None:
            if response_id in self._others:
                return False
            self._others.add(response_id)
        elif self._pooled[place]:
            return False
        else:
            self._pooled[place] = 1
        self._number += 1
        return True
