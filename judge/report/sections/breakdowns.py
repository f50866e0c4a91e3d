"""The runs by topic and by the depth of the turn. Pure."""

from collections.abc import Iterator
from typing import Any

from judge.extra.evaluate.breakdown import Reading, TurnFacts, by_group, groups_of, turn_facts
from judge.extra.evaluate.scores import MeasuredRun
from judge.io.cells import count
from judge.io.ids import cluster_of, topic_of
from judge.io.table import Mark, Plot, Table
from judge.pool.conversation import depths
from judge.records import Criterion, Estimate
from judge.report.folders import RunFolder
from judge.report.parts import ReportPart, Section
from judge.report.sections.words import titled
from judge.results.rows import worded
from judge.results.turns import run_turns, worst_grade
from judge.stats.means import mean_interval

_NAMES = {"topic": "topic", "depth": "turn of the conversation"}


def breakdowns(folder: RunFolder) -> Iterator[Section]:
    """A table by topic and one by depth for each criterion; what nothing says is left out.

    A dialogue is of all depths.
    """
    kinds = {"topic": "By topic", "depth": "By depth of the conversation"}
    if folder.judged.pool.unit == "dialogue":
        del kinds["depth"]
    parts: dict[str, list[ReportPart]] = {kind: [] for kind in kinds}
    for criterion in folder.judged.criteria:
        if not any(row.n for row in folder.rows if row.criterion == criterion.name):
            continue
        runs = _runs(folder, criterion)
        facts = turn_facts({turn_id for run in runs for turn_id in run.turns}, depths=depths(folder.judged.pool.turns))
        for kind, sheets in parts.items():
            if sheet := _sheet(folder, criterion, runs, facts, kind):
                sheets.append(sheet)
    for kind, sheets in parts.items():
        if sheets:
            yield Section(f"by-{kind}", kinds[kind], tuple(sheets))


def _runs(folder: RunFolder, criterion: Criterion) -> list[MeasuredRun]:
    """Every run with its grade in each turn, where one without a grade has the worst, as ranks have it."""
    judged, worst = folder.judged, worst_grade(criterion.scale)
    bounds = _bounds(criterion)
    runs = []
    for run in run_turns(judged.pool, judged.results, criterion):
        grades = run.grades(worst)
        clusters = [cluster_of(topic_of(turn_id), judged.cluster) for turn_id in grades]
        mean = mean_interval(list(grades.values()), clusters, bounds=bounds, what="grades")
        runs.append(MeasuredRun(run.run_id, "mean grade", "worst", mean, grades))
    return runs


def _bounds(criterion: Criterion) -> tuple[float, float]:
    grades = [level.grade for level in criterion.scale.levels]
    return float(min(grades)), float(max(grades))


def _sheet(
    folder: RunFolder, criterion: Criterion, runs: list[MeasuredRun], facts: dict[str, TurnFacts], kind: str
) -> Table[Any] | None:
    groups = groups_of(facts, "topic" if kind == "topic" else "depth")
    if len(set(groups.values())) < 2 or not any(run.turns for run in runs):
        return None
    low, high = _bounds(criterion)
    reading = Reading((low, high), criterion.scale.polarity == "higher", folder.judged.cluster)
    grid = by_group(runs, groups, kind, reading)
    # The first column names the measure, which is one and the same here.
    unit = folder.judged.pool.unit
    counted = "turns" if unit == "response" else "dialogues"
    columns: tuple[str, ...] = (_NAMES[kind], counted, "better half", "lowest run", "middle run", "highest run")
    # Of one run, lowest and highest say nothing that its average does not.
    kept = slice(2, None) if len(runs) > 1 else slice(2, 4)
    columns = columns if len(runs) > 1 else (*columns[:2], "average")
    lines = tuple((str(line[1]), *line[kept]) for line in grid)
    marks = tuple((Mark(line[2]),) if isinstance(line[2], Estimate) else () for line in lines)
    sentence = {
        "topic": f"A line for each topic, with {count(len(runs), 'run')}.",
        "depth": "A line for each place in the conversation: 1 is the first question of the user.",
    }[kind]
    if len(runs) > 1:
        sentence += (
            " Every run has a mean grade over the turns of a line. Lowest, middle and highest run: the smallest, the "
            "median and the largest of these means. Better half: the average of the runs whose mean over all turns is "
            "the median or better."
        )
    sentence += " A turn without a grade has the worst one."
    if sum(len(run.turns) for run in runs) < sum(row.turns for row in folder.rows if row.criterion == criterion.name):
        sentence += " Left out: a turn whose grade is lacking through the provider, the budget or a trial."
    if kind == "depth":
        sentence += " The bar is its 95 % range, from 3 topics on."
    title = f"{titled(criterion.name)} {'by topic' if kind == 'topic' else 'by turn'}"
    plot = Plot(f"{columns[2]}, drawn", low, high, marks)
    return Table(lines, columns, title, [worded(sentence, unit)], 2, plot)
