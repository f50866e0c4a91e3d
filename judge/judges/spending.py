"""What completions took: tokens, money and time, by judge."""

from array import array

from judge.judges.prices import Price
from judge.judges.records import Completion
from judge.records import Record


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

    def add(self, call: Completion) -> None:
        """Count a call; a completion that is made of other ones took none."""
        if not call.attempts:
            return
        self._completions += 1
        self._attempts += call.attempts
        if call.prompt_tokens is not None and call.completion_tokens is not None:
            self._counted += 1
            self._prompt_tokens += call.prompt_tokens
            self._cached_tokens += call.cached_tokens or 0
            self._completion_tokens += call.completion_tokens
        cost = call.cost
        if cost is None and self._price is not None and call.prompt_tokens:
            cost = self._price.of(call)
        if cost is not None:
            self.costs.append(cost)
        if call.latency is not None:
            self.seconds.append(call.latency)

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
