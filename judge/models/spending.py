"""What the completions of a journal took and how they ended: tokens, money, time and models, by judge."""

import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Mapping
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
    cached_tokens: int = 0
    """Tokens of prompts that the provider read from its cache; part of `prompt_tokens`."""
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


class _Took(msgspec.Struct):
    """The part of a completion that is added up."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    latency: float | None = None
    attempts: int = 1
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

    def add(self, took: _Took, form: str, recorded: str) -> None:
        """Count a completion."""
        self.completions += 1
        self.attempts += took.attempts
        self.prompt_tokens += took.prompt_tokens or 0
        self.completion_tokens += took.completion_tokens or 0
        self.cached_tokens += took.cached_tokens or 0
        self.counted += took.prompt_tokens is not None or took.completion_tokens is not None
        if took.cost is not None:
            self.costs.append(took.cost)
        if took.latency is not None:
            self.seconds.append(took.latency)
        self.first, self.last = min(self.first, recorded), max(self.last, recorded)
        self.words[form, took.finish_reason, took.model, took.system_fingerprint] += 1

    def spending(self, judge: str) -> Spending:
        """What they took."""
        seconds = sorted(self.seconds)
        forms, finish_reasons, models, fingerprints = map(self._counted, range(4))
        return Spending(
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


def read_spending(path: StrPath) -> tuple[Spending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Raises:
        InputError: The file is missing, is no journal, or another process is using it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such journal")
    by_judge: dict[str, _Sums] = {}
    decoder = msgspec.json.Decoder(_Took)
    try:
        connection = open_to_read(path)
        try:
            rows = connection.execute("SELECT judge, completion, form, recorded FROM completion")
            for judge, completion, form, recorded in rows:
                by_judge.setdefault(judge, _Sums()).add(decoder.decode(completion), form, recorded)
        finally:
            connection.close()
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a journal: {unreadable(path, error)}") from error
    return tuple(by_judge[judge].spending(judge) for judge in sorted(by_judge, key=natural_key))


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed; None of no values.

    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0, 2.0, 3.0, 4.0], 95)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
