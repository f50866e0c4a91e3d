"""Big files as streams of their content: plain, gzip, bzip2 or Zstandard, recognized by their first bytes."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from judge.errors import refuse
from judge.io.files import open_stored
from judge.io.ids import natural_key
from judge.plugins import collection
from judge.records import Problem, file_problem

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

BLOCK = 1 << 18
"""Bytes of one read."""
MAX_LINE = 64 << 20
"""The most bytes of a line: a file without line ends must not fill the memory."""
MAX_TEXT = 1_000_000
"""The most characters of a passage; those of tracks have up to about 10,000, whole reference documents 100,000."""

Bad = Callable[[int | None, str], None]
"""Takes the number of a line (None for the whole file) and its problem."""
Hit = tuple[int | None, str, str]
"""The number of the line on which a wanted passage begins (None in an index), its id and its text."""

_START = 128
"""Bytes that tell the form of a file."""
_PIECE = 1 << 13
"""Packed bytes that an unpacker of bzip2 or Zstandard gets at once."""
_PACKED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "Zstandard"}
_SKIPPED = range(0x50, 0x60)
"""First bytes of skippable Zstandard frames, which parallel packers write first; three fixed bytes follow."""
_SQLITE: Final = b"SQLite format 3\0"
APPLICATION: Final = b"jdgp"
_APPLICATION_AT: Final = 68
"""Where an SQLite file names the application that wrote it."""
_FOREIGN: Final = {
    b"\xfd7zXZ\0": "packed by xz; unpack it, or pack it by gzip, bzip2 or Zstandard",
    b"PK\x03\x04": "a zip archive; unpack it, or pack it by gzip, bzip2 or Zstandard",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it, or pack it by gzip, bzip2 or Zstandard",
    b"\xff\xfe": "UTF-16; convert it to UTF-8",
    b"\xfe\xff": "UTF-16; convert it to UTF-8",
}


def is_index(path: Path) -> bool:
    """Whether a plain file begins as an index of `judge passages index`; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return begins_as_index(file.read(_APPLICATION_AT + len(APPLICATION)))
    except OSError:
        return False


def begins_as_index(start: bytes) -> bool:
    """Whether these are the first bytes of an index."""
    return start.startswith(_SQLITE) and start[_APPLICATION_AT:].startswith(APPLICATION)


class UnknownForm(OSError):
    """A file of a form that is not read; its message is a whole sentence."""


def cause(error: OSError) -> str:
    """Why a file was not read, for a message that begins with the file's name."""
    return str(error) if isinstance(error, UnknownForm) else f"cannot be read to the end: {error.strerror or error}"


def packing(start: bytes) -> str | None:
    """The packing of a file with these first bytes; None if it is plain."""
    if start[1:4] == b"\x2a\x4d\x18" and start[0] in _SKIPPED:
        return "Zstandard"
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)


def refuse_foreign(start: bytes) -> None:
    """Refuse a file whose first bytes show a form that is not read.

    An UnknownForm if the file is an archive, an index, UTF-16, or packed in a way that is not read.
    """
    if begins_as_index(start):
        raise UnknownForm(
            "the file is an index that `judge passages index` wrote; expected what such an index is built from"
        )
    for magic, name in _FOREIGN.items():
        if start.startswith(magic):
            raise UnknownForm(f"the file is {name}")


def whole_lines(blocks: Iterable[bytes], longest: int) -> Iterator[bytes | None]:
    """The same bytes in blocks that end with a line break; a last line without one gets one.

    None ends the blocks at a line longer than `longest` bytes: a file without line breaks must not fill the memory.
    """
    held: list[bytes | memoryview] = []
    size = 0
    for block in blocks:
        # Only the new block is searched: a line may fill many blocks.
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*held, memoryview(block)[:cut]))
            held = []
            size = 0
        held.append(memoryview(block)[cut:])
        size += len(block) - cut
        if size > longest:
            yield None
            return
    if size:
        yield b"".join((*held, b"\n"))


def open_stream(path: Path, taken: Callable[[int], None] | None = None) -> io.BufferedReader:
    """The unpacked content of a file or a pipe, by its first bytes, not its name; several packed parts are read as one.

    `taken`: called with the number of packed bytes of each read. An OSError if the file cannot be opened; reading from
    the stream raises it where packed data are damaged or cut. An UnknownForm if the file's first bytes show a form that
    is not read.
    """
    raw: io.RawIOBase = open_stored(path)
    stored: io.BufferedReader = io.BufferedReader(_Counted(raw, taken) if taken is not None else raw, BLOCK)
    try:
        source = _unpacker(stored)
    except BaseException:
        stored.close()
        raise
    return stored if source is None else io.BufferedReader(_Unpacked(stored, source), BLOCK)


class _Counted(io.RawIOBase):
    """A file that tells how much of it was read."""

    def __init__(self, stored: io.RawIOBase, taken: Callable[[int], None]) -> None:
        self._stored = stored
        self._taken = taken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int | None:  # type: ignore[override]
        size = self._stored.readinto(buffer)
        self._taken(size or 0)
        return size

    def close(self) -> None:
        self._stored.close()
        super().close()


def _unpacker(stored: io.BufferedReader) -> Any:
    start = stored.peek(_START)
    refuse_foreign(start)
    packed = packing(start)
    if packed == "gzip":
        from isal import igzip

        return igzip.IGzipFile(fileobj=stored)  # type: ignore[no-untyped-call]
    if packed == "bzip2":
        import bz2

        return _Parts(stored, bz2.BZ2Decompressor, "bzip2 stream", between=b"\0")
    if packed == "Zstandard":
        return _Parts(stored, zstd.ZstdDecompressor, "Zstandard frame")
    return None


class _Unpacked(io.RawIOBase):
    """Unpacked bytes; every library's own error for damaged data becomes an OSError."""

    def __init__(self, stored: io.BufferedReader, source: Any) -> None:
        from isal.isal_zlib import error as gzip_error

        self._stored = stored
        self._source = source
        self._damage = (EOFError, cast("type[Exception]", gzip_error), zstd.ZstdError)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        try:
            content = self._source.read(len(buffer))
        except self._damage as error:
            if "too much memory" in str(error):
                # The Zstandard library's words for a frame with a window of more than 128 MiB.
                message = "the file was packed by `zstd --long` beyond 128 MiB; pack it again without --long"
                raise UnknownForm(message) from error
            if isinstance(error, EOFError):
                raise OSError("the packed data end too soon, or something else follows them") from error
            raise OSError(str(error)) from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stored.close()
        super().close()


class _Parts:
    """Consecutive parts that are packed each by itself: bzip2 streams or Zstandard frames.

    The standard library's file for bzip2 ends silently at other bytes after a stream, so a damaged file would read as
    shorter.
    """

    def __init__(self, stored: io.BufferedReader, unpacker: Callable[[], Any], part: str, between: bytes = b"") -> None:
        self._stored = stored
        self._unpacker = unpacker
        self._part = part
        self._between = between
        self._open = unpacker()

    def read(self, size: int, /) -> bytes:
        while True:
            if self._open.eof:
                piece = self._open.unused_data.lstrip(self._between)
                while not piece and (read := self._stored.read(_PIECE)):
                    piece = read.lstrip(self._between)
                if not piece:
                    return b""
                self._open = self._unpacker()
            elif self._open.needs_input:
                piece = self._stored.read(_PIECE)
                if not piece:
                    raise OSError(f"the file ends inside a {self._part}")
            else:
                piece = b""
            content: bytes = self._open.decompress(piece, size)
            if content:
                return content


MAX_PROBLEMS: Final = 10
"""Problems after which reading stops: a wrong file may have a hundred million lines."""


class CollectionProblems:
    """Problems of one code; the last that is gathered, or `settle`, ends the reading."""

    def __init__(self, code: str, refusal: str) -> None:
        self._code = code
        self._refusal = refusal
        self._problems: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self._problems)

    def add(self, file: Path, number: int | None, message: str) -> None:
        """Add a problem of line `number`, or of the whole file if that is None.

        An InputError if there are `MAX_PROBLEMS` problems.
        """
        self._problems.append(file_problem(self._code, file, message, "$" if number is None else f"line {number}: $"))
        if len(self._problems) >= MAX_PROBLEMS:
            self.settle()

    def settle(self) -> None:
        """End the reading with an InputError if there is any problem."""
        refuse(self._problems, self._refusal)


_OWN = "passages.jsonl"
"""The passages among the files of an output folder."""
_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".trecweb") for packed in ("", ".gz", ".bz2", ".zst"))


def expanded(paths: Sequence[Path], problems: CollectionProblems) -> list[Path]:
    """The paths with every folder of shards replaced by its shards in natural order.

    An InputError if `MAX_PROBLEMS` of the paths cannot be used.
    """
    files: list[Path] = []
    for path in paths:
        try:
            # Not is_file(): a pipe can be read too.
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
            path.stat()
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and collection(path, "passages"):
                files.append(path)
            else:
                problems.add(path, None, f"cannot be read: {getattr(error, 'strerror', error)}")
            continue
        if inside is None:
            files.append(path)
            continue
        if {_OWN, "manifest.json"} <= {file.name for file in inside}:
            files.append(path / _OWN)
            continue
        shards = [file for file in inside if file.name.endswith(_SUFFIXES) and file.name[0] != "."]
        if not shards:
            known = ", ".join(_SUFFIXES)
            problems.add(path, None, f"the folder has no file that ends in one of {known}")
        files += shards
    return files
