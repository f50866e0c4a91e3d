"""Why grades of a judged pool differ, and how many topics the next comparison of its runs needs. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from judge.ask.records import Failure, Judgment
from judge.gold.rows import GoldByResponse, GoldRow, deciding, independent
from judge.io.ids import natural_key, topic_of
from judge.io.text import count
from judge.pool.records import Pool
from judge.records import Criterion, Estimate, Record
from judge.results.citations import Measure
from judge.results.gold import gold_grades, measured_gold
from judge.results.turns import RunTurns, run_turns, worst_grade
from judge.stats import generalizability
from judge.stats.run_differences import FEWEST_TOPICS_COMPARED
from judge.stats.tables import Undefined

TOPICS = (10, 25, 50, 100, 200)
"""Numbers of topics that are shown."""
LABELS = (1, 2, 3)
"""Labels of a response that are shown where several assessors graded some."""

Graders = Literal["judge", "assessors", "judge - assessors"]
"""Whose grades are looked at; the last is the judge's grade less the mean of the assessors'."""
Goal = Literal["half_width", "difference"]
"""An interval of a difference of two runs, or a true difference to be found with probability .8."""


class PlannedDesign(Record, frozen=True):
    """What to expect of means over so many topics."""

    topics: int
    labels: int
    """Labels of a response."""
    grades: int
    """Labels that each run needs."""
    mean: float
    """Half the width of the 95 % interval of a run's mean."""
    difference: float
    """Half the width of that of a difference of two runs."""
    detectable: float
    """The true difference of two runs that is found with probability .8."""
    reliability: generalizability.Reliability


class TopicsNeeded(Record, frozen=True):
    """How many topics reach a goal."""

    goal: Goal
    size: float
    labels: int
    """Labels of a response."""
    topics: Estimate


class Pilot(Record, frozen=True):
    """The grades of one criterion as a pilot of the next collection."""

    criterion: str
    graders: Graders
    variance: generalizability.GradeVariance | Undefined
    turns_per_topic: float | None = None
    """Turns of a planned topic."""
    designs: tuple[PlannedDesign, ...] = ()
    needed: tuple[TopicsNeeded, ...] = ()
    reason: str | None = None
    """Why nothing is planned."""


def pilots(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criterion: Criterion,
    gold: GoldByResponse,
    goals: Mapping[Goal, float],
    turns: int | None = None,
) -> tuple[Pilot, ...]:
    """The judge's grades as a pilot; with gold also the assessors', and by how much the two differ.

    As in the rank of a run, a turn has the worst grade where the lack of a grade counts against the run. Under a
    measure of citations, the gold is that of responses all of whose citations have gold, as if one assessor had given
    it. `turns`: those of a planned topic, by default as many as in the pilot.
    """
    runs = run_turns(pool, results, criterion)
    worst = worst_grade(criterion.scale)
    judged: list[_Grade] = []
    for run in runs:
        judged.extend((value, run.run_id, turn_id, None) for turn_id, value in run.grades(worst).items())
    outcomes = [_pilot(criterion, "judge", _table(judged), goals, turns)]
    labels_of = _labels(pool, runs, criterion, gold, independent)
    if labels_of:
        deciding_of = _labels(pool, runs, criterion, gold, deciding)
        assessed: list[_Grade] = []
        apart: list[_Grade] = []
        for run in runs:
            for response in (*(response for response, _ in run.graded), *run.failed, *run.left_out):
                for value, assessor in labels_of.get(response.response_id, ()):
                    assessed.append((value, run.run_id, response.turn_id, assessor))
            for response, judgment in run.graded:
                if labels := deciding_of.get(response.response_id):
                    difference = judgment.grade - sum(value for value, _ in labels) / len(labels)
                    apart.append((difference, run.run_id, response.turn_id, None))
        outcomes.append(_pilot(criterion, "assessors", _table(assessed), goals, turns))
        variance = generalizability.grade_variance(_table(apart))
        reason = variance.reason if isinstance(variance, Undefined) else None
        outcomes.append(Pilot(criterion.name, "judge - assessors", variance, reason=reason))
    return tuple(outcomes)


def _labels(
    pool: Pool,
    runs: Sequence[RunTurns],
    criterion: Criterion,
    gold: GoldByResponse,
    counted: Callable[[Sequence[GoldRow]], Sequence[GoldRow]],
) -> dict[str, list[tuple[float, str | None]]]:
    """Response id to what each assessor gave in the rows that are counted.

    The assessor is None of what labels of citations come to.
    """
    labels: dict[str, list[tuple[float, str | None]]] = {}
    if not isinstance(criterion, Measure):
        for (response_id, name), rows in gold.items():
            if name == criterion.name and rows:
                labels[response_id] = [(float(row.grade), row.assessor) for row in counted(rows)]
        return labels
    grades = gold_grades(gold, criterion.of, "gold")
    if grades:
        for response_id, measured in measured_gold(criterion, pool, runs, grades).items():
            if measured.known and measured.whole:
                labels[response_id] = [(measured.grade, None)]
    return labels


_Grade = tuple[float, str, str, str | None]
"""A value, its run, turn and assessor; None for the assessor where it is the judge's."""


def _table(grades: Iterable[_Grade]) -> generalizability.GradeTable:
    """Values, runs, turns and assessors as columns, turns in natural order."""
    rows = sorted(grades, key=lambda row: natural_key(row[2]))
    values = [row[0] for row in rows]
    runs = [row[1] for row in rows]
    turns = [row[2] for row in rows]
    assessors = [assessor for *_, assessor in rows if assessor is not None]
    return generalizability.GradeTable(
        values=values, runs=runs, topics=list(map(topic_of, turns)), turns=turns, assessors=assessors or None
    )


def _pilot(
    criterion: Criterion,
    graders: Graders,
    table: generalizability.GradeTable,
    goals: Mapping[Goal, float],
    turns: int | None,
) -> Pilot:
    variance = generalizability.grade_variance(table)
    without_plan = partial(Pilot, criterion.name, graders, variance)
    if isinstance(variance, Undefined):
        return without_plan(reason=variance.reason)
    if turns is not None and not variance.has("turn"):
        return without_plan(reason="every topic has one turn, which says nothing of longer topics")
    if variance.topics < FEWEST_TOPICS_COMPARED:
        return without_plan(reason=f"fewer than {FEWEST_TOPICS_COMPARED} topics")
    per_topic, spread = (variance.turns_per_topic, variance.spread) if turns is None else (turns, 1.0)
    labels = LABELS if variance.has("label") else LABELS[:1]
    designs = [generalizability.Design(per_topic, spread, n) for n in labels]
    if not generalizability.difference_variance(variance, designs[0]) > 0:
        return without_plan(reason="the runs differ by the same on all topics")
    factors = {"half_width": generalizability.half_width_factor, "difference": generalizability.power_factor}
    without = generalizability.without_parts(table) if goals else ()
    planned: list[PlannedDesign] = []
    for design in designs:
        planned.extend(_planned(variance, design, topics) for topics in TOPICS)
    needed: list[TopicsNeeded] = []
    for goal, size in goals.items():
        for design in designs:
            topics = generalizability.planned_topics(variance, without, size, factors[goal], design)
            needed.append(TopicsNeeded(goal, size, design.labels, topics))
    return Pilot(
        criterion=criterion.name,
        graders=graders,
        variance=variance,
        turns_per_topic=designs[0].turns,
        designs=tuple(planned),
        needed=tuple(needed),
    )


def _planned(of: generalizability.GradeVariance, design: generalizability.Design, topics: int) -> PlannedDesign:
    sd, sd_of_two = (
        (variance(of, design) / topics) ** 0.5
        for variance in (generalizability.mean_variance, generalizability.difference_variance)
    )
    mean, difference = (generalizability.half_width_factor(topics) * each for each in (sd, sd_of_two))
    grades = round(topics * design.turns * design.labels)
    detectable = generalizability.power_factor(topics) * sd_of_two
    reliable = generalizability.reliability(of, design, topics)
    return PlannedDesign(
        topics=topics,
        labels=design.labels,
        grades=grades,
        mean=mean,
        difference=difference,
        detectable=detectable,
        reliability=reliable,
    )


def warnings(found: Sequence[Pilot]) -> tuple[str, ...]:
    """What limits the figures, a sentence each."""
    lines = []
    for pilot in found:
        if isinstance(pilot.variance, Undefined):
            continue
        name = f"{pilot.criterion}, {pilot.graders}"
        if negative := [row.source for row in pilot.variance.components if row.estimate < 0]:
            lines.append(f"{name}: the estimate of {', '.join(negative)} is negative and taken as 0")
        if pilot.variance.topics < FEWEST_TOPICS_COMPARED:
            lines.append(
                f"{name}: {count(pilot.variance.topics, 'topic')}: the variances may be far off, and nothing is "
                f"planned by them; expected {FEWEST_TOPICS_COMPARED} or more"
            )
    return tuple(lines)
