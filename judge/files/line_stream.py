"""The lines of a file one after the other, so that the memory holds some of them and not the file."""

import hashlib
import io
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from judge.errors import InputError
from judge.files.jsonl import BOM
from judge.files.limits import TooLarge, largest_file, too_large
from judge.files.stored import GZIP, open_stored, read_stored, unpack

_BLOCK = 1 << 20
"""Bytes that are read at once."""
_BUFFER = 1 << 16
"""Bytes that are read at once at other places: lines that calls wrote at the same time lie as close together."""


class LineStream:
    """The lines of a file, to be gone through once: numbered from 1, without their LF and a byte order mark.

    `--max-file-size` bounds a line. It bounds the whole content only where that is in the memory: of a pipe, and of a
    gzip file that is unpacked, a small one of which could hold any number of lines.

    Args:
        path: The file.
        packed: Whether a gzip file is unpacked.
        digested: Whether the digest of the file is wanted.

    Raises:
        InputError: The file cannot be opened, or it is a pipe or a gzip file that cannot be read.
    """

    def __init__(self, path: Path, *, packed: bool = False, digested: bool = False) -> None:
        self._name = str(path)
        self._digest = hashlib.sha256()
        self._digested = digested
        self.start = 0
        """Where in `file` the current line begins."""
        self.file = self._open(path, packed)
        """The content as bytes; whoever reads at other places does so after the last line, and closes it."""

    @property
    def digest(self) -> str:
        """SHA-256 of the file as stored, after the last line."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """The number of each line, and the line.

        Raises:
            InputError: The file cannot be read on, or a line is longer than what is read.
        """
        number, pieces, size = 1, list[bytes](), 0
        while block := self._read():
            if number == 1 and not pieces and block.startswith(BOM):
                block = block[len(BOM) :]
                self.start = len(BOM)
            # A line may fill many blocks, so what was read of it is put together only once.
            first, *others = block.split(b"\n")
            for following in others:
                self._check(number, size + len(first))
                line = b"".join((*pieces, first)) if pieces else first
                yield number, line
                self.start += len(line) + 1
                number, first, pieces, size = number + 1, following, [], 0
            pieces.append(first)
            size += len(first)
            self._check(number, size)
        if size:
            yield number, b"".join(pieces)

    def whole(self) -> bytes:
        """The content in place of its lines, for a file that turns out to be of another kind.

        Raises:
            InputError: The file is larger than what is read, or cannot be read.
        """
        try:
            size = self.file.seek(0, io.SEEK_END)
            self.file.seek(0)
            content = self.file.read() if size <= largest_file() else b""
        except OSError as error:
            raise InputError(f"{self._name}: cannot be read: {error.strerror}") from error
        if max(size, len(content)) > largest_file():
            raise too_large(self._name)
        if self._digested:
            self._digest = hashlib.sha256(content)
        return content

    def _check(self, number: int, size: int) -> None:
        if size > largest_file():
            held = f"{self._name}: line {number} holds more than {largest_file():,} bytes"
            raise TooLarge(f"{held}; --max-file-size allows more")

    def _open(self, path: Path, packed: bool) -> IO[bytes]:
        try:
            # A pipe cannot be opened twice.
            if stat.S_ISREG(path.stat().st_mode):
                file = io.BufferedReader(open_stored(path), _BUFFER)
                start = file.read(len(GZIP))
                file.seek(0)
                if not (packed and start == GZIP):
                    return file
                file.close()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{self._name!r}: cannot be read: {error}") from error
        stored = read_stored(path)
        if self._digested:
            self._digest.update(stored)
            self._digested = False
        return io.BytesIO(unpack(stored, self._name) if packed else stored)

    def _read(self) -> bytes:
        try:
            block = self.file.read(_BLOCK)
        except OSError as error:
            raise InputError(f"{self._name}: cannot be read: {error.strerror}") from error
        if self._digested:
            self._digest.update(block)
        return block
