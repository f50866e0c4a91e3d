"""Evaluate: the measures that the tracks publish, over runs and grades.

breakdown         runs taken apart by topic, depth of the turn, and need of the user's PTKB, and every two runs compared
intake            runs as rankings of passages or of PTKB statements, from the formats of the tracks and from TREC runs
responses         `judge evaluate responses`; graded: runs of responses under the grades of a criterion
measured          `judge evaluate passages` and `statements`; corrected: passages corrected by people's grades of a part
spans             `judge evaluate spans`; span_scores: predicted spans as RCD-2020 measured them
qrels             `judge evaluate qrels`; sets: agreement and holes; set_rankings: runs by each set
ranked            runs by grades of people and of judges, for `judge calibrate --runs`

Here is one run under one measure: the value of every turn, and their mean with its interval.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Literal

from judge.errors import refuse
from judge.io.files import line_problem, numbered_lines
from judge.io.ids import Cluster, groups_of, natural_key, topic_of
from judge.io.text import escape_cell, shown
from judge.records import Estimate, Problem
from judge.results.rows import Score, mean_over

Over = Literal["qrels", "answered", "worst"]
"""qrels: every turn of the qrels, and a turn that the run did not answer counts 0 (`trec_eval -c`). answered: the turns
of the qrels that the run answered (`trec_eval` without `-c`). worst: every turn of the qrels, and one without a grade
counts the worst grade of the scale, as in leaderboards.
"""


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
) -> Score:
    """A run under a measure, with its value of each turn.

    `values` are those of the turns that the run answered. An unanswered turn counts `worst` over `worst`.
    """
    if undefined := [turn_id for turn_id, value in values.items() if isnan(value)]:
        raise ValueError(f"{measure} of {run_id} is not a number in turn {undefined[0]}")
    unanswered = {"qrels": 0.0, "answered": None, "worst": worst}[over]
    counted: dict[str, float] = {}
    for turn_id in sorted(set(graded), key=natural_key):
        value = values.get(turn_id, unanswered)
        if value is not None:
            counted[turn_id] = float(value)
    return Score(
        run_id=run_id,
        criterion=measure,
        mean=mean_of_turns(counted, cluster, bounds),
        values=counted,
        cluster=cluster,
    )


def mean_of_turns(values: Mapping[str, float], cluster: Cluster, bounds: tuple[float, float] | None) -> Estimate:
    """The mean over turns, with its interval over topics or themes."""
    return mean_over(((topic_of(turn_id), value) for turn_id, value in values.items()), cluster, bounds, "values")


def board_lines(form: str, scores: Sequence[Score], *, turns: bool = False) -> str:
    """The lines of a board in the form of another tool (`BOARDS`); with `turns`, with the value of every turn.

    ir_measures prints one run and leaves its name out; here it comes first.
    """
    if form == "trec_eval":
        return _trec_eval_lines(scores, turns=turns)
    whole = "all" if turns or form != "ir_measures" else ""
    lines = list[str]()
    for score in scores:
        values = {**(score.values if turns else {}), whole: score.mean.value}
        lines += [BOARDS[form](score, turn, value) + "\n" for turn, value in values.items() if value is not None]
    return "".join(lines)


def _trec_eval_lines(scores: Sequence[Score], *, turns: bool) -> str:
    """A block for each run under its `runid` line, in which the turns stand before the mean (`trec_eval -q`)."""
    lines: list[str] = []
    for run_id, group in groups_of((score.run_id, score) for score in scores).items():
        lines.append(f"{'runid':<22}\tall\t{escape_cell(run_id)}\n")
        every = sorted(set().union(*(score.values for score in group)), key=natural_key) if turns else ()
        values: list[tuple[Score, str, float | None]] = []
        for turn_id in every:
            values.extend((score, turn_id, score.values.get(turn_id)) for score in group)
        values += [(score, "all", score.mean.value) for score in group]
        lines += [BOARDS["trec_eval"](score, turn, value) + "\n" for score, turn, value in values if value is not None]
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


BOARDS: dict[str, Callable[[Score, str, float], str]] = {
    "trec_eval": lambda run, turn, value: f"{run.criterion:<22}\t{turn}\t{value:.4f}",
    "ir_measures": lambda run, turn, value: _cells(run.run_id, turn, run.criterion, f"{value:.4f}"),
    "tot": lambda run, turn, value: _cells(run.run_id, run.criterion, turn, f"{value:.4f}"),
    "jsonl": lambda run, turn, value: json.dumps(
        {"run_id": run.run_id, "topic_id": turn, "measure": run.criterion, "value": value}
    ),
}
"""Form to its line of a run, a turn or `all`, and the value; `tot` and `jsonl` are TREC AutoJudge's."""
