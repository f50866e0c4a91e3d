"""What the completions of a journal took: tokens, money and time, by judge."""

import sqlite3
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.files.paths import StrPath
from judge.models.journal_rows import open_to_read, unreadable
from judge.records import Record
from judge.text.ids import natural_key


class Spending(Record, frozen=True):
    """What one judge's completions took; a sum leaves out the completions that do not say theirs."""

    judge: str
    completions: int
    attempts: int
    """Calls that these completions took, failed attempts included."""
    prompt_tokens: int
    completion_tokens: int
    counted: int
    """Completions that say their tokens."""
    cost: float
    """US dollars."""
    priced: int
    """Completions whose price is known."""
    seconds: float
    """The calls' durations added up; calls that ran at once count each."""
    timed: int
    """Completions that say their duration."""
    first: str
    """When the first completion was recorded, and when the last was: UTC, as `2025-01-31T12:00:00.000Z`."""
    last: str


class _Took(msgspec.Struct):
    """The part of a completion that is added up."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    attempts: int = 1


def read_spending(path: StrPath) -> tuple[Spending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Raises:
        InputError: The file is missing, is no journal, or another process is using it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    by_judge: dict[str, list[tuple[_Took, str]]] = {}
    try:
        connection = open_to_read(path)
        try:
            for judge, completion, recorded in connection.execute("SELECT judge, completion, recorded FROM completion"):
                by_judge.setdefault(judge, []).append((msgspec.json.decode(completion, type=_Took), recorded))
        finally:
            connection.close()
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {unreadable(path, error)}") from error
    return tuple(_added(judge, by_judge[judge]) for judge in sorted(by_judge, key=natural_key))


def _added(judge: str, rows: list[tuple[_Took, str]]) -> Spending:
    took = [row for row, _ in rows]
    times = sorted(recorded for _, recorded in rows)
    counted = [row for row in took if row.prompt_tokens is not None or row.completion_tokens is not None]
    priced = [row.cost for row in took if row.cost is not None]
    timed = [row.latency for row in took if row.latency is not None]
    return Spending(
        judge=judge,
        completions=len(took),
        attempts=sum(row.attempts for row in took),
        prompt_tokens=sum(row.prompt_tokens or 0 for row in counted),
        completion_tokens=sum(row.completion_tokens or 0 for row in counted),
        counted=len(counted),
        cost=sum(sorted(priced)),
        priced=len(priced),
        seconds=sum(sorted(timed)),
        timed=len(timed),
        first=times[0],
        last=times[-1],
    )
