"""Measures of rankings by assessors' grades, computed by ir_measures, with a guard against bad names."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from subprocess import CalledProcessError
from typing import Any

from judge.errors import UsageError
from judge.io.ids import column
from judge.io.text import shown
from judge.runs.formats.trec import MAX_PASSAGES

Ranking = Mapping[str, Sequence[tuple[str, float]]]
"""Turn id to (item id, score) pairs, best first, with scores that fall strictly."""

_PROBE_GRADES = {"turn": {"passage": 1, "other": 0}}
_PROBE_RUN = {"turn": {"passage": 1.0}}
_ERRORS = (ValueError, NameError, AssertionError, LookupError, TypeError, RuntimeError, CalledProcessError, OSError)
"""Exceptions of ir_measures and its providers for a measure that they cannot parse or compute."""
_SHARES = frozenset(
    "nDCG P R AP RR Rprec Bpref infAP SetP SetR SetF SetAP Success IPrec Judged Accuracy ERR RBP Compat".split()
)
"""Measures between 0 and 1."""


class Measures:
    """Measures of ir_measures over one set of grades."""

    def __init__(self, names: Sequence[str], grades: Mapping[str, Mapping[str, int]]) -> None:
        """Prepare measures as ir_measures writes them (`AP(rel=2)`), each once; grades by turn id and item id."""
        import ir_measures

        parsed = dict.fromkeys(map(_parsed, names))
        # As columns: for trec_eval an id ends at its first NUL, and two equal ids of a turn end the process.
        self._evaluator = ir_measures.evaluator(
            list(parsed),
            {
                column(turn): {column(item): grade for item, grade in _countable(rows).items()}
                for turn, rows in grades.items()
            },
        )
        self._turns = {column(turn): turn for turn in grades}
        self._shares = frozenset(str(measure) for measure in parsed if measure.NAME in _SHARES)
        self.names = tuple(map(str, parsed))
        """The measures as ir_measures writes them."""

    def bounds(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest value of a measure; None where they are not known."""
        return (0.0, 1.0) if name in self._shares else None

    def values(self, ranking: Ranking) -> dict[str, dict[str, float]]:
        """Measure to turn to value, for the turns that have both grades and a ranking that is not empty."""
        wanted = ((turn, ranking.get(original)) for turn, original in self._turns.items())
        run = {turn: {column(item): score for item, score in items} for turn, items in wanted if items}
        values: dict[str, dict[str, float]] = {name: {} for name in self.names}
        for metric in self._evaluator.iter_calc(run):
            # The evaluator also gives a value to the turns of the grades that the run lacks.
            if metric.query_id in run:
                if not isfinite(metric.value):
                    raise UsageError(f"measure {metric.measure} has no value for a run: choose another one")
                values[str(metric.measure)][self._turns[metric.query_id]] = float(metric.value)
        return values


def _countable(grades: Mapping[str, int]) -> Mapping[str, int]:
    """The grades of a turn; 0 for each where all are below 0, which says the same: judged, and nothing relevant.

    trec_eval allots as many counters as the highest grade says, and with fewer than one it hangs or ends the process.
    """
    return grades if not grades or max(grades.values()) >= 0 else dict.fromkeys(grades, 0)


def measure_name(measure: str, relevant: int = 1) -> str:
    """A measure as ir_measures writes it.

    Args:
        measure: As ir_measures writes it, or an alias: `MAP`.
        relevant: The lowest relevant grade, for measures that know one and do not name it (trec_eval's `-l`).

    Raises:
        UsageError: The measure is unknown or cannot be computed.
    """
    return str(_parsed(measure, relevant))


def _parsed(name: str, relevant: int = 1) -> Any:
    """A measure that can be computed."""
    import ir_measures

    try:
        parsed = ir_measures.parse_measure(name)
        if relevant != 1 and "rel" in parsed.SUPPORTED_PARAMS and "rel" not in parsed.params:
            parsed = parsed(rel=relevant)
        _check_cutoff(name, parsed.params.get("cutoff"))
        ir_measures.evaluator([parsed], _PROBE_GRADES).calc_aggregate(_PROBE_RUN)
    except (*_ERRORS, MemoryError) as error:
        raise UsageError(
            f"measure {shown(name)} cannot be computed: expected "
            f"{_in_trec_eval(name) or 'one that ir_measures computes, as nDCG@5, nDCG@3, P@20, R@1000, AP or RR'}"
        ) from error
    return parsed


def _in_trec_eval(name: str) -> str | None:
    """What ir_measures calls a measure that is named as in trec_eval; None for any other name."""
    import ir_measures

    # Not the names of groups of measures (`official`): of what it cannot compute there, ir_measures prints a line.
    if not _TREC_EVAL.fullmatch(name):
        return None
    (measure,) = ir_measures.parse_trec_measure(name)
    return f"{measure}, as ir_measures calls it"


_TREC_EVAL = re.compile(
    "map|ndcg|recip_rank|bpref|Rprec|set_P|set_recall|set_F|set_map|(P|recall|ndcg_cut|map_cut|success)[_.][1-9][0-9]{0,3}"
)


def _check_cutoff(measure: str, cutoff: Any) -> None:
    """Refuse a cutoff with which trec_eval would end the whole process."""
    if isinstance(cutoff, int) and not (type(cutoff) is int and 1 <= cutoff <= MAX_PASSAGES):
        raise UsageError(f"measure {shown(measure)}: expected a cutoff from 1 to {MAX_PASSAGES}")
