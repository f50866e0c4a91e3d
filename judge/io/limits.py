"""How much of a file is read, so that a small hostile file cannot fill the memory. Pure.

One number bounds a file: the bytes of its content. Its JSON values and its lines are bounded by the memory that they
take, about 100 bytes each. Of a file that is read line by line it bounds a line.
"""

from collections.abc import Iterator
from typing import AnyStr

from judge.errors import InputError, UsageError
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
    """Set the most bytes that a file's content may have, for every file that this process reads from now on.

    Args:
        size: Bytes, as an integer or as text such as `2G`, `800M` or `64K`.

    Raises:
        UsageError: The size is no such number.
    """
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
    """The error for a file with more content than is read.

    Args:
        name: The file, as messages name it.
        measured: How the size came about: the file `holds` or `unpacks to` more.
    """
    return TooLarge(f"{name}: {measured} more than {_largest:,} bytes; --max-file-size allows more")


def numbered(content: AnyStr, name: str) -> Iterator[tuple[int, AnyStr]]:
    """The number of each line and the line without its LF, one at a time, since a list of them would fill the memory.

    JSON strings may hold other line separators as they are, so only LF ends a line.

    Raises:
        InputError: The content has more lines than are read.
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
    """The problem that says where reading stopped, after those that are listed.

    Args:
        name: The file, as messages name it.
        number: The line after which nothing was read.
    """
    message = f"{MAX_PROBLEMS:,} problems up to here; the rest of the file was not read"
    return Problem("too_many_problems", "error", name, None, f"line {number}", message)
