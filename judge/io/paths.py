"""Paths and lists as Python callers give them: a path as text, one name in place of several."""

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar, cast

from judge.errors import InputError
from judge.io.plan import Options

StrPath = str | os.PathLike[str]
"""A path as `open` takes it."""


def several(given: StrPath | Iterable[StrPath]) -> tuple[StrPath, ...]:
    """The given names or paths as a tuple; a text is one name, not a sequence of letters; a data frame is one table.

    >>> several("groundedness"), several(["groundedness", "naturalness"])
    (('groundedness',), ('groundedness', 'naturalness'))
    """
    if isinstance(given, str | os.PathLike):
        return (given,)
    # The elements of a data frame are its columns.
    return cast("tuple[StrPath]", (given,)) if hasattr(given, "columns") else tuple(given)


def paths(given: StrPath | Iterable[StrPath]) -> tuple[Path, ...]:
    """One path or several, as paths."""
    return tuple(map(Path, several(given)))


def published(text: str) -> str:
    """A path, or a text that holds some, as others may read it: relative to the working folder, else `~` for a home.

    A published path shows neither the user's name nor where the user keeps things.
    """
    folders = {str(Path.cwd()): "."}
    with contextlib.suppress(RuntimeError):
        folders |= {str(Path.home()): "~", str(Path.home().resolve()): "~"}
    for folder, sign in folders.items():
        if folder != "/":
            inside = re.compile(rf"{_BEGINS}{re.escape(folder)}(?:(/)|(?![\w.-]))")
            text = inside.sub(functools.partial(_instead, sign), text)
    return _ANY_HOME.sub(r"~\1", text)


_BEGINS = r"(?<![\w.~-])"
_ANY_HOME = re.compile(_BEGINS + r"/(?:home|Users)/([^/\s:]+)")


def _instead(sign: str, match: re.Match[str]) -> str:
    return "" if sign == "." and match[1] else sign + (match[1] or "")


def file_in(given: StrPath, *names: str) -> Path:
    """The file that a path stands for: itself, or in a folder that judge wrote the first of the names that is there.

    Raises:
        InputError: The folder has none of the files.
    """
    path = Path(given)
    # A path that cannot be is told by its reader.
    with contextlib.suppress(OSError, ValueError):
        return _in_folder(path, names) if path.is_dir() else path
    return path


def _in_folder(path: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path}: a folder without {' or '.join(names)}; name the file")


_Plan = TypeVar("_Plan", bound=Options)


def in_folders(plan: _Plan, /, **names: Sequence[str]) -> _Plan:
    """The plan with a file in place of each folder that one of its fields names.

    Args:
        plan: The plan.
        names: For a field, the names of the file in a folder that judge wrote, by preference.

    Raises:
        InputError: A folder has none of the files.
    """
    changed: dict[str, object] = {}
    for field, wanted in names.items():
        given = getattr(plan, field)
        if given is not None:
            files = tuple(file_in(path, *wanted) for path in several(given))
            changed[field] = files if isinstance(given, tuple) else files[0]
    return plan.with_values(**changed)
