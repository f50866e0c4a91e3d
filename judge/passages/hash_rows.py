"""The lines of a hash list as keys and MD5s, a block at a time."""

import binascii
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from judge.passages.keys import OTHER, WINDOW, Bytes, keys_of_names, packed_keys
from judge.passages.table import WIDTH, Batch

Places = NDArray[np.int64]
_Mask = NDArray[np.bool_]
_MD5 = re.compile(rb"[0-9a-fA-F]{32}")
_TAB, _RETURN, _SPACE, _COMMA = 9, 13, 32, 44
_TAIL = 33
"""Bytes of the MD5 and of the separator before it."""
_NO_KEY = OTHER - 1
"""Above every packed key and below every hashed one."""


def parsed(block: bytes, breaks: Places, bad: Callable[[int, str], None], *, keep_wrong: bool = False) -> Batch:
    """Keys and MD5s of whole lines; lines that are wrong, or blank, are left out unless `keep_wrong`.

    Args:
        block: The lines.
        breaks: Where the line break of each is.
        bad: Told the number of a wrong line, from 0, and what is wrong with it.
        keep_wrong: Give such lines a key that no passage has, so that each line has a row.
    """
    content = np.frombuffer(block + bytes(WINDOW), np.uint8)
    starts = np.empty_like(breaks)
    starts[0] = 0
    starts[1:] = breaks[:-1] + 1
    ends = breaks - ((breaks > starts) & (content[breaks - 1] == _RETURN))
    keys, packed, stops = packed_keys(content, starts, _TAB)
    packed &= (ends - stops == _TAIL) & (content[stops] == _TAB)
    if packed.all():
        payload, good = _digests(content, ends, packed)
    else:
        # Where a line is shorter, any byte will do: the test of its length comes with it.
        separators = content[np.maximum(ends - _TAIL, 0)]
        other = ~packed & (ends - starts > _TAIL) & ((separators == _TAB) | (separators == _COMMA))
        payload, good = _digests(content, ends, packed | other)
        rows = np.flatnonzero(good & ~packed)
        begins, stops = starts[rows].tolist(), (ends[rows] - _TAIL).tolist()
        names = [block[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
        # In a list of CAsT's form each of them is an id as it stands.
        if b"\t" in block or (content[starts[rows]] <= _SPACE).any():
            names = [_name(one, tab) for one, tab in zip(names, (separators[rows] == _TAB).tolist(), strict=True)]
        keys[rows] = keys_of_names(names)
        good[rows] = [bool(name) for name in names]
    if good.all():
        return keys, payload
    for row in np.flatnonzero(~good & (ends > starts)).tolist():
        bad(row, _fault(block[starts[row] : ends[row]]))
    keys[~good] = _NO_KEY
    return (keys, payload) if keep_wrong else (keys[good], payload[good])


def fields(line: bytes) -> tuple[bytes, bytes]:
    """Passage id and MD5 of a line without fault."""
    line = line.removesuffix(b"\r")
    return _name(line[:-_TAIL], line[-_TAIL] == _TAB), binascii.unhexlify(line[1 - _TAIL :])


def _name(written: bytes, tabbed: bool) -> bytes:
    """The passage id that is written before an MD5 and its separator; empty if it is none."""
    if not tabbed:
        return b"" if b"\t" in written or not written.strip() else written
    document, tab, number = written.partition(b"\t")
    sound = tab and number.isdigit() and len(number) < 19 and document.strip()
    return b"%b:%b" % (document, number) if sound else b""


def _digests(content: Bytes, ends: Places, good: _Mask) -> tuple[Bytes, _Mask]:
    """The MD5s before the ends of the good rows, and which rows are still good: those in hexadecimal."""
    written = np.ndarray((len(content) - 31,), "V32", content, strides=(1,))[ends[good] - 32]
    try:
        digests = binascii.unhexlify(written.tobytes())
    except binascii.Error:
        good = good.copy()
        good[good] = [_MD5.fullmatch(one.tobytes()) is not None for one in written]
        return _digests(content, ends, good)
    payload = np.zeros((len(ends), WIDTH), np.uint8)
    payload[good] = np.frombuffer(digests, np.uint8).reshape(-1, WIDTH)
    return payload, good


def _fault(line: bytes) -> str:
    """What is wrong with a line of the list."""
    tabbed = b"\t" in line
    columns = line.split(b"\t") if tabbed else line.rsplit(b",", 1)
    if len(columns) != (3 if tabbed else 2):
        return f"expected document, number and MD5, with tabs between them, found {len(columns)} columns"
    if not _MD5.fullmatch(columns[-1]):
        return f"expected an MD5 of 32 hexadecimal digits, found {_shown(columns[-1])}"
    if not columns[0].strip():
        return "the id is empty"
    return f"expected the number of a passage, found {_shown(columns[1])}"


def _shown(field: bytes) -> str:
    return repr(field[:40].decode(errors="replace"))
