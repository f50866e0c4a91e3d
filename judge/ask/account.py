"""What judging took: the calls of this process, and all calls that its results rest on, each once. Pure."""

from collections.abc import Mapping

from judge.ask.estimates import CallSums, TokenRates
from judge.io.ids import natural_key
from judge.judges.model import Price, SentRequests
from judge.judges.prices import CallSum, Spending
from judge.judges.records import Completion, Request
from judge.records import Record


class CallEstimate(Record, frozen=True):
    """What was estimated for calls before they were made; repairs of unreadable replies are in no estimate."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """US dollars, with no token from a cache; None if the price is not known."""
    basis: str
    """What the estimate rests on, in words."""


class JudgeAccount(Record, frozen=True):
    """What one judge's calls took."""

    judge: str
    expected: CallEstimate
    """What was estimated for the calls of `asked`."""
    asked: Spending
    """The calls of this process."""
    results: Spending
    """All calls that the results rest on, those of the journal included."""
    seconds: float
    """Seconds that the asking took, from its start to its end."""


class _JudgeCalls:
    """The calls of one judge."""

    def __init__(self, price: Price | None, rates: TokenRates) -> None:
        self.price = price
        self.expected = CallSums(rates)
        self.asked, self.results = CallSum(price), CallSum(price)
        self.counted: set[int] = set()
        """Hashes of the digests in `results`, because there may be millions."""
        self.seconds = 0.0

    def row(self, judge: str) -> JudgeAccount:
        """What they took."""
        expected, price = self.expected, self.price
        estimate = CallEstimate(
            expected.calls,
            expected.prompt_tokens,
            expected.reply_tokens,
            None if price is None else price.cost(expected.prompt_tokens, 0, expected.reply_tokens),
            expected.rates.basis,
        )
        return JudgeAccount(judge, estimate, self.asked.spending(judge), self.results.spending(judge), self.seconds)


class Account:
    """Collects what the calls of one job took, by judge; several loops may share one."""

    def __init__(self) -> None:
        self._judges: dict[str, _JudgeCalls] = {}

    def open(self, judge: str, price: Price | None, rates: TokenRates) -> None:
        """Say what a judge's tokens cost and come to, before it is asked; the first estimate stands."""
        self._judges.setdefault(judge, _JudgeCalls(price, rates))

    def ask(self, judge: str, request: Request, completion: Completion, sent: SentRequests | None = None) -> None:
        """Enter a call that was made, with what it sent where the judge asks in words of its own."""
        calls = self._judges[judge]
        calls.asked.add(completion)
        if all(message.role != "assistant" for message in request.messages):
            calls.expected.add(request, sent)

    def rest(self, judge: str, completions: Mapping[str, Completion]) -> None:
        """Enter the completions, by their digests, that a result of an opened judge rests on, each once."""
        if (calls := self._judges.get(judge)) is None:
            return
        for digest, completion in completions.items():
            if (key := hash(digest)) not in calls.counted:
                calls.counted.add(key)
                calls.results.add(completion)

    def end(self, judge: str, seconds: float) -> None:
        """Enter how long asking a judge took."""
        self._judges[judge].seconds += seconds

    def rows(self) -> tuple[JudgeAccount, ...]:
        """What each judge's calls took, in natural order of the judges' names."""
        return tuple(self._judges[judge].row(judge) for judge in sorted(self._judges, key=natural_key))
