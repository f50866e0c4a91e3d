"""A measure of a run's passages by assessors' grades: the mean over the judged turns, as `trec_eval -c`."""

from collections.abc import Mapping, Sequence
from math import isfinite
from subprocess import CalledProcessError
from typing import Any

from judge.errors import UsageError
from judge.runs.provenance import MAX_PASSAGES
from judge.text.safe import shown

DEFAULT_MEASURE = "nDCG@5"
"""The measure by which iKAT 2023 ordered its passage ranking runs."""
_PROBE_GRADES = {"turn": {"passage": 1, "other": 0}}
_PROBE_RUN = {"turn": {"passage": 1.0}}
_ERRORS = (ValueError, NameError, AssertionError, LookupError, TypeError, RuntimeError, CalledProcessError, OSError)
"""Exceptions of ir_measures and its providers for a measure that they cannot parse or compute."""


class Effectiveness:
    """One measure of ir_measures over one set of passage grades."""

    def __init__(self, measure: str, grades: Mapping[str, Mapping[str, int]]) -> None:
        """Prepare the measure.

        Args:
            measure: As ir_measures writes it: `nDCG@5`, `AP(rel=2)`.
            grades: Grades of passages by turn id and passage id.

        Raises:
            UsageError: The measure is unknown or cannot be computed.
        """
        import ir_measures

        try:
            parsed = ir_measures.parse_measure(measure)
            _check_cutoff(measure, parsed.params.get("cutoff"))
            ir_measures.evaluator([parsed], _PROBE_GRADES).calc_aggregate(_PROBE_RUN)
            self._evaluator = ir_measures.evaluator([parsed], {turn: dict(rows) for turn, rows in grades.items()})
        except (*_ERRORS, MemoryError) as error:
            raise UsageError(
                f"measure {shown(measure)} cannot be computed: expected one that ir_measures computes, as nDCG@5, "
                "nDCG@3, P@20, R@1000, AP or RR"
            ) from error
        self._parsed = parsed
        self._turns = frozenset(grades)
        self.name = str(parsed)

    def of(self, ranking: Mapping[str, Sequence[tuple[str, float]]]) -> float:
        """The mean over every judged turn; a turn without passages counts 0.

        Args:
            ranking: (passage id, score) pairs by turn id, from `judge.runs.ranking`.

        Raises:
            UsageError: The measure is not a finite number for this run.
        """
        run = {turn: dict(scores) for turn, scores in ranking.items() if scores and turn in self._turns}
        value = float(self._evaluator.calc_aggregate(run)[self._parsed])
        if not isfinite(value):
            raise UsageError(f"measure {self.name} has no value for a run: choose another one")
        return value


def _check_cutoff(measure: str, cutoff: Any) -> None:
    """Refuse a cutoff with which trec_eval would end the whole process."""
    if isinstance(cutoff, int) and not (type(cutoff) is int and 1 <= cutoff <= MAX_PASSAGES):
        raise UsageError(f"measure {shown(measure)}: expected a cutoff from 1 to {MAX_PASSAGES}")
