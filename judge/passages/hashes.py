"""The collection's passage ids with the MD5 of each text, from its hash list or from an index of that list.

Two forms of the list are read: `document<TAB>number<TAB>MD5` (iKAT; the passage is `document:number`) and
`passage,MD5` (CAsT). iKAT's script makes the MD5 from the UTF-8 bytes of the text just as it stands in the JSONL
collection (`write_hashes` of irlabamsterdam/iKAT, 2023/scripts/ikat_tools.py at commit c42315e). How CAsT's was
made was not checked.
"""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judge.errors import InputError, UsageError
from judge.files.paths import StrPath
from judge.passages.hash_rows import Places, fields, parsed
from judge.passages.keys import Bytes, Keys, id_of, keys_of
from judge.passages.magic import is_index
from judge.passages.problems import MAX_PROBLEMS, CollectionProblems
from judge.passages.streams import BOM, UnknownForm, cause, open_stream, whole_lines
from judge.passages.table import (
    WIDTH,
    Batch,
    KeyTable,
    TableHeader,
    build_table,
    clashes,
    distinct,
    open_table,
    sorted_rows,
)
from judge.text.steps import Meter, Step, Steps, quiet

MAX_IN_MEMORY = 20_000_000
"""The most rows of a list that is read without an index; sorting them takes about 1.3 GB."""
_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""The most bytes of a line."""


class Hashes:
    """The MD5 of every passage of a collection."""

    def __init__(self, table: KeyTable) -> None:
        self._table = table

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the unpacked hash list."""
        return str(self._table.header.source.get("sha256", ""))

    def find(self, ids: Sequence[str]) -> list[bytes | None]:
        """The MD5 of each passage id, 16 bytes; None where the collection has no such passage."""
        first, past = self._table.find(keys_of(ids))
        listed = past > first
        md5s = iter(self._table.rows(first[listed]).view(f"V{WIDTH}")[:, 0].tolist())
        return [next(md5s) if is_listed else None for is_listed in listed.tolist()]


def open_hashes(path: StrPath) -> Hashes:
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
    return Hashes(KeyTable(TableHeader("hashes", len(keys), rows.source()), keys, payload))


def index_hashes(path: Path, out: Path, steps: Steps = quiet) -> int:
    """Build the index of a hash list and return the number of its rows; a repeated row may count twice.

    Raises:
        InputError: The list cannot be read or has wrong lines; the first ten are listed.
        OperationalError: The index cannot be written. In both cases nothing is left behind.
    """
    rows = _Rows(Path(path), steps=steps)
    return build_table(Path(out), "hashes", rows, rows.source, rows.refuse_clashes, thin=distinct)


class _Rows:
    """The rows of a hash list in batches, and the problems of its lines."""

    def __init__(self, path: Path, most: int | None = None, steps: Steps = quiet) -> None:
        self._path = path
        self._steps = steps
        self._most = most
        self._problems = CollectionProblems("hash_list_wrong", "the hash list cannot be used as it is")
        self._digest = hashlib.sha256()
        self._count = 0

    def __iter__(self) -> Iterator[Batch]:
        for first, block, ends in self._blocks():
            keys, payload = parsed(block, ends, functools.partial(self._on_row, first))
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
        self._steps(Step("sorting and writing the index"))
        self._problems.settle()

    def source(self) -> dict[str, Any]:
        """The facts about the list for the header of its index."""
        return {"sha256": self._digest.hexdigest()}

    def refuse_clashes(self, keys: Keys, payload: Bytes) -> None:
        """Refuse a list in which one passage has two MD5s; a plain file is read again for the line numbers."""
        clashing = clashes(keys, payload)[:MAX_PROBLEMS]
        if not len(clashing):
            return
        if self._path.is_file():
            self._name_lines(clashing)
        else:
            for key in clashing.tolist():
                name = id_of(key)
                self._bad(None, f"{f'passage {name}' if name else 'a passage of another form'} has two MD5s")
        self._problems.settle()

    def _name_lines(self, clashing: Keys) -> None:
        seen: dict[int, tuple[int, bytes, bytes]] = {}
        for first, block, ends in self._blocks():
            keys, _ = parsed(block, ends, lambda _row, _message: None, keep_wrong=True)
            for row in np.flatnonzero(np.isin(keys, clashing)).tolist():
                passage, md5 = fields(block[ends[row - 1] + 1 if row else 0 : ends[row]])
                number, earlier_passage, earlier_md5 = seen.setdefault(int(keys[row]), (first + row, passage, md5))
                name = passage.decode(errors="replace")
                if passage != earlier_passage:
                    self._bad(first + row, f"passage {name} has the key of the one on line {number}")
                elif md5 != earlier_md5:
                    self._bad(first + row, f"passage {name} has another MD5 here than on line {number}")

    def _on_row(self, first: int, row: int, message: str) -> None:
        self._bad(first + row, message)

    def _bad(self, line: int | None, message: str) -> None:
        self._problems.add(self._path, line, message)

    def _blocks(self) -> Iterator[tuple[int, bytes, Places]]:
        """Blocks of whole lines: the number of the first line, the bytes, and the places of the line breaks."""
        line = 1
        try:
            for block in whole_lines(self._unpacked(), _LONGEST):
                if block is None:
                    self._bad(line, f"the line is longer than {_LONGEST:,} bytes")
                    raise self._problems.error()
                # `line_ends` is faster only for the long lines of a collection.
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
                yield line, block, ends
                line += len(ends)
        except OSError as error:
            raise InputError(f"{self._path}: {cause(error)}") from error

    def _unpacked(self) -> Iterator[bytes]:
        """The list without its byte order mark, which the digest includes."""
        self._digest = hashlib.sha256()
        size = self._path.stat().st_size if self._path.is_file() else 0
        with open_stream(self._path, Meter("reading the hash list", size, self._steps)) as stream:
            block = stream.read(_BLOCK)
            self._digest.update(block)
            if b"\0" in block:
                raise UnknownForm("the file is binary; expected the lines of a hash list")
            yield block.removeprefix(BOM)
            while block := stream.read(_BLOCK):
                self._digest.update(block)
                yield block
