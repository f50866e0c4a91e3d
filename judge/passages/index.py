"""An index of where each passage of a plain JSONL collection begins, so that a pool's passages are read at once."""

import functools
import hashlib
import itertools
import os
import stat
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import IO, Final

import msgspec

import judge.passages.streams as streams
from judge.errors import InputError
from judge.io.files import BOM, input_errors, why_not_json
from judge.io.steps import Step, Steps, metered, quiet
from judge.passages.jsonl import HEAD, NEEDED, UNREADABLE, Line, passage_of
from judge.passages.table import PassageEntry, PassageTable, build_table, open_table

MAX_OF_ONE_ID: Final = 1000
"""The most lines with one id: a collection has fewer, and all of them are held in memory at once."""
_BLOCK = 1 << 20
_EDGE = 1 << 16
_LOCATION: Final = struct.Struct(">IQI")
"""Where a line is: the number of its file, its first byte, and its length in bytes."""


class _File(msgspec.Struct, frozen=True):
    """One file of the collection; `path` is relative to the folder of the index if the file lies below that folder."""

    path: str
    size: int
    edges: str
    """SHA-256 of the first and the last 64 KiB."""


def index_collection(paths: Sequence[Path], out: Path, steps: Steps = quiet) -> int:
    """Build the index of plain JSONL files, or of all shards in folders, and return the number of its passages.

    Raises:
        InputError: A file is packed, is not plain JSONL, changes meanwhile, or has lines without a passage; or no file
            has a passage; or one id is on more than `MAX_OF_ONE_ID` lines. The first ten problems are listed.
        OperationalError: The index cannot be written. In both cases nothing is left behind.
    """
    out = Path(out)
    return build_table(out, "offsets", _Build([Path(path) for path in paths], out.parent, steps))


class _Build:
    """The lines of a collection's files, and their problems."""

    def __init__(self, paths: Sequence[Path], folder: Path, steps: Steps) -> None:
        self._folder = folder
        self.problems = streams.CollectionProblems("passages_unreadable", "the collection cannot be indexed as it is")
        self._files = streams.expanded(paths, self.problems)
        # Every file is checked first: the last of a thousand may be packed.
        for file in self._files:
            if message := _unfit(file):
                self.problems.add(file, None, message)
        self.problems.settle()
        self._seen: list[_File] = []
        self._steps = steps
        self._meter = metered("reading the collection", sum(file.stat().st_size for file in self._files), steps)

    def entries(self) -> Iterator[PassageEntry]:
        """Passage id and location of every line that is not blank."""
        any_row = False
        for number, file in enumerate(self._files):
            for name, location in self._rows(number, file):
                any_row = True
                yield name, location, 0
        if not any_row and not self.problems:
            self.problems.add(self._files[0], None, "no passage in it, nor in another of the files")
        self.problems.settle()
        self._steps(Step("sorting and writing the index"))

    def source(self) -> dict[str, object]:
        """The facts about the files for the header of the index."""
        return {"files": [msgspec.to_builtins(file) for file in self._seen]}

    def repeated(self, earlier: PassageEntry, entry: PassageEntry, times: int) -> None:
        """One id stands on several lines, with one text as a rule."""
        if times == MAX_OF_ONE_ID + 1:
            number, offset, _ = _LOCATION.unpack(entry[1])
            message = f"the id at byte {offset:,} stands on more than {MAX_OF_ONE_ID:,} lines"
            self.problems.add(self._files[number], None, message)

    def _rows(self, number: int, file: Path) -> Iterator[tuple[bytes, bytes]]:
        bad = functools.partial(self.problems.add, file)
        try:
            with file.open("rb") as stream:
                before = os.fstat(stream.fileno())
                offset = len(BOM) if stream.read(len(BOM)) == BOM else 0
                stream.seek(offset)
                line = 0
                for block in streams.whole_lines(iter(functools.partial(stream.read, _BLOCK), b""), streams.MAX_LINE):
                    if block is None:
                        bad(line + 1, f"a line of more than {streams.MAX_LINE >> 20} MiB")
                        return
                    self._meter(len(block))
                    for content in block[:-1].split(b"\n"):
                        line += 1
                        if (name := _name(content, functools.partial(bad, line))) is not None:
                            yield name, _LOCATION.pack(number, offset, len(content))
                        offset += len(content) + 1
                    if offset > before.st_size + 1:
                        # It may grow as fast as it is read.
                        break
                absolute = file.resolve()
                base = self._folder.resolve()
                inside = absolute.relative_to(base) if absolute.is_relative_to(base) else absolute
                self._seen.append(_seen(stream, str(inside)))
                after = os.fstat(stream.fileno())
                # The last line may lack its line break, which the block has.
                whole = offset - before.st_size in (0, 1)
                if not whole or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                    bad(None, "the file changed while it was read")
        except OSError as error:
            bad(None, f"cannot be read to the end: {error.strerror}")


def _name(line: bytes, bad: Callable[[str], None]) -> bytes | None:
    """The id of the passage on a line; None for a blank line and for one without a passage, which is reported."""
    if line.startswith(HEAD):
        end = line.find(b'"', len(HEAD))
        name = line[len(HEAD) : end]
        if end > len(HEAD) and b"\\" not in name:
            return name
    elif not line.strip():
        return None
    try:
        passage = passage_of(msgspec.json.decode(line, type=Line))
    except UNREADABLE as error:
        bad(f"cannot be read as a passage: {why_not_json(line, error)}")
        return None
    if passage is None:
        bad(NEEDED)
        return None
    return passage[0].encode(errors="surrogatepass")


def _unfit(file: Path) -> str | None:
    """Why a file cannot be indexed; None if it can."""
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            return "an index needs plain files, not a pipe"
        with file.open("rb") as stream:
            start = stream.read(_EDGE)
        streams.refuse_foreign(start)
    except streams.UnknownForm as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if packed := streams.packing(start):
        return f"the file is packed ({packed}); an index needs plain JSONL: unpack it, or name only the plain files"
    if start.removeprefix(BOM).lstrip()[:1] not in (b"{", b""):
        return "expected JSON Lines, which begin with '{'"
    return None


def read_indexed(path: Path, wanted: Collection[str]) -> dict[str, str]:
    """The texts of the wanted passages through the index at `path`; an id that the collection does not have is absent.

    An InputError if the index is damaged, a file is not as it was when the index was built, or one id has two texts.
    """
    # Paths in the index are relative to its own folder, not to that of a link to it.
    path = Path(path).resolve()
    table = open_table(path, "offsets")
    files = _listed(table, path)
    texts: dict[str, str] = {}
    # In the order of files and bytes.
    places = sorted(
        (*_LOCATION.unpack(location), name)
        for name in frozenset(wanted)
        for location in table.find(name.encode(errors="surrogatepass"))
    )
    for number, group in itertools.groupby(places, key=itemgetter(0)):
        file = _unchanged(path, files, number)
        with input_errors(file), file.open("rb") as stream:
            for _, offset, length, passage_id in group:
                if offset + length > files[number].size:
                    raise InputError(f"{path}: the index is damaged; build it again")
                stream.seek(offset)
                where = f"{file}: at byte {offset}"
                text = _text(stream.read(length), passage_id, where)
                if texts.setdefault(passage_id, text) != text:
                    raise InputError(f"{where}: passage {passage_id} has another text here than before")
    return texts


def _text(stored: bytes, passage_id: str, where: str) -> str:
    try:
        passage = passage_of(msgspec.json.decode(stored, type=Line))
    except UNREADABLE as error:
        raise InputError(f"{where}: cannot be read as a passage: {why_not_json(stored, error)}") from error
    if passage is None:
        raise InputError(f"{where}: passage {passage_id} has no text: {NEEDED}")
    name, text = passage
    if name != passage_id:
        raise InputError(f"{where}: expected passage {passage_id}, found {name}; build the index again")
    # One character too many is enough for the refusal.
    return text[: streams.MAX_TEXT + 1]


def _seen(stream: IO[bytes], name: str) -> _File:
    size = os.fstat(stream.fileno()).st_size
    digest = hashlib.sha256()
    for place in (0, max(0, size - _EDGE)):
        stream.seek(place)
        digest.update(stream.read(_EDGE))
    return _File(name, size, digest.hexdigest())


def indexed_files(path: Path) -> list[Path]:
    """The files behind the index of a collection; empty for a damaged index or one of a hash list."""
    path = path.resolve()
    try:
        return [path.parent / file.path for file in _listed(open_table(path, "offsets"), path)]
    except InputError:
        return []


def _listed(table: PassageTable, path: Path) -> list[_File]:
    try:
        return msgspec.convert(table.source.get("files"), list[_File])
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: the header of the index is damaged: {error}; build it again") from error


def _unchanged(path: Path, files: Sequence[_File], number: int) -> Path:
    """The path of one file of the index, which must be as it was when the index was built."""
    if number >= len(files):
        raise InputError(f"{path}: the index is damaged; build it again")
    file = path.parent / files[number].path
    try:
        with file.open("rb") as stream:
            now = _seen(stream, files[number].path)
    except OSError as error:
        raise InputError(f"{file}: the index needs this file and it cannot be read: {error.strerror}") from error
    if now != files[number]:
        raise InputError(f"{file}: not as it was when {path} was built; build the index again")
    return file
