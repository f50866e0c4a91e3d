"""From a run file's bytes to JSON values, with the line and column of each error.

`msgspec` decodes. What it refuses is decoded again with the slower standard library, which reports the place of an
error and accepts NaN, Infinity and lone surrogates, so that a reader can report these at their JSON path.
"""

import codecs
import io
import json
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError
from judge.io.files import TooLarge, most_values, read_stored, sha256, unpack
from judge.io.text import SHOWN, printable, shown
from judge.records import Problem
from judge.runs.check import problem
from judge.runs.fields import MAX_TURNS

Decoder = Callable[[bytes], Any]
Reader = Callable[[Path], bytes]
HEAD = 4096
"""Bytes that suffice to recognize a file."""
_PACKINGS = {
    b"\x1f\x8b": "gzip, once more",
    b"BZh": "bzip2",
    b"PK\x03\x04": "ZIP",
    b"PK\x05\x06": "ZIP",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\xfd7zXZ\0": "XZ",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
_TAR = slice(257, 262)
_UTF16_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PYTHON_LITERAL = re.compile(r"(True|False|None)\b")
_LINES = "turns with `metadata` or `references`, and rows with a question and an answer"
_NO_MARKS = bytes(set(range(256)) - set(b",[{"))
"""All bytes but those after which a value comes: every value but the first comes after one of them."""
_SIGN = re.compile(rb"\S")
_TURN_LINE = re.compile(rb'"(metadata|references)"')


class Document(msgspec.Struct, frozen=True):
    """One file as far as it can be decoded: `value` for one JSON value, `lines` for JSON Lines."""

    path: Path
    file: str
    digest: str
    content: bytes
    """The unpacked bytes without a byte order mark."""
    value: Any
    lines: tuple[tuple[int, Any], ...]
    """(line number, value) of every line that is JSON."""
    problems: tuple[Problem, ...]
    """The problems of the bytes."""

    @property
    def unreadable(self) -> bool:
        """Whether there is neither a value nor a line."""
        return not self.lines and any(problem.severity == "error" for problem in self.problems)


def file_name(path: Path) -> str:
    """The path as text that can be printed and stored, even where its name is not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def read_head(path: Path, size: int = HEAD) -> bytes:
    """The first bytes of a file's content, unpacked and without a byte order mark; "" if the packing is damaged.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(size)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, size)
        except zlib.error:
            return b""
    return head.removeprefix(codecs.BOM_UTF8)


def looks_broken(path: Path) -> bool:
    """Whether a file may have been meant as a run: it is empty, packed, or marked as another encoding than UTF-8.

    An OSError if the file cannot be read.
    """
    with path.open("rb") as file:
        stored = file.read(HEAD)
    return not stored.strip() or stored.startswith(_UTF16_32) or _packing(stored) is not None


def _packing(content: bytes) -> str | None:
    """The packing of content, by its first bytes; None if it is plain."""
    if content[_TAR] == b"ustar":
        return "tar"
    return next((name for magic, name in _PACKINGS.items() if content.startswith(magic)), None)


def open_document(
    path: Path, *, as_lines: bool = False, decoder: Decoder = msgspec.json.decode, read: Reader = read_stored
) -> Document:
    """Read, unpack and decode one file; never raises for its content. `as_lines`: as JSON Lines, whatever it is.

    `decoder` decodes a file of one JSON value; a file that it refuses is decoded as usual. `read` gives its bytes.
    """
    file = file_name(path)
    digest, content, problems = _content_of(path, file, read)

    def document(value: Any = None, lines: tuple[tuple[int, Any], ...] = ()) -> Document:
        return Document(
            path=path, file=file, digest=digest, content=content, value=value, lines=lines, problems=tuple(problems)
        )

    if not content:
        return document()
    if as_lines or _begins_with_turn(content):
        return document(lines=_decode_lines(content, file, problems))
    value, unread = decode(content, file, decoder=decoder)
    if unread is None:
        return document(value)
    # The last turn of an array may stand on a line of its own too.
    if not _is_open_array(content) and any(
        raw.lstrip().startswith(b"{") and _TURN_LINE.search(raw) and _holds(raw, dict) for raw in io.BytesIO(content)
    ):
        return document(lines=_decode_lines(content, file, problems))
    problems.append(unread)
    return document()


def _content_of(path: Path, file: str, read: Reader) -> tuple[str, bytes, list[Problem]]:
    """The digest of a file, its unpacked text without a byte order mark, and the problems; no text if it is unread."""
    digest = ""
    packed = False
    try:
        content = read(path)
        digest = sha256(content)
        packed = True
        content = unpack(content, file)
    except InputError as error:
        code = "too_large" if isinstance(error, TooLarge) else "damaged_gzip" if packed else "unreadable_file"
        return digest, b"", [problem(code, file, "", printable(str(error)))]
    if packing := _packing(content):
        message = f"the content is packed as {packing}; only files packed once, with gzip, are read"
        return digest, b"", [problem("packed_otherwise", file, "", message)]
    if content.startswith(_UTF16_32) or b"\0" in content[:4]:
        message = "the text is UTF-16 or UTF-32 (see its first bytes), expected UTF-8"
        return digest, b"", [problem("wrong_encoding", file, "", message)]
    problems: list[Problem] = []
    if content.startswith(codecs.BOM_UTF8):
        content = content.removeprefix(codecs.BOM_UTF8)
        message = "the file begins with a byte order mark, which JSON does not allow; it is skipped"
        problems.append(problem("byte_order_mark", file, "", message))
    most = most_values()
    if not content or content.isspace():
        problems.append(problem("empty_file", file, "", "the file is empty"))
    elif len(content) > most and len(content.translate(None, _NO_MARKS)) > most:
        message = f"more than {most:,} JSON values; --max-file-size allows more"
        problems.append(problem("too_many_values", file, "", message))
    else:
        return digest, content, problems
    return digest, b"", problems


def decode(
    content: bytes, file: str, line: int | None = None, decoder: Decoder = msgspec.json.decode
) -> tuple[Any, Problem | None]:
    """The JSON value in `content` (line `line` of its file), or the problem that prevents its decoding."""
    for decoded in (decoder, msgspec.json.decode):
        with suppress(ValueError, RecursionError):
            return decoded(content), None

    def refused(code: str, message: str) -> tuple[None, Problem]:
        return None, problem(code, file, "" if line is None else f"line {line}", message)

    try:
        text = content.removesuffix(b"\n" if line is not None else b"").decode("utf-8")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        return refused("wrong_encoding", f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8: {error.reason}")
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if line is not None else f"line {error.lineno}, column {error.colno}"
        rest = text[error.pos : error.pos + SHOWN]
        if literal := _PYTHON_LITERAL.match(rest):
            right = {"True": "true", "False": "false", "None": "null"}[literal[1]]
            return refused("python_literal", f"{at}: Python's `{literal[1]}`; JSON writes `{right}`")
        if error.msg.startswith("Unterminated string") or not rest.strip():
            end = "the line" if line is not None else "the file"
            return refused("truncated_json", f"{at}: {end} ends in the middle of the JSON; it was cut short")
        if error.msg == "Extra data":
            several = "" if line is not None else f"; JSON Lines are {_LINES}, one in each line"
            return refused("not_json", f"{at}: more after the end of the JSON{several}")
        return refused("not_json", f"{at}: not JSON: {error.msg}, found {shown(rest[:20])}")
    except RecursionError:
        return refused("not_json", "not a run: the JSON is nested too deeply")
    except ValueError:
        return refused("not_json", "not a run: an integer of thousands of digits")


def _begins_with_turn(content: bytes) -> bool:
    """Whether the first line is a turn, and others follow."""
    first = content[: content.find(b"\n") + 1]
    return bool(_TURN_LINE.search(first) and _holds(first, dict) and _SIGN.search(content, len(first)))


def _is_open_array(content: bytes) -> bool:
    """Whether the content begins with an array that its first line does not end."""
    first, _, _ = content.lstrip().partition(b"\n")
    return first.startswith(b"[") and not _holds(first, msgspec.Raw)


def _holds(raw: bytes, kind: type) -> bool:
    """Whether a line is JSON of this type."""
    with suppress(ValueError, RecursionError):
        msgspec.json.decode(raw, type=kind)
        return True
    return False


def _decode_lines(content: bytes, file: str, problems: list[Problem]) -> tuple[tuple[int, Any], ...]:
    lines: list[tuple[int, Any]] = []
    refused: list[Problem] = []
    # One line at a time, since a list of them would copy the content.
    for number, raw in enumerate(io.BytesIO(content), start=1):
        if raw.isspace():
            continue
        if len(lines) + len(refused) == MAX_TURNS:
            message = f"more than {MAX_TURNS:,} lines, each of which should be a turn; the file is not read"
            problems.append(problem("too_many_turns", file, "", message))
            return ()
        value, unread = decode(raw, file, number)
        if unread is None:
            lines.append((number, value))
        else:
            refused.append(unread)
    problems += refused
    return tuple(lines)
