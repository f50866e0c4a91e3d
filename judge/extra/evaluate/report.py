"""What a report says by the measures of `evaluate`: runs by topic and depth, and how far two folders' grades agree."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from judge.calibrate.intake import same_grades
from judge.errors import JudgeError
from judge.extra.evaluate import measured_run
from judge.extra.evaluate.breakdown import Reading, TurnFacts, by_group, groups_of, turn_facts
from judge.extra.evaluate.qrels import QrelsPlan, compare_qrels
from judge.extra.evaluate.sets import SetsAgreement
from judge.io.table import Cell, Column, Plot, Table, as_column
from judge.io.text import count
from judge.pool.conversation import depths
from judge.records import Criterion, Estimate, JudgedUnit, Scale
from judge.report import ReportPart, Said, Section
from judge.report.folders import ReportedFolder, RunFolder
from judge.report.sections import capped, titled
from judge.report.sections.boards import called
from judge.results.citations import headlines_of
from judge.results.rows import Score
from judge.results.turns import run_turns, worst_grade
from judge.units import UNITS

_STATISTICS = ("percent", "kappa", "wkappa", "bias")
"""What is said of two judges, in this order."""
_NAMES = {"topic": "topic", "depth": "turn of the conversation"}
MOST_LINES = 500
"""The most lines of a table by topic or by depth; a page of many thousand opens in no browser."""
_LINES = {"topic": "topics", "depth": "places in the conversation"}
_WORST = 100
"""The lines that stand for more of them."""


def breakdowns(folder: RunFolder) -> Iterator[Section]:
    """A table by topic and one by depth for each criterion; what nothing says is left out.

    A dialogue is of all depths.
    """
    kinds = {"topic": "By topic", "depth": "By depth of the conversation"}
    if UNITS[folder.judged.pool.unit].by_topic:
        del kinds["depth"]
    parts: dict[str, list[ReportPart]] = {kind: [] for kind in kinds}
    for criterion in headlines_of(folder.judged.criteria):
        if not any(row.counts["n"] for row in folder.tables.leaderboard if row.criterion == criterion.name):
            continue
        runs = _runs(folder, criterion)
        turn_ids = chain.from_iterable(run.values for run in runs)
        facts = turn_facts(turn_ids, depths=depths(folder.judged.pool.turns))
        for kind, sheets in parts.items():
            if sheet := _sheet(folder, criterion, runs, facts, kind):
                sheets.append(sheet)
    for kind, sheets in parts.items():
        if sheets:
            yield Section(f"by-{kind}", kinds[kind], tuple(sheets))


def _runs(folder: RunFolder, criterion: Criterion) -> list[Score]:
    """Every run with its grade in each turn, where one without a grade has the worst, as ranks have it."""
    judged = folder.judged
    scores: list[Score] = []
    for run in run_turns(judged.pool, judged.results, criterion):
        grades = run.grades(worst_grade(criterion.scale))
        bounds = _ends(criterion)
        scores.append(
            measured_run(run.run_id, "mean grade", grades, grades, "worst", cluster=judged.cluster, bounds=bounds)
        )
    return scores


def _ends(criterion: Criterion) -> tuple[float, float]:
    low, high = criterion.scale.ends
    return float(low), float(high)


def _sheet(
    folder: RunFolder, criterion: Criterion, runs: list[Score], facts: dict[str, TurnFacts], kind: str
) -> Table[Any] | None:
    groups = groups_of(facts, "topic" if kind == "topic" else "depth")
    if len(set(groups.values())) < 2 or not any(run.values for run in runs):
        return None
    low, high = _ends(criterion)
    reading = Reading((low, high), criterion.scale.polarity == "higher", folder.judged.cluster)
    unit = UNITS[folder.judged.pool.unit]
    nouns = unit.nouns
    several = len(runs) > 1
    # Of one run, lowest and highest say nothing that its average does not.
    averages = (_BETTER, "lowest run", _MIDDLE, "highest run") if several else ("average",)
    columns = (_NAMES[kind], nouns.responses if unit.by_topic else nouns.turns, *averages)
    # The first column names the measure, which is one and the same here.
    lines = tuple((str(line[1]), *line[2 : 3 + len(averages)]) for line in by_group(runs, groups, kind, reading))
    number = len(lines)
    if number > MOST_LINES:
        lines = _worst(lines, reading)
    marks = tuple(((line[2], False),) if isinstance(line[2], Estimate) else () for line in lines)
    sentence = {
        "topic": f"A line for each topic, with {count(len(runs), 'run')}.",
        "depth": "A line for each place in the conversation: 1 is the first question of the user.",
    }[kind]
    if number > len(lines):
        sentence = (
            f"Of {number:,} {_LINES[kind]}, the {len(lines)} with the worst average, with {count(len(runs), 'run')}; "
            f"`judge evaluate responses --by {kind}` has all of them."
        )
    if several:
        sentence += f" Every run has a mean grade over the {nouns.turns} of a line."
    sentence += f" A {nouns.turn} without a grade has the worst one."
    board = folder.tables.leaderboard
    if sum(len(run.values) for run in runs) < sum(
        row.counts["turns"] for row in board if row.criterion == criterion.name
    ):
        sentence += f" Left out: a {nouns.turn} whose grade is lacking through the provider, the budget or a trial."
    if kind == "depth":
        sentence += " The bar is its 95 % range, from 3 topics on."
    title = f"{titled(criterion.name)} {'by topic' if kind == 'topic' else 'by turn'}"
    plot = Plot(f"{as_column(columns[2]).name} with its 95 % range", low, high, marks)
    return Table(rows=lines, columns=columns, title=title, notes=[sentence], places=2, plot=plot)


def _worst(lines: Sequence[tuple[Cell, ...]], reading: Reading) -> tuple[tuple[Cell, ...], ...]:
    """The lines with the worst averages, in the order of all."""
    sign = 1 if reading.higher_is_better else -1

    def from_worst(place: int) -> float:
        average = lines[place][2]
        value = average.value if isinstance(average, Estimate) else None
        # A line without an average is not among the worst.
        return math.inf if value is None else sign * value

    places = sorted(range(len(lines)), key=from_worst)[:_WORST]
    return tuple(lines[place] for place in sorted(places))


_BETTER = Column("better half", about="the average of the runs whose mean over all lines is the median or better")
_MIDDLE = Column("middle run", about="the median of the runs' means")


def between(folders: Sequence[ReportedFolder]) -> dict[str, list[ReportPart]]:
    """By criterion, how far the grades of the first folder of `judge run` agree with those of each other one."""
    parts: dict[str, list[ReportPart]] = {}
    runs = [folder for folder in folders if isinstance(folder, RunFolder)]
    for other in runs[1:]:
        theirs = {criterion.name: criterion for criterion in other.judged.criteria}
        for ours in runs[0].judged.criteria:
            if ours.name in theirs:
                parts.setdefault(ours.name, []).extend(_agreement(runs[0], other, ours, theirs[ours.name].scale))
    return parts


def _worst_positive(scale: Scale) -> int:
    return min(scale.positive) if scale.polarity == "higher" else max(scale.positive)


def _agreement(first: RunFolder, other: RunFolder, ours: Criterion, scale: Scale) -> Iterator[ReportPart]:
    """How far the grades of two folders agree under a criterion, which has `scale` in the other one."""
    binary = not same_grades(ours.scale, scale)
    positive = (_worst_positive(ours.scale), _worst_positive(scale)) if binary else None
    a = first.judged.path
    b = other.judged.path
    cluster = first.judged.cluster
    try:
        plan = QrelsPlan(a=a, b=b, criterion=ours.name, positive=positive, cluster=cluster)
        found = compare_qrels(plan).agreement
    except JudgeError as error:
        # Two pools are no reason to refuse the rest of the report.
        said = str(error)
        for folder in (first, other):
            said = said.replace(str(folder.judged.path), folder.name)
        yield Said(f"The grades of {first.name} and {other.name} are not compared: {capped(said)}", "warn")
        return
    # Of two grades, weighting changes nothing.
    left_out = "wkappa" if len(found.a.scale) == 2 else "kappa"
    names = [name for name in _STATISTICS if name in found.statistics and name != left_out]
    lines = tuple((called(name).replace("judge minus people", "difference"), found.statistics[name]) for name in names)
    marks = tuple(() if name == "bias" else ((found.statistics[name], False),) for name in names)
    low = min([0.0, *(value for name in names[1:-1] if (value := found.statistics[name].low) is not None)])
    weighted = "; weighted, so that a grade two off counts four times one off" if "wkappa" in names else ""
    reading = (
        ("The scales differ, so grades count as positive (1) or not (0). " if binary else "")
        + f"Of the {count(found.items, ours.unit)} that both graded. Same grade: the share with equal grades. Kappa: "
        f"agreement beyond chance, 1 is perfect{weighted}. Difference: the mean of {other.name} less that of "
        f"{first.name}."
    )
    title = f"{first.name} and {other.name}: how far the grades agree"
    yield Table(
        rows=lines,
        columns=("measure", "value"),
        title=title,
        notes=[reading],
        places=2,
        plot=Plot("value", low, 1.0, marks),
    )
    yield _confusion(first.name, other.name, ours.unit, found)


def _confusion(first: str, second: str, unit: JudgedUnit, found: SetsAgreement) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    shares: list[tuple[float | None, ...]] = []
    for grade, counts in zip(found.a.scale, found.confusion, strict=True):
        total = sum(counts)
        lines.append((f"{first}: {grade}", *counts, total))
        shares.append((None, *(n / total if total else None for n in counts), None))
    columns = ("grade", *(f"{second}: {grade}" for grade in found.b.scale), "in all")
    reading = (
        f"A line for each grade of {first}, a column for each of {second}: how many {unit}s have both. "
        "On the diagonal they agree; the list of judgments begins with those on which they do not."
    )
    return Table(lines, columns, f"Grades of {first} beside those of {second}", [reading], shares=tuple(shares))
