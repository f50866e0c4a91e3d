"""Which files a collection's paths stand for."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from judge.passages.problems import CollectionProblems
from judge.text.ids import natural_key

_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".trecweb") for packed in ("", ".gz", ".bz2", ".zst"))


def expanded(paths: Sequence[Path], faults: CollectionProblems) -> list[Path]:
    """The paths with every folder of shards replaced by its shards in natural order; a Lucene index is one source.

    Raises:
        InputError: Too many of them cannot be used.
    """
    files: list[Path] = []
    for path in paths:
        try:
            # Not is_file(): a pipe is as good as a file.
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
            path.stat()
        except OSError as error:
            faults.add(path, None, f"cannot be read: {error.strerror}")
            continue
        except ValueError as error:
            faults.add(path, None, f"cannot be read: {error}")
            continue
        if inside is None or _is_lucene(inside):
            files.append(path)
            continue
        shards = [file for file in inside if file.name.endswith(_SUFFIXES) and file.name[0] != "."]
        if not shards:
            known = ", ".join(_SUFFIXES)
            faults.add(path, None, f"the folder is no Lucene index and has no file that ends in one of {known}")
        files += shards
    return files


def _is_lucene(files: Iterable[Path]) -> bool:
    return any(file.name.startswith("segments_") for file in files)
