"""`baseline/<name>`: judges that need no model and cost nothing; a judge that is paid for has to beat them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.errors import UsageError
from judge.models.model import Model, ModelOptions, Price
from judge.models.records import AnswerForm, Completion, Request
from judge.records import Criterion
from judge.text.words import containment

VERSION = 1
"""Raised whenever the same texts may get another grade."""


class Overlap:
    """The share of the response's content words that occur in its used passages.

    It is spread evenly over the scale: between two levels the probability is shared by distance. It cannot see a
    negation, a swapped number or a new claim made of old words.
    """

    name = "baseline/overlap"
    forms: tuple[AnswerForm, ...] = ("label",)
    max_concurrency: int | None = 1

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse all but graded groundedness.

        Raises:
            UsageError: A criterion is not groundedness or is asked sentence by sentence.
        """
        for criterion in criteria:
            if criterion.name != "groundedness" or criterion.answer != "grade":
                raise UsageError(
                    f"{self.name} compares words with the used passages and can grade groundedness only, "
                    f"not {criterion.prompt_id}"
                )

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Nothing to fetch."""

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The rule's version and the texts' labels."""
        return {"version": VERSION, "labels": list(request.labels)}

    def price(self) -> Price:
        """Nothing."""
        return Price(0.0, 0.0)

    async def complete(self, request: Request) -> Completion:
        """Grade by containment."""
        levels = sorted(request.scale.levels, key=lambda level: level.grade)
        if request.scale.polarity == "lower":
            levels.reverse()
        place = containment(request.response, request.passages) * (len(levels) - 1)
        below = min(math.floor(place), len(levels) - 2)
        share = place - below
        probabilities = dict.fromkeys((level.label for level in levels), 0.0)
        probabilities[levels[below].label] = round(1 - share, 6)
        probabilities[levels[below + 1].label] = round(share, 6)
        best = levels[below + 1] if share >= 0.5 else levels[below]
        return Completion(
            text=best.label,
            finish_reason="stop",
            model=f"overlap-{VERSION}",
            cost=0.0,
            probabilities=probabilities,
        )

    async def aclose(self) -> None:
        """Nothing to release."""


def open_model(model: str, options: ModelOptions) -> Model:
    """One of BASELINES.

    Raises:
        UsageError: Another name.
    """
    if model not in BASELINES:
        names = ", ".join(f"baseline/{name}" for name in BASELINES)
        raise UsageError(f"no baseline called {model!r}: expected {names}")
    return BASELINES[model]()


BASELINES: dict[str, Callable[[], Model]] = {
    "overlap": Overlap,
}
"""Name to class. Calibration sets every judge beside each of them that can grade the criterion."""
