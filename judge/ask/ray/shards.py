"""Shards: the open judgments of one or several whole turns. Pure.

The first shards are large and the last ones small, so that few workers stand idle at the end (guided self-scheduling:
Polychronopoulos and Kuck 1987, IEEE Transactions on Computers 36(12), 1425-1439).
"""

from collections import deque
from collections.abc import Iterable, Sequence

from judge.ask.tasks import Task
from judge.text.ids import natural_key

_PARTS = 4
"""A shard is at most this part of what would keep every worker busy to the end."""


class ShardLine:
    """The tasks that no worker has, turn by turn.

    Args:
        wanted: All tasks.
        numbers: The numbers of those that are to be asked.
        workers: Workers at once.
        least: Tasks that a shard has at least, as far as there are so many.
    """

    def __init__(self, wanted: Sequence[Task], numbers: Iterable[int], workers: int, least: int) -> None:
        turns: dict[str, list[int]] = {}
        for number in numbers:
            turns.setdefault(wanted[number].response.turn_id, []).append(number)
        self._turns = deque(tuple(turns[turn_id]) for turn_id in sorted(turns, key=natural_key))
        self._left = sum(map(len, self._turns))
        self._workers = workers
        self._least = least

    def __len__(self) -> int:
        """How many tasks are left."""
        return self._left

    @property
    def turns(self) -> int:
        """How many turns are left."""
        return len(self._turns)

    def take(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the next shard's tasks, by turn; empty where none is left."""
        enough = max(self._least, self._left // (_PARTS * self._workers))
        shard: list[tuple[int, ...]] = []
        while self._turns and sum(map(len, shard)) < enough:
            shard.append(self._turns.popleft())
        self._left -= sum(map(len, shard))
        return tuple(shard)

    def put_back(self, shard: Sequence[tuple[int, ...]]) -> None:
        """Take back a shard whose worker was lost; it is the next one."""
        self._turns.extendleft(reversed(shard))
        self._left += sum(map(len, shard))


def part_of(whole: int, number: int, parts: int) -> int:
    """One of several parts of a whole that differ by one at most.

    >>> [part_of(16, number, 3) for number in range(3)]
    [6, 5, 5]
    """
    return whole // parts + (number < whole % parts)
