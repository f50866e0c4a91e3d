"""The sum of a journal's digests, kept beside them: whether its index still names every completion. Pure.

Without it, only a look at every row of the table could say so, and rows are long.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

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
