"""Files read whole: their bytes, unpacked content and digests."""

import gzip
import hashlib
import io
import os
import stat
import threading
import zlib
from contextlib import suppress
from pathlib import Path

from judge.errors import InputError
from judge.io.limits import largest_file, too_large
from judge.io.paths import StrPath

PATIENCE = 10.0
"""Seconds that a pipe may be without a writer."""
GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
_CHUNK = 1 << 20


def read_stored(path: StrPath) -> bytes:
    """The bytes of a file as they lie on disk.

    Raises:
        InputError: The file is missing, may not be read, or is larger than what is read.
    """
    try:
        with io.BufferedReader(open_stored(Path(path))) as file:
            size = os.fstat(file.fileno()).st_size
            large = size > largest_file()
            # Room for the most that may be read takes longer to make than a file to read. A pipe does not say its size.
            stored = b"" if large else file.read(size + 1)
            if len(stored) > size:
                stored += file.read(largest_file() + 1 - len(stored))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error
    if large or len(stored) > largest_file():
        raise too_large(str(path))
    return stored


def open_stored(path: Path) -> io.FileIO:
    """Open a file, or a pipe that somebody writes to, for reading.

    Raises:
        InputError: The path is a device, which has no end, or a named pipe to which nobody writes.
        OSError: The path cannot be opened.
    """
    mode = path.stat().st_mode
    if not stat.S_ISFIFO(mode):
        file = io.FileIO(path)
        if stat.S_ISCHR(mode) and not file.isatty():
            file.close()
            raise InputError(f"{path}: cannot be read: a device, expected a file")
        return file
    return io.FileIO(_open_pipe(path))


def _open_pipe(path: Path) -> int:
    """The descriptor of a pipe once it has a writer, for which opening it waits."""
    opened: list[int | OSError] = []

    def wait() -> None:
        try:
            opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            opened.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    late = not opened
    if late:
        # A writer for a moment ends the waiting.
        with suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        waiting.join()
    if isinstance(result := opened[0], OSError):
        raise result
    if late:
        os.close(result)
        raise InputError(f"{path}: cannot be read: a pipe to which nobody writes, expected a file")
    return result


def unpack(stored: bytes, name: str) -> bytes:
    """The content of stored bytes: unpacked if they begin as gzip, whatever the file's name.

    Raises:
        InputError: The gzip stream is damaged, cut short, or unpacks to more than is read.
    """
    if not stored.startswith(GZIP):
        return stored
    content = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as packed:
            while chunk := packed.read(_CHUNK):
                content.write(chunk)
                if content.tell() > largest_file():
                    raise too_large(name, "unpacks to")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged gzip file: {error}") from error
    return content.getvalue()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, which may be larger than the memory.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        with open_stored(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
