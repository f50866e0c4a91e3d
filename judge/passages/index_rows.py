"""The lines of a plain JSONL file as keys and places, a block at a time."""

import functools
from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.passages.jsonl import HEAD, NEEDED, UNREADABLE, Line, passage_of
from judge.passages.keys import WINDOW, Bytes, keys_of_names, packed_keys
from judge.passages.table import Batch

ROW: Final = np.dtype([("offset", "<u8"), ("file", "<u4"), ("length", "<u4")])
"""Where a line is: its first byte, the number of its file, and its length in bytes."""
_QUOTE, _RETURN = ord('"'), ord("\r")


def parsed(block: bytes, ends: NDArray[np.int64], offset: int, number: int, bad: Callable[[int, str], None]) -> Batch:
    """The key and the place of every line that is not blank.

    Args:
        block: Whole lines.
        ends: The place of each line's break.
        offset: The first byte of the block in its file.
        number: The number of that file.
        bad: Called with the number of a wrong line, from 0, and the problem.
    """
    content = np.frombuffer(block + bytes(len(HEAD) + WINDOW), np.uint8)
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    keys, good, stops = packed_keys(content, starts + len(HEAD), ord(":"))
    good &= (content[stops] == _QUOTE) & _begin_with_head(content, starts)
    if not good.all():
        blank = (ends == starts) | ((ends - starts == 1) & (content[starts] == _RETURN))
        rows, names = [], []
        for row in np.flatnonzero(~good & ~blank).tolist():
            name = _name(block[starts[row] : ends[row]], functools.partial(bad, row))
            if name is not None:
                rows.append(row)
                names.append(name)
        keys[rows] = keys_of_names(names)
        good[rows] = True
    places = np.empty(len(ends), ROW)
    places["offset"] = starts + offset
    places["file"] = number
    places["length"] = ends - starts
    payload = places.view(np.uint8).reshape(-1, ROW.itemsize)
    return (keys, payload) if good.all() else (keys[good], payload[good])


def _begin_with_head(content: Bytes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    words = np.ndarray((len(content) - len(HEAD) + 1,), "V8", content, strides=(1,))[starts].view("<u8")
    same: NDArray[np.bool_] = words == int.from_bytes(HEAD, "little")
    return same


def _name(line: bytes, bad: Callable[[str], None]) -> bytes | None:
    """The id of the passage on a line; None for a blank line and for one without a passage, which is reported."""
    if line.startswith(HEAD):
        end = line.find(b'"', len(HEAD))
        name = line[len(HEAD) : end]
        if end > 0 and b"\\" not in name:
            return name
    elif not line.strip():
        return None
    try:
        passage = passage_of(msgspec.json.decode(line, type=Line))
    except UNREADABLE as error:
        bad(f"cannot be read as a passage: {error}")
        return None
    if passage is None:
        bad(NEEDED)
        return None
    return passage[0].encode(errors="surrogatepass")
