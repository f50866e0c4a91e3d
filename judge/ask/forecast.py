"""What asking would send beyond what the journals hold."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from judge.ask.account import CallSums, Settings, price_of, sent_together
from judge.ask.asking import JournalPlace, Judge
from judge.ask.questions import Questions
from judge.ask.records import Task, in_order
from judge.ask.together import split
from judge.judges.journal import JournalView
from judge.judges.prices import Spending
from judge.judges.records import Request
from judge.pool.records import Pool
from judge.records import Record
from judge.runs.records import Turn


class ModelForecast(Record, frozen=True, kw_only=True):
    """What would be sent to one model.

    The calls are `judgments` less the three counts after it; they are fewer where one call has several questions.
    """

    model: str
    judgments: int
    recalled: int
    """Judgments that the journal answers already."""
    without_evidence: int
    """Judgments that the model is not asked for, because a passage that the criterion needs has no text."""
    shared: int
    """Judgments that the call for another judgment answers too, because the requests are equal."""
    expected: Spending
    """Of the calls to be made, a recheck included, if each reply has as many tokens as estimated and no prompt is in a
    cache. Second questions, after what is unreadable or cut off, come on top."""
    bytes_per_token: float
    """Of a prompt in UTF-8, in the estimate."""
    tokens_per_reply: float
    """In the estimate."""
    counted_calls: int
    """Calls of the journal that the two numbers before were counted in; 0 where they are our own guess."""
    price: dict[str, float] | None
    """US dollars per million tokens; None if the price is not known."""
    most: float | None
    """US dollars if each reply is as long as it may be; None without a price."""


class JobForecast(Record, frozen=True):
    """What carrying out the plan of a job would send."""

    counts: dict[str, int]
    """How many of each thing that the job is about."""
    models: tuple[ModelForecast, ...]
    """What each model would be asked."""
    notes: tuple[str, ...] = ()
    """What is left out, a sentence each."""

    @property
    def expected(self) -> Spending:
        """Of the calls to all models."""
        return sum((row.expected for row in self.models), Spending())

    @property
    def most(self) -> float | None:
        """US dollars if each reply is as long as it may be; None if a price is not known."""
        amounts = [row.most for row in self.models if row.most is not None]
        return sum(amounts) if len(amounts) == len(self.models) else None


class AskingForecast:
    """Counts what asking would send; the journals are only read, and nothing is sent or written."""

    def __init__(self, place: JournalPlace, pool: Pool, turns: Mapping[str, Turn] | None) -> None:
        self._place = place
        self._pool = pool
        self._turns = turns
        self._journal = JournalView([])

    def __enter__(self) -> Self:
        self._journal = JournalView(self._place.journals)
        return self

    def __exit__(self, *exit_info: object) -> None:
        self._journal.close()

    def forecast(self, judge: Judge, wanted: Sequence[Task]) -> tuple[ModelForecast, ...]:
        """What would be sent to each model of a judge beyond what the journals hold."""
        longest = judge.options.max_tokens
        forecasts: list[ModelForecast] = []
        for model in judge.models:
            questions = Questions(model, self._journal, self._pool, self._turns)
            forecasts.append(forecast(questions, judge.of(model, wanted), judge.settings, longest))
        return tuple(forecasts)


def forecast(questions: Questions, wanted: Sequence[Task], settings: Settings, longest: int) -> ModelForecast:
    """What the loop would do with tasks; nothing is sent. `longest`: tokens of the longest reply."""
    recalled = without_evidence = shared = 0
    model = questions.model
    together = model.asks_together > 1
    sums = CallSums(questions.sample.rates())
    digests: set[str] = set()
    open_numbers: list[int] = []
    for number, task in enumerate(wanted):
        if questions.gap(task) is not None:
            without_evidence += 1
        elif questions.recall(task) is not None:
            recalled += 1
        else:
            digest, request = questions.first(task)
            if digest in digests:
                shared += 1
            else:
                digests.add(digest)
                if together:
                    open_numbers.append(number)
                else:
                    sums.add([request], model.sent(request))
    for requests in _calls_together(questions, wanted, open_numbers):
        sums.add(requests, sent_together(model, requests))
    price = price_of(model, settings.known_prices)
    most = max(sums.reply_tokens, sums.calls * longest if sums.told is None else sums.told)
    return ModelForecast(
        model=model.name,
        judgments=len(wanted),
        recalled=recalled,
        without_evidence=without_evidence,
        shared=shared,
        expected=sums.spending(price),
        bytes_per_token=round(sums.rates.bytes_per_token, 3),
        tokens_per_reply=round(sums.rates.reply if sums.told is None else sums.told / sums.calls, 1),
        counted_calls=sums.rates.calls,
        price=None if price is None else price.per_million(),
        most=None if price is None else price.cost(sums.prompt_tokens, 0, most),
    )


def _calls_together(questions: Questions, wanted: Sequence[Task], numbers: Sequence[int]) -> Iterator[list[Request]]:
    """The requests of each call that a judge is asked several questions in."""
    ordered = in_order(wanted, numbers, together=True)
    for _, about in itertools.groupby(ordered, lambda number: wanted[number].response.response_id):
        requests = [questions.first(wanted[number])[1] for number in about]
        for places in split(questions.model, requests):
            yield [requests[place] for place in places]
