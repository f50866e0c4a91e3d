"""What has become of the tasks of one job so far; the results are on the disk."""

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.silence import Silence
from judge.ask.stored_results import ResultWriter, StoredResults
from judge.ask.tasks import Task
from judge.errors import Interrupted


class Tally:
    """The results of tasks, in any order, and how many there are.

    Args:
        total: How many tasks there are.
        folder: Where a file without a name lies that holds many results, as for `assess`.
    """

    def __init__(self, total: int = 0, folder: Path | None = None) -> None:
        self.total = total
        self.recalled = 0
        """Tasks that needed no call."""
        self.failures = 0
        self._results = ResultWriter(total, folder)

    def __len__(self) -> int:
        """How many tasks are settled."""
        return len(self._results)

    def recall(
        self, wanted: Sequence[Task], questions: Questions, silence: Silence, tell: Callable[[], None]
    ) -> "array[int]":
        """Settle the tasks that need no call, and give the numbers of the others.

        Args:
            wanted: All tasks.
            questions: Knows what the journal holds.
            silence: Hears of each answer that the journal gives.
            tell: Called after each task that is settled.
        """
        left = array("q")
        for number, settled in enumerate(questions.settled(wanted, silence.remembered)):
            if settled is None:
                left.append(number)
            else:
                self.recalled += 1
                self.settle(number, settled)
                tell()
        return left

    def settle(self, number: int, settled: Judgment | Failure) -> None:
        """Take the result of a task.

        Raises:
            OperationalError: The disk cannot be written.
        """
        self._results.put(number, settled)
        self.failures += isinstance(settled, Failure)

    def results(self) -> StoredResults:
        """The results in the order of the tasks, all of which must be settled."""
        return self._results.results()

    def interrupted(self, done: int) -> Interrupted:
        """The error of a job that the user stopped with so many tasks done."""
        return Interrupted(f"stopped with {done} of {self.total} judgments made; the same command goes on from here")
