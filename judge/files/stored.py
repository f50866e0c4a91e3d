"""Files read whole: their bytes, unpacked content and digests."""

import gzip
import hashlib
import io
import zlib
from pathlib import Path

from judge.errors import InputError
from judge.files.paths import StrPath

MAX_UNPACKED = 1 << 30
"""The most bytes that a gzip file may unpack to: a small file can be made to unpack to any size."""
_CHUNK = 1 << 20


def read_stored(path: StrPath) -> bytes:
    """The bytes of a file as they lie on disk.

    Raises:
        InputError: The file is missing or may not be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error


def unpack(stored: bytes, name: str) -> bytes:
    """The content of stored bytes: unpacked if they begin as gzip, whatever the file's name.

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


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
