"""The runs that grades of passages are for, ranked by people's grades and by each judge's."""

from collections.abc import Sequence
from dataclasses import replace

from judge.ask.results import Labels
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.gold.rows import GoldRow, deciding
from judge.io.ids import column, passage_turn_id
from judge.io.steps import Steps
from judge.jobs.calibration.inputs import CalibrationInputs
from judge.jobs.calibration.labels import LabeledGold
from judge.plugins import need
from judge.pool.records import Pool
from judge.pool.run_choice import DEFAULT_MEASURE
from judge.stats.means import consensus
from judge.units import UNITS

_Grades = dict[str, dict[str, int]]


def with_rankings(
    inputs: CalibrationInputs, panels: Sequence[Panel], labeled: LabeledGold, steps: Steps
) -> tuple[Panel, ...]:
    """The panels of passages, with the plan's runs by people's grades and by those of each judge.

    A judge's grades count whether people graded the same passages or not, as in qrels that are used.
    """
    plan = inputs.plan
    if not plan.runs:
        return tuple(panels)
    rank = need("rankings.passages", "--runs")
    by_judge = {(labels.judge, labels.prompt): labels for labels in labeled.labels}
    pool = next((labels.pool for labels in labeled.labels if labels.pool is not None), None)
    ranked: list[Panel] = []
    for panel in panels:
        if not UNITS[panel.unit].listed:
            raise UsageError(f"--runs: ranks runs by grades of passages, and {panel.criterion} is of {panel.unit}s")
        by_runs = rank(
            plan.runs,
            plan.measure or DEFAULT_MEASURE,
            people=(", ".join(map(str, plan.gold)), _people(panel.criterion, labeled.rows, _passages(pool))),
            judges=[(judge.name, _judge(by_judge[judge.judge, judge.prompt])) for judge in panel.columns],
            cluster=plan.cluster,
            steps=steps,
        )
        columns = [replace(judge, by_runs=of_judge) for judge, of_judge in zip(panel.columns, by_runs, strict=True)]
        ranked.append(replace(panel, columns=tuple(columns)))
    return tuple(ranked)


def _passages(pool: Pool | None) -> dict[str, str]:
    """The passages of a pool by the ids that they have there, as columns of qrels; empty of another pool."""
    if pool is None or not UNITS[pool.unit].listed:
        return {}
    return {response.response_id: column(response.listed_as) for response in pool.responses}


def _people(criterion: str, rows: Sequence[GoldRow], names: dict[str, str]) -> _Grades:
    """What people gave each passage, without what is held out for a test.

    Of several assessors `consensus` counts, and an adjudication instead of it.
    """
    given: dict[str, dict[str, list[GoldRow]]] = {}
    for row in rows:
        if row.criterion == criterion and row.split != "test" and row.response_id is not None:
            of_turn = given.setdefault(passage_turn_id(row.turn_id), {})
            of_turn.setdefault(names.get(row.response_id, row.response_id), []).append(row)
    grades: _Grades = {}
    for turn_id, of_turn in given.items():
        for passage_id, group in of_turn.items():
            grades.setdefault(turn_id, {})[passage_id] = consensus([row.grade for row in deciding(group)])
    return grades


def _judge(labels: Labels) -> _Grades:
    """What the first sample of a judge gave each passage."""
    names = _passages(labels.pool)
    grades: _Grades = {}
    for label in labels.labels:
        if label.sample == 0 and label.grade is not None:
            passage_id = names.get(label.response_id, label.response_id)
            grades.setdefault(passage_turn_id(label.turn_id), {})[passage_id] = label.grade
    return grades
