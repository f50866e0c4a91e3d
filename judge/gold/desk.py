"""Labels that were given at a desk (`judge serve assess`), read from its store as grades."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from judge.errors import UsageError
from judge.gold.draft import Draft, ImportOptions, SourceContent
from judge.records import Problem
from judge.text.cells import count
from judge.text.safe import shown

SCHEMA = "judge-labels/1"
"""What a store says of itself."""
_FIELDS = ("turn_id", "topic_id", "criterion", "grade", "assessor", "response_id", "text_sha256", "run_id", "made",
           "inclusion_probability", "stratum")  # fmt: skip
_SELECT = f"SELECT item, comment, {', '.join(_FIELDS)} FROM labels ORDER BY item, criterion, assessor"  # noqa: S608 - names of columns only


def desk_content(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The store of a desk: the last label of each assessor for each response and criterion.

    A label "unable to judge" is no grade, and is left out.
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
    unable = comments = 0
    for item, comment, *values in store.execute(_SELECT):
        fields = dict(zip(_FIELDS, values, strict=True))
        comments += bool(comment)
        if fields["grade"] is None:
            unable += 1
            continue
        content.drafts.append(Draft(file, f"item {item}, {fields['criterion']}, {fields['assessor']}", fields))
    if unable:
        content.notes.append(f'{file}: {count(unable, "label")} "unable to judge" left out: no grade')
    if comments:
        content.notes.append(f"{file}: {count(comments, 'comment')} stay in the store: gold has no field for them")
    if left := _left(store):
        content.notes.append(
            f"{file}: {count(left, 'task')} without a label: inclusion probabilities are those of the finished work"
        )


def _left(store: sqlite3.Connection) -> int:
    ((left,),) = store.execute("SELECT (SELECT count(*) FROM task) - (SELECT count(*) FROM labels)")
    return int(left)
