"""The texts of wanted passages wherever a collection lies: files, folders of shards, an index, a Lucene index."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from judge.errors import InputError
from judge.ids import natural_key
from judge.passages.magic import is_index
from judge.passages.streams import Bad, Hit, open_stream
from judge.records import Passage, Problem

MAX_PROBLEMS = 10
"""Reading stops here: a wrong file may have a hundred million lines."""

_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".trecweb") for packed in ("", ".gz", ".bz2", ".zst"))
_BOM = b"\xef\xbb\xbf"


def read_passages(paths: Sequence[Path], wanted: Collection[str]) -> dict[str, Passage]:
    """The texts of the wanted passages; an id that no file has is absent.

    A path is a file of JSON Lines or TREC-web, plain or packed by gzip, bzip2 or Zstandard; a folder, which stands for
    such files in it in natural order; an index by `judge passages index`; or the folder of a Lucene index. This
    extracts from a collection and does not check it: reading stops when all passages are found, and a line that
    begins with another passage's id is not parsed.

    Raises:
        InputError: A file cannot be read or has bad lines, or one id has two texts; the first ten are listed.
        UsageError: A Lucene index is given, and what reads it is not installed.
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


def check_texts(
    passages: Mapping[str, Passage],
    find: Callable[[Sequence[str]], Sequence[bytes | None]],
    same: Callable[[str, bytes], bool],
    file: str,
) -> list[Problem]:
    """A problem for each passage whose text is not the one that the collection's hash list has under its id.

    `find` gives the MD5 of each id, None for one that is not listed, which is no problem here; `same` tells whether a
    text has an MD5. `file` is what the problems name as the place of the texts.
    """
    ids = sorted(passages, key=natural_key)
    listed = zip(ids, find([passages[key].passage_id for key in ids]), strict=True)
    message = "its text is not the one of the hash list: the MD5 differs"
    return [
        Problem("passage_text_differs", "error", file, None, f"passage {passages[key].passage_id}: $", message)
        for key, md5 in listed
        if md5 is not None and not same(passages[key].text, md5)
    ]


def _add(problems: list[Problem], file: Path, number: int | None, message: str) -> None:
    where = "$" if number is None else f"line {number}: $"
    problems.append(Problem("passages_unreadable", "error", str(file), None, where, message))
    if len(problems) == MAX_PROBLEMS:
        raise _refusal(problems)


def _refusal(problems: Sequence[Problem]) -> InputError:
    return InputError("the passage files cannot be used as they are", problems)


def _files(paths: Sequence[Path], problems: list[Problem]) -> list[Path]:
    """The paths with every folder of shards replaced by its shards; a Lucene index is one source."""
    files: list[Path] = []
    for path in paths:
        try:
            # Not is_file(): a pipe is as good as a file.
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
            path.stat()
        except OSError as error:
            _add(problems, path, None, f"cannot be read: {error.strerror}")
            continue
        except ValueError as error:
            _add(problems, path, None, f"cannot be read: {error}")
            continue
        if inside is None or _is_lucene(inside):
            files.append(path)
            continue
        shards = [file for file in inside if file.name.endswith(_SUFFIXES) and file.name[0] != "."]
        if not shards:
            known = ", ".join(_SUFFIXES)
            _add(problems, path, None, f"the folder is no Lucene index and has no file that ends in one of {known}")
        files += shards
    return files


def _is_lucene(files: Iterable[Path]) -> bool:
    return any(file.name.startswith("segments_") for file in files)


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
            bad(None, f"cannot be read to the end: {error}")


def _without_lines(found: Mapping[str, Passage]) -> Iterator[Hit]:
    return ((None, passage.passage_id, passage.text) for passage in found.values())


def _from_file(file: Path, wanted: frozenset[str], bad: Bad) -> Iterator[Hit]:
    with open_stream(file) as content:
        start = content.peek()
        if start.startswith(_BOM):
            content.read(len(_BOM))
        kind = start.removeprefix(_BOM).lstrip()[:1]
        if kind == b"{":
            # Not at the top: it needs numpy, and one that only takes texts from runs does not.
            from judge.passages.jsonl import json_lines

            yield from json_lines(content, wanted, bad)
        elif kind == b"<":
            from judge.passages.trecweb import trecweb

            yield from trecweb(content, wanted, bad)
        elif start:
            bad(1, "expected JSON Lines, which begin with '{', or TREC-web, which begins with '<DOC>'")
