"""Files as callers name them, read whole or by lines: bytes, unpacked content, digests, JSON; how much is read of one.

A small hostile file must not fill the memory, so one number bounds a file: the bytes of its content. Its JSON values
and its lines are bounded by the memory that they take, about 100 bytes each. Of a file that is read line by line it
bounds a line.
"""

import contextlib
import functools
import gzip
import hashlib
import io
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, AnyStr, TypeVar

import msgspec

from judge.errors import InputError, UsageError
from judge.records import Problem, file_problem

_Content = TypeVar("_Content")
StrPath = str | os.PathLike[str]
"""A path as `open` takes it."""


def several(given: Any) -> tuple[Any, ...]:
    """One value or several as a tuple: a text is one value, not its letters; a data frame one table, not its columns.

    >>> several("groundedness"), several(["groundedness", "naturalness"])
    (('groundedness',), ('groundedness', 'naturalness'))
    """
    single = isinstance(given, str | os.PathLike) or hasattr(given, "columns") or not isinstance(given, Iterable)
    return (given,) if single else tuple(given)


def paths(given: StrPath | Iterable[StrPath]) -> tuple[Path, ...]:
    """One path or several, as paths."""
    return tuple(map(Path, several(given)))


def published(text: str) -> str:
    """A path, or a text that holds some, as others may read it: relative to the working folder, else `~` for a home.

    A published path shows neither the user's name nor where the user keeps things.
    """
    folders = {str(Path.cwd()): "."}
    with contextlib.suppress(RuntimeError):
        folders |= {str(Path.home()): "~", str(Path.home().resolve()): "~"}
    for folder, sign in folders.items():
        if folder != "/":
            inside = re.compile(rf"{_BEGINS}{re.escape(folder)}(?:(/)|(?![\w.-]))")
            text = inside.sub(functools.partial(_instead, sign), text)
    return _ANY_HOME.sub(r"~\1", text)


_BEGINS = r"(?<![\w.~-])"
_ANY_HOME = re.compile(_BEGINS + r"/(?:home|Users)/([^/\s:]+)")


def _instead(sign: str, match: re.Match[str]) -> str:
    return "" if sign == "." and match[1] else sign + (match[1] or "")


def file_in(given: StrPath, *names: str) -> Path:
    """The path, or in a folder the first of these files that is there; an InputError if none is."""
    path = Path(given)
    # A path that cannot be is told by its reader.
    with contextlib.suppress(OSError, ValueError):
        if path.is_dir():
            if found := next((path / name for name in names if (path / name).is_file()), None):
                return found
            raise InputError(f"{path}: a folder without {' or '.join(names)}; name the file")
    return path


LARGEST_FILE = 512 << 20
"""The most bytes of content that a file may have, unless the user allows more."""
LARGEST_TOML = 64 << 10
"""The most bytes of options or of front matter; the time that Python takes for dotted keys grows by their square."""
MAX_PROBLEMS = 10_000
"""The most problems that are listed for a file; reading stops there."""
_TOO_MANY = "too_many_problems"
"""The code of what says that there are more."""
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
    start = 0
    number = 0
    most = most_values()
    while start <= len(content):
        number += 1
        if number > most:
            raise InputError(f"{name}: more than {most:,} lines; --max-file-size allows more")
        end = content.find(feed, start)
        end = len(content) if end < 0 else end
        yield number, content[start:end]
        start = end + 1


class Problems(list[Problem]):
    """The problems of one file or several, in the order of reading: MAX_PROBLEMS, and one that says that it is all."""

    def __init__(self, file: StrPath = "") -> None:
        super().__init__()
        self.file = str(file)
        """The file of a problem that names no other."""

    @property
    def full(self) -> bool:
        """Whether no further problem is listed, so that reading may stop."""
        return len(self) > MAX_PROBLEMS

    def add(self, code: str, path: str, message: str, file: StrPath | None = None) -> None:
        """Add an error at a line or a JSON path."""
        self.append(file_problem(code, file or self.file, message, path))

    def append(self, problem: Problem) -> None:
        """Add a problem unless the list is full; in place of the first one too many, what says that it is."""
        if len(self) == MAX_PROBLEMS and problem.code != _TOO_MANY:
            message = f"{MAX_PROBLEMS:,} problems up to here; no more are listed"
            problem = file_problem(_TOO_MANY, problem.file, message, problem.path)
        if not self.full:
            super().append(problem)


def too_many(problems: list[Problem], name: str, number: int, before: int = 0) -> bool:
    """Whether a file has so many problems, besides those `before` it, that reading stops, which one more then says."""
    if len(problems) - before < MAX_PROBLEMS:
        return False
    message = f"{MAX_PROBLEMS:,} problems up to here; the rest of the file was not read"
    problems.append(file_problem(_TOO_MANY, name, message, f"line {number}"))
    return True


PATIENCE = 10.0
"""Seconds that a pipe may be without a writer."""
GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
_BLOCK = 1 << 20
"""Bytes that are read at once."""


@contextlib.contextmanager
def input_errors(path: StrPath) -> Iterator[None]:
    """What a file that cannot be read gives in the block, as an InputError that names it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error


def read_stored(path: StrPath) -> bytes:
    """The bytes of a file as they lie on disk; an InputError if it cannot be read or is too large."""
    with input_errors(path), io.BufferedReader(open_stored(Path(path))) as file:
        size = os.fstat(file.fileno()).st_size
        large = size > largest_file()
        # Room for the most that may be read takes longer to make than a file to read. A pipe does not say its size.
        stored = b"" if large else file.read(size + 1)
        if len(stored) > size:
            stored += file.read(largest_file() + 1 - len(stored))
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
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        waiting.join()
    if isinstance(result := opened[0], OSError):
        raise result
    if late:
        os.close(result)
        raise InputError(f"{path}: cannot be read: a pipe to which nobody writes, expected a file")
    return result


def read_content(path: StrPath) -> bytes:
    """The content of a file, gzipped or not; the errors are those of `read_stored` and `unpack`."""
    return unpack(read_stored(path), str(path))


def unpack(stored: bytes, name: str) -> bytes:
    """The content of stored bytes, unpacked if they begin as gzip; an InputError if that is damaged or too large."""
    if not stored.startswith(GZIP):
        return stored
    content = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as packed:
            while chunk := packed.read(_BLOCK):
                content.write(chunk)
                if content.tell() > largest_file():
                    raise too_large(name, "unpacks to")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: damaged gzip file: {error}") from error
    return content.getvalue()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file of any size, in hexadecimal; an InputError if it cannot be read."""
    with input_errors(path), open_stored(path) as file:
        digest = hashlib.file_digest(file, "sha256")
    return digest.hexdigest()


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
    level = [folder]
    seen = 0
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


_Row = TypeVar("_Row")
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which may stand before the first line."""


def decode_lines(
    content: bytes, row_type: type[_Row], name: str, code: str, problems: list[Problem]
) -> Iterator[tuple[int, _Row]]:
    """The number of each line that is not blank, with its row; a line that is none is a problem."""
    return decode_rows(numbered(content.removeprefix(BOM), name), row_type, name, code, problems)


def decode_rows(
    lines: Iterable[tuple[int, bytes]], row_type: type[_Row], name: str, code: str, problems: list[Problem]
) -> Iterator[tuple[int, _Row]]:
    """As `decode_lines`, of lines with their numbers; each is decoded before the next one is asked for."""
    decoder = msgspec.json.Decoder(row_type)
    before = len(problems)
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, path = why_not_json(line, error).partition(" - at `")
            where = f"line {number}: {path.rstrip('`') or '$'}"
            problems.append(file_problem(code, name, message, where))
            if too_many(problems, name, number, before):
                return


def why_not_json(content: bytes, error: Exception) -> str:
    r"""Why JSON cannot be decoded: the first byte that is not UTF-8, which msgspec does not name, or msgspec's error.

    >>> why_not_json(b'"\xff"', ValueError("Invalid UTF-8 encoded string"))
    'byte 2 (0xff) is not UTF-8: invalid start byte'
    """
    try:
        content.decode()
    except UnicodeDecodeError as found:
        return f"byte {found.start + 1} (0x{content[found.start]:02x}) is not UTF-8: {found.reason}"
    return str(error)


def jsonl_bytes(records: Iterable[object]) -> bytes:
    """Records as JSON Lines, fields in the order of the record."""
    return msgspec.json.Encoder().encode_lines(records)


def json_bytes(value: object) -> bytes:
    """A value as indented JSON with sorted keys and a final line break; equal values give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


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
        number = 1
        pieces = list[bytes]()
        size = 0
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
                number = number + 1
                first = following
                pieces = []
                size = 0
            pieces.append(first)
            size += len(first)
            self._check(number, size)
        if size:
            yield number, b"".join(pieces)

    def whole(self) -> bytes:
        """The content in place of its lines, for a file of another kind; an InputError if it is too large."""
        with input_errors(self._name):
            size = self.file.seek(0, io.SEEK_END)
            self.file.seek(0)
            content = self.file.read() if size <= largest_file() else b""
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
        with input_errors(path):
            # A pipe cannot be opened twice.
            if stat.S_ISREG(path.stat().st_mode):
                file = io.BufferedReader(open_stored(path), _BUFFER)
                start = file.read(len(GZIP))
                file.seek(0)
                if not (packed and start == GZIP):
                    return file
                file.close()
        stored = read_stored(path)
        if self._digested:
            self._digest.update(stored)
            self._digested = False
        return io.BytesIO(unpack(stored, self._name) if packed else stored)

    def _read(self) -> bytes:
        with input_errors(self._name):
            block = self.file.read(_BLOCK)
        if self._digested:
            self._digest.update(block)
        return block


def text_of(path: Path) -> str:
    """The text of a UTF-8 file, gzipped or not, without byte order mark; an InputError if there is none."""
    try:
        return read_content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def json_of(path: Path, kind: type[_Content], otherwise: str) -> _Content:
    """What a JSON file of judge's own holds; an InputError that says `otherwise` if it is not of this kind."""
    try:
        return msgspec.json.decode(read_stored(path), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: {otherwise}: {error}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and trimmed text of every line of a UTF-8 file that is not blank."""
    for number, line in numbered(text_of(path), str(path)):
        if stripped := line.strip(" \t\r"):
            yield number, stripped


def line_problem(code: str, path: Path, number: int, message: str) -> Problem:
    """An error at a line of a text file."""
    return file_problem(code, path, message, f"line {number}")
