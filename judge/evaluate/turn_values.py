"""The value of each turn under a measure, in eight bytes: many runs and measures are over the same turns. Pure."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from math import isnan, nan

from judge.text.ids import natural_key, topic_of

NO_VALUE = nan
"""What stands for a turn without a value."""


class TurnOrder:
    """Turns in natural order, with their topics; everything that has a value for each of them shares it.

    Args:
        turn_ids: The turns; one that is repeated counts once.
    """

    def __init__(self, turn_ids: Iterable[str]) -> None:
        self.turn_ids = tuple(sorted(set(turn_ids), key=natural_key))
        self.topics = tuple(map(topic_of, self.turn_ids))
        self.places = {turn_id: place for place, turn_id in enumerate(self.turn_ids)}


class TurnValues(Mapping[str, float]):
    """Turn to its value, in the order of the turns; some of them may have none.

    Args:
        order: The turns.
        values: The value of each turn, NO_VALUE for one without.
    """

    def __init__(self, order: TurnOrder, values: Iterable[float]) -> None:
        self._order = order
        self._values = array("d", values)
        self._number = len(self._values) - sum(map(isnan, self._values))

    def __getitem__(self, turn_id: str) -> float:
        value = self._values[self._order.places[turn_id]]
        if isnan(value):
            raise KeyError(turn_id)
        return value

    def __iter__(self) -> Iterator[str]:
        return (turn_id for turn_id, value in zip(self._order.turn_ids, self._values, strict=True) if not isnan(value))

    def __len__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        return repr(dict(self))

    def topics(self) -> list[str]:
        """The topics of the turns that have a value."""
        return [topic for topic, value in zip(self._order.topics, self._values, strict=True) if not isnan(value)]
