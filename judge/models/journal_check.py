"""Whether a journal is sound, and a new journal of what is sound in a damaged one."""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from judge.errors import InputError, OperationalError, UsageError
from judge.files.paths import StrPath
from judge.models.digests import DigestSet
from judge.models.journal_pages import found_rows, indexed_digests
from judge.models.journal_rows import (
    COLUMNS,
    SCHEMA,
    SCHEMA_VERSION,
    WIDE_CACHE,
    columns_of,
    contradiction,
    lacks_log,
    open_to_read,
    out_of_reach,
)

_Found = TypeVar("_Found")
_SHOWN = 10
"""Most problems of structure that SQLite is asked for."""
_LOST = "its page cannot be read"
_UNREACHED = "it is in the file, but SQLite does not reach it"


class JournalReport(NamedTuple):
    """What a check of a journal found."""

    sound: int
    """Completions that are what was recorded."""
    unsealed: int
    """Those of them that an older version of judge recorded without a checksum."""
    problems: tuple[tuple[str, str], ...]
    """Digest of a completion, or an empty string for the file, and what is wrong."""


def verify_journal(path: StrPath) -> JournalReport:
    """Check every completion of a journal that no process is writing; nothing is changed.

    Raises:
        InputError: The file is missing, is in use, cannot be read, is on a full disk, or is no journal at all.
    """
    path = _file(path)
    problems: dict[tuple[str, str], None] = {}
    if lacks_log(path):
        problems["", f"its -wal file is missing: bring {path.name}-wal, which may hold later completions"] = None
    # Sets of digests, not the rows: a journal may hold more than memory does.
    sound, unsealed = DigestSet(), DigestSet()
    for digest, sealed, why in _read(path):
        if why:
            problems[digest, why] = None
        elif sound.add(digest) and not sealed:
            unsealed.add(digest)
    unreached: set[str] = set()
    damaged: dict[str, str] = {}
    for found in _readable(path, found_rows(path, known=sound)):
        if found.row is None:
            damaged.setdefault(found.digest, found.why)
        else:
            unreached.add(found.digest)
    if not sound and not unreached and problems:
        raise InputError(f"{path}: cannot be read as a journal: {next(iter(problems))[1]}")
    for digest in _readable(path, indexed_digests(path)):
        if digest not in sound:
            damaged.setdefault(digest, _LOST)
    problems |= {(digest, _UNREACHED): None for digest in unreached}
    problems |= {(digest, why): None for digest, why in damaged.items() if digest not in unreached}
    named = {digest for digest, _ in problems}
    return JournalReport(
        sound=len(sound) - sum(digest in sound for digest in named),
        unsealed=len(unsealed) - sum(digest in unsealed for digest in named),
        problems=tuple(sorted(problems)),
    )


def _read(path: Path) -> Iterator[tuple[str, bool, str]]:
    """Digest, whether it has a checksum, and problem of each completion that SQLite reaches, then of the file."""
    try:
        with contextlib.closing(open_to_read(path)) as source:
            query = f"SELECT {columns_of(source)} FROM completion NOT INDEXED"  # noqa: S608 - names of columns only
            for row in source.execute(query):
                yield str(row[0]), row[-1] is not None, contradiction(row)
            for (line,) in source.execute(f"PRAGMA integrity_check({_SHOWN})"):
                if line != "ok":
                    yield "", True, f"SQLite: {line}"
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if reason := out_of_reach(error):
            raise InputError(f"{path}: {reason}") from error
        yield "", True, f"SQLite: {error}"


def _readable(path: Path, found: Iterable[_Found]) -> Iterator[_Found]:
    """What is found in a journal; an InputError names the file that cannot be read."""
    try:
        yield from found
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be read: {error.strerror}") from error


def salvage_journal(path: StrPath, new: StrPath) -> JournalReport:
    """Write what is sound in a journal into a new one; the old one is not changed.

    Args:
        path: The journal; SQLite need not be able to read it.
        new: Where the new one goes; nothing may be there.

    Raises:
        UsageError: There is something at `new`.
        InputError: The journal is missing or cannot be read, or nothing in it is sound.
        OperationalError: The new journal cannot be written.
    """
    path, new = _file(path), Path(new)
    if os.path.lexists(new):
        raise UsageError(f"{new}: is there already; -o names a new file")
    sound, unsealed = DigestSet(), 0
    damaged: dict[str, str] = {}
    marks = ", ".join("?" for _ in COLUMNS)
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(new)) as target:
            target.execute(WIDE_CACHE)
            target.executescript(SCHEMA)
            with target:
                target.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
                for found in _readable(path, found_rows(path)):
                    if found.row is None:
                        damaged.setdefault(found.digest, found.why)
                    elif sound.add(found.digest):
                        target.execute(f"INSERT INTO completion VALUES ({marks})", found.row)  # noqa: S608 - question marks only
                        unsealed += found.row[-1] is None
        if not sound:
            raise InputError(f"{path}: holds no completion that is sound")
        for digest in _readable(path, indexed_digests(path)):
            if digest not in sound:
                damaged.setdefault(digest, _LOST)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        if isinstance(error, OSError | sqlite3.Error):
            raise OperationalError(f"{new}: cannot be written: {error}") from error
        raise
    lost = sorted((digest, why) for digest, why in damaged.items() if digest not in sound)
    return JournalReport(len(sound), unsealed, tuple(lost))


def _file(path: StrPath) -> Path:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    return path
