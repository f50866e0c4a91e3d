"""The sum of a journal's digests, kept beside them: whether its index still names every completion. Pure.

Without it, only a look at every row of the table could say so, and rows are long.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Self

from judge.models.digests import DigestSet, NumberSet

SUM = "digests"
"""The key of the sum among a journal's facts."""


class DigestSum(NamedTuple):
    """How many digests there are, and their SHA-256 hashes added up as numbers, which hides no two changes."""

    number: int = 0
    total: int = 0

    def plus(self, digests: Iterable[str]) -> Self:
        """The sum with more digests."""
        number, total = self
        for digest in digests:
            number += 1
            total += int.from_bytes(hashlib.sha256(digest.encode()).digest())
        return type(self)(number, total)

    def text(self) -> str:
        """The sum as a journal keeps it.

        >>> DigestSum().plus(["a", "b"]) == DigestSum().plus(["b", "a"])
        True
        >>> DigestSum(2, 255).text()
        '2 ff'
        """
        return f"{self.number} {self.total:x}"


class KnownDigests:
    """Which digests a journal may hold, in about eight bytes each; it says yes of a few that the journal has not."""

    def __init__(self) -> None:
        self._starts = NumberSet()

    def noting(self, digests: Iterable[str]) -> Iterator[str]:
        """The digests as they come, each noted."""
        for digest in digests:
            self._starts.add(_start(digest))
            yield digest

    def add(self, digests: Iterable[str]) -> None:
        """Note digests."""
        for digest in digests:
            self._starts.add(_start(digest))

    def may_hold(self, digest: str) -> bool:
        """False where the digest was not noted."""
        return _start(digest) in self._starts


def first_apart(listed: Callable[[], Iterable[str]], indexed: Callable[[], Iterable[str]]) -> str:
    """The first digest that only one of a journal's table and its index has; empty if there is none.

    Args:
        listed: Reads the digests of the table.
        indexed: Reads those of the index.
    """
    in_table, in_index = DigestSet(listed()), DigestSet(indexed())
    hidden = (digest for digest in listed() if digest not in in_index)
    return min(chain(hidden, (digest for digest in indexed() if digest not in in_table)), default="")


def _start(digest: str) -> int:
    """The first eight bytes as a number: all of a digest that a shared journal is asked for when it is opened."""
    return int.from_bytes(digest.encode()[:8].ljust(8, b"\0"))


class DisorderError(Exception):
    """An index is out of order at a digest, so that a search in it misses what it holds."""


def ascending(digests: Iterable[object]) -> Iterator[str]:
    """The digests of an index as they come.

    Raises:
        DisorderError: One is no text or not above the one before it.
    """
    before = ""
    for digest in digests:
        if not isinstance(digest, str) or digest <= before:
            raise DisorderError(digest)
        before = digest
        yield digest
