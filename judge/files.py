"""Files read and written whole: compression, digests, atomic replacement."""

import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path

from judge.errors import InputError, OperationalError


def read_stored(path: Path) -> bytes:
    """The bytes of a file as they lie on disk.

    Raises:
        InputError: The file is missing or may not be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def unpack(stored: bytes, name: str) -> bytes:
    """The content behind stored bytes: gunzipped if they begin as gzip does, whatever the file's name says.

    Raises:
        InputError: The gzip stream is damaged or cut short.
    """
    if not stored.startswith(b"\x1f\x8b"):
        return stored
    try:
        return gzip.decompress(stored)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged gzip file: {error}") from error


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OperationalError(f"{path}: cannot be written: {error.strerror}") from error
