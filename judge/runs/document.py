"""From a run file's bytes to JSON values, with the line and column of what cannot be read.

`msgspec` decodes; only what it refuses is tried again with the standard library's slower decoder, which says where
the fault is, and which takes NaN, Infinity and lone surrogates, so that a reader can report them at their JSON path.
"""

import codecs
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError
from judge.files import read_stored, sha256, unpack
from judge.records import Problem
from judge.text import SHOWN, printable, shown

HEAD = 4096
"""Bytes that suffice to see what a file is."""
_UTF16_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PYTHON_LITERAL = re.compile(r"(True|False|None)\b")
_TURN_LINE = re.compile(rb'"(metadata|references)"')


class Document(msgspec.Struct, frozen=True):
    """One file, decoded as far as it can be: `value` if it is one JSON value, `lines` if it is JSON Lines."""

    path: Path
    file: str
    digest: str
    content: bytes
    """The unpacked bytes without a byte order mark."""
    value: Any
    lines: tuple[tuple[int, Any], ...]
    """(line number, value) of every line that is JSON."""
    problems: tuple[Problem, ...]
    """What is wrong with the bytes."""

    @property
    def unreadable(self) -> bool:
        """Whether there is neither a value nor a line."""
        return not self.lines and any(problem.severity == "error" for problem in self.problems)


def file_name(path: Path) -> str:
    """The path as text that can be printed and stored, whatever bytes its name has."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def read_head(path: Path) -> bytes:
    """The first bytes of a file's content, unpacked and without a byte order mark; "" if the packing is damaged.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD)
        except zlib.error:
            return b""
    return head.removeprefix(codecs.BOM_UTF8)


def open_document(
    path: Path, *, as_lines: bool = False, quick: Callable[[bytes], Any | None] | None = None
) -> Document:
    """Read, unpack and decode one file; never raises for what is in it.

    `as_lines` forces JSON Lines; otherwise `quick` is tried before all else and gives the value, or None if it cannot.
    """
    file = file_name(path)
    problems: list[Problem] = []

    def document(content: bytes = b"", value: Any = None, lines: tuple[tuple[int, Any], ...] = ()) -> Document:
        return Document(path, file, digest, content, value, lines, tuple(problems))

    def problem(code: str, message: str) -> Problem:
        return Problem(code, "error", file, None, "", message)

    digest = ""
    try:
        stored = read_stored(path)
    except InputError as error:
        problems.append(problem("unreadable_file", printable(str(error))))
        return document()
    digest = sha256(stored)
    try:
        content = unpack(stored, file)
    except InputError as error:
        problems.append(problem("damaged_gzip", str(error)))
        return document()
    del stored
    if content.startswith(_UTF16_32) or b"\0" in content[:4]:
        message = "the text is UTF-16 or UTF-32 (see its first bytes), expected UTF-8"
        problems.append(problem("wrong_encoding", message))
        return document()
    if content.startswith(codecs.BOM_UTF8):
        content = content.removeprefix(codecs.BOM_UTF8)
        message = "the file begins with a byte order mark, which JSON does not allow; it is skipped"
        problems.append(Problem("byte_order_mark", "warning", file, None, "", message))
    if not content or content.isspace():
        problems.append(problem("empty_file", "the file is empty"))
        return document()
    if as_lines:
        return document(content, None, _decode_lines(content, file, problems))
    if quick is not None and (value := quick(content)) is not None:
        return document(content, value)
    value, fault = decode(content, file)
    if fault is None:
        return document(content, value)
    if _is_json_lines(content):
        return document(content, None, _decode_lines(content, file, problems))
    problems.append(fault)
    return document(content)


def decode(content: bytes, file: str, line: int | None = None) -> tuple[Any, Problem | None]:
    """The JSON value in `content` (of line `line` of its file), or the one problem that keeps it from being read."""
    try:
        return msgspec.json.decode(content), None
    except (ValueError, RecursionError):
        pass

    def problem(code: str, message: str) -> tuple[None, Problem]:
        where = "" if line is None else f"line {line}"
        return None, Problem(code, "error", file, None, where, message)

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        return problem("wrong_encoding", f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8: {error.reason}")
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if line is not None else f"line {error.lineno}, column {error.colno}"
        rest = text[error.pos : error.pos + SHOWN]
        if literal := _PYTHON_LITERAL.match(rest):
            right = {"True": "true", "False": "false", "None": "null"}[literal[1]]
            return problem("python_literal", f"{at}: Python's `{literal[1]}`; JSON writes `{right}`")
        if error.msg.startswith("Unterminated string") or not rest.strip():
            end = "the line" if line is not None else "the file"
            return problem("truncated_json", f"{at}: {end} ends in the middle of the JSON; it was cut short")
        if error.msg == "Extra data":
            message = (
                "more after the end of the JSON; of runs only iKAT 2025's are JSON Lines, with metadata and references"
            )
            return problem("not_json", f"{at}: {message}")
        return problem("not_json", f"{at}: not JSON: {error.msg}, found {shown(rest[:20])}")
    except RecursionError:
        return problem("not_json", "not a run: the JSON is nested too deeply")
    except ValueError:
        return problem("not_json", "not a run: an integer of thousands of digits")


def _is_json_lines(content: bytes) -> bool:
    """Whether some line is a turn of a JSON Lines run by itself."""
    for raw in content.split(b"\n"):
        if raw.lstrip().startswith(b"{") and _TURN_LINE.search(raw):
            try:
                return isinstance(msgspec.json.decode(raw), dict)
            except (ValueError, RecursionError):
                continue
    return False


def _decode_lines(content: bytes, file: str, problems: list[Problem]) -> tuple[tuple[int, Any], ...]:
    lines = []
    for number, raw in enumerate(content.split(b"\n"), start=1):
        if not raw.strip():
            continue
        value, fault = decode(raw, file, number)
        if fault is None:
            lines.append((number, value))
        else:
            problems.append(fault)
    return tuple(lines)
