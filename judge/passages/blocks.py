"""The checks of an index file's blocks: the first key, and checksums of the keys and of their 16 bytes.

They stand at the end of the file: for each block the first key (8 bytes), the CRC-32 of its keys and the CRC-32 of its
payload (4 bytes each), then the SHA-256 of all this.
"""

import hashlib
import zlib
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError
from judge.passages.keys import Bytes, Keys

BLOCK: Final = 4096
"""Rows of a block: 96 KiB, so that a lookup reads little more than it needs."""
_CHECK: Final = np.dtype([("first", "<u8"), ("keys", "<u4"), ("payload", "<u4")])
_DIGEST: Final = 32


def trailer_size(rows: int) -> int:
    """Bytes of the checks of a table with so many rows; a table without rows has none."""
    return -(-rows // BLOCK) * _CHECK.itemsize + _DIGEST if rows else 0


class Trailer:
    """The checks of sorted rows that come in parts of any size."""

    def __init__(self) -> None:
        self._rows = 0
        self._first: list[int] = []
        self._keys: list[int] = []
        self._payload: list[int] = []

    def add(self, keys: Keys, payload: Bytes) -> None:
        """Take the next rows."""
        keys = keys.astype("<u8", copy=False)
        at = 0
        while at < len(keys):
            if self._rows % BLOCK == 0:
                self._first.append(int(keys[at]))
                self._keys.append(0)
                self._payload.append(0)
            end = min(len(keys), at + BLOCK - self._rows % BLOCK)
            self._keys[-1] = zlib.crc32(keys[at:end].data, self._keys[-1])
            self._payload[-1] = zlib.crc32(payload[at:end].data, self._payload[-1])
            self._rows += end - at
            at = end

    def bytes(self) -> bytes:
        """The end of the file."""
        checks = np.empty(len(self._first), _CHECK)
        checks["first"], checks["keys"], checks["payload"] = self._first, self._keys, self._payload
        return checks.tobytes() + hashlib.sha256(checks.tobytes()).digest()


class BlockChecks:
    """Checks each block of a mapped file once, when it is first read."""

    def __init__(self, path: Path, trailer: bytes) -> None:
        """Read the end of the file.

        Raises:
            InputError: It is damaged.
        """
        self._path = path
        content = trailer[:-_DIGEST]
        if hashlib.sha256(content).digest() != trailer[-_DIGEST:]:
            raise self._damaged()
        checks = np.frombuffer(content, _CHECK)
        # Copies, since a field of a record array is slow to search.
        self._first = checks["first"].copy()
        self._sums = {"keys": checks["keys"].copy(), "payload": checks["payload"].copy()}
        self._sound = {name: np.zeros(len(checks), np.bool_) for name in self._sums}

    def block_of(self, wanted: Keys, side: Literal["left", "right"]) -> NDArray[np.int64]:
        """The block in which each key's first place is to be searched, or the place after its last."""
        return np.maximum(np.searchsorted(self._first, wanted, side) - 1, 0)

    def check_keys(self, blocks: NDArray[np.int64], keys: Keys) -> None:
        """Check the keys of these blocks.

        Raises:
            InputError: A block is damaged.
        """
        self._check("keys", blocks, keys)

    def check_payload(self, blocks: NDArray[np.int64], payload: Bytes) -> None:
        """Check the 16 bytes of each key of these blocks.

        Raises:
            InputError: A block is damaged.
        """
        self._check("payload", blocks, payload)

    def _check(self, part: Literal["keys", "payload"], blocks: NDArray[np.int64], rows: NDArray[Any]) -> None:
        sound, sums = self._sound[part], self._sums[part]
        for block in np.unique(blocks[~sound[blocks]]).tolist():
            if zlib.crc32(rows[block * BLOCK : (block + 1) * BLOCK].data) != sums[block]:
                raise self._damaged()
            sound[block] = True

    def _damaged(self) -> InputError:
        return InputError(f"{self._path}: the index is damaged: its checksums do not match; build it again")
