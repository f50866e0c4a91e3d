"""The tasks that wait to be asked, with their first requests. Pure."""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from judge.ask.questions import Questions
from judge.ask.records import Task, in_order
from judge.judges.records import Request
from judge.records import AnswerKind

_IN_A_ROW = 32
"""Tasks whose requests are made ahead."""


class TaskQueue:
    """The numbers of the tasks that are to be asked, in order, which workers take one after the other."""

    def __init__(self, questions: Questions, wanted: Sequence[Task], numbers: Iterable[int]) -> None:
        self._questions = questions
        self._wanted = wanted
        self._together = questions.model.asks_together > 1
        self._waiting = deque(in_order(wanted, numbers, together=self._together))
        self._requests: dict[int, tuple[str, Request]] = {}
        """Digests and first requests that are made already, by the numbers of their tasks."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, number: int) -> bool:
        return number in self._waiting

    def index(self, number: int) -> int:
        """The place of a task."""
        return self._waiting.index(number)

    def of_kind(self, answer: AnswerKind) -> Iterator[int]:
        """The numbers of the tasks of a kind that still wait, each when it is asked for."""
        while True:
            numbers = (number for number in self._waiting if self._wanted[number].criterion.answer == answer)
            number = next(numbers, None)
            if number is None:
                return
            yield number

    def take(self, place: int) -> list[int]:
        """The task at a place, which waits no more; all about its response if the judge is asked several in a call."""
        waiting = self._waiting
        if not self._together:
            number = waiting[place]
            del waiting[place]
            return [number]
        response_id = self._wanted[waiting[place]].response.response_id
        first = place
        while first and self._wanted[waiting[first - 1]].response.response_id == response_id:
            first -= 1
        end = place + 1
        while end < len(waiting) and self._wanted[waiting[end]].response.response_id == response_id:
            end += 1
        taken = [waiting[index] for index in range(first, end)]
        for _ in taken:
            del waiting[first]
        return taken

    def first(self, number: int) -> tuple[str, Request]:
        """Digest and first request of a task; made for many tasks in a row, which takes half the CPU."""
        if number not in self._requests:
            for ahead in (number, *itertools.islice(self._waiting, _IN_A_ROW)):
                if ahead not in self._requests:
                    self._requests[ahead] = self._questions.first(self._wanted[ahead])
        return self._requests.pop(number)

    def forget(self) -> None:
        """Make the requests anew, since the endpoint may be asked otherwise now."""
        self._requests.clear()
