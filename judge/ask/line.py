"""The order in which judgments are asked for. Pure."""

from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.ask.tasks import Task
from judge.text.ids import natural_key


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
        ordered = _by_neighborhood(wanted, numbers)
        suspects = [place for place, number in enumerate(ordered.tolist()) if is_suspect(wanted[number])]
        self._last = deque(ordered[suspects].tolist())
        self._line = np.delete(ordered, suspects)
        self._from, self._to = 0, len(self._line)
        self._elsewhere: deque[int] = deque()

    def __len__(self) -> int:
        return self._to - self._from + len(self._last) + len(self._elsewhere)

    @property
    def only_elsewhere(self) -> bool:
        """Whether other processes ask all that is left."""
        return bool(self._elsewhere) and not (self._from < self._to or self._last)

    def leave(self, number: int) -> None:
        """Put a task behind all others, because another process is asking it."""
        self._elsewhere.append(number)

    def take(self, *, far: bool = False) -> InTurn:
        """The next task; where it is to be far, the one that has least to do with those before it.

        Raises:
            IndexError: The line is empty.
        """
        if self.only_elsewhere:
            return InTurn(self._elsewhere.popleft(), False)
        if self._from == self._to:
            return InTurn(self._last.popleft(), True)
        # The last one of the line has no neighbors left.
        self._from, self._to = (self._from, self._to - 1) if far else (self._from + 1, self._to)
        number = int(self._line[self._to if far else self._from - 1])
        return InTurn(number, far or self._from == self._to)


def _by_neighborhood(wanted: Sequence[Task], numbers: Iterable[int]) -> NDArray[np.int64]:
    """The numbers by prompt, turn and passages of their tasks, neighbors in the order given.

    The sorting is done on numbers, because millions of keys would fill the memory.
    """
    prompts: dict[str, int] = {}
    evidence: dict[tuple[str, tuple[str, ...]], int] = {}
    kept, prompt, place = array("q"), array("q"), array("q")
    for number in numbers:
        task = wanted[number]
        shown = task.response.turn_id, task.response.passages
        kept.append(number)
        prompt.append(prompts.setdefault(task.criterion.prompt_id, len(prompts)))
        place.append(evidence.setdefault(shown, len(evidence)))
    turns = {turn_id: at for at, turn_id in enumerate(sorted({turn_id for turn_id, _ in evidence}, key=natural_key))}
    by_evidence = sorted(evidence, key=lambda shown: (turns[shown[0]], shown[1]))
    order = np.lexsort(
        (_ranks(by_evidence, evidence)[np.asarray(place)], _ranks(sorted(prompts), prompts)[np.asarray(prompt)])
    )
    return np.asarray(kept, dtype=np.int64)[order]


def _ranks(ordered: Sequence[Hashable], numbered: Mapping[Any, int]) -> NDArray[np.int64]:
    """The rank of each number."""
    ranks = np.empty(len(ordered), dtype=np.int64)
    ranks[[numbered[each] for each in ordered]] = np.arange(len(ordered))
    return ranks
