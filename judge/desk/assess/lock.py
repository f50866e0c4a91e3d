"""One process at a time for a file, even where others may read it."""

import sqlite3
from pathlib import Path

from judge.errors import InputError, OperationalError


def locked(path: Path) -> sqlite3.Connection:
    """Keep other desks off a store; a lock of SQLite ends with its process, however that ends.

    Raises:
        InputError: There can be no file of this name.
        OperationalError: Another process has the lock, or it cannot be written.
    """
    # In a file of its own, so that others can read the labels meanwhile.
    lock = _lock_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = sqlite3.connect(lock.absolute().as_uri(), uri=True, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path}: cannot be used as a store of labels: {error}") from error
    try:
        held.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        held.close()
        why = "another desk serves it" if "locked" in str(error) else f"{lock} cannot be written: {error}"
        raise OperationalError(f"{path}: {why}") from error
    return held


def unlock(lock: sqlite3.Connection, path: Path) -> None:
    """Give a lock up."""
    _lock_file(path).unlink(missing_ok=True)
    lock.close()


def _lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")
