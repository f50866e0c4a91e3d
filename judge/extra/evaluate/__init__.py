"""Evaluate: the measures that the tracks publish, over runs and grades.

breakdown         runs taken apart by topic, depth of the turn, and need of the user's PTKB, and every two runs compared
intake            runs as rankings of passages or of PTKB statements, from the formats of the tracks and from TREC runs
responses         `judge evaluate responses`; graded: runs of responses under the grades of a criterion
measured          `judge evaluate passages` and `statements`
spans             `judge evaluate spans`; span_scores: predicted spans as RCD-2020 measured them
qrels             `judge evaluate qrels`; sets: agreement and holes; set_rankings: runs by each set

Here is one run under one measure: the value of every turn as an array, and their mean with its interval.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Literal

from judge.errors import refuse
from judge.io.files import line_problem, numbered_lines
from judge.io.ids import Cluster, cluster_of, natural_key, topic_of
from judge.io.text import escape_cell, shown
from judge.records import Estimate, Problem, Record
from judge.stats.means import mean_interval

Over = Literal["qrels", "answered", "worst"]
"""qrels: every turn of the qrels, and a turn that the run did not answer counts 0 (`trec_eval -c`). answered: the turns
of the qrels that the run answered (`trec_eval` without `-c`). worst: every turn of the qrels, and one without a grade
counts the worst grade of the scale, as in leaderboards.
"""


class MeasuredRun(Record, frozen=True):
    """A run under a measure."""

    run_id: str
    measure: str
    over: Over
    estimate: Estimate
    """The mean over the turns; the interval is over topics."""
    turns: dict[str, float]
    """Turn to its value, in natural order."""
    unjudged: frozenset[str] = frozenset()
    """Turns of these whose response has no grade, so that the value says nothing of it."""


def measured_run(
    run_id: str,
    measure: str,
    values: Mapping[str, float],
    graded: Iterable[str],
    over: Over,
    *,
    cluster: Cluster = "topic",
    bounds: tuple[float, float] | None = (0.0, 1.0),
    worst: float = 0.0,
    unjudged: frozenset[str] = frozenset(),
) -> MeasuredRun:
    """The mean of a run under a measure.

    `values` are those of the turns that the run answered. An unanswered turn counts `worst` over `worst`.
    """
    if undefined := [turn_id for turn_id, value in values.items() if isnan(value)]:
        raise ValueError(f"{measure} of {run_id} is not a number in turn {undefined[0]}")
    unanswered = {"qrels": 0.0, "answered": None, "worst": worst}[over]
    counted = ((turn_id, values.get(turn_id, unanswered)) for turn_id in sorted(set(graded), key=natural_key))
    turns = {turn_id: float(value) for turn_id, value in counted if value is not None}
    clusters = [cluster_of(topic_of(turn_id), cluster) for turn_id in turns]
    estimate = mean_interval(list(turns.values()), clusters, bounds=bounds, what="values")
    return MeasuredRun(run_id=run_id, measure=measure, over=over, estimate=estimate, turns=turns, unjudged=unjudged)


def board_lines(form: str, scores: Sequence[MeasuredRun], *, turns: bool = False) -> str:
    """The lines of a board in the form of another tool (`BOARDS`); with `turns`, with the value of every turn.

    ir_measures prints one run and leaves its name out; here it comes first.
    """
    if form == "trec_eval":
        return _trec_eval_lines(scores, turns=turns)
    whole = "all" if turns or form != "ir_measures" else ""
    lines = list[str]()
    for each in scores:
        values = {**(each.turns if turns else {}), whole: each.estimate.value}
        lines += [BOARDS[form](each, of, value) + "\n" for of, value in values.items() if value is not None]
    return "".join(lines)


def _trec_eval_lines(scores: Sequence[MeasuredRun], *, turns: bool) -> str:
    """A block for each run under its `runid` line, in which the turns stand before the mean (`trec_eval -q`)."""
    lines: list[str] = []
    for run_id in dict.fromkeys(each.run_id for each in scores):
        group = [each for each in scores if each.run_id == run_id]
        lines.append(f"{'runid':<22}\tall\t{escape_cell(run_id)}\n")
        every = sorted({turn_id for each in group for turn_id in each.turns}, key=natural_key) if turns else ()
        values = [(each, turn_id, each.turns.get(turn_id)) for turn_id in every for each in group]
        values += [(each, "all", each.estimate.value) for each in group]
        lines += [BOARDS["trec_eval"](each, of, value) + "\n" for each, of, value in values if value is not None]
    return "".join(lines)


def read_board(path: Path, form: str) -> dict[tuple[str, str, str], float]:
    """Run, measure, and turn or `all`, to the value in a board of a form; an InputError lists the lines that are none.

    Lines of `trec_eval` stand under a `runid` line, those of `ir_measures` begin with the run, as `board_lines` writes.
    """
    values: dict[tuple[str, str, str], float] = {}
    problems: list[Problem] = []
    run_id = ""
    for number, line in numbered_lines(path):
        cells = [cell.strip() for cell in line.split("\t")]
        if form == "trec_eval" and cells[0] == "runid" and len(cells) == 3:
            run_id = cells[2]
            continue
        try:
            if form == "jsonl":
                row = json.loads(line)
                cells = [str(row[name]) for name in ("run_id", "measure", "topic_id", "value")]
            elif form == "trec_eval":
                cells.insert(0, run_id)
            elif form == "ir_measures":
                cells = [cells[0], cells[-2], cells[1] if len(cells) == 4 else "all", cells[-1]]
            run, measure, turn, value = cells
            if not isfinite(float(value)):
                raise ValueError(value)
            repeated = (run, measure, turn) in values
            values[run, measure, turn] = float(value)
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            problems.append(line_problem("wrong_line", path, number, f"expected a line of {form}, found {shown(line)}"))
            continue
        if repeated:
            problems.append(line_problem("repeated_line", path, number, f"a second value of {shown(measure)}"))
    refuse(problems, f"{path}: not a board in the form of {form}")
    return values


def _cells(*cells: str) -> str:
    return "\t".join(escape_cell(cell) for cell in cells if cell)


BOARDS: dict[str, Callable[[MeasuredRun, str, float], str]] = {
    "trec_eval": lambda run, of, value: f"{run.measure:<22}\t{of}\t{value:.4f}",
    "ir_measures": lambda run, of, value: _cells(run.run_id, of, run.measure, f"{value:.4f}"),
    "tot": lambda run, of, value: _cells(run.run_id, run.measure, of, f"{value:.4f}"),
    "jsonl": lambda run, of, value: json.dumps(
        {"run_id": run.run_id, "topic_id": of, "measure": run.measure, "value": value}
    ),
}
"""Form to its line of a run, a turn or `all`, and the value; `tot` and `jsonl` are TREC AutoJudge's."""
