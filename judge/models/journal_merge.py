"""Several journals as one new journal; of two answers to the same question, the first stays."""

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.errors import InputError, OperationalError, UsageError
from judge.files.folder import temporary_name
from judge.files.paths import StrPath
from judge.models.address import without_credentials
from judge.models.journal_export import is_exported, recorded_rows
from judge.models.journal_rows import COLUMNS, SCHEMA, SCHEMA_VERSION, WIDE_CACHE, completion_of, open_to_read
from judge.models.journal_sum import SUM, DigestSum
from judge.models.shared.address import is_database

_INSERT = f"INSERT OR IGNORE INTO completion ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - names of columns only
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM completion WHERE digest = ?"  # noqa: S608 - names of columns only


class Conflict(NamedTuple):
    """A question that two journals answer differently."""

    digest: str
    path: str
    """The later journal, whose answer was left out."""
    criterion: str
    turn_id: str
    response_id: str


class MergeReport(NamedTuple):
    """What a merge took over."""

    taken: int
    """Completions of the new journal."""
    repeated: int
    """Completions left out because an earlier journal has the question; conflicts are among them."""
    conflicts: tuple[Conflict, ...]


def merge_journals(paths: Sequence[StrPath], new: StrPath) -> MergeReport:
    """Write the completions of several journals into a new one; none of them is changed.

    Args:
        paths: The journals, addresses of shared ones, or files exported from journals, the one that wins first.
        new: Where the new one goes; nothing may be there.

    Raises:
        UsageError: There is something at `new`.
        InputError: A journal is missing or damaged.
        OperationalError: The new journal cannot be written.
    """
    new = Path(new)
    if os.path.lexists(new):
        raise UsageError(f"{new}: is there already; -o names a new file")
    temporary = new.with_name(temporary_name(new.name))
    total, repeated = DigestSum(), 0
    conflicts: list[Conflict] = []
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(temporary)) as target:
            target.execute(WIDE_CACHE)
            target.executescript(SCHEMA)
            with target:
                target.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
                for path in paths:
                    for row in recorded_rows(path):
                        if target.execute(_INSERT, row).rowcount:
                            total = total.plus(row[:1])
                            continue
                        repeated += 1
                        if _answer(target.execute(_SELECT, row[:1]).fetchone()) != _answer(row):
                            conflicts.append(Conflict(row[0], without_credentials(str(path)), *row[6:9]))
                    target.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", facts_of(path))
                target.execute("INSERT INTO meta VALUES (?, ?)", (SUM, total.text()))
        temporary.replace(new)
    except (OSError, sqlite3.Error) as error:
        raise OperationalError(f"{new}: cannot be written: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return MergeReport(total.number, repeated, tuple(conflicts))


def _answer(row: Sequence[Any]) -> tuple[object, ...]:
    """What a verdict is read from; time and tokens differ whenever the same is asked twice."""
    completion = completion_of(row)
    return completion.text, completion.finish_reason, completion.probabilities


def facts_of(path: StrPath) -> list[tuple[str, str]]:
    """What a journal knows of its judges; an exported file knows nothing.

    Raises:
        InputError: The journal cannot be read.
    """
    if is_exported(path):
        return []
    if is_database(path):
        from judge.models.shared.reader import SharedReader  # needs the extra

        with contextlib.closing(SharedReader(path)) as journal:
            return journal.facts()
    try:
        with contextlib.closing(open_to_read(Path(path))) as source:
            return source.execute("SELECT * FROM meta WHERE key NOT IN ('schema', ?)", (SUM,)).fetchall()
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be read as a journal: {error}") from error
