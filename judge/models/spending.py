"""What completions took: tokens, money and time, by judge; of a journal, or of the results that rest on them."""

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.files.paths import StrPath
from judge.models.journal_rows import is_database
from judge.models.journal_store import open_store, stored_rows
from judge.models.prices import Price
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
        self.costs, self.seconds = array("d"), array("d")

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
            self.costs.append(cost)
        if call.latency is not None:
            self.seconds.append(call.latency)

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
            cost=round(sum(sorted(self.costs)), 9),
            priced=len(self.costs),
            seconds=round(sum(sorted(self.seconds)), 3),
            timed=len(self.seconds),
        )


def add_up(judge: str, calls: Iterable[CallFacts], price: Price | None = None) -> Spending:
    """What the calls of a judge took; `CallSum` has the price."""
    total = CallSum(price)
    for call in calls:
        total.add(call)
    return total.spending(judge)


class _JournalSum(CallSum):
    """The completions of one judge in a journal, added up as they are read."""

    def __init__(self) -> None:
        super().__init__()
        self._first, self._last = "~", ""
        self._words: Counter[tuple[str | None, ...]] = Counter()

    def count(self, took: _Row, form: str, recorded: str) -> None:
        """Count a completion."""
        self.add(took)
        self._first, self._last = min(self._first, recorded), max(self._last, recorded)
        self._words[form, took.finish_reason, took.model, took.system_fingerprint] += 1

    def in_journal(self, judge: str) -> JournalSpending:
        """What they took, under the name of the judge."""
        seconds = sorted(self.seconds)
        sums = msgspec.structs.asdict(self.spending(judge))
        forms, finish_reasons, models, fingerprints = map(self._by_word, range(4))
        return JournalSpending(
            **{**sums, "cost": math.fsum(self.costs), "seconds": math.fsum(seconds)},
            first=self._first,
            last=self._last,
            seconds_p50=_percentile(seconds, 50),
            seconds_p95=_percentile(seconds, 95),
            forms=forms,
            finish_reasons=finish_reasons,
            models=models,
            fingerprints=fingerprints,
        )

    def _by_word(self, place: int) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for words, count in self._words.items():
            counts[words[place] or ""] += count
        return dict(sorted(counts.items()))


def read_spending(place: StrPath) -> tuple[JournalSpending, ...]:
    """What each judge's completions took, in natural order of the judges' names.

    Args:
        place: A journal that no process is writing, or the address of a shared one.

    Raises:
        UsageError: The database cannot be used as its address says.
        InputError: The place holds no journal, or a damaged one, or another process is using it.
        OperationalError: The database cannot be reached.
    """
    if not is_database(place) and not Path(place).is_file():
        raise InputError(f"{place}: no such journal")
    by_judge: dict[str, _JournalSum] = {}
    decoder = msgspec.json.Decoder(_Row)
    with contextlib.closing(open_store(place)) as store:
        for _, row in stored_rows(store):
            try:
                took = decoder.decode(row[9])
            except msgspec.MsgspecError as error:
                raise InputError(f"{place}: damaged at the completion {row[0]}: {error}") from error
            by_judge.setdefault(row[1], _JournalSum()).count(took, row[5], row[10])
    return tuple(by_judge[judge].in_journal(judge) for judge in sorted(by_judge, key=natural_key))


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed; None of no values.

    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0, 2.0, 3.0, 4.0], 95)
    (2.0, 4.0)
    """
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
