"""Where each passage of a plain JSONL collection begins: an index that makes extracting a pool's passages instant."""

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.errors import InputError
from judge.ids import natural_key
from judge.passages.keys import WINDOW, Bytes, key_of, keys_of, packed_keys
from judge.passages.magic import is_index
from judge.passages.table import Batch, Table, build_table, open_table
from judge.records import Passage, Problem

__all__ = ["index_collection", "is_index", "read_indexed"]

MAX_PROBLEMS = 10
"""Reading stops here: a wrong file may have a hundred million lines."""
_BLOCK = 1 << 18
_LONGEST = 1 << 26
"""Bytes of the longest line; a file without line breaks must not fill the memory."""
_EDGE = 1 << 16
_HEAD = b'{"id": "'
_ROW = np.dtype([("offset", "<u8"), ("file", "<u4"), ("length", "<u4")])
_COLON = ord(":")
_BOM = b"\xef\xbb\xbf"
_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstandard"}

_Bad = Callable[[int | None, str], None]
"""Takes the number of a line, None for the whole file, and what is wrong with it."""


class _File(msgspec.Struct, frozen=True):
    """One file of the collection; `path` is relative to the folder of the index where it lies below it."""

    path: str
    size: int
    edges: str
    """SHA-256 of the first and the last 64 KiB."""


class _Head(msgspec.Struct):
    id: str | None = None
    doc_id: str | None = None
    passage_id: str | None = None

    def name(self) -> str | None:
        if self.id is None and self.doc_id is not None and self.passage_id is not None:
            return f"{self.doc_id}:{self.passage_id}"
        return self.id


class _Line(_Head):
    contents: str | None = None
    passage_text: str | None = None


_Place = tuple[int, int, int, str]
"""The number of a file, offset and length in bytes of a line in it, and the passage that may stand there."""


def index_collection(paths: Sequence[Path], out: Path) -> int:
    """Build the index of plain JSONL files and give the number of its passages; a folder stands for its `.jsonl`.

    Raises:
        InputError: A file is packed, cannot be read, or has lines without an id; the first ten are listed.
        OperationalError: The index cannot be written. In both cases nothing is left behind.
    """
    out = Path(out)
    problems: list[Problem] = []
    files = _files([Path(path) for path in paths], problems)
    seen: list[_File] = []

    def batches() -> Iterator[Batch]:
        for number, file in enumerate(files):
            yield from _rows(file, number, functools.partial(_add, problems, file))
            if problems:
                continue
            try:
                seen.append(_seen(file, _stored_name(file, out.parent)))
            except OSError as error:
                _add(problems, file, None, f"cannot be read: {error.strerror}")
        if problems:
            raise _refusal(problems)

    return build_table(out, "offsets", batches(), lambda: {"files": [msgspec.to_builtins(one) for one in seen]})


def read_indexed(path: Path, wanted: Collection[str]) -> dict[str, Passage]:
    """The texts of the wanted passages through the index at `path`; an id that the collection has not is absent.

    Raises:
        InputError: The index is damaged, a file is not as it was when the index was built, or one id has two texts.
    """
    path = Path(path)
    table = open_table(path, "offsets")
    files = _listed(table, path)
    found: dict[str, Passage] = {}
    for number, group in itertools.groupby(_places(table, wanted), key=lambda place: place[0]):
        file = _unchanged(path, files, number)
        try:
            with file.open("rb") as stream:
                for _, offset, length, passage_id in group:
                    if offset + length > files[number].size:
                        raise InputError(f"{path}: the index is damaged; build it again")
                    stream.seek(offset)
                    where = f"{file}: at byte {offset}"
                    text = _text(stream.read(length), passage_id, where)
                    if text is None:
                        continue
                    earlier = found.setdefault(passage_id, Passage(passage_id, text, "collection"))
                    if earlier.text != text:
                        raise InputError(f"{where}: passage {passage_id} has another text here than before")
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    return found


def _places(table: Table, wanted: Collection[str]) -> list[_Place]:
    """Where the wanted passages may stand, in the order of files and bytes.

    Two places of one passage are two lines with its id, or, for ids of another form than ClueWeb22's, with its key.
    """
    ids = list(frozenset(wanted))
    first, past = table.find(keys_of(ids))
    counts = past - first
    owners = np.repeat(np.arange(len(ids)), counts)
    rows = first[owners] + np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = table.payload.reshape(-1).view(_ROW)[rows]
    columns = (places[name].tolist() for name in ("file", "offset", "length"))
    return sorted(zip(*columns, [ids[owner] for owner in owners.tolist()], strict=True))


def _text(stored: bytes, passage_id: str, where: str) -> str | None:
    """The text on a line; None if it is another passage's that has the same key."""
    try:
        line = msgspec.json.decode(stored, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as a passage: {error}") from error
    name = line.name()
    if name != passage_id:
        if name is not None and _key(name) == _key(passage_id):
            return None
        raise InputError(f"{where}: expected passage {passage_id}, found {name}; build the index again")
    text = line.contents if line.id is not None else line.passage_text
    if text is None:
        raise InputError(f"{where}: passage {passage_id} has no text")
    return text


def _key(passage_id: str) -> int:
    return key_of(passage_id.encode(errors="surrogatepass"))


def _files(paths: Sequence[Path], problems: list[Problem]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        try:
            path.stat()
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
        except OSError as error:
            _add(problems, path, None, f"cannot be read: {error.strerror}")
            continue
        shards = [file for file in inside or () if file.suffix == ".jsonl" and file.name[0] != "."]
        if inside is not None and not shards:
            _add(problems, path, None, "the folder has no file that ends in .jsonl; an index needs plain JSONL files")
        files += [path] if inside is None else shards
    return files


def _rows(file: Path, number: int, bad: _Bad) -> Iterator[Batch]:
    """The key and the place of every line of one file, a block of lines at a time."""
    try:
        with file.open("rb") as stream:
            start = stream.read(4)
            for magic, name in _PACKED.items():
                if start.startswith(magic):
                    bad(None, f"the file is packed ({name}); an index needs plain JSONL: unpack it first")
                    return
            offset = len(_BOM) if start.startswith(_BOM) else 0
            stream.seek(offset)
            line, rest = 1, b""
            while block := stream.read(_BLOCK):
                block = rest + block
                cut = block.rfind(b"\n") + 1
                rest = block[cut:]
                if len(rest) > _LONGEST:
                    bad(line + block.count(b"\n"), f"the line is longer than {_LONGEST:,} bytes")
                    return
                if cut:
                    yield _parsed(block[:cut], offset, number, functools.partial(_at, bad, line))
                    line += block.count(b"\n", 0, cut)
                    offset += cut
            if rest:
                yield _parsed(rest + b"\n", offset, number, functools.partial(_at, bad, line))
    except OSError as error:
        bad(None, f"cannot be read to the end: {error.strerror}")


def _at(bad: _Bad, first: int, row: int, message: str) -> None:
    bad(first + row, message)


def _parsed(block: bytes, offset: int, number: int, bad: Callable[[int, str], None]) -> Batch:
    content = np.frombuffer(block + bytes(len(_HEAD) + WINDOW), np.uint8)
    ends = np.flatnonzero(content[: len(block)] == ord("\n"))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    keys, good, stops = packed_keys(content, starts + len(_HEAD), _COLON)
    good &= (content[stops] == ord('"')) & _begin_with_head(content, starts)
    for row in np.flatnonzero(~good):
        line = block[starts[row] : ends[row]]
        if not line.strip():
            continue
        if (key := _slow_key(line, functools.partial(bad, int(row)))) is not None:
            keys[row] = key
            good[row] = True
    rows = np.empty(len(ends), _ROW)
    rows["offset"] = starts + offset
    rows["file"] = number
    rows["length"] = ends - starts
    payload = rows.view(np.uint8).reshape(-1, _ROW.itemsize)
    return (keys, payload) if good.all() else (keys[good], payload[good])


def _begin_with_head(content: Bytes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    words = np.ndarray((len(content) - len(_HEAD) + 1,), "V8", content, strides=(1,))[starts].view("<u8")
    same: NDArray[np.bool_] = words == int.from_bytes(_HEAD, "little")
    return same


def _slow_key(line: bytes, bad: Callable[[str], None]) -> int | None:
    if line.startswith(_HEAD):
        head, closed, _ = line[len(_HEAD) :].partition(b'"')
        if closed and b"\\" not in head:
            return key_of(head)
    try:
        name = msgspec.json.decode(line, type=_Head).name()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        bad(f"cannot be read as a passage: {error}")
        return None
    if name is None:
        bad("expected `id`, or `doc_id` and `passage_id`")
        return None
    return _key(name)


def _stored_name(file: Path, folder: Path) -> str:
    absolute, base = file.resolve(), folder.resolve()
    return str(absolute.relative_to(base) if absolute.is_relative_to(base) else absolute)


def _seen(file: Path, name: str) -> _File:
    with file.open("rb") as stream:
        digest = hashlib.sha256(stream.read(_EDGE))
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - _EDGE))
        digest.update(stream.read(_EDGE))
    return _File(name, size, digest.hexdigest())


def _listed(table: Table, path: Path) -> list[_File]:
    try:
        return msgspec.convert(table.header.source.get("files"), list[_File])
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: the header of the index is damaged: {error}; build it again") from error


def _unchanged(path: Path, files: Sequence[_File], number: int) -> Path:
    """One of the files of the index at `path`, which is as it was when the index was built."""
    if number >= len(files):
        raise InputError(f"{path}: the index is damaged; build it again")
    file = path.parent / files[number].path
    try:
        now = _seen(file, files[number].path)
    except OSError as error:
        raise InputError(f"{file}: the index needs this file and it cannot be read: {error.strerror}") from error
    if now != files[number]:
        raise InputError(f"{file}: not as it was when {path} was built; build the index again")
    return file


def _add(problems: list[Problem], file: Path, number: int | None, message: str) -> None:
    where = "$" if number is None else f"line {number}: $"
    problems.append(Problem("passages_unreadable", "error", str(file), None, where, message))
    if len(problems) == MAX_PROBLEMS:
        raise _refusal(problems)


def _refusal(problems: Sequence[Problem]) -> InputError:
    return InputError("the collection cannot be indexed as it is", problems)
