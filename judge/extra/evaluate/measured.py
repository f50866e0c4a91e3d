"""Rankings of runs measured against grades, and their tables. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np

from judge.extra.evaluate import breakdown, measured_run
from judge.extra.evaluate.intake import RankedRun
from judge.io.ids import Cluster, natural_key, nested
from judge.io.table import Cell, Column, Table, records_table, tsv
from judge.io.text import count, examples
from judge.records import Problem, Record, file_problem
from judge.results.rows import Score
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


class Evaluation(Record, frozen=True):
    """Runs under the measures by one assessment."""

    assessment: str
    asked: MeasureChoice
    turns: int
    barren: int
    """Turns of the grades without a relevant item."""
    scores: tuple[Score, ...]
    """Every run under every measure, best run first by the main measure; those of a run share the counts of COUNTS."""
    others: dict[str, float | None]
    """Run to its mean under the main measure by the other convention."""
    compared: breakdown.PairedRuns

    @property
    def main(self) -> tuple[Score, ...]:
        """The runs under the main measure."""
        return tuple(score for score in self.scores if score.criterion == self.asked.main)

    @property
    def by_run(self) -> dict[str, dict[str, Score]]:
        """Run to measure to its score."""
        return nested((score.run_id, score.criterion, score) for score in self.scores)


COUNTS = {
    "answered": "turns of the {turns} for which the run names a {item}.",
    "outside": "statements that are not in the topic's PTKB; they keep their places and match nothing.",
}
"""What is counted of each run, and what the table says of it; what no run counts has no column."""


class Evaluator:
    """The measures over one assessment; runs are added one at a time, so that their rankings need not be kept.

    An assessment is grades by one group of assessors, by turn id and item id; its name is that of its file.
    """

    def __init__(self, assessment: str, grades: Mapping[str, Mapping[str, int]], asked: MeasureChoice) -> None:
        self._assessment = assessment
        self._grades = grades
        self._measures = Measures(asked.measures, grades)
        self._asked = asked
        self._scores: dict[str, dict[str, Score]] = {}
        self._others: dict[str, float | None] = {}
        self._years = possible_years(grades)

    def problem(self, run: RankedRun) -> Problem | None:
        """Why the run cannot be measured: it has no turn of the grades, or is of another year."""
        grades = self._grades
        item = self._asked.item
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        if not answered:
            message = f"names no {item} for any turn"
        elif answered.isdisjoint(grades):
            message = f"answers none of the {count(len(grades), 'turn')} of {self._assessment}: it has "
            theirs, ours = (examples(sorted(turn_ids, key=natural_key), 3) for turn_ids in (answered, grades))
            message += f"{theirs}, the qrels {ours}"
        elif run.years and self._years and run.years.isdisjoint(self._years):
            ours, theirs = (" or ".join(map(str, sorted(years))) for years in (run.years, self._years))
            message = f"has turns of {ours}, {self._assessment} those of {theirs}; equal turn ids are other turns"
        else:
            return None
        return file_problem("other_turns", run.file, message)

    def add(self, run: RankedRun) -> None:
        """Measure a run."""
        grades = self._grades
        asked = self._asked
        values = self._measures.values(run.ranking)
        answered = {turn_id for turn_id, items in run.ranking.items() if items}
        counts = {"answered": len(answered & grades.keys()), "beside": len(answered - grades.keys())}
        if run.outside is not None:
            counts["outside"] = run.outside

        def measured(name: str, over: Convention) -> Score:
            bounds = self._measures.bounds(name)
            score = measured_run(run.run_id, name, values[name], grades, over, cluster=asked.cluster, bounds=bounds)
            return msgspec.structs.replace(score, counts=counts)

        self._scores[run.run_id] = {name: measured(name, asked.over) for name in asked.measures}
        self._others[run.run_id] = measured(asked.main, _OTHER[asked.over]).mean.value

    def result(self) -> Evaluation:
        """The runs that were added, compared."""
        asked = self._asked
        reading = breakdown.Reading(bounds=self._measures.bounds(asked.main), cluster=asked.cluster, over=asked.over)
        main = [scores[asked.main] for scores in self._scores.values()]
        ordered: list[Score] = []
        for score in breakdown.best_first(main, reading):
            ordered += self._scores[score.run_id].values()
        return Evaluation(
            assessment=self._assessment,
            asked=asked,
            turns=len(self._grades),
            barren=sum(max(rows.values()) < asked.relevant for rows in self._grades.values()),
            scores=tuple(ordered),
            others=self._others,
            compared=breakdown.comparison(main, np.random.default_rng(_SEED), reading),
        )


def means(evaluation: Evaluation) -> Table[Any]:
    """A line for each run, best first by the main measure, which has its interval and the letters of tied runs."""
    asked = evaluation.asked
    counted = _counted(evaluation)
    by_run = evaluation.by_run
    columns: dict[Column | str, Callable[[Any], object]] = {"run": lambda score: score.run_id}
    for name in counted:
        columns[name] = partial(_count, name=name)
    columns[asked.main] = lambda score: score.mean
    columns["letters"] = lambda score: evaluation.compared.letters.get(score.run_id)
    columns[f"over_{_OTHER[asked.over]}"] = lambda score: evaluation.others[score.run_id]
    for name in asked.measures:
        if name != asked.main:
            columns[name] = partial(_mean_under, name=name, by_run=by_run)
    turns = count(evaluation.turns, "turn")
    title = f"{asked.items} by {evaluation.assessment}: {turns}, {breakdown.OVER[asked.over]}"
    return records_table(columns, evaluation.main, title, _notes(evaluation))


def _counted(evaluation: Evaluation) -> list[str]:
    """What is counted of any run, in the order of COUNTS."""
    names: list[str] = []
    for name in COUNTS:
        if any(name in score.counts for score in evaluation.main):
            names.append(name)
    return names


def _count(score: Score, name: str) -> int | None:
    return score.counts.get(name)


def _mean_under(score: Score, name: str, by_run: Mapping[str, Mapping[str, Score]]) -> float | None:
    return by_run[score.run_id][name].mean.value


def side_by_side(evaluations: Sequence[Evaluation]) -> Table[Any]:
    """A line for each run with its main measure by every assessment, best first by the first of them."""
    asked = evaluations[0].asked
    lines: dict[str, list[Cell]] = {score.run_id: [score.run_id] for score in evaluations[0].main}
    for evaluation in evaluations:
        for score in evaluation.main:
            lines[score.run_id].append(score.mean)
    return Table(
        lines.values(),
        ("run", *(evaluation.assessment for evaluation in evaluations)),
        f"{asked.main} by each assessment",
        (breakdown.INTERVALS[asked.cluster],),
    )


def ranking_tables(
    evaluations: Sequence[Evaluation], facts: Mapping[str, breakdown.TurnFacts], table: breakdown.RunTable
) -> tuple[Table[Any], ...]:
    """One kind of table; means are apart for each assessment, and of several there is one that has them side by side.

    There is none where nothing says how turns are grouped.
    """
    if table == "run":
        return (*map(means, evaluations), *((side_by_side(evaluations),) if len(evaluations) > 1 else ()))
    if not breakdown.is_known(facts, table):
        return ()
    grids = [breakdown.breakdown(table, evaluation.compared, evaluation.main, facts) for evaluation in evaluations]
    names = [evaluation.assessment for evaluation in evaluations]
    title = f"{evaluations[0].asked.items} by {', '.join(names)}: {grids[0].title[0].lower()}{grids[0].title[1:]}"
    return (breakdown.stacked(title, grids, names if len(names) > 1 else None, "qrels"),)


def turns_tsv(evaluations: Sequence[Evaluation]) -> str:
    """The value of every turn: a line for each assessment, run and turn, a column for each measure."""
    names = evaluations[0].asked.measures
    lines: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        for run_id, scores in evaluation.by_run.items():
            for turn_id in next(iter(scores.values())).values:
                values = (score.values[turn_id] for score in scores.values())
                lines.append((evaluation.assessment, run_id, turn_id, *values))
    return tsv(("qrels", "run", "turn", *names), lines)


def tool_scores(evaluations: Sequence[Evaluation], *, trec_eval: bool) -> list[Score]:
    """Every run under every measure, in the names of trec_eval if wanted; of several assessments `assessment/run`."""
    scores: list[Score] = []
    for evaluation in evaluations:
        before = f"{evaluation.assessment}/" if len(evaluations) > 1 else ""
        for score in evaluation.scores:
            name = _trec_eval_name(score.criterion, evaluation.asked.relevant) if trec_eval else score.criterion
            scores.append(msgspec.structs.replace(score, run_id=f"{before}{score.run_id}", criterion=name))
    return scores


def _notes(evaluation: Evaluation) -> Iterator[str]:
    asked = evaluation.asked
    for name in _counted(evaluation):
        yield f"{name}: {COUNTS[name].format(turns=evaluation.turns, item=asked.item)}"
    other = _OTHER[asked.over]
    yield f"over_{other}: {asked.main} {breakdown.OVER[other]}."
    yield breakdown.INTERVALS[asked.cluster]
    yield evaluation.compared.sentence
    if asked.relevant != 1:
        yield f"Relevant is a grade of {asked.relevant} or more; nDCG takes the grades as they are."
    if evaluation.barren:
        yield (
            f"{count(evaluation.barren, 'turn of the qrels has', 'turns of the qrels have')} no relevant {asked.item}: "
            "what counts relevant ones is 0 there, as in trec_eval."
        )
    beside = [score.counts["beside"] for score in evaluation.main if score.counts["beside"]]
    if beside:
        turns = str(min(beside)) if min(beside) == max(beside) else f"{min(beside)} to {max(beside)}"
        each = " each" if len(beside) > 1 and min(beside) == max(beside) else ""
        yield f"Turns that the qrels lack count nowhere: {count(len(beside), 'run has', 'runs have')} {turns}{each}."


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
