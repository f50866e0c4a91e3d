"""Rerankers: cross-encoders with one output that says how well a passage answers a question, read as a grade.

Trained to order passages, a reranker says which of two is better and not how good either is. So its grades are as good
as the cut points between them, which are learned from people's grades.
"""

import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from judge.errors import RejectedError, UsageError
from judge.extra.checkers.checkers import THRESHOLD, Checker, PairScore, TextPair
from judge.extra.checkers.onnx import OnnxChecker
from judge.extra.checkers.served import ServerChecker
from judge.io.text import count
from judge.judges.http_errors import shorten
from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion, Level
from judge.units import UNITS

VERSION = 1
"""Goes up whenever the same scores may give another grade."""


class Reranker(Checker):
    """Grades passages by the score of (question, passage), from 0 to 1, and cut points between the levels.

    The setting `cuts` has them, as in `#cuts=0.2:0.5:0.8`; by default they are evenly apart. Between two cut points the
    levels beside a score divide the probability by distance, so that the expected grade grows with the score.
    """

    forms: tuple[AnswerForm, ...] = ("label",)
    takes: tuple[str, ...] = ("cuts",)

    def check_criterion(self, criterion: Criterion) -> None:
        """Refuse all but one grade of a passage, and other cut points than its levels have."""
        if not UNITS[criterion.unit].listed or criterion.answer != "grade":
            raise UsageError(
                f"{self.name} grades passages by how well they answer the question, and cannot be asked "
                f"{criterion.prompt_id}"
            )
        if self.threshold != THRESHOLD:
            raise UsageError(
                f"{self.name}: a threshold is of sentences; the cut points between grades are given as in "
                "#cuts=0.2:0.5:0.8"
            )
        needed = len(criterion.scale.levels) - 1
        if (given := len(self.cuts(needed))) != needed:
            raise UsageError(
                f"{self.name}: {count(given, 'cut point')}, and {criterion.prompt_id} has {needed + 1} levels: "
                f"expected {needed}"
            )

    def cuts(self, number: int) -> tuple[float, ...]:
        """The cut points, ascending: those of the setting, else so many."""
        written = self._settings.get("cuts")
        if written is None:
            return tuple(place / (number + 1) for place in range(1, number + 1))
        try:
            cuts = tuple(map(float, written.split(":")))
        except ValueError:
            cuts = ()
        ends = (0.0, *cuts, 1.0)
        if not cuts or any(not low < high for low, high in itertools.pairwise(ends)):
            raise UsageError(f"cuts={written}: expected rising numbers between 0 and 1, as in #cuts=0.2:0.5:0.8")
        return cuts

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The version of the rule, the cut points, the labels, and what decides the score."""
        cuts = list(self.cuts(len(request.scale.levels) - 1))
        return {"reranker": VERSION, "cuts": cuts, "labels": list(request.labels), **self.rule()}

    def pairs(self, request: Request) -> list[TextPair]:
        """The question beside the passage."""
        return [(request.response, passage) for passage in request.passages[:1]]

    async def complete(self, request: Request) -> Completion:
        """The label of the passage's grade, with the probabilities that its score stands for."""
        completion, scores = await self.answer(request, self.pairs(request))
        score = scores[0].supports
        levels = sorted(request.scale.levels, key=lambda level: level.grade)
        if request.scale.polarity == "lower":
            levels.reverse()
        cuts = self.cuts(len(levels) - 1)
        label = levels[min(bisect_right(cuts, score), len(levels) - 1)].label
        return msgspec.structs.replace(
            completion,
            text=label,
            probabilities=_probabilities(score, cuts, levels),
            raw=msgspec.json.encode({"relevance": score}).decode(),
        )


def _probabilities(score: float, cuts: Sequence[float], levels: Sequence[Level]) -> dict[str, float]:
    """The probability of each level, of which a score on a cut point gives the two beside it one half each."""
    import numpy as np

    halves = [place - 0.5 for place in range(1, len(cuts) + 1)]
    position = float(np.interp(score, (0.0, *cuts, 1.0), (0.0, *halves, float(len(cuts)))))
    below = min(math.floor(position), len(levels) - 2)
    share = position - below
    probabilities = dict.fromkeys((level.label for level in levels), 0.0)
    probabilities[levels[below].label] = round(1 - share, 6)
    probabilities[levels[below + 1].label] = round(share, 6)
    return probabilities


class ServerReranker(Reranker, ServerChecker):
    """A reranker behind vLLM's `…/score`, with the question as the first text and the passage as the second."""

    kind = "reranker"
    address_needed = " with its path, such as http://localhost:8000/score"
    served: Mapping[str, tuple[str, ...]] = MappingProxyType({"/score": ("cuts",)})


class OnnxReranker(Reranker, OnnxChecker):
    """A reranker from a file, with the question as the first text; a longer passage is read in windows."""

    kind = "reranker-onnx"
    long = "only_second"

    def read_classes(self, labels: Sequence[str], probabilities: Sequence[float]) -> PairScore:
        """The probability of the only class."""
        if len(probabilities) != 1:
            raise RejectedError(
                f"it has {len(probabilities)} classes ({shorten(', '.join(labels))}), and a reranker has one output: a "
                "model of entailment does not say whether a passage answers a question"
            )
        return PairScore(probabilities[0])
