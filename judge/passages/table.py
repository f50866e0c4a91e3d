"""A sorted table on disk, 16 bytes for each 64-bit key: built in bounded memory, looked up through a memory map.

The file is the magic, the length of the header, the SHA-256 of the header, the header in JSON, padding to 64 bytes, all
keys in rising order (little-endian), then the 16 bytes of each key in the same order, and the checks of the blocks. A
block is checked when it is first read, so that a damaged disk or copy gives no wrong answer and opening reads little.
"""

import errno
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError, OperationalError
from judge.passages.blocks import BLOCK, BlockChecks, Trailer, trailer_size
from judge.passages.claim import replacing
from judge.passages.keys import Bytes, Keys
from judge.passages.magic import FAMILY, MAGIC

TableKind = Literal["hashes", "offsets"]
Batch = tuple[Keys, Bytes]
"""Keys (N), and a row of 16 bytes for each (N x 16)."""

WIDTH: Final = 16
CHUNK_ROWS = 2_000_000
"""Rows that are sorted in memory at once, about 300 MB with all copies."""
_ROW = 8 + WIDTH
_SAMPLES = 256
"""Keys of each sorted chunk that stay in memory, to find a place in it without reading all of it."""
_PREFIX = len(MAGIC) + 8 + 32
_ALIGN = 64
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_HEADER_LIMIT = 1 << 28


class TableHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of an index file."""

    kind: TableKind
    count: int
    source: dict[str, Any]
    """The source of the index, in a form of each kind."""


class KeyTable:
    """A sorted table in memory or mapped from its file."""

    def __init__(self, header: TableHeader, keys: Keys, payload: Bytes, checked: BlockChecks | None = None) -> None:
        self.header = header
        self.keys = keys
        self.payload = payload
        self._checked = checked

    def find(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row of each key and the row after its last; an empty range for a key that is not there.

        Raises:
            InputError: The part of the file that was read is damaged.
        """
        order = np.argsort(keys)
        # Keys searched in rising order share the pages that have to be read.
        wanted = keys[order]
        first = np.empty(len(keys), np.int64)
        past = np.empty(len(keys), np.int64)
        first[order] = self._search(wanted, "left")
        past[order] = self._search(wanted, "right")
        return first, past

    def _search(self, wanted: Keys, side: Literal["left", "right"]) -> NDArray[np.int64]:
        """As `np.searchsorted` over all keys; of a mapped file only checked blocks are read."""
        if self._checked is None:
            return np.searchsorted(self.keys, wanted, side)
        block = self._checked.block_of(wanted, side)
        self._checked.check_keys(block, self.keys)
        low, high = block * BLOCK, np.minimum((block + 1) * BLOCK, len(self.keys))
        # Bisection within the blocks, for all keys at once.
        while (open_ := low < high).any():
            middle = (low + high) // 2
            at = self.keys[np.minimum(middle, len(self.keys) - 1)]
            right = open_ & ((at < wanted) if side == "left" else (at <= wanted))
            low = np.where(right, middle + 1, low)
            high = np.where(open_ & ~right, middle, high)
        return low

    def rows(self, numbers: NDArray[np.int64]) -> Bytes:
        """The 16 bytes of these rows.

        Raises:
            InputError: The part of the file that was read is damaged.
        """
        if self._checked is not None:
            self._checked.check_payload(np.unique(numbers // BLOCK), self.payload)
        return self.payload[numbers]


def open_table(path: Path, kind: TableKind) -> KeyTable:
    """Map an index file of one kind.

    Raises:
        InputError: The file is no index, is one of another kind, or is cut short or damaged.
    """
    try:
        with path.open("rb") as file:
            header, start = _read_header(file, path)
            size = os.fstat(file.fileno()).st_size
            end = start + header.count * _ROW
            expected = end + trailer_size(header.count)
            if size != expected:
                raise InputError(
                    f"{path}: the index is damaged: expected {expected:,} bytes, found {size:,}; build it again"
                )
            if header.kind != kind:
                names = {"hashes": "a hash list", "offsets": "a collection"}
                raise InputError(f"{path}: this is an index of {names[header.kind]}; expected one of {names[kind]}")
            if not header.count:
                return KeyTable(header, np.empty(0, np.uint64), np.empty((0, WIDTH), np.uint8))
            # A plain array over the map: slices of a memmap cost ten times as much.
            content = np.asarray(np.memmap(file, np.uint8, "r"))
            file.seek(end)
            checks = BlockChecks(path, file.read())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    middle = start + header.count * 8
    return KeyTable(header, content[start:middle].view("<u8"), content[middle:end].reshape(-1, WIDTH), checks)


def _read_header(file: IO[bytes], path: Path) -> tuple[TableHeader, int]:
    prefix = file.read(_PREFIX)
    if not prefix.startswith(MAGIC):
        if prefix.startswith(FAMILY):
            raise InputError(f"{path}: an index of an earlier version of judge, without checksums; build it again")
        raise InputError(f"{path}: not an index that `judge passages index` wrote")
    length = int.from_bytes(prefix[len(MAGIC) : len(MAGIC) + 8], "little")
    written = file.read(length) if length <= _HEADER_LIMIT else b""
    if len(prefix) != _PREFIX or hashlib.sha256(written).digest() != prefix[-32:]:
        raise InputError(f"{path}: the header of the index is damaged; build it again")
    try:
        header = msgspec.json.decode(written, type=TableHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the header of the index cannot be read: {error}; build it again") from error
    return header, _aligned(_PREFIX + length)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def sorted_rows(batches: Iterable[Batch]) -> Batch:
    """All rows of the batches, sorted by key; rows of one key keep their order."""
    held = list(batches)
    keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in held)])
    payload = np.concatenate([np.empty((0, WIDTH), np.uint8), *(rows for _, rows in held)])
    held.clear()
    order = np.argsort(keys, kind="stable")
    # Indexing rows with [] is six times slower than take.
    return keys.take(order), payload.take(order, axis=0)


def clashes(keys: Keys, payload: Bytes) -> Keys:
    """The keys of sorted rows that have two different payloads."""
    same = np.flatnonzero(keys[1:] == keys[:-1])
    return np.unique(keys[same[(payload[same] != payload[same + 1]).any(axis=1)]])


def distinct(keys: Keys, payload: Bytes) -> Batch:
    """Sorted rows without repetitions, at most two of one key."""
    if not (keys[1:] == keys[:-1]).any():
        return keys, payload
    for apart in (1, 2):
        kept = np.ones(len(keys), np.bool_)
        kept[apart:] = keys[apart:] != keys[:-apart]
        if apart == 1:
            kept[1:] |= (payload[1:] != payload[:-1]).any(axis=1)
        keys, payload = keys[kept], payload[kept]
    return keys, payload


def build_table(
    path: Path,
    kind: TableKind,
    batches: Iterable[Batch],
    source: Callable[[], dict[str, Any]],
    check: Callable[[Keys, Bytes], None] | None = None,
    *,
    thin: Callable[[Keys, Bytes], Batch] | None = None,
    chunk_rows: int = CHUNK_ROWS,
) -> int:
    """Write the table of all rows that `batches` yields, and return their number.

    Sorted chunks go to a nameless temporary file beside the table, then the table is merged from them a range of keys
    at a time. So memory holds a few chunks, whatever the number of rows, and the disk the rows twice (48 bytes a row).
    A table of the same name is replaced in one step at the end.

    Args:
        path: The file to write.
        kind: What the table indexes.
        batches: The rows in any order.
        source: Gives the `source` of the header; called when all batches were read.
        check: Called with each range of sorted rows; may raise.
        thin: Called with each sorted chunk, returns the rows to keep; may raise. All rows of one key are in memory
            at once.
        chunk_rows: How many rows are sorted at once.

    Raises:
        OperationalError: The disk is full, the folder cannot be written, or another process writes the same file.
            Nothing is left behind.
    """
    written = 0
    try:
        with replacing(path) as out, tempfile.TemporaryFile(dir=path.parent) as store:
            chunks: list[_Chunk] = []
            for keys, payload in map(sorted_rows, _gathered(batches, chunk_rows)):
                if thin is not None:
                    keys, payload = thin(keys, payload)
                chunks.append(_Chunk(store, written * _ROW, keys, payload, max(1, chunk_rows // _SAMPLES)))
                written += len(keys)
            header = msgspec.json.encode(TableHeader(kind, written, source()), order="sorted")
            _write_table(out, header, written, chunks, check)
    except OSError as error:
        needed = f"; building needs 48 bytes of disk a row, and has {written:,} rows or more" if _is_full(error) else ""
        raise OperationalError(f"{path}: the index cannot be written: {error.strerror}{needed}") from error
    return written


def _is_full(error: OSError) -> bool:
    return error.errno in _FULL


def _gathered(batches: Iterable[Batch], rows: int) -> Iterator[list[Batch]]:
    held: list[Batch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch[0])
        if count >= rows:
            yield held
            held, count = [], 0
    if count:
        yield held


class _Chunk:
    """Sorted rows in the temporary file, which are read range by range."""

    def __init__(self, store: io.BufferedRandom, start: int, keys: Keys, payload: Bytes, step: int) -> None:
        self._store = store
        self._step = step
        self._start = start
        self._count = len(keys)
        self._read = 0
        self.samples = keys[::step].copy()
        store.seek(start)
        store.write(keys.astype("<u8", copy=False).data)
        store.write(payload.data)

    def below(self, key: int | None) -> Batch:
        """The unread rows with keys below this one; all unread rows for None."""
        end = self._count if key is None else self._place(key)
        rows = end - self._read
        keys = self._bytes(self._start + self._read * 8, rows * 8).view("<u8")
        payload = self._bytes(self._start + self._count * 8 + self._read * WIDTH, rows * WIDTH)
        self._read = end
        return keys, payload.reshape(-1, WIDTH)

    def _place(self, key: int) -> int:
        sample = int(np.searchsorted(self.samples, np.uint64(key), "left"))
        if sample == 0:
            return 0
        begin = (sample - 1) * self._step
        keys = self._bytes(self._start + begin * 8, min(self._step, self._count - begin) * 8).view("<u8")
        return begin + int(np.searchsorted(keys, np.uint64(key), "left"))

    def _bytes(self, start: int, size: int) -> Bytes:
        content = np.empty(size, np.uint8)
        self._store.seek(start)
        view = content.data
        read = 0
        while read < size:
            got = self._store.readinto(view[read:])
            if not got:
                raise OSError(errno.EIO, "the temporary file is shorter than what was written")
            read += got
        return content


def _write_table(
    out: IO[bytes],
    header: bytes,
    count: int,
    chunks: Sequence[_Chunk],
    check: Callable[[Keys, Bytes], None] | None,
) -> None:
    prefix = MAGIC + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest() + header
    start = _aligned(len(prefix))
    if hasattr(os, "posix_fallocate"):
        # A disk that is too small fails here, not when most of the table is written.
        try:
            os.posix_fallocate(out.fileno(), 0, start + count * _ROW + trailer_size(count))
        except OSError as error:
            if _is_full(error):
                raise
    out.write(prefix.ljust(start, b"\0"))
    trailer = Trailer()
    done = 0
    for limit in (*_limits(chunks), None):
        keys, payload = sorted_rows(chunk.below(limit) for chunk in chunks)
        if check is not None:
            check(keys, payload)
        trailer.add(keys, payload)
        out.seek(start + done * 8)
        out.write(keys.astype("<u8", copy=False).data)
        out.seek(start + count * 8 + done * WIDTH)
        out.write(payload.data)
        done += len(keys)
    if count:
        out.seek(start + count * _ROW)
        out.write(trailer.bytes())


def _limits(chunks: Sequence[_Chunk]) -> list[int]:
    """Keys that divide all rows into ranges of about one chunk; a range is larger where many rows share one key."""
    samples = np.sort(np.concatenate([np.empty(0, np.uint64), *(chunk.samples for chunk in chunks)]))
    return [int(key) for key in np.unique(samples[_SAMPLES::_SAMPLES])]
