"""`baseline/overlap`: a lexical control that needs no model, the floor that any judge has to beat.

The share of the response's content words that occur in its used passages. It cannot see a negation, a swapped
number or a new claim made of old words.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.errors import UsageError
from judge.models import ModelOptions, Price
from judge.records import AnswerForm, Completion, Criterion, Request

VERSION = 1
"""Raised whenever the same texts may get another grade."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just let may me might more most must my no nor not now of off on
    once only or other our ours out over own same shall she should so some such than that the their theirs them
    then there these they this those through to too under until up upon us very was we were what when where which
    while who whom why will with would you your yours
    """.split()
)


def content_words(text: str) -> list[str]:
    """The words of a text without stop words, case-folded, in order."""
    words = (word.casefold() for word in _WORD.findall(unicodedata.normalize("NFKC", text)))
    return [word for word in words if word not in _STOP_WORDS]


def containment(response: str, passages: Sequence[str]) -> float:
    """Share of the response's content-word tokens that occur in the passages; 0 for a response without any.

    >>> containment("The ferry leaves at noon.", ["A ferry leaves the pier at noon."])
    1.0
    >>> containment("The ferry leaves at dawn.", ["A ferry leaves the pier at noon."])
    0.6666666666666666
    """
    words = content_words(response)
    if not words:
        return 0.0
    known = {word for passage in passages for word in content_words(passage)}
    return sum(word in known for word in words) / len(words)


class Overlap:
    """Containment spread evenly over the scale: between two levels the probability is shared by distance."""

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


def open_model(model: str, options: ModelOptions) -> Overlap:
    """The only baseline there is.

    Raises:
        UsageError: Another name than `overlap`.
    """
    if model != "overlap":
        raise UsageError(f"no baseline called {model!r}: the one there is is baseline/overlap")
    return Overlap()
