"""Runs under the measures of rankings as tables, and as lines in the names of trec_eval. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from judge.extra.evaluate.breakdown import INTERVALS, OVER, TurnFacts, stacked
from judge.extra.evaluate.paired import RunTable, breakdown, is_known
from judge.extra.evaluate.rankings import Evaluation, other_convention
from judge.extra.evaluate.scores import MeasuredRun
from judge.io.cells import count
from judge.io.table import Cell, Table, tsv


def means(evaluation: Evaluation) -> Table[Any]:
    """A line for each run, best first by the main measure, which has its interval and the letters of tied runs."""
    asked, letters = evaluation.asked, evaluation.compared.letters
    outside = any(run.outside is not None for run in evaluation.runs)
    others = [name for name in asked.measures if name != asked.main]
    columns = ("run", "answered", *(("outside",) if outside else ()), asked.main, "letters")
    columns = (*columns, f"over_{other_convention(asked.over)}")
    lines: list[tuple[Cell, ...]] = []
    for run in evaluation.runs:
        of = {score.measure: score.estimate for score in run.scores}
        lines.append(
            (
                *(run.run_id, run.answered),
                *((run.outside,) if outside else ()),
                of[asked.main],
                letters.get(run.run_id),
                run.other,
                *(of[name].value for name in others),
            )
        )
    turns = count(evaluation.turns, "turn")
    title = f"{asked.items} by {evaluation.assessment}: {turns}, {OVER[asked.over]}"
    return Table(lines, (*columns, *others), title, _notes(evaluation))


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

    Args:
        evaluations: At least one.
        facts: Of all turns that are assessed.
        table: What the tables have a line for; no table where nothing says how turns are grouped.
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


def trec_eval_scores(evaluations: Sequence[Evaluation]) -> tuple[MeasuredRun, ...]:
    """Every run under every measure in the names of trec_eval; of several assessments, runs as `assessment/run`."""
    return tuple(
        msgspec.structs.replace(score, measure=_trec_eval_name(score.measure, evaluation.asked.relevant))
        for evaluation in evaluations
        for score in named_scores(evaluation, several=len(evaluations) > 1)
    )


def named_scores(evaluation: Evaluation, *, several: bool) -> tuple[MeasuredRun, ...]:
    """Every run under every measure; with `several` assessments, runs as `assessment/run`."""
    if not several:
        return evaluation.scores
    return tuple(
        msgspec.structs.replace(score, run_id=f"{evaluation.assessment}/{score.run_id}") for score in evaluation.scores
    )


def _notes(evaluation: Evaluation) -> Iterator[str]:
    asked = evaluation.asked
    yield f"answered: turns of the {evaluation.turns} for which the run names a {asked.item}."
    if any(run.outside is not None for run in evaluation.runs):
        yield "outside: statements that are not in the topic's PTKB; they keep their places and match nothing."
    yield f"over_{other_convention(asked.over)}: {asked.main} {OVER[other_convention(asked.over)]}."
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
