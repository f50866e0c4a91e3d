"""How many items have each grade, by turn: what is said of grades by which no runs are ranked. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from judge.ask.records import Failure, Judgment
from judge.io.ids import natural_key
from judge.io.table import Column, RecordColumns, Table, fields, sequence
from judge.io.text import count, markdown_cell
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.units import UNITS

UNABLE = "unable"
"""What stands in place of a grade where the judge said that it cannot grade."""
MISSING = "missing"
"""What stands in place of a grade where there is none."""
COLUMNS: RecordColumns = fields("criterion turn_id grade items")


class GradeCount(Record, frozen=True):
    """How many of a turn's items have one grade."""

    criterion: str
    turn_id: str
    grade: str
    """A grade of the scale, `unable`, or `missing`."""
    items: int


def grade_counts(
    pool: Pool, results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]
) -> tuple[GradeCount, ...]:
    """A row for each criterion, turn and grade, by turn in natural order, best grade first; those of 0 are left out.

    What was not asked about is missing.
    """
    results = sequence(results)
    sizes = Counter(response.turn_id for response in pool.responses)
    turn_ids = sorted(sizes, key=natural_key)
    rows: list[GradeCount] = []
    for criterion in criteria:
        given: dict[str, Counter[str]] = {turn_id: Counter() for turn_id in turn_ids}
        for result in results:
            if isinstance(result, Judgment) and result.criterion == criterion.name and result.turn_id in given:
                given[result.turn_id][UNABLE if result.unable else f"{result.grade:g}"] += 1
        for turn_id, counts in given.items():
            counts[MISSING] = sizes[turn_id] - counts.total()
            for grade in _grades(criterion):
                if counts[grade]:
                    row = GradeCount(criterion=criterion.name, turn_id=turn_id, grade=grade, items=counts[grade])
                    rows.append(row)
    return tuple(rows)


def _grades(criterion: Criterion) -> list[str]:
    """What may stand as a grade, the best one first."""
    levels = sorted((level.grade for level in criterion.scale.levels), reverse=criterion.scale.polarity == "higher")
    return [*(f"{grade:g}" for grade in levels), UNABLE, MISSING]


def level_table(rows: Iterable[GradeCount], criterion: Criterion) -> Table[Any]:
    """A line for each level of a criterion, over all turns."""
    totals: Counter[str] = Counter()
    positive: set[str] = set()
    turn_ids: set[str] = set()
    good = {f"{grade:g}" for grade in criterion.scale.positive}
    for row in rows:
        if row.criterion == criterion.name:
            totals[row.grade] += row.items
            turn_ids.add(row.turn_id)
            if row.grade in good:
                positive.add(row.turn_id)
    nouns = UNITS[criterion.unit].nouns
    descriptions = {f"{level.grade:g}": level.description for level in criterion.scale.levels}
    lines: list[tuple[object, ...]] = []
    for grade in _grades(criterion):
        if grade in descriptions or totals[grade]:
            lines.append((grade, totals[grade], totals[grade] / max(1, totals.total()), descriptions.get(grade, "")))
    note = (
        f"{count(len(positive), nouns.turn)} of {len(turn_ids)} have a {nouns.response} of grade "
        f"{' or '.join(map(str, sorted(criterion.scale.positive)))}."
    )
    columns = (Column("grade"), Column(nouns.responses), Column("share", places=3), Column("meaning"))
    return Table(lines, columns, criterion.name, (note,))


def turn_table(rows: Iterable[GradeCount], criterion: Criterion) -> Table[Any]:
    """A line for each turn of a criterion."""
    of_turns: dict[str, Counter[str]] = {}
    for row in rows:
        if row.criterion == criterion.name:
            of_turns.setdefault(row.turn_id, Counter())[row.grade] += row.items
    grades = [grade for grade in _grades(criterion) if any(counts[grade] for counts in of_turns.values())]
    nouns = UNITS[criterion.unit].nouns
    columns = [Column(nouns.turn), Column(nouns.responses), *map(Column, grades)]
    lines = [(turn_id, counts.total(), *(counts[grade] for grade in grades)) for turn_id, counts in of_turns.items()]
    return Table(lines, columns, f"{criterion.name} by {nouns.turn}")


def counts_markdown(
    rows: Sequence[GradeCount], banner: str, criteria: Sequence[Criterion], notes: Iterable[str] = ()
) -> str:
    """The levels of each criterion, and its turns, under the banner and the notes."""
    parts = [f"# Grades\n\n**{markdown_cell(banner)}**\n", *(f"\n{markdown_cell(note)}\n" for note in notes)]
    for criterion in criteria:
        levels = level_table(rows, criterion)
        turns = turn_table(rows, criterion)
        parts.append(f"\n## {markdown_cell(criterion.name)}\n\nPrompt {markdown_cell(criterion.prompt_id)}.\n\n")
        parts.append(f"{levels.body(words={3})}\n\n{markdown_cell(levels.notes[0])}\n\n")
        parts.append(f"{turns.body(words={0})}\n")
    return "".join(parts)
