"""Big files as streams of their content: plain, gzip, bzip2 or Zstandard, known by their first bytes."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

BLOCK = 1 << 18
"""Bytes that are read at once."""
MAX_LINE = 64 << 20
"""Bytes from which a line is taken for damage: a file without line ends must not fill the memory."""

Bad = Callable[[int | None, str], None]
"""Takes the number of a line, None for the whole file, and what is wrong with it."""
Hit = tuple[int | None, str, str]
"""The number of the line on which a wanted passage begins, None where there are no lines, its id and its text."""

_ZSTD_PIECE = 4096
"""A Zstandard block of 4 bytes may unpack to 128 KiB, so pieces of this size keep the unpacked ones under 128 MiB."""


def open_stream(path: Path) -> io.BufferedReader:
    """The unpacked content of a file, or of a pipe, whatever its name says; several packed parts in a row are one.

    Raises:
        OSError: The file cannot be opened; reading from the stream raises it where packed data are damaged or cut.
    """
    stored: io.BufferedReader = io.BufferedReader(cast(Any, path.open("rb", buffering=0)), BLOCK)
    try:
        source = _unpacker(stored)
    except BaseException:
        stored.close()
        raise
    return stored if source is None else io.BufferedReader(_Unpacked(stored, source), BLOCK)


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _unpacker(stored: io.BufferedReader) -> _Source | None:
    magic = stored.peek(4)[:4]
    if magic.startswith(b"\x1f\x8b"):
        from isal import igzip

        return cast(_Source, igzip.IGzipFile(fileobj=stored))  # type: ignore[no-untyped-call]
    if magic.startswith(b"BZh"):
        import bz2

        return bz2.BZ2File(stored)
    # Zstandard: a frame, or one of the frames to be skipped that parallel packers put first.
    if magic == b"\x28\xb5\x2f\xfd" or (magic[1:] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F):
        return _Zstd(stored)
    return None


class _Unpacked(io.RawIOBase):
    """Unpacked bytes; every library's own error for damaged data becomes an OSError."""

    def __init__(self, stored: io.BufferedReader, source: _Source) -> None:
        from isal.isal_zlib import error as gzip_error
        from zstandard import ZstdError

        self._stored = stored
        self._source = source
        self._damage: tuple[type[BaseException], ...] = (EOFError, cast(type[BaseException], gzip_error), ZstdError)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        try:
            content = self._source.read(len(buffer))
        except self._damage as error:
            raise OSError(str(error)) from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stored.close()
        super().close()


class _Zstd:
    """Zstandard frames in a row. The library's own stream reader takes a file that is cut short for a whole one."""

    def __init__(self, stored: io.BufferedReader) -> None:
        import zstandard

        self._stored = stored
        self._frame = zstandard.ZstdDecompressor().decompressobj
        self._open = self._frame()
        self._begun = False
        self._rest = b""
        self._ready = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        while not self._ready:
            piece = self._rest or self._stored.read(_ZSTD_PIECE)
            if not piece:
                if self._begun:
                    raise EOFError("the file ends inside a Zstandard frame")
                return b""
            self._ready = memoryview(self._open.decompress(piece))
            self._begun = not self._open.eof
            self._rest = self._open.unused_data if self._open.eof else b""
            if self._open.eof:
                self._open = self._frame()
        taken = bytes(self._ready[:size])
        self._ready = self._ready[size:]
        return taken
