"""Paths and lists as Python callers give them: a path as text, one name in place of several."""

import contextlib
import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from judge.errors import InputError

StrPath = str | os.PathLike[str]
"""A path as `open` takes it."""


def several(given: Any) -> tuple[Any, ...]:
    """One value or several as a tuple: a text is one value, not its letters; a data frame one table, not its columns.

    >>> several("groundedness"), several(["groundedness", "naturalness"])
    (('groundedness',), ('groundedness', 'naturalness'))
    """
    single = isinstance(given, str | os.PathLike) or hasattr(given, "columns") or not isinstance(given, Iterable)
    return (given,) if single else tuple(given)


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
    """The path, or in a folder the first of these files that is there; an InputError if none is."""
    path = Path(given)
    # A path that cannot be is told by its reader.
    with contextlib.suppress(OSError, ValueError):
        if path.is_dir():
            if found := next((path / name for name in names if (path / name).is_file()), None):
                return found
            raise InputError(f"{path}: a folder without {' or '.join(names)}; name the file")
    return path
