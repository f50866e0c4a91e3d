"""What completions took: tokens, money and time, by judge; of a journal, or of the results that rest on them."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.files.paths import StrPath
from judge.models.journal_rows import open_to_read, unreadable
from judge.models.model import Price
from judge.records import Record
from judge.text.ids import natural_key


class Spending(Record, frozen=True):
    """What one judge's completions took; a sum leaves out the completions that do not say theirs."""

    judge: str
    completions: int
    attempts: int
    """Calls that these completions took, failed attempts included."""
    prompt_tokens: int
    cached_tokens: int
    """Those of the prompts' tokens that the provider read from its cache; part of `prompt_tokens`."""
    completion_tokens: int
    """Tokens of the replies, thoughts included."""
    counted: int
    """Completions that say the tokens of both prompt and reply."""
    cost: float
    """US dollars."""
    priced: int
    """Completions whose price is known."""
    seconds: float
    """The calls' durations added up; calls that ran at once count each."""
    timed: int
    """Completions that say their duration."""


class JournalSpending(Spending, frozen=True):
    """What all completions of a judge in a journal took."""

    first: str
    """When the first completion was recorded, and when the last was: UTC, as `2025-01-31T12:00:00.000Z`."""
    last: str


class CallFacts(msgspec.Struct, frozen=True):
    """The part of a completion that is added up."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    attempts: int = 1


def add_up(judge: str, calls: Iterable[CallFacts], price: Price | None = None) -> Spending:
    """What the calls of a judge took; equal calls in any order give equal bytes.

    Args:
        judge: The name of the judge.
        calls: The calls.
        price: What the tokens of a call cost that was recorded without its cost; None if that is not known.
    """
    took = list(calls)
    counted = [call for call in took if call.prompt_tokens is not None and call.completion_tokens is not None]
    priced = [cost for call in took if (cost := _cost(call, price)) is not None]
    timed = [call.latency for call in took if call.latency is not None]
    return Spending(
        judge=judge,
        completions=len(took),
        attempts=sum(call.attempts for call in took),
        prompt_tokens=sum(call.prompt_tokens or 0 for call in counted),
        cached_tokens=sum(call.cached_tokens or 0 for call in counted),
        completion_tokens=sum(call.completion_tokens or 0 for call in counted),
        counted=len(counted),
        cost=round(sum(sorted(priced)), 9),
        priced=len(priced),
        seconds=round(sum(sorted(timed)), 3),
        timed=len(timed),
    )


def _cost(call: CallFacts, price: Price | None) -> float | None:
    if call.cost is not None or price is None or not call.prompt_tokens or call.completion_tokens is None:
        return call.cost
    return price.cost(call.prompt_tokens, call.cached_tokens or 0, call.completion_tokens)


def read_spending(path: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Raises:
        InputError: The file is missing, is no journal, or another process is using it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    by_judge: dict[str, list[tuple[CallFacts, str]]] = {}
    try:
        connection = open_to_read(path)
        try:
            for judge, completion, recorded in connection.execute("SELECT judge, completion, recorded FROM completion"):
                by_judge.setdefault(judge, []).append((msgspec.json.decode(completion, type=CallFacts), recorded))
        finally:
            connection.close()
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {unreadable(path, error)}") from error
    return tuple(_of_journal(judge, by_judge[judge]) for judge in sorted(by_judge, key=natural_key))


def _of_journal(judge: str, rows: list[tuple[CallFacts, str]]) -> JournalSpending:
    times = sorted(recorded for _, recorded in rows)
    spending = add_up(judge, (call for call, _ in rows))
    return JournalSpending(**msgspec.structs.asdict(spending), first=times[0], last=times[-1])
