"""Wanted passages from JSON Lines, at the speed of memory: only the lines that may hold one are parsed.

Nearly every line of a collection begins with `{"id": "`. Line ends and ids are found for a whole block at once, and a
line is examined by itself only if the first 40 bytes of its id have the hash of a wanted id or hold a backslash, or if
the line begins in another way.
"""

import functools
import io
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from judge.io.files import why_not_json
from judge.passages.streams import MAX_LINE, Bad, Hit

HEAD = b'{"id": "'
"""How nearly every line of a collection begins."""
_TIGHT = b'{"id":"'

_BLOCK = 1 << 20
_WORDS = 5
"""How many 8-byte words of an id are hashed; the ids of ClueWeb22 passages have 27 bytes and more."""
_PAD = len(HEAD) + 8 * _WORDS

_Words = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int64]


NEEDED = "expected `id` and `contents` or `text`, `docid` and `segment`, or `doc_id`, `passage_id` and `passage_text`"
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding a line."""


class Line(msgspec.Struct):
    """A passage of iKAT or RAGTIME (`id`), of MS MARCO V2.1 (`docid`), or of iKAT's canonical passages (`doc_id`)."""

    id: str | None = None
    contents: str | None = None
    text: str | None = None
    docid: str | None = None
    segment: str | None = None
    doc_id: str | None = None
    passage_id: str | None = None
    passage_text: str | None = None


def json_lines(content: io.BufferedReader, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    """The wanted passages in JSON Lines; a line that begins with another passage's id is not parsed.

    An OSError if the stream cannot be read to the end.
    """
    decode = msgspec.json.Decoder(Line).decode
    heads = frozenset(passage_id.encode(errors="replace") for passage_id in wanted)
    for number, line in _candidates(content, _Filter(heads), bad):
        head = _head(line)
        if head is None:
            if line.isspace():
                continue
        elif head not in heads and b"\\" not in head:
            continue
        try:
            passage = passage_of(decode(line))
        except UNREADABLE as error:
            bad(number, f"cannot be read as a passage: {why_not_json(line, error)}")
            continue
        if passage is None:
            bad(number, NEEDED)
        elif passage[0] in wanted:
            yield number, *passage


def passage_of(line: Line) -> tuple[str, str] | None:
    """Id and text of a decoded line; None if the line lacks one of them."""
    text = line.text if line.contents is None else line.contents
    if line.id is not None and text is not None:
        return line.id, text
    if line.docid is not None and line.segment is not None:
        return line.docid, line.segment
    if line.doc_id is not None and line.passage_id is not None and line.passage_text is not None:
        return f"{line.doc_id}:{line.passage_id}", line.passage_text
    return None


def _head(line: bytes) -> bytes | None:
    """The id as written, escapes included; None if the line does not begin with it."""
    for opening in (HEAD, _TIGHT):
        if line.startswith(opening):
            end = line.find(b'"', len(opening))
            return line[len(opening) : end] if end >= 0 else line[len(opening) :].removesuffix(b"\n")
    return None


def _candidates(content: io.BufferedReader, may_match: "_Filter", bad: Bad) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that may hold a wanted passage."""
    size = _BLOCK
    buffer = bytearray(size + _PAD)
    before = kept = 0
    while got := content.readinto(memoryview(buffer)[kept:size]):
        filled = kept + got
        ends = _line_ends(buffer, filled)
        if len(ends):
            starts = np.concatenate(([0], ends[:-1] + 1))
            for place in may_match(buffer, starts).tolist():
                yield before + place + 1, bytes(memoryview(buffer)[starts[place] : ends[place] + 1])
            before += len(ends)
            kept = filled - int(ends[-1]) - 1
            buffer[:kept] = buffer[filled - kept : filled]
        elif filled == MAX_LINE:
            bad(before + 1, f"a line of more than {MAX_LINE >> 20} MiB")
            return
        else:
            kept = filled
            if kept == size:
                size = min(2 * size, MAX_LINE)
                buffer = buffer[:kept] + bytes(size + _PAD - kept)
    if kept:
        yield before + 1, bytes(memoryview(buffer)[:kept])


def _line_ends(buffer: bytes | bytearray, filled: int) -> _Places:
    """Places of the line feeds; groups of 8 bytes without one, which are most, are skipped together."""
    groups = np.zeros(-(-filled // 8) * 8, np.bool_)
    np.equal(np.frombuffer(buffer, np.uint8, filled), ord("\n"), out=groups[:filled])
    some = np.flatnonzero(groups.view(np.uint64) != 0)
    row, column = np.nonzero(groups.reshape(-1, 8)[some])
    places: _Places = some[row] * 8 + column
    return places


def _windows(buffer: bytearray, width: int) -> npt.NDArray[np.uint8]:
    """The `width` bytes from each place on, as a view (places x `width`)."""
    return np.ndarray((len(buffer) - width + 1, width), np.uint8, buffer, strides=(1, 1))


_ONES, _HIGH, _QUOTES, _LINE_FEEDS, _BACKSLASHES = (
    np.uint64(int.from_bytes(byte * 8, "little")) for byte in (b"\x01", b"\x80", b'"', b"\n", b"\\")
)
_SEVEN = np.uint64(7)
_ONE = np.uint64(1)


def _zero_bytes(words: _Words) -> _Words:
    """The high bit of zero bytes; the lowest one set is right, those above it may be wrong (Mycroft's test)."""
    return (words - _ONES) & ~words & _HIGH


class _Filter:
    """Finds lines that may begin with a wanted id, by a hash of up to 40 bytes; it misses none of them."""

    _FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
                         0xFF51AFD7ED558CCD], np.uint64)[:, None]  # fmt: skip

    def __init__(self, heads: frozenset[bytes]) -> None:
        # At most one false hit in 128 lines, with at most 16 MiB.
        self._shift = np.uint64(64 - min(max((128 * len(heads)).bit_length(), 12), 24))
        self._table = np.zeros(1 << (64 - int(self._shift)), np.bool_)
        if heads:
            padded = b"".join(head[: 8 * _WORDS].ljust(8 * _WORDS, b"\x00") for head in heads)
            self._table[self._hash(np.frombuffer(padded, "<u8").reshape(-1, _WORDS).T)] = True

    def _hash(self, words: _Words) -> Any:
        mixed = (words * self._FACTORS).sum(axis=0, dtype=np.uint64)
        mixed ^= mixed >> np.uint64(29)
        return (mixed * self._FACTORS[0]) >> self._shift

    def __call__(self, buffer: bytearray, starts: _Places) -> _Places:
        """The indices into `starts` of the lines to examine."""
        first = _windows(buffer, 8)[starts].view("<u8")[:, 0]
        wide = first == np.frombuffer(HEAD, "<u8")[0]
        tight = (first << np.uint64(8)) == np.frombuffer(b"\x00" + _TIGHT, "<u8")[0]
        rows = _windows(buffer, 8 * _WORDS)[starts + np.where(wide, len(HEAD), len(_TIGHT))].view("<u8")
        # From here a row holds one word of every id: sums and tests along short rows cost three times as much.
        words = np.ascontiguousarray(rows.T)
        stops = _zero_bytes(words ^ _QUOTES) | _zero_bytes(words ^ _LINE_FEEDS)
        # All bits below the first quote or line feed of a word, all 64 where there is none; then none in later words.
        inside = ((stops & (~stops + _ONE)) >> _SEVEN) - _ONE
        going = np.logical_and.accumulate(stops == 0, axis=0)
        inside[1:] *= going[:-1]
        escaped = (_zero_bytes(words ^ _BACKSLASHES) & inside).any(axis=0)
        hit = self._table[self._hash(words & inside)]
        places: _Places = np.flatnonzero(hit | escaped | ~(wide | tight))
        return places


_DOCNO = re.compile(rb"<DOCNO>\s*(.*?)\s*</DOCNO>")
_OPEN = re.compile(rb"<passage id=(\d+)>", re.IGNORECASE)


def trecweb(content: io.BufferedReader, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    """Passages between `<passage id=N>` and `</passage>` lines.

    iKAT joins document and number with a colon, CAsT with a hyphen. An OSError if the stream cannot be read to the end.
    """
    document = ""
    opened = size = 0
    names: list[str] = []
    text: list[bytes] = []
    for number, line in enumerate(iter(functools.partial(content.readline, MAX_LINE), b""), 1):
        size += len(line)
        if len(line) == MAX_LINE or (names and size > MAX_LINE):
            bad(number, f"a line or passage of more than {MAX_LINE >> 20} MiB")
            return
        if opened:
            if line[:2] == b"</" and line[:10].lower() == b"</passage>":
                if names:
                    try:
                        passage = b"".join(text).removesuffix(b"\n").decode()
                    except UnicodeDecodeError as error:
                        bad(opened, f"cannot be read as a passage: {error}")
                    else:
                        yield from ((opened, name, passage) for name in names)
                opened = 0
                names = []
            elif names:
                text.append(line)
        elif line[:1] == b"<":
            if match := _DOCNO.match(line):
                document = match[1].decode(errors="replace")
            elif match := _OPEN.match(line):
                opened = number
                text = []
                size = 0
                place = match[1].decode()
                names = [name for name in (f"{document}:{place}", f"{document}-{place}") if name in wanted]
    if opened:
        bad(opened, f"the file ends inside passage {place} of document {document}")
