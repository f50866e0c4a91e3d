"""The collection's passage ids with the MD5 of each text, from its hash list or from an index of that list.

Two forms of the list are read: `document<TAB>number<TAB>MD5` (iKAT; the passage is `document:number`) and
`passage,MD5` (CAsT). iKAT's script makes the MD5 from the UTF-8 bytes of the text just as it stands in the JSONL
collection (`write_hashes` of irlabamsterdam/iKAT, 2023/scripts/ikat_tools.py at commit c42315e). How CAsT's was
made was not checked.
"""

import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judge.errors import InputError, UsageError
from judge.io.files import BOM, StrPath
from judge.io.steps import Step, Steps, metered, quiet
from judge.passages.streams import CollectionProblems, UnknownForm, cause, is_index, open_stream, whole_lines
from judge.passages.table import PassageEntry, PassageTable, build_table, open_table, passing_table

MAX_IN_MEMORY = 20_000_000
"""The most rows of a list that is read without an index, which takes some minutes."""
_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""The most bytes of a line."""
_MD5 = re.compile(rb"[0-9a-fA-F]{32}")


class Hashes:
    """The MD5 of every passage of a collection."""

    def __init__(self, table: PassageTable) -> None:
        self._table = table

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the unpacked hash list."""
        return str(self._table.source.get("sha256", ""))

    def find(self, ids: Sequence[str]) -> list[bytes | None]:
        """The MD5 of each passage id, 16 bytes; None where the collection has no such passage."""
        # A lone surrogate is encoded as it is, so that such an id matches no other.
        return [next(iter(self._table.find(name.encode(errors="surrogatepass"))), None) for name in ids]


def open_hashes(path: StrPath) -> Hashes:
    """Open an index, or read a hash list of up to `MAX_IN_MEMORY` rows, packed or not.

    An InputError if the file cannot be read, or the index is damaged, or lines of the list are wrong. A UsageError if
    the list is too long to be held in memory.
    """
    path = Path(path)
    if is_index(path):
        return Hashes(open_table(path, "hashes"))
    return Hashes(passing_table(str(path), "hashes", _Rows(path, MAX_IN_MEMORY)))


def index_hashes(path: Path, out: Path, steps: Steps = quiet) -> int:
    """Build the index of a hash list and return the number of its passages.

    Raises:
        InputError: The list cannot be read or has wrong lines; the first ten are listed.
        OperationalError: The index cannot be written. In both cases nothing is left behind.
    """
    return build_table(Path(out), "hashes", _Rows(Path(path), steps=steps))


class _Rows:
    """The rows of a hash list, and the problems of its lines."""

    def __init__(self, path: Path, most: int | None = None, steps: Steps = quiet) -> None:
        self._path = path
        self._steps = steps
        self._most = most
        self.problems = CollectionProblems("hash_list_wrong", "the hash list cannot be used as it is")
        self._digest = hashlib.sha256()

    def entries(self) -> Iterator[PassageEntry]:
        """Passage id, MD5 and number of every line that is not blank; ends with an error if any line is wrong."""
        count = 0
        for number, line in enumerate(self._lines(), 1):
            if not line:
                continue
            row = parsed(line)
            if isinstance(row, str):
                self.problems.add(self._path, number, row)
                continue
            count += 1
            if self._most is not None and count > self._most:
                raise UsageError(
                    f"{self._path}: more than {self._most:,} rows; build an index of the list first: "
                    f"judge passages index --hashes {self._path} -o FILE"
                )
            yield *row, number
        if not count and not self.problems:
            self.problems.add(self._path, 1, "the list is empty")
        self.problems.settle()
        self._steps(Step("sorting and writing the index"))

    def source(self) -> dict[str, Any]:
        """The facts about the list for the header of its index."""
        return {"sha256": self._digest.hexdigest()}

    def repeated(self, earlier: PassageEntry, entry: PassageEntry, times: int) -> None:
        """One passage has two MD5s; refused once all such passages are known."""
        first, second = sorted((earlier[2], entry[2]))
        told = f"passage {entry[0].decode(errors='replace')} has another MD5 here than on line {first}"
        self.problems.add(self._path, second, told)

    def _lines(self) -> Iterator[bytes]:
        """The lines without their ends."""
        passed = 0
        try:
            for block in whole_lines(self._unpacked(), _LONGEST):
                if block is None:
                    self.problems.add(self._path, passed + 1, f"the line is longer than {_LONGEST:,} bytes")
                    self.problems.settle()
                    return
                for line in block[:-1].split(b"\n"):
                    yield line.removesuffix(b"\r")
                    passed += 1
        except OSError as error:
            raise InputError(f"{self._path}: {cause(error)}") from error

    def _unpacked(self) -> Iterator[bytes]:
        """The list without its byte order mark, which the digest includes."""
        self._digest = hashlib.sha256()
        size = self._path.stat().st_size if self._path.is_file() else 0
        with open_stream(self._path, metered("reading the hash list", size, self._steps)) as stream:
            block = stream.read(_BLOCK)
            self._digest.update(block)
            if b"\0" in block:
                raise UnknownForm("the file is binary; expected the lines of a hash list")
            yield block.removeprefix(BOM)
            while block := stream.read(_BLOCK):
                self._digest.update(block)
                yield block


def parsed(line: bytes) -> tuple[bytes, bytes] | str:
    """Passage id and MD5 of a line of a hash list; the problem if it has none."""
    tabbed = b"\t" in line
    columns = line.split(b"\t") if tabbed else line.rsplit(b",", 1)
    if len(columns) != (3 if tabbed else 2):
        return f"expected document, number and MD5, with tabs between them, found {len(columns)} columns"
    if not _MD5.fullmatch(columns[-1]):
        return f"expected an MD5 of 32 hexadecimal digits, found {_shown(columns[-1])}"
    if not columns[0].strip():
        return "the id is empty"
    if tabbed and not (columns[1].isdigit() and len(columns[1]) < 19):
        return f"expected the number of a passage, found {_shown(columns[1])}"
    return b":".join(columns[:-1]), binascii.unhexlify(columns[-1])


def _shown(field: bytes) -> str:
    return repr(field[:40].decode(errors="replace"))
