"""The rows of a journal, read from the pages of its file without SQLite, which refuses a file with a damaged page.

The format is that of https://www.sqlite.org/fileformat2.html. Whatever is found is only offered: the checksum of a
row says whether it is what was recorded, so a page that is stale or damaged can do no harm.
"""

import contextlib
import re
from collections.abc import Container, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from judge.models.journal_rows import COLUMNS, contradiction

_TABLE_LEAF, _INDEX_LEAF, _INDEX_NODE = 0x0D, 0x0A, 0x02
_USUAL_PAGE = 4096
"""Bytes of a page, where the head of the file does not say."""
_LONGEST = 1 << 27
"""Bytes of a row; a damaged page may name any number."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
"""Bytes of a number by its serial type."""


class FoundRow(NamedTuple):
    """A completion in a page of a journal."""

    digest: str
    row: tuple[Any, ...] | None
    """The row, of COLUMNS; None if it is not sound."""
    why: str
    """Why it is not sound."""


class _Pages:
    """The pages of a journal by number, from 1; those of the write-ahead log stand in for older ones.

    Args:
        file: The journal.
        log: Its write-ahead log, and where in it each page begins; None to look at the journal alone.
    """

    def __init__(self, file: IO[bytes], log: tuple[IO[bytes], Mapping[int, int]] | None) -> None:
        head = _read(file, 0, 100)
        self.size = _page_size(head)
        self.usable = self.size - (head[20] if len(head) > 20 and head[20] <= self.size - 480 else 0)
        """Bytes of a page that SQLite uses."""
        self._file = file
        self._number = -(-file.seek(0, 2) // self.size)
        self._log = log

    def get(self, number: int) -> bytes:
        """The bytes of a page; fewer where the file ends."""
        if self._log is not None and number in self._log[1]:
            return _read(self._log[0], self._log[1][number], self.size)
        return _read(self._file, (number - 1) * self.size, self.size) if number else b""

    def numbers(self) -> Iterator[int]:
        """The pages of the journal, then those that only the log has; a damaged number may be 0."""
        newer = self._log[1] if self._log is not None else {}
        return chain(range(1, self._number + 1), sorted(n for n in newer if not 1 <= n <= self._number))


def found_rows(path: Path, known: Container[str] = ()) -> Iterator[FoundRow]:
    """Every completion in the pages of a journal and of its `-wal` file; some come twice, and nothing is changed.

    Args:
        path: The journal.
        known: Digests whose rows are left out.

    Raises:
        OSError: A file cannot be read.
    """
    for pages, page, start, kind in _cells(path):
        if kind != _TABLE_LEAF:
            continue
        try:
            if known:
                digest = _first(_payload(pages, page, start, table=True, whole=False))
                if isinstance(digest, str) and digest in known:
                    continue
            values = _record(_payload(pages, page, start, table=True))
        except (IndexError, ValueError):
            continue
        if len(values) < len(COLUMNS) - 1 or not isinstance(values[0], str):
            continue
        # A row written before there were checksums ends earlier.
        row = (*values, None)[: len(COLUMNS)]
        why = contradiction(row)
        if not why or _DIGEST.fullmatch(row[0]):
            yield FoundRow(row[0], None if why else row, why)


def indexed_digests(path: Path) -> Iterator[str]:
    """Every digest that the index of a journal and of its `-wal` file names; some come twice.

    Raises:
        OSError: A file cannot be read.
    """
    for pages, page, start, kind in _cells(path):
        if kind == _TABLE_LEAF:
            continue
        try:
            digest = _first(_payload(pages, page, start, table=False))
        except (IndexError, ValueError):
            continue
        if isinstance(digest, str) and _DIGEST.fullmatch(digest):
            yield digest


def _cells(path: Path) -> Iterator[tuple[_Pages, bytes, int, int]]:
    """Every cell of table and index: the pages, its page, the place where it begins there, and the kind of the page."""
    log_path = path.with_name(f"{path.name}-wal")
    with contextlib.ExitStack() as files:
        # A page at a time: what is mapped counts as this process's memory.
        file = files.enter_context(path.open("rb", buffering=0))
        if log_path.exists():
            log = files.enter_context(log_path.open("rb", buffering=0))
            newer = _logged(log, _page_size(_read(file, 0, 100)))
            if newer:
                yield from _cells_of(_Pages(file, (log, newer)))
        # Without the log once more: what a damaged log hides may be whole in the file.
        yield from _cells_of(_Pages(file, None))


def _read(file: IO[bytes], start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], "big")
    return 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else _USUAL_PAGE


def _logged(log: IO[bytes], size: int) -> dict[int, int]:
    """The places of the newest pages in a write-ahead log, up to its last commit."""
    salt = _read(log, 16, 8)
    committed: dict[int, int] = {}
    since: dict[int, int] = {}
    for start in range(32, log.seek(0, 2) - size - 23, size + 24):
        head = _read(log, start, 16)
        if head[8:] != salt:
            break
        since[int.from_bytes(head[:4], "big")] = start + 24
        if any(head[4:8]):
            committed |= since
            since = {}
    return committed


def _cells_of(pages: _Pages) -> Iterator[tuple[_Pages, bytes, int, int]]:
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
            yield pages, page, int.from_bytes(page[pointer : pointer + 2], "big") + more, kind


def _payload(pages: _Pages, page: bytes, start: int, *, table: bool, whole: bool = True) -> bytes:
    """The bytes of a cell's record, with those on overflow pages if it is to be whole; shorter where one is missing."""
    usable = pages.usable
    size, start = _varint(page, start)
    if size > _LONGEST:
        raise ValueError("longer than a row")
    least = (usable - 12) * 32 // 255 - 23
    most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if table:
        _, start = _varint(page, start)
    if size <= most:
        return page[start : start + size]
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    if not whole:
        return page[start : start + local]
    parts = [page[start : start + local]]
    following, left = int.from_bytes(page[start + local : start + local + 4], "big"), size - local
    while left > 0 and following and (more := pages.get(following)):
        parts.append(more[4 : 4 + min(left, usable - 4)])
        following, left = int.from_bytes(more[:4], "big"), left - (usable - 4)
    return b"".join(parts)


def _first(payload: bytes) -> Any:
    """The first value of a record, if it is a text."""
    end, place = _varint(payload, 0)
    kind, _ = _varint(payload, place)
    return payload[end : end + (kind - 13) // 2].decode("utf-8", "replace") if kind >= 13 and kind % 2 else None


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
