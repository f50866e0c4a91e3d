"""Runs under the measures of rankings, by each assessment: as tables, and in the names of trec_eval."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from judge.extra.evaluate.breakdown import (
    INTERVALS,
    OVER,
    PairedRuns,
    Reading,
    RunTable,
    TurnFacts,
    best_first,
    breakdown,
    comparison,
    is_known,
    stacked,
)
from judge.extra.evaluate.intake import RankedRun
from judge.extra.evaluate.scores import MeasuredRun, measured_run
from judge.io.ids import Cluster, natural_key
from judge.io.table import Cell, Table, tsv
from judge.io.text import count
from judge.records import Problem, Record
from judge.runs.measures import Measures, measure_name
from judge.runs.profiles import possible_years

PASSAGE_MEASURES = "nDCG@3 nDCG@5 nDCG P@10 P@20 R@10 R@20 R@1000 AP RR Judged@5 Judged@20".split()
"""Of section 3 and tables 3 and 4 of the overview of iKAT 2023; 1,000 passages of a turn are looked at."""
MAIN_OF_PASSAGES = "nDCG@5"
STATEMENT_MEASURES = ("nDCG@3", "P@3", "R@3", "R@5", "RR", "SetP", "SetR", "SetF", "AP")
"""Of section 3 and tables 5 and 6 of the overview of iKAT 2023; then those of statements as a set (iKAT 2024)."""
MAIN_OF_STATEMENTS = "nDCG@3"
Convention = Literal["qrels", "answered"]
"""What a mean of a measure of rankings may be over."""
_OTHER: dict[Convention, Convention] = {"qrels": "answered", "answered": "qrels"}
"""The convention beside the one that means are over."""
_SEED = 0
_EXAMPLES = 3


class MeasureChoice(Record, frozen=True):
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


def ask(measures: Sequence[str], main: str, relevant: int = 1, **more: Any) -> MeasureChoice:
    """Which measures are computed, each once, in the spelling of ir_measures; `more` are other fields of the choice.

    A UsageError if a measure cannot be computed.
    """
    main = measure_name(main, relevant)
    names = dict.fromkeys([*(measure_name(name, relevant) for name in measures), main])
    return MeasureChoice(tuple(names), main, relevant, **more)


class EvaluatedRun(Record, frozen=True):
    """A run under every measure."""

    run_id: str
    answered: int
    """Turns of the grades for which the run ranks something."""
    beside: int
    """Turns that the run answers and the grades lack."""
    outside: int | None
    scores: tuple[MeasuredRun, ...]
    other: float | None
    """The mean under the main measure by the other convention."""


class Evaluation(Record, frozen=True):
    """Runs under the measures by one assessment."""

    assessment: str
    asked: MeasureChoice
    turns: int
    barren: int
    """Turns of the grades without a relevant item."""
    runs: tuple[EvaluatedRun, ...]
    """Best first by the main measure."""
    compared: PairedRuns

    @property
    def main(self) -> tuple[MeasuredRun, ...]:
        """The runs under the main measure."""
        return tuple(score for score in self.scores if score.measure == self.asked.main)

    @property
    def scores(self) -> tuple[MeasuredRun, ...]:
        """Every run under every measure."""
        return tuple(score for run in self.runs for score in run.scores)


class Evaluator:
    """The measures over one assessment; runs are added one at a time, so that their rankings need not be kept.

    An assessment is grades by one group of assessors, by turn id and item id; its name is that of its file.
    """

    def __init__(self, assessment: str, grades: Mapping[str, Mapping[str, int]], asked: MeasureChoice) -> None:
        self._assessment = assessment
        self._grades = grades
        self._measures = Measures(asked.measures, grades)
        self._asked = asked
        self._runs: list[EvaluatedRun] = []
        self._years = possible_years(grades)

    def problem(self, run: RankedRun) -> Problem | None:
        """Why the run cannot be measured: it has no turn of the grades, or is of another year."""
        grades, item = self._grades, self._asked.item
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        if not answered:
            message = f"names no {item} for any turn"
        elif answered.isdisjoint(grades):
            message = f"answers none of the {count(len(grades), 'turn')} of {self._assessment}: it has "
            message += f"{_some(answered)}, the qrels {_some(grades)}"
        elif run.years and self._years and run.years.isdisjoint(self._years):
            ours, theirs = (" or ".join(map(str, sorted(years))) for years in (run.years, self._years))
            message = f"has turns of {ours}, {self._assessment} those of {theirs}; equal turn ids are other turns"
        else:
            return None
        return Problem("other_turns", "error", run.file, None, "", message)

    def add(self, run: RankedRun) -> None:
        """Measure a run."""
        grades, asked = self._grades, self._asked
        values = self._measures.values(run.ranking)
        answered = {turn_id for turn_id, items in run.ranking.items() if items}

        def measured(name: str, over: Convention) -> MeasuredRun:
            bounds = self._measures.bounds(name)
            return measured_run(run.run_id, name, values[name], grades, over, cluster=asked.cluster, bounds=bounds)

        there, beside = len(answered & grades.keys()), len(answered - grades.keys())
        scores = tuple(measured(name, asked.over) for name in asked.measures)
        other = measured(asked.main, _OTHER[asked.over]).estimate.value
        self._runs.append(EvaluatedRun(run.run_id, there, beside, run.outside, scores, other))

    def result(self) -> Evaluation:
        """The runs that were added, compared."""
        asked = self._asked
        by_id = {run.run_id: run for run in self._runs}
        main = [score for run in self._runs for score in run.scores if score.measure == asked.main]
        reading = Reading(self._measures.bounds(asked.main), cluster=asked.cluster)
        barren = sum(max(rows.values()) < asked.relevant for rows in self._grades.values())
        runs = tuple(by_id[run.run_id] for run in best_first(main, reading))
        compared = comparison(main, np.random.default_rng(_SEED), reading)
        return Evaluation(self._assessment, asked, len(self._grades), barren, runs, compared)


def _some(turn_ids: Mapping[str, object] | set[str]) -> str:
    listed = sorted(turn_ids, key=natural_key)
    return ", ".join(listed[:_EXAMPLES]) + (" …" if len(listed) > _EXAMPLES else "")


def means(evaluation: Evaluation) -> Table[Any]:
    """A line for each run, best first by the main measure, which has its interval and the letters of tied runs."""
    asked, letters = evaluation.asked, evaluation.compared.letters
    outside = any(run.outside is not None for run in evaluation.runs)
    others = [name for name in asked.measures if name != asked.main]
    columns = ("run", "answered", *(("outside",) if outside else ()), asked.main, "letters")
    lines: list[tuple[Cell, ...]] = []
    for run in evaluation.runs:
        of = {score.measure: score.estimate for score in run.scores}
        known, values = (run.outside,) if outside else (), (of[name].value for name in others)
        lines.append((run.run_id, run.answered, *known, of[asked.main], letters.get(run.run_id), run.other, *values))
    turns = count(evaluation.turns, "turn")
    title = f"{asked.items} by {evaluation.assessment}: {turns}, {OVER[asked.over]}"
    return Table(lines, (*columns, f"over_{_OTHER[asked.over]}", *others), title, _notes(evaluation))


def side_by_side(evaluations: Sequence[Evaluation]) -> Table[Any]:
    """A line for each run with its main measure by every assessment, best first by the first of them."""
    asked = evaluations[0].asked
    by_run = [{run.run_id: run.estimate for run in evaluation.main} for evaluation in evaluations]
    return Table(
        ((run.run_id, *(estimates[run.run_id] for estimates in by_run)) for run in evaluations[0].runs),
        ("run", *(evaluation.assessment for evaluation in evaluations)),
        f"{asked.main} by each assessment",
        (INTERVALS[asked.cluster],),
    )


def ranking_tables(
    evaluations: Sequence[Evaluation], facts: Mapping[str, TurnFacts], table: RunTable
) -> tuple[Table[Any], ...]:
    """One kind of table; means are apart for each assessment, and of several there is one that has them side by side.

    There is none where nothing says how turns are grouped.
    """
    if table == "run":
        return (*map(means, evaluations), *((side_by_side(evaluations),) if len(evaluations) > 1 else ()))
    if not is_known(facts, table):
        return ()
    grids = [breakdown(table, evaluation.compared, evaluation.main, facts) for evaluation in evaluations]
    names = [evaluation.assessment for evaluation in evaluations]
    title = f"{evaluations[0].asked.items} by {', '.join(names)}: {grids[0].title[0].lower()}{grids[0].title[1:]}"
    return (stacked(title, grids, names if len(names) > 1 else None, "qrels"),)


def turns_tsv(evaluations: Sequence[Evaluation]) -> str:
    """The value of every turn: a line for each assessment, run and turn, a column for each measure."""
    names = evaluations[0].asked.measures
    lines = (
        (evaluation.assessment, run.run_id, turn_id, *(score.turns[turn_id] for score in run.scores))
        for evaluation in evaluations
        for run in evaluation.runs
        for turn_id in run.scores[0].turns
    )
    return tsv(("qrels", "run", "turn", *names), lines)


def tool_scores(evaluations: Sequence[Evaluation], *, trec_eval: bool) -> list[MeasuredRun]:
    """Every run under every measure, in the names of trec_eval if wanted; of several assessments `assessment/run`."""
    scores: list[MeasuredRun] = []
    for evaluation in evaluations:
        before = f"{evaluation.assessment}/" if len(evaluations) > 1 else ""
        for score in evaluation.scores:
            name = _trec_eval_name(score.measure, evaluation.asked.relevant) if trec_eval else score.measure
            scores.append(msgspec.structs.replace(score, run_id=f"{before}{score.run_id}", measure=name))
    return scores


def _notes(evaluation: Evaluation) -> Iterator[str]:
    asked = evaluation.asked
    yield f"answered: turns of the {evaluation.turns} for which the run names a {asked.item}."
    if any(run.outside is not None for run in evaluation.runs):
        yield "outside: statements that are not in the topic's PTKB; they keep their places and match nothing."
    other = _OTHER[asked.over]
    yield f"over_{other}: {asked.main} {OVER[other]}."
    yield INTERVALS[asked.cluster]
    yield evaluation.compared.sentence
    if asked.relevant != 1:
        yield f"Relevant is a grade of {asked.relevant} or more; nDCG takes the grades as they are."
    if evaluation.barren:
        has = "has" if evaluation.barren == 1 else "have"
        yield (
            f"{count(evaluation.barren, 'turn')} of the qrels {has} no relevant {asked.item}: what counts relevant "
            "ones is 0 there, as in trec_eval."
        )
    beside = [run.beside for run in evaluation.runs if run.beside]
    if beside:
        turns = str(min(beside)) if min(beside) == max(beside) else f"{min(beside)} to {max(beside)}"
        has = "has" if len(beside) == 1 else "have"
        each = " each" if len(beside) > 1 and min(beside) == max(beside) else ""
        yield f"Turns that the qrels lack count nowhere: {count(len(beside), 'run')} {has} {turns}{each}."


def _trec_eval_name(measure: str, relevant: int) -> str:
    """The name that trec_eval prints; where it has none, the measure's own."""
    match = _MEASURE.fullmatch(measure)
    # nDCG knows no relevant grade; other names leave out a 1.
    if match is None or (match["name"] != "nDCG" and int(match["rel"] or 1) != relevant):
        return measure
    plain, at = _TREC_EVAL.get(match["name"], (None, None))
    if match["at"] is None:
        return plain or measure
    return f"{at}_{match['at']}" if at else measure


_MEASURE = re.compile(r"(?P<name>\w+)(\(rel=(?P<rel>[0-9]+)\))?(@(?P<at>[0-9]+))?")
_TREC_EVAL: dict[str, tuple[str | None, str | None]] = {
    "nDCG": ("ndcg", "ndcg_cut"),
    "P": (None, "P"),
    "R": (None, "recall"),
    "AP": ("map", "map_cut"),
    "RR": ("recip_rank", None),
    "Rprec": ("Rprec", None),
    "Bpref": ("bpref", None),
    "SetP": ("set_P", None),
    "SetR": ("set_recall", None),
    "SetF": ("set_F", None),
    "SetAP": ("set_map", None),
    "Success": (None, "success"),
    "infAP": ("infAP", None),
}
"""Measure to its name in trec_eval, without and with a cutoff."""
