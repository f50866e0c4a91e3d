"""The rounds of requests that were written for an output folder, so that none is asked twice while it is under way."""

import os
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.files.folder import make_folder, write_atomic
from judge.files.jsonl import json_bytes
from judge.files.stored import read_stored

ROUNDS = ".rounds.json"


class RequestRound(msgspec.Struct):
    """One folder of requests."""

    folder: str
    """Relative to the output folder."""
    requests: int
    returned: bool = False
    """Whether completions were imported from it."""


def note_written(out: Path, folder: Path, requests: int) -> None:
    """Remember that requests were written.

    Raises:
        InputError: The list of rounds cannot be read.
        OperationalError: The disk cannot be written.
    """
    make_folder(out)
    rounds = [entry for entry in _read(out) if entry.folder != _relative(out, folder)]
    _write(out, [*rounds, RequestRound(_relative(out, folder), requests)])


def note_returned(out: Path, folder: Path) -> None:
    """Remember that completions came back for a folder of requests.

    Raises:
        InputError: The list of rounds cannot be read.
        OperationalError: The disk cannot be written.
    """
    rounds = _read(out)
    for entry in rounds:
        entry.returned = entry.returned or entry.folder == _relative(out, folder)
    _write(out, rounds)


def under_way(out: Path) -> tuple[tuple[Path, int], ...]:
    """The folders of requests from which nothing came back yet, with the number of their requests.

    Raises:
        InputError: The list of rounds cannot be read.
    """
    waiting = [(out / entry.folder, entry.requests) for entry in _read(out) if not entry.returned]
    return tuple((Path(os.path.normpath(folder)), requests) for folder, requests in waiting if folder.exists())


def _relative(out: Path, folder: Path) -> str:
    return os.path.relpath(folder.resolve(), out.resolve())


def _read(out: Path) -> list[RequestRound]:
    path = out / ROUNDS
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(read_stored(path), type=list[RequestRound])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a list of rounds that `judge requests` wrote: {error}") from error


def _write(out: Path, rounds: list[RequestRound]) -> None:
    write_atomic(out / ROUNDS, json_bytes(rounds))
