"""`baseline/<name>`: judges that need no model and cost nothing; a paid judge has to beat them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.errors import UsageError
from judge.io.text import did_you_mean
from judge.io.words import containment
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion
from judge.units import UNITS

VERSION = 1
"""Goes up whenever the same texts may get another grade."""


class Overlap(Model):
    """The share of the response's content words that occur in its used passages.

    Of a nugget, the share of its words in the response; of a passage, the share of the question's words in it.

    The share is spread evenly over the scale: two neighboring levels divide the probability by distance. This judge
    cannot see a negation, a swapped number or a new claim made of old words.
    """

    name = "baseline/overlap"
    forms: tuple[AnswerForm, ...] = ("label",)
    max_concurrency = 1
    free = True
    immediate = True

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse all but graded groundedness, support, nuggets and passages."""
        for criterion in criteria:
            unit = UNITS[criterion.unit]
            graded = criterion.answer == "grade" and not unit.by_topic
            compared = criterion.name in ("groundedness", "support", "nugget") or unit.listed
            if not compared or not graded:
                raise UsageError(
                    f"{self.name} compares words with the used passages and can grade groundedness and support only "
                    f"(--criteria groundedness), not {criterion.prompt_id}"
                    + (": checker/overlap labels sentences" if criterion.answer == "sentences" else "")
                    + (f", which is about {unit.nouns.responses}" if unit.by_topic else "")
                )

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The version of the rule and the labels."""
        return {"version": VERSION, "labels": list(request.labels)}

    async def complete(self, request: Request) -> Completion:
        """Grade by the share of content words that the passages contain, or the response if there is a nugget."""
        levels = sorted(request.scale.levels, key=lambda level: level.grade)
        claim = request.response
        evidence = request.passages
        if request.nugget is not None:
            claim = request.nugget
            evidence = (request.response,)
            # Words tell no contradiction.
            levels = [level for level in levels if level.grade >= 0]
        if request.scale.polarity == "lower":
            levels.reverse()
        position = containment(claim, evidence) * (len(levels) - 1)
        below = min(math.floor(position), len(levels) - 2)
        share = position - below
        probabilities = dict.fromkeys((level.label for level in levels), 0.0)
        probabilities[levels[below].label] = round(1 - share, 6)
        probabilities[levels[below + 1].label] = round(share, 6)
        best = levels[below + 1] if share >= 0.5 else levels[below]
        return Completion(
            text=best.label, finish_reason="stop", model=f"overlap-{VERSION}", cost=0.0, probabilities=probabilities
        )


def open_model(model: str, options: ModelOptions) -> Model:
    """The baseline of this name, one of `BASELINES`."""
    if model not in BASELINES:
        names = ", ".join(f"baseline/{name}" for name in BASELINES)
        raise UsageError(f"no baseline called {model!r}{did_you_mean(model, BASELINES)} (expected {names})")
    return BASELINES[model]()


BASELINES: dict[str, Callable[[], Model]] = {
    "overlap": Overlap,
}
"""Name to class. Calibration compares every judge with word overlap, where it can grade the criterion."""
