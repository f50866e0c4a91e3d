"""The order in which judgments are asked for. Pure."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from judge.ask.tasks import Task
from judge.text.ids import NaturalKey, natural_key


class InTurn(NamedTuple):
    """A judgment whose turn has come."""

    number: int
    """The number of its task."""
    far: bool
    """Whether it has least to do with those before it."""


class TaskLine:
    """Tasks in line: neighbors after each other, those that may be the cause of their failures last.

    Neighbors share the start of their prompt, which prompt caches compute only once.

    Args:
        wanted: All tasks.
        numbers: The numbers of those that are asked.
        is_suspect: Whether a task may be the cause of its failures.
    """

    def __init__(self, wanted: Sequence[Task], numbers: Iterable[int], is_suspect: Callable[[Task], bool]) -> None:
        ordered = sorted(numbers, key=lambda number: _neighborhood(wanted[number]))
        suspects = {number for number in ordered if is_suspect(wanted[number])}
        self._line = deque(number for number in ordered if number not in suspects)
        self._last = deque(number for number in ordered if number in suspects)
        self._elsewhere: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._line) + len(self._last) + len(self._elsewhere)

    @property
    def only_elsewhere(self) -> bool:
        """Whether other processes ask all that is left."""
        return bool(self._elsewhere) and not (self._line or self._last)

    def leave(self, number: int) -> None:
        """Put a task behind all others, because another process is asking it."""
        self._elsewhere.append(number)

    def take(self, *, far: bool = False) -> InTurn:
        """The next task; where it is to be far, the one that has least to do with those before it.

        Raises:
            IndexError: The line is empty.
        """
        if not (self._line or self._last) and self._elsewhere:
            return InTurn(self._elsewhere.popleft(), False)
        if not self._line:
            return InTurn(self._last.popleft(), True)
        # The last one of the line has no neighbors left.
        return InTurn(self._line.pop() if far else self._line.popleft(), far or not self._line)


def _neighborhood(task: Task) -> tuple[str, NaturalKey, tuple[str, ...]]:
    return task.criterion.prompt_id, natural_key(task.response.turn_id), task.response.passages
