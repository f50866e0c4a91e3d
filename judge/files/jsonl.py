"""JSON and JSON Lines as bytes: equal values give equal bytes, and a bad line is a problem. Pure."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from judge.files.limits import MAX_PROBLEMS, numbered, stopped
from judge.records import Problem

_Row = TypeVar("_Row")
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which may stand before the first line."""


def decode_lines(content: bytes, row_type: type[_Row], name: str, code: str) -> Iterator[tuple[int, _Row | Problem]]:
    """The number of each line that is not blank, with its row or its problem.

    Args:
        content: The file's bytes.
        row_type: The record on a line; an unknown field is ignored unless the type forbids it.
        name: The file's name, for the problems.
        code: The code of the problems.
    """
    return decode_rows(numbered(content.removeprefix(BOM), name), row_type, name, code)


def decode_rows(
    lines: Iterable[tuple[int, bytes]], row_type: type[_Row], name: str, code: str
) -> Iterator[tuple[int, _Row | Problem]]:
    """As `decode_lines`, of lines with their numbers; each is decoded before the next one is asked for."""
    decoder = msgspec.json.Decoder(row_type)
    listed = 0
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message, _, path = str(error).partition(" - at `")
            where = f"line {number}: {path.rstrip('`') or '$'}"
            yield number, Problem(code, "error", name, None, where, message)
            listed += 1
            if listed == MAX_PROBLEMS:
                yield number, stopped(name, number)
                return


def jsonl_bytes(records: Iterable[object]) -> bytes:
    """Records as JSON Lines, fields in the order of the record."""
    return msgspec.json.Encoder().encode_lines(records)


def json_bytes(value: object) -> bytes:
    """A value as indented JSON with sorted keys and a final line break; equal values give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"
