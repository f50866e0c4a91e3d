"""What a file is to hold: bytes, or pieces of bytes that are made anew each time, where they would fill the memory."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

_RECORDS = 1000
"""Records that are encoded at once."""


class Pieces:
    """The content of a large file.

    Args:
        make: Gives the content piece by piece; called each time, with the same result.
    """

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._make())

    def __bytes__(self) -> bytes:
        return b"".join(self)


FileContent = bytes | Pieces


def pieces_of(content: FileContent) -> Iterable[bytes]:
    """The content piece by piece."""
    return (content,) if isinstance(content, bytes) else content


def lines_of(content: FileContent) -> Iterator[bytes]:
    """The lines of a content one at a time, without their ends; the last one may be empty."""
    rest = b""
    for piece in pieces_of(content):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            yield rest + piece[start:end]
            rest, start = b"", end + 1
        rest += piece[start:]
    yield rest


def content_digest(content: FileContent) -> str:
    """SHA-256 of a content, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in pieces_of(content):
        digest.update(piece)
    return digest.hexdigest()


def is_content(path: Path, content: FileContent) -> bool:
    """Whether a file holds exactly this content.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return all(file.read(len(piece)) == piece for piece in pieces_of(content)) and not file.read(1)


def text_pieces(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines of text in UTF-8, some at a time."""
    rest = iter(lines)
    while some := list(islice(rest, _RECORDS)):
        yield "".join(some).encode()


def jsonl_pieces(records: Iterable[object]) -> Iterator[bytes]:
    """Records as JSON Lines, fields in the order of the record, some at a time."""
    encoder, rest = msgspec.json.Encoder(), iter(records)
    while some := list(islice(rest, _RECORDS)):
        yield encoder.encode_lines(some)
