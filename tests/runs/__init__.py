"""Tests of runs."""

from collections.abc import Callable
from typing import NamedTuple

from judge.runs.records import TokenCount


class TokenLimit(NamedTuple):
    """Stands for a `TokenCounter`, whose count the test gives."""

    over: Callable[[str], TokenCount | None]
    limit: int
    rule: str

    def __call__(self, text: str) -> TokenCount | None:
        """The lengths of any text."""
        return self.over(text)
