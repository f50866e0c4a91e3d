"""The rows of a journal, read from the pages of its file without SQLite, which refuses a file with a damaged page.

The format is that of https://www.sqlite.org/fileformat2.html. Whatever is found is only offered: the checksum of a
row says whether it is what was recorded, so a page that is stale or damaged can do no harm.
"""

import mmap
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from judge.models.journal_rows import COLUMNS, contradiction

_TABLE_LEAF, _INDEX_LEAF, _INDEX_NODE = 0x0D, 0x0A, 0x02
_USUAL_PAGE = 4096
"""Bytes of a page, where the head of the file does not say."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
"""Bytes of a number by its serial type."""
LOST = "its page cannot be read"


class FoundRow(NamedTuple):
    """A completion that a page of a journal names."""

    digest: str
    row: tuple[Any, ...] | None
    """The row, of COLUMNS; None if it is not sound."""
    why: str
    """Why it is not sound."""


class _Pages(NamedTuple):
    """The pages of a journal by number, from 1; those of the write-ahead log stand in for older ones."""

    data: bytes | mmap.mmap
    size: int
    usable: int
    """Bytes of a page that SQLite uses."""
    newer: Mapping[int, bytes]

    def get(self, number: int) -> bytes:
        return self.newer.get(number) or self.data[(number - 1) * self.size : number * self.size]

    def numbers(self) -> Collection[int]:
        return {*range(1, -(-len(self.data) // self.size) + 1), *self.newer}


def found_rows(path: Path) -> Iterator[FoundRow]:
    """Every completion in the pages of a journal and of its `-wal` file; some come twice, and nothing is changed.

    Raises:
        OSError: A file cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with data:
        size = int.from_bytes(data[16:18], "big")
        size = 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else _USUAL_PAGE
        usable = size - (data[20] if len(data) > 20 and data[20] <= size - 480 else 0)
        log = path.with_name(f"{path.name}-wal")
        newer = _logged(log.read_bytes(), size) if log.exists() else {}
        # Without the log once more: what a damaged log hides may be whole in the file.
        for pages in (_Pages(data, size, usable, newer), _Pages(data, size, usable, {}))[: 2 if newer else 1]:
            yield from _rows(pages)


def _logged(log: bytes, size: int) -> dict[int, bytes]:
    """The newest pages of a write-ahead log, up to its last commit."""
    frames: list[tuple[int, bytes]] = []
    committed = 0
    for start in range(32, len(log) - size - 23, size + 24):
        if log[start + 8 : start + 16] != log[16:24]:
            break
        frames.append((int.from_bytes(log[start : start + 4], "big"), log[start + 24 : start + 24 + size]))
        if any(log[start + 4 : start + 8]):
            committed = len(frames)
    return dict(frames[:committed])


def _rows(pages: _Pages) -> Iterator[FoundRow]:
    for number in pages.numbers():
        page = pages.get(number)
        head = 100 if number == 1 else 0
        kind = page[head] if len(page) > head + 8 else 0
        if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_NODE):
            continue
        # The cells of a node begin with the number of the page below, and its head ends with another such number.
        more = 4 if kind == _INDEX_NODE else 0
        for place in range(int.from_bytes(page[head + 3 : head + 5], "big")):
            pointer = head + 8 + more + 2 * place
            start = int.from_bytes(page[pointer : pointer + 2], "big") + more
            try:
                values = _record(_payload(pages, page, start, table=kind == _TABLE_LEAF))
            except (IndexError, ValueError):
                continue
            digest = values[0] if values else None
            if not isinstance(digest, str):
                continue
            if kind == _TABLE_LEAF and len(values) >= len(COLUMNS) - 1:
                # A row written before there were checksums ends earlier.
                row = (*values, None)[: len(COLUMNS)]
                why = contradiction(row)
                if not why or _DIGEST.fullmatch(digest):
                    yield FoundRow(digest, None if why else row, why)
            elif kind != _TABLE_LEAF and _DIGEST.fullmatch(digest):
                yield FoundRow(digest, None, LOST)


def _payload(pages: _Pages, page: bytes, start: int, *, table: bool) -> bytes:
    """The bytes of a cell's record, with those on overflow pages; shorter where such a page is missing."""
    usable = pages.usable
    size, start = _varint(page, start)
    if size > len(pages.data) + len(pages.newer) * pages.size:
        raise ValueError("longer than the file")
    least = (usable - 12) * 32 // 255 - 23
    most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if table:
        _, start = _varint(page, start)
    if size <= most:
        return page[start : start + size]
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts = [page[start : start + local]]
    following, left = int.from_bytes(page[start + local : start + local + 4], "big"), size - local
    while left > 0 and following and (more := pages.get(following)):
        parts.append(more[4 : 4 + min(left, usable - 4)])
        following, left = int.from_bytes(more[:4], "big"), left - (usable - 4)
    return b"".join(parts)


def _record(payload: bytes) -> list[Any]:
    """The values of a record."""
    end, place = _varint(payload, 0)
    kinds = []
    while place < end:
        kind, place = _varint(payload, place)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        width = (kind - 12) // 2 if kind >= 12 else _WIDTHS.get(kind, 0)
        raw = payload[place : place + width]
        place += width
        if kind >= 13 and kind % 2:
            values.append(raw.decode("utf-8", "replace"))
        elif kind >= 12 or kind == 7:
            values.append(raw)
        else:
            values.append(
                None if kind == 0 else kind - 8 if kind in (8, 9) else int.from_bytes(raw, "big", signed=True)
            )
    return values


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place after it."""
    value = 0
    for offset in range(8):
        byte = data[place + offset]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + offset + 1
    return value << 8 | data[place + 8], place + 9
