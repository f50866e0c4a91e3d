"""A pool read from its folder or from its `pool.jsonl`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Literal, get_args

from judge.io.line_stream import LineStream
from judge.pool.bank import read_pool
from judge.pool.records import Pool

Beside = Literal["passages.jsonl", "excluded.tsv", "runs.jsonl"]
BESIDE: tuple[Beside, ...] = get_args(Beside)
"""The files of a pool beside its responses."""
TURNS = "turns.jsonl"
"""The file of a pool with interactive runs, which is always read, since their turn ids mean nothing without it."""


def pool_file(path: Path) -> Path:
    """The file with the responses of a pool: `pool.jsonl` of a folder, or the path itself."""
    return path / "pool.jsonl" if path.is_dir() else path


def read_pool_folder(path: Path, *beside: Beside) -> Pool:
    """The pool of a folder or of a `pool.jsonl`; its files may be packed.

    Args:
        path: The folder, or the file with the responses.
        beside: The other files of the pool to read; what an unread file holds is empty in the result.

    Raises:
        InputError: A wanted file is missing or damaged.
    """
    file = pool_file(path)
    with ExitStack() as opened:

        def lines(name: str) -> LineStream:
            stream = LineStream(file.with_name(name), packed=True)
            opened.enter_context(stream.file)
            return stream

        return read_pool(
            lines(file.name),
            lines("passages.jsonl") if "passages.jsonl" in beside else b"",
            str(file.parent),
            lines("excluded.tsv") if "excluded.tsv" in beside else b"",
            lines("runs.jsonl") if "runs.jsonl" in beside else b"",
            lines(TURNS) if file.with_name(TURNS).exists() else b"",
        )
