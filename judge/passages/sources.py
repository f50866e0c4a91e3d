"""The files behind a collection's paths."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from judge.io.ids import natural_key
from judge.passages.problems import CollectionProblems

_OWN = "passages.jsonl"
"""The passages among the files of an output folder."""
_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".trecweb") for packed in ("", ".gz", ".bz2", ".zst"))


def expanded(paths: Sequence[Path], problems: CollectionProblems) -> list[Path]:
    """The paths with every folder of shards replaced by its shards in natural order; a Lucene index is one source.

    Raises:
        InputError: `MAX_PROBLEMS` of the paths cannot be used.
    """
    files: list[Path] = []
    for path in paths:
        try:
            # Not is_file(): a pipe can be read too.
            inside = sorted(path.iterdir(), key=lambda file: natural_key(file.name)) if path.is_dir() else None
            path.stat()
        except OSError as error:
            problems.add(path, None, f"cannot be read: {error.strerror}")
            continue
        except ValueError as error:
            problems.add(path, None, f"cannot be read: {error}")
            continue
        if inside is None or _is_lucene(inside):
            files.append(path)
            continue
        if {_OWN, "manifest.json"} <= {file.name for file in inside}:
            files.append(path / _OWN)
            continue
        shards = [file for file in inside if file.name.endswith(_SUFFIXES) and file.name[0] != "."]
        if not shards:
            known = ", ".join(_SUFFIXES)
            problems.add(path, None, f"the folder is no Lucene index and has no file that ends in one of {known}")
        files += shards
    return files


def _is_lucene(files: Iterable[Path]) -> bool:
    return any(file.name.startswith("segments_") for file in files)
