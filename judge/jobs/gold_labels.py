"""Labels of workers as gold, one row a label, from the tables and exports that `judge crowd` reads."""

from collections.abc import Callable, Sequence
from pathlib import Path

from judge.ask.criteria import criterion_names
from judge.crowd.layout import TASK, Layout, Wide
from judge.crowd.problems import LabelProblems
from judge.crowd.tables import field_columns, in_order, label_rows
from judge.gold.draft import Draft, ImportOptions, SourceContent
from judge.gold.sources import typed
from judge.io.cells import count

CROWD = "crowd"
"""The name of this source."""
_SAME = ("turn_id", "response_id", "criterion")
_FIELDS = {"assessor": "worker", **dict(zip(_SAME, _SAME, strict=True)), "grade": "label"}
"""Field of a gold row to what a table of labels calls it."""


def label_source(
    table: str | None = None, task: str = TASK, wide: Wide | None = None, criteria: Sequence[str] = ()
) -> Callable[[Sequence[Path], ImportOptions], SourceContent]:
    """What reads the tables of a crowd.

    Args:
        table: What they are, one of KINDS; None to see it from their columns.
        task: The pattern of the cells of a column `task`.
        wide: What the columns of a survey ask about.
        criteria: The criteria that were labeled, where a form has other answers too; by default any bundled one.
    """

    def read(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
        given = options.constants.get("criterion")
        names = (given,) if given is not None else tuple(criteria) or criterion_names()
        layout = Layout(
            columns=field_columns({_FIELDS.get(field, field): name for field, name in options.columns.items()}),
            # Only the names count: whether a label is on its criterion's scale is looked at when it is a gold row.
            scales=dict.fromkeys(names, (0, 1)),
            task=task,
            wide=wide,
            kind=table,
            turns={each.response_id: each.turn_id for each in options.pool.responses} if options.pool else None,
        )
        problems = LabelProblems()
        rows, sheets = label_rows(paths, layout, problems)
        listed = in_order(problems, sheets)
        content = SourceContent(
            problems=[problem for problem in listed if problem.severity == "error"],
            notes=[f"{each.file}: {each.message}" for each in listed if each.severity == "warning"],
        )
        empty = dict.fromkeys((sheet.file for sheet in sheets), 0)
        for row in rows.iter_rows(named=True) if rows is not None else ():
            sheet = sheets[row["file"]]
            cells = {field: "" if row[name] is None else str(row[name]).strip() for field, name in _FIELDS.items()}
            if not cells["grade"] and "grade" not in options.constants:
                empty[sheet.file] += 1
                continue
            place = f"{sheet.unit} {row['number']}" + (f": {row['column'][:60]}" if row["column"] else "")
            content.drafts.append(Draft(sheet.file, place, typed(cells)))
        content.notes += [f"{file}: {count(n, 'row')} without a label: not labeled" for file, n in empty.items() if n]
        return content

    return read
