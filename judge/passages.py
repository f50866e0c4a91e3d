"""Passage texts from a collection in one streaming pass: JSON Lines or TREC-web, plain, gzip or bzip2."""

import bz2
import functools
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec

from judge.errors import InputError
from judge.ids import natural_key
from judge.records import Passage, Problem

MAX_PROBLEMS = 10
"""Reading stops here: a wrong file may have a hundred million lines."""

_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".trecweb") for packed in ("", ".gz", ".bz2"))
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"

_Bad = Callable[[int | None, str], None]
"""Takes the number of a line, None for the whole file, and what is wrong with it."""
_Hit = tuple[int, str, str]
"""The number of the line on which a wanted passage begins, its id and its text."""


def read_passages(paths: Sequence[Path], wanted: Collection[str]) -> dict[str, Passage]:
    """The texts of the wanted passages; an id that no file has is absent.

    A folder stands for the `.jsonl` and `.trecweb` files in it, also `.gz` and `.bz2`, in natural order. This
    extracts from a collection and does not check it: reading stops when all passages are found, and a line that
    begins with another passage's id is not parsed.

    Raises:
        InputError: A file cannot be read or has bad lines, or one id has two texts; the first ten are listed.
    """
    problems: list[Problem] = []
    files = _files(paths, problems)
    ids = frozenset(wanted)
    found: dict[str, Passage] = {}
    for file in files:
        bad = functools.partial(_add, problems, file)
        for number, passage_id, text in _hits(file, ids, bad) if len(found) < len(ids) else ():
            earlier = found.setdefault(passage_id, Passage(passage_id, text, "collection"))
            if earlier.text != text:
                bad(number, f"passage {passage_id} has another text here than before")
            if len(found) == len(ids):
                break
    if problems:
        raise _refusal(problems)
    return found


def _add(problems: list[Problem], file: Path, number: int | None, message: str) -> None:
    where = "$" if number is None else f"line {number}: $"
    problems.append(Problem("passages_unreadable", "error", str(file), None, where, message))
    if len(problems) == MAX_PROBLEMS:
        raise _refusal(problems)


def _refusal(problems: Sequence[Problem]) -> InputError:
    return InputError("the passage files cannot be used as they are", problems)


def _files(paths: Sequence[Path], problems: list[Problem]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        try:
            # Not is_file(): a pipe is as good as a file.
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
            path.stat()
        except OSError as error:
            _add(problems, path, None, f"cannot be read: {error.strerror}")
            continue
        shards = [file for file in inside or () if file.name.endswith(_SUFFIXES) and file.name[0] != "."]
        if inside is not None and not shards:
            _add(problems, path, None, f"the folder has no file that ends in one of {', '.join(_SUFFIXES)}")
        files += [path] if inside is None else shards
    return files


def _hits(file: Path, wanted: frozenset[str], bad: _Bad) -> Iterator[_Hit]:
    try:
        with _buffered(file.open("rb", buffering=0)) as stored:
            lines = _unpacked(stored)
            start = lines.peek(_BUFFER)
            if start.startswith(_BOM):
                lines.read(len(_BOM))
            kind = start.removeprefix(_BOM).lstrip()[:1]
            if kind == b"{":
                yield from _json_lines(lines, wanted, bad)
            elif kind == b"<":
                yield from _trecweb(lines, wanted, bad)
            elif start:
                bad(1, "expected JSON Lines, which begin with '{', or TREC-web, which begins with '<DOC>'")
    except (OSError, EOFError, zlib.error) as error:
        bad(None, f"cannot be read to the end: {error}")


def _buffered(stream: io.RawIOBase | gzip.GzipFile | bz2.BZ2File) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, stream), _BUFFER)


def _unpacked(stored: io.BufferedReader) -> io.BufferedReader:
    """The content as a stream, whatever the file's name says."""
    magic = stored.peek(3)
    if magic.startswith(b"\x1f\x8b"):
        return _buffered(gzip.GzipFile(fileobj=stored))
    if magic.startswith(b"BZh"):
        return _buffered(bz2.BZ2File(stored))
    return stored


class _Line(msgspec.Struct):
    """A line of the iKAT collection has the first two, one of its lists of canonical passages the others."""

    id: str | None = None
    contents: str | None = None
    doc_id: str | None = None
    passage_id: str | None = None
    passage_text: str | None = None


_HEAD = b'{"id": "'
"""How every line of the iKAT collection begins; slicing the id out is half again as fast as parsing the line."""


def _json_lines(lines: Iterable[bytes], wanted: frozenset[str], bad: _Bad) -> Iterator[_Hit]:
    decode = msgspec.json.Decoder(_Line).decode
    heads = frozenset(passage_id.encode(errors="replace") for passage_id in wanted)
    start = len(_HEAD)
    backslash = ord("\\")
    for number, line in enumerate(lines, 1):
        if line[:start] == _HEAD:
            head = line[start : line.find(b'"', start)]
            # With an escape in it the head is not yet the id. (An int is found ten times sooner than bytes.)
            if head not in heads and backslash not in head:
                continue
        elif line.isspace():
            continue
        try:
            found = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            bad(number, f"cannot be read as a passage: {error}")
            continue
        if found.id is not None and found.contents is not None:
            passage_id, text = found.id, found.contents
        elif found.doc_id is not None and found.passage_id is not None and found.passage_text is not None:
            passage_id, text = f"{found.doc_id}:{found.passage_id}", found.passage_text
        else:
            bad(number, "expected `id` and `contents`, or `doc_id`, `passage_id` and `passage_text`")
            continue
        if passage_id in wanted:
            yield number, passage_id, text


_DOCNO = re.compile(rb"<DOCNO>\s*(.*?)\s*</DOCNO>")
_OPEN = re.compile(rb"<passage id=(\d+)>", re.IGNORECASE)


def _trecweb(lines: Iterable[bytes], wanted: frozenset[str], bad: _Bad) -> Iterator[_Hit]:
    """Passages between `<passage id=N>` and `</passage>` lines, as the CAsT and iKAT segmenters write them.

    iKAT joins document and number with a colon, CAsT with a hyphen.
    """
    document = ""
    opened = 0
    names: list[str] = []
    text: list[bytes] = []
    for number, line in enumerate(lines, 1):
        if opened:
            if line[:2] == b"</" and line[:10].lower() == b"</passage>":
                if names:
                    try:
                        content = b"".join(text).removesuffix(b"\n").decode()
                    except UnicodeDecodeError as error:
                        bad(opened, f"cannot be read as a passage: {error}")
                    else:
                        yield from ((opened, name, content) for name in names)
                opened = 0
            elif names:
                text.append(line)
        elif line[:1] == b"<":
            if match := _DOCNO.match(line):
                document = match[1].decode(errors="replace")
            elif match := _OPEN.match(line):
                opened, text = number, []
                place = match[1].decode()
                names = [name for name in (f"{document}:{place}", f"{document}-{place}") if name in wanted]
    if opened:
        bad(opened, f"the file ends inside passage {place} of document {document}")
