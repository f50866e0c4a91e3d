"""Texts and records packed for a page, each text once, in pieces that a browser unpacks when it needs them. Pure.

A table is a list of JSON values, cut into chunks of consecutive values. A chunk is compressed by zlib and written in
base64, whose alphabet cannot end a block of a page.
"""

import base64
import hashlib
import json
import zlib
from typing import NamedTuple

CHUNK = 512 << 10
"""Bytes of JSON after which a chunk is closed; a longer value has a chunk of its own."""
_LEVEL = 4
"""Of compression: the page is 5 % larger than at 6, and written in a third of the time."""
NONE = -1
"""In place of a reference to a text, where there is no text."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class PackedTable(NamedTuple):
    """A table as its chunks."""

    starts: tuple[int, ...]
    """The number of the first value of each chunk."""
    chunks: tuple[str, ...]


def json_text(value: object) -> bytes:
    """A value as JSON; a lone surrogate becomes the three bytes of its number, which a browser shows as U+FFFD."""
    return _encoder.encode(value).encode("utf-8", "surrogatepass")


def pack(content: bytes) -> str:
    """Bytes compressed, in base64."""
    return base64.b64encode(zlib.compress(content, _LEVEL)).decode()


def unpacked(chunk: str) -> bytes:
    """The bytes that were packed."""
    return zlib.decompress(base64.b64decode(chunk))


class Packer:
    """Takes the values of a table one by one, and keeps only their compressed form."""

    def __init__(self, size: int = CHUNK) -> None:
        self._size = size
        self._open: list[bytes] = []
        self._bytes = 0
        self._starts: list[int] = []
        self._chunks: list[str] = []
        self._count = 0

    def add(self, value: object) -> int:
        """Add a value, and say its number in the table."""
        encoded = json_text(value)
        if self._open and self._bytes + len(encoded) > self._size:
            self._close()
        self._open.append(encoded)
        self._bytes += len(encoded)
        self._count += 1
        return self._count - 1

    def table(self) -> PackedTable:
        """Everything that was added so far."""
        if self._open:
            self._close()
        return PackedTable(tuple(self._starts), tuple(self._chunks))

    def _close(self) -> None:
        self._starts.append(self._count - len(self._open))
        self._chunks.append(pack(b"[" + b",".join(self._open) + b"]"))
        self._open, self._bytes = [], 0


class TextTables:
    """The texts of a page, each stored once, in two tables: those that a search looks through, and the others.

    A reference is an even number for a text that is searched, an odd one for another; half of it, rounded down, is
    the text's number in its table.
    """

    def __init__(self, size: int = CHUNK) -> None:
        self._packers = Packer(size), Packer(size)
        # Digests, because the texts themselves would fill the memory.
        self._known: dict[bytes, int] = {}

    def searched(self, text: str | None) -> int:
        """The reference of a text that a search shall find."""
        return self._refer(text, 0)

    def stored(self, text: str | None) -> int:
        """The reference of a text that is only shown."""
        return self._refer(text, 1)

    def _refer(self, text: str | None, table: int) -> int:
        if text is None:
            return NONE
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        # A text that is searched may stand in for one that is only shown, but not the other way round.
        if known is None or known % 2 > table:
            known = self._known[key] = 2 * self._packers[table].add(text) + table
        return known

    def tables(self) -> tuple[PackedTable, PackedTable]:
        """The texts that are searched, and the others."""
        searched, stored = self._packers
        return searched.table(), stored.table()
