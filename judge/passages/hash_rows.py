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
    """Keys and MD5s of whole lines; blank lines and wrong lines are left out unless `keep_wrong`.

    Args:
        block: The lines.
        breaks: The place of each line's break.
        bad: Called with the number of a wrong line, from 0, and the problem.
        keep_wrong: Give blank and wrong lines a key that no passage has, so that each line has a row.
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
        # In a shorter line the byte does not matter: its length is tested below.
        separators = content[np.maximum(ends - _TAIL, 0)]
        other = ~packed & (ends - starts > _TAIL) & ((separators == _TAB) | (separators == _COMMA))
        payload, good = _digests(content, ends, packed | other)
        rows = np.flatnonzero(good & ~packed)
        begins, stops = starts[rows].tolist(), (ends[rows] - _TAIL).tolist()
        names = [block[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
        # In a list of CAsT's form every name is an id already.
        if b"\t" in block or (content[starts[rows]] <= _SPACE).any():
            names = [_name(name, tab) for name, tab in zip(names, (separators[rows] == _TAB).tolist(), strict=True)]
        keys[rows] = keys_of_names(names)
        good[rows] = [bool(name) for name in names]
    if good.all():
        return keys, payload
    for row in np.flatnonzero(~good & (ends > starts)).tolist():
        bad(row, _problem(block[starts[row] : ends[row]]))
    keys[~good] = _NO_KEY
    return (keys, payload) if keep_wrong else (keys[good], payload[good])


def fields(line: bytes) -> tuple[bytes, bytes]:
    """Passage id and MD5 of a line without problems."""
    line = line.removesuffix(b"\r")
    return _name(line[:-_TAIL], line[-_TAIL] == _TAB), binascii.unhexlify(line[1 - _TAIL :])


def _name(written: bytes, tabbed: bool) -> bytes:
    """The passage id before an MD5 and its separator; empty if that is no passage id."""
    if not tabbed:
        return b"" if b"\t" in written or not written.strip() else written
    document, tab, number = written.partition(b"\t")
    sound = tab and number.isdigit() and len(number) < 19 and document.strip()
    return b"%b:%b" % (document, number) if sound else b""


def _digests(content: Bytes, ends: Places, good: _Mask) -> tuple[Bytes, _Mask]:
    """The MD5s at the end of the good rows, and which of these rows are good: those with hexadecimal digits."""
    written = np.ndarray((len(content) - 31,), "V32", content, strides=(1,))[ends[good] - 32]
    try:
        digests = binascii.unhexlify(written.tobytes())
    except binascii.Error:
        good = good.copy()
        good[good] = [_MD5.fullmatch(digits.tobytes()) is not None for digits in written]
        return _digests(content, ends, good)
    payload = np.zeros((len(ends), WIDTH), np.uint8)
    payload[good] = np.frombuffer(digests, np.uint8).reshape(-1, WIDTH)
    return payload, good


def _problem(line: bytes) -> str:
    """The problem of a wrong line."""
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
