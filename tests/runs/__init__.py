"""Tests of runs."""

from collections.abc import Callable
from typing import NamedTuple

from judge.runs.records import TokenCount


class TokenLimit(NamedTuple):
    """Stands for a `TokenCounter`, whose count the test gives."""

    over: Callable[[str], TokenCount | None]
    limit: int
    rule: str
