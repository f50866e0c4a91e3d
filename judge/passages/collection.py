"""The texts of wanted passages wherever a collection lies: files, folders of shards, an index, a Lucene index."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from judge.files.paths import StrPath
from judge.files.paths import paths as as_paths
from judge.passages.magic import is_index
from judge.passages.problems import CollectionProblems
from judge.passages.sources import expanded
from judge.passages.streams import BOM, Bad, Hit, cause, open_stream
from judge.records import Passage, Problem
from judge.text.ids import natural_key


def read_passages(paths: StrPath | Iterable[StrPath], wanted: Collection[str]) -> dict[str, Passage]:
    """The texts of the wanted passages; an id that no file has is absent.

    A path is a file of JSON Lines or TREC-web, plain or packed by gzip, bzip2 or Zstandard; a folder, which stands for
    such files in it in natural order; an index by `judge passages index`; or the folder of a Lucene index. This
    extracts from a collection and does not check it: reading stops when all passages are found, and a line that
    begins with another passage's id is not parsed.

    Raises:
        InputError: A file cannot be read or has bad lines, or one id has two texts; the first ten are listed.
        UsageError: A Lucene index is given, and what reads it is not installed.
    """
    faults = _faults()
    files = expanded(as_paths(paths), faults)
    ids = frozenset(wanted)
    found: dict[str, Passage] = {}
    for file in files:
        bad = functools.partial(faults.add, file)
        for number, passage_id, text in _hits(file, ids, bad) if len(found) < len(ids) else ():
            earlier = found.setdefault(passage_id, Passage(passage_id, text, "collection"))
            if earlier.text != text:
                bad(number, f"passage {passage_id} has another text here than before")
            if len(found) == len(ids):
                break
    faults.settle()
    return found


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Every file that reading these paths may read: shards, what an index points to, all of a Lucene index.

    Raises:
        InputError: Paths cannot be read.
    """
    faults = _faults()
    files = expanded(paths, faults)
    faults.settle()
    for file in tuple(files):
        if file.is_dir():
            files += file.iterdir()
        elif is_index(file):
            from judge.passages.index import indexed_files

            files += indexed_files(file)
    return files


def listed(
    passages: Mapping[str, Passage], find: Callable[[Sequence[str]], Sequence[bytes | None]]
) -> dict[str, Passage]:
    """The passages that the collection's hash list has; no other is evidence, whatever its text.

    `find` gives the MD5 of each id, None for one that is not listed.
    """
    found = find([passage.passage_id for passage in passages.values()])
    return {key: passage for (key, passage), md5 in zip(passages.items(), found, strict=True) if md5 is not None}


def differing(
    passages: Mapping[str, Passage],
    find: Callable[[Sequence[str]], Sequence[bytes | None]],
    same: Callable[[str, bytes], bool],
) -> list[str]:
    """The keys, in natural order, of the passages whose text is not the one that the hash list has under their id.

    `find` is that of `listed`, and one that is not listed is not among them; `same` tells whether a text has an MD5.
    """
    keys = sorted(passages, key=natural_key)
    found = zip(keys, find([passages[key].passage_id for key in keys]), strict=True)
    return [key for key, md5 in found if md5 is not None and not same(passages[key].text, md5)]


def check_texts(
    passages: Mapping[str, Passage],
    find: Callable[[Sequence[str]], Sequence[bytes | None]],
    same: Callable[[str, bytes], bool],
    file: str,
) -> list[Problem]:
    """A problem for each of the passages that are `differing`; `file` is what they name as the place of the texts."""
    message = "its text is not the one of the hash list: the MD5 differs"
    return [
        Problem("passage_text_differs", "error", file, None, f"passage {passages[key].passage_id}: $", message)
        for key in differing(passages, find, same)
    ]


def _faults() -> CollectionProblems:
    return CollectionProblems("passages_unreadable", "the passage files cannot be used as they are")


def _hits(path: Path, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    if path.is_dir():
        from judge.passages.lucene import read_lucene

        yield from _without_lines(read_lucene(path, wanted))
    elif is_index(path):
        from judge.passages.index import read_indexed

        yield from _without_lines(read_indexed(path, wanted))
    else:
        try:
            yield from _from_file(path, wanted, bad)
        except OSError as error:
            bad(None, cause(error))


def _without_lines(found: Mapping[str, Passage]) -> Iterator[Hit]:
    return ((None, passage.passage_id, passage.text) for passage in found.values())


def _from_file(file: Path, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    with open_stream(file) as content:
        start = content.peek()
        if start.startswith(BOM):
            content.read(len(BOM))
        kind = start.removeprefix(BOM).lstrip()[:1]
        if kind == b"{":
            # Not at the top: it needs numpy, and one that only takes texts from runs does not.
            from judge.passages.jsonl import json_lines

            yield from json_lines(content, wanted, bad)
        elif kind == b"<":
            from judge.passages.trecweb import trecweb

            yield from trecweb(content, wanted, bad)
        elif start:
            bad(1, "expected JSON Lines, which begin with '{', or TREC-web, which begins with '<DOC>'")
