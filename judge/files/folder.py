"""Output folders: where one may lie, and how its files are replaced whole."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from judge.errors import InputError, OperationalError, UsageError
from judge.text.safe import shown


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        InputError: The path is a file or the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be used as an output folder: {error.strerror}") from error


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths, which need not exist, lead to one file or folder, whatever links are on the way."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def check_apart(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse an output folder that some input (a folder, or a file in it) is.

    Raises:
        UsageError: It is the folder of an input.
    """
    for path in paths:
        homes = (path,) if path.is_dir() else (path.parent, path.resolve().parent)
        if any(same_place(folder, home) for home in homes):
            raise UsageError(f"{folder}: this is where {path} is; give a folder of its own")


def check_outside(folder: Path, runs: Path) -> None:
    """Refuse an output folder below the folder of runs, where it would be taken for a part of what was submitted.

    Raises:
        UsageError: It is below `runs`, whatever links are on the way.
    """
    if runs.is_dir() and any(same_place(parent, runs) for parent in folder.resolve().parents):
        raise UsageError(f"{folder}: this is inside {runs}; give a folder outside it")


def check_own_folder(folder: Path, names: Collection[str], mark: str) -> None:
    """Refuse an output folder with anything in it but what the same command left there, complete or broken off.

    Args:
        folder: Where the command writes; it need not exist.
        names: Of the files that it writes.
        mark: The one of them that is begun first, without which the others are somebody else's.

    Raises:
        UsageError: The folder holds something else.
        InputError: It cannot be listed.
    """
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise InputError(f"{folder}: cannot be used as an output folder: {error.strerror}") from error
    expected = {name for own in names for name in (own, temporary_name(own))}
    strange = present - expected
    if strange or (present and not present & {mark, temporary_name(mark)}):
        example = min(strange or present)
        raise UsageError(f"{folder}: holds {shown(example)}, which this command did not write; give an empty folder")


def temporary_name(name: str) -> str:
    """Where a file is written before it has its name."""
    # Fixed, so that what a kill leaves behind is written over by the next run and not left for ever.
    return f".{name}.tmp"


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, so that a reader sees the old bytes or the new ones.

    Raises:
        OperationalError: The disk is full or the folder cannot be written; the old file is untouched.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error
