"""Runs under the measures of rankings that the tracks publish, by one set of grades. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from judge.extra.evaluate.breakdown import (
    Reading,
    best_first,
)
from judge.extra.evaluate.intake import RankedRun
from judge.extra.evaluate.paired import PairedRuns, comparison
from judge.extra.evaluate.scores import MeasuredRun, measured_run
from judge.io.cells import count
from judge.io.ids import Cluster, natural_key
from judge.records import Problem, Record
from judge.runs.measures import Measures, measure_name
from judge.runs.profiles import possible_years

PASSAGE_MEASURES = (
    *("nDCG@3", "nDCG@5", "nDCG", "P@10", "P@20", "R@10", "R@20", "R@1000", "AP", "RR", "Judged@5", "Judged@20"),
)
"""Of section 3 and tables 3 and 4 of the overview of iKAT 2023; 1,000 passages of a turn are looked at."""
MAIN_OF_PASSAGES = "nDCG@5"
STATEMENT_MEASURES = ("nDCG@3", "P@3", "R@3", "R@5", "RR", "SetP", "SetR", "SetF", "AP")
"""Of section 3 and tables 5 and 6 of the overview of iKAT 2023; then those of statements as a set (iKAT 2024)."""
MAIN_OF_STATEMENTS = "nDCG@3"
Convention = Literal["qrels", "answered"]
"""What a mean of a measure of rankings may be over."""
_SEED = 0
_EXAMPLES = 3


class Assessment(Record, frozen=True):
    """Grades by one group of assessors."""

    name: str
    """The file that holds them."""
    grades: Mapping[str, Mapping[str, int]]
    """By turn id and item id."""


class Asked(Record, frozen=True):
    """Which measures are computed, and how."""

    measures: tuple[str, ...]
    """As ir_measures names them."""
    main: str
    """The measure that runs are ordered, compared and taken apart by."""
    relevant: int = 1
    """The lowest relevant grade (trec_eval's `-l`)."""
    over: Convention = "qrels"
    cluster: Cluster = "topic"
    item: str = "passage"
    """What is ranked, in the singular."""

    @property
    def items(self) -> str:
        """What is ranked, at the beginning of a title."""
        return f"{self.item.capitalize()}s"


def ask(
    measures: Sequence[str],
    main: str,
    *,
    relevant: int = 1,
    over: Convention = "qrels",
    cluster: Cluster = "topic",
    item: str = "passage",
) -> Asked:
    """Which measures are computed, each once, in the spelling of ir_measures.

    Args:
        measures: Those of the track, and those that the user adds.
        main: The measure that runs are ordered by.
        relevant: The lowest relevant grade.
        over: What means are over.
        cluster: What intervals are over.
        item: What is ranked, in the singular.

    Raises:
        UsageError: A measure cannot be computed.
    """
    main = measure_name(main, relevant)
    names = dict.fromkeys([*(measure_name(name, relevant) for name in measures), main])
    return Asked(tuple(names), main, relevant, over, cluster, item)


class EvaluatedRun(Record, frozen=True):
    """A run under every measure."""

    run_id: str
    team: str | None
    answered: int
    """Turns of the grades for which the run ranks something."""
    beside: int
    """Turns that the run answers and the grades lack."""
    outside: int | None
    scores: tuple[MeasuredRun, ...]
    """In the order of the measures."""
    other: float | None
    """The mean under the main measure by the other convention."""


class Evaluation(Record, frozen=True):
    """Runs under the measures by one assessment."""

    assessment: str
    asked: Asked
    turns: int
    """Turns of the grades."""
    barren: int
    """Turns of the grades without a relevant item."""
    bounds: tuple[float, float] | None
    """Of the main measure."""
    runs: tuple[EvaluatedRun, ...]
    """Best first by the main measure."""
    compared: PairedRuns

    @property
    def reading(self) -> Reading:
        """How the values of the main measure are read."""
        return Reading(self.bounds, cluster=self.asked.cluster)

    @property
    def main(self) -> tuple[MeasuredRun, ...]:
        """The runs under the main measure."""
        return tuple(score for run in self.runs for score in run.scores if score.measure == self.asked.main)

    @property
    def scores(self) -> tuple[MeasuredRun, ...]:
        """Every run under every measure."""
        return tuple(score for run in self.runs for score in run.scores)


class Evaluator:
    """The measures over one assessment; runs are added one at a time, so that their rankings need not be kept."""

    def __init__(self, assessment: Assessment, asked: Asked) -> None:
        """Prepare the measures.

        Args:
            assessment: The grades.
            asked: From `ask`.
        """
        self._assessment = assessment
        self._measures = Measures(asked.measures, assessment.grades)
        self._asked = asked
        self._runs: list[EvaluatedRun] = []
        self._years = possible_years(assessment.grades)

    def problem(self, run: RankedRun) -> Problem | None:
        """Why the run cannot be measured: it has no turn of the grades, or is of another year."""
        grades, item = self._assessment.grades, self._asked.item
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        if not answered:
            message = f"names no {item} for any turn"
        elif answered.isdisjoint(grades):
            message = f"answers none of the {count(len(grades), 'turn')} of {self._assessment.name}: it has "
            message += f"{_some(answered)}, the qrels {_some(grades)}"
        elif run.years and self._years and run.years.isdisjoint(self._years):
            ours, theirs = (" or ".join(map(str, sorted(years))) for years in (run.years, self._years))
            message = f"has turns of {ours}, {self._assessment.name} those of {theirs}; equal turn ids are other turns"
        else:
            return None
        return Problem("other_turns", "error", run.file, None, "", message)

    def add(self, run: RankedRun) -> None:
        """Measure a run.

        Raises:
            UsageError: A measure has no value for the run.
        """
        grades, asked = self._assessment.grades, self._asked
        values = self._measures.values(run.ranking)
        answered = {turn_id for turn_id, items in run.ranking.items() if items}

        def measured(name: str, over: Convention) -> MeasuredRun:
            bounds = self._measures.bounds(name)
            return measured_run(run.run_id, name, values[name], grades, over, cluster=asked.cluster, bounds=bounds)

        self._runs.append(
            EvaluatedRun(
                run.run_id,
                run.team,
                answered=len(answered & grades.keys()),
                beside=len(answered - grades.keys()),
                outside=run.outside,
                scores=tuple(measured(name, asked.over) for name in asked.measures),
                other=measured(asked.main, other_convention(asked.over)).estimate.value,
            )
        )

    def result(self) -> Evaluation:
        """The runs that were added, compared."""
        asked = self._asked
        bounds = self._measures.bounds(asked.main)
        by_id = {run.run_id: run for run in self._runs}
        main = [score for run in self._runs for score in run.scores if score.measure == asked.main]
        reading = Reading(bounds, cluster=asked.cluster)
        return Evaluation(
            assessment=self._assessment.name,
            asked=asked,
            turns=len(self._assessment.grades),
            barren=sum(max(rows.values()) < asked.relevant for rows in self._assessment.grades.values()),
            bounds=bounds,
            runs=tuple(by_id[run.run_id] for run in best_first(main, reading)),
            compared=comparison(main, np.random.default_rng(_SEED), reading),
        )


def other_convention(over: Convention) -> Convention:
    """The convention beside the one that means are over."""
    return "answered" if over == "qrels" else "qrels"


def _some(turn_ids: Mapping[str, object] | set[str]) -> str:
    listed = sorted(turn_ids, key=natural_key)
    return ", ".join(listed[:_EXAMPLES]) + (" …" if len(listed) > _EXAMPLES else "")
