"""Runs of responses under the grades of a criterion: mean grade and share of positive ones, as tables and pictures.

What `trec_eval -l N -c -m P.1` prints of the same files is the share of positive grades over `qrels`, and without `-c`
that over `answered`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from judge.errors import InputError
from judge.extra.evaluate import Over, breakdown, measured_run
from judge.io.ids import Cluster, TrecRun, column, natural_key, safe_names, topic_of, trec_order
from judge.io.table import Cell, Table, tsv_lines
from judge.io.text import count
from judge.pool.records import Pool
from judge.records import Record, Scale
from judge.results.citations import refuse_measured
from judge.results.ranked import top_pooled
from judge.results.rows import Score
from judge.results.turns import worst_grade

ResponseMeasure = Literal["mean", "positive"]
"""mean: the mean grade. positive: the share of turns with a positive grade."""
RESPONSE_MEASURES: tuple[ResponseMeasure, ...] = get_args(ResponseMeasure)


ResponseRuns = Mapping[str, Mapping[str, str]]
"""Run to turn to the response that it ranks first there, ids as columns."""


class ResponseQrels(msgspec.Struct, frozen=True, dict=True):
    """The grades of responses under one criterion, ids as columns."""

    name: str
    """What tables call it: the criterion, or the file where nothing names one."""
    file: str
    grades: dict[str, dict[str, int]]
    scale: Scale | None
    threshold: int | None = None
    """The worst grade that counts as positive; by default as the scale says."""
    remark: str | None = None
    """What the makers of the grades say of them, such as how far to believe a judge."""

    @property
    def higher_is_better(self) -> bool:
        """Grades without a known scale are taken to be better the higher they are, as trec_eval takes them."""
        return self.scale is None or self.scale.polarity == "higher"

    @cached_property
    def positive(self) -> frozenset[int] | None:
        """The grades that count as positive; None where nothing says it."""
        if self.threshold is None:
            return None if self.scale is None else frozenset(self.scale.positive)
        sign = 1 if self.higher_is_better else -1
        return frozenset(grade for grade in self._levels if sign * grade >= sign * self.threshold)

    @property
    def level(self) -> int | None:
        """N of `P(rel=N)@1`; None where trec_eval cannot tell the positive grades.

        That is where lower grades are better, or the positive grades are not all those from some N of 1 or more on.
        """
        least = min(self.positive or (), default=0) if self.threshold is None else self.threshold
        if not self.higher_is_better or least < 1:
            return None
        return least if self.positive == frozenset(grade for grade in self._levels if grade >= least) else None

    @property
    def worst(self) -> int | None:
        """The worst grade of the scale."""
        return None if self.scale is None else worst_grade(self.scale)

    @property
    def _levels(self) -> set[int]:
        if self.scale is not None:
            return {level.grade for level in self.scale.levels}
        levels: set[int] = set()
        for graded in self.grades.values():
            levels.update(graded.values())
        return levels

    def reading(self, measure: ResponseMeasure, cluster: Cluster, over: Over = "qrels") -> breakdown.Reading:
        """How the values of a measure are read; a mean can be 0 where no grade is, because unanswered turns count."""
        if measure == "positive":
            return breakdown.Reading(cluster=cluster, over=over)
        bounds = None if self.scale is None else (float(min(0, *self._levels)), float(max(0, *self._levels)))
        return breakdown.Reading(bounds=bounds, higher_is_better=self.higher_is_better, cluster=cluster, over=over)


class ScoredRun(Record, frozen=True):
    """A run under one criterion."""

    run_id: str
    first: dict[str, str]
    """Turn of the qrels to the response that the run ranks first there."""
    grades: dict[str, int]
    """Turn to the grade of that response, where the qrels have one."""
    outside: tuple[str, ...]
    """Answered turns that the qrels do not have."""
    scores: dict[tuple[ResponseMeasure, Over], Score]

    @property
    def unjudged(self) -> int:
        """Answered turns whose response has no grade."""
        return len(self.first) - len(self.grades)


def first_of_lines(run: TrecRun) -> dict[str, str]:
    """Turn to the response of a run file that trec_eval takes as the first; ranks have no say."""
    return {turn_id: trec_order(scores)[0] for turn_id, scores in run.scores.items()}


def runs_of_pool(pool: Pool) -> ResponseRuns:
    """The selected runs of a pool as its `response_runs/` have them, also those of which nothing was pooled."""
    refuse_measured(pool)
    tops = top_pooled(pool)
    run_ids = {run.run_id for run in pool.runs if run.selected} | tops.keys()
    runs: dict[str, dict[str, str]] = {}
    for run_id in run_ids:
        runs[run_id] = {column(turn_id): top for turn_id, top in tops.get(run_id, {}).items()}
    return runs


def scored_runs(runs: ResponseRuns, qrels: ResponseQrels, cluster: Cluster = "topic") -> tuple[ScoredRun, ...]:
    """Every run under a criterion, in natural order of run id.

    A response that the qrels do not grade counts 0, as in trec_eval, and over `worst` the worst grade.
    """
    scored = tuple(_scored(run_id, runs[run_id], qrels, cluster) for run_id in sorted(runs, key=natural_key))
    if not any(run.grades for run in scored):
        raise InputError(_apart(scored, qrels))
    return scored


def _scored(run_id: str, answers: Mapping[str, str], qrels: ResponseQrels, cluster: Cluster) -> ScoredRun:
    first = {turn_id: answers[turn_id] for turn_id in qrels.grades if turn_id in answers}
    grades = {turn_id: grade for turn_id, top in first.items() if (grade := qrels.grades[turn_id].get(top)) is not None}
    scores: dict[tuple[ResponseMeasure, Over], Score] = {}
    for measure in RESPONSE_MEASURES:
        if measure == "positive" and qrels.positive is None:
            continue
        values = {turn_id: float(grade) for turn_id, grade in grades.items()}
        if measure == "positive":
            values = {turn_id: float(grade in (qrels.positive or ())) for turn_id, grade in grades.items()}
        answered = {turn_id: values.get(turn_id, 0.0) for turn_id in first}
        bounds = qrels.reading(measure, cluster).bounds
        worst = float(qrels.worst or 0) if measure == "mean" else 0.0
        for over in overs(qrels):
            # What a turn without a grade counts is added by `measured_run`.
            given = values if over == "worst" else answered
            scores[measure, over] = measured_run(
                run_id,
                measure,
                given,
                qrels.grades,
                over,
                cluster=cluster,
                bounds=bounds,
                worst=worst,
            )
    outside = tuple(sorted(answers.keys() - qrels.grades.keys(), key=natural_key))
    return ScoredRun(run_id=run_id, first=first, grades=grades, outside=outside, scores=scores)


def overs(qrels: ResponseQrels) -> tuple[Over, ...]:
    """The conventions that grades allow: the worst grade is known of a known scale only."""
    return ("qrels", "answered") if qrels.scale is None else ("qrels", "answered", "worst")


def _apart(scored: Sequence[ScoredRun], qrels: ResponseQrels) -> str:
    """Why no response has a grade."""
    if any(run.first for run in scored):
        turn_id, response_id = next(entry for run in scored for entry in run.first.items())
        return (
            f"{qrels.file}: none of the runs' first responses has a grade there ({response_id} in turn {turn_id} has "
            "none): are these the ids of another pool?"
        )
    example = next((turn_id for run in scored for turn_id in run.outside), None)
    answered = f"they answer {example}" if example is not None else "they answer nothing"
    return f"{qrels.file}: no turn of these qrels is answered by any run ({answered}): are they of other topics?"


def described(qrels: ResponseQrels) -> str:
    """How to read the grades, in a sentence."""
    scale = "scale not known, higher taken as better"
    if qrels.scale is not None:
        grades = ", ".join(str(level.grade) for level in qrels.scale.levels)
        scale = f"grades {grades}, {qrels.scale.polarity} is better"
    if qrels.positive is None:
        positive = "no positive grades known, so no share (--positive)"
    elif qrels.level is not None:
        positive = f"positive from {qrels.level} on: P(rel={qrels.level})@1, trec_eval -l {qrels.level} -m P.1"
    else:
        grades = ", ".join(map(str, sorted(qrels.positive))) or "none"
        positive = f"positive: {grades}, which trec_eval cannot tell"
    return f"{qrels.name}: {count(len(qrels.grades), 'turn')} in {qrels.file}; {scale}; {positive}."


SEED = 2023
"""Of the tests of differences, so that the same files have the same p-values."""
TURN_COLUMNS = "criterion run turn topic depth ptkb response state grade positive".split()


class EvaluatedCriterion(Record, frozen=True):
    """All runs under one criterion."""

    qrels: ResponseQrels
    runs: tuple[ScoredRun, ...]
    over: Over
    cluster: Cluster
    compared: dict[ResponseMeasure, breakdown.PairedRuns]
    """By each measure that the grades allow."""

    def measured(self, measure: ResponseMeasure) -> tuple[Score, ...]:
        """The runs under a measure, best first."""
        return breakdown.best_first(
            [run.scores[measure, self.over] for run in self.runs], self.compared[measure].reading
        )


def evaluated_criterion(
    runs: ResponseRuns, qrels: ResponseQrels, over: Over | None = None, cluster: Cluster = "topic"
) -> EvaluatedCriterion:
    """Score and compare the runs under a criterion.

    By default, breakdowns and comparisons are over all turns of the qrels, where an unanswered one counts 0 as in
    trec_eval; where lower grades are better, over the worst grade, since 0 would reward no answer.
    """
    scored = scored_runs(runs, qrels, cluster)
    chosen: Over = over or ("qrels" if qrels.higher_is_better else "worst")
    unjudged = {run.run_id: run.first.keys() - run.grades.keys() for run in scored}
    compared: dict[ResponseMeasure, breakdown.PairedRuns] = {}
    for measure in RESPONSE_MEASURES:
        scores = [run.scores[measure, chosen] for run in scored if (measure, chosen) in run.scores]
        if scores:
            reading = qrels.reading(measure, cluster, chosen)
            compared[measure] = breakdown.comparison(scores, np.random.default_rng(SEED), reading, unjudged)
    return EvaluatedCriterion(qrels=qrels, runs=scored, over=chosen, cluster=cluster, compared=compared)


def response_table(
    evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, breakdown.TurnFacts], table: breakdown.RunTable
) -> Table[Any]:
    """One table of all criteria."""
    if table == "run":
        return _by_run(evaluated)
    grids = []
    names = []
    for of in evaluated:
        for measure, compared in of.compared.items():
            grids.append(breakdown.breakdown(table, compared, of.measured(measure), facts))
            names.append(of.qrels.name)
    over = " / ".join(dict.fromkeys(breakdown.OVER[of.over] for of in evaluated))
    words = {
        "pair": "every two runs",
        "ptkb": "turns with PTKB statements and without",
        "group": "each run in each topic, depth and kind of turn",
    }
    return breakdown.stacked(f"Responses: {words.get(table, f'by {table}')}, {over}", grids, names)


def _by_run(evaluated: Sequence[EvaluatedCriterion]) -> Table[Any]:
    """The conventions side by side, best run first."""
    worst = any(of.qrels.worst for of in evaluated)
    overs: tuple[Over, ...] = ("qrels", "answered", "worst") if worst else ("qrels", "answered")
    lines: list[tuple[Cell, ...]] = []
    for of in evaluated:
        by_id = {run.run_id: run for run in of.runs}
        for measure, compared in of.compared.items():
            for run in (by_id[ordered.run_id] for ordered in of.measured(measure)):
                scores = (run.scores.get((measure, over)) for over in overs)
                estimates = (None if score is None else score.mean for score in scores)
                counts = len(of.qrels.grades), len(run.first), run.unjudged, compared.letters.get(run.run_id)
                lines.append((of.qrels.name, measure, run.run_id, *estimates, *counts))
    named = (f"over_{over}" for over in overs)
    columns = ("criterion", "measure", "run", *named, "turns", "answered", "unjudged", "letters")
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
    yield breakdown.INTERVALS[evaluated[0].cluster]
    for of in evaluated:
        yield from (f"{of.qrels.name}, {compared.sentence}" for compared in of.compared.values())


def turn_lines(evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, breakdown.TurnFacts]) -> Iterator[str]:
    """A line for each criterion, run and turn of the qrels: which response, what became of it, its grade.

    The state is `graded`, `unjudged` (a response without a grade) or `unanswered`.
    """

    def lines() -> Iterator[tuple[Cell, ...]]:
        for criterion in evaluated:
            qrels = criterion.qrels
            for run in criterion.runs:
                for turn_id, fact in facts.items():
                    if turn_id not in qrels.grades:
                        continue
                    grade = run.grades.get(turn_id)
                    positive = None if grade is None or qrels.positive is None else grade in qrels.positive
                    if grade is not None:
                        state = "graded"
                    elif turn_id in run.first:
                        state = "unjudged"
                    else:
                        state = "unanswered"
                    about = (qrels.name, run.run_id, turn_id, topic_of(turn_id), fact.depth, fact.ptkb)
                    yield (*about, run.first.get(turn_id), state, grade, positive)

    return tsv_lines(TURN_COLUMNS, lines())


def response_pictures(
    evaluated: Sequence[EvaluatedCriterion], facts: Mapping[str, breakdown.TurnFacts]
) -> dict[str, bytes]:
    """The pictures of each criterion and measure, by file name: `groundedness_mean_runs.svg`."""
    names = safe_names(of.qrels.name for of in evaluated)
    words = {"mean": "mean grade", "positive": "share positive"}
    pictures: dict[str, bytes] = {}
    for of in evaluated:
        for measure, compared in of.compared.items():
            heading = f"{of.qrels.name}, {words[measure]}"
            drawn = breakdown.breakdown_pictures(of.measured(measure), facts, heading, compared.reading)
            pictures |= {f"{names[of.qrels.name]}_{measure}_{name}": content for name, content in drawn.items()}
    return pictures
