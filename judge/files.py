"""Files read and written whole: compression, digests, atomic replacement."""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.errors import InputError, OperationalError
from judge.records import Problem

MAX_UNPACKED = 4 << 30
"""Bytes that a gzip file may unpack to; a small file can be made to unpack to any size."""
_CHUNK = 1 << 20

_Row = TypeVar("_Row")


def read_stored(path: Path) -> bytes:
    """The bytes of a file as they lie on disk.

    Raises:
        InputError: The file is missing or may not be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error


def unpack(stored: bytes, name: str) -> bytes:
    """The content behind stored bytes: gunzipped if they begin as gzip does, whatever the file's name says.

    Raises:
        InputError: The gzip stream is damaged, cut short, or unpacks to more than MAX_UNPACKED.
    """
    if not stored.startswith(b"\x1f\x8b"):
        return stored
    content = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as packed:
            while chunk := packed.read(_CHUNK):
                content.write(chunk)
                if content.tell() > MAX_UNPACKED:
                    raise InputError(f"{name}: the gzip file unpacks to more than {MAX_UNPACKED:,} bytes")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged gzip file: {error}") from error
    return content.getvalue()


def decode_lines(content: bytes, row_type: type[_Row], name: str, code: str) -> Iterator[tuple[int, _Row | Problem]]:
    """The lines of a JSON Lines file that are not blank: the number of each, and its row or what is wrong with it.

    Args:
        content: The file's bytes.
        row_type: What a line holds; a field that it has not is ignored unless the type forbids it.
        name: The file's name, for the problems.
        code: The problems' code.
    """
    decoder = msgspec.json.Decoder(row_type)
    # Not splitlines: JSON strings may hold other line separators as they are.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, path = str(error).partition(" - at `")
            where = f"line {number}: {path.rstrip('`') or '$'}"
            yield number, Problem(code, "error", name, None, where, message)


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        InputError: The path is a file or the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be used as an output folder: {error.strerror}") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, so that a reader sees the old bytes or the new ones.

    Raises:
        OperationalError: The disk is full or the folder cannot be written; the old file is untouched.
    """
    # One fixed name, so that what a kill leaves behind is written over by the next run and not left for ever.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error


def json_bytes(value: object) -> bytes:
    """A value as indented JSON with sorted keys and a final line break: the same value, the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"
