"""What completions took: tokens, money and time, by judge; of a journal, or of the results that rest on them."""

import contextlib
import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.files.paths import StrPath
from judge.models.journal_rows import open_to_read, unreadable
from judge.models.prices import Price
from judge.models.records import Message
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
    seconds_p50: float | None = None
    """Half of the timed calls took this long or less; None if no call is timed."""
    seconds_p95: float | None = None
    forms: Mapping[str, int] = {}
    """Completions by the form in which an answer was asked for."""
    finish_reasons: Mapping[str, int] = {}
    """Completions by why their texts end, in the words of the provider; an empty word where it gave none."""
    models: Mapping[str, int] = {}
    """Completions by the model that the provider names."""
    fingerprints: Mapping[str, int] = {}
    """Completions by the provider's fingerprint of what it runs."""


class CallFacts(msgspec.Struct, frozen=True):
    """The part of a completion that is added up."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    attempts: int = 1


class _Row(CallFacts, frozen=True):
    """The part of a completion that `judge journal stats` shows."""

    finish_reason: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class _Sums:
    """The completions of one judge, added up as they are read: a journal may hold more than memory does."""

    def __init__(self) -> None:
        self.completions = self.attempts = 0
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = self.counted = 0
        self.costs, self.seconds = array("d"), array("d")
        self.first, self.last = "~", ""
        self.words: Counter[tuple[str | None, ...]] = Counter()

    def add(self, took: _Row, form: str, recorded: str) -> None:
        """Count a completion."""
        self.completions += 1
        self.attempts += took.attempts
        if took.prompt_tokens is not None and took.completion_tokens is not None:
            self.counted += 1
            self.prompt_tokens += took.prompt_tokens
            self.completion_tokens += took.completion_tokens
            self.cached_tokens += took.cached_tokens or 0
        if took.cost is not None:
            self.costs.append(took.cost)
        if took.latency is not None:
            self.seconds.append(took.latency)
        self.first, self.last = min(self.first, recorded), max(self.last, recorded)
        self.words[form, took.finish_reason, took.model, took.system_fingerprint] += 1

    def spending(self, judge: str) -> JournalSpending:
        """What they took."""
        seconds = sorted(self.seconds)
        forms, finish_reasons, models, fingerprints = map(self._counted, range(4))
        return JournalSpending(
            judge=judge,
            completions=self.completions,
            attempts=self.attempts,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            counted=self.counted,
            cost=math.fsum(self.costs),
            priced=len(self.costs),
            seconds=math.fsum(seconds),
            timed=len(seconds),
            first=self.first,
            last=self.last,
            cached_tokens=self.cached_tokens,
            seconds_p50=_percentile(seconds, 50),
            seconds_p95=_percentile(seconds, 95),
            forms=forms,
            finish_reasons=finish_reasons,
            models=models,
            fingerprints=fingerprints,
        )

    def _counted(self, place: int) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for words, count in self.words.items():
            counts[words[place] or ""] += count
        return dict(sorted(counts.items()))


class CallSum:
    """The calls of one judge, added up as they come; equal calls in any order give equal sums.

    Args:
        price: What the tokens of a call cost that was recorded without its cost; None if that is not known.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._completions = self._attempts = self._counted = 0
        self._prompt_tokens = self._cached_tokens = self._completion_tokens = 0
        # Sums of floats depend on their order, so every one is kept.
        self._costs, self._seconds = array("d"), array("d")

    def add(self, call: CallFacts) -> None:
        """Count a call."""
        self._completions += 1
        self._attempts += call.attempts
        if call.prompt_tokens is not None and call.completion_tokens is not None:
            self._counted += 1
            self._prompt_tokens += call.prompt_tokens
            self._cached_tokens += call.cached_tokens or 0
            self._completion_tokens += call.completion_tokens
        cost = self._cost(call)
        if cost is not None:
            self._costs.append(cost)
        if call.latency is not None:
            self._seconds.append(call.latency)

    def _cost(self, call: CallFacts) -> float | None:
        if call.cost is not None or self._price is None or not call.prompt_tokens or call.completion_tokens is None:
            return call.cost
        return self._price.cost(call.prompt_tokens, call.cached_tokens or 0, call.completion_tokens)

    def spending(self, judge: str) -> Spending:
        """What they took, under the name of the judge."""
        return Spending(
            judge=judge,
            completions=self._completions,
            attempts=self._attempts,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            completion_tokens=self._completion_tokens,
            counted=self._counted,
            cost=round(sum(sorted(self._costs)), 9),
            priced=len(self._costs),
            seconds=round(sum(sorted(self._seconds)), 3),
            timed=len(self._seconds),
        )


def add_up(judge: str, calls: Iterable[CallFacts], price: Price | None = None) -> Spending:
    """What the calls of a judge took; `CallSum` has the price."""
    total = CallSum(price)
    for call in calls:
        total.add(call)
    return total.spending(judge)


def read_spending(path: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Raises:
        InputError: The file is missing, is no journal, or another process is using it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    try:
        with contextlib.closing(open_to_read(path)) as connection:
            return spending_of(connection.execute("SELECT judge, completion, form, recorded FROM completion"))
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {unreadable(path, error)}") from error


def spending_of(rows: Iterable[tuple[str, str, str, str]]) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, of rows with judge, completion, form and time.

    Raises:
        msgspec.MsgspecError: A completion is of another form.
    """
    by_judge: dict[str, _Sums] = {}
    decoder = msgspec.json.Decoder(_Row)
    for judge, completion, form, recorded in rows:
        by_judge.setdefault(judge, _Sums()).add(decoder.decode(completion), form, recorded)
    return tuple(by_judge[judge].spending(judge) for judge in sorted(by_judge, key=natural_key))


def call_sample(
    connection: sqlite3.Connection, judge: str, most: int
) -> list[tuple[str, tuple[Message, ...], CallFacts]]:
    """Digest, messages and facts of at most `most` calls to a judge in a journal; the same ones each time.

    Rows that cannot be read are left out: this is for estimates alone.

    Raises:
        sqlite3.Error: The journal cannot be read.
    """
    # Digests are as good as random, so the first ones are a fair sample.
    query = (
        "SELECT CAST(digest AS TEXT), CAST(messages AS BLOB), CAST(completion AS BLOB) FROM completion "
        "WHERE judge = ? ORDER BY digest LIMIT ?"
    )
    drawn: list[tuple[str, tuple[Message, ...], CallFacts]] = []
    for digest, messages, completion in connection.execute(query, (judge, most)):
        with contextlib.suppress(msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
            asked = msgspec.json.decode(messages, type=tuple[Message, ...])
            drawn.append((digest, asked, msgspec.json.decode(completion, type=CallFacts)))
    return drawn


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed; None of no values.

    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0, 2.0, 3.0, 4.0], 95)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
