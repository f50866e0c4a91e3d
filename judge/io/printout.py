"""What a command prints: data for programs, parts for people, and sentences beside them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from judge.io.table import Table

Part = Table[Any] | Mapping[str, object] | tuple[str, ...] | str
"""A table, facts by their names, the entries of a list that tools read too, or a sentence."""


class Printout(msgspec.Struct, frozen=True):
    """What a job found or wrote, as a command prints it."""

    data: Any = None
    """What `--json` prints in place of parts and files."""
    parts: tuple[Part, ...] = ()
    """In the order of standard output."""
    files: tuple[Path, ...] = ()
    """What was written, a path a line after the parts."""
    warnings: tuple[str, ...] = ()
    """Lines on standard error before anything else."""
    legend: tuple[str, ...] = ()
    """Lines on standard error that explain the parts."""
    notes: tuple[str, ...] = ()
    """Lines on standard error after all."""
    exit: int = 0
    """Exit code of the command."""
