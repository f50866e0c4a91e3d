"""Passages: the texts and the MD5s of a collection, found by passage id.

Wanted texts are read here, wherever a collection lies: files, folders, an index.

hashes      which passages there are, and the MD5 of each text
index       where each passage of a plain collection begins
"""

import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from judge.io.files import BOM, StrPath
from judge.io.files import paths as as_paths
from judge.io.ids import natural_key
from judge.io.steps import Steps, metered, quiet
from judge.passages.streams import (
    MAX_TEXT,
    Bad,
    CollectionProblems,
    Hit,
    cause,
    expanded,
    is_index,
    open_stream,
)
from judge.plugins import collection
from judge.records import Passage, Problem, file_problem

Find = Callable[[Sequence[str]], Sequence[bytes | None]]
"""Gives the MD5 of each passage id; None for one that is not in the collection's hash list."""
_READ_WHOLLY = 64 << 20
"""Most stored bytes of a file that is read to its end for a second text of a passage."""


def _problems() -> CollectionProblems:
    return CollectionProblems("passages_unreadable", "the passage files cannot be used as they are")


def read_passages(
    paths: StrPath | Iterable[StrPath], wanted: Collection[str], steps: Steps = quiet
) -> dict[str, Passage]:
    """The texts of the wanted passages; an id that no file has is absent.

    A path is a file of JSON Lines or TREC-web, plain or packed by gzip, bzip2 or Zstandard; a folder, which stands for
    such files in it in natural order; an index by `judge passages index`; or `ir:NAME`. The collection is not checked:
    reading stops when all passages are found, and a line with another passage's id is not parsed. Only a file of at
    most 64 MiB is read to its end then, where a second text of a passage may stand. An InputError if a file cannot be
    read or has bad lines, or one id has two texts; the first ten are listed.
    """
    problems = _problems()
    files = expanded(as_paths(paths), problems)
    ids = frozenset(wanted)
    passages: dict[str, Passage] = {}
    meter = metered("reading passages", sum(file.stat().st_size for file in files if file.is_file()), steps)

    def unread(file: Path, number: int | None, message: str) -> None:
        # What cannot be read behind the last wanted passage is no problem, however far the file is read.
        if len(passages) < len(ids):
            problems.add(file, number, message)

    for file in files:
        if len(passages) == len(ids):
            break
        whole = file.is_file() and file.stat().st_size <= _READ_WHOLLY
        for number, passage_id, text in _hits(file, ids, functools.partial(unread, file), meter):
            if len(text) > MAX_TEXT:
                problems.add(file, number, f"passage {passage_id} is longer than {MAX_TEXT:,} characters")
                continue
            earlier = passages.setdefault(passage_id, Passage(passage_id, text, "collection"))
            if earlier.text != text:
                problems.add(file, number, f"passage {passage_id} has another text here than before")
            if len(passages) == len(ids) and not whole:
                break
    problems.settle()
    return passages


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Every file that `read_passages` may read: shards, and the files behind an index.

    An InputError if paths cannot be read.
    """
    problems = _problems()
    files = expanded(paths, problems)
    problems.settle()
    for file in tuple(files):
        if is_index(file):
            from judge.passages.index import indexed_files

            files += indexed_files(file)
    return files


def listed(passages: Mapping[str, Passage], find: Find) -> dict[str, Passage]:
    """The passages whose id is in the collection's hash list; no other passage is evidence, whatever its text."""
    md5s = find([passage.passage_id for passage in passages.values()])
    return {key: passage for (key, passage), md5 in zip(passages.items(), md5s, strict=True) if md5 is not None}


def differing(passages: Mapping[str, Passage], find: Find) -> list[str]:
    """The keys, in natural order, of the passages whose text does not have the listed MD5 (`same_text`).

    A passage that is not listed is not among them.
    """
    keys = sorted(passages, key=natural_key)
    listed_md5s = zip(keys, find([passages[key].passage_id for key in keys]), strict=True)
    return [key for key, md5 in listed_md5s if md5 is not None and not same_text(passages[key].text, md5)]


def check_texts(passages: Mapping[str, Passage], find: Find, file: str) -> list[Problem]:
    """A problem for each passage that is `differing`; `file` names the source of the texts."""
    message = "its text is not the one of the hash list: the MD5 differs"
    return [
        file_problem("passage_text_differs", file, message, f"passage {passages[key].passage_id}: $")
        for key in differing(passages, find)
    ]


def same_text(text: str, md5: bytes) -> bool:
    """Whether a text has an MD5: as it is, without outer line breaks, or without outer white space.

    iKAT's segmenter writes no line breaks around a text; its lists of canonical passages (`*_psg_text.jsonl`) and
    TREC-web add some.
    """
    return md5 in (_md5(text), _md5(text.strip("\r\n")), _md5(text.strip()))


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()


def _hits(path: Path, wanted: frozenset[str], bad: Bad, meter: Callable[[int], None]) -> Iterator[Hit]:
    if read := collection(path, "passages"):
        texts = read(wanted)
    elif is_index(path):
        from judge.passages.index import read_indexed

        texts = read_indexed(path, wanted)
    else:
        texts = {}
        try:
            yield from _from_file(path, wanted, bad, meter)
        except OSError as error:
            bad(None, cause(error))
    yield from ((None, *passage) for passage in texts.items())


def _from_file(file: Path, wanted: frozenset[str], bad: Bad, meter: Callable[[int], None]) -> Iterator[Hit]:
    with open_stream(file, meter) as content:
        start = content.peek()
        if start.startswith(BOM):
            content.read(len(BOM))
        kind = start.removeprefix(BOM).lstrip()[:1]
        if kind == b"{":
            # Imported here because it needs numpy, which pooling without a collection does not.
            from judge.passages.jsonl import json_lines

            yield from json_lines(content, wanted, bad)
        elif kind == b"<":
            from judge.passages.jsonl import trecweb

            yield from trecweb(content, wanted, bad)
        elif start:
            bad(1, "expected JSON Lines, which begin with '{', or TREC-web, which begins with '<DOC>'")
