"""Sets of millions of digests, in about eight bytes each. Pure."""

from binascii import a2b_hex
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import sha256

_APART = 1 << 16
"""Most numbers that wait to be merged; a number that waits takes about 90 bytes."""
_HEX = 64
"""Characters of a digest."""


class NumberSet:
    """Numbers from 0 to 2⁶⁴ - 1: a sorted array, and a few that came since it was made."""

    def __init__(self) -> None:
        self._sorted = memoryview(b"").cast("Q")
        self._apart: set[int] = set()

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._sorted, number)
        return (place < len(self._sorted) and self._sorted[place] == number) or number in self._apart

    def add(self, number: int) -> None:
        """Put a number into the set."""
        self._apart.add(number)
        if len(self._apart) == _APART:
            self._merge()

    def _merge(self) -> None:
        if not self._apart:
            return
        # Only where a set is large: a short command need not wait for numpy.
        import numpy as np

        known = np.asarray(self._sorted, dtype=np.uint64)
        new = np.fromiter(self._apart, dtype=np.uint64, count=len(self._apart))
        new.sort()
        places = np.searchsorted(known, new)
        if len(known):
            fresh = known[np.minimum(places, len(known) - 1)] != new
            places, new = places[fresh], new[fresh]
        self._sorted = np.insert(known, places, new).data.cast("B").cast("Q")
        self._apart = set()


class DigestSet:
    """Digests of which the first 64 bits are kept: of five million, two are alike with a probability of 10⁻⁶.

    >>> digests = DigestSet()
    >>> digests.add("ab" * 32), digests.add("ab" * 32), "cd" * 32 in digests, len(digests)
    (True, False, False, 1)
    """

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._numbers = NumberSet()
        for digest in digests:
            self._numbers.add(leading_bits(digest))

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, str) and leading_bits(digest) in self._numbers

    def add(self, digest: str) -> bool:
        """Put a digest into the set, and say whether it is new there."""
        number = leading_bits(digest)
        if number in self._numbers:
            return False
        self._numbers.add(number)
        return True


def leading_bits(digest: str) -> int:
    """The first 64 bits of a digest; what is not 64 hexadecimal digits gets those of its own SHA-256."""
    if len(digest) == _HEX:
        try:
            return int.from_bytes(a2b_hex(digest[:16]))
        except ValueError:
            pass
    return int.from_bytes(sha256(digest.encode("utf-8", "surrogatepass")).digest()[:8])
