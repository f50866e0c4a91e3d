"""A run's score by one set of grades: the mean grade of its responses, or a measure of its passages. Pure."""

from collections.abc import Mapping, Sequence

from judge.extra.evaluate.sets.grades import Grades, GradeSet
from judge.records import Record
from judge.runs.measures import Measures, measure_name

MEAN = "mean"
"""The measure of responses: the mean grade of what a run ranks first in each turn."""
_MONOTONE = frozenset({"P", "R", "RR", "Success"})
"""Measures of ir_measures that a higher grade of an item that the run ranks can never lower."""


class OrderedRun(Record, frozen=True):
    """What a run ranks in each turn."""

    run_id: str
    turns: dict[str, tuple[str, ...]]
    """Turn id to item ids, best first, each once; both are columns of qrels."""


class MeanOfFirst:
    """The grade of the response that a run ranks first.

    A turn without a response has the worst grade. A turn whose response is not graded has no value, because no grade is
    not a bad grade.
    """

    def __init__(self, grades: Grades, worst: int) -> None:
        self._grades, self._worst = grades, worst

    def by_turn(self, turns: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """The value of each turn that has one."""
        values: dict[str, float] = {}
        for turn_id, grades in self._grades.items():
            items = turns.get(turn_id)
            grade = grades.get(items[0]) if items else self._worst
            if grade is not None:
                values[turn_id] = float(grade)
        return values


class OfRanking:
    """A measure of ir_measures over passages; one without a grade counts as not relevant, as in trec_eval.

    A turn without passages has 0 (`trec_eval -c`).
    """

    def __init__(self, measure: str, grades: Grades) -> None:
        self._measures, self._turns = Measures([measure], grades), tuple(grades)

    def by_turn(self, turns: Mapping[str, Sequence[str]]) -> dict[str, float]:
        """The value of each turn that has one."""
        ranking = {
            turn_id: [(item_id, float(len(items) - place)) for place, item_id in enumerate(items)]
            for turn_id, items in turns.items()
        }
        (values,) = self._measures.values(ranking).values()
        return dict.fromkeys(self._turns, 0.0) | values


class MeasureFacts(Record, frozen=True):
    """What is known of a measure before a run is scored."""

    name: str
    cutoff: int | None
    """How many items of a turn count; None for all of them."""
    strict: bool
    """Whether no other grades of the holes can take a score beyond its range (`judge.extra.evaluate.sets.holes`)."""


def measure_facts(measure: str) -> MeasureFacts:
    """The facts about a measure.

    Raises:
        UsageError: ir_measures does not compute it.
    """
    if measure == MEAN:
        return MeasureFacts(MEAN, 1, True)
    import ir_measures

    name = measure_name(measure)
    parsed = ir_measures.parse_measure(name)
    cutoff = parsed.params.get("cutoff")
    strict = parsed.NAME in _MONOTONE and not parsed.params.get("judged_only")
    return MeasureFacts(name, cutoff if isinstance(cutoff, int) else None, strict)


def measure_of(measure: str, given: GradeSet, grades: Grades) -> MeanOfFirst | OfRanking:
    """A measure over some grades of a set."""
    return MeanOfFirst(grades, given.worst) if measure == MEAN else OfRanking(measure, grades)
