"""Files read whole: their bytes, unpacked content and digests, and how much is read of one.

A small hostile file must not fill the memory, so one number bounds a file: the bytes of its content. Its JSON values
and its lines are bounded by the memory that they take, about 100 bytes each. Of a file that is read line by line it
bounds a line.
"""

import gzip
import hashlib
import io
import os
import stat
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import AnyStr

from judge.errors import InputError, UsageError
from judge.io.paths import StrPath
from judge.records import Problem

LARGEST_FILE = 512 << 20
"""The most bytes of content that a file may have, unless the user allows more."""
LARGEST_TOML = 64 << 10
"""The most bytes of options or of front matter; the time that Python takes for dotted keys grows by their square."""
MAX_PROBLEMS = 10_000
"""The most problems that are listed for a file; reading stops there."""
MAX_COLUMNS = 5_000
"""The most columns of a table."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_largest = LARGEST_FILE


def largest_file() -> int:
    """The most bytes of content that a file may have in this process."""
    return _largest


def allow_files(size: int | str) -> None:
    """Set the most bytes of a file's content for this process, as `2G` or a number; else a UsageError."""
    global _largest
    text = str(size).strip().upper().removesuffix("B").removesuffix("I")
    digits = text.rstrip("KMG")
    factor = _UNITS.get(text[len(digits) :])
    if factor is None or not (digits.isascii() and digits.isdigit()) or not int(digits):
        raise UsageError(f"--max-file-size {str(size)!r}: expected bytes such as 2G, 800M or 1048576")
    _largest = int(digits) * factor


def most_values() -> int:
    """The most JSON values or lines of a file."""
    return _largest // 100


class TooLarge(InputError):
    """A file has more content than is read."""


def too_large(name: str, measured: str = "holds") -> TooLarge:
    """The error for a file that `holds` or `unpacks to` more content than is read."""
    return TooLarge(f"{name}: {measured} more than {_largest:,} bytes; --max-file-size allows more")


def numbered(content: AnyStr, name: str) -> Iterator[tuple[int, AnyStr]]:
    """The number of each line and the line without its LF, one at a time, since a list of them would fill the memory.

    JSON strings may hold other line separators as they are, so only LF ends a line. An InputError if the content has
    more lines than are read.
    """
    feed: AnyStr = b"\n" if isinstance(content, bytes) else "\n"
    start, number, most = 0, 0, most_values()
    while start <= len(content):
        number += 1
        if number > most:
            raise InputError(f"{name}: more than {most:,} lines; --max-file-size allows more")
        end = content.find(feed, start)
        end = len(content) if end < 0 else end
        yield number, content[start:end]
        start = end + 1


def stopped(name: str, number: int) -> Problem:
    """The problem that says where reading stopped, after those that are listed."""
    message = f"{MAX_PROBLEMS:,} problems up to here; the rest of the file was not read"
    return Problem("too_many_problems", "error", name, None, f"line {number}", message)


PATIENCE = 10.0
"""Seconds that a pipe may be without a writer."""
GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
_CHUNK = 1 << 20


def read_stored(path: StrPath) -> bytes:
    """The bytes of a file as they lie on disk; an InputError if it cannot be read or is too large."""
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
    """Open a file or a pipe for reading; an InputError for a device or a pipe without a writer, or else an OSError."""
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
    """The content of stored bytes, unpacked if they begin as gzip; an InputError if that is damaged or too large."""
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
    """SHA-256 of a file of any size, in hexadecimal; an InputError if it cannot be read."""
    try:
        with open_stored(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def files_below(folder: Path, deepest: int, most: int) -> Iterator[Path]:
    """Every file below a folder, those that are less deep first, then by name.

    Hidden files and folders, links to folders, and folders that may not be listed are passed by. An InputError if the
    folder cannot be listed, or there are more files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder that can be read")
    level, seen = [folder], 0
    for _ in range(deepest + 1):
        deeper: list[Path] = []
        for place in level:
            for entry in _entries(place, needed=place == folder):
                seen += 1
                if seen > most:
                    raise InputError(f"{folder}: more than {most:,} files: name a folder nearer to the data")
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    deeper.append(Path(entry.path))
                elif _is_file(entry):
                    yield Path(entry.path)
        level = deeper


def distinct(paths: Sequence[Path]) -> list[Path]:
    """The first path of each content; a single file is not read."""
    if len(paths) < 2:
        return list(paths)
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(sha256(read_stored(path)), path)
    return list(first.values())


def _entries(place: Path, *, needed: bool) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing in one that may not be listed, unless it is the one that was given."""
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if needed:
            raise InputError(f"{place}: cannot be listed: {error.strerror}") from error
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a file, or a link to one that may be followed."""
    try:
        return entry.is_file()
    except OSError:
        return False
