"""Files of lines: texts, records in JSON, and lines one after the other, so that memory holds some of them."""

import hashlib
import io
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from judge.errors import InputError
from judge.io.stored import (
    GZIP,
    MAX_PROBLEMS,
    TooLarge,
    largest_file,
    numbered,
    open_stored,
    read_stored,
    stopped,
    too_large,
    unpack,
)
from judge.records import Problem

_Row = TypeVar("_Row")
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which may stand before the first line."""


def decode_lines(content: bytes, row_type: type[_Row], name: str, code: str) -> Iterator[tuple[int, _Row | Problem]]:
    """The number of each line that is not blank, with its row or its problem."""
    return decode_rows(numbered(content.removeprefix(BOM), name), row_type, name, code)


def decode_rows(
    lines: Iterable[tuple[int, bytes]], row_type: type[_Row], name: str, code: str
) -> Iterator[tuple[int, _Row | Problem]]:
    """As `decode_lines`, of lines with their numbers; each is decoded before the next one is asked for."""
    decoder = msgspec.json.Decoder(row_type)
    listed = 0
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, path = str(error).partition(" - at `")
            where = f"line {number}: {path.rstrip('`') or '$'}"
            yield number, Problem(code, "error", name, None, where, message)
            listed += 1
            if listed == MAX_PROBLEMS:
                yield number, stopped(name, number)
                return


def jsonl_bytes(records: Iterable[object]) -> bytes:
    """Records as JSON Lines, fields in the order of the record."""
    return msgspec.json.Encoder().encode_lines(records)


def json_bytes(value: object) -> bytes:
    """A value as indented JSON with sorted keys and a final line break; equal values give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


_BLOCK = 1 << 20
"""Bytes that are read at once."""
_BUFFER = 1 << 16
"""Bytes that are read at once at other places: lines that calls wrote at the same time lie as close together."""


class LineStream:
    """The lines of a file, to be gone through once: numbered from 1, without their LF and a byte order mark.

    `--max-file-size` bounds a line. It bounds the whole content only where that is in the memory: of a pipe, and of a
    gzip file that is unpacked, a small one of which could hold any number of lines. An InputError if the file cannot be
    opened, or it is a pipe or a gzip file that cannot be read.
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
        """The number of each line, and the line; an InputError if it cannot be read on or is too long."""
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
        """The content in place of its lines, for a file of another kind; an InputError if it is too large."""
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


def text_of(path: Path) -> str:
    """The text of a UTF-8 file, gzipped or not, without byte order mark; an InputError if there is none."""
    try:
        return unpack(read_stored(path), str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of every line of a UTF-8 file that is not blank."""
    for number, line in numbered(text_of(path), str(path)):
        if stripped := line.strip(" \t\r"):
            yield number, stripped


def line_problem(code: str, path: Path, number: int, message: str) -> Problem:
    """An error at a line of a text file."""
    return Problem(code, "error", str(path), None, f"line {number}", message)
