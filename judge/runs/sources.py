"""What a user gives as runs: files that are one run each, and tables whose rows are answers of several systems."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from judge.errors import UsageError
from judge.io.rows import RowTable
from judge.io.text import shown
from judge.records import Problem, Record
from judge.runs.document import read_head
from judge.runs.formats import LOOKED_AT, find_runs, format_of_lines
from judge.runs.formats.cast_regin import is_pool
from judge.runs.formats.table import FORMAT, Tables, is_table, looks_like_table, read_tables
from judge.runs.formats.trec import looks_like_qrels, looks_like_trec_run
from judge.runs.profiles import PROFILES

RunSource = Path | RowTable
"""A path of runs, or a table in memory."""


def own_criteria(path: Path, format: str | None = None) -> tuple[str, ...] | None:
    """What the track of a run's format asks, if it asks something of its own; `format` is what every file is read as.

    Only the first lines of a large file are looked at: runs of such tracks are lines. None if the file is of no format,
    such as a damaged one.
    """
    name = format_of_lines(path) if format is None else format
    if name is None and not _may_be_large_object(path):
        return None
    return PROFILES[name].criteria if name is not None and name in PROFILES else ()


def _may_be_large_object(path: Path) -> bool:
    """Whether no format knows a file by its lines because these are not all of it."""
    try:
        return len(read_head(path, LOOKED_AT)) == LOOKED_AT
    except OSError:
        return False


class Sources(Record, frozen=True):
    """The runs before they are checked."""

    files: tuple[Path, ...]
    """Files that are a run each, to be read one after the other."""
    problems: tuple[Problem, ...] = ()
    """Why other files of folders are not read."""
    tables: Tables | None = None

    @property
    def without_lists(self) -> "Sources":
        """The runs that have responses, without lists of passages; all of them where there is nothing else."""
        runs = tuple(path for path in self.files if not _is_list(path))
        return msgspec.structs.replace(self, files=runs) if runs else self

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken for what in tables, a sentence each."""
        return () if self.tables is None else tuple(source.said for source in self.tables.sources)


def _is_list(path: Path) -> bool:
    """Whether a file is a list of passages; one that cannot be read is said to be none, and its reader says why."""
    try:
        head = read_head(path)
    except OSError:
        return False
    # A pool has the columns of a TREC run, and a bank of responses beside it.
    return _looks_like_list(head) and not is_pool(head)


def _looks_like_list(head: bytes) -> bool:
    return looks_like_trec_run(head) or looks_like_qrels(head)


def _may_be_run(path: Path, head: bytes, *, named: Mapping[str, str] | None, lists: bool) -> bool:
    """Whether a file with this head is a table of answers or, where they are wanted, a list of passages."""
    if lists and _looks_like_list(head):
        return True
    return looks_like_table(path, head, named)


def find_sources(
    given: Iterable[RunSource],
    columns: Mapping[str, str] | None = None,
    format: str | None = None,
    *,
    lists: bool = False,
) -> Sources:
    """The files of folders and files, of which tables are read whole, since their rows are the topics too.

    Args:
        given: Folders of runs, runs, and tables in files or in memory.
        columns: The columns of tables that the user names, by role.
        format: What every file is to be read as.
        lists: Whether TREC runs and qrels of passages are read in folders, too.

    Raises:
        UsageError: Tables stand beside runs of tracks, or columns are named and there is no table.
        InputError: A folder is missing or holds no run, or a table cannot be used.
    """
    places = list(given)
    in_memory = [place for place in places if isinstance(place, RowTable)]
    paths = [place for place in places if not isinstance(place, RowTable)]
    files: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()
    if paths:
        files, problems = find_runs(paths, also=partial(_may_be_run, named=columns, lists=lists))
    may_be = format in (None, FORMAT)
    tabular = [path for path in files if may_be and (format == FORMAT or is_table(path, columns))]
    if not tabular and not in_memory:
        if columns:
            raise UsageError(
                "--column is about tables of questions and answers, and the runs look like none; "
                "--format table reads them as such"
            )
        return Sources(files, problems)
    if others := [path for path in files if path not in tabular]:
        raise UsageError(
            f"{shown(str(others[0]))} is a run of a track and {shown(str((*tabular, 'data')[0]))} a table of answers: "
            "their turns are not the same; judge them apart"
        )
    return Sources((), problems, read_tables([*tabular, *in_memory], columns))
