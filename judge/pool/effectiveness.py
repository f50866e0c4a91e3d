"""How good a run's passages are by assessors' grades: a mean over the judged turns, as trec_eval gives it with `-c`."""

from collections.abc import Mapping, Sequence
from math import isfinite
from subprocess import CalledProcessError
from typing import Any

from judge.errors import UsageError
from judge.runs.provenance import MAX_PASSAGES
from judge.text.safe import shown

DEFAULT_MEASURE = "nDCG@5"
"""What iKAT 2023 ordered its passage ranking runs by."""
_PROBE_GRADES = {"turn": {"passage": 1, "other": 0}}
_PROBE_RUN = {"turn": {"passage": 1.0}}
_ERRORS = (ValueError, NameError, AssertionError, LookupError, TypeError, RuntimeError, CalledProcessError, OSError)
"""What ir_measures and its providers raise for measures that they cannot parse or compute."""


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
        """The mean over every judged turn; one that the run has no passages for counts 0.

        Args:
            ranking: As of `provenance_run.ranking`: (passage id, score) by turn id.

        Raises:
            UsageError: The measure is not a finite number for this run.
        """
        run = {turn: dict(found) for turn, found in ranking.items() if found and turn in self._turns}
        value = float(self._evaluator.calc_aggregate(run)[self._parsed])
        if not isfinite(value):
            raise UsageError(f"measure {self.name} has no value for a run: choose another one")
        return value


def _check_cutoff(measure: str, cutoff: Any) -> None:
    """Refuse a cutoff that trec_eval would end the whole process for."""
    if isinstance(cutoff, int) and not (type(cutoff) is int and 1 <= cutoff <= MAX_PASSAGES):
        raise UsageError(f"measure {shown(measure)}: expected a cutoff from 1 to {MAX_PASSAGES}")
