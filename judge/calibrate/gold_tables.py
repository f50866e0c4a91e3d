"""Files of people's grades as gold of what was judged: tables among them are joined to the pool."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from judge.calibrate.tables import criterion_column, gold_in_pool, grade_table, is_grade_table, of_two_levels
from judge.errors import UsageError, refuse
from judge.gold.rows import GoldRow
from judge.io.text import count
from judge.pool.records import Pool
from judge.records import Criterion, Problem


class TableGold(msgspec.Struct, frozen=True):
    """The grades of tables as gold."""

    rows: tuple[GoldRow, ...] = ()
    digests: tuple[str, ...] = ()
    """The digest of each table."""
    notes: tuple[str, ...] = ()
    """In words, what was taken for what."""


def apart(paths: Sequence[Path], columns: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """The tables among files of people's grades, and the others; `columns`: `ROLE=COLUMN` of the user."""
    tables = [path for path in paths if is_grade_table(path, columns)]
    if columns and not tables and all(path.is_file() for path in paths):
        raise UsageError("--column is about tables of people's grades; --gold names none")
    return tables, [path for path in paths if path not in tables]


def read_gold_tables(
    paths: Sequence[Path],
    columns: Sequence[str],
    criteria: Collection[str],
    pool: Pool,
    prompts: Iterable[Criterion],
) -> TableGold:
    """The grades in tables as gold of pooled responses.

    Args:
        paths: The tables.
        columns: `ROLE=COLUMN` of the user.
        criteria: What was judged; a table without a column of criteria is about the only one.
        pool: The responses.
        prompts: Those under which these were judged, as far as they are known.

    Raises:
        UsageError: A table does not say which of several criteria its grades are of.
        InputError: A table cannot be read, or a row names no response; every problem is listed.
    """
    only = next(iter(criteria)) if len(criteria) == 1 else None
    two_levels = of_two_levels(prompts)
    problems: list[Problem] = []
    rows: list[GoldRow] = []
    digests: list[str] = []
    notes: list[str] = []
    for path in paths:
        # Columns that one table lacks would hide the rows of the next one.
        wrong: list[Problem] = []
        graded = grade_table(path, columns, ("human",), wrong)
        problems += wrong
        if graded is None:
            continue
        if only is None and criterion_column(graded.table) is None:
            raise UsageError(
                f"{path}: a table does not say which of {', '.join(sorted(criteria)) or 'the criteria'} its grades are "
                "of: --criterion NAME is needed, or a column criterion"
            )
        rows += gold_in_pool(graded, only, pool, problems, two_levels)
        digests.append(graded.table.digest)
        notes.append(graded.said)
    refuse(problems, f"{', '.join(map(str, paths))}: not usable as gold: {count(len(problems), 'problem')}")
    return TableGold(rows=tuple(rows), digests=tuple(digests), notes=tuple(notes))
