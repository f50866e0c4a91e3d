"""Files read and written whole: compression, digests, atomic replacement."""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.errors import InputError, OperationalError, UsageError
from judge.records import Problem
from judge.text import shown

MAX_UNPACKED = 1 << 30
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


def same_place(one: Path, other: Path) -> bool:
    """Whether two paths, which need not exist, lead to one file or folder, whatever links are on the way."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def check_apart(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse an output folder that some input (a folder, or a file in it) is.

    Raises:
        UsageError: It is the folder of an input.
    """
    for path in paths:
        homes = (path,) if path.is_dir() else (path.parent, path.resolve().parent)
        if any(same_place(folder, home) for home in homes):
            raise UsageError(f"{folder}: this is where {path} is; give a folder of its own")


def check_outside(folder: Path, runs: Path) -> None:
    """Refuse an output folder below the folder of runs, where it would be taken for a part of what was submitted.

    Raises:
        UsageError: It is below `runs`, whatever links are on the way.
    """
    if runs.is_dir() and any(same_place(parent, runs) for parent in folder.resolve().parents):
        raise UsageError(f"{folder}: this is inside {runs}; give a folder outside it")


def check_own_folder(folder: Path, names: Collection[str], mark: str) -> None:
    """Refuse an output folder with anything in it but what the same command left there, complete or broken off.

    Args:
        folder: Where the command writes; it need not exist.
        names: Of the files that it writes.
        mark: The one of them that is begun first, without which the others are somebody else's.

    Raises:
        UsageError: The folder holds something else.
        InputError: It cannot be listed.
    """
    try:
        present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    except OSError as error:
        raise InputError(f"{folder}: cannot be used as an output folder: {error.strerror}") from error
    expected = {name for own in names for name in (own, temporary_name(own))}
    strange = present - expected
    if strange or (present and not present & {mark, temporary_name(mark)}):
        example = min(strange or present)
        raise UsageError(f"{folder}: holds {shown(example)}, which this command did not write; give an empty folder")


def temporary_name(name: str) -> str:
    """Where a file is written before it has its name."""
    # Fixed, so that what a kill leaves behind is written over by the next run and not left for ever.
    return f".{name}.tmp"


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, so that a reader sees the old bytes or the new ones.

    Raises:
        OperationalError: The disk is full or the folder cannot be written; the old file is untouched.
    """
    temporary = path.with_name(temporary_name(path.name))
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
