"""Files read whole: their bytes, unpacked content and digests."""

import gzip
import hashlib
import io
import os
import zlib
from pathlib import Path

from judge.errors import InputError
from judge.files.limits import largest_file, too_large
from judge.files.paths import StrPath

_CHUNK = 1 << 20


def read_stored(path: StrPath) -> bytes:
    """The bytes of a file as they lie on disk.

    Raises:
        InputError: The file is missing, may not be read, or is larger than what is read.
    """
    try:
        with Path(path).open("rb") as file:
            # A device has no size and no end.
            large = os.fstat(file.fileno()).st_size > largest_file()
            stored = b"" if large else file.read(largest_file() + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error
    if large or len(stored) > largest_file():
        raise too_large(str(path))
    return stored


def unpack(stored: bytes, name: str) -> bytes:
    """The content of stored bytes: unpacked if they begin as gzip, whatever the file's name.

    Raises:
        InputError: The gzip stream is damaged, cut short, or unpacks to more than is read.
    """
    if not stored.startswith(b"\x1f\x8b"):
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


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
