"""The files below a folder that a user downloaded: one release, or clones of several repositories."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.errors import InputError
from judge.io.stored import read_stored, sha256


def files_below(folder: Path, deepest: int, most: int) -> Iterator[Path]:
    """Every file below a folder, those that are less deep first, then by name.

    Hidden files and folders, links to folders, and folders that may not be listed are passed by.

    Args:
        folder: The folder.
        deepest: How many folders may lie between it and a file.
        most: The most files and folders that are looked at.

    Raises:
        InputError: The folder cannot be listed, or there are more files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder that can be read")
    level, seen = [folder], 0
    for _ in range(deepest + 1):
        deeper: list[Path] = []
        for place in level:
            for entry in _entries(place, needed=place == folder):
                seen += 1
                if seen > most:
                    raise InputError(f"{folder}: more than {most:,} files: name a folder nearer to the data")
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    deeper.append(Path(entry.path))
                elif _is_file(entry):
                    yield Path(entry.path)
        level = deeper


def distinct(paths: Sequence[Path]) -> list[Path]:
    """The first path of each content; a single file is not read."""
    if len(paths) < 2:
        return list(paths)
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(sha256(read_stored(path)), path)
    return list(first.values())


def _entries(place: Path, *, needed: bool) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing in one that may not be listed, unless it is the one that was given."""
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if needed:
            raise InputError(f"{place}: cannot be listed: {error.strerror}") from error
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a file, or a link to one that may be followed."""
    try:
        return entry.is_file()
    except OSError:
        return False
