"""The files of a dataset below a folder, whether it is one download or holds several clones of repositories."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from judge.errors import InputError
from judge.io.below import distinct, files_below
from judge.io.ids import natural_key

DEPTH = 4
"""The most folders between the given folder and a file."""
MOST_ENTRIES = 200_000
"""The most files and folders that are looked at; more is no folder of datasets."""


def is_there(folder: Path, patterns: Sequence[str]) -> bool:
    """Whether each pattern, such as those of a dataset, has a file below the folder.

    Raises:
        InputError: The folder cannot be read or has more entries than a folder of datasets.
    """
    paths = _below(folder)
    return all(any(_matching(paths, pattern)) for pattern in patterns)


def find_file(folder: Path, pattern: str) -> Path:
    """The file of a pattern; of equal copies the first in natural order.

    Args:
        folder: The folder of the data.
        pattern: The end of a path below it, such as `begin_dev_wow.tsv` or `qrels/*.json`. Several patterns stand
            between `|`; the first of them that has a file is taken.

    Raises:
        InputError: There is no such file, or two of different content.
    """
    files = find_files(folder, pattern)
    if len(files) > 1:
        raise InputError(f"{files[0]} and {files[1]}: expected one file {pattern}")
    return files[0]


def find_files(folder: Path, pattern: str) -> tuple[Path, ...]:
    """The files of a pattern in natural order of their names, each name once.

    Args:
        folder: The folder of the data.
        pattern: As for `find_file`.

    Raises:
        InputError: There is no such file, or a name has two files of different content.
    """
    named: dict[str, list[Path]] = defaultdict(list)
    for path in _matching(_below(folder), pattern):
        named[path.name].append(path)
    if not named:
        raise InputError(f"{folder}: no file {pattern.replace('|', ' or ')} at most {DEPTH} folders below")
    files = [distinct(named[name]) for name in sorted(named, key=natural_key)]
    for first, *others in files:
        if others:
            raise InputError(f"{first} and {others[0]}: two files of one name that differ; keep one of them")
    return tuple(first for first, *_ in files)


def _matching(paths: tuple[Path, ...], pattern: str) -> list[Path]:
    """The files of the first alternative that has any."""
    for alternative in pattern.split("|"):
        if matches := [path for path in paths if path.match(alternative)]:
            return matches
    return []


def _below(folder: Path) -> tuple[Path, ...]:
    """Every file at most DEPTH folders below the folder, in natural order of the paths."""
    paths = files_below(folder, DEPTH, MOST_ENTRIES)
    return tuple(sorted(paths, key=lambda path: natural_key(path.relative_to(folder).as_posix())))
