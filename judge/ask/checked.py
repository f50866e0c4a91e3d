"""What the checker of a cascade said of tasks, and which of it stands; the judgments stay on the disk."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping

from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import StoredResults

NOT_ASKED = -1
"""In place of an answer's number, where there is none."""


class CheckerAnswers(Mapping[int, Judgment | Failure]):
    """What the checker said, by the places of tasks; several tasks may share an answer.

    Args:
        answers: The answers, each once.
        numbers: For each task the number of its answer among these; negative where the checker is not asked.
    """

    def __init__(self, answers: StoredResults, numbers: Iterable[int]) -> None:
        self._answers = answers
        self._numbers = array("q", numbers)
        self._asked = sum(number >= 0 for number in self._numbers)

    def __len__(self) -> int:
        return self._asked

    def __iter__(self) -> Iterator[int]:
        return (place for place, number in enumerate(self._numbers) if number >= 0)

    def __contains__(self, place: object) -> bool:
        return isinstance(place, int) and 0 <= place < len(self._numbers) and self._numbers[place] >= 0

    def __getitem__(self, place: int) -> Judgment | Failure:
        if place not in self:
            raise KeyError(place)
        return self._answers[self._numbers[place]]


class SettledJudgments(Mapping[int, Judgment]):
    """The checker's judgments that stand, by the places of their tasks.

    Args:
        said: What the checker said.
        stands: Whether a result of the checker stands.
        of_cascade: From place and judgment to the same as a judgment of the cascade.
    """

    def __init__(
        self,
        said: Mapping[int, Judgment | Failure],
        stands: Callable[[Judgment | Failure], bool],
        of_cascade: Callable[[int, Judgment], Judgment],
    ) -> None:
        self._said = said
        self._of_cascade = of_cascade
        self._places = array("q", (place for place, result in said.items() if stands(result)))
        self._flags = bytearray(max(self._places, default=-1) + 1)
        for place in self._places:
            self._flags[place] = True

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __contains__(self, place: object) -> bool:
        return isinstance(place, int) and 0 <= place < len(self._flags) and bool(self._flags[place])

    def __getitem__(self, place: int) -> Judgment:
        result = self._said[place] if place in self else None
        if not isinstance(result, Judgment):
            raise KeyError(place)
        return self._of_cascade(place, result)
