"""What judging took: the calls of this process, and all calls that its results rest on, each once. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from judge.ask.estimates import GUESS, CallSums, TokenRates
from judge.models.model import Price, SentRequests, Unfinished
from judge.models.records import Completion, Request
from judge.models.spending import CallSum, Spending
from judge.records import Record
from judge.text.ids import natural_key


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


class _Calls:
    """Calls of one judge, each counted once; by hashes and sums, because there may be millions."""

    def __init__(self, price: Price | None) -> None:
        self.total = CallSum(price)
        self._hashes: set[int] = set()

    def add(self, digest: str, completion: Completion) -> None:
        """Count a call, unless one with this digest is counted."""
        if (key := hash(digest)) not in self._hashes:
            self._hashes.add(key)
            self.total.add(completion)


class Account:
    """Collects what the calls of one job took, by judge; several loops may share one."""

    def __init__(self) -> None:
        self._terms: dict[str, tuple[Price | None, TokenRates]] = {}
        self._asked: dict[str, _Calls] = {}
        self._results: dict[str, _Calls] = {}
        self._expected: dict[str, CallSums] = {}
        self._unfinished: dict[str, Unfinished] = {}
        self._seconds: dict[str, float] = {}

    def open(self, judge: str, price: Price | None, rates: TokenRates) -> None:
        """Say what a judge's tokens cost and come to, before it is asked; the first estimate stands."""
        self._terms.setdefault(judge, (price, rates))

    def ask(
        self, judge: str, digest: str, request: Request, completion: Completion, sent: SentRequests | None = None
    ) -> None:
        """Enter a call that was made, with what it sent where the judge asks in words of its own."""
        self._of(self._asked, judge).add(digest, completion)
        if all(message.role != "assistant" for message in request.messages):
            _, rates = self._terms.get(judge, (None, GUESS))
            self._expected[judge] = self._expected.get(judge, CallSums()).plus(request, rates, sent)

    def rest(self, judge: str, completions: Mapping[str, Completion]) -> None:
        """Enter the completions, by their digests, that a result rests on."""
        results = self._of(self._results, judge)
        for digest, completion in completions.items():
            results.add(digest, completion)

    def _of(self, calls: "dict[str, _Calls]", judge: str) -> "_Calls":
        if (known := calls.get(judge)) is None:
            known = calls[judge] = _Calls(self._terms.get(judge, (None, GUESS))[0])
        return known

    def unfinished(self, judge: str, replies: Unfinished) -> None:
        """Enter the replies of calls that failed, which no completion counts."""
        self._unfinished[judge] = self._unfinished.get(judge, Unfinished()).plus(replies)

    def last(self, judge: str, seconds: float) -> None:
        """Enter how long asking a judge took."""
        self._seconds[judge] = self._seconds.get(judge, 0.0) + seconds

    def rows(self) -> tuple[JudgeAccount, ...]:
        """What each judge's calls took, in natural order of the judges' names."""
        judges = {*self._terms, *self._asked, *self._results}
        return tuple(map(self._row, sorted(judges, key=natural_key)))

    def _row(self, judge: str) -> JudgeAccount:
        price, rates = self._terms.get(judge, (None, GUESS))
        expected = self._expected.get(judge, CallSums())
        replies = expected.reply_tokens(rates)
        cost = None if price is None else price.cost(expected.prompt_tokens, 0, replies)
        return JudgeAccount(
            judge,
            CallEstimate(expected.calls, expected.prompt_tokens, replies, cost, rates.basis),
            self._with_unfinished(self._of(self._asked, judge).total.spending(judge), price),
            self._of(self._results, judge).total.spending(judge),
            self._seconds.get(judge, 0.0),
        )

    def _with_unfinished(self, asked: Spending, price: Price | None) -> Spending:
        lost = self._unfinished.get(asked.judge, Unfinished())
        cost = 0.0 if price is None else price.cost(lost.prompt_tokens, 0, lost.reply_tokens)
        return msgspec.structs.replace(
            asked,
            prompt_tokens=asked.prompt_tokens + lost.prompt_tokens,
            completion_tokens=asked.completion_tokens + lost.reply_tokens,
            cost=round(asked.cost + cost, 9),
        )


def in_all(accounts: Sequence[JudgeAccount]) -> JudgeAccount:
    """What the calls of several judges took together."""
    expected = [account.expected for account in accounts]
    costs = [row.cost for row in expected if row.cost is not None]
    bases = dict.fromkeys(row.basis for row in expected)
    return JudgeAccount(
        "in all",
        CallEstimate(
            sum(row.calls for row in expected),
            sum(row.prompt_tokens for row in expected),
            sum(row.completion_tokens for row in expected),
            sum(costs) if len(costs) == len(expected) else None,
            "; ".join(bases),
        ),
        _sum([account.asked for account in accounts]),
        _sum([account.results for account in accounts]),
        sum(account.seconds for account in accounts),
    )


def _sum(rows: Sequence[Spending]) -> Spending:
    names = [name for name in Spending.__struct_fields__ if name != "judge"]
    return Spending("in all", **{name: sum(getattr(row, name) for row in rows) for name in names})
