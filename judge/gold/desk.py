"""Labels that were given at a desk (`judge serve assess`), read from its store as grades.

Each assessor labels in a random order of their own. So what somebody has labeled before the work is finished is a
random sample of what they were dealt, and its inclusion probability is known.
"""

import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from judge.errors import UsageError
from judge.gold.draft import Draft, ImportOptions, SourceContent
from judge.io.text import count, shown
from judge.records import Problem

SCHEMA = "judge-labels/1"
"""What a store says of itself."""
_FIELDS = ("turn_id", "topic_id", "criterion", "grade", "assessor", "response_id", "text_sha256", "run_id", "made",
           "inclusion_probability", "stratum")  # fmt: skip
_SELECT = f"SELECT item, comment, {', '.join(_FIELDS)} FROM labels ORDER BY item, criterion, assessor"  # noqa: S608 - names of columns only
_TASKS = (
    "SELECT task.item, task.criterion, assessor.name FROM task JOIN assessor USING (assessor) ORDER BY assessor, place"
)

_Task = tuple[int, str, str]
"""Item, criterion and assessor."""


def desk_content(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The store of a desk: the last label of each assessor for each response and criterion.

    A label "unable to judge" is no grade, and is left out. Where labels are still to be given, the probability of the
    plan is multiplied by that with which the response has come up so far.
    """
    if options.plan is not None or "inclusion_probability" in options.constants:
        raise UsageError(
            "a desk knows the plan that its responses were drawn by: --plan and --inclusion do not go here"
        )
    content = SourceContent()
    for path in paths:
        # SQLite would make a file that is not there.
        if not path.is_file():
            content.problems.append(Problem("unreadable", "error", str(path), None, "", "no such store of labels"))
            continue
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
                _read(store, str(path), content)
        # A ValueError is of a text that is no UTF-8, be it of a message.
        except (sqlite3.Error, ValueError) as error:
            message = f"not a store of labels as `judge serve assess` writes it: {error}"
            content.problems.append(Problem("unreadable", "error", str(path), None, "", message))
    return content


def _read(store: sqlite3.Connection, file: str, content: SourceContent) -> None:
    schema = store.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if schema != (SCHEMA,):
        message = f"a store of {shown(schema and schema[0])}, this version of judge reads {SCHEMA}"
        content.problems.append(Problem("wrong_schema", "error", file, None, "", message))
        return
    rows = store.execute(_SELECT).fetchall()
    tasks: list[_Task] = store.execute(_TASKS).fetchall()
    labels = [(item, dict(zip(_FIELDS, values, strict=True))) for item, _, *values in rows]
    labeled = {(item, fields["criterion"], fields["assessor"]) for item, fields in labels}
    reached = come_up(tasks, labeled)
    unable = 0
    for item, fields in labels:
        if fields["grade"] is None:
            unable += 1
            continue
        # What is no number in a damaged store is reported as any other field of a gold row.
        if isinstance(probability := fields["inclusion_probability"], float):
            fields["inclusion_probability"] = probability * reached.get((item, fields["criterion"]), 1.0)
        content.drafts.append(Draft(file, f"item {item}, {fields['criterion']}, {fields['assessor']}", fields))
    if unable:
        content.notes.append(f'{file}: {count(unable, "label")} "unable to judge" left out: no grade')
    if comments := sum(bool(comment) for _, comment, *_ in rows):
        content.notes.append(f"{file}: {count(comments, 'comment')} stay in the store: gold has no field for them")
    if left := len(tasks) - len(labeled):
        content.notes.append(
            f"{file}: {count(left, 'task')} without a label: each inclusion probability is the plan's times the share "
            "of labels given so far, which holds if nobody stopped because of what they were shown"
        )
    if passed := _passed_over(tasks, labeled):
        content.notes.append(
            f"{file}: {count(passed, 'task')} left for later before others that have a label: that choice is not "
            "random, and no probability makes up for it"
        )


def come_up(tasks: Sequence[_Task], labeled: Collection[_Task]) -> Mapping[tuple[int, str], float]:
    """The probability with which an item has come up under a criterion: that some assessor it was dealt to labeled it.

    Orders are random and do not depend on each other. An assessor who has labeled k of m has labeled each of the m with
    probability k / m. Of two assessors, the item has come up with probability 1 - (1 - k / m)(1 - l / n).
    """
    dealt = Counter((assessor, criterion) for _, criterion, assessor in tasks)
    given = Counter((assessor, criterion) for _, criterion, assessor in labeled)
    misses: dict[tuple[int, str], list[float]] = {}
    for item, criterion, assessor in tasks:
        share = given[assessor, criterion] / dealt[assessor, criterion]
        misses.setdefault((item, criterion), []).append(1 - share)
    return {named: 1 - math.prod(chances) for named, chances in misses.items()}


def _passed_over(tasks: Sequence[_Task], labeled: Collection[_Task]) -> int:
    """How many tasks have no label though a later one of their assessor has one."""
    passed = 0
    later: set[str] = set()
    for task in reversed(tasks):
        if task in labeled:
            later.add(task[2])
        else:
            passed += task[2] in later
    return passed
