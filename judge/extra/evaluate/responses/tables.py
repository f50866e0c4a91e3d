"""The tables and pictures of `judge evaluate responses`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judge.extra.evaluate.breakdown import (
    INTERVALS,
    OVER,
    TurnFacts,
    best_first,
    stacked,
)
from judge.extra.evaluate.paired import PairedRuns, RunTable, breakdown, comparison
from judge.extra.evaluate.pictures import breakdown_pictures
from judge.extra.evaluate.responses.graded import (
    RESPONSE_MEASURES,
    ResponseMeasure,
    ResponseQrels,
    ResponseRun,
    ScoredRun,
    described,
    measured,
    scored_runs,
)
from judge.extra.evaluate.scores import MeasuredRun, Over
from judge.io.cells import count
from judge.io.ids import Cluster, topic_of
from judge.io.table import Cell, Table, tsv_lines
from judge.io.trec import safe_names
from judge.records import Record

SEED = 2023
"""Of the tests of differences, so that the same files have the same p-values."""
TURN_COLUMNS = (
    *("criterion", "run", "turn", "topic", "depth", "ptkb", "response", "state", "grade", "positive"),
)  # fmt: skip


class EvaluatedCriterion(Record, frozen=True):
    """All runs under one criterion."""

    qrels: ResponseQrels
    runs: tuple[ScoredRun, ...]
    over: Over
    """What breakdowns, comparisons and pictures are over."""
    cluster: Cluster
    compared: dict[ResponseMeasure, PairedRuns]

    @property
    def measures(self) -> tuple[ResponseMeasure, ...]:
        """The measures that the grades allow."""
        return tuple(self.compared)

    def measured(self, measure: ResponseMeasure, over: Over | None = None) -> tuple[MeasuredRun, ...]:
        """The runs under a measure, best first."""
        return best_first(measured(self.runs, measure, over or self.over), self.qrels.reading(measure, self.cluster))


def evaluated_criterion(
    runs: Sequence[ResponseRun], qrels: ResponseQrels, over: Over | None = None, cluster: Cluster = "topic"
) -> EvaluatedCriterion:
    """Score and compare the runs under a criterion.

    Args:
        runs: The runs.
        qrels: The grades.
        over: What breakdowns and comparisons are over. By default all turns of the qrels, where an unanswered one
            counts 0 as in trec_eval; where lower grades are better, the worst grade, since 0 would reward no answer.
        cluster: What intervals and tests are over.

    Raises:
        InputError: No run has a graded response.
    """
    scored = scored_runs(runs, qrels, cluster)
    chosen: Over = over or ("qrels" if qrels.higher_is_better else "worst")
    compared = {
        measure: comparison(of_measure, np.random.default_rng(SEED), qrels.reading(measure, cluster))
        for measure in RESPONSE_MEASURES
        if (of_measure := measured(scored, measure, chosen))
    }
    return EvaluatedCriterion(qrels, scored, chosen, cluster, compared)


def response_table(
    evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, TurnFacts], table: RunTable
) -> Table[Any]:
    """One table of all criteria.

    Args:
        evaluated: The criteria.
        facts: The facts of the turns of all qrels.
        table: What it has a line for.
    """
    if table == "run":
        return _by_run(evaluated)
    grids, names = [], []
    for of in evaluated:
        for measure in of.measures:
            grids.append(breakdown(table, of.compared[measure], of.measured(measure), facts))
            names.append(of.qrels.name)
    over = " / ".join(dict.fromkeys(OVER[of.over] for of in evaluated))
    words = {
        "pair": "every two runs",
        "ptkb": "turns with PTKB statements and without",
        "group": "each run in each topic, depth and kind of turn",
    }
    return stacked(f"Responses: {words.get(table, f'by {table}')}, {over}", grids, names)


def _by_run(evaluated: Sequence[EvaluatedCriterion]) -> Table[Any]:
    """Both conventions side by side, best run first."""
    worst = any("worst" in (over for _, over in of.runs[0].scores) and of.qrels.worst for of in evaluated)
    overs: tuple[Over, ...] = ("qrels", "answered", "worst") if worst else ("qrels", "answered")
    lines: list[tuple[Cell, ...]] = []
    for of in evaluated:
        by_id = {run.run_id: run for run in of.runs}
        for measure in of.measures:
            for ordered in of.measured(measure):
                run = by_id[ordered.run_id]
                scores = (run.scores.get((measure, over)) for over in overs)
                lines.append(
                    (
                        *(of.qrels.name, measure, run.run_id),
                        *(None if score is None else score.estimate for score in scores),
                        *(run.turns, run.answered, run.unjudged, of.compared[measure].letters.get(run.run_id)),
                    )
                )
    columns = (
        *("criterion", "measure", "run", *(f"over_{over}" for over in overs)),
        *("turns", "answered", "unjudged", "letters"),
    )
    return Table(lines, columns, "Responses: by run", _notes(evaluated, worst))


def _notes(evaluated: Sequence[EvaluatedCriterion], worst: bool) -> Iterator[str]:
    for of in evaluated:
        yield described(of.qrels)
        if of.qrels.remark:
            yield f"{of.qrels.name}: {of.qrels.remark}"
    yield "over_qrels: all turns of the qrels, an unanswered one counts 0 (trec_eval -c)."
    yield "over_answered: the turns of the qrels that the run answered (trec_eval without -c)."
    if worst:
        yield (
            "over_worst: all turns of the qrels, one without a grade counts the worst grade, or as not positive; so do "
            "leaderboards."
        )
    for of in evaluated:
        if not of.qrels.higher_is_better:
            yield (
                f"{of.qrels.name}: lower is better, so over_qrels rewards a run for what it does not answer; runs are "
                f"ordered and compared over {of.over}."
            )
        if unjudged := sum(run.unjudged for run in of.runs):
            best = "" if of.qrels.higher_is_better else ", although lower is better"
            yield (
                f"{of.qrels.name}: {count(unjudged, 'first response')} of runs without a grade in {of.qrels.file}; "
                f"each counts 0, as in trec_eval{best}."
            )
    yield INTERVALS[evaluated[0].cluster]
    for of in evaluated:
        yield from (f"{of.qrels.name}, {compared.sentence}" for compared in of.compared.values())


def turn_lines(evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, TurnFacts]) -> Iterator[str]:
    """A line for each criterion, run and turn of the qrels: which response, what became of it, its grade.

    The state is `graded`, `unjudged` (a response without a grade) or `unanswered`.
    """
    lines = (
        (
            *(of.qrels.name, run.run_id, turn_id, topic_of(turn_id), facts[turn_id].depth, facts[turn_id].ptkb),
            run.first.get(turn_id),
            "graded" if turn_id in run.grades else "unjudged" if turn_id in run.first else "unanswered",
            grade := run.grades.get(turn_id),
            None if grade is None or of.qrels.positive is None else grade in of.qrels.positive,
        )
        for of in evaluated
        for run in of.runs
        for turn_id in facts
        if turn_id in of.qrels.grades
    )
    return tsv_lines(TURN_COLUMNS, lines)


def response_pictures(evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, TurnFacts]) -> dict[str, bytes]:
    """The pictures of each criterion and measure, by file name: `groundedness_mean_runs.svg`."""
    names = safe_names(of.qrels.name for of in evaluated)
    words = {"mean": "mean grade", "positive": "share positive"}
    pictures: dict[str, bytes] = {}
    for of in evaluated:
        for measure in of.measures:
            runs, reading = of.measured(measure), of.qrels.reading(measure, of.cluster)
            drawn = breakdown_pictures(runs, facts, f"{of.qrels.name}, {words[measure]}", reading)
            pictures |= {f"{names[of.qrels.name]}_{measure}_{name}": content for name, content in drawn.items()}
    return pictures
