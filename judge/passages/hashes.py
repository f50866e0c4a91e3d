"""Which passages the collection has, and the MD5 of each text: its hash list, or an index built from that list.

Two forms of the list are read: `document<TAB>number<TAB>MD5` (iKAT; the passage is `document:number`) and
`passage,MD5` (CAsT). iKAT's script makes the MD5 from the UTF-8 bytes of the text just as it stands in the JSONL
collection (`write_hashes` of irlabamsterdam/iKAT, 2023/scripts/ikat_tools.py at commit c42315e). CAsT's was not
looked into.
"""

import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError, UsageError
from judge.passages.keys import OTHER, WINDOW, Bytes, Keys, key_of, keys_of, packed_keys
from judge.passages.magic import is_index
from judge.passages.streams import open_stream
from judge.passages.table import WIDTH, Batch, Table, TableHeader, build_table, clashes, open_table, sorted_rows
from judge.records import Problem

MAX_PROBLEMS = 10
"""Reading stops here: a wrong file may have a hundred million lines."""
MAX_IN_MEMORY = 20_000_000
"""Rows of a list that is read without an index; about 1.3 GB while they are sorted."""
_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of the longest line; a file without line breaks must not fill the memory."""
Places = NDArray[np.int64]
_MD5 = re.compile(rb"[0-9a-fA-F]{32}")
_TAB, _BREAK, _RETURN = 9, 10, 13
_BOM = b"\xef\xbb\xbf"
_NO_KEY = OTHER - 1
"""Above every packed key and below every hashed one."""


def same_text(text: str, md5: bytes) -> bool:
    """Whether a text has an MD5 of the hash list, as it is or without what is white around it.

    iKAT's segmenter writes no line breaks around a text; its lists of canonical passages (`*_psg_text.jsonl`) and
    TREC-web add some.
    """
    return md5 in (_md5(text), _md5(text.strip("\r\n")), _md5(text.strip()))


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()


class Hashes:
    """The MD5 of every passage of a collection."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def count(self) -> int:
        """Rows of the list."""
        return self._table.header.count

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the unpacked list that this was read or built from."""
        return str(self._table.header.source.get("sha256", ""))

    def find(self, ids: Sequence[str]) -> list[bytes | None]:
        """The MD5 of each passage, 16 bytes; None where the collection has no such passage."""
        first, past = self._table.find(keys_of(ids))
        there = past > first
        found = iter(self._table.payload[first[there]].view(f"V{WIDTH}")[:, 0].tolist())
        return [next(found) if one else None for one in there.tolist()]


def open_hashes(path: Path) -> Hashes:
    """Open an index, or read a hash list of up to `MAX_IN_MEMORY` rows, packed or not.

    Raises:
        InputError: The file cannot be read, or the index is damaged, or lines of the list are wrong.
        UsageError: The list is too long to be held in memory.
    """
    path = Path(path)
    if is_index(path):
        return Hashes(open_table(path, "hashes"))
    rows = _Rows(path, MAX_IN_MEMORY)
    keys, payload = sorted_rows(rows)
    rows.refuse_clashes(keys, payload)
    return Hashes(Table(TableHeader("hashes", len(keys), rows.source()), keys, payload))


def index_hashes(path: Path, out: Path) -> int:
    """Build the index of a hash list, and give the number of its rows.

    Raises:
        InputError: The list cannot be read or has wrong lines; the first ten are listed.
        OperationalError: The index cannot be written. In both cases nothing is left behind.
    """
    rows = _Rows(Path(path))
    return build_table(Path(out), "hashes", rows, rows.source, rows.refuse_clashes)


class _Rows:
    """The rows of a hash list in batches, and what is wrong with it."""

    def __init__(self, path: Path, most: int | None = None) -> None:
        self._path = path
        self._most = most
        self._problems: list[Problem] = []
        self._digest = hashlib.sha256()
        self._count = 0

    def __iter__(self) -> Iterator[Batch]:
        for first, block, breaks in self._blocks(self._digest.update):
            keys, payload = _parsed(block, breaks, self._on_line(first))
            self._count += len(keys)
            if self._most is not None and self._count > self._most:
                raise UsageError(
                    f"{self._path}: more than {self._most:,} rows; build an index of the list first: "
                    f"judge passages index --hashes {self._path} -o FILE"
                )
            if not self._problems:
                yield keys, payload
        if not self._count and not self._problems:
            self._bad(1, "the list is empty")
        if self._problems:
            raise self._refusal()

    def source(self) -> dict[str, Any]:
        """What the header of an index says of the list."""
        return {"sha256": self._digest.hexdigest()}

    def refuse_clashes(self, keys: Keys, payload: Bytes) -> None:
        """Refuse sorted rows in which one passage has two MD5s; the list is read again for the line numbers."""
        clashing = clashes(keys, payload)[:MAX_PROBLEMS]
        if not len(clashing):
            return
        seen: dict[int, tuple[int, bytes, bytes]] = {}
        for first, block, breaks in self._blocks(lambda _: None):
            found, _ = _parsed(block, breaks, lambda _row, _message: None, keep_wrong=True)
            for row in np.flatnonzero(np.isin(found, clashing)):
                line = block.split(b"\n")[row]
                passage, md5 = _fields(line)
                number, other, earlier = seen.setdefault(int(found[row]), (first + int(row), passage, md5))
                name = passage.decode(errors="replace")
                if passage != other:
                    self._bad(first + int(row), f"passage {name} has the key of the one on line {number}")
                elif md5 != earlier:
                    self._bad(first + int(row), f"passage {name} has another MD5 here than on line {number}")
        raise self._refusal()

    def _on_line(self, first: int) -> Callable[[int, str], None]:
        return lambda row, message: self._bad(first + row, message)

    def _bad(self, line: int, message: str) -> None:
        self._problems.append(Problem("hash_list_wrong", "error", str(self._path), None, f"line {line}: $", message))
        if len(self._problems) == MAX_PROBLEMS:
            raise self._refusal()

    def _refusal(self) -> InputError:
        return InputError("the hash list cannot be used as it is", self._problems)

    def _blocks(self, update: Callable[[bytes], None]) -> Iterator[tuple[int, bytes, Places]]:
        """Whole lines, some thousand at a time: the number of the first of them, and where the line breaks are."""
        line = 1
        rest = b""
        first = True
        try:
            with open_stream(self._path) as stream:
                while block := stream.read(_BLOCK):
                    update(block)
                    if first:
                        block = block.removeprefix(_BOM)
                        first = False
                    block = rest + block
                    cut = block.rfind(b"\n") + 1
                    block, rest = block[:cut], block[cut:]
                    breaks = _breaks(block)
                    if block:
                        yield line, block, breaks
                    line += len(breaks)
                    if len(rest) > _LONGEST:
                        self._bad(line, f"the line is longer than {_LONGEST:,} bytes")
                        raise self._refusal()
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read to the end: {error.strerror or error}") from error
        if rest:
            yield line, rest + b"\n", np.array([len(rest)])


def _breaks(block: bytes) -> Places:
    return np.flatnonzero(np.frombuffer(block, np.uint8) == _BREAK)


def _parsed(block: bytes, breaks: Places, bad: Callable[[int, str], None], *, keep_wrong: bool = False) -> Batch:
    """Keys and MD5s of whole lines; lines that are wrong, or blank, are left out unless `keep_wrong`."""
    content = np.frombuffer(block + bytes(WINDOW), np.uint8)
    starts = np.empty_like(breaks)
    starts[0] = 0
    starts[1:] = breaks[:-1] + 1
    ends = breaks - ((breaks > starts) & (content[breaks - 1] == _RETURN))
    keys, good, stops = packed_keys(content, starts, _TAB)
    good &= (ends - stops == 33) & (content[stops] == _TAB)
    payload, good = _digests(content, ends, good)
    for row in np.flatnonzero(~good):
        line = block[starts[row] : ends[row]]
        keys[row] = _NO_KEY
        if not line:
            continue
        if message := _fault(line):
            bad(int(row), message)
            continue
        passage, md5 = _fields(line)
        keys[row] = key_of(passage)
        payload[row] = np.frombuffer(md5, np.uint8)
        good[row] = True
    if keep_wrong or good.all():
        return keys, payload
    return keys[good], payload[good]


def _digests(content: Bytes, ends: Places, good: NDArray[np.bool_]) -> tuple[Bytes, NDArray[np.bool_]]:
    """The MD5s before the ends of the good rows, and which rows are still good: those in hexadecimal."""
    written = np.ndarray((len(content) - 31,), "V32", content, strides=(1,))[ends[good] - 32]
    try:
        digests = binascii.unhexlify(written.tobytes())
    except binascii.Error:
        good = good.copy()
        good[good] = [_MD5.fullmatch(one.tobytes()) is not None for one in written]
        return _digests(content, ends, good)
    payload = np.zeros((len(ends), WIDTH), np.uint8)
    payload[good] = np.frombuffer(digests, np.uint8).reshape(-1, WIDTH)
    return payload, good


def _fault(line: bytes) -> str | None:
    """What is wrong with a line of the list."""
    fields = line.split(b"\t") if b"\t" in line else line.rsplit(b",", 1)
    if len(fields) != (3 if b"\t" in line else 2):
        return f"expected document, number and MD5, with tabs between them, found {len(fields)} columns"
    *name, md5 = fields
    if not _MD5.fullmatch(md5):
        return f"expected an MD5 of 32 hexadecimal digits, found {_shown(md5)}"
    if not name[0].strip():
        return "the id is empty"
    if len(name) == 2 and not (name[1].isdigit() and len(name[1]) < 19):
        return f"expected the number of a passage, found {_shown(name[1])}"
    return None


def _fields(line: bytes) -> tuple[bytes, bytes]:
    """Passage id and MD5 of a line without fault."""
    line = line.removesuffix(b"\r")
    name, _, md5 = line.rpartition(b"\t" if b"\t" in line else b",")
    return name.replace(b"\t", b":"), binascii.unhexlify(md5)


def _shown(field: bytes) -> str:
    return repr(field[:40].decode(errors="replace"))
