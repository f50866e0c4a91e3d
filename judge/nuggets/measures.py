"""The measures of one response by its nuggets: recall, and the share of nuggets that it contradicts. Pure.

Recall under the names of nuggetizer: R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG
Track with the AutoNuggetizer Framework, arXiv:2411.09607.
"""

import math
from collections.abc import Mapping, Sequence

from judge.nuggets.records import MatchLabel, Nugget
from judge.records import Record

SUPPORT: Mapping[MatchLabel, float] = {"supports": 1.0, "partly": 0.5, "does_not": 0.0, "contradicts": 0.0}
"""What a nugget counts in a weighted recall."""


class NuggetMeasure(Record, frozen=True):
    """A row of MEASURES: which nuggets count, and what each label is worth."""

    about: str
    """The explanation in notes, without a period."""
    worth: Mapping[MatchLabel, float]
    vital: bool = False
    """Whether only vital nuggets count."""
    recall: bool = True
    """Whether runs are ranked by it, with a missing label as `does_not`."""

    def __call__(self, nuggets: Sequence[Nugget], labels: Mapping[str, MatchLabel]) -> float | None:
        """The mean worth over the nuggets; None if no nugget counts.

        Args:
            nuggets: The nuggets of the turn or topic.
            labels: Nugget id to label, for every one of them.
        """
        counted = [nugget for nugget in nuggets if nugget.importance == "vital" or not self.vital]
        return math.fsum(self.worth[labels[nugget.nugget_id]] for nugget in counted) / len(counted) if counted else None


_STRICT: Mapping[MatchLabel, float] = {**SUPPORT, "partly": 0.0}
_CONTRADICTED: Mapping[MatchLabel, float] = {"supports": 0.0, "partly": 0.0, "does_not": 0.0, "contradicts": 1.0}

MEASURES: dict[str, NuggetMeasure] = {
    "all_score": NuggetMeasure("recall of all nuggets, where one that is partly supported counts half", SUPPORT),
    "strict_all_score": NuggetMeasure("share of all nuggets that are supported in full", _STRICT),
    "vital_score": NuggetMeasure(
        "recall of the vital nuggets, where one that is partly supported counts half", SUPPORT, True
    ),
    "strict_vital_score": NuggetMeasure("share of the vital nuggets that are supported in full", _STRICT, True),
    "contradicted": NuggetMeasure("share of all nuggets that the response contradicts", _CONTRADICTED, recall=False),
}
"""Name to measure; a measure is a row."""
MAIN = "all_score"
RECALLS = tuple(name for name, measure in MEASURES.items() if measure.recall)
"""The measures that runs are ranked by."""
